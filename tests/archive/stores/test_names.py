"""Ids as file names, and which snapshots stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.stores.names import MAX_NAME_BYTES, check_identifier, check_page_name, file_name, find_identifier, is_hashed
from memci.archive.stores.record_codec import superfluous
from memci.errors import InvalidIdError


@pytest.mark.parametrize(
    ("identifier", "name"),
    [
        ("support-42_b", "support-42_b"),
        ("Support", "%53upport"),
        ("..", "%2E%2E"),
        ("a/b", "a%2Fb"),
        ("a%2Fb", "a%252%46b"),
        ("~x", "%7Ex"),
        ("ä", "%C3%A4"),
        ("\0\n", "%00%0A"),
        ("x" * 180, "x" * 180),
    ],
)
def test_a_name_spells_its_id(identifier: str, name: str) -> None:
    """Letters, digits, ``_`` and ``-`` stand for themselves; every other byte is two hex digits; the name gives the id back."""
    assert name == file_name(identifier)
    assert identifier == find_identifier(name)


@given(st.text(min_size=1, max_size=300), st.text(min_size=1, max_size=300))
def test_names_are_one_to_one(first: str, second: str) -> None:
    """Two ids have one name only if they are one id, names are short plain ASCII, and short ones give the id back."""
    assert (first == second) == (file_name(first) == file_name(second))
    # Two names that differ in case only are one file on some systems: the hex digits A to F stand behind a % alone.
    assert (first == second) == (file_name(first).lower() == file_name(second).lower())
    assert len(file_name(first)) <= MAX_NAME_BYTES
    assert set(file_name(first)) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-%ABCDEF~")
    assert (None if is_hashed(file_name(first)) else first) == find_identifier(file_name(first))


@pytest.mark.parametrize(
    "name", ["", "Foreign", ".DS_Store", "a.tmp", "%2e", "%61", "%C3", "%", "~" + "0" * 64, "a b", "\udcff", "ä"]
)
def test_foreign_names_spell_no_id(name: str) -> None:
    """A name that memci would not have made stands for no session."""
    assert find_identifier(name) is None


def test_long_ids_are_hashed() -> None:
    """An id whose name would be too long gets one of the same length, told from all that are spelled."""
    names = {file_name("x" * 181), file_name("é" * 31), file_name("x" * 10_000)}
    assert {65} == {len(name) for name in names}
    assert 3 == len(names)
    assert all(is_hashed(name) for name in names)
    assert not is_hashed(file_name("~" + "0" * 64))


@pytest.mark.parametrize("name", ["usr-1", "sys-0", "usr-12.r3", "own_2-100"])
def test_page_names_are_taken(name: str) -> None:
    """A segment, a number and perhaps a revision name a page file."""
    assert name == check_page_name(name)


def test_an_id_that_utf8_cannot_encode_is_shown() -> None:
    """The error quotes the id, cut where it is long, and says at which character it cannot be encoded."""
    with pytest.raises(InvalidIdError, match=r"the session id 'a\\+ud800x{10,80}.* has a lone surrogate at character 1"):
        check_identifier("a\ud800" + "x" * 500, "session id")


def test_a_refused_page_name_is_given_back() -> None:
    """The error holds the name, and its text says what a name is."""
    with pytest.raises(InvalidIdError, match="segment") as caught:
        check_page_name("../usr-1")
    assert "../usr-1" == caught.value.value


@given(st.integers(1, 400), st.integers(1, 1_000))
def test_thinned_snapshots_cover_every_age(count: int, step: int) -> None:
    """Taken every *step* records and thinned each time, the newest three stay and one near each power of two of age."""
    kept: set[int] = set()
    for seq in range(step, count * step + 1, step):
        kept.add(seq)
        kept -= set(superfluous(kept))
    newest = count * step
    assert {newest - back * step for back in range(min(3, count))} <= kept
    assert len(kept) <= 3 + newest.bit_length()
    assert step in kept
    age = 4 * step
    while age < newest:
        assert any(age / 4 <= newest - seq <= 4 * age for seq in kept)
        age *= 2


def test_few_snapshots_all_stay() -> None:
    """Nothing is removed of three or fewer."""
    assert [] == superfluous([])
    assert [] == superfluous([5, 1, 9])
