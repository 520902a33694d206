"""The directory of one session: its files, its lock, and whether it is still there."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import attrs
import orjson

from memci.archive import refusal
from memci.archive.disk import FileIo, find_file, write_all
from memci.archive.stores.names import BLOBS, file_name, is_hashed, session_name
from memci.errors import StoreError

JOURNAL = "journal.jsonl"
LOCK = "lock"
NOTE = "session.json"
PAGES = "pages"
SNAPSHOTS = "snapshots"
INDEX = "index.sqlite"
JSON = ".json"

_TEMPORARY = ".tmp"
_ATTEMPTS = 100
_HEADER_BYTES = 1 << 10  # more than stands before the body of a record


class SyncError(OSError):
    """A sync failed: nobody knows what is on the disk."""


class Tail(NamedTuple):
    """A place between two records of a journal: sequence number of the one before, and the offset after that."""

    head: int
    end: int


START = Tail(0, 0)


@attrs.define(eq=False)
class OpenJournal:
    """A journal file, and what is known of it; whoever opens the one that took its place begins anew.

    Attributes:
        fd: Its descriptor.
        tail: Where its whole commits end, as it was seen last.
        safe_end: All before it was synced by this process, and nothing cut since; -1 where something was.
        last_read: After the record that was read last: whoever follows a journal goes on there.
    """

    fd: int
    tail: Tail = START
    safe_end: int = 0
    last_read: Tail = START


class SessionFiles:
    """What journal, pages and snapshots of one session share. For one thread at a time. Most methods raise ``OSError``.

    Whoever writes holds the lock of the session: an exclusive ``flock`` on a file of its own, so that no file that is
    replaced takes the lock with it. It keeps out other openings of the session, in this process and in others; under it a
    temporary file belongs to nobody else.

    Attributes:
        root, tenant_directory, directory: Absolute paths of the store, the tenant and the session.
        pages, snapshots, blobs, journal_path: And of what they hold.
        name: Of the session's directory.
        journal: The open journal, ``None`` before it was found or made.
    """

    def __init__(self, root: str, io: FileIo, key: tuple[str, str], *, durable: bool, read_only: bool) -> None:
        self._tenant, self.session_id = key
        self.io = io
        self.root = root
        self.name = session_name(self.session_id)
        self.tenant_directory = f"{root}/{file_name(self._tenant)}"
        self.directory = f"{self.tenant_directory}/{self.name}"
        self.pages = f"{self.directory}/{PAGES}"
        self.snapshots = f"{self.directory}/{SNAPSHOTS}"
        self.blobs = f"{self.tenant_directory}/{BLOBS}"
        self.journal_path = f"{self.directory}/{JOURNAL}"
        self.journal: OpenJournal | None = None
        self._durable = durable
        self._read_only = read_only
        self._lock: int | None = None
        self._lock_pid = 0
        self._is_swept = False
        self._is_hung = False
        self._is_closed = False

    def entered(self, directory: str) -> str:
        """Return the path of a directory, into which no symbolic link leads."""
        self.io.refuse_links(self.root, directory)
        return directory

    @contextmanager
    def reported(self, path: str) -> Iterator[None]:
        """Turn an ``OSError`` into an ``UnavailableError`` that names its own file, or else this one; refuse a closed session."""
        if self._is_closed:
            raise refusal.closed(self.session_id)
        try:
            yield
        except OSError as error:
            path = error.filename if isinstance(error.filename, str) else path
            raise refusal.unavailable(error, path.removeprefix(f"{self.root}/"), self.session_id) from error

    def open_journal(self) -> OpenJournal | None:
        """Return the journal, ``None`` where there is none yet."""
        if self.journal is None and not self._is_closed:
            with suppress(FileNotFoundError):
                self.journal = self._open_journal()
        return self.journal

    def begin_journal(self) -> OpenJournal:
        """Return the journal, an empty one where there was none, under the lock."""
        if self.journal is None:
            self.journal = self._open_journal(os.O_CREAT)
        return self.journal

    def journal_size(self) -> int:
        """Return the size of the journal, 0 for none. Where another file took the place of the open one, that is opened.

        It is refused as another session's where the first records have not the same header.
        """
        while (file := self.open_journal()) is not None:
            facts = self.io.stat(file.fd)
            if facts.st_nlink:
                return facts.st_size
            try:
                new = self._open_journal()
            except FileNotFoundError:
                raise refusal.deleted(self.session_id) from None
            headers = {self.io.read(each.fd, _HEADER_BYTES, 0).partition(b'"body":')[0] for each in (file, new)}
            old, self.journal = (new, file) if len(headers) > 1 else (file, new)
            self.io.close(old.fd)
            if self.journal is file:
                raise refusal.deleted(self.session_id)
        return 0

    def _open_journal(self, flag: int = 0) -> OpenJournal:
        flags = os.O_RDONLY if self._read_only else os.O_RDWR | os.O_APPEND
        return OpenJournal(self.io.open(f"{self.entered(self.directory)}/{JOURNAL}", flags | flag))

    def read_journal(self, size: int, offset: int) -> bytes:
        """Read at most *size* bytes of the open journal; raise ``SessionClosedError`` once it was closed."""
        if self.journal is None:
            raise refusal.closed(self.session_id)
        return self.io.read(self.journal.fd, size, offset)

    @contextmanager
    def locked(self, path: str) -> Iterator[int]:
        """Hold the lock, to write, with the directory of a new session made; give the size of the journal if it is open, else 0.

        Failures are reported on the file that is named; a read-only and a deleted session are refused.
        """
        with self.reported(path):
            if self._read_only:
                raise refusal.read_only(self.session_id)
            try:
                yield self._acquire()
            finally:
                self._release()

    def _acquire(self) -> int:
        if self._lock is not None and self._lock_pid != os.getpid():
            # A child shares the lock of its parent's descriptor, so it needs one of its own; closing releases nothing.
            self.io.close(self._lock)
            self._lock = None
        is_known = self._lock is not None or self.journal is not None
        while True:
            if self._lock is None:
                self._lock = self._open_lock(create=not is_known)
                self._lock_pid = os.getpid()
            take = self.io.lock_soon if self._is_hung else self.io.lock  # after one waited in vain, others fail at once
            self._is_hung = True
            take(self._lock)
            self._is_hung = False
            if self.journal is not None:  # deleting unlinks it before the lock, both under the lock
                return self.journal_size()
            if self.io.stat(self._lock).st_nlink:
                return 0
            if is_known:
                raise refusal.deleted(self.session_id)
            self.io.close(self._lock)
            self._lock = None

    def _release(self) -> None:
        # What was done under the lock is done: one that cannot be released is given back with its file.
        if self._lock is not None:
            try:
                self.io.unlock(self._lock)
            except OSError:
                lock, self._lock = self._lock, None
                self.io.close(lock)

    def settle(self) -> None:
        """Make the directories of a session safe before its first record: a loss of power then leaves both. Under the lock."""
        if is_hashed(file_name(self._tenant)) or is_hashed(file_name(self.session_id)):
            note = orjson.dumps({"tenant": self._tenant, "session": self.session_id})
            self.write_file([note, b"\n"], f"{self.directory}/{NOTE}", sync=True)
        for path in (self.directory, self.tenant_directory, self.root):
            self.sync(path)

    def sweep(self, head: int) -> None:
        """Remove what crashes and copies left, once in the life of this object, under the lock.

        That is the temporary files of killed processes, and snapshots of records after *head*: where the tail of a journal
        is lost, or a copy has a newer snapshot than journal, they are states of another history.
        """
        if self._is_swept:
            return
        left = [f"{self.directory}/{name}" for name in self.list_names(self.directory) if name.endswith(_TEMPORARY)]
        left += [f"{self.snapshots}/{seq}{JSON}" for seq in self.snapshot_seqs() if seq > head]
        for path in left:
            self.unlink(path)
        self._is_swept = True

    def list_names(self, directory: str) -> list[str]:
        """Return the names in a directory; none where it is not there."""
        try:
            return [entry.name for entry in self.io.list_directory(self.entered(directory))]
        except FileNotFoundError:
            return []

    def snapshot_seqs(self) -> list[int]:
        """Return which snapshots there are, in no order."""
        stems = (name.removesuffix(JSON) for name in self.list_names(self.snapshots) if name.endswith(JSON))
        return [int(stem) for stem in stems if stem.isdecimal() and stem == str(int(stem))]

    def find_file(self, directory: str, name: str) -> bytes | None:
        """Return the bytes of a file, ``None`` where there is none."""
        return find_file(self.io, f"{self.entered(directory)}/{name}")

    def write_file(self, pieces: Iterable[bytes], path: str, *, sync: bool) -> None:
        """Replace a file of the session or its tenant whole, under the lock. Its name is safe once the directory was synced."""
        temporary = f"{self.directory}/{path.rpartition('/')[2]}{_TEMPORARY}"
        fd = self.io.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            try:
                for piece in pieces:
                    write_all(self.io, fd, piece)
                if sync:
                    self.sync(fd)
            finally:
                self.io.close(fd)
            self.io.rename(temporary, path)
        except (OSError, StoreError):
            with suppress(OSError):  # where this fails too, the next writer sweeps it up
                self.unlink(temporary)
            raise

    def remove_files(self, directory: str, is_wanted: Callable[[str], bool]) -> None:
        """Delete files of a directory, durably. One sync, where there are any."""
        with self.locked(directory):
            found = [name for name in self.list_names(directory) if is_wanted(name)]
            for name in found:
                self.unlink(f"{directory}/{name}")
            if found:
                self.sync(directory)

    def make_directory(self, directory: str) -> bool:
        """Make a directory and return whether it is new."""
        try:
            self.io.make_directory(self.entered(directory))
        except FileExistsError:
            return False
        return True

    def unlink(self, path: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            self.io.unlink(path)

    def sync(self, target: int | str) -> None:
        """Sync an open file, or a directory by its path, where the store promises that. Raises ``SyncError``."""
        if self._durable:
            try:
                self.io.sync(target) if isinstance(target, int) else self.io.sync_directory(target)
            except OSError as error:
                raise SyncError(error.errno, error.strerror) from error

    def remove(self, forget_blobs: Callable[[], None]) -> None:
        """Remove the session, under its lock, the journal first, then what it refers to, and the lock last.

        A crash half way leaves a directory without a journal: no session, and a new one of that id can begin in it.
        """
        self.unlink(self.journal_path)
        self.sync(self.directory)  # nothing else is gone before the journal is
        forget_blobs()
        self._remove_below(self.directory, keep=LOCK)
        self.unlink(f"{self.directory}/{LOCK}")
        try:
            self.io.remove_directory(self.directory)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:  # somebody begins a new session there
                raise
        self.sync(self.tenant_directory)

    def close(self) -> None:
        """Give back the descriptors. May be called twice."""
        self._is_closed = True
        if self._lock is not None:
            self.io.close(self._lock)
        if self.journal is not None:
            self.io.close(self.journal.fd)
        self._lock = self.journal = None

    def _open_lock(self, *, create: bool) -> int:
        for _ in range(_ATTEMPTS):  # somebody who deletes the session may remove the directory just after it was made
            try:
                return self.io.open(f"{self.entered(self.directory)}/{LOCK}", os.O_RDWR | os.O_CREAT)
            except FileNotFoundError:
                if not create:
                    raise refusal.deleted(self.session_id) from None
                self._make_directories(self.directory)
        raise OSError(errno.ELOOP, "A link leads nowhere", self.directory)

    def _make_directories(self, path: str) -> None:
        parent = str(Path(path).parent)
        if path == self.tenant_directory:
            # Whoever made the root may have died before its name was safe: a tenant in it tells that it is.
            self._make_directories(self.root)
            self.sync(str(Path(self.root).parent))
        try:
            self.io.make_directory(path)
        except FileExistsError:
            return
        except FileNotFoundError:
            self._make_directories(parent)
            with suppress(FileExistsError):
                self.io.make_directory(path)
        if len(path) < len(self.root):  # settle() sees to those below
            self.sync(parent)

    def _remove_below(self, directory: str, keep: str = "") -> None:
        for entry in self.io.list_directory(directory):
            if entry.is_dir(follow_symlinks=False):
                self._remove_below(entry.path)
                self.io.remove_directory(entry.path)
            elif entry.name != keep:
                self.unlink(entry.path)
