"""Objects that were changed, cut, lost or exchanged: found, told as damage of one session, and never served."""

from typing import TYPE_CHECKING

import obstore
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import MemoryStore

from memci.archive.stores.objects.io import ObjectIo
from memci.archive.stores.objects.store import ObjectStore
from memci.errors import CorruptError, StoreError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of
from tests.archive.stores.objects.faulty_objects import stored

if TYPE_CHECKING:
    from memci.archive.stores.contract import Record


def filled() -> tuple[MemoryStore, ObjectStore, list[str]]:
    """Return a bucket with a session that has a list, segments and a tail, another session, and the texts of the first."""
    bucket = MemoryStore()
    store = ObjectStore(ObjectIo(lambda: bucket))
    journal = store.open(TENANT, "session").journal
    head = 0
    for number in range(34):
        head = journal.append(head, [new_record(f"{number}-{place}") for place in range(65)])
    append_each(journal, "a", "b", "c")
    append_each(store.open(TENANT, "other").journal, "other")
    return bucket, store, texts_of(journal)


BUCKET, STORE, TEXTS = filled()
OBJECTS = stored(BUCKET)


def path_with(part: str) -> str:
    return min(path for path in OBJECTS if part in path and "other" not in path)


@pytest.mark.parametrize("part", ["manifests/session", "/segments/", "/lists/"])
@given(place=st.integers(0, 10**9), bit=st.integers(0, 7), cut=st.booleans())
def test_a_changed_object_is_damage(part: str, place: int, bit: int, *, cut: bool) -> None:
    """One flipped bit, or an end that is missing: what is read is a beginning of what was written, and then the error."""
    path = path_with(part)
    body = OBJECTS[path]
    place %= len(body)
    changed = body[:place] if cut else body[:place] + bytes([body[place] ^ 1 << bit]) + body[place + 1 :]
    obstore.put(BUCKET, path, changed)
    try:
        read: list[Record] = []
        with pytest.raises(StoreError) as caught:
            read.extend(STORE.open(TENANT, "session").journal.read())
        assert [orjson.loads(record.body)["text"] for record in read] == TEXTS[: len(read)]
        assert not isinstance(caught.value, CorruptError) or "session" == caught.value.session
        assert ["other"] == texts_of(STORE.open(TENANT, "other").journal)
    finally:
        obstore.put(BUCKET, path, body)


@pytest.mark.parametrize("part", ["/segments/", "/lists/"])
def test_a_lost_object_is_damage(part: str) -> None:
    """What the manifest names and is not there is told with its place and the first record that is missing."""
    path = path_with(part)
    body = OBJECTS[path]
    obstore.delete(BUCKET, path)
    try:
        session = STORE.open(TENANT, "session")
        with pytest.raises(CorruptError, match="missing") as caught:
            list(session.journal.read())
        assert ("session", path) == (caught.value.session, caught.value.place)
        assert caught.value.seq is not None
        assert TEXTS[-3:] == texts_of(session.journal, len(TEXTS) - 3)
        assert len(TEXTS) == session.journal.head()
    finally:
        obstore.put(BUCKET, path, body)


def test_objects_of_another_session_are_damage() -> None:
    """A manifest that was copied from another session fails its checksum."""
    path = path_with("manifests/session")
    obstore.put(BUCKET, path, OBJECTS[f"{TENANT}/manifests/other"])
    try:
        with pytest.raises(CorruptError, match="checksum"):
            STORE.open(TENANT, "session").journal.head()
    finally:
        obstore.put(BUCKET, path, OBJECTS[path])


def test_a_damaged_record_leaves_those_before_it() -> None:
    """Damage in the tail is met at its record: the records before are read, and an append goes on after it."""
    bucket = MemoryStore()
    store = ObjectStore(ObjectIo(lambda: bucket))
    append_each(store.open(TENANT, "session").journal, "a", "b", "c")
    path = f"{TENANT}/manifests/session"
    obstore.put(bucket, path, stored(bucket)[path].replace(b'"text":"b"', b'"text":"x"'))
    journal = store.open(TENANT, "session").journal
    reading = journal.read()
    assert b'{"text":"a"}' == next(reading).body
    with pytest.raises(CorruptError, match="SHA-256") as caught:
        next(reading)
    assert 2 == caught.value.seq
    assert 4 == journal.append(3, [new_record("d")])
    assert ["c", "d"] == texts_of(journal, 2)


@pytest.mark.parametrize("lose", [True, False])
def test_a_damaged_snapshot_is_passed_over(*, lose: bool) -> None:
    """The one before it is found, and the damage is told."""
    bucket = MemoryStore()
    session = ObjectStore(ObjectIo(lambda: bucket)).open(TENANT, "session")
    append_each(session.journal, "a", "b")
    session.snapshots.put(1, b'{"seq":1}')
    session.snapshots.put(2, b'{"seq":2}')
    path = next(path for path in stored(bucket) if "/snapshots/2-" in path)
    if lose:
        obstore.delete(bucket, path)
    else:
        obstore.put(bucket, path, stored(bucket)[path].replace(b'"seq":2}', b'"seq":3}'))
    assert (1, b'{"seq":1}') == session.snapshots.find()
    assert [path] == [problem.partition(":")[0] for problem in session.snapshots.problems()]
    session.snapshots.clear()
    assert [] == list(session.snapshots.problems())


def test_a_damaged_session_can_be_deleted() -> None:
    """Deleting needs nothing of what is damaged."""
    bucket = MemoryStore()
    store = ObjectStore(ObjectIo(lambda: bucket))
    append_each(store.open(TENANT, "session").journal, "a")
    obstore.put(bucket, f"{TENANT}/manifests/session", b"{}")
    assert ["session"] == list(store.sessions(TENANT))
    store.delete(TENANT, "session")
    assert {} == stored(bucket)


def test_a_reader_goes_on_where_segments_are_replaced() -> None:
    """A redaction while records are read is no damage: the reader gets the new bodies, to the head that it began with."""
    store = ObjectStore(ObjectIo(MemoryStore))
    journal = store.open(TENANT, "session").journal
    head = 0
    for number in range(5):
        head = journal.append(head, [new_record(f"{number}-{place}") for place in range(65)])
    reading = store.open(TENANT, "session").journal.read()
    first = next(reading)
    journal.redact(dict.fromkeys(range(60, 326), b'{"text":"[erased]"}'))
    append_each(journal, "later")
    texts = [orjson.loads(record.body)["text"] for record in (first, *reading)]
    assert 325 == len(texts)
    assert ["[erased]"] * 195 == texts[130:]


def test_nothing_is_written_after_a_cut_end() -> None:
    """A manifest whose last record is cut is damage before anything is read, and takes no append."""
    bucket = MemoryStore()
    store = ObjectStore(ObjectIo(lambda: bucket))
    append_each(store.open(TENANT, "session").journal, "a", "b")
    path = f"{TENANT}/manifests/session"
    cut = stored(bucket)[path][:-1]
    obstore.put(bucket, path, cut)
    journal = store.open(TENANT, "session").journal
    with pytest.raises(CorruptError, match="lines of records"):
        journal.head()
    with pytest.raises(CorruptError, match="lines of records"):
        journal.append(2, [new_record("c")])
    assert cut == stored(bucket)[path]


@pytest.mark.parametrize(("old", "new"), [(b"J", b"\n"), (b'"J"}}\n', b'"J"}}\x0b')])
def test_nothing_is_written_after_lines_that_are_not_the_records(old: bytes, new: bytes) -> None:
    """A tail with a line too many or too few takes no append, which would get the number of another record later."""
    bucket = MemoryStore()
    store = ObjectStore(ObjectIo(lambda: bucket))
    append_each(store.open(TENANT, "session").journal, "a", "J", "c")
    path = f"{TENANT}/manifests/session"
    changed = stored(bucket)[path].replace(old, new, 1)
    obstore.put(bucket, path, changed)
    with pytest.raises(CorruptError, match="lines of records"):
        store.open(TENANT, "session").journal.append(3, [new_record("d")])
    assert changed == stored(bucket)[path]
