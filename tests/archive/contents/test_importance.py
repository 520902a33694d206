"""Importance: what it is made of, which entries lose detail and leave first by it, and that nothing changes without it."""

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory, Item
from memci.archive.contents.importance import HALF_LIFE, Weights, importance
from memci.archive.contents.shrink import LeastImportant, Shrinkage, evictions, shrink
from memci.archive.summarizers.summary import plain_words
from tests.engine.sessions import open_session, talk
from tests.engine.wire import assistant, calling, result, user

NONE = Weights(recency=0.0, recalls=0.0, values=0.0, errors=0.0, changes=0.0, questions=0.0)
ALL = Weights(recency=0.3, recalls=0.3, values=0.15, errors=0.1, changes=0.1, questions=0.05)


def entry(number: int, **kept: Any) -> ContentsEntry:  # noqa: ANN401 (any field)
    words = plain_words(f"{word}{number}" for word in ("harbour", "lantern", "orchard"))
    shown = {Detail.FULL: 30, Detail.BRIEF: 20, Detail.BARE: 10}
    return ContentsEntry(index=f"usr-{number}", title="harbour", words=words, tokens=200, shown_tokens=shown, **kept)


def shrunk(entries: list[Item], limit: int, weights: Weights | None = ALL, *, directories: bool = False) -> Shrinkage:
    return shrink(
        entries,
        limit=limit,
        low_share=0.9,
        directories=directories,
        turn=40,
        count=len,
        has_pages=lambda _first, _last: False,
        weights=weights,
    )


@pytest.mark.parametrize(
    ("mark", "plain", "better"),
    [
        ("recency", {"archived_turn": 40 - HALF_LIFE}, {"archived_turn": 40}),
        ("recalls", {}, {"recall_count": 1, "last_recall_turn": 2}),
        ("values", {"importance": 0.2}, {"importance": 0.9}),
        ("errors", {"lines": ("tool look: found",)}, {"lines": ("tool look: ValueError: no such row",)}),
        ("changes", {}, {"state_changes": ("write_file(path=a)",)}),
        ("questions", {"lines": ("assistant: shall I?",)}, {"lines": ("user: 发票在哪里？",)}),
    ],
)
def test_each_mark_has_its_weight(mark: str, plain: dict[str, Any], better: dict[str, Any]) -> None:
    """What has a mark is more important by its weight, and by no other one."""
    only = attrs.evolve(NONE, **{mark: 1.0})
    others = attrs.evolve(ALL, recency=0.0, recalls=0.0, values=0.0, errors=0.0, changes=0.0, questions=0.0)
    assert importance(entry(1, **plain), 40, only) < importance(entry(1, **better), 40, only) <= 1.0
    assert 0.0 == importance(entry(1, **better), 40, others)


def test_recency_halves() -> None:
    """A recall counts as lately as its turn was."""
    only = attrs.evolve(NONE, recency=0.8)
    assert 0.4 == importance(entry(1, archived_turn=3, recall_count=1, last_recall_turn=40 - HALF_LIFE), 40, only)


def test_the_least_important_entries_lose_detail_first() -> None:
    """Not the oldest ones, as without weights."""
    entries: list[Item] = [entry(1, recall_count=2, last_recall_turn=39), entry(2), entry(3, importance=0.5), entry(4)]
    assert {"usr-2": Detail.BRIEF, "usr-4": Detail.BRIEF} == shrunk(entries, 100).details
    assert {"usr-1": Detail.BRIEF, "usr-2": Detail.BRIEF} == shrunk(entries, 100, None).details


def test_the_least_important_entries_leave_first() -> None:
    """Pinned ones never do; of equals, the lower index goes first; the policy is named."""
    entries: list[Item] = [entry(1, importance=0.9), entry(2), entry(3), entry(4, pinned=True), entry(5, recall_count=1)]
    gone = shrunk(entries, 33).evicted
    assert [("usr-2", "LeastImportant"), ("usr-3", "LeastImportant")] == gone[:2]
    assert "usr-4" not in dict(gone)


def test_important_entries_stay_beside_directories() -> None:
    """They have a quarter of the room; the others share directories."""
    entries: list[Item] = [entry(number, importance=0.9 * (number == 7)) for number in range(1, 40)]
    left = shrunk(entries, 400, directories=True).entries
    own = [each.index for each in left if isinstance(each, ContentsEntry)]
    assert "usr-7" in own
    assert any(isinstance(each, Directory) for each in left)
    assert sum(each.contents_tokens for each in left if isinstance(each, ContentsEntry)) <= 100


@given(
    worths=st.lists(st.floats(0, 1), min_size=1, max_size=12),
    limit=st.integers(1, 200),
    low_share=st.sampled_from([0.3, 0.8, 1.0]),
)
def test_eviction_takes_no_entry_that_is_more_important_than_one_that_stays(
    worths: list[float], limit: int, low_share: float
) -> None:
    """It takes as few as bring the page down to the low share."""
    entries: list[Item] = [entry(number, importance=worth) for number, worth in enumerate(worths, start=1)]
    policy = LeastImportant(max_tokens=limit, low_share=low_share, weights=ALL)
    gone = dict(evictions([policy], entries, 40))
    stays = [importance(each, 40, ALL) for each in entries if each.index not in gone]
    left = [importance(each, 40, ALL) for each in entries if each.index in gone]
    assert max(left, default=0.0) <= min(stays, default=2.0)
    if gone:
        assert 30 * len(entries) > limit
        assert 30 * (len(stays) + 1) > low_share * limit or len(gone) == 1
    else:
        assert 30 * len(entries) <= limit


def test_a_session_orders_by_importance() -> None:
    """With ``eviction.order: importance`` a page with an error and a change keeps its entry while talk without any goes."""
    sections: Any = {"active": {"min_pages": 1, "max_pages": 2}, "contents": {"max_tokens": 300, "directories": False}}
    kept = []
    for order in ("age", "importance"):
        session = open_session(**sections, eviction={"order": order, "recency_weight": 0.0})
        failed = result("a", "ValueError: row 412 of 93 is empty")
        session.extend([user("why?"), calling("a"), failed, assistant("fixed /srv/a.csv")])
        talk(session, 25, first=2)
        kept.append("usr-1" in {item.index for item in session.contents.entries})
        assert () == session.verify().problems
    assert [False, True] == kept
