"""What every store has to do, as tests. A store passes the whole suite, or it is not a store.

To test one, inherit and say how it is made::

    class TestMyStore(StoreSuite):
        @pytest.fixture
        def store(self):
            return MyStore()
"""
# It is a test, though it is distributed: it asserts, with the expected value on the left.
# ruff: noqa: PLR2004, S101, SIM300

from typing import TYPE_CHECKING

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memci.archive.stores.contract import Journal, NewRecord, Record, SessionStore, Store
from memci.errors import ConflictError, InvalidIdError, PermissionDeniedError, SessionClosedError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

TENANT = "default"
HOSTILE_IDS = (
    ".", "..", "../x", "a/b", "/etc/passwd", "a\\b", "CON", "con", "A", "a", "%41", "%", "~", "~" + "0" * 64, "-rf", " ", "x ",
    "x", "\n", "\0", "a\0b", "ä", "a\u0308", "😀", "会话", "x" * 180, "x" * 181, "X" * 10_000, "x" * 10_000, "lock",
    "journal.jsonl", "session.json", "*", "$HOME", "'; DROP TABLE records; --",
)  # fmt: skip
"""Ids that must work and never meet."""

# The store outlives an example, and a class for each store inherits the test: both are meant.
_each_example_cleans_up = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)
_bodies = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
).map(orjson.dumps)
_commits = st.lists(
    st.lists(
        st.builds(NewRecord, st.sampled_from(["appended", "page_folded"]), st.integers(0, 9), _bodies), min_size=1, max_size=4
    ),
    max_size=6,
)


def new_record(text: str = "hello", *, kind: str = "appended", version: int = 1) -> NewRecord:
    """Make a record whose body holds a text."""
    return NewRecord(kind, version, orjson.dumps({"text": text}))


def append_each(journal: Journal, *texts: str) -> int:
    """Append a record for each text, a commit each, and return the head."""
    head = journal.head()
    for text in texts:
        head = journal.append(head, [new_record(text)])
    return head


def texts_of(journal: Journal, after: int = 0, until: int | None = None) -> list[str]:
    """Return the texts of the records that ``new_record`` made."""
    return [orjson.loads(record.body)["text"] for record in journal.read(after, until)]


class StoreSuite:
    """The tests. Each works on sessions of its own in a store that may be used before and after."""

    @pytest.fixture
    def store(self) -> Store:
        """Return the store to test."""
        message = "override the fixture: return the store to test"
        raise NotImplementedError(message)

    @pytest.fixture
    def session(self, store: Store) -> SessionStore:
        """Return a new session, opened to be written."""
        return store.open(TENANT, "session")

    def test_a_new_session_is_empty(self, session: SessionStore) -> None:
        """A session that nobody wrote to has head 0, no record, no page and no snapshot."""
        assert 0 == session.journal.head()
        assert [] == list(session.journal.read())
        assert [] == list(session.pages.names())
        assert session.pages.find("usr-1") is None
        assert session.snapshots.find() is None
        assert [] == list(session.snapshots.problems())

    def test_sequence_numbers_are_dense(self, session: SessionStore) -> None:
        """Records are numbered from 1 without a gap, across commits of any size."""
        assert 1 == session.journal.append(0, [new_record("one")])
        assert 3 == session.journal.append(1, [new_record("two"), new_record("three")])
        assert 3 == session.journal.head()
        assert [1, 2, 3] == [record.seq for record in session.journal.read()]

    def test_a_record_comes_back_as_it_was(self, session: SessionStore) -> None:
        """Kind, version and the bytes of the body are those that were given."""
        body = '{"text":"quote \\" and \\u2028, ünïcödé, \\"body\\":{","sum":"x"}'.encode()
        session.journal.append(0, [NewRecord("page_folded", 3, body)])
        assert [Record(1, "page_folded", 3, body)] == list(session.journal.read())

    @given(commits=_commits)
    @_each_example_cleans_up
    def test_any_commits_come_back(self, store: Store, commits: list[list[NewRecord]]) -> None:
        """Whatever is committed is read in order by the next opening."""
        session = store.open(TENANT, "any commits")
        head = 0
        for commit in commits:
            head = session.journal.append(head, commit)
        session.close()
        again = store.open(TENANT, "any commits")
        flat = [record for commit in commits for record in commit]
        expected = [Record(seq, record.kind, record.version, record.body) for seq, record in enumerate(flat, start=1)]
        assert len(flat) == again.journal.head()
        assert expected == list(again.journal.read())
        again.close()
        store.delete(TENANT, "any commits")

    def test_read_takes_a_range(self, session: SessionStore) -> None:
        """``after`` is not in the range and ``until`` is; a range beyond the ends is cut to them."""
        append_each(session.journal, *"abcdef")
        assert ["c", "d"] == texts_of(session.journal, 2, 4)
        assert ["e", "f"] == texts_of(session.journal, 4)
        assert ["a"] == texts_of(session.journal, 0, 1)
        assert ["f"] == texts_of(session.journal, 5, 99)
        assert [] == texts_of(session.journal, 6)
        assert [] == texts_of(session.journal, 99)
        assert [] == texts_of(session.journal, 3, 3)
        assert [] == texts_of(session.journal, 3, 0)

    def test_every_start_of_a_long_journal_is_found(self, session: SessionStore) -> None:
        """Reading from any place of a journal with small and large records begins at that place."""
        texts = [f"{number}:" + "x" * (40_000 if number % 37 == 0 else 300) for number in range(1, 301)]
        session.journal.append(0, [new_record(text) for text in texts[:150]])
        session.journal.append(150, [new_record(text) for text in texts[150:]])
        for after in range(300):
            assert texts[after : after + 2] == texts_of(session.journal, after, after + 2)

    def test_a_record_can_be_larger_than_any_buffer(self, session: SessionStore) -> None:
        """A body of several megabytes between small ones comes back whole."""
        texts = ["small", "x" * 3_000_000, "small again"]
        append_each(session.journal, *texts)
        assert texts == texts_of(session.journal)
        assert texts[1:] == texts_of(session.journal, 1)

    def test_reading_does_not_see_what_is_written_meanwhile(self, session: SessionStore) -> None:
        """An iteration ends at the head that it found when it began."""
        append_each(session.journal, "a", "b")
        reading = session.journal.read()
        first = next(reading)
        append_each(session.journal, "c")
        assert [1, 2] == [first.seq, *(record.seq for record in reading)]

    @pytest.mark.parametrize("expected", [0, 1, 3, 99])
    def test_a_wrong_expectation_writes_nothing(self, session: SessionStore, expected: int) -> None:
        """An append at any place but the head is a conflict that names both."""
        append_each(session.journal, "a", "b")
        with pytest.raises(ConflictError) as caught:
            session.journal.append(expected, [new_record("lost")])
        assert (expected, 2) == (caught.value.expected, caught.value.head)
        assert ["a", "b"] == texts_of(session.journal)

    def test_a_conflict_does_not_begin_a_session(self, store: Store, session: SessionStore) -> None:
        """An append to an empty journal at a place other than 0 leaves no session behind."""
        with pytest.raises(ConflictError) as caught:
            session.journal.append(1, [new_record()])
        assert 0 == caught.value.head
        assert [] == list(store.sessions(TENANT))

    def test_of_two_openings_the_stale_one_conflicts(self, store: Store) -> None:
        """Who did not see the other's record gets the head, nothing is written, and the next append there works."""
        first, second = store.open(TENANT, "session"), store.open(TENANT, "session")
        append_each(first.journal, "a")
        assert 1 == second.journal.head()
        append_each(second.journal, "b")
        with pytest.raises(ConflictError) as caught:
            first.journal.append(1, [new_record("lost")])
        assert 2 == caught.value.head
        assert 3 == first.journal.append(2, [new_record("c")])
        assert ["a", "b", "c"] == texts_of(second.journal)

    @pytest.mark.parametrize(
        "records",
        [
            [],
            [NewRecord("appended", 1, b"")],
            [NewRecord("appended", 1, b'{"a":\n1}')],
            [NewRecord("appended", 1, b'"\0"')],
            [NewRecord("Appended", 1, b"{}")],
            [NewRecord('a"b', 1, b"{}")],
            [NewRecord("", 1, b"{}")],
            [NewRecord("appended", -1, b"{}")],
            [NewRecord("appended", 1, b"{}"), NewRecord("appended", 1, b"\n")],
        ],
    )
    def test_what_no_journal_can_hold_is_refused(self, session: SessionStore, records: list[NewRecord]) -> None:
        """A commit without a record, or with one that is no line, is refused whole."""
        with pytest.raises(ValueError, match=r"\w"):
            session.journal.append(0, records)
        assert 0 == session.journal.head()

    def test_hostile_ids_never_meet(self, store: Store) -> None:
        """Each id is a session of its own, and the list of sessions gives every id back."""
        for session_id in HOSTILE_IDS:
            with_id = store.open(TENANT, session_id)
            with_id.journal.append(0, [new_record(session_id)])
            with_id.close()
        assert sorted(HOSTILE_IDS) == sorted(store.sessions(TENANT))
        for session_id in HOSTILE_IDS:
            with_id = store.open(TENANT, session_id, read_only=True)
            assert [session_id] == texts_of(with_id.journal)
            with_id.close()

    @given(ids=st.sets(st.text(min_size=1), min_size=1, max_size=8), tenant=st.text(min_size=1))
    @_each_example_cleans_up
    def test_any_text_is_an_id(self, store: Store, ids: set[str], tenant: str) -> None:
        """Any text that UTF-8 can encode is an id and a tenant, told from all others and given back."""
        for session_id in ids:
            session = store.open(tenant, session_id)
            assert 1 == session.journal.append(0, [new_record(session_id)])
            session.close()
        assert sorted(ids) == sorted(store.sessions(tenant))
        for session_id in ids:
            store.delete(tenant, session_id)
        assert [] == list(store.sessions(tenant))

    @pytest.mark.parametrize("value", ["", "\ud800", "a\udfffb", None, 7, b"bytes"])
    def test_what_is_no_id_is_refused(self, store: Store, value: str) -> None:
        """Ids and tenants that are empty, not text, or that UTF-8 cannot encode are refused wherever they are given."""
        calls: list[Callable[[], object]] = [
            lambda: store.open(TENANT, value),
            lambda: store.open(value, "session"),
            lambda: store.delete(TENANT, value),
            lambda: list(store.sessions(value)),
        ]
        for call in calls:
            with pytest.raises(InvalidIdError) as caught:
                call()
            assert value == caught.value.value

    def test_tenants_are_apart(self, store: Store) -> None:
        """The same id of two tenants is two sessions, and a tenant lists and deletes only its own."""
        for tenant in ("one", "two"):
            append_each(store.open(tenant, "session").journal, tenant)
        append_each(store.open("one", "other").journal, "x")
        assert ["other", "session"] == sorted(store.sessions("one"))
        assert ["session"] == list(store.sessions("two"))
        assert [] == list(store.sessions("three"))
        store.delete("one", "session")
        assert ["other"] == list(store.sessions("one"))
        assert ["two"] == texts_of(store.open("two", "session").journal)

    def test_opening_leaves_no_session(self, store: Store) -> None:
        """A session that was opened and looked at, but not appended to, is not listed."""
        session = store.open(TENANT, "looked at")
        assert 0 == session.journal.head()
        session.close()
        assert [] == list(store.sessions(TENANT))

    def test_delete_removes_everything(self, store: Store, session: SessionStore) -> None:
        """After a deletion the id can begin anew, with no record, page or snapshot of the old session."""
        append_each(session.journal, "a", "b")
        session.pages.put({"usr-1": b"{}"})
        session.snapshots.put(2, b"{}")
        session.close()
        store.delete(TENANT, "session")
        assert [] == list(store.sessions(TENANT))
        again = store.open(TENANT, "session")
        assert (0, [], None) == (again.journal.head(), list(again.pages.names()), again.snapshots.find())
        assert 1 == append_each(again.journal, "new")
        assert ["new"] == texts_of(again.journal)

    def test_deleting_nothing_is_fine(self, store: Store) -> None:
        """A session that is not there can be deleted, any number of times."""
        store.delete(TENANT, "nobody")
        store.delete(TENANT, "nobody")
        assert [] == list(store.sessions(TENANT))

    def test_a_deleted_session_takes_no_writes(self, store: Store, session: SessionStore) -> None:
        """Who has a deleted session open is told at the next write, and the new session of that id stays untouched."""
        append_each(session.journal, "old")
        store.delete(TENANT, "session")
        with pytest.raises(UnavailableError, match="deleted"):
            session.journal.append(1, [new_record("late")])
        with pytest.raises(UnavailableError, match="deleted"):
            session.pages.put({"usr-1": b"late"})
        with pytest.raises(UnavailableError, match="deleted"):
            session.snapshots.put(1, b"late")
        assert [] == list(store.sessions(TENANT))
        again = store.open(TENANT, "session")
        append_each(again.journal, "new")
        with pytest.raises(UnavailableError, match="deleted"):
            session.journal.append(1, [new_record("late")])
        session.close()
        assert ["new"] == texts_of(again.journal)
        assert [] == list(again.pages.names())

    def test_a_reader_of_a_deleted_session_cannot_write_to_the_next(self, store: Store) -> None:
        """An opening that has only read belongs to the session that it has read."""
        append_each(store.open(TENANT, "session").journal, "old")
        stale = store.open(TENANT, "session")
        assert 1 == stale.journal.head()
        store.delete(TENANT, "session")
        append_each(store.open(TENANT, "session").journal, "new")
        with pytest.raises(UnavailableError, match="deleted"):
            stale.journal.append(1, [new_record("late")])
        assert ["new"] == texts_of(store.open(TENANT, "session").journal)

    def test_pages_come_back(self, store: Store, session: SessionStore) -> None:
        """Page files are found by name with their bytes, listed, and still there for the next opening."""
        append_each(session.journal, "a")
        pages = {"usr-1": b'{"a":1}\n', "usr-2": b"", "sys-0": bytes(range(256)), "own_segment2-7.r12": b"x" * 100_000}
        session.pages.put(pages)
        session.close()
        again = store.open(TENANT, "session")
        assert sorted(pages) == sorted(again.pages.names())
        assert pages == {name: again.pages.find(name) for name in pages}
        assert again.pages.find("usr-3") is None

    def test_pages_can_be_written_over(self, session: SessionStore) -> None:
        """A page file that is put again has the new bytes, once."""
        append_each(session.journal, "a")
        session.pages.put({"usr-1": b"a much longer text", "usr-2": b"two"})
        session.pages.put({"usr-1": b"new"})
        session.pages.put({})
        assert b"new" == session.pages.find("usr-1")
        assert ["usr-1", "usr-2"] == sorted(session.pages.names())

    @pytest.mark.parametrize(
        "name",
        [
            *("", "usr", "usr-", "-1", "../usr-1", "a/usr-1", "usr-1/..", "Usr-1", "usr-1.r", "usr-1.json", "usr-1\n"),
            "usr-\N{ARABIC-INDIC DIGIT ONE}",
            "x" * 999 + "-1",
        ],
    )
    def test_other_names_are_no_pages(self, session: SessionStore, name: str) -> None:
        """A name that is not a segment, a number and perhaps a revision is refused, and with it the whole batch."""
        with pytest.raises(InvalidIdError):
            session.pages.put({"usr-1": b"good", name: b"bad"})
        with pytest.raises(InvalidIdError):
            session.pages.find(name)
        assert [] == list(session.pages.names())

    def test_the_newest_snapshot_is_found(self, store: Store, session: SessionStore) -> None:
        """A snapshot is found by the highest sequence number that is allowed, also by the next opening."""
        append_each(session.journal, *"abc")
        for seq in (1, 2, 3):
            session.snapshots.put(seq, b'{"seq":%d}' % seq)
        session.close()
        again = store.open(TENANT, "session")
        assert (3, b'{"seq":3}') == again.snapshots.find()
        assert (2, b'{"seq":2}') == again.snapshots.find(2)
        assert again.snapshots.find(0) is None
        again.snapshots.put(3, b'{"newer":true}')
        assert (3, b'{"newer":true}') == again.snapshots.find(99)
        assert [] == list(again.snapshots.problems())

    def test_snapshots_are_thinned(self, session: SessionStore) -> None:
        """Of 400 snapshots about log2 of the history stay, and none is older than twice the age that was asked for."""
        append_each(session.journal, "a")
        newest = 400 * 50
        for seq in range(50, newest + 1, 50):
            session.snapshots.put(seq, b"{}")
        found = set()
        at_most: int | None = None
        while (snapshot := session.snapshots.find(at_most)) is not None:
            found.add(snapshot[0])
            at_most = snapshot[0] - 1
        assert {newest, newest - 50, newest - 100} <= found
        assert len(found) <= 3 + newest.bit_length()
        for age in (500, 1_000, 5_000, 10_000):
            assert any(age <= newest - seq <= 4 * age for seq in found)

    def test_read_only_refuses_to_write(self, store: Store, session: SessionStore) -> None:
        """What was opened to be read can be read and follows the writer, and every write is refused."""
        append_each(session.journal, "a")
        reader = store.open(TENANT, "session", read_only=True)
        assert ["a"] == texts_of(reader.journal)
        append_each(session.journal, "b")
        assert 2 == reader.journal.head()
        with pytest.raises(PermissionDeniedError):
            reader.journal.append(2, [new_record()])
        with pytest.raises(PermissionDeniedError):
            reader.pages.put({"usr-1": b""})
        with pytest.raises(PermissionDeniedError):
            reader.snapshots.put(1, b"{}")
        assert ["a", "b"] == texts_of(reader.journal)

    def test_read_only_sees_a_session_begin(self, store: Store, session: SessionStore) -> None:
        """A reader that came before the first record reads it once it is there."""
        reader = store.open(TENANT, "session", read_only=True)
        assert 0 == reader.journal.head()
        append_each(session.journal, "a")
        assert ["a"] == texts_of(reader.journal)

    def test_close_can_be_called_twice(self, store: Store, session: SessionStore) -> None:
        """Closing again does nothing, whether or not something was written, for sessions and the store."""
        append_each(session.journal, "a")
        session.close()
        session.journal.close()
        session.close()
        never_used = store.open(TENANT, "never used")
        never_used.close()
        never_used.close()
        store.close()
        store.close()

    def test_a_closed_session_refuses_everything(self, session: SessionStore) -> None:
        """After closing, every call says that the session was closed."""
        append_each(session.journal, "a", "b")
        session.close()
        calls: list[Callable[[], object]] = [
            session.journal.head,
            lambda: session.journal.append(2, [new_record()]),
            lambda: list(session.journal.read()),
            lambda: session.pages.put({"usr-1": b""}),
            lambda: session.pages.find("usr-1"),
            lambda: list(session.pages.names()),
            lambda: session.snapshots.put(1, b"{}"),
            session.snapshots.find,
            lambda: list(session.snapshots.problems()),
            lambda: session.index,
        ]
        for call in calls:
            with pytest.raises(SessionClosedError):
                call()

    def test_the_index_is_there(self, store: Store, session: SessionStore) -> None:
        """The index opens for a new session, one with records and one opened to be read, and leaves no session behind."""
        assert session.index is session.index
        assert [] == list(store.sessions(TENANT))
        append_each(session.journal, "a")
        reader = store.open(TENANT, "session", read_only=True)
        assert reader.index is reader.index
        reader.close()
        session.close()
        store.delete(TENANT, "session")
        assert [] == list(store.sessions(TENANT))

    def test_durability_is_said(self, store: Store, session: SessionStore) -> None:
        """Store and session say by the same word what survives."""
        assert store.durability == session.durability != ""
