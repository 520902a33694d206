"""Sessions in a bucket of S3, Google Cloud Storage, Azure or what speaks their protocols, through obstore.

A session is one small object, its manifest, that every commit replaces by a conditional put, and immutable objects that it names;
``memci.archive.stores.objects.manifest`` shows where they lie.
"""

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakSet

import attrs

from memci.archive import refusal
from memci.archive.catalogue import index_folder
from memci.archive.catalogue.index_folder import MOST_BYTES, IndexPlace
from memci.archive.stores.contract import NewRecord, Record, SessionStore, Usage
from memci.archive.stores.names import check_identifier, check_key, check_page_name, file_name, find_identifier, is_page_name
from memci.archive.stores.objects.io import Found, ObjectIo, connect, each, parse
from memci.archive.stores.objects.manifest import SEGMENTS, SNAPSHOTS, Draft, Manifest, Opened, Part, Snapshot, is_old, owner_of
from memci.archive.stores.record_codec import DamagedLineError, check_redaction, superfluous

if TYPE_CHECKING:
    import os

_PAGES, _BLOBS = "pages", "blobs"
_MOST_AT_ONCE = 8
_NewBodies: TypeAlias = Mapping[int, tuple[bytes, str | None]]  # with the SHA-256 of those that they take the place of


@attrs.define(eq=False)
class _View:
    opening: Opened


class _Journal(_View):
    """An append puts the manifest, after a segment if it would hold more than 64 records or 64 KiB."""

    def head(self) -> int:
        return self.opening.refresh().head

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        opening = self.opening.writable()
        lines = opening.lines.encode_commit(expected, records)
        if opening.known.head != expected:
            opening.refresh()

        def plan(draft: Draft) -> None:
            if draft.manifest.head != expected:
                raise refusal.conflict(expected, draft.manifest.head)
            draft.append(lines, len(records))

        opening.change(plan)
        return expected + len(records)

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        return self._read(max(after, 0), until, 0)

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        """Put what holds the records under other names, and delete every object that holds a former body.

        Where the bucket keeps older versions of objects, it is the bucket's rules that end those. Requests: one for the manifest,
        three for each segment concerned, and one for each thousand segments of the session.
        """
        opening = self.opening.writable()
        check_redaction(bodies, self.head())
        new = {seq: (body, (former or {}).get(seq)) for seq, body in bodies.items()}

        def plan(draft: Draft) -> None:
            base = draft.manifest
            parts = tuple(self._redacted(draft, part, new) for part in base.parts)
            draft.change(parts=parts, tail=self._redacted_lines(base.tail_part, base.tail, new))

        if new:
            self._sweep(opening.change(plan), new)

    def _read(self, after: int, until: int | None, tried: int) -> Iterator[Record]:
        """Yield records; *tried* is the revision that named a segment which was not there."""
        opening = self.opening
        manifest = opening.refresh()
        end = manifest.head if until is None else min(until, manifest.head)
        for part, found in self._runs(manifest, after, end) if after < end else ():
            opening.check_open()
            first = max(part.first, after + 1)
            if found is None:  # a redaction may have replaced the segment since the manifest was read
                if manifest.revision == tried:
                    raise opening.missing(part, first)
                yield from self._read(after, end, manifest.revision)
                return
            for record in self._records(part, found.body, first, min(part.last, end)):
                yield record
                after = record.seq

    def _runs(self, manifest: Manifest, after: int, until: int) -> Iterator[tuple[Part, Found | None]]:
        segments = self._segments(manifest.parts, after, until)
        size = 1
        while batch := list(islice(segments, size)):
            yield from zip(batch, each(self.opening.io.find, [self.opening.place(part) for part in batch]), strict=True)
            size = min(2 * size, _MOST_AT_ONCE)
        if until >= manifest.tail_part.first:
            yield manifest.tail_part, Found(manifest.tail, {})

    def _segments(self, parts: Sequence[Part], after: int, until: int) -> Iterator[Part]:
        for part in parts:
            if part.last > after and part.first <= until:
                if part.level:
                    yield from self._segments(self.opening.list_parts(part), after, until)
                else:
                    yield part

    def _records(self, part: Part, data: bytes, first: int, last: int) -> Iterator[Record]:
        opening = self.opening
        lines = data.splitlines(keepends=True)[first - part.first : last - part.first + 1]
        for seq, line in enumerate(lines, start=first):
            try:
                record = opening.lines.decode(line)
            except DamagedLineError as error:
                raise opening.corrupt(str(error), opening.place(part), seq) from error
            if record.seq != seq:
                raise opening.missing(part, seq)
            yield record
        if len(lines) <= last - first:
            raise opening.missing(part, first + len(lines))

    def _redacted(self, draft: Draft, part: Part, bodies: _NewBodies) -> Part:
        """Return the part with other bodies, which is new if it has one of the records."""
        if not any(map(part.has, bodies)):
            return part
        if part.level:
            return draft.add_list([self._redacted(draft, one, bodies) for one in self.opening.list_parts(part)])
        return draft.add_part(part.first, part.last, self._redacted_lines(part, self.opening.body(part), bodies))

    def _redacted_lines(self, part: Part, data: bytes, bodies: _NewBodies) -> bytes:
        opening = self.opening
        lines = data.splitlines(keepends=True)
        for seq in filter(part.has, bodies):
            if len(lines) != part.last - part.first + 1:
                raise opening.missing(part, seq)
            try:
                lines[seq - part.first] = opening.lines.redact(lines[seq - part.first], *bodies[seq])
            except DamagedLineError as error:
                raise opening.corrupt(str(error), opening.place(part), seq) from error
        return b"".join(lines)

    def _sweep(self, manifest: Manifest, seqs: Collection[int]) -> None:
        """Delete the segments that hold former bodies: those replaced, and those that a crash or a lost race left.

        Whoever makes a segment for a revision after this one knows the new bodies, and whoever does for this one or a former one
        has failed, or is named in the manifest.
        """
        opening = self.opening
        used = {opening.place(part) for seq in seqs for part in self._segments(manifest.parts, seq - 1, seq)}
        paths = [path for path in opening.paths(SEGMENTS) if path not in used]
        opening.io.delete([path for path in paths if is_old(path.rpartition("/")[2], manifest.revision, seqs)])


class _Pages(_View):
    def put(self, pages: Mapping[str, bytes]) -> None:
        opening = self.opening.writable()
        checked = {check_page_name(name): page for name, page in pages.items()}
        if checked and not opening.refresh().revision:
            raise opening.unavailable()
        if checked:
            opening.put_beside({opening.path(_PAGES, name): page for name, page in checked.items()})

    def find(self, name: str) -> bytes | None:
        return self.opening.find(_PAGES, check_page_name(name))

    def names(self) -> Iterator[str]:
        return filter(is_page_name, (path.rpartition("/")[2] for path in self.opening.paths(_PAGES)))

    def remove(self, names: Collection[str]) -> None:
        opening = self.opening.writable()
        wanted = [check_page_name(name) for name in names]
        if wanted and opening.refresh().revision:
            opening.io.delete([opening.path(_PAGES, name) for name in wanted])


class _Blobs(_View):
    """An object for each blob and record that brings it, as nothing keeps those who add and those who delete apart."""

    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:
        opening = self.opening.writable()
        if not opening.refresh().revision:  # an object may come only after the manifest
            return ()
        known = set() if seq else set(self.names())
        opening.put_beside({opening.path(_BLOBS, name, str(seq)): blob for name, blob in blobs.items() if name not in known})
        return blobs

    def find(self, name: str) -> bytes | None:
        data = None
        for path in self.opening.paths(_BLOBS, name):
            found = self.opening.io.find(path)
            if found is not None:
                data = found.body
                if sha256(data).hexdigest() == name:
                    break
        return data

    def names(self) -> Iterator[str]:
        yield from {path.split("/")[-2] for path in self.opening.paths(_BLOBS)}

    def drop(self, names: Collection[str], seq: int) -> None:
        opening = self.opening.writable()
        if opening.refresh().revision:
            paths = [path for name in names for path in opening.paths(_BLOBS, name)]
            opening.io.delete([path for path in paths if int(path.rpartition("/")[2]) <= seq])


class _Snapshots(_View):
    def put(self, seq: int, body: bytes) -> None:
        opening = self.opening.writable()
        if not opening.has_begun():
            raise opening.unavailable()
        line = opening.lines.encode_snapshot(seq, body)
        former: list[Snapshot] = []

        def plan(draft: Draft) -> None:
            kept = {snapshot.seq: snapshot for snapshot in draft.manifest.snapshots}
            former[:] = [kept.pop(seq)] if seq in kept else []
            former.extend(kept.pop(old) for old in superfluous([seq, *kept]) if old != seq)
            draft.change(snapshots=tuple(sorted((*kept.values(), draft.add_snapshot(seq, line)))))

        opening.change(plan)
        opening.io.delete([opening.path(SNAPSHOTS, snapshot.name) for snapshot in former])

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        for snapshot in reversed(self.opening.refresh().snapshots):
            if at_most is None or snapshot.seq <= at_most:
                with suppress(DamagedLineError):
                    return snapshot.seq, self._read(snapshot)
        return None

    def problems(self) -> Iterator[str]:
        for snapshot in self.opening.refresh().snapshots:
            try:
                self._read(snapshot)
            except DamagedLineError as error:
                yield f"{self.opening.path(SNAPSHOTS, snapshot.name)}: {error}; it is not used and can be deleted"

    def clear(self) -> None:
        opening = self.opening.writable()
        if opening.refresh().snapshots:
            opening.change(lambda draft: draft.change(snapshots=()))
        opening.io.delete(list(opening.paths(SNAPSHOTS)))

    def _read(self, snapshot: Snapshot) -> bytes:
        return self.opening.lines.decode_snapshot(self.opening.find(SNAPSHOTS, snapshot.name) or b"", snapshot.seq)


class _Session(Opened):
    """Implements ``SessionStore``; docs/stores.md has the costs. Its index is named after its incarnation, or is in memory."""

    def __init__(
        self, io: ObjectIo, key: tuple[str, str], index_folder: Path | None, index_bytes: int, *, read_only: bool
    ) -> None:
        super().__init__(io, *key, read_only=read_only)
        self.journal = _Journal(self)
        self.pages = _Pages(self)
        self.snapshots = _Snapshots(self)
        self.blobs = _Blobs(self)
        self.durability: str = "fsync"
        self._index_folder = index_folder
        self._index_bytes = index_bytes
        self._indexed = ""

    def index_place(self) -> IndexPlace | None:
        self.has_begun()
        self._indexed, folder = self.known.incarnation, self._index_folder
        return None if folder is None else IndexPlace(folder.parent.parent, folder, self._indexed, self._index_bytes)

    def close(self) -> None:
        had_index = self._index is not None
        super().close()
        is_of_session = self.known.revision and self.known.incarnation == self._indexed
        if had_index and self._index_folder is not None and not self.read_only and not is_of_session:
            index_folder.remove(IndexPlace(self._index_folder, self._index_folder, self._indexed).path)


class ObjectStore:
    """Implements ``memci.archive.stores.contract.Store`` on objects. Any number of machines may use it at once.

    Different sessions may be used by different threads at once; open it in the process that uses it. *index_dir* is a directory
    of this machine for the indexes, of about *index_bytes*; ``None`` keeps each in memory while its session is open.
    docs/stores.md has what is promised.
    """

    def __init__(self, io: ObjectIo, index_dir: "str | os.PathLike[str] | None" = None, index_bytes: int = MOST_BYTES) -> None:
        self.durability: str = "fsync"
        self.io = io
        self._index_dir = None if index_dir is None else Path(index_dir).absolute()
        self._index_bytes = index_bytes
        self._opened: WeakSet[_Session] = WeakSet()

    @classmethod
    def from_url(cls, url: str, durability: str = "fsync") -> "ObjectStore":
        """Return the store of a URL such as ``s3://bucket/prefix?region=eu-central-1``; no request is made yet; see ``parse``."""
        address, options, index_dir, index_bytes = parse(url, durability)
        return cls(ObjectIo(lambda: connect(address, options)), index_dir, index_bytes)

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> SessionStore:
        """Open what is stored of a session; no request is made before something is asked for."""
        key = check_key(tenant, session_id)
        session = _Session(self.io, key, self._index_folder(*key), self._index_bytes, read_only=read_only)
        self._opened.add(session)
        return session

    def sessions(self, tenant: str) -> Iterator[str]:
        """Yield the ids of all sessions, in no order: a request for each thousand, and one for each id of over 180 bytes."""
        for path in self.io.names(f"{file_name(check_identifier(tenant, 'tenant'))}/manifests"):
            name = path.rpartition("/")[2]
            session_id = find_identifier(name) or self._noted_id(tenant, path)
            if session_id is not None and file_name(session_id) == name:
                yield session_id

    def usage(self, tenant: str) -> Usage:
        """Measure the objects of a tenant: a request for each thousand."""
        place, sessions, stored_bytes = file_name(check_identifier(tenant, "tenant")), 0, 0
        for path, size in self.io.sizes(place):
            sessions += path.startswith(f"{place}/manifests/")
            stored_bytes += size
        return Usage(sessions=sessions, stored_bytes=stored_bytes)

    def sweep(self, tenant: str) -> None:
        """Remove the objects of a tenant that no manifest stands for: three requests for each thousand."""
        place = file_name(check_identifier(tenant, "tenant"))
        parts: dict[str, list[str]] = {}
        for path in self.io.names(f"{place}/parts"):
            parts.setdefault(path.split("/")[2], []).append(path)
        for path in self.io.names(f"{place}/manifests"):
            parts.pop(path.rpartition("/")[2], None)
        self.io.delete([path for paths in parts.values() for path in paths])

    def delete(self, tenant: str, session_id: str) -> None:
        """Remove all that is stored of a session; nothing happens where there is none. Durable once it returns.

        The manifest goes first, and with it the session; what a crash then leaves goes with the next call. One request for the
        manifest, one to see whether the id began anew, two for each thousand other objects. The index goes from here only.
        """
        opening = Opened(self.io, *check_key(tenant, session_id), read_only=True)
        self.io.delete([opening.manifest_path])
        left = list(self.io.names(opening.parts_path))
        if left:
            # Objects of a session come after its manifest: those listed are of one that is there by now, or of none.
            kept = opening.path("") if opening.refresh().revision else None
            self.io.delete([path for path in left if kept is None or not path.startswith(kept)])
        folder = self._index_folder(tenant, session_id)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Close the sessions that are still open. May be called twice."""
        for session in list(self._opened):
            session.close()

    def _index_folder(self, tenant: str, session_id: str) -> Path | None:
        return self._index_dir and self._index_dir / file_name(tenant) / file_name(session_id)

    def _noted_id(self, tenant: str, path: str) -> str | None:
        found = self.io.find(path)
        owner = owner_of(found.body) if found else None
        return owner[1] if owner is not None and owner[0] == tenant else None
