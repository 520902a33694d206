"""Search by meaning in a page index: vectors are made when a search needs them, and go with the text they are of."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memci.archive.catalogue.embedding import MOST_CHARS, MOST_PAGES, PASSAGE_CHARS, Embedder, encoded, passage, shared_embedder
from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.catalogue.page_index import PageIndex
from memci.archive.catalogue.search import Entry, ExtraPage, Filter
from memci.errors import CorruptError

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

VET = "My dog needs to see the vet tomorrow"
SERVER = "Please restart the database server"
BREAD = "I love baking bread on Sundays"

LIKE_VET = "veterinarian appointment for a puppy"
"""No word of it stands in any page."""

LIKE_SERVER = "reboot an SQL machine"


class Interrupting(Embedder):
    """Lets somebody else do something while it works.

    Args:
        index: What the other process has open.
    """

    def __init__(self, index: PageIndex) -> None:
        super().__init__()
        self._index = index

    def embed(self, texts: Sequence[str]) -> "NDArray[float32]":
        """Embed texts, and change the index meanwhile."""
        add(self._index, BREAD)
        return shared_embedder().embed(texts)


class Renamed(Embedder):
    """Another model, as its name tells: to it, what is alike is opposite."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "another model"

    def embed(self, texts: Sequence[str]) -> "NDArray[float32]":
        """Embed texts."""
        return -shared_embedder().embed(texts)


def add(index: PageIndex, *texts: str, role: str = "user") -> None:
    """Add pages of one entry each, numbered on from those that are there."""
    first = index.count_pages() + 1
    with index.write() as writer:
        seq = writer.seq
        for number, text in enumerate(texts, start=first):
            seq += 1
            name = f"usr-{number}"
            writer.put_page(
                PageFacts(index=name, state=PageState.ARCHIVED, turn=number, entries=1, tokens=1, first_seq=seq, last_seq=seq)
            )
            writer.add_entry(seq=seq, page=name, position=1, role=role, text=text, at="")
            writer.index_page(name)
        writer.set_seq(seq, "m")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


@pytest.fixture
def index(path: Path) -> Iterator[PageIndex]:
    """Three pages about different things."""
    index = PageIndex(str(path))
    add(index, VET, SERVER, BREAD)
    yield index
    index.close()


def found(index: PageIndex, query: str, **options: object) -> list[str]:
    chosen = {"limit": 10, "embedder": shared_embedder(), **options}
    return [hit.index for hit in index.search(query, **chosen)]  # type: ignore[arg-type]


def counted(path: Path) -> int:
    """Return how many pages have vectors."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM vector").fetchone()[0])


@pytest.mark.slow
@pytest.mark.parametrize(("query", "page"), [(LIKE_VET, "usr-1"), (LIKE_SERVER, "usr-2"), ("我的狗要看兽医", "usr-1")])
def test_what_means_the_like_is_found(index: PageIndex, query: str, page: str) -> None:
    """A page is found that shares no word with the query, in another language too; without an embedder it is not."""
    assert [page] == found(index, query)
    assert [] == found(index, query, embedder=None)


def test_what_means_something_else_is_not_found(index: PageIndex) -> None:
    """A query about none of the pages finds none of them."""
    assert [] == found(index, "a treaty between kingdoms")


def test_a_hit_by_meaning_says_where_it_is(index: PageIndex) -> None:
    """It has a score above 0, and its snippet begins with the first entry."""
    (hit,) = index.search(LIKE_VET, limit=10, embedder=shared_embedder())
    assert ("usr-1", 1, VET) == (hit.index, hit.entry.position, hit.snippet)
    assert 0 < hit.score < 0.35


def test_meaning_ranks_what_the_words_leave_even(index: PageIndex) -> None:
    """Of two pages that hold the same words of the query, the one that means the like comes first."""
    add(index, "the bank of the river was muddy", "the bank of our town lends money")
    assert ["usr-5", "usr-4"] == found(index, "which bank gives credit to companies?")[:2]


@pytest.mark.parametrize("query", ["", "?!", "\x00", "\ud800"])
def test_a_query_without_words_finds_nothing(index: PageIndex, query: str) -> None:
    """Signs alone mean nothing."""
    assert [] == found(index, query)


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_has_a_meaning(text: str, query: str) -> None:
    """No text of a page is refused, stored or open, and no query."""
    with closing(PageIndex(None)) as index:
        add(index, text)
        extra = [ExtraPage(index="usr-9", turn=9, entries=[Entry(1, "user", text, "")])]
        assert {"usr-1", "usr-9"} >= set(found(index, query, extra=extra))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=5, unique=True))
def test_vectors_are_kept_closely(texts: list[str]) -> None:
    """What is kept of a vector, a byte for each dimension, has the same direction."""
    import numpy as np  # noqa: PLC0415 (no test that collects this module needs it)

    passages = {text: passage([text]) for text in texts}
    exact = shared_embedder().embed(list(passages.values()))
    for vector, (_, scale, codes) in zip(exact, encoded(passages, shared_embedder()), strict=True):
        assert 512 == len(codes)
        assert abs(float(np.frombuffer(codes, np.int8) @ vector) * scale - 1) < 0.01


def test_the_words_alone_find_what_they_found(index: PageIndex) -> None:
    """Vectors that are there change nothing for a search without an embedder."""
    query = "dog bread server"
    before = index.search(query, limit=10)
    found(index, query)
    assert before == index.search(query, limit=10)


def test_a_page_that_changes_gets_another_vector(index: PageIndex, path: Path) -> None:
    """A vector goes when the text of its page changes, and the next search makes the new one."""
    found(index, LIKE_VET)
    assert 3 == counted(path)
    with index.write() as writer:
        writer.add_entry(seq=9, page="usr-3", position=2, role="assistant", text=f"{SERVER}. {SERVER}.", at="")
        writer.index_page("usr-3")
    assert 2 == counted(path)
    assert ["usr-2", "usr-3"] == found(index, LIKE_SERVER)
    assert 3 == counted(path)


def test_a_page_that_goes_takes_its_vector_along(index: PageIndex, path: Path) -> None:
    """Pages that are dropped, and an index that is emptied, leave no vector."""
    found(index, LIKE_VET)
    with index.write() as writer:
        writer.drop_page("usr-1")
    assert 2 == counted(path)
    assert [] == found(index, LIKE_VET)
    with index.write() as writer:
        writer.drop_from("usr-3", 1)
    assert 1 == counted(path)
    index.reset()
    assert 0 == counted(path)


def test_an_index_with_vectors_is_no_other(index: PageIndex) -> None:
    """What two indexes of one journal have to hold alike is the same with vectors and without."""
    before = list(index.rows())
    found(index, LIKE_VET)
    assert before == list(index.rows())


def test_a_search_makes_a_bounded_number(path: Path) -> None:
    """One search makes 256 vectors, of the youngest pages that have none; the next ones make the rest."""
    with closing(PageIndex(str(path))) as index:
        add(index, VET, *["it rains"] * MOST_PAGES)
        assert [] == found(index, LIKE_VET)
        assert MOST_PAGES == counted(path)
        assert ["usr-1"] == found(index, LIKE_VET)
        assert MOST_PAGES + 1 == counted(path)


@pytest.mark.slow
def test_a_search_reads_a_bounded_text(path: Path) -> None:
    """Of a long page the beginning is embedded, and long pages are fewer in one search."""
    with closing(PageIndex(str(path))) as index:
        add(index, *["it rains " * 1_000] * 210)
        found(index, LIKE_VET)
        assert MOST_CHARS // PASSAGE_CHARS == counted(path)


@pytest.mark.slow
def test_another_model_makes_all_anew(index: PageIndex, path: Path) -> None:
    """Vectors of another model, or of another version of its package, are not compared with: they are replaced."""
    found(index, LIKE_VET, embedder=Renamed())
    assert ["usr-1"] == found(index, LIKE_VET)
    assert 3 == counted(path)


def test_what_changed_meanwhile_is_not_kept(index: PageIndex, path: Path) -> None:
    """Vectors that were made while another process changed the index are dropped; the next search makes them."""
    with closing(PageIndex(str(path))) as other:
        found(index, LIKE_VET, embedder=Interrupting(other))
    assert 0 == counted(path)
    assert ["usr-1"] == found(index, LIKE_VET)
    assert index.count_pages() == counted(path)


@pytest.mark.parametrize(
    "only",
    [
        Filter(exclude=frozenset({"usr-1"})),
        Filter(turns=(2, 9)),
        Filter(where=lambda index: index != "usr-1"),
        Filter(roles=frozenset({"user"})),
    ],
)
def test_filters_hold(index: PageIndex, only: Filter) -> None:
    """A page that a filter leaves out is not found by its meaning; limited to roles, a search goes by words alone."""
    assert [] == found(index, LIKE_VET, only=only)


def test_a_filter_looks_behind_what_it_leaves_out(path: Path) -> None:
    """The one page that is admitted is found behind many that are more like the query."""
    with closing(PageIndex(str(path))) as index:
        add(index, "An animal doctor treats pets and cattle", *[VET] * 200)
        assert ["usr-1"] == found(index, LIKE_VET, only=Filter(where=lambda name: name == "usr-1"))
        assert ["usr-1"] == found(index, LIKE_VET, only=Filter(turns=(1, 1)))
        others = frozenset(f"usr-{number}" for number in range(2, 202))
        assert ["usr-1"] == found(index, LIKE_VET, only=Filter(exclude=others))


def test_the_open_page_is_compared_too(index: PageIndex) -> None:
    """A page that is not in the index is found by its meaning, and what the index holds of one that changed is not."""
    new = ExtraPage(index="usr-4", turn=4, entries=[Entry(1, "user", "Our cat is ill, we go to the vet", "")])
    changed = ExtraPage(index="usr-1", turn=1, entries=[Entry(1, "user", BREAD, "")])
    assert ["usr-1", "usr-4"] == sorted(found(index, LIKE_VET, extra=[new]))
    assert [] == found(index, LIKE_VET, extra=[changed])


def test_a_damaged_vector_is_told(index: PageIndex, path: Path) -> None:
    """A vector of another length is damage, after which the index is made again."""
    found(index, LIKE_VET)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE vector SET codes = x'00' WHERE id = 2")
    with pytest.raises(CorruptError):
        found(index, LIKE_VET)
