"""The journal of one session as a file of lines (see ``memci.archive.stores.record_codec``), and the lock of the session.

What a crash can leave of the last commit is *torn*: a line without its line break, a commit some of whose records are missing, or
NUL bytes where nothing was written yet: up to the end of the file, or over whole sectors of the disk, the first of which may
hold the commit before. Every other line that cannot be read is damage.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import NamedTuple

import attrs

from memci.archive import refusal
from memci.archive.disk import LOCK, UNLOCK, take_lock, write_all
from memci.archive.stores.contract import NewRecord, Record
from memci.archive.stores.file.session import JOURNAL, SessionFiles, SyncError
from memci.archive.stores.record_codec import DamagedLineError, LineCodec, check_redaction
from memci.errors import CorruptError, UnavailableError

_LEAST_BYTES = 8 << 10
_MOST_BYTES = 256 << 10
_HEADER_BYTES = 1 << 10  # more than stands before the body of a record
_MOST_WAITS = 6  # for a lock that others hold in turns, each as long as that for one whose holder hangs
_SECTOR_BYTES = 512  # the least that a disk writes whole; its sectors may be some multiple


class Tail(NamedTuple):
    """A place between two records: sequence number of the one before, and the offset after that."""

    head: int
    end: int


_START = Tail(0, 0)


@attrs.define(eq=False)
class OpenFile:
    """A journal file, and what is known of it; whoever opens the one that took its place begins anew."""

    fd: int  # -1 while the session rests
    tail: Tail = _START  # where its whole commits end, as it was seen last
    safe_end: int = 0  # all before it was synced by this process, and nothing cut since; -1 where something was
    last_read: Tail = _START  # whoever follows a journal goes on there
    header: bytes = b""  # of its first record, as the session began to rest; and by what the file was told from others then
    marks: tuple[int, ...] = ()


def _marks(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_ctime_ns


class FileJournal:
    """Implements ``memci.archive.stores.contract.Journal`` on ``journal.jsonl``, and has the lock of the session.

    The head is found by reading backwards from the end and is kept with the size that the file then had, so that a look at the
    size tells whether somebody else wrote. What a crash left after the last whole commit is invisible to readers, and is cut by
    the next writer. The lock is an exclusive ``flock`` on a file of its own, so that no file that is replaced takes it along; it
    keeps out other openings of the session, in this process and in others, and makes temporary files the holder's alone.
    """

    def __init__(self, files: SessionFiles, codec: LineCodec) -> None:
        self.files = files
        self.codec = codec
        self._io = files.io
        self._file: OpenFile | None = None
        self._lock: int | None = None
        self._lock_pid = 0
        self._wait_s = self._io.wait_s
        self._waited_size = 0  # of the journal when the last wait for the lock began
        self._is_swept = False
        self._failure = ""

    def head(self) -> int:
        """Return the sequence number of the last whole commit."""
        with self.files.reported(self.files.journal):
            file = self._look()
            return file.tail.head if file else 0

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        """Commit the records after *expected*, and return the new head. One write and one sync."""
        files = self.files
        if self._failure:
            message = f"session {files.session_id!r}: {self._failure}: refresh() it, or open it again"
            raise UnavailableError(message)
        commit = self.codec.encode_commit(expected, records)
        if expected and self._file is None:
            with files.reported(files.journal):
                if self._opened() is None:
                    raise refusal.conflict(expected, 0)
        try:
            with self.locked(files.journal) as size:
                self._commit(expected, commit, len(records), size)
        except UnavailableError as error:
            if isinstance(error.__cause__, SyncError):
                # The system may have dropped the bytes and would report the next sync as good: never try again.
                self._failure = "an earlier sync failed"
            raise
        return expected + len(records)

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        """Yield the records with ``after < seq <= until`` in order."""
        with self.files.reported(self.files.journal):
            try:
                file = self._look()
            except CorruptError:
                if self._file is not None:  # all before the damage can be read, and whoever comes to it is told
                    yield from self._records(self._file, after, until, self.size())
                raise
            if file is None:
                return
            last = file.tail.head if until is None else min(until, file.tail.head)
            while after < last:
                for record in self._records(file, after, last, file.tail.end):
                    yield record
                    after = record.seq
                    if self._opened() is not file:  # another one took the place of what is read
                        file = self._look() or file
                        break
                else:
                    return

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        """Put other bodies in the place of those of some records: the journal is replaced whole. O(journal)."""
        files = self.files
        with self.locked(files.journal):
            tail = self._find_tail(self.size())
            check_redaction(bodies, tail.head)
            if bodies:
                files.write_file(self._redacted(bodies, former or {}, tail.end), files.journal, sync=True)
                files.sync(files.directory)
                self.size()  # lets go of the former file

    def size(self) -> int:
        """Return the size of the file, 0 for none. Where another file took the place of the open one, that is opened.

        It is refused as another session's where the first records have not the same header. Raises ``OSError``.
        """
        while (file := self._opened()) is not None:
            facts = self._io.stat(file.fd)
            if facts.st_nlink:
                return facts.st_size
            try:
                new = self._open()
            except FileNotFoundError:
                raise refusal.deleted(self.files.session_id) from None
            self._check_same(new, self._header(file.fd))
            self._io.close(file.fd)
            self._file = new
        return 0

    @contextmanager
    def locked(self, path: str) -> Iterator[int]:
        """Hold the lock, with the directory of a new session made; give the size of the journal if it is open, else 0.

        Failures are reported on the file at *path*; a closed, a read-only and a deleted session are refused.
        """
        files = self.files
        if files.is_closed:
            raise refusal.closed(files.session_id)
        if files.read_only:
            raise refusal.read_only(files.session_id)
        try:
            try:
                yield self._acquire()
            finally:
                if self._lock is not None:
                    self._release(self._lock)
        except OSError as error:
            raise files.failure(error, path) from error

    def rest(self) -> None:
        """Give back the descriptors until the next call. They hold no lock: that is taken for each commit, and given back."""
        file = self._file
        if self._lock is not None:
            self._io.close(self._lock)
            self._lock = None
        if file is not None and file.fd >= 0:
            with self.files.reported(self.files.journal):
                file.header, file.marks = self._header(file.fd), _marks(self._io.stat(file.fd))
            self._io.close(file.fd)
            file.fd = -1

    def close(self) -> None:
        """Give back the descriptors, and refuse every further call of the session. May be called twice."""
        self.files.is_closed = True
        if self._lock is not None:
            self._io.close(self._lock)
        if self._file is not None and self._file.fd >= 0:
            self._io.close(self._file.fd)
        self._lock = self._file = None

    def _acquire(self) -> int:
        if self._lock is not None and self._lock_pid != os.getpid():
            # A child shares the lock of its parent's descriptor, so it needs one of its own; closing releases nothing.
            self._io.close(self._lock)
            self._lock = None
        is_known = self._lock is not None or self._file is not None
        while True:
            if self._lock is None:
                self._lock, self._lock_pid = self.files.open_lock(create=not is_known), os.getpid()
            try:
                self._io.lock(self._lock, LOCK)
            except BlockingIOError:
                self._wait_for_lock(self._lock)
            self._wait_s = self._io.wait_s
            if self._file is not None:  # deleting unlinks it before the lock, both under the lock
                return self.size()
            if self._io.stat(self._lock).st_nlink:
                return 0
            if is_known:
                raise refusal.deleted(self.files.session_id)
            self._io.close(self._lock)
            self._lock = None

    def _wait_for_lock(self, lock: int) -> None:
        """Take the lock that others hold: wait again while they write, and only briefly after a wait that saw no change."""
        for waits_left in reversed(range(_MOST_WAITS)):
            size = self._size_in_view()
            wait_s = self._wait_s if size == self._waited_size else self._io.wait_s
            self._wait_s, self._waited_size = min(wait_s, 0.1), size
            try:
                take_lock(lock, wait_s, self._io.lock)
            except BlockingIOError:
                if not waits_left or self._size_in_view() == size:
                    raise
            else:
                return

    def _size_in_view(self) -> int:
        """Return the size of the journal if it is open, else 0: the first process to lock it opens it afterwards."""
        return self.size() if self._file is not None else 0

    def _release(self, lock: int) -> None:
        try:
            self._io.lock(lock, UNLOCK)
        except OSError:  # what was done under the lock is done, and the lock is given back with its file
            self._lock = None
            self._io.close(lock)

    def _commit(self, expected: int, commit: bytes, count: int, size: int) -> None:
        """Write and sync a commit, under the lock. Raises ``OSError``, and what ``append`` raises."""
        files, file = self.files, self._file
        if file is None:  # somebody else may have begun the session while the lock was waited for
            file = self._file = self._open(os.O_CREAT)
            size = self._io.stat(file.fd).st_size
        if size != file.tail.end:
            file.tail = self._find_tail(size)
        if file.tail.head != expected:
            raise refusal.conflict(expected, file.tail.head)
        if not self._is_swept:
            files.sweep(expected)
            self._is_swept = True
        try:
            if expected == 0:
                files.settle()
            if size != file.tail.end:
                file.safe_end = -1
                self._io.truncate(file.fd, file.tail.end)
            if file.safe_end != file.tail.end:
                # Another process wrote last, and may have died before its sync, or left what was cut just now. A loss of power
                # must not find it missing, or its remains, beside the commit that follows.
                files.sync(file.fd)
            self._write(file.fd, commit)
        except OSError:
            file.safe_end = -1  # nobody knows how much of what is cut came to the disk
            try:
                self._io.truncate(file.fd, file.tail.end)
            except OSError as error:
                self._failure = f"a commit that failed could not be taken back ({error.strerror})"
            raise
        file.tail = Tail(expected + count, file.tail.end + len(commit))
        file.safe_end = file.tail.end

    def _write(self, fd: int, commit: bytes) -> None:
        count = self._io.write(fd, commit)
        if count < len(commit):
            write_all(self._io, fd, commit[count:])
        if self.files.durable:
            try:
                self._io.sync(fd)
            except OSError as error:
                raise SyncError(error.errno, error.strerror) from error

    def _opened(self) -> OpenFile | None:
        """Return the journal, opened again where the session rested; ``None`` where there is none yet."""
        if self._file is None and not self.files.is_closed:
            with suppress(FileNotFoundError):
                self._file = self._open()
        elif self._file is not None and self._file.fd < 0:
            self._file = self._woken(self._file)
        return self._file

    def _woken(self, file: OpenFile) -> OpenFile:
        """Open the journal of a session that rested; what was known of it holds if nobody wrote meanwhile."""
        try:
            new = self._open()
        except FileNotFoundError:
            raise refusal.deleted(self.files.session_id) from None
        if file.marks == _marks(self._io.stat(new.fd)):
            file.fd = new.fd
            return file
        self._check_same(new, file.header)
        return new

    def _check_same(self, new: OpenFile, header: bytes) -> None:
        """Refuse the journal of another session that was begun in the place of a deleted one; redacting changes no header."""
        if self._header(new.fd) != header:
            self._io.close(new.fd)
            raise refusal.deleted(self.files.session_id)

    def _header(self, fd: int) -> bytes:
        return self._io.read(fd, _HEADER_BYTES, 0).partition(b'"body":')[0]

    def _open(self, flag: int = 0) -> OpenFile:
        files = self.files
        flags = os.O_RDONLY if files.read_only else os.O_RDWR | os.O_APPEND
        return OpenFile(self._io.open(f"{files.entered(files.directory)}/{JOURNAL}", flags | flag))

    def _look(self) -> OpenFile | None:
        """Return the journal with its tail as it is now, ``None`` before it began; raise what ``head`` raises."""
        while True:
            size, file = self.size(), self._file
            try:
                if file is not None and size != file.tail.end:
                    file.tail = self._find_tail(size)
                break
            except CorruptError:
                if size == self.size():  # otherwise somebody wrote while it was read
                    raise
        return file

    def _find_tail(self, size: int) -> Tail:
        """Return where the whole commits end in a file of *size* bytes. Costs the last commit and what is torn after it."""
        tail: Tail | None = None
        before: int | None = None  # the record before the last commit, once one of its lines was read
        is_damaged = False
        for start, line in self._lines_backwards(size):
            if not is_damaged and self._is_torn(start, line, size):
                tail = None  # a hole in the last commit: all of it is torn
                continue
            try:
                header = self.codec.decode_header(line)
                if tail is None:  # a line break that is lost joins two records, and the header of the first holds
                    self.codec.decode_body(line, header)
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
        return tail or _START

    def _is_torn(self, start: int, line: bytes, size: int) -> bool:
        if b"\0" in line:
            holes = ((start + nuls.start(), start + nuls.end()) for nuls in re.finditer(rb"\0+", line))
            return all(
                end == size or (end % _SECTOR_BYTES == 0 and (begin == start or begin % _SECTOR_BYTES == 0))
                for begin, end in holes
            )
        if line.endswith(b"\n"):
            return False
        whole = line[:-1] + b"\n"
        try:
            seq = self.codec.decode(whole).seq
        except DamagedLineError:
            return True
        reason = "the line break of the record is damaged"
        raise self._corrupt(reason, start, seq)

    def _records(self, file: OpenFile, after: int, until: int | None, size: int) -> Iterator[Record]:
        """Yield the records with ``after < seq <= until`` within the first *size* bytes, which end with a line."""
        expected = after + 1
        damage: CorruptError | None = None
        for start, line in self._lines(self._find_start(file, after, size), size):
            try:
                header = self.codec.decode_header(line)
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
                body, redacted = self.codec.decode_body(line, header)
            except DamagedLineError as error:
                raise self._corrupt(str(error), start, expected) from error
            file.last_read = Tail(expected, start + len(line))
            yield Record(expected, header.kind, header.version, body, redacted)
            if expected == until:
                return
            damage = None
            expected += 1
        if damage is not None:
            raise damage

    def _redacted(self, bodies: Mapping[int, bytes], former: Mapping[int, str], size: int) -> Iterator[bytes]:
        """Yield the lines of the first *size* bytes, with other bodies in some. Raises ``CorruptError`` and ``ConflictError``."""
        for start, line in self._lines(0, size):
            try:
                seq = self.codec.decode(line).seq
            except DamagedLineError as error:
                raise self._corrupt(str(error), start) from error
            body = bodies.get(seq)
            yield line if body is None else self.codec.redact(line, body, former.get(seq))

    def _find_start(self, file: OpenFile, after: int, size: int) -> int:
        """Return the offset of a line at or before the record after *after*; O(log size) reads, none after the one read last."""
        if after == file.last_read.head and file.last_read.end <= size:
            return file.last_read.end
        low, high, step = 0, size if after else 0, _LEAST_BYTES
        while high - low > _LEAST_BYTES:
            middle = (low + high) // 2 if low else max((low + high) // 2, high - step)  # what is asked for is often near the end
            step *= 4
            found = next(self._places(middle, high), None)
            if found is not None and found[1] <= after:
                low = found[0]
            else:
                high = middle
        return low

    def _places(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield place and sequence number of the records that begin after *start*, but for damaged ones."""
        for place, line in islice(self._lines(start, end), 1, None):  # the first is most likely the end of a line
            with suppress(DamagedLineError):
                yield place, self.codec.decode_header(line).seq

    def _lines(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        rest, count = b"", _LEAST_BYTES
        while (place := start + len(rest)) < end:
            *lines, rest = (rest + self._read(min(count, end - place), place)).split(b"\n")
            count = max(min(2 * count, _MOST_BYTES), len(rest))
            for line in lines:
                yield start, line + b"\n"
                start += len(line) + 1
        if rest:
            yield start, rest

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
            count = min(max(_LEAST_BYTES, len(rest)), start)
            start -= count
            chunk = self._read(count, start) + rest

    def _read(self, size: int, offset: int) -> bytes:
        file = self._opened()
        if file is None:
            raise refusal.closed(self.files.session_id)
        data = self._io.read(file.fd, size, offset)
        if len(data) < size:
            reason = "the file became shorter while it was read"
            raise self._corrupt(reason, offset)
        return data

    def _corrupt(self, reason: str, offset: int, seq: int | None = None) -> CorruptError:
        return CorruptError(reason, session=self.files.session_id, place=f"{JOURNAL}, byte {offset}", seq=seq)

    def _missing(self, seq: int, offset: int) -> CorruptError:
        return self._corrupt(f"the record {seq} is missing", offset, seq)
