"""Which entries leave the contents page, exactly as the policies say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory
from memci.archive.contents.shrink import LeastRecentlyRecalled, Policy, Stale, ZeroRecall, evictions
from memci.chapters.address import page_number


def entry(  # noqa: PLR0913 (the facts that policies read)
    number: int, *, archived: int = 10, recalled: int | None = None, count: int = 1, pinned: bool = False, tokens: int = 10
) -> ContentsEntry:
    return ContentsEntry(
        index=f"usr-{number}",
        title="",
        archived_turn=archived,
        recall_count=0 if recalled is None else count,
        last_recall_turn=recalled,
        pinned=pinned,
        shown_tokens={Detail.FULL: tokens},
    )


def gone(policy: Policy, *entries: ContentsEntry | Directory, turn: int = 20) -> list[int]:
    """Return the numbers of the evicted pages, in the order in which they go."""
    return [page_number(index) for index, _ in evictions([policy], entries, turn)]


@pytest.mark.parametrize(("turn", "expected"), [(14, []), (15, [1]), (16, [1])])
def test_zero_recall_waits_its_turns(turn: int, expected: list[int]) -> None:
    """A page that was never recalled goes once as many turns passed since it was archived, and not a turn before."""
    assert expected == gone(ZeroRecall(turns=5), entry(1, archived=10), turn=turn)


def test_zero_recall_spares_what_was_recalled() -> None:
    """One recall, however long ago, keeps a page from ``ZeroRecall``."""
    assert [2] == gone(ZeroRecall(turns=1), entry(1, recalled=10), entry(2), turn=1_000)


@pytest.mark.parametrize(("turn", "expected"), [(16, []), (17, [1]), (22, [1, 2])])
def test_stale_counts_from_the_last_recall(turn: int, expected: list[int]) -> None:
    """``Stale`` counts from the last recall, and from archiving where there was none."""
    assert expected == gone(Stale(turns=7), entry(1, archived=10), entry(2, archived=3, recalled=15), turn=turn)


def least(max_tokens: int, low_share: float = 0.5) -> LeastRecentlyRecalled:
    return LeastRecentlyRecalled(max_tokens=max_tokens, low_share=low_share)


def test_a_contents_page_at_its_limit_keeps_everything() -> None:
    """Only above its tokens does the contents page lose entries."""
    entries = [entry(number) for number in range(1, 5)]
    assert [] == gone(least(40), *entries)
    assert [1, 2, 3] == gone(least(39), *entries)


def test_the_least_recently_recalled_go_first() -> None:
    """Entries go by their last recall, those never recalled by the turn they were archived in, and no more than needed."""
    entries = [entry(1, recalled=30), entry(2, archived=12), entry(3, archived=5, recalled=11), entry(4, archived=40)]
    assert [3, 2] == gone(least(39, 0.6), *entries, entry(5, recalled=50, tokens=0))


def test_ties_go_by_the_lower_index() -> None:
    """Of entries of one age the lower index goes first, by number and not by spelling."""
    entries = [entry(number) for number in (10, 9, 2, 1)]
    assert [1, 2] == gone(least(39, 0.6), *entries)


def test_the_low_share_bounds_what_goes() -> None:
    """Once over its tokens, the contents page is brought to the low share of them, or just below."""
    entries = [entry(number, tokens=7) for number in range(1, 11)]
    evicted = gone(least(60, 0.8), *entries)
    assert 7 * (10 - len(evicted)) <= 48 < 7 * (11 - len(evicted))


def test_pinned_entries_stay() -> None:
    """No policy evicts a pinned entry, whatever its age and however full the contents page."""
    entries = [entry(1, pinned=True), entry(2, pinned=True, tokens=500)]
    for policy in (ZeroRecall(turns=1), Stale(turns=1), least(10)):
        assert [] == gone(policy, *entries, turn=1_000)


def test_pinned_entries_take_room() -> None:
    """The tokens of pinned entries count, so that others go for them."""
    assert [2] == gone(least(100), entry(1, pinned=True, tokens=95), entry(2))


def test_policies_work_in_their_order() -> None:
    """Each policy sees what those before it left, and each eviction names the policy that did it."""
    policies: list[Policy] = [ZeroRecall(turns=5), Stale(turns=5), least(25, 0.5)]
    entries = [entry(1), entry(2, recalled=11), entry(3, recalled=17), entry(4, recalled=18), entry(5, recalled=19)]
    assert [
        ("usr-1", "ZeroRecall"),
        ("usr-2", "Stale"),
        ("usr-3", "LeastRecentlyRecalled"),
        ("usr-4", "LeastRecentlyRecalled"),
    ] == evictions(policies, entries, 20)
    assert [] == evictions([], entries, 20)


def test_directories_age_like_entries() -> None:
    """A directory goes as a whole, by the last use of any page in it."""
    old = Directory(
        index="usr-1..4",
        spans=(),
        covers=((1, 4),),
        pages=4,
        archived_turn=8,
        shown_tokens=9,
    )
    assert [1] == gone(ZeroRecall(turns=12), old)
    assert [] == gone(ZeroRecall(turns=13), old)


_entries = st.builds(
    entry,
    st.integers(1, 99),
    archived=st.integers(0, 20),
    recalled=st.none() | st.integers(0, 20),
    pinned=st.booleans(),
    tokens=st.integers(1, 30),
)
_policies = st.one_of(
    st.builds(ZeroRecall, turns=st.integers(1, 20)),
    st.builds(Stale, turns=st.integers(1, 20)),
    st.builds(LeastRecentlyRecalled, max_tokens=st.integers(1, 200), low_share=st.sampled_from([0.3, 0.8, 1.0])),
)


@given(st.lists(_policies, max_size=4), st.lists(_entries, unique_by=lambda each: each.index, max_size=12))
def test_evictions_are_of_unpinned_entries_once(policies: list[Policy], entries: list[ContentsEntry]) -> None:
    """Whatever the policies, an entry goes once, and none that is pinned; what is left fits where anything could go."""
    out = [index for index, _ in evictions(policies, entries, 20)]
    assert len(out) == len(set(out))
    assert set(out) <= {each.index for each in entries if not each.pinned}
    left = [each for each in entries if each.index not in out]
    for policy in policies:
        if isinstance(policy, LeastRecentlyRecalled) and not all(each.pinned for each in left):
            assert sum(each.contents_tokens for each in left) <= policy.max_tokens
    assert [] == evictions(policies, left, 20)
