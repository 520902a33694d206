"""Which entries leave the contents page."""

from collections.abc import Sequence
from typing import TypeAlias, assert_never

import attrs

from memci.archive.contents.contents_page import Item
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
    """Evicts the least recently recalled entries of a contents page of over *max_tokens*, down to the *low_share* of them."""

    max_tokens: int
    low_share: float


Policy: TypeAlias = ZeroRecall | Stale | LeastRecentlyRecalled


def evictions(policies: Sequence[Policy], entries: Sequence[Item], turn: int) -> list[tuple[str, str]]:
    """Return what the policies evict, but for pinned entries, as pairs of index and policy name. O(entries · policies)."""
    gone: dict[str, str] = {}
    for policy in policies:
        left = [entry for entry in entries if entry.index not in gone]
        gone |= dict.fromkeys(_evicted(policy, left, turn), type(policy).__name__)
    return list(gone.items())


def _evicted(policy: Policy, entries: Sequence[Item], turn: int) -> list[str]:
    loose = [entry for entry in entries if not entry.pinned]
    match policy:
        case ZeroRecall(turns=turns):
            return [entry.index for entry in loose if entry.last_recall_turn is None and turn - entry.archived_turn >= turns]
        case Stale(turns=turns):
            return [entry.index for entry in loose if turn - _last_use(entry) >= turns]
        case LeastRecentlyRecalled(max_tokens=max_tokens, low_share=low_share):
            total = sum(entry.contents_tokens for entry in entries)
            out: list[str] = []
            for entry in sorted(loose, key=lambda entry: (_last_use(entry), page_number(entry.index))):
                if total <= (low_share * max_tokens if out else max_tokens):
                    break
                out.append(entry.index)
                total -= entry.contents_tokens
            return out
        case _:
            assert_never(policy)


def _last_use(entry: Item) -> int:
    return entry.archived_turn if entry.last_recall_turn is None else entry.last_recall_turn
