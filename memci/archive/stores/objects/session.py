"""What is stored of one session: its journal on the manifest and immutable segments, and pages, snapshots and blobs beside."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from memci.archive import refusal
from memci.archive.stores.contract import NewRecord, Record
from memci.archive.stores.names import check_page_name, is_page_name
from memci.archive.stores.objects.manifest import SEGMENTS, SNAPSHOTS, Draft, Manifest, Part, Snapshot, is_former
from memci.archive.stores.objects.opening import Opening
from memci.archive.stores.record_codec import DamagedLineError, check_body, superfluous

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex

_PAGES, _BLOBS = "pages", "blobs"
_MOST_AT_ONCE = 8
_NewBodies: TypeAlias = Mapping[int, tuple[bytes, str | None]]  # with the SHA-256 of those that they take the place of


class _Journal:
    """Implements ``memci.archive.stores.contract.Journal``.

    An append puts the manifest, if it is still the version that this opening knows. When it would hold more than 64 records or
    64 KiB, these are put as a segment before.
    """

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def head(self) -> int:
        manifest = self._opening.refresh()
        return manifest.head if manifest else 0

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        opening = self._opening.writable()
        lines = opening.lines.encode_commit(expected, records)
        if opening.known_head() != expected:
            opening.refresh()

        def plan(draft: Draft) -> None:
            if draft.manifest.head != expected:
                raise refusal.conflict(expected, draft.manifest.head)
            draft.append(lines, len(records))

        opening.change(plan)
        return expected + len(records)

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        """Yield records as the contract says; what is committed while it reads is not read."""
        manifest = self._opening.refresh()
        if manifest is not None:
            yield from self._read(manifest, max(after, 0), manifest.head if until is None else min(until, manifest.head))

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        """Put what holds the records under other names, and delete every object that holds a former body.

        Where the bucket keeps older versions of objects, it is the bucket's rules that end those. Costs a request for the
        manifest, and for each segment concerned one to read, one to write and one to delete, and one for each thousand segments
        of the session.
        """
        for body in bodies.values():
            check_body(body)
        opening = self._opening.writable()
        manifest = opening.refresh()
        head = manifest.head if manifest else 0
        for seq in bodies:
            if not 1 <= seq <= head:
                raise refusal.no_record(seq, head)
        new = {seq: (body, (former or {}).get(seq)) for seq, body in bodies.items()}

        def plan(draft: Draft) -> None:
            base = draft.manifest
            parts = tuple(self._redacted(draft, part, new) for part in base.parts)
            draft.change(parts=parts, tail=self._redacted_lines(base.tail_part, base.tail, new))

        if new:
            self._sweep(opening.change(plan), new)

    def _read(self, manifest: Manifest, after: int, until: int) -> Iterator[Record]:
        opening = self._opening
        for part, lines in self._runs(manifest, after, until) if after < until else ():
            opening.check_open()
            first = max(part.first, after + 1)
            if lines is None:  # a redaction may have replaced the segment since the manifest was read
                newer = opening.refresh()
                if newer is None or newer.revision == manifest.revision:
                    raise opening.missing(part, first)
                yield from self._read(newer, after, until)
                return
            for record in self._records(part, lines, first, min(part.last, until)):
                yield record
                after = record.seq

    def _runs(self, manifest: Manifest, after: int, until: int) -> Iterator[tuple[Part, bytes | None]]:
        segments = self._segments(manifest.parts, after, until)
        size = 1
        while batch := list(islice(segments, size)):
            yield from zip(batch, self._opening.io.find_each([self._opening.place(part) for part in batch]), strict=True)
            size = min(2 * size, _MOST_AT_ONCE)
        if until >= manifest.tail_part.first:
            yield manifest.tail_part, manifest.tail

    def _segments(self, parts: Sequence[Part], after: int, until: int) -> Iterator[Part]:
        for part in parts:
            if part.last > after and part.first <= until:
                if part.level:
                    yield from self._segments(self._opening.list_parts(part), after, until)
                else:
                    yield part

    def _records(self, part: Part, data: bytes, first: int, last: int) -> Iterator[Record]:
        opening = self._opening
        lines = data.splitlines(keepends=True)[first - part.first : last - part.first + 1]
        for seq, line in enumerate(lines, start=first):
            try:
                header = opening.lines.decode_header(line)
                body, redacted = opening.lines.decode_body(line, header)
            except DamagedLineError as error:
                raise opening.corrupt(str(error), opening.place(part), seq) from error
            if header.seq != seq:
                raise opening.missing(part, seq)
            yield Record(seq, header.kind, header.version, body, redacted)
        if len(lines) <= last - first:
            raise opening.missing(part, first + len(lines))

    def _redacted(self, draft: Draft, part: Part, bodies: _NewBodies) -> Part:
        """Return the part with other bodies, which is new if it has one of the records."""
        if not any(part.first <= seq <= part.last for seq in bodies):
            return part
        if part.level:
            return draft.add_list([self._redacted(draft, one, bodies) for one in self._opening.list_parts(part)])
        lines = self._opening.find(part.path)
        if lines is None:
            raise self._opening.missing(part, part.first)
        return draft.add_segment(part.first, part.last, self._redacted_lines(part, lines, bodies))

    def _redacted_lines(self, part: Part, data: bytes, bodies: _NewBodies) -> bytes:
        opening = self._opening
        lines = data.splitlines(keepends=True)
        for seq in bodies:
            if part.first <= seq <= part.last:
                if len(lines) != part.last - part.first + 1:
                    raise opening.missing(part, seq)
                try:
                    lines[seq - part.first] = opening.lines.redact(lines[seq - part.first], *bodies[seq])
                except DamagedLineError as error:
                    raise opening.corrupt(str(error), opening.place(part), seq) from error
        return b"".join(lines)

    def _sweep(self, manifest: Manifest, seqs: Collection[int]) -> None:
        """Delete the segments that hold former bodies: those replaced, and those that a crash or a lost race left.

        Whoever makes a segment for a revision after this one knows the new bodies, and whoever does for this one or a former
        one has failed, or is named in the manifest.
        """
        opening = self._opening
        used = {opening.place(part) for seq in seqs for part in self._segments(manifest.parts, seq - 1, seq)}
        paths = [path for path in opening.paths(SEGMENTS) if path not in used]
        opening.io.delete([path for path in paths if is_former(path.rpartition("/")[2], manifest.revision, seqs)])


class _Pages:
    """Implements ``memci.archive.stores.contract.Pages``: an object for each page."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def put(self, pages: Mapping[str, bytes]) -> None:
        opening = self._opening.writable()
        checked = {check_page_name(name): page for name, page in pages.items()}
        if checked:
            if opening.refresh() is None:
                raise opening.not_begun()
            opening.put_beside({opening.path(_PAGES, name): page for name, page in checked.items()})

    def find(self, name: str) -> bytes | None:
        return self._opening.find(_PAGES, check_page_name(name))

    def names(self) -> Iterator[str]:
        names = (path.rpartition("/")[2] for path in self._opening.paths(_PAGES))
        return filter(is_page_name, names)

    def remove(self, names: Collection[str]) -> None:
        opening = self._opening.writable()
        wanted = [check_page_name(name) for name in names]
        if wanted and opening.refresh():
            opening.io.delete([opening.path(_PAGES, name) for name in wanted])


class _Blobs:
    """Implements ``memci.archive.stores.contract.Blobs``: an object for each blob and record that brings it.

    No two sessions share an object, and no two records: there is nothing here by which those who add and those who delete could
    keep out of each other's way.
    """

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:
        opening = self._opening.writable()
        if opening.refresh() is None:  # an object may come only after the manifest
            return ()
        known = set() if seq else set(self.names())
        opening.put_beside({opening.path(_BLOBS, name, str(seq)): blob for name, blob in blobs.items() if name not in known})
        return blobs

    def find(self, name: str) -> bytes | None:
        data = None
        for path in self._opening.paths(_BLOBS, name):
            found = self._opening.io.find(path)
            if found is not None:
                data = found.body
                if sha256(data).hexdigest() == name:
                    break
        return data

    def names(self) -> Iterator[str]:
        yield from {path.split("/")[-2] for path in self._opening.paths(_BLOBS)}

    def drop(self, names: Collection[str], seq: int) -> None:
        opening = self._opening.writable()
        if opening.refresh():
            paths = [path for name in names for path in opening.paths(_BLOBS, name)]
            opening.io.delete([path for path in paths if int(path.rpartition("/")[2]) <= seq])


class _Snapshots:
    """Implements ``memci.archive.stores.contract.Snapshots``: an object for each state, which the manifest names."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def put(self, seq: int, body: bytes) -> None:
        opening = self._opening.writable()
        if opening.latest() is None:
            raise opening.not_begun()
        line = opening.lines.encode_snapshot(seq, body)
        former: list[Snapshot] = []

        def plan(draft: Draft) -> None:
            others = [snapshot for snapshot in draft.manifest.snapshots if snapshot.seq != seq]
            dropped = set(superfluous([seq, *(snapshot.seq for snapshot in others)]))
            kept = [snapshot for snapshot in others if snapshot.seq not in dropped]
            if seq not in dropped:
                kept.append(draft.add_snapshot(seq, line))
            former[:] = set(draft.manifest.snapshots).difference(kept)
            draft.change(snapshots=tuple(sorted(kept)))

        opening.change(plan)
        opening.io.delete([opening.path(SNAPSHOTS, snapshot.name) for snapshot in former])

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        for snapshot in reversed(self._named()):
            if at_most is None or snapshot.seq <= at_most:
                with suppress(DamagedLineError):
                    return snapshot.seq, self._read(snapshot)
        return None

    def problems(self) -> Iterator[str]:
        for snapshot in self._named():
            try:
                self._read(snapshot)
            except DamagedLineError as error:
                yield f"{self._opening.path(SNAPSHOTS, snapshot.name)}: {error}; it is not used and can be deleted"

    def clear(self) -> None:
        opening = self._opening.writable()
        if self._named():
            opening.change(lambda draft: draft.change(snapshots=()))
        opening.io.delete(list(opening.paths(SNAPSHOTS)))

    def _named(self) -> tuple[Snapshot, ...]:
        manifest = self._opening.refresh()
        return manifest.snapshots if manifest else ()

    def _read(self, snapshot: Snapshot) -> bytes:
        line = self._opening.find(SNAPSHOTS, snapshot.name)
        if line is None:
            message = "the object is missing"
            raise DamagedLineError(message)
        return self._opening.lines.decode_snapshot(line, snapshot.seq)


class ObjectSession:
    """Implements ``memci.archive.stores.contract.SessionStore``. For one thread at a time; docs/stores.md has the costs.

    *index_folder* is a directory of this machine for its indexes, each named after the incarnation that it belongs to; ``None``
    keeps the index in memory.
    """

    def __init__(self, opening: Opening, index_folder: Path | None) -> None:
        self.journal = _Journal(opening)
        self.pages = _Pages(opening)
        self.snapshots = _Snapshots(opening)
        self.blobs = _Blobs(opening)
        self.durability: str = "fsync"
        self._opening = opening
        self._index_folder = index_folder
        self._index: PageIndex | None = None
        self._indexed = ""

    @property
    def index(self) -> "PageIndex":
        """Page facts and search, opened when first asked for: a file of this machine, or empty and in memory.

        Raises:
            UnavailableError: The file can be neither opened nor made.
        """
        self._opening.check_open()
        if self._index is None:
            self._opening.latest()
            self._indexed = self._opening.incarnation
            self._index = self._opened_index(self._index_folder)
        return self._index

    def indexed_seq(self) -> int:
        """Return 0: the index tells nothing of the journal."""
        self._opening.check_open()
        return 0

    def close(self) -> None:
        """Let go of the session, which stays in the store. May be called twice."""
        opening, folder = self._opening, self._index_folder
        if self._index is not None:
            self._index.close()
            self._index = None
            is_of_session = opening.has_begun and opening.incarnation == self._indexed
            if folder is not None and not opening.read_only and not is_of_session:
                from memci.archive.catalogue import index_file  # noqa: PLC0415 (few need it)

                index_file.remove(str(folder / f"{self._indexed}.sqlite"))
        opening.close()

    def _opened_index(self, folder: Path | None) -> "PageIndex":
        from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (loads sqlite3, which few openings need)

        if folder is None:
            return PageIndex(None)
        read_only = self._opening.read_only
        return PageIndex.in_directory(folder, self._indexed, root=folder.parent.parent, read_only=read_only)
