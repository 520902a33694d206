"""Which entries leave the contents page."""

from collections.abc import Sequence
from typing import TypeAlias, assert_never

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Directory
from memci.chapters.address import page_number


@attrs.frozen(kw_only=True)
class ZeroRecall:
    """Evicts an entry that was never recalled, once at least *turns* turns passed since it was archived."""

    turns: int


@attrs.frozen(kw_only=True)
class Stale:
    """Evicts an entry once at least *turns* turns passed since its recall count changed, or since it was archived."""

    turns: int


@attrs.frozen(kw_only=True)
class LeastRecentlyRecalled:
    """Evicts the least recently recalled entries of a contents page that is over its tokens.

    Attributes:
        max_tokens: The contents page may hold so many.
        low_share: Once it is over them, it is brought down to this share of them.
    """

    max_tokens: int
    low_share: float


Policy: TypeAlias = ZeroRecall | Stale | LeastRecentlyRecalled


def evictions(policies: Sequence[Policy], entries: Sequence[ContentsEntry | Directory], turn: int) -> list[tuple[str, str]]:
    """Return what the policies evict, one after the other, as pairs of index and policy name. O(entries · policies).

    Pinned entries stay.
    """
    gone: list[tuple[str, str]] = []
    left = list(entries)
    for policy in policies:
        out = _evicted(policy, left, turn)
        gone += [(index, type(policy).__name__) for index in out]
        left = [entry for entry in left if entry.index not in out]
    return gone


def _evicted(policy: Policy, entries: Sequence[ContentsEntry | Directory], turn: int) -> list[str]:
    loose = [entry for entry in entries if not entry.pinned]
    match policy:
        case ZeroRecall(turns=turns):
            return [entry.index for entry in loose if not entry.recall_count and turn - entry.archived_turn >= turns]
        case Stale(turns=turns):
            return [entry.index for entry in loose if turn - entry.last_use_turn >= turns]
        case LeastRecentlyRecalled(max_tokens=max_tokens, low_share=low_share):
            total = sum(entry.contents_tokens for entry in entries)
            if total <= max_tokens:
                return []
            out = []
            for entry in sorted(loose, key=lambda entry: (entry.last_use_turn, page_number(entry.index))):
                if total <= low_share * max_tokens:
                    break
                out.append(entry.index)
                total -= entry.contents_tokens
            return out
        case _:
            assert_never(policy)
