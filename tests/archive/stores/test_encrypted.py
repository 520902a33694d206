"""A store that encrypts: it is a store, nothing that is said is in the one inside, and what was changed is noticed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memci.archive.stores.contract import NewRecord
from memci.archive.stores.encrypted import EncryptedStore
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.sql.sqlite import SqliteStore
from memci.errors import ConfigError, CorruptError, EncryptionError
from memci.testing.store_suite import StoreSuite

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
BODY = b'{"text":"zebrafinch"}'


class TestEncryptedMemory(StoreSuite):
    """Around sessions in memory."""

    store_name = "encrypted, memory"

    @pytest.fixture
    def store(self) -> EncryptedStore:
        return EncryptedStore(MemoryStore(), KEY)


class TestEncryptedFiles(StoreSuite):
    """Around files."""

    store_name = "encrypted, file"

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[EncryptedStore]:
        store = EncryptedStore(FileStore(tmp_path / "chats", "flush"), KEY)
        yield store
        store.close()


class TestEncryptedSqlite(StoreSuite):
    """Around a database."""

    store_name = "encrypted, sqlite"

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[EncryptedStore]:
        store = EncryptedStore(SqliteStore(str(tmp_path / "chats.db"), "flush"), KEY)
        yield store
        store.close()


def filled(inner: MemoryStore, key: bytes = KEY) -> EncryptedStore:
    """Return a store with a session that has some of everything."""
    store = EncryptedStore(inner, key)
    session = store.open("tenant", "session")
    session.journal.append(0, [NewRecord("appended", 1, BODY), NewRecord("appended", 1, BODY)])
    session.pages.put({"usr-1": BODY})
    session.snapshots.put(1, BODY)
    session.blobs.put({"ab" * 32: BODY}, 2)
    return store


def test_the_same_is_never_stored_twice() -> None:
    """Equal bodies are unequal ciphertexts, in the same session and in another one; none says anything."""
    inner = MemoryStore()
    filled(inner)
    session = inner.open("tenant", "session")
    one, two = (record.body for record in session.journal.read())
    assert one != two
    stored = [one, two, session.pages.find("usr-1"), (session.snapshots.find() or (0, b""))[1], session.blobs.find("ab" * 32)]
    assert [] == [data for data in stored if data is None or b"zebra" in data or BODY in data]


def test_old_keys_open() -> None:
    """After a change of keys all is read with the old one, and written with the new one; without the old one it says which."""
    inner = MemoryStore()
    filled(inner)
    session = EncryptedStore(inner, OTHER, [KEY]).open("tenant", "session")
    assert [BODY, BODY] == [record.body for record in session.journal.read()]
    assert (BODY, BODY, (1, BODY)) == (session.pages.find("usr-1"), session.blobs.find("ab" * 32), session.snapshots.find())
    session.journal.append(2, [NewRecord("appended", 1, BODY)])
    new = EncryptedStore(inner, OTHER).open("tenant", "session")
    assert [BODY] == [record.body for record in new.journal.read(2)]
    assert (None, None) == (new.pages.find("usr-1"), new.snapshots.find())
    with pytest.raises(EncryptionError, match="which is not there") as raised:
        list(new.journal.read())
    assert ("session", 16) == (raised.value.session, len(raised.value.key_id))


@pytest.mark.parametrize("change", ["place", "byte", "session", "kind"])
def test_what_was_changed_is_noticed(change: str) -> None:
    """A ciphertext that was moved to another record or session, or of which a byte or the kind was changed, is damage."""
    inner = MemoryStore()
    filled(inner)
    one, two = inner.open("tenant", "session").journal.read()
    other = "other" if change == "session" else "session"
    inner.delete("tenant", other)
    body = {"place": two.body, "byte": one.body.replace(b'"data":"', b'"data":"AAAA')}.get(change, one.body)
    inner.open("tenant", other).journal.append(0, [NewRecord("other" if change == "kind" else "appended", 1, body)])
    with pytest.raises(CorruptError, match="record 1") as raised:
        list(EncryptedStore(inner, KEY).open("tenant", other).journal.read())
    assert (other, 1) == (raised.value.session, raised.value.seq)


def test_what_is_plain_is_refused() -> None:
    """A session that was begun without a key is not read with one; deleting needs none."""
    inner = MemoryStore()
    inner.open("tenant", "session").journal.append(0, [NewRecord("appended", 1, BODY)])
    store = EncryptedStore(inner, KEY)
    with pytest.raises(EncryptionError, match="it is not encrypted"):
        list(store.open("tenant", "session").journal.read())
    store.delete("tenant", "session")
    assert [] == list(store.sessions("tenant"))


def test_blobs_are_shared_by_a_tenant(tmp_path: Path) -> None:
    """Another session of the tenant finds the blob that it refers to, though the first one put it."""
    store = EncryptedStore(FileStore(tmp_path, "flush"), KEY)
    for name in ("one", "two"):
        session = store.open("tenant", name)
        session.journal.append(0, [NewRecord("appended", 1, BODY)])
        session.blobs.put({"ab" * 32: BODY}, 1)
    store.delete("tenant", "one")
    assert BODY == store.open("tenant", "two").blobs.find("ab" * 32)


@pytest.mark.parametrize("key", [b"", b"short", bytes(33)])
def test_a_key_that_is_none(key: bytes) -> None:
    """It is said at once."""
    with pytest.raises(ConfigError):
        EncryptedStore(MemoryStore(), key)
