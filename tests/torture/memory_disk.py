"""A disk in memory that the file store writes to, and that records every call which changes it.

The record is what a loss of power is worked out from; see ``tests.torture.crash_model``.
"""

import errno
import os
import stat
from collections.abc import Mapping
from typing import NamedTuple, cast

from memci.archive.disk import UNLOCK, FileIo

ROOT = "/disk"
"""The directory that stands before anything is written; a store's root is below it."""

Tree = dict[str, bytes | None]
"""Contents by absolute path, ``None`` for a directory; parents stand before what is in them."""


class Killed(BaseException):
    """The process ended between two calls; nothing below may answer to it."""


class Write(NamedTuple):
    """Bytes were written into the cache of a file."""

    inode: int
    offset: int
    data: bytes


class Truncate(NamedTuple):
    """A file was cut, in the cache."""

    inode: int
    size: int


class Sync(NamedTuple):
    """The bytes of a file were made safe; after a failure the cache takes them for safe all the same, as Linux does."""

    inode: int
    succeeded: bool


class SyncDirectory(NamedTuple):
    """The names in a directory were made safe."""

    inode: int


class Link(NamedTuple):
    """A file or directory was made."""

    directory: int
    name: str
    inode: int
    is_directory: bool


class Unlink(NamedTuple):
    """A name was taken away."""

    directory: int
    name: str
    inode: int


class Rename(NamedTuple):
    """A file got another name, over what had it."""

    old_directory: int
    old_name: str
    directory: int
    name: str
    inode: int


class Mark(NamedTuple):
    """What was promised from here on, in whatever form the one who recorded it uses."""

    promise: object


Change = Write | Truncate | Sync | SyncDirectory | Link | Unlink | Rename | Mark


class Inode:
    """A file or a directory, as the cache has it.

    Attributes:
        number: Never used again.
        data: The bytes of a file.
        names: Of a directory, ``None`` for a file.
        links: How many names it has.
    """

    def __init__(self, number: int, *, is_directory: bool) -> None:
        self.number = number
        self.data = bytearray()
        self.names: dict[str, Inode] | None = {} if is_directory else None
        self.links = 1


class Entry:
    """What the file store uses of an ``os.DirEntry``."""

    def __init__(self, directory: str, name: str, inode: Inode) -> None:
        self.name = name
        self.path = f"{directory}/{name}"
        self._inode = inode

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Tell whether it is a directory; there are no links to follow."""
        del follow_symlinks
        return self._inode.names is not None

    def is_symlink(self) -> bool:
        """Tell that it is none."""
        return False


class _Open:
    def __init__(self, inode: Inode, flags: int) -> None:
        self.inode = inode
        self.flags = flags
        self.position = 0
        self.has_lock = False


class MemoryIo(FileIo):
    """The operating system of one process on a disk in memory.

    Args:
        tree: See ``lay``.

    Attributes:
        log: Every change, in order.
        kill_at: Length of the log at which the next change raises ``Killed``; ``None`` for never.
        kill_before: A kind of change, the next of which raises ``Killed``; ``None`` for none.
        sync_error: What syncs fail with; ``None`` while they work.
    """

    def __init__(self, tree: Mapping[str, bytes | None] | None = None) -> None:
        super().__init__()
        self.log: list[Change] = []
        self.kill_at: int | None = None
        self.kill_before: type[Change] | None = None
        self.sync_error: int | None = None
        self._inodes = 1
        self.top = Inode(0, is_directory=True)
        self._open: dict[int, _Open] = {}
        self._descriptors = 3
        self.lay(tree or {})

    def lay(self, tree: Mapping[str, bytes | None]) -> None:
        """Put files on an empty disk, safely."""
        for path, data in tree.items():
            parent, name = self._parent(path)
            inode = parent[name] = self._make(is_directory=data is None)
            inode.data += data or b""

    def kill(self) -> None:
        """End the process: its descriptors and locks are gone, what it wrote stays in the cache."""
        self._open.clear()
        self.kill_at = self.kill_before = None

    def mark(self, promise: object) -> None:
        """Note what is promised from here on."""
        self.log.append(Mark(promise))

    def tree(self) -> Tree:
        """Return what a reader of the cache sees."""
        found: Tree = {}

        def walk(path: str, names: dict[str, Inode]) -> None:
            for name, inode in sorted(names.items()):
                below = f"{path}/{name}"
                found[below] = bytes(inode.data) if inode.names is None else None
                if inode.names is not None:
                    walk(below, inode.names)

        walk("", self.top.names or {})
        return found

    def open(self, path: str, flags: int) -> int:
        names, name = self._parent(path)
        inode = names.get(name)
        if inode is None:
            if not flags & os.O_CREAT:
                raise _error(errno.ENOENT)
            inode = self._link(path, names, name, is_directory=False)
        elif inode.names is not None:
            raise _error(errno.EISDIR)
        if flags & os.O_TRUNC and inode.data:
            self._change(Truncate(inode.number, 0))
            inode.data.clear()
        self._descriptors += 1
        self._open[self._descriptors] = _Open(inode, flags)
        return self._descriptors

    def close(self, fd: int) -> None:
        self._open.pop(fd, None)  # a killed process has none left, and closes what it had on its way out

    def read(self, fd: int, size: int, offset: int) -> bytes:
        return bytes(self._open[fd].inode.data[offset : offset + size])

    def write(self, fd: int, data: bytes | memoryview) -> int:
        opened = self._open[fd]
        inode = opened.inode
        offset = len(inode.data) if opened.flags & os.O_APPEND else opened.position
        self._change(Write(inode.number, offset, bytes(data)))
        if len(inode.data) < offset:
            inode.data.extend(bytes(offset - len(inode.data)))
        inode.data[offset : offset + len(data)] = data
        opened.position = offset + len(data)
        return len(data)

    def sync(self, fd: int) -> None:
        self._change(Sync(self._open[fd].inode.number, self.sync_error is None))
        if self.sync_error is not None:
            raise _error(self.sync_error)

    def sync_directory(self, path: str) -> None:
        inode = self._directory(path)
        if self.sync_error is not None:
            raise _error(self.sync_error)
        self._change(SyncDirectory(inode.number))

    def truncate(self, fd: int, size: int) -> None:
        inode = self._open[fd].inode
        self._change(Truncate(inode.number, size))
        del inode.data[size:]
        inode.data.extend(bytes(size - len(inode.data)))

    def stat(self, fd: int) -> os.stat_result:
        inode = self._open[fd].inode
        return os.stat_result((stat.S_IFREG | 0o644, inode.number, 0, inode.links, 0, 0, len(inode.data), 0, 0, 0))

    def lock(self, fd: int, operation: int) -> None:
        if operation == UNLOCK:
            if fd in self._open:
                self._open[fd].has_lock = False
            return
        opened = self._open[fd]
        if any(other.has_lock and other.inode is opened.inode for other in self._open.values() if other is not opened):
            raise _error(errno.EDEADLK)  # one thread: whoever holds it would never give it back
        opened.has_lock = True

    def rename(self, old: str, new: str) -> None:
        old_names, old_name = self._parent(old)
        names, name = self._parent(new)
        if old_name not in old_names:
            raise _error(errno.ENOENT)
        inode = old_names[old_name]
        self._change(Rename(self._holder(old).number, old_name, self._holder(new).number, name, inode.number))
        if name in names:
            names[name].links -= 1
        del old_names[old_name]
        names[name] = inode

    def unlink(self, path: str) -> None:
        names, name = self._parent(path)
        if name not in names:
            raise _error(errno.ENOENT)
        if names[name].names is not None:
            raise _error(errno.EISDIR)
        self._unlink(path, names, name)

    def make_directory(self, path: str) -> None:
        names, name = self._parent(path)
        if name in names:
            raise _error(errno.EEXIST)
        self._link(path, names, name, is_directory=True)

    def refuse_links(self, root: str, path: str) -> None:
        del root, path  # there are none

    def remove_directory(self, path: str) -> None:
        names, name = self._parent(path)
        if self._directory(path).names:
            raise _error(errno.ENOTEMPTY)
        self._unlink(path, names, name)

    def list_directory(self, path: str) -> list[os.DirEntry[str]]:
        entries = [Entry(path, name, inode) for name, inode in (self._directory(path).names or {}).items()]
        return cast("list[os.DirEntry[str]]", entries)

    def _change(self, change: Change) -> None:
        is_due = self.kill_at is not None and len(self.log) >= self.kill_at
        if is_due or (self.kill_before is not None and isinstance(change, self.kill_before)):
            raise Killed
        self.log.append(change)

    def _link(self, path: str, names: dict[str, Inode], name: str, *, is_directory: bool) -> Inode:
        inode = self._make(is_directory=is_directory)
        self._change(Link(self._holder(path).number, name, inode.number, is_directory))
        names[name] = inode
        return inode

    def _unlink(self, path: str, names: dict[str, Inode], name: str) -> None:
        inode = names[name]
        self._change(Unlink(self._holder(path).number, name, inode.number))
        inode.links -= 1
        del names[name]

    def _make(self, *, is_directory: bool) -> Inode:
        inode = Inode(self._inodes, is_directory=is_directory)
        self._inodes += 1
        return inode

    def _holder(self, path: str) -> Inode:
        return self._directory(path.rpartition("/")[0])

    def _parent(self, path: str) -> tuple[dict[str, Inode], str]:
        names = self._holder(path).names
        assert names is not None
        return names, path.rpartition("/")[2]

    def _directory(self, path: str) -> Inode:
        inode = self.top
        for name in path.split("/")[1:]:
            if inode.names is None:
                raise _error(errno.ENOTDIR)
            if name not in inode.names:
                raise _error(errno.ENOENT)
            inode = inode.names[name]
        if inode.names is None:
            raise _error(errno.ENOTDIR)
        return inode


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
