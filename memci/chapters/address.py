"""What an index says: ``usr-12`` is page 12 of its segment, ``usr-12..15`` are its pages from 12 to 15, ``usr-0`` is its root."""

from collections.abc import Iterable

NOTES = "note"  # what indexes of notes begin with, in the place of a segment
_NOTE = f"{NOTES}-"


def page_number(index: str) -> int:
    """Return the number in an index such as ``usr-12``, the first one in a range such as ``usr-12..15``.

    That of a note is below 0: notes have a series of their own, and stand in no order with pages.
    """
    number = int(index.rpartition("-")[2].partition("..")[0])
    return -number if index.startswith(_NOTE) else number


def last_number(index: str) -> int:
    """Return the number in an index such as ``usr-12``, the last one in a range such as ``usr-12..15``; of a note, below 0."""
    number = int(index.rpartition("-")[2].rpartition("..")[2])
    return -number if index.startswith(_NOTE) else number


def is_note(index: str) -> bool:
    """Return whether an index is that of a note."""
    return index.startswith(_NOTE)


def is_foreign(index: str) -> bool:
    """Return whether an index is that of a page of a mounted session, such as ``project/usr-12``."""
    return "/" in index


def segment_of(index: str) -> str:
    """Return the segment in an index."""
    return index.rpartition("-")[0]


def range_index(segment: str, first: int, last: int) -> str:
    """Return the index of the pages from one number to another, both included."""
    return f"{segment}-{first}..{last}"


def is_root(index: str) -> bool:
    """Return whether an index is that of a root: of all pages of a segment."""
    return index.endswith("-0")


def is_range(index: str) -> bool:
    """Return whether an index stands for several pages: that of a directory, or of any part of the conversation."""
    return ".." in index


def runs(indexes: Iterable[str]) -> list[str]:
    """Return indexes of pages and ranges, in order, with one range for those that follow each other."""
    found: list[str] = []
    for index in indexes:
        number, last = page_number(index), last_number(index)
        if found and number - 1 <= (end := last_number(found[-1])):
            found[-1] = range_index(segment_of(index), page_number(found[-1]), max(last, end))
        else:
            found.append(index)
    return found


def ends(ranges: Iterable[str]) -> list[str]:
    """Return the last page of each of these indexes of pages and ranges."""
    return [f"{segment_of(each)}-{last_number(each)}" for each in ranges]


def among(index: str, ranges: Iterable[str]) -> bool:
    """Return whether a page is one of these indexes of pages and ranges. O(those).

    What is no page, such as the slots of a session where they are erased, is none of them.
    """
    segment = segment_of(index)
    if not segment:
        return False
    number = page_number(index)
    return any(page_number(each) <= number <= last_number(each) for each in ranges if segment_of(each) == segment)
