"""What every store has to do, as tests. A store passes the whole suite, or it is not a store.

To test one, inherit and say how it is made::

    class TestMyStore(StoreSuite):
        store_name = "my store"

        @pytest.fixture
        def store(self):
            return MyStore()
"""

from contextlib import suppress
from hashlib import sha256

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memci.archive.stores.contract import SessionStore, Store
from memci.errors import ConflictError, InvalidIdError, PermissionDeniedError, SessionClosedError, UnavailableError
from memci.testing.blob_suite import BlobSuite
from memci.testing.journal_suite import (
    GONE,
    TENANT,
    CompareAndSetSuite,
    JournalSuite,
    OpeningsSuite,
    RedactionSuite,
    Suite,
    append_each,
    each_example_cleans_up,
    new_record,
    refuses,
    texts_of,
)

HOSTILE_IDS = (
    ".", "..", "../x", "a/b", "/etc/passwd", "a\\b", "CON", "con", "A", "a", "%41", "%", "~", "~" + "0" * 64, "-rf", " ", "x ",
    "x", "\n", "\0", "a\0b", "ä", "a\u0308", "😀", "会话", "blobs", "%62lobs",
    "x" * 180, "x" * 181, "X" * 10_000, "x" * 10_000, "lock",
    "journal.jsonl", "session.json", "*", "$HOME", "'; DROP TABLE records; --",
)  # fmt: skip
"""Ids that must work and never meet."""

_SHARED = b"y" * 20_000


class PageSuite(Suite, capability="pages"):
    """Page files are found by name, written over, listed and removed."""

    def test_removed_pages_are_gone(self, store: Store, session: SessionStore) -> None:
        """Pages are removed by name, and the next opening does not find them; names that are not there are passed over."""
        session.pages.remove(["usr-1"])
        append_each(session.journal, "a")
        session.pages.put({"usr-1": b"1", "usr-1.r1": b"1", "usr-2": b"2"})
        session.pages.remove(["usr-1", "usr-1.r1", "usr-7"])
        session.pages.remove([])
        assert ["usr-2"] == list(session.pages.names())
        assert store.open(TENANT, "session").pages.find("usr-1") is None
        with pytest.raises(InvalidIdError):
            session.pages.remove(["usr-2", "../usr-2"])
        assert b"2" == session.pages.find("usr-2")

    def test_pages_come_back(self, store: Store, begun: SessionStore) -> None:
        """Page files are found by name with their bytes, listed, there for the next opening, and can be written over."""
        pages = {"usr-1": b'{"a":1}\n', "usr-2": b"", "sys-0": bytes(range(256)), "own_segment2-7.r12": b"x" * 100_000}
        begun.pages.put(pages)
        begun.close()
        again = store.open(TENANT, "session")
        assert sorted(pages) == sorted(again.pages.names())
        assert pages == {name: again.pages.find(name) for name in pages}
        assert again.pages.find("usr-3") is None
        again.pages.put({"usr-1": b"new"})
        again.pages.put({})
        assert b"new" == again.pages.find("usr-1")
        assert sorted(pages) == sorted(again.pages.names())

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


class SnapshotSuite(Suite, capability="snapshots"):
    """The newest state is found, older ones are thinned out, all can be cleared."""

    def test_the_newest_snapshot_is_found(self, store: Store, session: SessionStore) -> None:
        """A snapshot is found by the highest number that is allowed, also by the next opening, until all are cleared."""
        session.snapshots.clear()
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
        again.snapshots.clear()
        assert again.snapshots.find() is store.open(TENANT, "session").snapshots.find() is None
        again.snapshots.put(2, b"{}")
        assert (2, b"{}") == again.snapshots.find()

    def test_snapshots_are_thinned(self, begun: SessionStore) -> None:
        """Of 400 snapshots about log2 of the history stay, and none is older than twice the age that was asked for."""
        newest = 400 * 50
        for seq in range(50, newest + 1, 50):
            begun.snapshots.put(seq, b"{}")
        found = set()
        at_most: int | None = None
        while (snapshot := begun.snapshots.find(at_most)) is not None:
            found.add(snapshot[0])
            at_most = snapshot[0] - 1
        assert {newest, newest - 50, newest - 100} <= found
        assert len(found) <= 3 + newest.bit_length()
        for age in (500, 1_000, 5_000, 10_000):
            assert any(age <= newest - seq <= 4 * age for seq in found)


class IdSuite(Suite, capability="ids"):
    """Any text is an id, and no two meet; what is no text is refused."""

    @given(ids=st.sets(st.text(min_size=1), min_size=1, max_size=8), tenant=st.text(min_size=1))
    @example(ids=set(HOSTILE_IDS), tenant=TENANT)
    @each_example_cleans_up
    def test_any_text_is_an_id(self, store: Store, ids: set[str], tenant: str) -> None:
        """Any text that UTF-8 can encode is an id and a tenant, told from all others, hostile ones too, and given back."""
        for session_id in ids:
            session = store.open(tenant, session_id)
            assert 1 == session.journal.append(0, [new_record(session_id)])
            session.close()
        assert sorted(ids) == sorted(store.sessions(tenant))
        for session_id in ids:
            reader = store.open(tenant, session_id, read_only=True)
            assert [session_id] == texts_of(reader.journal)
            reader.close()
            store.delete(tenant, session_id)
        assert [] == list(store.sessions(tenant))

    @pytest.mark.parametrize("value", ["", "\ud800", "a\udfffb", None, 7, b"bytes"])
    def test_what_is_no_id_is_refused(self, store: Store, value: str) -> None:
        """Ids and tenants that are empty, not text, or that UTF-8 cannot encode are refused wherever they are given."""
        for call in (
            lambda: store.open(TENANT, value),
            lambda: store.open(value, "session"),
            lambda: store.delete(TENANT, value),
            lambda: list(store.sessions(value)),
            lambda: store.sweep(value),
        ):
            with pytest.raises(InvalidIdError) as caught:
                call()
            assert value == caught.value.value


class TenantSuite(Suite, capability="tenants"):
    """A tenant sees and deletes only its own sessions."""

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

    def test_usage_is_that_of_a_tenant(self, store: Store) -> None:
        """What a tenant has is measured without that of others, shared data at most once a session; what is deleted is gone."""
        nothing = store.usage("measured")
        append_each(store.open("other", "session").journal, "x" * 9_000)
        assert nothing == store.usage("measured")
        for name in "ab":
            session = store.open("measured", name)
            append_each(session.journal, "x" * 3_000)
            session.blobs.put({sha256(_SHARED).hexdigest(): _SHARED}, 1)
        usage = store.usage("measured")
        assert 2 == usage.sessions
        assert 6_000 + len(_SHARED) <= usage.stored_bytes - nothing.stored_bytes < 6_000 + 3 * len(_SHARED)
        store.delete("measured", "a")
        assert 1 == store.usage("measured").sessions
        store.delete("measured", "b")
        left = store.usage("measured")
        assert (0, True) == (left.sessions, left.stored_bytes < 3_000)


class ReadOnlySuite(Suite, capability="read-only"):
    """What was opened to be read follows the writer and changes nothing."""

    def test_read_only_reads(self, store: Store, session: SessionStore) -> None:
        """A reader sees a session begin and follows the writer, and every write and removal is refused."""
        reader = store.open(TENANT, "session", read_only=True)
        for head, text in enumerate("ab"):
            assert head == reader.journal.head()
            append_each(session.journal, text)
        refuses(
            PermissionDeniedError,
            lambda: reader.journal.append(2, [new_record()]),
            lambda: reader.pages.put({"usr-1": b""}),
            lambda: reader.snapshots.put(1, b"{}"),
            lambda: reader.journal.redact({1: GONE}),
            lambda: reader.pages.remove(["usr-1"]),
            reader.snapshots.clear,
        )
        assert ["a", "b"] == texts_of(reader.journal)


class DeletionSuite(Suite, capability="deletion"):
    """A deleted session is gone whole, is not read or written on, and its id can begin anew."""

    def test_delete_removes_everything(self, store: Store, session: SessionStore) -> None:
        """After a deletion, which can be repeated, the id can begin anew, with no record, page or snapshot of the old session."""
        append_each(session.journal, "a", "b")
        session.pages.put({"usr-1": b"{}"})
        session.snapshots.put(2, b"{}")
        session.close()
        for session_id in ("session", "session", "nobody"):
            store.delete(TENANT, session_id)
            assert [] == list(store.sessions(TENANT))
        again = store.open(TENANT, "session")
        assert (0, [], None) == (again.journal.head(), list(again.pages.names()), again.snapshots.find())
        assert 1 == append_each(again.journal, "new")
        assert ["new"] == texts_of(again.journal)

    def test_a_deleted_session_takes_no_writes(self, store: Store, session: SessionStore) -> None:
        """Who wrote to or read a deleted session is told at the next write; the new session of that id stays untouched."""
        append_each(session.journal, "old")
        stale = store.open(TENANT, "session")
        assert 1 == stale.journal.head()
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
        again.pages.put({"usr-1": b"new"})
        refuses(
            UnavailableError,
            lambda: session.journal.append(1, [new_record("late")]),
            lambda: session.journal.redact({1: GONE}),
            lambda: session.pages.remove(["usr-1"]),
            lambda: stale.journal.append(1, [new_record("late")]),
            match="deleted",
        )
        session.close()
        assert ["new"] == texts_of(again.journal)
        assert b"new" == again.pages.find("usr-1")

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

    def test_sweeping_leaves_sessions_as_they_are(self, store: Store, session: SessionStore) -> None:
        """What has a record stays, with its pages, and other tenants are not looked at; a session can begin afterwards."""
        append_each(session.journal, "a")
        session.pages.put({"usr-1": b"1"})
        store.open(TENANT, "other")
        store.sweep(TENANT)
        store.sweep("nobody")
        assert ["session"] == list(store.sessions(TENANT))
        assert b"1" == store.open(TENANT, "session").pages.find("usr-1")
        append_each(store.open(TENANT, "other").journal, "b")
        assert ["other", "session"] == sorted(store.sessions(TENANT))

    def test_a_swept_session_does_not_go_on_in_another(self, store: Store, session: SessionStore) -> None:
        """Who had put a page before the first record takes nothing from one that begins under the id after a sweep."""
        with suppress(UnavailableError):  # some stores take no page before it
            session.pages.put({"usr-1": b"1"})
        store.sweep(TENANT)
        successor = store.open(TENANT, "session")
        append_each(successor.journal, "a")
        with pytest.raises((UnavailableError, ConflictError)):
            session.journal.append(0, [new_record("lost")])
        assert ["a"] == texts_of(store.open(TENANT, "session").journal)


class IndexSuite(Suite, capability="index"):
    """Page facts and search open for every session, and leave no session there."""

    def test_the_index_is_there(self, store: Store, session: SessionStore) -> None:
        """The index opens for a new session, one with records and one opened to be read, and leaves no session there."""
        assert session.index is session.index
        assert [] == list(store.sessions(TENANT))
        append_each(session.journal, "a")
        reader = store.open(TENANT, "session", read_only=True)
        assert reader.index is reader.index
        reader.close()
        session.close()
        store.delete(TENANT, "session")
        assert [] == list(store.sessions(TENANT))


class ClosingSuite(Suite, capability="closing"):
    """What was closed refuses everything, and can be closed again; what rests goes on."""

    def test_a_session_that_rested_goes_on(self, store: Store, session: SessionStore) -> None:
        """Resting loses nothing, may come at any time, and hides nothing of what others do meanwhile."""
        session.rest()
        append_each(session.journal, "a", "b")
        assert 0 == session.index.seq
        records = session.journal.read()
        assert 1 == next(records).seq
        session.rest()
        session.rest()
        assert 2 == next(records).seq
        session.rest()
        append_each(store.open(TENANT, "session").journal, "c")
        refuses(ConflictError, lambda: session.journal.append(2, [new_record()]))
        session.rest()
        append_each(session.journal, "d")
        session.pages.put({"usr-1": b"page"})
        session.rest()
        assert ["a", "b", "c", "d"] == texts_of(session.journal)
        assert b"page" == session.pages.find("usr-1")
        session.rest()
        store.delete(TENANT, "session")
        refuses(UnavailableError, session.journal.head, lambda: session.journal.append(4, [new_record()]), match="deleted")

    def test_a_session_that_rested_does_not_go_on_in_another(self, store: Store, session: SessionStore) -> None:
        """Whoever deletes a session at rest and begins one under its id gets nothing of what the first one appends."""
        append_each(session.journal, "a", "b")
        session.rest()
        store.delete(TENANT, "session")
        successor = store.open(TENANT, "session")
        append_each(successor.journal, "c", "d")
        refuses(UnavailableError, lambda: session.journal.append(2, [new_record("e")]), session.journal.head, match="deleted")
        assert ["c", "d"] == texts_of(successor.journal)

    def test_close_can_be_called_twice(self, store: Store, begun: SessionStore) -> None:
        """Closing again does nothing, whether or not something was written, for sessions and the store."""
        begun.close()
        begun.close()
        never_used = store.open(TENANT, "never used")
        never_used.close()
        never_used.close()
        store.close()
        store.close()

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


class DurabilitySuite(Suite, capability="durability"):
    """Store and session say by the same word what survives."""

    def test_durability_is_said(self, store: Store, session: SessionStore) -> None:
        """Store and session say by the same word what survives."""
        assert store.durability == session.durability != ""


class StoreSuite(
    JournalSuite,
    CompareAndSetSuite,
    OpeningsSuite,
    PageSuite,
    SnapshotSuite,
    IdSuite,
    TenantSuite,
    ReadOnlySuite,
    DeletionSuite,
    RedactionSuite,
    BlobSuite,
    IndexSuite,
    ClosingSuite,
    DurabilitySuite,
):
    """All tests. Each works on sessions of its own in a store that may be used before and after."""
