"""The manifest of a session in an object store: the one small object on which every commit is a compare-and-set.

It is a line of JSON, and after it the newest records, the *tail*, one line each as ``record_codec`` writes them::

    {"v":1,"sum":"…","manifest":{"tenant":…,"session":…,"incarnation":…,"revision":…,"head":…,"tail":…,
                                 "parts":[[1,1024,1,"1-1024.17-…"],[1025,1088,0,"…"]],"snapshots":[[500,"…"]],"writes":["…"]}}

``sum`` is the first 32 hex digits of the SHA-256 of version, tenant, session and the manifest's JSON; ``tail`` counts the
bytes of the tail. A part of level 0 is a segment: an object that holds the lines of some records. One of level n is an object
that lists parts of level n - 1, so that the manifest's size grows with the logarithm of the history. What an object of a part
holds never changes; its name is that of the revision and write that made it, and no two writes ever make the same name.
"""

import re
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import attrs
import orjson

from memci.archive.stores.record_codec import DamagedLineError
from memci.errors import StoreError

FORMAT_VERSION = 1
TAIL_RECORDS = 64  # that the manifest holds at most, but for the first commit of a session, which it holds whole
TAIL_BYTES = 1 << 16  # of records that the manifest holds at most, with the same exception
SEGMENT_BYTES = 1 << 18  # a segment ends before the record that makes it larger
FAN_OUT = 16  # parts that one list holds
WRITES = 32  # newest writes that the manifest names, so that a writer without an answer can see whether its write was done
SEGMENTS, LISTS, SNAPSHOTS = "segments", "lists", "snapshots"  # folders of the objects that manifests name

_SEALED = re.compile(rb'\{"v":(0|[1-9][0-9]{0,18}),"sum":"([0-9a-f]{32})","(manifest|list)":')
_NAME = re.compile(r"([0-9]+)-([0-9]+)\.([0-9]+)-[0-9a-f]+")
_LINE = re.compile(rb"[^\n]*\n")
_LINE_END = b"}\n"


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


class Snapshot(NamedTuple):
    """A cached state: the record after which it was the state, and the name of its object."""

    seq: int
    name: str


@attrs.frozen(kw_only=True)
class Manifest:
    """What one version of the manifest says.

    Attributes:
        incarnation: Tells the session from others that had the same id before or will have it later.
        revision: Number of this version, from 1; every write of the manifest adds one.
        head: Sequence number of the last record.
        parts: All records before the tail, in order; their levels never rise.
        snapshots: The cached states, in order of their records.
        writes: The ids of the newest writes, the last of which made this version.
        tail: Lines of the newest records.
    """

    incarnation: str
    revision: int = 0
    head: int = 0
    parts: tuple[Part, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    writes: tuple[str, ...] = ()
    tail: bytes = b""

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
        if facts["tail"] != len(tail):
            message = f"{len(tail)} bytes of records follow the manifest and not {facts['tail']}"
            raise DamagedLineError(message)
        manifest = Manifest(
            incarnation=facts["incarnation"],
            revision=facts["revision"],
            head=facts["head"],
            parts=tuple(Part(*part) for part in facts["parts"]),
            snapshots=tuple(Snapshot(*snapshot) for snapshot in facts["snapshots"]),
            writes=tuple(facts["writes"]),
            tail=tail,
        )
        lines, records = tail.count(b"\n"), manifest.head - manifest.tail_part.first + 1
        if lines != records:  # else what is appended would get other numbers once the tail becomes a segment
            message = f"{lines} lines of records follow the manifest and not {records}"
            raise DamagedLineError(message)
        return manifest

    def encode_list(self, parts: Sequence[Part]) -> bytes:
        """Return the body of a list of parts."""
        return self._seal(b"list", orjson.dumps(parts, default=list))

    def decode_list(self, part: Part, body: bytes) -> list[Part]:
        """Return the parts that make up *part*, which is a list."""
        parts = [Part(*fields) for fields in orjson.loads(self._unseal(b"list", body))]
        if not parts or (parts[0].first, parts[-1].last, parts[0].level) != (part.first, part.last, part.level - 1):
            message = f"it is no list of the records {part.first} to {part.last}"
            raise DamagedLineError(message)
        return parts

    def _seal(self, kind: bytes, body: bytes) -> bytes:
        return b'{"v":%d,"sum":"%b","%b":%b}\n' % (FORMAT_VERSION, self._sum(kind, b"%d" % FORMAT_VERSION, body), kind, body)

    def _unseal(self, kind: bytes, line: bytes) -> bytes:
        match = _SEALED.match(line)
        if match is None or not line.endswith(_LINE_END) or match[3] != kind:
            message = f"it is no {kind.decode()}"
            raise DamagedLineError(message)
        body = line[match.end() : -len(_LINE_END)]
        if self._sum(kind, match[1], body) != match[2]:
            message = "the checksum does not match"
            raise DamagedLineError(message)
        if int(match[1]) != FORMAT_VERSION:
            message = f"format version {match[1].decode()} was written by a newer memci: upgrade memci to read it"
            raise StoreError(message)
        return body

    def _sum(self, kind: bytes, version: bytes, body: bytes) -> bytes:
        head = orjson.dumps([version.decode(), *self._owner.values(), kind.decode()])
        return sha256(head + body).hexdigest()[:32].encode()


class Draft:
    """The next version of a manifest in the making. Reads and writes nothing.

    Attributes:
        manifest: The next version as planned so far; at first it says what *base* says, and that *write*, an id, made it.
        objects: What has to be put before it, by path below the incarnation.
    """

    def __init__(self, codec: ManifestCodec, base: Manifest, write: str) -> None:
        self.manifest = attrs.evolve(base, revision=base.revision + 1, writes=(*base.writes, write)[-WRITES:])
        self.objects: dict[str, bytes] = {}
        self._codec = codec
        self._mark = f"{self.manifest.revision}-{write}"

    def change(self, **fields: Any) -> None:  # noqa: ANN401 (as attrs.evolve takes them)
        """Plan other fields of the manifest."""
        self.manifest = attrs.evolve(self.manifest, **fields)

    def append(self, lines: bytes, count: int) -> None:
        """Plan a commit of so many records: into the tail while it has room, else into segments.

        The first commit of a session is kept in the tail whatever its size: before the manifest is there, no object of a
        session can be told from what a deleted one left.
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
            parts.append(self.add_segment(first, last, bytes(segment)))
            first = last + 1
        self.change(head=head, parts=tuple(self._folded(parts)), tail=b"")

    def add_segment(self, first: int, last: int, lines: bytes) -> Part:
        """Plan an object for the lines of records."""
        return self._part(first, last, 0, lines)

    def add_list(self, parts: Sequence[Part]) -> Part:
        """Plan an object that lists parts of one level."""
        return self._part(parts[0].first, parts[-1].last, parts[0].level + 1, self._codec.encode_list(parts))

    def add_snapshot(self, seq: int, body: bytes) -> Snapshot:
        """Plan an object for a state."""
        snapshot = Snapshot(seq, f"{seq}-{self._mark}")
        self.objects[f"{SNAPSHOTS}/{snapshot.name}"] = body
        return snapshot

    def _part(self, first: int, last: int, level: int, body: bytes) -> Part:
        part = Part(first, last, level, f"{first}-{last}.{self._mark}")
        self.objects[part.path] = body
        return part

    def _folded(self, parts: list[Part]) -> list[Part]:
        """Put the oldest parts of a level into a list, while it has twice as many as a list takes."""
        level = 0
        while level <= parts[0].level:
            run = [part for part in parts if part.level == level]
            if len(run) < 2 * FAN_OUT:
                level += 1
                continue
            start = parts.index(run[0])
            parts[start : start + FAN_OUT] = [self.add_list(run[:FAN_OUT])]
        return parts


def owner_of(body: bytes) -> tuple[str, str] | None:
    """Return tenant and session id of a manifest that one does not know the session of, ``None`` where it is damaged."""
    match = _SEALED.match(body)
    try:
        facts = orjson.loads(body[match.end() : body.index(_LINE_END, match.end())]) if match else {}
        owner = (str(facts["tenant"]), str(facts["session"]))
        ManifestCodec(*owner).decode(body)
    except (DamagedLineError, ValueError, KeyError, TypeError):
        return None
    return owner


def is_former(name: str, revision: int, seqs: Collection[int]) -> bool:
    """Tell whether a segment of this name was made for that revision or an older one, and has one of the records."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    first, last, made = map(int, match.groups())
    return made <= revision and any(first <= seq <= last for seq in seqs)
