"""What every store has to do when content is taken out of it; a part of ``memci.testing.store_suite``."""
# It is a test, though it is distributed: it asserts, with the expected value on the left.
# ruff: noqa: PLR2004, SIM300

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.stores.contract import Record, SessionStore, Store
from memci.errors import ConflictError, InvalidIdError, PermissionDeniedError, UnavailableError
from memci.testing.capability import capability
from memci.testing.journal_suite import TENANT, append_each, each_example_cleans_up, new_record, texts_of

GONE = b'{"text":"[erased]"}'


class RedactionSuite:
    """The tests of redacting records, and of removing pages and snapshots. The fixtures are those of ``JournalSuite``."""

    @capability("redaction")
    def test_a_redacted_record_has_its_new_body(self, store: Store, session: SessionStore) -> None:
        """Place, kind and version stay, the body is the new one, and whoever opens the session next reads the same."""
        append_each(session.journal, *"abcd")
        session.journal.redact({2: GONE, 4: GONE})
        expected = [Record(2, "appended", 1, GONE, redacted=True), Record(3, "appended", 1, b'{"text":"c"}')]
        assert expected == list(session.journal.read(1, 3))
        assert ["a", "[erased]", "c", "[erased]"] == texts_of(session.journal)
        session.close()
        assert ["a", "[erased]", "c", "[erased]"] == texts_of(store.open(TENANT, "session").journal)

    @capability("redaction")
    def test_the_journal_goes_on_after_a_redaction(self, store: Store, session: SessionStore) -> None:
        """Others who had the session open read the new bodies and append after the same head."""
        append_each(session.journal, *"abc")
        other, reader = store.open(TENANT, "session"), store.open(TENANT, "session", read_only=True)
        assert 3 == other.journal.head() == reader.journal.head()
        session.journal.redact({1: GONE})
        append_each(session.journal, "d")
        assert 4 == other.journal.head() == reader.journal.head()
        append_each(other.journal, "e")
        other.pages.put({"usr-1": b"page"})
        for journal in (session.journal, other.journal, reader.journal):
            assert ["[erased]", "b", "c", "d", "e"] == texts_of(journal)

    @capability("redaction")
    def test_reading_goes_on_beside_a_redaction(self, store: Store, session: SessionStore) -> None:
        """Who reads while others redact, and looks at the journal meanwhile, reads on, and reads later what comes behind."""
        append_each(session.journal, "a" * 1_000, *"bcd")
        other = store.open(TENANT, "session")
        reading = other.journal.read(1)
        assert b'{"text":"b"}' == next(reading).body
        session.journal.redact({1: GONE})
        append_each(session.journal, "e" * 2_000)
        assert 5 == other.journal.head()
        assert [3, 4] == [record.seq for record in reading]
        assert ["e" * 2_000] == texts_of(other.journal, 4)

    @capability("many openings")
    def test_a_writer_need_not_look_before_it_writes(self, store: Store, session: SessionStore) -> None:
        """Who knows the head appends after it, though the journal was redacted meanwhile."""
        append_each(session.journal, *"abc")
        other = store.open(TENANT, "session")
        assert 3 == other.journal.head()
        session.journal.redact({3: GONE, 1: b'{"text":"%b"}' % (b"longer" * 1_000)})
        assert 4 == other.journal.append(3, [new_record("d")])
        assert ["[erased]", "d"] == texts_of(session.journal, 2)

    @capability("redaction")
    def test_a_redaction_can_be_repeated(self, session: SessionStore) -> None:
        """Redacting again, with the same or another body, is fine; so is redacting nothing."""
        append_each(session.journal, *"ab")
        for body in (GONE, GONE, b'{"text":"?"}'):
            session.journal.redact({1: body})
            session.journal.redact({})
            assert [body, b'{"text":"b"}'] == [record.body for record in session.journal.read()]

    @capability("redaction")
    def test_what_others_redacted_meanwhile_is_not_brought_back(self, store: Store, session: SessionStore) -> None:
        """Who says what was read is refused where a body is another one by now, and what others left there stays."""
        append_each(session.journal, *"abc")
        read = {record.seq: sha256(record.body).hexdigest() for record in session.journal.read()}
        other = store.open(TENANT, "session")
        other.journal.redact({2: GONE}, read)
        for bodies in ({2: b'{"text":"b, shorter"}'}, {1: GONE, 2: b'{"text":"b, shorter"}'}):
            with pytest.raises(ConflictError):
                session.journal.redact(bodies, read)
            assert ["[erased]", "c"] == texts_of(session.journal, 1)
        session.journal.redact({2: b'{"text":"?"}', 3: GONE}, read | {2: sha256(GONE).hexdigest()})
        assert ["?", "[erased]"] == texts_of(other.journal, 1)

    @given(length=st.integers(1, 8), chosen=st.sets(st.integers(1, 8)), size=st.integers(0, 3_000))
    @each_example_cleans_up
    @capability("redaction")
    def test_any_records_can_be_redacted(self, store: Store, length: int, chosen: set[int], size: int) -> None:
        """Whichever records are redacted, within commits of several too, all others stay as they were."""
        session = store.open(TENANT, "redacted")
        session.journal.append(0, [new_record(str(seq)) for seq in range(1, length + 1)])
        body = new_record("x" * size).body
        session.journal.redact({seq: body for seq in chosen if seq <= length})
        expected = ["x" * size if seq in chosen else str(seq) for seq in range(1, length + 1)]
        assert expected == texts_of(session.journal)
        assert length == session.journal.head()
        session.close()
        store.delete(TENANT, "redacted")

    @pytest.mark.parametrize("bodies", [{0: GONE}, {3: GONE}, {1: GONE, 99: GONE}, {1: b""}, {1: b"a\nb"}, {1: b"\0"}])
    @capability("redaction")
    def test_what_cannot_be_redacted_is_refused(self, session: SessionStore, bodies: dict[int, bytes]) -> None:
        """A record that is not there, or a body that is not compact JSON, is refused, and nothing is changed."""
        append_each(session.journal, *"ab")
        with pytest.raises(ValueError, match=r"record|compact JSON"):
            session.journal.redact(bodies)
        assert ["a", "b"] == texts_of(session.journal)

    @capability("pages")
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

    @capability("snapshots")
    def test_snapshots_can_be_cleared(self, store: Store, session: SessionStore) -> None:
        """After clearing there is no snapshot, and others can be put."""
        session.snapshots.clear()
        append_each(session.journal, *"abc")
        session.snapshots.put(1, b"{}")
        session.snapshots.put(3, b"{}")
        session.snapshots.clear()
        assert session.snapshots.find() is None
        assert store.open(TENANT, "session").snapshots.find() is None
        session.snapshots.put(2, b"{}")
        assert (2, b"{}") == session.snapshots.find()

    @capability("read-only")
    def test_reading_only_takes_nothing_out(self, store: Store, session: SessionStore) -> None:
        """What was opened to be read redacts and removes nothing."""
        append_each(session.journal, "a")
        reader = store.open(TENANT, "session", read_only=True)
        with pytest.raises(PermissionDeniedError):
            reader.journal.redact({1: GONE})
        with pytest.raises(PermissionDeniedError):
            reader.pages.remove(["usr-1"])
        with pytest.raises(PermissionDeniedError):
            reader.snapshots.clear()
        assert ["a"] == texts_of(reader.journal)

    @capability("deletion")
    def test_a_deleted_session_is_not_redacted(self, store: Store, session: SessionStore) -> None:
        """Who has a deleted session open takes nothing out of the one that began in its place."""
        append_each(session.journal, "old")
        store.delete(TENANT, "session")
        again = store.open(TENANT, "session")
        append_each(again.journal, "new")
        again.pages.put({"usr-1": b"new"})
        with pytest.raises(UnavailableError, match="deleted"):
            session.journal.redact({1: GONE})
        with pytest.raises(UnavailableError, match="deleted"):
            session.pages.remove(["usr-1"])
        assert ["new"] == texts_of(again.journal)
        assert b"new" == again.pages.find("usr-1")
