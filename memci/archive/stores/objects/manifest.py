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
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

import attrs
import orjson

from memci.archive.stores.record_codec import DamagedLineError
from memci.errors import StoreError

FORMAT_VERSION = 1
"""Version of the manifests that are written here."""

TAIL_RECORDS = 64
"""Records that the manifest holds at most, but for the first commit of a session, which it holds whole."""

TAIL_BYTES = 1 << 16
"""Bytes of records that the manifest holds at most, with the same exception."""

SEGMENT_BYTES = 1 << 18
"""A segment ends before the record that makes it larger."""

FAN_OUT = 16
"""Parts that one list holds."""

WRITES = 32
"""Newest writes that the manifest names, so that a writer without an answer can see whether its write was done."""

_SEALED = re.compile(rb'\{"v":(0|[1-9][0-9]{0,18}),"sum":"([0-9a-f]{32})","(manifest|list)":')
_LINE_END = b"}\n"


class Part(NamedTuple):
    """A run of records outside the manifest.

    Attributes:
        first: The first record's sequence number.
        last: That of the last one.
        level: 0 for a segment, n for a list of parts of level n - 1.
        name: The object's name below the folder of its level.
    """

    first: int
    last: int
    level: int
    name: str


class Snapshot(NamedTuple):
    """A cached state.

    Attributes:
        seq: The record after which it was the state.
        name: The object's name.
    """

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
    def tail_first(self) -> int:
        """Sequence number of the first record in the tail, or of the next one where the tail is empty."""
        return self.parts[-1].last + 1 if self.parts else 1

    def holds(self, write: str, revision: int) -> bool | None:
        """Tell whether a write made the version of that number; ``None`` where it is too long ago."""
        age = self.revision - revision
        if age >= len(self.writes):
            return None
        return age >= 0 and self.writes[-1 - age] == write


class Change(NamedTuple):
    """A new version of the manifest, and what has to be written before it.

    Attributes:
        manifest: The new version, as it is but for revision and writes.
        objects: Bodies of new parts.
    """

    manifest: Manifest
    objects: dict[Part, bytes]


class ManifestCodec:
    """Writes and reads manifests and lists of one session; those of another fail their checksum."""

    def __init__(self, tenant: str, session_id: str) -> None:
        self._owner = {"tenant": tenant, "session": session_id}

    def encode(self, manifest: Manifest) -> bytes:
        """Return the bytes of the object."""
        facts = self._owner | attrs.asdict(manifest, recurse=False)
        facts |= {"parts": _rows(manifest.parts), "snapshots": _rows(manifest.snapshots), "tail": len(manifest.tail)}
        return self._seal(b"manifest", orjson.dumps(facts)) + manifest.tail

    def decode(self, body: bytes) -> Manifest:
        """Read a manifest.

        Raises:
            DamagedLineError: It is not what was written, or of another session.
            StoreError: A newer memci wrote it.
        """
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
        lines, records = tail.count(b"\n"), manifest.head - manifest.tail_first + 1
        if lines != records:  # else what is appended would get other numbers once the tail becomes a segment
            message = f"{lines} lines of records follow the manifest and not {records}"
            raise DamagedLineError(message)
        return manifest

    def encode_list(self, parts: Sequence[Part]) -> bytes:
        """Return the body of a list of parts."""
        return self._seal(b"list", orjson.dumps(_rows(parts)))

    def decode_list(self, part: Part, body: bytes) -> list[Part]:
        """Return the parts that make up *part*, which is a list.

        Raises:
            DamagedLineError: It is not what was written, or not the list of these records.
            StoreError: A newer memci wrote it.
        """
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


class Planner:
    """Plans new versions of a manifest. Reads and writes nothing.

    Args:
        codec: Of the session.
        base: The version to go on from.
        write: An id that no other write has.
    """

    def __init__(self, codec: ManifestCodec, base: Manifest, write: str) -> None:
        self._codec = codec
        self._base = base
        self._write = write

    def append(self, lines: bytes, count: int) -> Change:
        """Plan a commit of so many records: into the tail while it has room, else into segments.

        The first commit of a session is kept in the tail whatever its size: before the manifest is there, no object of a
        session can be told from what a deleted one left.
        """
        base = self._base
        head = base.head + count
        fits = head - base.tail_first < TAIL_RECORDS and len(base.tail) + len(lines) <= TAIL_BYTES
        if fits or not base.head:
            return self._change(attrs.evolve(base, head=head, tail=base.tail + lines), {})
        is_large = count > TAIL_RECORDS or len(lines) > TAIL_BYTES
        moved, tail = (base.tail + lines, b"") if is_large else (base.tail, lines)
        objects = {}
        first = base.tail_first
        for segment in _segments(moved):
            last = first + segment.count(b"\n") - 1
            objects[self.part(first, last, 0)] = segment
            first = last + 1
        parts, lists = self._folded([*base.parts, *objects])
        return self._change(attrs.evolve(base, head=head, parts=tuple(parts), tail=tail), objects | lists)

    def replace(self, parts: Sequence[Part], tail: bytes, objects: dict[Part, bytes]) -> Change:
        """Plan other bodies for the same records."""
        return self._change(attrs.evolve(self._base, parts=tuple(parts), tail=tail), objects)

    def keep(self, snapshots: Sequence[Snapshot]) -> Change:
        """Plan another choice of snapshots."""
        return self._change(attrs.evolve(self._base, snapshots=tuple(sorted(snapshots))), {})

    def encode_list(self, parts: Sequence[Part]) -> bytes:
        """Return the body of a list of parts."""
        return self._codec.encode_list(parts)

    def part(self, first: int, last: int, level: int) -> Part:
        """Name an object for a run of records."""
        return Part(first, last, level, f"{first}-{last}.{self._base.revision + 1}-{self._write}")

    def _folded(self, parts: list[Part]) -> tuple[list[Part], dict[Part, bytes]]:
        """Put the oldest parts of a level into a list, while it has twice as many as a list takes."""
        lists = {}
        level = 0
        while level <= parts[0].level:
            run = [part for part in parts if part.level == level]
            if len(run) < 2 * FAN_OUT:
                level += 1
                continue
            made = self.part(run[0].first, run[FAN_OUT - 1].last, level + 1)
            lists[made] = self._codec.encode_list(run[:FAN_OUT])
            start = parts.index(run[0])
            parts[start : start + FAN_OUT] = [made]
        return parts, lists

    def _change(self, manifest: Manifest, objects: dict[Part, bytes]) -> Change:
        writes = (*self._base.writes, self._write)[-WRITES:]
        return Change(attrs.evolve(manifest, revision=self._base.revision + 1, writes=writes), objects)


def owner_of(body: bytes) -> tuple[str, str] | None:
    """Return tenant and session id of a manifest that one does not know the session of, ``None`` where it is damaged."""
    match = _SEALED.match(body)
    if match is None:
        return None
    try:
        facts = orjson.loads(body[match.end() : body.index(_LINE_END, match.end())])
        owner = (str(facts["tenant"]), str(facts["session"]))
        ManifestCodec(*owner).decode(body)
    except (DamagedLineError, ValueError, KeyError, TypeError):
        return None
    return owner


def _rows(values: Sequence[Part] | Sequence[Snapshot]) -> list[list[object]]:
    return [list(value) for value in values]


def made_in(name: str) -> int | None:
    """Return the revision that an object's name says, or ``None`` where it is no part's name."""
    match = re.fullmatch(r"[0-9]+-[0-9]+\.([0-9]+)-[0-9a-f]+", name)
    return int(match[1]) if match else None


def overlaps(name: str, seqs: Sequence[int]) -> bool:
    """Tell whether a part of this name has one of the records."""
    first, last = (int(number) for number in name.partition(".")[0].split("-"))
    return any(first <= seq <= last for seq in seqs)


def _segments(lines: bytes) -> Iterator[bytes]:
    """Cut lines into runs of at most ``SEGMENT_BYTES`` each; a longer line is one by itself."""
    start = end = 0
    while end < len(lines):
        after = lines.index(b"\n", end) + 1
        if after - start > SEGMENT_BYTES and end > start:
            yield lines[start:end]
            start = end
        end = after
    if end > start:
        yield lines[start:end]
