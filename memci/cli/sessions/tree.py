"""``memci tree``: segments, directories, notes and pages, each below what lists it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import attrs
from typer import Argument, Option

import memci
from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.contents.contents_page import entries_text
from memci.archive.contents.tree import Segment
from memci.chapters.address import NOTES, is_range, is_root, segment_of
from memci.cli.output import Answer, Line, count
from memci.cli.place import Place, command, page_argument
from memci.engine.settings.setting import MOST

_STYLES = {
    PageState.OPEN: "bold green",
    PageState.ACTIVE: "green",
    PageState.ATTACHED: "magenta",
    PageState.ARCHIVED: "cyan",
    PageState.HIDDEN: "bright_black",
    PageState.EVICTED: "red",
}


@attrs.frozen
class _Branch:
    """What is listed somewhere, with some of what it lists itself: the first and the last of it."""

    facts: PageFacts
    first: Sequence["_Branch"] = ()
    left_out: int = 0
    last: Sequence["_Branch"] = ()


@command
def tree(
    place: Place,
    index: Annotated[
        str | None, Argument(metavar="[INDEX]", help="A directory, a range or a root to begin with.", parser=page_argument)
    ] = None,
    *,
    depth: Annotated[int, Option(metavar="N", min=1, max=100, help="So many levels below where it begins.")] = 2,
    limit: Annotated[int, Option(metavar="N", min=1, max=MOST, help="At most so many lines of what one directory lists.")] = 20,
) -> Answer:
    """Draw the page tree.

    Below each segment stand the directories that were made, notes, the ranges by which the contents page groups pages, and pages,
    with their states, tokens and recalls. Evicted pages and what was removed stand nowhere: memci search finds them.
    """
    with place.opened() as session:
        segments = {f"{segment.name}-0": segment for segment in session.segments()}
        grown = [_grown(session, session.get_page(top), depth, limit) for top in ([index] if index else segments)]
    return Answer([_mapping(each, segments) for each in grown], (line for each in grown for line in _lines(each, segments)))


def _grown(session: memci.Session, facts: PageFacts, depth: int, limit: int) -> _Branch:
    if not depth or not _is_directory(facts):
        return _Branch(facts)
    listed = session.get_children(facts.index)
    if len(listed) > limit:
        first, last = listed[: limit - limit // 2], listed[len(listed) - limit // 2 :]
    else:
        first, last = listed, []
    grown = [[_grown(session, each, depth - 1, limit) for each in some] for some in (first, last)]
    return _Branch(facts, grown[0], len(listed) - len(first) - len(last), grown[1])


def _is_directory(facts: PageFacts) -> bool:
    """Return whether it lists others: unlike a page, what was made has no entry of the journal, and notes list nothing."""
    return is_range(facts.index) or is_root(facts.index) or (not facts.first_seq and segment_of(facts.index) != NOTES)


def _mapping(branch: _Branch, segments: Mapping[str, Segment]) -> dict[str, Any]:
    value = attrs.asdict(branch.facts)
    if (segment := segments.get(branch.facts.index)) is not None:
        value["segment"] = attrs.asdict(segment)
    if not _is_directory(branch.facts):
        return value
    children = [_mapping(each, segments) for each in (*branch.first, *branch.last)]
    return {**value, "children": children, "left_out": branch.left_out}


def _lines(branch: _Branch, segments: Mapping[str, Segment], indent: str = "", below: str = "") -> Iterator[Line]:
    """Yield the line of a branch, after its *indent*, and those of what it lists, after what stands *below* that."""
    yield Line(indent, _words(branch.facts, segments.get(branch.facts.index)))
    listed: list[_Branch | int] = [*branch.first, *([branch.left_out] if branch.left_out else []), *branch.last]
    for place, each in enumerate(listed, start=1):
        corner, line = ("└─ ", "   ") if place == len(listed) else ("├─ ", "│  ")
        if isinstance(each, int):
            yield Line(below + corner, [(f"… {count(each)} more: --limit draws more of them", "bright_black")])
        else:
            yield from _lines(each, segments, below + corner, below + line)


def _words(facts: PageFacts, segment: Segment | None) -> Iterator[tuple[str, str]]:
    """Yield what is said of a page, each with its style."""
    yield facts.index, "bold"
    if segment is not None:
        yield f"segment, {segment.permission} for the model", ""
        yield segment.type, ""
        if segment.capacity_tokens is not None:
            yield f"{count(segment.capacity_tokens)} tokens at most", ""
        return
    yield facts.state, _STYLES[facts.state]
    if _is_directory(facts) and not is_range(facts.index):
        yield f"directory, {entries_text(facts.entries)}", ""
    else:
        yield f"{count(facts.tokens)} tokens", ""
    if facts.recall_count:
        yield f"recalled {count(facts.recall_count)}×", "yellow"
    for is_so, word in ((facts.kept, "kept"), (facts.pinned, "pinned")):
        yield word if is_so else "", "yellow"
    yield facts.title, ""
