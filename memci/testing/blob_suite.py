"""What every store has to do with large data; a part of ``memci.testing.store_suite``."""

from base64 import b64encode
from hashlib import sha256, shake_128

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.stores.blobs import BlobSession
from memci.archive.stores.contract import NewRecord, SessionStore, Store
from memci.errors import ConflictError, CorruptError, PermissionDeniedError, SessionClosedError, UnavailableError
from memci.testing.journal_suite import TENANT, Suite, append_each, each_example_cleans_up, refuses


def blob(number: int) -> tuple[str, bytes]:
    """Return a blob and its name; another one for each number."""
    data = b64encode(shake_128(bytes([number])).digest(1_500))
    return sha256(data).hexdigest(), data


def showing(number: int) -> NewRecord:
    """Return a record with a picture in it."""
    return NewRecord("appended", 1, b'{"url":"data:image/png;base64,%b"}' % blob(number)[1])


class BlobSuite(Suite, capability="blobs"):
    """Large data is there as long as a session refers to it, in whatever order sessions add and drop it."""

    def test_a_blob_is_found(self, store: Store, begun: SessionStore) -> None:
        """What is put is found by its name, also by the next opening; what is not is not there."""
        name, data = blob(1)
        assert begun.blobs.find(name) is None
        assert [name] == list(begun.blobs.put({name: data}, 2))
        assert data == begun.blobs.find(name)
        again = store.open(TENANT, "session")
        assert ([name], data) == (list(again.blobs.names()), again.blobs.find(name))
        assert again.blobs.find(blob(2)[0]) is None

    def test_a_blob_of_two_sessions_outlives_one(self, store: Store, session: SessionStore) -> None:
        """A session that drops a blob, or is deleted, takes it from no other; the last one takes it with it."""
        name, data = blob(1)
        others = [store.open(TENANT, other) for other in ("second", "third")]
        for each in (session, *others):
            append_each(each.journal, "a")
            each.blobs.put({name: data}, 2)
        session.blobs.drop([name], 2)
        assert [] == list(session.blobs.names())
        assert data == others[0].blobs.find(name) == others[1].blobs.find(name)
        store.delete(TENANT, "second")
        assert data == others[1].blobs.find(name)
        others[1].blobs.drop([name], 2)
        assert others[1].blobs.find(name) is None

    def test_a_deleted_session_leaves_no_blob(self, store: Store, begun: SessionStore) -> None:
        """A session that begins under the id of a deleted one refers to nothing, and finds nothing of it."""
        begun.blobs.put(dict([blob(1), blob(2)]), 2)
        store.delete(TENANT, "session")
        again = store.open(TENANT, "session")
        append_each(again.journal, "a")
        assert [] == list(again.blobs.names())
        assert again.blobs.find(blob(1)[0]) is None

    def test_a_blob_on_its_way_is_not_dropped(self, begun: SessionStore) -> None:
        """What was put for a later record than the one up to which somebody looked stays; else it goes, and can come back."""
        name, data = blob(1)
        for seqs in ((1, 3), (3, 1)):
            for seq in seqs:
                begun.blobs.put({name: data}, seq)
            begun.blobs.drop([name], 2)
            assert data == begun.blobs.find(name)
            begun.blobs.drop([name, blob(2)[0]], 3)
            begun.blobs.drop([name], 3)
            assert begun.blobs.find(name) is None

    def test_a_damaged_blob_is_put_anew(self, begun: SessionStore) -> None:
        """What is there under the name, and is something else, gives way to what is put."""
        for name, data, damaged in ((*blob(1), blob(2)[1]), (*blob(3), blob(3)[1][1:])):
            begun.blobs.put({name: damaged}, 2)
            begun.blobs.put({name: data}, 3)
            assert data == begun.blobs.find(name)

    def test_no_blob_of_others_is_found(self, store: Store, session: SessionStore) -> None:
        """What one tenant drops is gone there, another one keeps it, and nobody finds another tenant's."""
        other, third = store.open("other", "session"), store.open("third", "session")
        name, data = blob(1)
        for each in (session, other, third):
            append_each(each.journal, "a")
        session.blobs.put({name: data}, 2)
        assert third.blobs.find(name) is None
        kept = store.usage(TENANT)
        other.blobs.put({name: data}, 2)
        session.blobs.drop([name], 2)
        store.sweep(TENANT)
        assert data == other.blobs.find(name)
        assert store.usage(TENANT).stored_bytes < kept.stored_bytes

    def test_blobs_are_refused_where_writing_is(self, store: Store, begun: SessionStore) -> None:
        """Read-only, closed and deleted sessions take no blob; a reader finds those that are there."""
        name, data = blob(1)
        begun.blobs.put({name: data}, 2)
        reader, stale = store.open(TENANT, "session", read_only=True), store.open(TENANT, "session")
        assert (data, 1) == (reader.blobs.find(name), stale.journal.head())
        refuses(PermissionDeniedError, lambda: reader.blobs.put({name: data}, 2), lambda: reader.blobs.drop([name], 2))
        begun.close()
        with pytest.raises(SessionClosedError):
            begun.blobs.find(name)
        store.delete(TENANT, "session")
        with pytest.raises(UnavailableError):
            stale.blobs.put({name: data}, 2)

    def test_a_redaction_compares_what_was_read(self, store: Store, session: SessionStore) -> None:
        """What was read of a record with a picture is what its body is compared with, not what is stored of it."""
        opened = BlobSession(session, "session")
        append_each(opened.journal, "a")
        opened.journal.append(1, [showing(1)])
        read = {2: sha256(showing(1).body).hexdigest()}
        opened.journal.redact({2: showing(2).body}, read)
        with pytest.raises(ConflictError):
            opened.journal.redact({2: showing(3).body}, read)
        again = BlobSession(store.open(TENANT, "session"), "session")
        assert [showing(2).body] == [record.body for record in again.journal.read(1)]

    @given(numbers=st.lists(st.integers(0, 3), max_size=8))
    @each_example_cleans_up
    def test_records_with_pictures_come_back(self, store: Store, numbers: list[int]) -> None:
        """Records, page files and snapshots whose pictures are stored apart are read as they were written."""
        session = BlobSession(store.open(TENANT, "shown"), "shown")
        append_each(session.journal, "a")
        records = [showing(number) for number in numbers]
        for seq, record in enumerate(records, start=1):
            session.journal.append(seq, [record])
            session.pages.put({f"usr-{seq}": record.body})
            session.snapshots.put(seq + 1, record.body)
        again = BlobSession(store.open(TENANT, "shown"), "shown")
        assert [record.body for record in records] == [record.body for record in again.journal.read(1)]
        assert [record.body for record in records] == [again.pages.find(f"usr-{seq + 1}") for seq in range(len(records))]
        assert (records[-1].body if records else None) == (again.snapshots.find() or (0, None))[1]
        assert {blob(number)[0] for number in numbers} == set(again.blobs.names())
        session.close()
        again.close()
        store.delete(TENANT, "shown")

    def test_a_missing_blob_is_damage_of_its_record(self, store: Store, begun: SessionStore) -> None:
        """The records before it are read, the error names the record, and others of the tenant go on."""
        opened, other = BlobSession(begun, "session"), BlobSession(store.open(TENANT, "other"), "other")
        opened.journal.append(1, [showing(1)])
        opened.pages.put({"usr-1": showing(1).body})
        append_each(other.journal, "a")
        other.journal.append(1, [showing(2)])
        begun.blobs.drop([blob(1)[0]], 9)
        read = opened.journal.read()
        assert 1 == next(read).seq
        with pytest.raises(CorruptError) as caught:
            next(read)
        assert ("session", 2) == (caught.value.session, caught.value.seq)
        assert opened.pages.find("usr-1") is None
        assert showing(2).body == list(other.journal.read())[1].body

    def test_what_no_record_needs_is_dropped(self, begun: SessionStore) -> None:
        """After a redaction the blobs of former bodies go, but for those that other records have too."""
        opened = BlobSession(begun, "session")
        for seq, number in enumerate((1, 2, 1, 3), start=1):
            opened.journal.append(seq, [showing(number)])
        opened.journal.redact({2: b"{}", 3: showing(4).body})
        opened.drop_unused()
        assert {blob(number)[0] for number in (1, 3, 4)} == set(begun.blobs.names())
        assert begun.blobs.find(blob(2)[0]) is None
        assert [b"{}", showing(4).body, showing(1).body] == [record.body for record in opened.journal.read(1, 4)]
