"""An operating system whose calls are counted, and fail when they are told to."""

import errno
import os

from memci.archive.disk import FileIo

_COUNTED = {"sync": "syncs", "sync_directory": "syncs", "write": "writes", "read": "reads", "open": "opens"}


class FaultyIo(FileIo):
    """A ``FileIo`` with failures on order, to see what a file store makes of them, and what it asks for.

    Attributes:
        syncs: Files and directories that were synced, or were to be.
        writes, reads, opens: Calls.
        bytes_written: Bytes that the calls took.
        room_bytes: Bytes that the disk still takes, ``None`` for any number. A write that does not fit takes what fits,
            and the next one raises ``ENOSPC``, as on a real disk.
        write_bytes: Most bytes that one write takes, ``None`` for all.
    """

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}
        self._skipped: dict[str, int] = {}
        super().__init__()
        self.syncs = self.writes = self.reads = self.opens = self.bytes_written = 0
        self.room_bytes: int | None = None
        self.write_bytes: int | None = None

    def fail(self, call: str, error: int, *, skip: int = 0) -> None:
        """Make the calls of one name (such as ``sync``) raise this error number, after *skip* good ones, until ``mend``."""
        self._failures[call] = error
        self._skipped[call] = skip

    def mend(self) -> None:
        """Let everything succeed again."""
        self._failures.clear()
        self.room_bytes = self.write_bytes = None

    def __getattribute__(self, name: str) -> object:
        """Return a call, to be made at once, or fail as it is to fail."""
        get = super().__getattribute__
        error = None if name.startswith("_") else get("_failures").get(name)
        if error is not None:
            self._skipped[name] -= 1
            if self._skipped[name] < 0:
                raise OSError(error, os.strerror(error))
        if name in _COUNTED:
            setattr(self, _COUNTED[name], get(_COUNTED[name]) + 1)
        return get(name)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write as much as there is room."""
        limit = len(data) if self.write_bytes is None else min(len(data), self.write_bytes)
        if self.room_bytes is not None:
            if self.room_bytes == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            limit = min(limit, self.room_bytes)
            self.room_bytes -= limit
        count = super().write(fd, data[:limit])
        self.bytes_written += count
        return count
