"""How the contents page is brought below its limit: older entries lose detail first, then they are grouped."""

from collections.abc import Callable, Collection, Iterable, Sequence

import attrs

from memci.archive.contents import ContentsEntry, Detail, Directory
from memci.archive.eviction import LeastRecentlyRecalled, evictions, page_number
from memci.engine.state import Item

FULL_SHARE = 0.6
"""Share of the room in which the newest entries keep all their lines."""

DIRECTORY_SHARE = 0.15
"""Share of the room that directories may take before neighbouring ones are merged."""

DIRECTORY_TOKENS = 48
"""What a directory is expected to take."""

DIRECTORY_KEYWORDS = 10

MOST_GAPS = 16
"""Numbers of former directories that a directory keeps in mind until its ranges go on over them."""


@attrs.define(kw_only=True)
class Shrinkage:
    """What changes in a contents page.

    Attributes:
        details: New detail by index.
        directories: New directories; what they group leaves.
        evicted: Pairs of index and policy.
        entries: What is left.
        grouped: Indexes of what the new directories group.
    """

    details: dict[str, Detail] = attrs.field(factory=dict)
    directories: list[Directory] = attrs.field(factory=list)
    evicted: list[tuple[str, str]] = attrs.field(factory=list)
    entries: list[Item]
    grouped: set[str] = attrs.field(factory=set)


def shrink(  # noqa: PLR0913 (each is a different limit)
    entries: Sequence[Item],
    *,
    limit: int,
    low_share: float,
    directories: bool,
    next_index: str,
    turn: int,
    count: Callable[[str], int],
) -> Shrinkage:
    """Bring a contents page that is over *limit* tokens down to *low_share* of it, as far as that goes. O(entries).

    Args:
        entries: Its entries, oldest first.
        limit: Tokens that they may hold.
        low_share: What it is brought down to, once it is over.
        directories: Whether old neighbours may be grouped.
        next_index: The index that a new directory takes.
        turn: The turn.
        count: Counts the tokens of a text.
    """
    result = Shrinkage(entries=list(entries))
    if _total(entries) <= limit:
        return result
    goal = low_share * limit
    _coarsen(result, goal)
    if directories and _total(result.entries) > goal:
        _group(result, goal, next_index, count)
    if _total(result.entries) > limit:
        policy = LeastRecentlyRecalled(max_tokens=limit, low_share=low_share)
        result.evicted = evictions([policy], result.entries, turn)
        gone = dict(result.evicted)
        result.entries = [entry for entry in result.entries if entry.index not in gone]
        for directory in [directory for directory in result.directories if directory.index in gone]:
            result.directories.remove(directory)
            policy_name = gone[directory.index]
            result.evicted = [pair for pair in result.evicted if pair[0] != directory.index]
            result.evicted += [(entry.index, policy_name) for entry in entries if entry.index in result.grouped]
    result.details = {index: detail for index, detail in result.details.items() if any(e.index == index for e in result.entries)}
    return result


def _total(entries: Iterable[Item]) -> int:
    return sum(entry.contents_tokens for entry in entries)


def _coarsen(result: Shrinkage, goal: float) -> None:
    used = 0
    for place in range(len(result.entries) - 1, -1, -1):
        entry = result.entries[place]
        if isinstance(entry, ContentsEntry) and entry.detail is Detail.FULL and used + entry.contents_tokens > FULL_SHARE * goal:
            brief = attrs.evolve(entry, detail=Detail.BRIEF)
            if brief.contents_tokens < entry.contents_tokens:
                entry = result.entries[place] = brief
                result.details[entry.index] = Detail.BRIEF
        used += entry.contents_tokens


def _group(result: Shrinkage, goal: float, next_index: str, count: Callable[[str], int]) -> None:
    loose = [entry for entry in result.entries if not entry.pinned]
    total = _total(result.entries) + DIRECTORY_TOKENS
    taken: list[Item] = []
    for entry in loose:
        if total <= goal:
            break
        if isinstance(entry, ContentsEntry):
            taken.append(entry)
            total -= entry.contents_tokens
    known = [entry for entry in loose if isinstance(entry, Directory)]
    if len(known) + 1 > max(1, int(DIRECTORY_SHARE * goal / DIRECTORY_TOKENS)):
        taken = [*known, *taken]
    pages = sum(entry.pages if isinstance(entry, Directory) else 1 for entry in taken)
    if pages < 2:  # noqa: PLR2004 (a directory of one page says less than its entry)
        return
    directory = group(taken, next_index, count)
    result.grouped = {entry.index for entry in taken}
    rest = [entry for entry in result.entries if entry.index not in result.grouped]
    result.entries = sorted([*rest, directory], key=lambda entry: entry.first_seq)
    result.directories = [directory]


def group(items: Sequence[Item], index: str, count: Callable[[str], int]) -> Directory:
    """Make one directory of entries and directories, from the words of the pages themselves. O(items)."""
    covers: list[tuple[int, int]] = []
    gaps: set[int] = set()
    for item in items:
        number = page_number(item.index)
        if isinstance(item, Directory):
            covers += item.covers
            gaps |= {number, *item.gaps}
        else:
            covers.append((number, number))
    ranges = _joined(covers, gaps)
    words = _interleaved([item.keywords for item in items])
    recalls = [item.last_recall_turn for item in items if item.last_recall_turn is not None]
    firsts = [item.first_turn if isinstance(item, Directory) else item.turn for item in items]
    lasts = [item.last_turn if isinstance(item, Directory) else item.turn for item in items]
    directory = Directory(
        index=index,
        keywords=tuple(words[:DIRECTORY_KEYWORDS]),
        covers=ranges,
        pages=sum(item.pages if isinstance(item, Directory) else 1 for item in items),
        first_turn=min(firsts),
        last_turn=max(lasts),
        first_seq=min(item.first_seq for item in items),
        archived_turn=max(item.archived_turn for item in items),
        last_recall_turn=max(recalls, default=None),
        gaps=tuple(sorted(gap for gap in gaps if not any(first <= gap <= last for first, last in ranges)))[-MOST_GAPS:],
    )
    return attrs.evolve(directory, shown_tokens=count(directory.render()) + 1)


def _interleaved(lists: Sequence[Sequence[str]]) -> list[str]:
    """Return the distinct words of all lists, the first of each, then the second of each, and so on."""
    longest = max(map(len, lists), default=0)
    return list(dict.fromkeys(words[place] for place in range(longest) for words in lists if place < len(words)))


def _joined(covers: Iterable[tuple[int, int]], gaps: Collection[int]) -> tuple[tuple[int, int], ...]:
    """Join ranges that meet, or that only numbers without a page lie between."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(covers):
        if joined and all(number in gaps for number in range(joined[-1][1] + 1, first)):
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)
