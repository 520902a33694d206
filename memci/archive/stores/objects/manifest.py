"""The manifest of a session in an object store: the one small object on which every commit is a compare-and-set.

docs/stores.md names the objects beside it. The manifest is a line of JSON, and after it the newest records, the *tail*, one line
each as ``record_codec`` writes them::

    {"v":1,"sum":"…","manifest":{"tenant":…,"session":…,"incarnation":…,"revision":…,"head":…,"tail":…,
                                 "parts":[[1,1024,1,"1-1024.17-…"],[1025,1088,0,"…"]],"snapshots":[[500,"…"]],"writes":["…"]}}

``sum`` is the first 32 hex digits of the SHA-256 of version, tenant, session and the manifest's JSON; ``tail`` counts the bytes
of the tail. A part of level 0 is a segment, an object that holds the lines of some records; one of level n lists parts of level
n - 1, so that the manifest grows with the logarithm of the history. The object of a part never changes: its name is that of the
revision and write that made it, and no two writes ever make the same name.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import starmap
from typing import Any, NamedTuple
from uuid import uuid4

import attrs
import orjson

from memci.archive import refusal
from memci.archive.stores.names import file_name
from memci.archive.stores.objects.io import ObjectIo, RejectedError, UnchangedError, Version, each
from memci.archive.stores.opened_session import OpenedSession
from memci.archive.stores.record_codec import DamagedLineError, LineCodec
from memci.errors import CorruptError, StoreError, UnavailableError

FORMAT_VERSION = 1
TAIL_RECORDS = 64  # that the manifest holds at most, but for the first commit of a session, which it holds whole
TAIL_BYTES = 1 << 16  # of records that the manifest holds at most, with the same exception
SEGMENT_BYTES = 1 << 18  # a segment ends before the record that makes it larger
FAN_OUT = 16  # parts that one list holds
WRITES = 32  # newest writes that the manifest names, so that a writer without an answer can see whether its write was done
ATTEMPTS = 100  # to make a new version, where somebody else was faster
SEGMENTS, LISTS, SNAPSHOTS = "segments", "lists", "snapshots"  # folders of the objects that manifests name

_SEALED = re.compile(rb'\{"v":([0-9]{1,19}),"sum":"[0-9a-f]{32}","[a-z]+":(.*)\}\n')
_NAME = re.compile(r"([0-9]+)-([0-9]+)\.([0-9]+)-[0-9a-f]+")
_LINE = re.compile(rb"[^\n]*\n")


class Part(NamedTuple):
    """The records from *first* to *last*: their lines where *level* is 0, else a list of parts of the level below."""

    first: int
    last: int
    level: int
    name: str

    @property
    def path(self) -> str:
        """Where its object lies below the incarnation; empty for the tail, which has none."""
        return self.name and f"{LISTS if self.level else SEGMENTS}/{self.name}"

    def has(self, seq: int) -> bool:
        """Return whether it holds a record."""
        return self.first <= seq <= self.last


class Snapshot(NamedTuple):
    """A cached state: the record after which it was the state, and the name of its object."""

    seq: int
    name: str


@attrs.frozen(kw_only=True)
class Manifest:
    """What one version of the manifest says."""

    incarnation: str  # tells the session from others that had the same id before or will have it later
    revision: int = 0  # number of this version, from 1; every write of the manifest adds one
    head: int = 0  # sequence number of the last record
    parts: tuple[Part, ...] = ()  # all records before the tail, in order; their levels never rise
    snapshots: tuple[Snapshot, ...] = ()  # the cached states, in order of their records
    writes: tuple[str, ...] = ()  # the ids of the newest writes, the last of which made this version
    tail: bytes = b""  # lines of the newest records

    @property
    def tail_part(self) -> Part:
        """The records of the tail; the first of them is the next record where the tail is empty."""
        return Part(self.parts[-1].last + 1 if self.parts else 1, self.head, 0, "")


class ManifestCodec:
    """Writes and reads manifests and lists of one session; those of another fail their checksum.

    Reading raises ``DamagedLineError`` for what is not what was written, and ``StoreError`` for what a newer memci wrote.
    """

    def __init__(self, tenant: str, session_id: str) -> None:
        self._owner = {"tenant": tenant, "session": session_id}

    def encode(self, manifest: Manifest) -> bytes:
        """Return the bytes of the object."""
        facts = self._owner | attrs.asdict(manifest, recurse=False) | {"tail": len(manifest.tail)}
        return self._seal(b"manifest", orjson.dumps(facts, default=list)) + manifest.tail

    def decode(self, body: bytes) -> Manifest:
        """Read a manifest."""
        head, _, tail = body.partition(b"\n")
        facts = orjson.loads(self._unseal(b"manifest", head + b"\n"))
        manifest = Manifest(
            incarnation=facts["incarnation"],
            revision=facts["revision"],
            head=facts["head"],
            parts=tuple(starmap(Part, facts["parts"])),
            snapshots=tuple(starmap(Snapshot, facts["snapshots"])),
            writes=tuple(facts["writes"]),
            tail=tail,
        )
        # Where there is another number of lines, what is appended would get other numbers once the tail becomes a segment.
        found, wanted = (len(tail), tail.count(b"\n")), (facts["tail"], manifest.head - manifest.tail_part.first + 1)
        if found != wanted:
            message = "{} bytes in {} lines of records follow the manifest and not {} in {}".format(*found, *wanted)
            raise DamagedLineError(message)
        return manifest

    def encode_list(self, parts: Sequence[Part]) -> bytes:
        """Return the body of a list of parts."""
        return self._seal(b"list", orjson.dumps(parts, default=list))

    def decode_list(self, part: Part, body: bytes) -> list[Part]:
        """Return the parts that make up *part*, which is a list."""
        parts = list(starmap(Part, orjson.loads(self._unseal(b"list", body))))
        if not parts or (parts[0].first, parts[-1].last, parts[0].level) != (part.first, part.last, part.level - 1):
            message = f"it is no list of the records {part.first} to {part.last}"
            raise DamagedLineError(message)
        return parts

    def _seal(self, kind: bytes, body: bytes, version: bytes = b"%d" % FORMAT_VERSION) -> bytes:
        head = orjson.dumps([version.decode(), *self._owner.values(), kind.decode()])
        checksum = sha256(head + body).hexdigest()[:32].encode()
        return b'{"v":%b,"sum":"%b","%b":%b}\n' % (version, checksum, kind, body)

    def _unseal(self, kind: bytes, line: bytes) -> bytes:
        match = _SEALED.fullmatch(line)
        if match is None or self._seal(kind, match[2], match[1]) != line:
            message = f"it is no {kind.decode()} of this session with the right checksum"
            raise DamagedLineError(message)
        if int(match[1]) != FORMAT_VERSION:
            message = f"format version {match[1].decode()} was written by a newer memci: upgrade memci to read it"
            raise StoreError(message)
        return match[2]


class Draft:
    """The next version of a manifest in the making: at first it says what *base* says, and that *write*, an id, made it."""

    def __init__(self, codec: ManifestCodec, base: Manifest, write: str) -> None:
        self.manifest = attrs.evolve(base, revision=base.revision + 1, writes=(*base.writes, write)[-WRITES:])
        self.objects: dict[str, bytes] = {}  # what has to be put before it, by path below the incarnation
        self._codec = codec
        self._mark = f"{self.manifest.revision}-{write}"

    def change(self, **fields: Any) -> None:  # noqa: ANN401 (as attrs.evolve takes them)
        """Plan other fields of the manifest."""
        self.manifest = attrs.evolve(self.manifest, **fields)

    def append(self, lines: bytes, count: int) -> None:
        """Plan a commit of so many records: into the tail while it has room, else into segments.

        The first commit of a session is kept in the tail whatever its size: before the manifest is there, no object of a session
        can be told from what a deleted one left.
        """
        base = self.manifest
        first, head, tail = base.tail_part.first, base.head + count, base.tail + lines
        if not base.head or (head - first < TAIL_RECORDS and len(tail) <= TAIL_BYTES):
            self.change(head=head, tail=tail)
            return
        segments = [bytearray()]
        for line in _LINE.findall(tail):
            if segments[-1] and len(segments[-1]) + len(line) > SEGMENT_BYTES:
                segments.append(bytearray())
            segments[-1] += line
        parts = list(base.parts)
        for segment in segments:
            last = first + segment.count(b"\n") - 1
            parts.append(self.add_part(first, last, bytes(segment)))
            first = last + 1
        self.change(head=head, parts=tuple(self._folded(parts)), tail=b"")

    def add_part(self, first: int, last: int, body: bytes, level: int = 0) -> Part:
        """Plan an object for the lines of records, or for a list of a level above 0."""
        part = Part(first, last, level, f"{first}-{last}.{self._mark}")
        self.objects[part.path] = body
        return part

    def add_list(self, parts: Sequence[Part]) -> Part:
        """Plan an object that lists parts of one level."""
        return self.add_part(parts[0].first, parts[-1].last, self._codec.encode_list(parts), parts[0].level + 1)

    def add_snapshot(self, seq: int, body: bytes) -> Snapshot:
        """Plan an object for a state."""
        snapshot = Snapshot(seq, f"{seq}-{self._mark}")
        self.objects[f"{SNAPSHOTS}/{snapshot.name}"] = body
        return snapshot

    def _folded(self, parts: list[Part]) -> list[Part]:
        """Put the oldest parts of a level into a list, while it has twice as many as a list takes."""
        level = 0
        while level <= parts[0].level:
            run = [part for part in parts if part.level == level]
            if len(run) < 2 * FAN_OUT:
                level += 1
            else:
                start = parts.index(run[0])
                parts[start : start + FAN_OUT] = [self.add_list(run[:FAN_OUT])]
        return parts


def owner_of(body: bytes) -> tuple[str, str] | None:
    """Return tenant and session id of a manifest that one does not know the session of, ``None`` where it is damaged."""
    try:
        facts = orjson.loads(body.partition(b"\n")[0])["manifest"]
        owner = (str(facts["tenant"]), str(facts["session"]))
        ManifestCodec(*owner).decode(body)
    except (ValueError, KeyError, TypeError):
        return None
    return owner


def is_old(name: str, revision: int, seqs: Collection[int]) -> bool:
    """Tell whether a segment of this name was made for that revision or an older one, and has one of the records."""
    match = _NAME.fullmatch(name)
    return match is not None and int(match[3]) <= revision and any(map(Part(int(match[1]), int(match[2]), 0, name).has, seqs))


class Opened(OpenedSession):
    """What journal, pages, snapshots and blobs of one opened session share. Calls raise what the contract of stores says."""

    def __init__(self, io: ObjectIo, tenant: str, session_id: str, *, read_only: bool) -> None:
        super().__init__(session_id, read_only=read_only)
        self.lines = LineCodec(tenant, session_id)
        self.io = io
        self.manifest_path = f"{file_name(tenant)}/manifests/{file_name(session_id)}"
        self.parts_path = f"{file_name(tenant)}/parts/{file_name(session_id)}"  # of all sessions that had and have this id
        self.known = Manifest(incarnation=uuid4().hex)  # as it was seen last; of revision 0 before the session was seen or begun
        self._version: Version | None = None  # of what is known
        self._codec = ManifestCodec(tenant, session_id)

    def writable(self) -> "Opened":
        """Return this, where ``check_writable`` raises nothing."""
        self.check_writable()
        return self

    def refresh(self) -> Manifest:
        """Return the manifest as it is now, see ``known``. One request, without body if unchanged."""
        self.check_open()
        try:
            found = self.io.find(self.manifest_path, self._version)
        except UnchangedError:
            return self.known
        if found is not None:
            try:
                manifest = self._codec.decode(found.body)
            except DamagedLineError as error:
                raise self.corrupt(str(error), self.manifest_path) from error
            if not self.known.revision or manifest.incarnation == self.known.incarnation:
                self.known, self._version = manifest, found.version
                return manifest
        if self.known.revision:
            raise refusal.deleted(self.session_id)
        return self.known

    def has_begun(self) -> bool:
        """Return whether the session has begun; it asks only if it did not know that it has."""
        self.check_open()
        return bool(self.known.revision or self.refresh().revision)

    def change(self, plan: Callable[[Draft], None]) -> Manifest:
        """Make a new version of the manifest and return it. Durable once it returns; after an error it may be done all the same.

        One request, and one before it where the plan needs other objects. Where somebody else was faster the plan is asked again.
        """
        write = uuid4().hex[:16]
        for _ in range(ATTEMPTS):
            draft = Draft(self._codec, self.known, write)
            plan(draft)
            new, objects = draft.manifest, {self.path(path): body for path, body in draft.objects.items()}
            each(self.io.put, objects, objects.values())
            try:
                body, version = self._codec.encode(new), self._version
                self._version = self.io.put(self.manifest_path, body, "create" if version is None else version)
                self.known = new
            except (RejectedError, UnavailableError) as failure:
                if not self._is_done(new, objects, failure):
                    continue
            return self.known
        reason = f"others wrote {ATTEMPTS} times before this could: do it again"
        raise self.unavailable(reason)

    def put_beside(self, objects: Mapping[str, bytes]) -> None:
        """Put objects that the manifest does not name; if the session was deleted meanwhile, they do not stay. n + 1 requests."""
        each(self.io.put, objects, objects.values())
        try:
            self.refresh()
        except UnavailableError:
            self._remove_if_deleted(objects)
            raise

    def find(self, *names: str) -> bytes | None:
        """Return an object of this incarnation, ``None`` where there is none. One request."""
        found = self.io.find(self.path(*names)) if self.has_begun() else None
        return found.body if found else None

    def paths(self, *names: str) -> Iterator[str]:
        """Yield the paths of the objects in a folder of this incarnation. One request for each thousand."""
        if self.has_begun():
            yield from self.io.names(self.path(*names))

    def path(self, *names: str) -> str:
        """Return the path of an object, or of a folder of them, of this incarnation."""
        return "/".join((self.parts_path, self.known.incarnation, *names))

    def place(self, part: Part) -> str:
        """Return the path of what holds the records of a part."""
        return self.path(part.path) if part.path else self.manifest_path

    def body(self, part: Part) -> bytes:
        """Return the object of a part, which has to be there. One request."""
        body = self.find(part.path)
        if body is None:
            raise self.missing(part, part.first)
        return body

    def list_parts(self, part: Part) -> list[Part]:
        """Return the parts of which a list tells. One request."""
        try:
            return self._codec.decode_list(part, self.body(part))
        except DamagedLineError as error:
            raise self.corrupt(str(error), self.place(part), part.first) from error

    def corrupt(self, reason: str, place: str, seq: int | None = None) -> CorruptError:
        """Make the error for damage."""
        return CorruptError(reason, session=self.session_id, place=place, seq=seq)

    def missing(self, part: Part, seq: int) -> CorruptError:
        """Make the error for a record that is not there, or whose object is not."""
        return self.corrupt(f"the record {seq} is missing", self.place(part), seq)

    def unavailable(self, reason: str = "it has no record yet: append to its journal first") -> UnavailableError:
        """Make the error for what cannot be done now."""
        return UnavailableError(f"session {self.session_id!r}: {reason}")

    def _is_done(self, tried: Manifest, objects: Collection[str], failure: Exception) -> bool:
        """Return whether a put of a manifest took effect without saying so; what is now is known then.

        What the driver repeats is refused the second time. A put without an answer that is not found may still take effect: then
        *failure* is raised, and its objects stay.
        """
        has_answer = isinstance(failure, RejectedError)
        try:
            current = self.refresh()
        except UnavailableError as error:
            self._remove_if_deleted(objects)
            raise (error if has_answer else failure) from None
        if current.incarnation == tried.incarnation:
            if tried.writes[-1] in current.writes:
                return True
            if current.revision - tried.revision >= WRITES:
                reason = "others wrote so often that nobody knows whether this was done: refresh and look"
                raise self.unavailable(reason)
        if not has_answer:
            raise failure
        # The version that it was to replace never comes back, so nothing will ever refer to its objects.
        with suppress(UnavailableError):  # what stays is in nobody's way, and goes with the session
            self.io.delete(objects)
        return False

    def _remove_if_deleted(self, paths: Collection[str]) -> None:
        """Delete objects of a session that is gone by now, as far as that can be told and done."""
        with suppress(StoreError, DamagedLineError):
            found = self.io.find(self.manifest_path) if paths else None
            if found is None or self._codec.decode(found.body).incarnation != self.known.incarnation:
                self.io.delete(paths)
