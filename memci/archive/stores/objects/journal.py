"""The journal of one session in an object store."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import attrs

from memci.archive import refusal
from memci.archive.stores.contract import NewRecord, Record
from memci.archive.stores.objects.manifest import Change, Manifest, Part, Planner, made_in, overlaps
from memci.archive.stores.objects.opening import SEGMENTS, Opening
from memci.archive.stores.record_codec import DamagedLineError, check_body

_MOST_AT_ONCE = 8

_NewBodies = Mapping[int, tuple[bytes, str | None]]  # and the SHA-256 of those that they take the place of


@attrs.frozen
class _Run:
    """The lines of some records in order, the sequence number of the first, and where they lie."""

    first: int
    last: int
    place: str
    lines: bytes | None


class ObjectJournal:
    """Implements ``memci.archive.stores.contract.Journal`` on a manifest and immutable segments.

    An append puts the manifest, if it is still the version that this opening knows; every 64 records or 64 KiB, the records
    that the manifest held are put as a segment before.
    """

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def head(self) -> int:
        """Return the sequence number of the last commit as it is stored now, 0 for none. One request.

        Raises:
            CorruptError: The manifest is damaged.
            UnavailableError: The session was deleted, or the provider did not answer.
        """
        self._opening.check_open()
        manifest = self._opening.refresh()
        return manifest.head if manifest else 0

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        """Commit the records after *expected*, all or none, and return the new head. Durable once it returns.

        One request, and every 64 records or 64 KiB one more, and every 1,024 records one more beside that.

        Raises:
            ValueError: There is no record, or one that no line can hold.
            ConflictError: The head is not *expected*; nothing was written.
            CorruptError: The manifest is damaged; nothing was written.
            UnavailableError: The session was deleted, or it is not known whether the records were written.
        """
        opening = self._opening
        opening.check_writable()
        lines = opening.lines.encode_commit(expected, records)
        if opening.known_head() != expected:
            opening.refresh()

        def plan(planner: Planner, base: Manifest) -> Change:
            if base.head != expected:
                raise refusal.conflict(expected, base.head)
            return planner.append(lines, len(records))

        opening.change(plan)
        return expected + len(records)

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        """Yield the records with ``after < seq <= until`` in order; what is committed while it reads is not read.

        One request for the manifest, one for each segment, up to eight of them at a time, and O(log n) for lists.

        Raises:
            CorruptError: A record is damaged, or its segment is missing; those before it were yielded.
            UnavailableError: The session was deleted, or the provider did not answer.
        """
        opening = self._opening
        opening.check_open()
        manifest = opening.refresh()
        if manifest is None:
            return
        last = manifest.head if until is None else min(until, manifest.head)
        seq = max(after, 0)
        while seq < last:
            for run in self._runs(manifest, seq, last):
                opening.check_open()
                if run.lines is None:
                    break
                for record in self._records(run, seq, last):
                    yield record
                    seq = record.seq
            else:
                return
            # The segment may have been replaced by a redaction since the manifest was read.
            newer = opening.refresh()
            if newer is None or newer.revision == manifest.revision:
                raise opening.missing(run.place, max(run.first, seq + 1))
            manifest = newer

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        """Put other bodies in the place of those of some records: what holds them is put under other names.

        Once it returns no object of the session holds the former bodies; where the bucket keeps older versions of objects, it
        is the bucket's rules that end those. Costs a request for the manifest, and for each segment concerned one to read,
        one to write and one to delete, and one for each thousand segments of the session.

        Raises:
            ValueError: There is no such record, or a body that no line can hold; nothing was changed.
            ConflictError: A body is not the *former* one; nothing was changed.
            CorruptError: What holds a record is damaged; nothing was changed.
            UnavailableError: It is not known to be done; call again.
        """
        for body in bodies.values():
            check_body(body)
        opening = self._opening
        opening.check_writable()
        base = opening.refresh()
        head = base.head if base else 0
        for seq in bodies:
            if not 1 <= seq <= head:
                raise refusal.no_record(seq, head)
        if bodies:
            new = {seq: (body, (former or {}).get(seq)) for seq, body in bodies.items()}
            manifest = opening.change(lambda planner, base: self._redacted(planner, base, new))
            self._sweep(manifest, sorted(bodies))

    def close(self) -> None:
        """Let go of the session. May be called twice."""
        self._opening.close()

    def _runs(self, manifest: Manifest, after: int, until: int) -> Iterator[_Run]:
        opening = self._opening
        segments = self._segments(manifest.parts, after, until)
        size = 1
        while batch := list(islice(segments, size)):
            paths = [opening.part_path(part) for part in batch]
            for part, path, lines in zip(batch, paths, opening.objects(paths), strict=True):
                yield _Run(part.first, part.last, path, lines)
            size = min(2 * size, _MOST_AT_ONCE)
        if until >= manifest.tail_first:
            yield _Run(manifest.tail_first, manifest.head, opening.tail_place, manifest.tail)

    def _segments(self, parts: Sequence[Part], after: int, until: int) -> Iterator[Part]:
        for part in parts:
            if part.last > after and part.first <= until:
                if part.level:
                    yield from self._segments(self._opening.list_parts(part), after, until)
                else:
                    yield part

    def _records(self, run: _Run, after: int, until: int) -> Iterator[Record]:
        """Yield the records of a run with ``after < seq <= until``."""
        opening, codec = self._opening, self._opening.lines
        lines = (run.lines or b"").splitlines(keepends=True)
        for seq in range(max(run.first, after + 1), min(run.last, until) + 1):
            try:
                line = lines[seq - run.first]
                header = codec.decode_header(line)
                body, redacted = codec.decode_body(line, header)
            except IndexError:
                raise opening.missing(run.place, seq) from None
            except DamagedLineError as error:
                raise opening.corrupt(str(error), run.place, seq) from error
            if header.seq != seq:
                raise opening.missing(run.place, seq)
            yield Record(seq, header.kind, header.version, body, redacted)

    def _redacted(self, planner: Planner, base: Manifest, bodies: _NewBodies) -> Change:
        objects: dict[Part, bytes] = {}
        parts = [self._redacted_part(planner, part, bodies, objects) for part in base.parts]
        tail = base.tail
        if any(seq >= base.tail_first for seq in bodies):
            tail = self._redacted_lines(_Run(base.tail_first, base.head, self._opening.tail_place, tail), bodies)
        return planner.replace(parts, tail, objects)

    def _redacted_part(self, planner: Planner, part: Part, bodies: _NewBodies, objects: dict[Part, bytes]) -> Part:
        """Return the part with other bodies, which is new if it has one of the records, and add its object to *objects*."""
        opening = self._opening
        if not any(part.first <= seq <= part.last for seq in bodies):
            return part
        new = planner.part(part.first, part.last, part.level)
        if part.level:
            objects[new] = planner.encode_list(
                [self._redacted_part(planner, one, bodies, objects) for one in opening.list_parts(part)]
            )
        else:
            path = opening.part_path(part)
            objects[new] = self._redacted_lines(_Run(part.first, part.last, path, opening.objects([path])[0]), bodies)
        return new

    def _redacted_lines(self, run: _Run, bodies: _NewBodies) -> bytes:
        opening = self._opening
        if run.lines is None:
            raise opening.missing(run.place, run.first)
        lines = run.lines.splitlines(keepends=True)
        for seq in bodies:
            if run.first <= seq <= run.last:
                if len(lines) != run.last - run.first + 1:
                    raise opening.missing(run.place, seq)
                try:
                    lines[seq - run.first] = opening.lines.redact(lines[seq - run.first], *bodies[seq])
                except DamagedLineError as error:
                    raise opening.corrupt(str(error), run.place, seq) from error
        return b"".join(lines)

    def _sweep(self, manifest: Manifest, seqs: Sequence[int]) -> None:
        """Delete the segments that hold former bodies: those replaced, and those that a crash or a lost race left.

        Whoever makes a segment for a revision after this one knows the new bodies, and whoever does for this one or a former
        one has failed, or is named in the manifest.
        """
        opening = self._opening
        used = {part.name for seq in seqs for part in self._segments(manifest.parts, seq - 1, seq)}
        folder = opening.path(SEGMENTS)
        names = (path.rpartition("/")[2] for path in opening.io.names(folder))
        gone = [name for name in names if _is_former(name, manifest.revision) and overlaps(name, seqs) and name not in used]
        opening.io.delete([f"{folder}/{name}" for name in gone])


def _is_former(name: str, revision: int) -> bool:
    made = made_in(name)
    return made is not None and made <= revision
