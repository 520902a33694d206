"""The journal of one session as a file of lines; see ``memci.archive.stores.record_codec`` for the lines."""

from collections.abc import Iterator, Mapping, Sequence

from memci.archive import refusal
from memci.archive.disk import FileIo, write_all
from memci.archive.stores.contract import NewRecord, Record
from memci.archive.stores.file.journal_scan import JournalScan, Tail
from memci.archive.stores.file.session import JOURNAL, SessionFiles, SyncError
from memci.archive.stores.record_codec import LineCodec, check_body
from memci.errors import CorruptError, UnavailableError


class FileJournal:
    """Implements ``memci.archive.stores.contract.Journal`` on ``journal.jsonl``.

    The head is found by reading backwards from the end and is kept with the size that the file then had, so that a look
    at the size tells whether somebody else wrote. A commit is one write and one sync. What a crash left after the last
    whole commit is invisible to readers, and is cut by the next writer, under the lock of the session.
    """

    def __init__(self, files: SessionFiles, codec: LineCodec, io: FileIo) -> None:
        self._files = files
        self._codec = codec
        self._io = io
        self._scan = JournalScan(files.read_journal, codec, files.session_id, JOURNAL)
        self._tail = Tail(0, 0)
        self._safe_end = 0  # this object synced all before it and cut nothing since; -1 where it did
        self._failure = ""
        self._generation = files.generation

    def head(self) -> int:
        """Return the sequence number of the last whole commit as it is stored now, 0 for none.

        Raises:
            CorruptError: The last record is damaged.
        """
        self._files.check_open()
        with self._files.reported(JOURNAL):
            fd = self._files.open_journal()
            return 0 if fd is None else self._look(fd).head

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        """Commit the records after *expected*, all or none, and return the new head. Durable once it returns.

        Raises:
            ValueError: There is no record, or one that no line can hold.
            ConflictError: The head is not *expected*; nothing was written.
            CorruptError: The last record is damaged; nothing was written.
            UnavailableError: The bytes are not safe. After a failed sync every further append raises too: close the
                session and open it again.
        """
        files = self._files
        files.check_writable()
        if self._failure:
            raise UnavailableError(self._failure)
        commit = self._codec.encode_commit(expected, records)
        try:
            if files.open_journal() is None and expected:
                raise refusal.conflict(expected, 0)
            size = files.acquire()
            self._follow()
            try:
                self._commit(expected, commit, size)
            finally:
                files.release()
        except OSError as error:
            if isinstance(error, SyncError):
                # The system may have dropped the bytes and would report the next sync as good: never try again.
                self._failure = f"session {files.session_id!r}: an earlier sync failed: close the session and open it again"
            raise files.unavailable(error, JOURNAL) from error
        self._tail = Tail(expected + len(records), self._tail.end + len(commit))
        self._safe_end = self._tail.end
        return self._tail.head

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        """Yield the records with ``after < seq <= until`` in order; a commit that was torn is not there.

        What is committed while it reads is not read; bodies that are redacted meanwhile are the former or the new ones. Memory is
        bounded by the largest record.

        Raises:
            CorruptError: A record is damaged; those before it were yielded.
        """
        self._files.check_open()
        with self._files.reported(JOURNAL):
            fd = self._files.open_journal()
            if fd is None:
                return
            try:
                tail = self._look(fd)
            except CorruptError:
                # All before the damage can be read, and whoever comes to it is told.
                yield from self._scan.read(after, until, self._io.stat(fd).st_size)
                raise
            last = tail.head if until is None else min(until, tail.head)
            while after < last:
                generation = self._files.generation
                for record in self._scan.read(after, last, tail.end):
                    yield record
                    after = record.seq
                    if generation != self._files.generation:  # another file took the place of the one that was read
                        tail = self._look(self._files.open_journal() or fd)
                        break
                else:
                    return

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        """Put other bodies in the place of those of some records: the journal is written anew and takes the name of the old one.

        O(journal). What a crash leaves is the old journal or the new one, whole.

        Raises:
            ValueError: There is no such record, or a body that no line can hold; nothing was changed.
            ConflictError: A body is not the *former* one; nothing was changed.
            CorruptError: The journal is damaged; nothing was changed.
            UnavailableError: It is not known to be done; call again.
        """
        for body in bodies.values():
            check_body(body)
        files = self._files
        files.check_writable()
        with files.locked(JOURNAL):
            self._follow()
            fd = files.open_journal()
            tail = Tail(0, 0) if fd is None else self._scan.find_tail(self._io.stat(fd).st_size)
            for seq in bodies:
                if not 1 <= seq <= tail.head:
                    raise refusal.no_record(seq, tail.head)
            if not bodies:
                return
            files.replace_file(self._scan.redacted(bodies, former or {}, tail.end), JOURNAL)
            files.reopen_journal()
            self._follow()

    def close(self) -> None:
        """Give back what it holds. May be called twice."""
        self._files.close()

    def _commit(self, expected: int, commit: bytes, size: int) -> None:
        """Write and sync a commit, under the lock. Raises ``OSError``, and what ``append`` raises."""
        fd = self._files.journal
        if fd is None:  # somebody else may have begun the session while the lock was waited for
            fd = self._files.open_journal()
            size = 0 if fd is None else self._io.stat(fd).st_size
        if fd is not None and size != self._tail.end:
            self._tail = self._scan.find_tail(size)
        if self._tail.head != expected:
            raise refusal.conflict(expected, self._tail.head)
        self._files.sweep(expected)
        if fd is None:
            fd = self._files.create_journal()
        try:
            if expected == 0:
                self._files.settle()
            if size != self._tail.end:
                self._safe_end = -1
                self._io.truncate(fd, self._tail.end)
            if self._safe_end != self._tail.end:
                # Another process wrote last, and may have died before its sync, or left what was cut just now. A loss of power
                # must not find it missing, or its remains, beside the commit that follows.
                self._files.sync(fd)
            write_all(self._io, fd, commit)
            self._files.sync(fd)
        except OSError:
            self._cut(fd)
            raise

    def _cut(self, fd: int) -> None:
        self._safe_end = -1  # nobody knows how much of what is cut came to the disk
        try:
            self._io.truncate(fd, self._tail.end)
        except OSError as error:
            self._failure = (
                f"session {self._files.session_id!r}: a commit that failed could not be taken back ({error.strerror}): "
                "close the session and open it again"
            )

    def _follow(self) -> None:
        """Forget what is known of the file where another one has taken its place."""
        if self._generation == self._files.generation:
            return
        self._generation = self._files.generation
        self._tail = Tail(0, 0)
        self._safe_end = 0
        self._scan.forget()

    def _look(self, fd: int) -> Tail:
        """Find the tail as it is now. Raises ``OSError``, and what ``JournalScan.find_tail`` raises."""
        while True:
            self._follow()
            facts = self._io.stat(fd)
            if not facts.st_nlink:
                if not self._files.reopen_journal():
                    raise refusal.deleted(self._files.session_id)
                fd = self._files.open_journal() or fd
                continue
            size = facts.st_size
            if size != self._tail.end:
                try:
                    self._tail = self._scan.find_tail(size)
                except CorruptError:
                    if self._io.stat(fd).st_size != size:
                        continue  # somebody wrote while it was read
                    raise
            return self._tail
