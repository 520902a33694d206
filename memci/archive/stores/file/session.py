"""The directory of one session: its files, its lock, and whether it is still there."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs
import orjson

from memci.archive import refusal
from memci.archive.disk import FileIo, find_file, write_all
from memci.archive.stores.names import BLOBS, file_name, is_hashed, session_name
from memci.errors import UnavailableError

JOURNAL = "journal.jsonl"
LOCK = "lock"
NOTE = "session.json"
PAGES = "pages"
SNAPSHOTS = "snapshots"
INDEX = "index.sqlite"
TEMPORARY = ".tmp"

_ATTEMPTS = 100
_HEADER_BYTES = 1 << 10  # more than stands before the body of a record


class SyncError(OSError):
    """A sync failed: nobody knows what is on the disk."""


@attrs.frozen
class Disk:
    """Where and how a file store writes.

    Attributes:
        root: Absolute path of the store.
        io: The calls to the operating system.
        durable: Whether files and directories are synced.
    """

    root: str
    io: FileIo
    durable: bool


class SessionFiles:
    """What journal, pages and snapshots of one session share. For one thread at a time.

    Whoever writes holds the lock of the session: an exclusive ``flock`` on a file of its own, so that no file that is
    replaced takes the lock with it. The lock keeps out other openings of the session, in this process and in others.
    Under the lock a temporary file belongs to nobody else.

    Attributes:
        name, directory: Name of its directory, and absolute path.
        blobs: Absolute path of the directory that the tenant's sessions share.
        session_id: For error texts.
        journal: Descriptor of the open journal, ``None`` before it was found or made.
        generation: How often another file took the place of the open journal.
    """

    def __init__(self, disk: Disk, tenant: str, session_id: str, *, read_only: bool) -> None:
        self.session_id = session_id
        self._tenant_directory = f"{disk.root}/{file_name(tenant)}"
        self.name = session_name(session_id)
        self.directory = f"{self._tenant_directory}/{self.name}"
        self.blobs = f"{self._tenant_directory}/{BLOBS}"
        self.journal: int | None = None
        self.generation = 0
        self._root = disk.root
        self._tenant = tenant
        self._io = disk.io
        self._durable = disk.durable
        self._read_only = read_only
        self._lock: int | None = None
        self._lock_pid = 0
        self._is_swept = False
        self._is_hung = False
        self._is_closed = False

    def path(self, *names: str) -> str:
        """Return the path of a file of the session."""
        return "/".join((self.directory, *names))

    def enter(self, *names: str) -> str:
        """Return the path of a directory of the session. Raises ``OSError`` where a symbolic link leads there."""
        path = self.path(*names)
        self._io.refuse_links(self._root, path)
        return path

    def place(self, *names: str) -> str:
        """Return the path relative to the store's root, for error texts."""
        return self.path(*names).removeprefix(f"{self._root}/")

    @contextmanager
    def reported(self, *names: str) -> Iterator[None]:
        """Turn an ``OSError`` into an ``UnavailableError``; see ``unavailable``."""
        try:
            yield
        except OSError as error:
            raise self.unavailable(error, *names) from error

    def unavailable(self, error: OSError, *names: str) -> UnavailableError:
        """Make the error of a call that failed on the file that it names itself, or else on this one."""
        path = error.filename if isinstance(error.filename, str) else self.path(*names)
        return refusal.unavailable(error, path.removeprefix(f"{self._root}/"), self.session_id)

    def check_open(self) -> None:
        """Refuse what comes after ``close``.

        Raises:
            SessionClosedError: The session was closed.
        """
        if self._is_closed:
            raise refusal.closed(self.session_id)

    def check_writable(self) -> None:
        """Refuse to write where that was not asked for.

        Raises:
            SessionClosedError: The session was closed.
            PermissionDeniedError: It was opened read-only.
        """
        self.check_open()
        if self._read_only:
            raise refusal.read_only(self.session_id)

    def open_journal(self) -> int | None:
        """Return the descriptor of the journal, ``None`` where there is none yet. Raises ``OSError``."""
        if self.journal is None:
            flags = os.O_RDONLY if self._read_only else os.O_RDWR | os.O_APPEND
            try:
                self.journal = self._io.open(f"{self.enter()}/{JOURNAL}", flags)
            except FileNotFoundError:
                return None
        return self.journal

    def reopen_journal(self) -> bool:
        """Open the file that took the place of the open journal, and return whether it is one of the same session's history.

        It is where their first records have the same header. Raises ``OSError``.
        """
        old, self.journal = self.journal, None
        if old is None:
            return False
        new = self.open_journal()
        if new is not None and self._first_header(new) == self._first_header(old):
            self._io.close(old)
            self.generation += 1
            return True
        if new is not None:
            self._io.close(new)
        self.journal = old
        return False

    def _first_header(self, fd: int) -> bytes:
        return self._io.read(fd, _HEADER_BYTES, 0).partition(b'"body":')[0]

    def create_journal(self) -> int:
        """Make an empty journal, under the lock, and return its descriptor. Raises ``OSError``."""
        self.journal = self._io.open(self.path(JOURNAL), os.O_RDWR | os.O_APPEND | os.O_CREAT)
        return self.journal

    def read_journal(self, size: int, offset: int) -> bytes:
        """Read at most *size* bytes of the open journal. Raises ``OSError``.

        Raises:
            SessionClosedError: The session was closed.
        """
        if self.journal is None:
            raise refusal.closed(self.session_id)
        return self._io.read(self.journal, size, offset)

    def acquire(self) -> int:
        """Take the lock, making the directory of a new session, and return the size of the journal if it is open, else 0.

        Raises ``OSError``: a ``BlockingIOError`` where somebody else has held it for too long.

        Raises:
            UnavailableError: The session was deleted while it was open.
        """
        if self._lock is not None and self._lock_pid != os.getpid():
            # A child shares the lock of its parent's descriptor, so it needs one of its own; closing releases nothing.
            self._io.close(self._lock)
            self._lock = None
        is_known = self._lock is not None or self.journal is not None
        while True:
            if self._lock is None:
                self._lock = self._open_lock(create=not is_known)
                self._lock_pid = os.getpid()
            self._take(self._lock)
            # Deleting unlinks the journal before the lock, both under the lock: the journal tells, where it is open.
            facts = self._io.stat(self._lock if self.journal is None else self.journal)
            if facts.st_nlink:
                return facts.st_size  # that of the lock is 0
            if self.journal is not None and self.reopen_journal():  # it was written anew
                return self._io.stat(self.journal).st_size
            self.release()
            if is_known:
                raise refusal.deleted(self.session_id)
            self._io.close(self._lock)
            self._lock = None

    def _take(self, lock: int) -> None:
        """Wait for the lock; where that was in vain before, only for a moment, so that those who come later fail at once."""
        take = self._io.lock_soon if self._is_hung else self._io.lock
        self._is_hung = True
        take(lock)
        self._is_hung = False

    def release(self) -> None:
        """Release the lock. What was done under it is done: a lock that cannot be released is given back with its file."""
        if self._lock is not None:
            try:
                self._io.unlock(self._lock)
            except OSError:
                lock, self._lock = self._lock, None
                self._io.close(lock)

    @contextmanager
    def locked(self, *names: str) -> Iterator[None]:
        """Hold the lock and report failures on the file that is named; see ``acquire`` and ``reported``."""
        with self.reported(*names):
            self.acquire()
            try:
                yield
            finally:
                self.release()

    def settle(self) -> None:
        """Make the directories of a session safe before its first record, under the lock. Raises ``OSError``.

        So a journal that holds a record is known to be found again after a loss of power.
        """
        if is_hashed(file_name(self._tenant)) or is_hashed(file_name(self.session_id)):
            note = orjson.dumps({"tenant": self._tenant, "session": self.session_id})
            self.write_file(note + b"\n", NOTE, sync=True)
        for path in (self.directory, self._tenant_directory, self._root):
            self.sync_directory(path)

    def sweep(self, head: int) -> None:
        """Remove what crashes and copies left, once in the life of this object, under the lock. Raises ``OSError``.

        That is the temporary files of killed processes, and snapshots of records after *head*: where the tail of a journal
        is lost, or a copy has a newer snapshot than journal, they are states of another history.
        """
        if self._is_swept:
            return
        for name in self.list_names():
            if name.endswith(TEMPORARY):
                self._io.unlink(self.path(name))
        for name in self.list_names(SNAPSHOTS):
            stem = name.removesuffix(".json")
            if stem.isascii() and stem.isdecimal() and int(stem) > head:
                self._io.unlink(self.path(SNAPSHOTS, name))
        self._is_swept = True

    def list_names(self, *names: str) -> list[str]:
        """Return the names in a directory of the session; none where it is not there. Raises ``OSError``."""
        try:
            return [entry.name for entry in self._io.list_directory(self.enter(*names))]
        except FileNotFoundError:
            return []

    def find_file(self, *names: str) -> bytes | None:
        """Return the bytes of a file, ``None`` where there is none. Raises ``OSError``."""
        return find_file(self._io, f"{self.enter(*names[:-1])}/{names[-1]}")

    def write_file(self, data: bytes, *names: str, sync: bool) -> None:
        """Write a file whole or not at all, under the lock; its directory is not synced. Raises ``OSError``."""
        self.write_to(self.path(*names), data, sync=sync)

    def write_to(self, path: str, data: bytes, *, sync: bool) -> None:
        """Write a file of the session or its tenant as ``write_file`` does. Raises ``OSError``."""
        temporary = self.path(path.rpartition("/")[2] + TEMPORARY)
        fd = self._io.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            try:
                write_all(self._io, fd, data)
                if sync:
                    self.sync(fd)
            finally:
                self._io.close(fd)
            self._io.rename(temporary, path)
        except OSError:
            with suppress(OSError):  # where this fails too, the next writer sweeps it up
                self._io.unlink(temporary)
            raise

    def replace_file(self, pieces: Iterable[bytes], name: str) -> None:
        """Write a file anew, under the lock: it is the old one or the new one, whole, whatever happens. Raises ``OSError``."""
        temporary = self.path(name + TEMPORARY)
        fd = self._io.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            for piece in pieces:
                write_all(self._io, fd, piece)
            self.sync(fd)
        finally:
            self._io.close(fd)
        self._io.rename(temporary, self.path(name))
        self.sync_directory(self.directory)

    def make_directory(self, name: str) -> bool:
        """Make a directory of the session and return whether it is new. Raises ``OSError``."""
        try:
            self._io.make_directory(self.enter(name))
        except FileExistsError:
            return False
        return True

    def sync(self, fd: int) -> None:
        """Sync a file, where the store promises that. Raises ``SyncError``."""
        if self._durable:
            try:
                self._io.sync(fd)
            except OSError as error:
                raise SyncError(error.errno, error.strerror) from error

    def sync_directory(self, path: str) -> None:
        """Sync a directory, where the store promises that. Raises ``SyncError``."""
        if self._durable:
            try:
                self._io.sync_directory(path)
            except OSError as error:
                raise SyncError(error.errno, error.strerror) from error

    def remove(self, forget_blobs: Callable[[], None]) -> None:
        """Remove the session, under its lock, the journal first, then what it refers to, and the lock last. Raises ``OSError``.

        A crash half way leaves a directory without a journal: no session, and a new one of that id can begin in it.
        """
        self._unlink_if_there(self.path(JOURNAL))
        self.sync_directory(self.directory)  # nothing else is gone before the journal is
        forget_blobs()
        self._remove_below(self.directory, keep=LOCK)
        self._unlink_if_there(self.path(LOCK))
        try:
            self._io.remove_directory(self.directory)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:  # somebody begins a new session there
                raise
        self.sync_directory(self._tenant_directory)

    def remove_file(self, *names: str) -> None:
        """Delete a file of the session; nothing happens where there is none. Raises ``OSError``."""
        self._unlink_if_there(self.path(*names))

    def close(self) -> None:
        """Give back the descriptors. May be called twice."""
        self._is_closed = True
        for fd in (self._lock, self.journal):
            if fd is not None:
                self._io.close(fd)
        self._lock = self.journal = None

    def _open_lock(self, *, create: bool) -> int:
        # Somebody who deletes the session may remove the directory just after it was made.
        attempts = _ATTEMPTS
        while True:
            try:
                return self._io.open(f"{self.enter()}/{LOCK}", os.O_RDWR | os.O_CREAT)
            except FileNotFoundError:
                if not create:
                    raise refusal.deleted(self.session_id) from None
                attempts -= 1
                if not attempts:  # a link that leads nowhere
                    raise
                self._make_directories(self.directory)

    def _make_directories(self, path: str) -> None:
        parent = str(Path(path).parent)
        if path == self._tenant_directory:
            # Whoever made the root may have died before its name was safe: a tenant in it tells that it is.
            self._make_directories(self._root)
            self.sync_directory(str(Path(self._root).parent))
        try:
            self._io.make_directory(path)
        except FileExistsError:
            return
        except FileNotFoundError:
            self._make_directories(parent)
            with suppress(FileExistsError):
                self._io.make_directory(path)
        if len(path) < len(self._root):  # settle() sees to those below
            self.sync_directory(parent)

    def _remove_below(self, directory: str, keep: str = "") -> None:
        for entry in self._io.list_directory(directory):
            if entry.is_dir(follow_symlinks=False):
                self._remove_below(entry.path)
                self._io.remove_directory(entry.path)
            elif entry.name != keep:
                self._unlink_if_there(entry.path)

    def _unlink_if_there(self, path: str) -> None:
        try:
            self._io.unlink(path)
        except FileNotFoundError:
            return
