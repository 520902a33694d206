"""Indexes in a directory of this machine: which are in use, and which give way where all of them take too much room."""

import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path

import attrs

from memci.archive import disk

MOST_BYTES = 1_000_000_000  # of a directory, where nothing is said
NUMBER = re.compile("[1-9][0-9]{0,14}")  # of bytes, as a URL says it
_USED = ".used"  # the ending of the file whose lock says that an index is open, and whose time says when it was opened last


@attrs.frozen
class IndexPlace:
    """Where an index lies: under a *name* in a *directory* to which no link below *root* leads.

    All below *root* take about *most_bytes* together; ``None`` for any number.
    """

    root: Path
    directory: Path
    name: object
    most_bytes: int | None = None

    @property
    def path(self) -> str:
        """The file."""
        return str(self.directory / f"{self.name}.sqlite")


def use(place: IndexPlace, most_bytes: int) -> int:
    """Note that an index is open, and return what ends that when it is closed; where it is new, others give way for it."""
    disk.make_directories(str(place.directory))
    is_new = not Path(place.path).exists()
    fd = disk.open_file(place.path + _USED, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        os.utime(fd)
        if is_new:
            _trim(place.root, most_bytes)
    except BaseException:
        os.close(fd)
        raise
    return fd


def remove(path: str) -> None:
    """Delete an index of which nobody makes another one there, or that nobody has open."""
    from memci.archive.catalogue import index_file  # noqa: PLC0415 (loads sqlite3, which a store's URL does not need)

    index_file.remove(path)
    Path(path + _USED).unlink(missing_ok=True)


def _trim(root: Path, most_bytes: int) -> None:
    """Delete indexes that nobody has open, those opened longest ago first, until all take at most so much. O(indexes)."""
    sizes = {path: _size(path) for path in root.rglob("*.sqlite")}
    total = sum(sizes.values())
    for path in sorted(sizes, key=_opened_at) if total > most_bytes else ():
        fd = disk.open_file(f"{path}{_USED}", os.O_RDWR | os.O_CREAT)
        try:
            with suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(str(path))
                total -= sizes[path]
        finally:
            os.close(fd)
        if total <= most_bytes:
            return


def _size(path: Path) -> int:
    size = 0
    for ending in ("", *disk.DATABASE_ENDINGS):
        with suppress(FileNotFoundError):
            size += os.lstat(f"{path}{ending}").st_size
    return size


def _opened_at(path: Path) -> float:
    try:
        return os.lstat(f"{path}{_USED}").st_mtime
    except FileNotFoundError:
        return 0.0
