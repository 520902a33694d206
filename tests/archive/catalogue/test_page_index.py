"""The index of one session: facts, entries, keys, calls, and going back."""

from collections.abc import Iterator

import pytest

from memci.archive.catalogue.index_writer import IndexWriter
from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.catalogue.page_index import PageIndex
from memci.errors import PageNotFoundError


@pytest.fixture
def index() -> Iterator[PageIndex]:
    """An empty index in memory."""
    index = PageIndex(None)
    yield index
    index.close()


def facts(index: str, state: PageState = PageState.ACTIVE, first: int = 1, last: int = 1) -> PageFacts:
    return PageFacts(index=index, state=state, turn=1, entries=1, tokens=10, first_seq=first, last_seq=last)


def add(writer: IndexWriter, page: str, texts: dict[int, str], *, key: str | None = None) -> None:
    """Add a page with a user's entry at each sequence number, which is its hour too, and make it searchable."""
    writer.put_page(facts(page, first=min(texts), last=max(texts)))
    for position, (seq, text) in enumerate(texts.items(), start=1):
        at = f"2026-03-01T{seq:02}:00:00Z"
        writer.add_entry(seq=seq, page=page, position=position, role="user", text=text, at=at, key=key)
    writer.index_page(page)


def found(index: PageIndex, query: str) -> list[str]:
    return [hit.index for hit in index.search(query, limit=10)]


def test_a_new_index_is_empty(index: PageIndex) -> None:
    """A new index holds no record, no mark and no page."""
    assert (0, "", 0, []) == (index.seq, index.mark, index.count_pages(), list(index.pages()))


def test_seq_and_mark_are_kept(index: PageIndex) -> None:
    """The last record and its mark are read back as they were set, and the next writer knows the record."""
    with index.write() as writer:
        writer.set_seq(7, "abc")
    assert (7, "abc") == (index.seq, index.mark)
    with index.write() as writer:
        assert 7 == writer.seq


def test_facts_come_back_equal(index: PageIndex) -> None:
    """Every fact of a page is read back as it was put."""
    page = PageFacts(
        index="usr-12",
        state=PageState.ARCHIVED,
        turn=3,
        entries=4,
        tokens=500,
        title="Ein Titel",
        recall_count=2,
        last_recall_turn=9,
        archived_turn=5,
        pinned=True,
        revision=1,
        sha256="ab" * 32,
        parent="usr-0",
        first_seq=20,
        last_seq=30,
        first_at="2026-03-01T10:00:00+00:00",
        last_at="2026-03-02T10:00:00+00:00",
    )
    with index.write() as writer:
        writer.put_page(page)
    assert page == index.find_page("usr-12")
    assert index.find_page("usr-13") is None


def test_put_page_replaces(index: PageIndex) -> None:
    """A page that is put again has the new facts, and is there once."""
    with index.write() as writer:
        writer.put_page(facts("usr-1"))
        writer.put_page(facts("usr-1", PageState.ARCHIVED))
    assert [facts("usr-1", PageState.ARCHIVED)] == list(index.pages())


def test_change_page(index: PageIndex) -> None:
    """Named facts of a page change, the others stay."""
    with index.write() as writer:
        writer.put_page(facts("usr-1"))
        writer.change_page("usr-1", state=PageState.EVICTED, pinned=True, last_recall_turn=4)
    page = index.find_page("usr-1")
    assert page is not None
    assert (PageState.EVICTED, True, 4, 10) == (page.state, page.pinned, page.last_recall_turn, page.tokens)


def test_change_page_refuses_what_is_not_there(index: PageIndex) -> None:
    """A page that is unknown is an error that names it."""
    with index.write() as writer:
        writer.put_page(facts("usr-1"))
        with pytest.raises(PageNotFoundError, match="usr-2"):
            writer.change_page("usr-2", tokens=1)
        with pytest.raises(PageNotFoundError, match="usr-2"):
            writer.index_page("usr-2")


def test_pages_come_oldest_first(index: PageIndex) -> None:
    """Pages are listed by first entry and then by number, whatever the order in which they were put."""
    with index.write() as writer:
        for number, first in ((10, 5), (9, 5), (1, 8), (300, 1)):
            writer.put_page(facts(f"usr-{number}", PageState.ARCHIVED if number > 9 else PageState.OPEN, first))
    assert ["usr-300", "usr-9", "usr-10", "usr-1"] == [page.index for page in index.pages()]
    assert 4 == index.count_pages()


def test_many_pages_are_all_listed(index: PageIndex) -> None:
    """More pages than are read at a time are listed completely, also while they change."""
    with index.write() as writer:
        for number in range(600):
            writer.put_page(facts(f"usr-{number}", first=number // 3))
    seen = []
    for page in index.pages():
        seen.append(page.index)
        with index.write() as writer:
            writer.change_page(page.index, tokens=1)
    assert [f"usr-{number}" for number in range(600)] == seen


def test_entries_in_order_of_position(index: PageIndex) -> None:
    """An entry that comes late takes its position, and those after it move on."""
    with index.write() as writer:
        add(writer, "usr-1", {1: "a", 2: "b", 3: "c"})
        writer.add_entry(seq=9, page="usr-1", position=2, role="tool", text="late", at="")
    assert ([1, 9, 2, 3], []) == (index.entry_seqs("usr-1"), index.entry_seqs("usr-2"))


def test_keys_are_found(index: PageIndex) -> None:
    """All entries that were appended under a key are found, in order; another key finds none."""
    with index.write() as writer:
        add(writer, "usr-1", {2: "a", 3: "b"}, key="k\ud800")
        add(writer, "usr-2", {4: "c"})
    assert ([2, 3], []) == (index.find_key("k\ud800"), index.find_key("other"))


def test_the_latest_unanswered_call_is_found(index: PageIndex) -> None:
    """Ids of calls repeat: a result belongs to the latest call with its id that has no answer."""
    with index.write() as writer:
        writer.add_call("c1", seq=1, page="usr-1")
        writer.add_call("c1", seq=5, page="usr-2")
    assert ("usr-2", 5) == index.find_call("c1")
    with index.write() as writer:
        writer.answer_call("c1", seq=6, call_seq=5)
    assert ("usr-1", 1) == index.find_call("c1")
    with index.write() as writer:
        writer.answer_call("c1", seq=7, call_seq=1)
    assert index.find_call("c1") is None


def test_equal_ids_in_one_message_are_two_calls(index: PageIndex) -> None:
    """One answer closes one of two calls that one message makes under the same id."""
    with index.write() as writer:
        writer.add_call("c1", seq=1, page="usr-1")
        writer.add_call("c1", seq=1, page="usr-1")
        writer.answer_call("c1", seq=2, call_seq=1)
    assert ("usr-1", 1) == index.find_call("c1")


def test_a_failed_transaction_leaves_nothing(index: PageIndex) -> None:
    """What was written in a block that raises is not there."""

    class StopError(Exception):
        pass

    def fail() -> None:
        with index.write() as writer:
            add(writer, "usr-1", {1: "zebra"})
            writer.set_seq(1, "x")
            raise StopError

    with pytest.raises(StopError):
        fail()
    assert (0, 0, []) == (index.seq, index.count_pages(), found(index, "zebra"))


def test_drop_from_goes_back(index: PageIndex) -> None:
    """An entry, those behind it and all later pages go with their keys and calls; what they answered is open again."""
    with index.write() as writer:
        add(writer, "usr-1", {1: "apple", 2: "zebra", 3: "cherry"}, key="k")
        add(writer, "usr-2", {4: "zebra"}, key="k")
        writer.add_call("c1", seq=1, page="usr-1")
        writer.answer_call("c1", seq=3, call_seq=1)
        writer.add_call("c2", seq=4, page="usr-2")
        writer.drop_from("usr-1", 3)
    page = index.find_page("usr-1")
    assert page is not None
    assert (2, 1, 2) == (page.entries, page.first_seq, page.last_seq)
    assert [1, 2] == index.entry_seqs("usr-1")
    assert [1, 2] == index.find_key("k")
    assert (("usr-1", 1), None) == (index.find_call("c1"), index.find_call("c2"))
    assert index.find_page("usr-2") is None
    assert (["usr-1"], []) == (found(index, "zebra"), found(index, "cherry"))


@pytest.mark.parametrize("transactions", [1, 2])
def test_drop_from_mends_when_a_page_was_said(index: PageIndex, transactions: int) -> None:
    """The times of a page that is cut are those of the entries left, whether or not it became searchable just before."""
    with index.write() as writer:
        add(writer, "usr-1", {1: "apple", 2: "zebra", 3: "cherry"})
        if transactions == 1:
            writer.drop_from("usr-1", 3)
    if transactions == 2:
        with index.write() as writer:
            writer.drop_from("usr-1", 3)
    page = index.find_page("usr-1")
    assert page is not None
    assert ("2026-03-01T01:00:00Z", "2026-03-01T02:00:00Z") == (page.first_at, page.last_at)


def test_drop_from_the_first_entry_drops_the_page(index: PageIndex) -> None:
    """A page that loses all its entries goes, and what was answered in it is open again."""
    with index.write() as writer:
        add(writer, "usr-1", {1: "apple"})
        add(writer, "usr-2", {2: "zebra", 3: "cherry"})
        writer.add_call("c1", seq=1, page="usr-1")
        writer.answer_call("c1", seq=3, call_seq=1)
        writer.drop_from("usr-2", 1)
    assert ["usr-1"] == [page.index for page in index.pages()]
    assert (("usr-1", 1), []) == (index.find_call("c1"), found(index, "zebra"))


def test_the_newest_page(index: PageIndex) -> None:
    """The newest page is the one with the highest number, whatever was put last."""
    with index.write() as writer:
        assert writer.newest_page() is None
        writer.put_page(facts("usr-10"))
        writer.put_page(facts("usr-9"))
        assert "usr-10" == writer.newest_page()


def test_drop_page_removes_all_of_it(index: PageIndex) -> None:
    """A page that is dropped leaves no facts, entries, keys, calls or words; dropping it again does nothing."""
    with index.write() as writer:
        add(writer, "usr-1", {1: "zebra"}, key="k")
        writer.add_call("c1", seq=1, page="usr-1")
        writer.drop_page("usr-1")
        writer.drop_page("usr-1")
    left = (
        index.find_page("usr-1"),
        index.entry_seqs("usr-1"),
        index.find_key("k"),
        index.find_call("c1"),
        found(index, "zebra"),
    )
    assert (None, [], [], None, []) == left


def test_reset_empties_the_index(index: PageIndex) -> None:
    """After a reset the index is as new."""
    with index.write() as writer:
        add(writer, "usr-1", {1: "zebra"})
        writer.set_seq(1, "x")
    index.reset()
    assert (0, 0, []) == (index.seq, index.count_pages(), found(index, "zebra"))


def test_notes_stand_apart(index: PageIndex) -> None:
    """Notes are found, and listed by numbers below 0; what counts, lists or drops pages, and the newest page, pass them over."""
    with index.write() as writer:
        add(writer, "note-1", {1: "giraffes"})
        assert writer.newest_page() is None
        add(writer, "usr-1", {2: "apples"})
        add(writer, "note-2", {3: "zebras"})
        assert "usr-1" == writer.newest_page()
    with index.write() as writer:
        add(writer, "usr-2", {4: "pears"})
        add(writer, "note-3", {5: "okapis"})
        assert "usr-2" == writer.newest_page()
    assert (2, ["usr-1", "usr-2"]) == (index.count_pages(), [each.index for each in index.page_range(0, 9)])
    assert ["usr-1", "usr-2"] == [each.index for each in index.pages()]
    assert ["note-1", "note-2", "note-3"] == [each.index for each in index.pages(numbers=(-9, -1))]
    assert ["note-1", "usr-1", "note-2", "usr-2", "note-3"] == [each.index for each in index.all_pages()]
    assert ([5], ["note-3"], ["note-1"]) == (index.entry_seqs("note-3"), found(index, "okapis"), found(index, "giraffes"))
    with index.write() as writer:
        writer.drop_from("usr-1", 1)
        assert writer.newest_page() is None
        add(writer, "usr-1", {6: "plums"})
    assert (["usr-1"], ["note-2"]) == ([each.index for each in index.pages()], found(index, "zebras"))
    index.check()


def test_notes_are_no_neighbours(index: PageIndex) -> None:
    """A note between two pages changes neither their scores nor those of other notes."""
    plain, noted = PageIndex(None), index
    for each in (plain, noted):
        with each.write() as writer:
            add(writer, "usr-1", {1: "red apples and green pears in the garden"})
            if each is noted:
                add(writer, "note-1", {2: "unlike"})
                add(writer, "note-2", {3: "unlike as well"})
            add(writer, "usr-2", {4: "blue plums grow there too"})
    query = "red apples green plums"
    assert found(plain, query) == found(noted, query)
    assert [hit.why for hit in plain.search(query, limit=9)] == [hit.why for hit in noted.search(query, limit=9)]
    assert ["note-1", "note-2"] == found(noted, "unlike")
    plain.close()
