"""The directory of one session."""

import errno
import os
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress

import orjson

from memci.archive import refusal
from memci.archive.disk import FileIo, find_file, write_all
from memci.archive.stores.names import BLOBS, file_name, is_hashed, session_name
from memci.errors import StoreError, UnavailableError

JOURNAL = "journal.jsonl"
LOCK = "lock"
NOTE = "session.json"
PAGES = "pages"
SNAPSHOTS = "snapshots"
INDEX = "index.sqlite"
JSON = ".json"

_TEMPORARY = ".tmp"
_ATTEMPTS = 100


class SyncError(OSError):
    """A sync failed: nobody knows what is on the disk."""


class SessionFiles:
    """The directory of one session. Most methods raise ``OSError``; those that write are called under the lock of the session.

    All paths are absolute; ``name`` is that of the session's directory. Once ``is_closed``, every further call is refused.
    """

    def __init__(self, root: str, io: FileIo, key: tuple[str, str], *, durable: bool, read_only: bool) -> None:
        self._tenant, self.session_id = key
        self.io = io
        self.durable = durable
        self.read_only = read_only
        self.is_closed = False
        self.root = root
        self.name = session_name(self.session_id)
        self.tenant_directory = f"{root}/{file_name(self._tenant)}"
        self.directory = f"{self.tenant_directory}/{self.name}"
        self.pages = f"{self.directory}/{PAGES}"
        self.snapshots = f"{self.directory}/{SNAPSHOTS}"
        self.blobs = f"{self.tenant_directory}/{BLOBS}"
        self.journal = f"{self.directory}/{JOURNAL}"

    def entered(self, directory: str) -> str:
        """Return the path of a directory, into which no symbolic link leads."""
        self.io.refuse_links(self.root, directory)
        return directory

    @contextmanager
    def reported(self, path: str) -> Iterator[None]:
        """Turn an ``OSError`` into an ``UnavailableError`` that names its own file, or else this one; refuse a closed session."""
        if self.is_closed:
            raise refusal.closed(self.session_id)
        try:
            yield
        except OSError as error:
            raise self.failure(error, path) from error

    def failure(self, error: OSError, path: str) -> UnavailableError:
        """Return the error of a call to the system that failed; it names its own file, or else this one."""
        path = error.filename if isinstance(error.filename, str) else path
        return refusal.unavailable(error, path.removeprefix(f"{self.root}/"), self.session_id)

    def settle(self) -> None:
        """Make the directories of a session safe before its first record."""
        if is_hashed(file_name(self._tenant)) or is_hashed(file_name(self.session_id)):
            note = orjson.dumps({"tenant": self._tenant, "session": self.session_id})
            self.write_file([note, b"\n"], f"{self.directory}/{NOTE}", sync=True)
        for path in (self.directory, self.tenant_directory, self.root):
            self.sync(path)

    def sweep(self, head: int) -> None:
        """Remove temporary files of killed processes, and snapshots of records after *head*: states of another history."""
        left = [f"{self.directory}/{name}" for name in self.list_names(self.directory) if name.endswith(_TEMPORARY)]
        left += [f"{self.snapshots}/{seq}{JSON}" for seq in self.snapshot_seqs() if seq > head]
        for path in left:
            self.unlink(path)

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
        """Replace a file of the session or its tenant whole. Its name is safe once the directory was synced."""
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

    def remove_files(self, directory: str, wanted: Container[str] | None = None) -> None:
        """Delete files of a directory, or all of them, durably. One sync, where there are any."""
        found = [name for name in self.list_names(directory) if wanted is None or name in wanted]
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
        if self.durable:
            try:
                self.io.sync(target) if isinstance(target, int) else self.io.sync_directory(target)
            except OSError as error:
                raise SyncError(error.errno, error.strerror) from error

    def remove(self, forget_blobs: Callable[[], None]) -> None:
        """Remove the session, the journal first, then what it refers to, and the lock last.

        A crash half way leaves a directory without a journal: no session, and a new one of that id can begin in it.
        """
        self.unlink(self.journal)
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

    def open_lock(self, *, create: bool) -> int:
        """Open the file that is locked, with the directory of a new session made."""
        for _ in range(_ATTEMPTS):  # somebody who deletes the session may remove the directory just after it was made
            try:
                return self.io.open(f"{self.entered(self.directory)}/{LOCK}", os.O_RDWR | os.O_CREAT)
            except FileNotFoundError:
                if not create:
                    raise refusal.deleted(self.session_id) from None
                self._make_directories(self.directory)
        raise OSError(errno.ELOOP, "A link leads nowhere", self.directory)

    def _make_directories(self, path: str) -> None:
        parent = path.rpartition("/")[0] or "/"
        if path == self.tenant_directory:
            # Whoever made the root may have died before its name was safe: a tenant in it tells that it is.
            self._make_directories(parent)
            self.sync(parent.rpartition("/")[0] or "/")
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
