"""An operating system whose calls fail when they are told to."""

import errno
import os

from memci.archive.disk import FileIo


class FaultyIo(FileIo):
    """A ``FileIo`` with failures on order, to see what a file store makes of them.

    Attributes:
        room_bytes: Bytes that the disk still takes, ``None`` for any number. A write that does not fit takes what fits,
            and the next one raises ``ENOSPC``, as on a real disk.
        write_bytes: Most bytes that one write takes, ``None`` for all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.room_bytes: int | None = None
        self.write_bytes: int | None = None
        self._failures: dict[str, int] = {}
        self._skipped: dict[str, int] = {}

    def fail(self, call: str, error: int, *, skip: int = 0) -> None:
        """Make the calls of one name (such as ``sync``) raise this error number, after *skip* good ones, until ``mend``."""
        self._failures[call] = error
        self._skipped[call] = skip

    def mend(self) -> None:
        """Let everything succeed again."""
        self._failures.clear()
        self.room_bytes = self.write_bytes = None

    def open(self, path: str, flags: int) -> int:
        """Open a file, or fail as ``open``."""
        self._raise_if_due("open")
        return super().open(path, flags)

    def read(self, fd: int, size: int, offset: int) -> bytes:
        """Read, or fail as ``read``."""
        self._raise_if_due("read")
        return super().read(fd, size, offset)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write as much as there is room, or fail as ``write``."""
        self._raise_if_due("write")
        limit = len(data) if self.write_bytes is None else min(len(data), self.write_bytes)
        if self.room_bytes is not None:
            if self.room_bytes == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            limit = min(limit, self.room_bytes)
            self.room_bytes -= limit
        return super().write(fd, data[:limit])

    def sync(self, fd: int) -> None:
        """Sync a file, or fail as ``sync``."""
        self._raise_if_due("sync")
        super().sync(fd)

    def sync_directory(self, path: str) -> None:
        """Sync a directory, or fail as ``sync_directory``."""
        self._raise_if_due("sync_directory")
        super().sync_directory(path)

    def truncate(self, fd: int, size: int) -> None:
        """Cut a file, or fail as ``truncate``."""
        self._raise_if_due("truncate")
        super().truncate(fd, size)

    def rename(self, old: str, new: str) -> None:
        """Rename a file, or fail as ``rename``."""
        self._raise_if_due("rename")
        super().rename(old, new)

    def unlink(self, path: str) -> None:
        """Remove a file, or fail as ``unlink``."""
        self._raise_if_due("unlink")
        super().unlink(path)

    def make_directory(self, path: str) -> None:
        """Make a directory, or fail as ``make_directory``."""
        self._raise_if_due("make_directory")
        super().make_directory(path)

    def list_directory(self, path: str) -> list[os.DirEntry[str]]:
        """List a directory, or fail as ``list_directory``."""
        self._raise_if_due("list_directory")
        return super().list_directory(path)

    def _raise_if_due(self, call: str) -> None:
        error = self._failures.get(call)
        if error is None:
            return
        if self._skipped[call]:
            self._skipped[call] -= 1
            return
        raise OSError(error, os.strerror(error))
