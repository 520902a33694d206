r"""Pictures, sound and files apart from the records that hold them: a tenant's are stored once each, by what they are.

In records, page files and snapshots a reference stands in the place of a long run of base64: ``\/blobs\/`` and the SHA-256 of
the run in hex. It is good JSON, and nobody's text: what memci writes as JSON never has a slash that is escaped.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

import attrs

from memci.archive.stores.contract import Journal, NewRecord, Pages, Record, SessionStore, Snapshots
from memci.archive.stores.record_codec import SEALED, redacted_meanwhile
from memci.errors import CorruptError, EncryptionError
from memci.messages.base64_runs import BEGIN, LEAST_CHARACTERS, RUN, has_run, is_data

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex

# The letters of an escape before a run are no part of it.
_RUN = re.compile(rf"{BEGIN}((?:(?<=\\)(?:u[0-9a-f]{{4}}|[a-z]))?+)({RUN})".encode())
_MARK = rb"\/blobs\/"
_REFERENCE = re.compile(re.escape(_MARK) + rb"([0-9a-f]{64})")


def taken_out(body: bytes) -> tuple[bytes, dict[str, bytes]]:
    """Return compact JSON with references in the place of long runs of base64, and these by their SHA-256 in hex. O(its size)."""
    blobs: dict[str, bytes] = {}

    def refer(found: re.Match[bytes]) -> bytes:
        if not is_data(found[2].decode()):
            return found[0]
        name = sha256(found[2]).hexdigest()
        blobs[name] = found[2]
        return found[1] + _MARK + name.encode()

    return _RUN.sub(refer, body) if has_run(body) else body, blobs


def put_back(body: bytes, find: Callable[[str], bytes]) -> bytes:
    """Return what ``taken_out`` was given, byte for byte; *find* gives the bytes of a name."""
    return _REFERENCE.sub(lambda found: find(found[1].decode()), body) if _MARK in body else body


def named(body: bytes) -> set[str]:
    """Return the names that stand in what ``taken_out`` gave."""
    return {found[1].decode() for found in _REFERENCE.finditer(body)} if _MARK in body else set()


class _BlobJournal:
    def __init__(self, journal: Journal, session: "BlobSession") -> None:
        self.head = journal.head
        self._journal = journal
        self._session = session

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        if max(map(len, [record.body for record in records]), default=0) < LEAST_CHARACTERS:
            return self._journal.append(expected, records)  # too short to hold a run
        bodies = self._session.stored([record.body for record in records], expected + len(records))
        stored = [NewRecord(record.kind, record.version, body) for record, body in zip(records, bodies, strict=True)]
        return self._journal.append(expected, stored)

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        for record in self._journal.read(after, until):
            body = self._session.restored(record.body, record.seq)
            yield record if body is record.body else attrs.evolve(record, body=body)

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        """Redact what is stored; the SHA-256 of what was read is looked up for that of what is stored. Reads up to the last."""
        stored: dict[int, str] = {}
        read = {seq: sha for seq, sha in (former or {}).items() if seq in bodies}
        for record in self._journal.read(min(read) - 1, max(read)) if read else ():
            if record.seq in read:
                if sha256(self._session.restored(record.body, record.seq)).hexdigest() != read[record.seq]:
                    raise redacted_meanwhile(record.seq)
                stored[record.seq] = sha256(record.body).hexdigest()
        texts = self._session.stored(list(bodies.values()), max(bodies, default=0))
        self._journal.redact(dict(zip(bodies, texts, strict=True)), stored)


class _BlobPages:
    """A page whose pictures are not there is not there."""

    def __init__(self, pages: Pages, session: "BlobSession") -> None:
        self.names = pages.names
        self.remove = pages.remove
        self._pages = pages
        self._session = session

    def put(self, pages: Mapping[str, bytes]) -> None:
        self._pages.put(dict(zip(pages, self._session.stored(list(pages.values()), 0), strict=True)))

    def find(self, name: str) -> bytes | None:
        text = self._pages.find(name)
        try:
            return None if text is None else self._session.restored(text)
        except CorruptError:
            return None


class _BlobSnapshots:
    def __init__(self, snapshots: Snapshots, session: "BlobSession") -> None:
        self.problems = snapshots.problems
        self.clear = snapshots.clear
        self._snapshots = snapshots
        self._session = session

    def put(self, seq: int, body: bytes) -> None:
        self._snapshots.put(seq, *self._session.stored([body], 0))

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        found = self._snapshots.find(at_most)
        while found is not None:
            try:
                return found[0], self._session.restored(found[1])
            except CorruptError:
                found = self._snapshots.find(found[0] - 1)
        return None


class BlobSession:
    """Implements ``memci.archive.stores.contract.SessionStore`` on another one, which gets references and blobs unseen."""

    def __init__(self, session: SessionStore, session_id: str) -> None:
        self.durability = session.durability
        self.blobs = session.blobs
        self.journal: Journal = _BlobJournal(session.journal, self)
        self.pages: Pages = _BlobPages(session.pages, self)
        self.indexed_seq = session.indexed_seq
        self.rest = session.rest
        self.close = session.close
        self._session = session
        self._session_id = session_id

    @property
    def snapshots(self) -> Snapshots:
        """The cached states."""
        return _BlobSnapshots(self._session.snapshots, self)

    @property
    def index(self) -> "PageIndex":
        """Page facts and search, as the store has them."""
        return self._session.index

    def stored(self, bodies: Sequence[bytes], seq: int) -> list[bytes]:
        """Return bodies as they are stored, for records up to *seq*, 0 for copies of records; what they refer to is safe."""
        taken = [taken_out(body) for body in bodies]
        blobs = {name: blob for _, found in taken for name, blob in found.items()}
        kept = set(self.blobs.put(blobs, seq) if blobs else ())
        return [text if found.keys() <= kept else body for body, (text, found) in zip(bodies, taken, strict=True)]

    def restored(self, text: bytes, seq: int | None = None) -> bytes:
        """Return a body as it was. Raises ``CorruptError`` where what it refers to is missing or damaged.

        ``EncryptionError`` where it is ciphertext, as no key was given.
        """
        if text.startswith(SEALED):
            raise EncryptionError(self._session_id, text[len(SEALED) :].partition(b'"')[0].decode())

        def find(name: str) -> bytes:
            data = self.blobs.find(name)
            if data is None or sha256(data).hexdigest() != name:
                problem = f"it is {'missing' if data is None else 'damaged'}: append it again, or restore a backup"
                raise CorruptError(problem, session=self._session_id, place=f"blob {name}", seq=seq)
            return data

        return put_back(text, find)

    def drop_unused(self) -> None:
        """Let go of what no record refers to any more, after a redaction. O(history), where there are blobs."""
        names = set(self.blobs.names())
        seq = 0
        for record in self._session.journal.read() if names else ():
            names -= named(record.body)
            seq = record.seq
        if names:
            self.blobs.drop(names, seq)
