"""A store that keeps what is said as ciphertext in another one: AES-256-GCM, with a key of its own for each session.

The key of a session is HKDF-SHA256 (RFC 5869) of the host's key with ``["session",tenant,id]`` as info, that of a tenant's blobs
with ``["blobs",tenant]``. Nonces are 96 random bits: one key seals at most 2**32 times (NIST SP 800-38D, 8.3). What is sealed is
bound to its place, as additional data: a record to its number, kind and version, a page file and a blob to its name, a snapshot
to its number. A key is known by its id, the first 8 bytes of the SHA-256 of ``memci key`` and the key.

A record or snapshot is ``{"memci_sealed":"<key id, in hex>","data":"<nonce and ciphertext, base64>"}``, a page file or blob the
byte 1, key id, nonce and ciphertext. Ids, names, kinds, numbers and sizes are plain, and so is the SHA-256 that names a blob.
"""

import os
import re
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

import attrs
import orjson

from memci.archive.stores.contract import Blobs, Journal, NewRecord, Pages, Record, SessionStore, Snapshots, Store
from memci.archive.stores.names import check_key
from memci.archive.stores.opened_session import OpenedSession
from memci.archive.stores.record_codec import SEALED, check_commit, check_redaction, redacted_meanwhile
from memci.errors import ConfigError, CorruptError, EncryptionError, missing_extra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
_ID_BYTES, _NONCE_BYTES = 8, 12
_VERSION = b"\1"
_TEXT = re.compile(re.escape(SEALED) + rb'([0-9a-f]{16})","data":"([A-Za-z0-9+/=]+)"\}')


class _Box:
    """Seals and opens what one purpose has: a session, or the blobs of a tenant."""

    def __init__(self, keys: Sequence[bytes], purpose: Sequence[str], session: str) -> None:
        self._keys = {sha256(b"memci key" + key).digest()[:_ID_BYTES]: key for key in reversed(keys)}
        self._id = [*self._keys][-1]
        self._purpose = orjson.dumps(purpose)
        self._session = session
        self._ciphers: dict[bytes, AESGCM] = {}

    def seal(self, data: bytes, *place: str | int) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return self._id + nonce + self._cipher(self._id).encrypt(nonce, data, orjson.dumps(place))

    def open(self, sealed: bytes, *place: str | int, seq: int | None = None) -> bytes:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 (for those who encrypt)

        key, nonce, text = sealed[:_ID_BYTES], sealed[_ID_BYTES:][:_NONCE_BYTES], sealed[_ID_BYTES + _NONCE_BYTES :]
        if key not in self._keys:
            raise EncryptionError(self._session, key.hex())
        try:
            return self._cipher(key).decrypt(nonce, text, orjson.dumps(place))
        except (InvalidTag, ValueError) as error:
            problem = "its ciphertext was changed, or belongs to another place: restore a backup"
            raise CorruptError(problem, session=self._session, place=" ".join(map(str, place)), seq=seq) from error

    def seal_text(self, data: bytes, *place: str | int) -> bytes:
        sealed = self.seal(data, *place)
        return b'%b%b","data":"%b"}' % (SEALED, sealed[:_ID_BYTES].hex().encode(), b64encode(sealed[_ID_BYTES:]))

    def open_text(self, text: bytes, *place: str | int, seq: int | None = None) -> bytes:
        found = _TEXT.fullmatch(text)
        if found is None:
            raise EncryptionError(self._session, "")
        return self.open(bytes.fromhex(found[1].decode()) + b64decode(found[2]), *place, seq=seq)

    def _cipher(self, key: bytes) -> "AESGCM":
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 (as above)
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415 (as above)
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415 (as above)

        if key not in self._ciphers:
            derived = HKDF(SHA256(), KEY_BYTES, salt=b"memci", info=self._purpose).derive(self._keys[key])
            self._ciphers[key] = AESGCM(derived)
        return self._ciphers[key]


class _Journal:
    def __init__(self, journal: Journal, box: _Box) -> None:
        self.head = journal.head
        self._journal = journal
        self._box = box

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        check_commit(records)
        return self._journal.append(expected, [self._sealed(seq, record) for seq, record in enumerate(records, expected + 1)])

    def _sealed(self, seq: int, record: NewRecord) -> NewRecord:
        body = self._box.seal_text(record.body, "record", seq, record.kind, record.version)
        return NewRecord(record.kind, record.version, body)

    def _opened(self, record: Record) -> bytes:
        return self._box.open_text(record.body, "record", record.seq, record.kind, record.version, seq=record.seq)

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        for record in self._journal.read(after, until):
            yield attrs.evolve(record, body=self._opened(record))

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        """Redact what is stored; the SHA-256 of what was read is looked up for that of what is stored. Reads up to the last."""
        check_redaction(bodies, self.head())
        sealed, stored = dict[int, bytes](), dict[int, str]()
        for record in self._journal.read(min(bodies) - 1, max(bodies)) if bodies else ():
            if (body := bodies.get(record.seq)) is None:
                continue
            if former is not None and record.seq in former:
                if sha256(self._opened(record)).hexdigest() != former[record.seq]:
                    raise redacted_meanwhile(record.seq)
                stored[record.seq] = sha256(record.body).hexdigest()
            sealed[record.seq] = self._sealed(record.seq, NewRecord(record.kind, record.version, body)).body
        self._journal.redact(sealed, stored)


class _Pages:
    """A page that cannot be opened is not there: the journal makes it again."""

    def __init__(self, pages: Pages, box: _Box) -> None:
        self.names = pages.names
        self.remove = pages.remove
        self._pages = pages
        self._box = box

    def put(self, pages: Mapping[str, bytes]) -> None:
        self._pages.put({name: _VERSION + self._box.seal(page, "page", name) for name, page in pages.items()})

    def find(self, name: str) -> bytes | None:
        found = self._pages.find(name)
        try:
            return found and self._box.open(found.removeprefix(_VERSION), "page", name)
        except (CorruptError, EncryptionError):
            return None


class _Snapshots:
    """A snapshot that cannot be opened is not there."""

    def __init__(self, snapshots: Snapshots, box: _Box) -> None:
        self.problems = snapshots.problems
        self.clear = snapshots.clear
        self._snapshots = snapshots
        self._box = box

    def put(self, seq: int, body: bytes) -> None:
        self._snapshots.put(seq, self._box.seal_text(body, "snapshot", seq))

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        found = self._snapshots.find(at_most)
        while found is not None:
            seq, text = found
            try:
                return seq, self._box.open_text(text, "snapshot", seq)
            except (CorruptError, EncryptionError):
                found = self._snapshots.find(seq - 1)
        return None


class _Blobs:
    def __init__(self, blobs: Blobs, box: _Box) -> None:
        self.names = blobs.names
        self.drop = blobs.drop
        self._blobs = blobs
        self._box = box

    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:
        return self._blobs.put({name: _VERSION + self._box.seal(blob, "blob", name) for name, blob in blobs.items()}, seq)

    def find(self, name: str) -> bytes | None:
        """Return a blob; one that cannot be opened as it is, which its name tells."""
        found = self._blobs.find(name)
        try:
            return found and self._box.open(found.removeprefix(_VERSION), "blob", name)
        except (CorruptError, EncryptionError):
            return found


class EncryptedSession(OpenedSession):
    """Implements ``memci.archive.stores.contract.SessionStore``; the index is in memory, and the other session's is not used."""

    def __init__(self, session: SessionStore, keys: Sequence[bytes], owner: tuple[str, str], *, read_only: bool) -> None:
        tenant, session_id = owner
        super().__init__(session_id, read_only=read_only)
        box = _Box(keys, ["session", tenant, session_id], session_id)
        self.durability = session.durability
        self.journal: Journal = _Journal(session.journal, box)
        self.pages: Pages = _Pages(session.pages, box)
        self.blobs: Blobs = _Blobs(session.blobs, _Box(keys, ["blobs", tenant], session_id))
        self._session = session
        self._box = box

    @property
    def snapshots(self) -> Snapshots:
        """The cached states."""
        return _Snapshots(self._session.snapshots, self._box)

    def rest(self) -> None:
        """Give back files until the next call."""
        self._session.rest()

    def close(self) -> None:
        """Give back what it holds, and refuse every further call. May be called twice."""
        super().close()
        self._session.close()


class EncryptedStore:
    """Implements ``memci.archive.stores.contract.Store`` on another store, which is closed with this one.

    The first key seals, the *old_keys* open what was sealed with them. ``ConfigError`` where the extra is not installed, or a key
    has not 32 bytes. Deleting, listing and measuring need no key.
    """

    def __init__(self, store: Store, key: bytes, old_keys: Sequence[bytes] = ()) -> None:
        try:
            import cryptography.hazmat.primitives.ciphers.aead  # noqa: F401, PLC0415 (for those who encrypt)
        except ModuleNotFoundError as error:
            raise missing_extra(error, "encryption") from error
        self._keys = (key, *old_keys)
        if {len(each) for each in self._keys} != {KEY_BYTES}:
            message = f"a key has {KEY_BYTES} bytes"
            raise ConfigError(message, path="encryption.key")
        self.durability: str = store.durability
        self.sessions = store.sessions
        self.usage = store.usage
        self.sweep = store.sweep
        self.delete = store.delete
        self.close = store.close
        self._store = store

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> EncryptedSession:
        """Open what is stored of a session. What is read of one that is not encrypted, or with a lost key, is refused."""
        owner = check_key(tenant, session_id)
        return EncryptedSession(self._store.open(*owner, read_only=read_only), self._keys, owner, read_only=read_only)
