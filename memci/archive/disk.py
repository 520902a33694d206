"""Files and directories as all stores make and open them; and every call that the file store makes to the system.

What is made is its owner's alone, whatever the umask. What stands in the place of a file and is none (a symbolic link, a pipe, a
device) is neither followed nor waited for. All functions raise ``OSError``.
"""
# Paths are text and calls are bare, for a Path costs more than the call's counting, and these run for every page.
# ruff: noqa: PTH101, PTH102, PTH112, PTH116, PTH120

import errno
import fcntl
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

DATABASE_ENDINGS = ("-wal", "-shm", "-journal")  # of the names of the files that SQLite makes beside a database
LOCK_WAIT_S = 10.0  # how long a writer waits for a lock that somebody else holds
LOCK = fcntl.LOCK_EX | fcntl.LOCK_NB  # it is taken, or BlockingIOError is raised, at once
UNLOCK = fcntl.LOCK_UN
_READ_BYTES = 1 << 20
_FILE_RIGHTS = 0o600
_DIRECTORY_RIGHTS = 0o700
_MOST_PAUSE_S = 0.02
_SAFELY = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def open_file(path: str, flags: int) -> int:
    """Open a regular file; anything else is an error too."""
    fd = os.open(path, flags | _SAFELY, _FILE_RIGHTS)
    try:
        mode = os.fstat(fd).st_mode
        _check_regular(mode, path)
        if flags & os.O_CREAT and mode & _FILE_RIGHTS != _FILE_RIGHTS:  # an odd umask
            os.fchmod(fd, _FILE_RIGHTS)
    except BaseException:
        os.close(fd)
        raise
    return fd


def check_database(path: str, *, follow_link: bool = False, make: bool = False) -> None:
    """Refuse anything but a regular file, there and in the places of those that SQLite makes beside it; or *make* an empty one.

    None that is there is opened: SQLite may have it open in this process, and closing it would take SQLite's locks away.
    """
    if make:
        with suppress(FileExistsError):
            os.close(open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    _check_regular(os.stat(path, follow_symlinks=follow_link).st_mode, path)
    place = os.path.realpath(path)
    for beside in (place + ending for ending in DATABASE_ENDINGS):
        with suppress(FileNotFoundError):
            _check_regular(os.lstat(beside).st_mode, beside)


def make_directory(path: str) -> None:
    """Make a directory in one that exists."""
    os.mkdir(path, _DIRECTORY_RIGHTS)
    with suppress(FileNotFoundError):  # who deletes the session removed it just now
        mode = os.lstat(path).st_mode
        if mode & _DIRECTORY_RIGHTS != _DIRECTORY_RIGHTS:  # an odd umask
            os.chmod(path, stat.S_IMODE(mode) | _DIRECTORY_RIGHTS)


def make_directories(path: str) -> None:
    """Make a directory and those above it, as far as they are not there."""
    if path and not os.path.isdir(path):
        make_directories(os.path.dirname(path))
        with suppress(FileExistsError):
            make_directory(path)


@contextmanager
def locked(directory: str) -> Iterator[None]:
    """Make a directory if need be, and keep other processes that ask for it out."""
    make_directories(directory)
    fd = open_file(f"{directory}/lock", os.O_RDWR | os.O_CREAT)
    try:
        take_lock(fd)
        yield
    finally:
        os.close(fd)


def refuse_links(root: str, path: str) -> None:
    """Refuse a *path* that is a symbolic link, or below one within *root*; *root* itself may be one."""
    place = root
    for name in path.removeprefix(f"{root}/").split("/"):
        place = f"{place}/{name}"
        try:
            if stat.S_ISLNK(os.lstat(place).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), place)
        except (FileNotFoundError, NotADirectoryError):
            return


def is_out_of_descriptors() -> bool:
    """Return whether this process, or the system, can open no further file."""
    try:
        os.close(os.open(os.curdir, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


def most_descriptors() -> int:
    """Return how many files this process may have open, by its soft limit; where there is none, what is usual."""
    try:
        import resource  # noqa: PLC0415 (not on every system)
    except ImportError:
        return 1024
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1024 if soft == resource.RLIM_INFINITY else soft


def _check_regular(mode: int, path: str) -> None:
    if not stat.S_ISREG(mode):
        number = errno.ELOOP if stat.S_ISLNK(mode) else errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, "Not a regular file", path)


def is_of_other_kind(error: BaseException | None) -> bool:
    """Return whether something stands in the place of a file that is none, such as a directory or a pipe."""
    kinds = (errno.ELOOP, errno.EISDIR, errno.ENOTDIR, errno.EINVAL, errno.ENXIO)
    return isinstance(error, OSError) and error.errno in kinds


if sys.platform == "darwin":

    def _sync(fd: int) -> None:  # fsync leaves the bytes in the drive's cache there
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)

else:
    _sync = os.fdatasync


class FileIo:
    """The operating system as the file store uses it: its own functions, which a subclass can count or make fail.

    One object may serve many stores and threads. ``wait_s`` is how long a writer waits for a lock.
    """

    wait_s = LOCK_WAIT_S

    open = staticmethod(open_file)
    close = staticmethod(os.close)
    stat = staticmethod(os.fstat)
    read = staticmethod(os.pread)
    write: Callable[[int, "bytes | memoryview"], int] = staticmethod(os.write)
    sync: Callable[[int], None] = staticmethod(_sync)
    truncate = staticmethod(os.ftruncate)
    lock: Callable[[int, int], None] = staticmethod(fcntl.flock)
    rename: Callable[[str, str], None] = staticmethod(os.replace)
    unlink: Callable[[str], None] = staticmethod(os.unlink)
    make_directory = staticmethod(make_directory)
    remove_directory: Callable[[str], None] = staticmethod(os.rmdir)
    refuse_links = staticmethod(refuse_links)

    def sync_directory(self, path: str) -> None:
        """Return when the names in a directory are on the disk."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def list_directory(self, path: str) -> list[os.DirEntry[str]]:
        """Return the entries of a directory, in no order."""
        with os.scandir(path) as entries:
            return list(entries)


def take_lock(fd: int, wait_s: float = LOCK_WAIT_S, lock: Callable[[int, int], None] = fcntl.flock) -> None:
    """Take the exclusive lock of an open file, however the one that holds it hangs. Raises ``BlockingIOError`` after *wait_s*."""
    end_s, pause_s = time.monotonic() + wait_s, 0.0005
    while True:
        try:
            return lock(fd, LOCK)
        except BlockingIOError as error:
            if time.monotonic() >= end_s:
                message = f"others have kept it locked for {wait_s:g} s"
                raise BlockingIOError(errno.EAGAIN, message) from error
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _MOST_PAUSE_S)


def write_all(io: FileIo, fd: int, data: bytes) -> None:
    """Write all of *data*, in one call where the system takes it at once."""
    rest = memoryview(data)
    while rest:
        rest = rest[io.write(fd, rest) :]


def find_file(io: FileIo, path: str) -> bytes | None:
    """Return the bytes of a file, ``None`` where there is none."""
    try:
        fd = io.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        data = bytearray()
        while piece := io.read(fd, _READ_BYTES, len(data)):
            data += piece
        return bytes(data)
    finally:
        io.close(fd)
