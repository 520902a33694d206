"""Every call that the file store makes to the operating system, counted."""
# Paths are text and calls are bare, for a Path costs more than the call's counting, and these run for every page.
# ruff: noqa: PTH102, PTH105, PTH106, PTH108

import fcntl
import os
import sys

_READ_BYTES = 1 << 20


class FileIo:
    """The operating system as the file store uses it. All calls raise ``OSError``.

    One object may serve many stores and threads; the counts are then approximate. A subclass can make calls fail.

    Attributes:
        syncs: Files and directories that were synced.
        writes: Calls that wrote.
        reads: Calls that read.
        opens: Files that were opened.
        bytes_written: Bytes that the calls took.
    """

    def __init__(self) -> None:
        self.syncs = 0
        self.writes = 0
        self.reads = 0
        self.opens = 0
        self.bytes_written = 0

    def open(self, path: str, flags: int) -> int:
        """Open a file; what is created gets the rights that the umask leaves."""
        self.opens += 1
        return os.open(path, flags | os.O_CLOEXEC, 0o666)

    def close(self, fd: int) -> None:
        """Give a file back."""
        os.close(fd)

    def read(self, fd: int, size: int, offset: int) -> bytes:
        """Read at most *size* bytes at *offset*."""
        self.reads += 1
        return os.pread(fd, size, offset)

    def write(self, fd: int, data: "bytes | memoryview") -> int:
        """Write some of *data* and return how many bytes were taken."""
        self.writes += 1
        count = os.write(fd, data)
        self.bytes_written += count
        return count

    def sync(self, fd: int) -> None:
        """Return when the bytes and the size of the file are on the disk."""
        self.syncs += 1
        if sys.platform == "darwin":  # fsync leaves the bytes in the drive's cache there
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(fd)

    def sync_directory(self, path: str) -> None:
        """Return when the names in a directory are on the disk."""
        self.syncs += 1
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Cut a file."""
        os.ftruncate(fd, size)

    def stat(self, fd: int) -> os.stat_result:
        """Return size and number of names of an open file."""
        return os.fstat(fd)

    def lock(self, fd: int) -> None:
        """Wait for the exclusive lock of an open file."""
        fcntl.flock(fd, fcntl.LOCK_EX)

    def unlock(self, fd: int) -> None:
        """Release the lock."""
        fcntl.flock(fd, fcntl.LOCK_UN)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, over what has it."""
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        os.unlink(path)

    def make_directory(self, path: str) -> None:
        """Make a directory in one that exists."""
        os.mkdir(path)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        os.rmdir(path)

    def list_directory(self, path: str) -> list[os.DirEntry[str]]:
        """Return the entries of a directory, in no order."""
        with os.scandir(path) as entries:
            return list(entries)


def write_all(io: FileIo, fd: int, data: bytes) -> None:
    """Write all of *data*, in one call where the system takes it at once. Raises ``OSError``."""
    count = io.write(fd, data)
    if count == len(data):
        return
    rest = memoryview(data)[count:]
    while rest:
        rest = rest[io.write(fd, rest) :]


def find_file(io: FileIo, path: str) -> bytes | None:
    """Return the bytes of a file, ``None`` where there is none. Raises ``OSError``."""
    try:
        fd = io.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        pieces = []
        size = 0
        while piece := io.read(fd, _READ_BYTES, size):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)
    finally:
        io.close(fd)
