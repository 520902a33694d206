"""Finding things in a journal file without an index: its end, the place of a record, and the records from there.

What a crash can leave of the last commit is *torn*: a line without its line break, a commit some of whose records are missing, or
NUL bytes where nothing was written yet: up to the end of the file, or over whole sectors of the disk, the first of which may
hold the commit before. Every other line that cannot be read is damage.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from memci.archive.stores.contract import Record
from memci.archive.stores.record_codec import DamagedLineError, Header, LineCodec
from memci.errors import CorruptError

ReadAt = Callable[[int, int], bytes]
"""Reads at most so many bytes at an offset."""

_TAIL_BYTES = 8 << 10
_PROBE_BYTES = 4 << 10
_CHUNK_BYTES = 256 << 10
_NEAR_BYTES = 8 << 10
_SECTOR_BYTES = 512  # the least that a disk writes whole; its sectors may be some multiple
_NULS = re.compile(rb"\0+")


class Tail(NamedTuple):
    """Where the whole commits of a journal end.

    Attributes:
        head: Sequence number of the last record.
        end: Offset of the byte after it.
    """

    head: int
    end: int


class JournalScan:
    """Reads one journal file.

    Args:
        read: Reads the file.
        codec: Of the session.
        session_id: For error texts.
        name: Of the file, for error texts.
    """

    def __init__(self, read: ReadAt, codec: LineCodec, session_id: str, name: str) -> None:
        self._read = read
        self._codec = codec
        self._session_id = session_id
        self._name = name
        # The record that was read last, and the offset behind it: whoever follows a journal goes on there. Whole commits stay
        # where they are as long as the file is open.
        self._last_read = Tail(0, 0)

    def find_tail(self, size: int) -> Tail:
        """Return where the whole commits end in a file of *size* bytes. Costs the last commit and what is torn after it.

        Raises:
            CorruptError: The last line is damaged.
            StoreError: A newer memci wrote it.
        """
        tail: Tail | None = None
        before: int | None = None  # the record before the last commit, once one of its lines was read
        is_damaged = False
        for start, line in self._lines_backwards(size):
            if not is_damaged and self._is_torn(start, line, size):
                tail = None  # a hole in the last commit: all of it is torn
                continue
            try:
                header = self._codec.decode_header(line)
                if tail is None:  # a line break that is lost joins two records, and the header of the first holds
                    self._codec.decode_body(line, header)
            except DamagedLineError as error:
                if tail is not None:
                    is_damaged = True  # whoever reads that far will hear of it
                    continue
                raise self._corrupt(str(error), start, before) from error
            base = header.seq + header.left - header.of
            if tail is None:
                if before not in (None, base if header.left else header.seq):
                    raise self._missing(before or 0, start)
                tail = None if header.left else Tail(header.seq, start + len(line))
            before = base
            if tail is not None and header.seq == before + 1:
                return tail
        if tail is None and before:
            raise self._missing(before, 0)
        return tail or Tail(0, 0)

    def read(self, after: int, until: int | None, size: int) -> Iterator[Record]:
        """Yield the records with ``after < seq <= until`` within the first *size* bytes, which end with a line.

        Raises:
            CorruptError: A record is damaged or missing; those before it were yielded.
            StoreError: A newer memci wrote it.
        """
        codec = self._codec
        expected = after + 1
        damage: CorruptError | None = None
        for start, line in self._lines(self._find_start(after, size), size, _CHUNK_BYTES):
            try:
                header = codec.decode_header(line)
            except DamagedLineError as error:
                damage = self._corrupt(str(error), start, expected)
                if expected > after + 1:
                    raise damage from error
                continue  # perhaps it stands before those that were asked for: the next line tells
            if header.seq < expected == after + 1:
                damage = None
                continue
            if header.seq != expected:
                raise damage or self._missing(expected, start)
            try:
                body, redacted = codec.decode_body(line, header)
            except DamagedLineError as error:
                raise self._corrupt(str(error), start, expected) from error
            self._last_read = Tail(expected, start + len(line))
            yield Record(expected, header.kind, header.version, body, redacted)
            if expected == until:
                return
            damage = None
            expected += 1
        if damage is not None:
            raise damage

    def forget(self) -> None:
        """Forget where reading ended: another file has taken the place of this one."""
        self._last_read = Tail(0, 0)

    def redacted(self, bodies: Mapping[int, bytes], former: Mapping[int, str], size: int) -> Iterator[bytes]:
        """Yield the lines of the first *size* bytes, which end with a line, with other bodies in some of the records.

        Raises:
            CorruptError: A line is damaged.
            ConflictError: A body is not the *former* one.
        """
        for start, line in self._lines(0, size, _CHUNK_BYTES):
            try:
                header = self._codec.decode_header(line)
                self._codec.decode_body(line, header)
            except DamagedLineError as error:
                raise self._corrupt(str(error), start, None) from error
            body = bodies.get(header.seq)
            yield line if body is None else self._codec.redact(line, body, former.get(header.seq))

    def _is_torn(self, start: int, line: bytes, size: int) -> bool:
        if b"\0" in line:
            holes = ((start + nuls.start(), start + nuls.end()) for nuls in _NULS.finditer(line))
            return all(
                end == size or (end % _SECTOR_BYTES == 0 and (begin == start or begin % _SECTOR_BYTES == 0))
                for begin, end in holes
            )
        if not line.endswith(b"\n"):
            whole = line[:-1] + b"\n"
            try:
                self._codec.decode_body(whole, self._codec.decode_header(whole))
            except DamagedLineError:
                return True
            message = "the line break of the record is damaged"
            raise self._corrupt(message, start, self._codec.decode_header(whole).seq)
        return False

    def _find_start(self, after: int, size: int) -> int:
        """Return the offset of a line at or before the record that follows *after*; O(log size) reads.

        No read where the last reading ended.
        """
        if after == 0:
            return 0
        if after == self._last_read.head and self._last_read.end <= size:
            return self._last_read.end
        low, high = 0, size
        while high - low > _NEAR_BYTES:
            middle = (low + high) // 2
            found = self._find_header(middle, high)
            if found is not None and found[1].seq <= after:
                low = found[0]
            else:
                high = middle
        return low

    def _find_header(self, start: int, end: int) -> tuple[int, Header] | None:
        lines = self._lines(start, end, _PROBE_BYTES)
        next(lines)  # most likely the end of a line
        for place, line in lines:
            try:
                return place, self._codec.decode_header(line)
            except DamagedLineError:
                continue
        return None

    def _lines(self, start: int, end: int, chunk_bytes: int) -> Iterator[tuple[int, bytes]]:
        pieces: list[bytes] = []
        line_start = position = start
        while position < end:
            chunk = self._read(min(chunk_bytes, end - position), position)
            if not chunk:
                raise self._shorter(position)
            done = 0
            while line_end := chunk.find(b"\n", done) + 1:
                pieces.append(chunk[done:line_end])
                yield line_start, pieces[0] if len(pieces) == 1 else b"".join(pieces)
                pieces.clear()
                done = line_end
                line_start = position + done
            if done < len(chunk):
                pieces.append(chunk[done:])
            position += len(chunk)
        if pieces:
            yield line_start, b"".join(pieces)

    def _lines_backwards(self, size: int) -> Iterator[tuple[int, bytes]]:
        start = line_end = size
        chunk = b""  # the bytes from start on; those up to line_end are still to be yielded
        while line_end > 0:
            line_start = chunk.rfind(b"\n", 0, max(line_end - start - 1, 0)) + 1
            if line_start or start == 0:
                yield start + line_start, chunk[line_start : line_end - start]
                line_end = start + line_start
                continue
            rest = chunk[: line_end - start]
            count = min(max(_TAIL_BYTES, len(rest)), start)
            start -= count
            more = self._read(count, start)
            if len(more) < count:
                raise self._shorter(start)
            chunk = more + rest

    def _corrupt(self, reason: str, offset: int, seq: int | None) -> CorruptError:
        return CorruptError(reason, session=self._session_id, place=f"{self._name}, byte {offset}", seq=seq)

    def _missing(self, seq: int, offset: int) -> CorruptError:
        return self._corrupt(f"the record {seq} is missing", offset, seq)

    def _shorter(self, offset: int) -> CorruptError:
        return self._corrupt("the file became shorter while it was read", offset, None)
