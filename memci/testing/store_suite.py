"""What every store has to do, as tests. A store passes the whole suite, or it is not a store.

To test one, inherit and say how it is made::

    class TestMyStore(StoreSuite):
        store_name = "my store"

        @pytest.fixture
        def store(self):
            return MyStore()

The plugin ``memci.testing.conformance`` reports what ran, capability by capability.
"""
# It is a test, though it is distributed: it asserts, with the expected value on the left.
# ruff: noqa: PLR2004, SIM300

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.stores.contract import SessionStore, Store
from memci.errors import InvalidIdError, PermissionDeniedError, SessionClosedError, UnavailableError
from memci.testing.blob_suite import BlobSuite
from memci.testing.capability import capability
from memci.testing.journal_suite import (
    TENANT,
    JournalSuite,
    RedactionSuite,
    append_each,
    each_example_cleans_up,
    new_record,
    refuses,
    texts_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE_IDS = (
    ".", "..", "../x", "a/b", "/etc/passwd", "a\\b", "CON", "con", "A", "a", "%41", "%", "~", "~" + "0" * 64, "-rf", " ", "x ",
    "x", "\n", "\0", "a\0b", "ä", "a\u0308", "😀", "会话", "blobs", "%62lobs",
    "x" * 180, "x" * 181, "X" * 10_000, "x" * 10_000, "lock",
    "journal.jsonl", "session.json", "*", "$HOME", "'; DROP TABLE records; --",
)  # fmt: skip
"""Ids that must work and never meet."""


class StoreSuite(JournalSuite, RedactionSuite, BlobSuite):
    """All tests. Each works on sessions of its own in a store that may be used before and after."""

    @capability("journal")
    def test_a_new_session_is_empty(self, session: SessionStore) -> None:
        """A session that nobody wrote to has head 0, no record, no page and no snapshot."""
        assert 0 == session.journal.head()
        assert [] == list(session.journal.read())
        assert [] == list(session.pages.names())
        assert session.pages.find("usr-1") is None
        assert session.snapshots.find() is None
        assert [] == list(session.snapshots.problems())

    @capability("ids")
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
    @each_example_cleans_up
    @capability("ids")
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
    @capability("ids")
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

    @capability("tenants")
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

    @capability("ids")
    def test_opening_leaves_no_session(self, store: Store) -> None:
        """A session that was opened and looked at, but not appended to, is not listed."""
        session = store.open(TENANT, "looked at")
        assert 0 == session.journal.head()
        session.close()
        assert [] == list(store.sessions(TENANT))

    @capability("deletion")
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

    @capability("deletion")
    def test_deleting_nothing_is_fine(self, store: Store) -> None:
        """A session that is not there can be deleted, any number of times."""
        store.delete(TENANT, "nobody")
        store.delete(TENANT, "nobody")
        assert [] == list(store.sessions(TENANT))

    @capability("deletion")
    def test_a_deleted_session_takes_no_writes(self, store: Store, session: SessionStore) -> None:
        """Who has a deleted session open is told at the next write, and the new session of that id stays untouched."""
        append_each(session.journal, "old")
        store.delete(TENANT, "session")
        refuses(
            UnavailableError,
            lambda: session.journal.append(1, [new_record("late")]),
            lambda: session.pages.put({"usr-1": b"late"}),
            lambda: session.snapshots.put(1, b"late"),
            match="deleted",
        )
        assert [] == list(store.sessions(TENANT))
        again = store.open(TENANT, "session")
        append_each(again.journal, "new")
        with pytest.raises(UnavailableError, match="deleted"):
            session.journal.append(1, [new_record("late")])
        session.close()
        assert ["new"] == texts_of(again.journal)
        assert [] == list(again.pages.names())

    @capability("deletion")
    def test_a_deleted_session_is_not_read_on(self, store: Store, session: SessionStore) -> None:
        """Who has a deleted session open is told when it looks at the journal, also where another began under the id."""
        append_each(session.journal, "old")
        reader = store.open(TENANT, "session", read_only=True)
        assert ["old"] == texts_of(reader.journal)
        store.delete(TENANT, "session")
        looks = session.journal.head, reader.journal.head, lambda: texts_of(session.journal), lambda: texts_of(reader.journal)
        refuses(UnavailableError, *looks, match="deleted")
        append_each(store.open(TENANT, "session").journal, "new")
        refuses(UnavailableError, session.journal.head, reader.journal.head, match="deleted")

    @capability("deletion")
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

    @capability("pages")
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

    @capability("pages")
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
    @capability("pages")
    def test_other_names_are_no_pages(self, session: SessionStore, name: str) -> None:
        """A name that is not a segment, a number and perhaps a revision is refused, and with it the whole batch."""
        with pytest.raises(InvalidIdError):
            session.pages.put({"usr-1": b"good", name: b"bad"})
        with pytest.raises(InvalidIdError):
            session.pages.find(name)
        assert [] == list(session.pages.names())

    @capability("snapshots")
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

    @capability("snapshots")
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

    @capability("read-only")
    def test_read_only_refuses_to_write(self, store: Store, session: SessionStore) -> None:
        """What was opened to be read can be read and follows the writer, and every write is refused."""
        append_each(session.journal, "a")
        reader = store.open(TENANT, "session", read_only=True)
        assert ["a"] == texts_of(reader.journal)
        append_each(session.journal, "b")
        assert 2 == reader.journal.head()
        refuses(
            PermissionDeniedError,
            lambda: reader.journal.append(2, [new_record()]),
            lambda: reader.pages.put({"usr-1": b""}),
            lambda: reader.snapshots.put(1, b"{}"),
        )
        assert ["a", "b"] == texts_of(reader.journal)

    @capability("read-only")
    def test_read_only_sees_a_session_begin(self, store: Store, session: SessionStore) -> None:
        """A reader that came before the first record reads it once it is there."""
        reader = store.open(TENANT, "session", read_only=True)
        assert 0 == reader.journal.head()
        append_each(session.journal, "a")
        assert ["a"] == texts_of(reader.journal)

    @capability("closing")
    def test_close_can_be_called_twice(self, store: Store, session: SessionStore) -> None:
        """Closing again does nothing, whether or not something was written, for sessions and the store."""
        append_each(session.journal, "a")
        session.close()
        session.close()
        never_used = store.open(TENANT, "never used")
        never_used.close()
        never_used.close()
        store.close()
        store.close()

    @capability("closing")
    def test_a_closed_session_refuses_everything(self, session: SessionStore) -> None:
        """After closing, every call says that the session was closed."""
        append_each(session.journal, "a", "b")
        session.close()
        refuses(
            SessionClosedError,
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
        )

    @capability("index")
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

    @capability("durability")
    def test_durability_is_said(self, store: Store, session: SessionStore) -> None:
        """Store and session say by the same word what survives."""
        assert store.durability == session.durability != ""
