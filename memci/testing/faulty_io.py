"""An operating system whose calls fail when they are told to."""

import errno
import os
from collections.abc import Callable
from typing import Any

from memci.archive.disk import FileIo

CALLS = ("open", "read", "sync", "sync_directory", "truncate", "rename", "unlink", "make_directory", "list_directory")
"""The calls that can fail, beside ``write``."""


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
        self._failures: dict[str, tuple[int, int]] = {}  # of a call, the error, and how many good ones come before

    def fail(self, call: str, error: int, *, skip: int = 0) -> None:
        """Make the calls of one name (such as ``sync``) raise this error number, after *skip* good ones, until ``mend``."""
        self._failures[call] = error, skip

    def mend(self) -> None:
        """Let everything succeed again."""
        self._failures.clear()
        self.room_bytes = self.write_bytes = None

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

    def _raise_if_due(self, call: str) -> None:
        error, skip = self._failures.get(call, (0, 0))
        if skip:
            self._failures[call] = error, skip - 1
        elif error:
            raise OSError(error, os.strerror(error))


def _failing(name: str) -> Callable[..., Any]:
    real = getattr(FileIo, name)

    def call(io: FaultyIo, *arguments: Any) -> Any:  # noqa: ANN401 (those of the call)
        io._raise_if_due(name)  # noqa: SLF001 (a method of the class)
        return real(io, *arguments)

    return call


for _name in CALLS:
    setattr(FaultyIo, _name, _failing(_name))
