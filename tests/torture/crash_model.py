"""Every state in which a loss of power may leave a disk, by the changes that were made on it.

The model, which is at least as unkind as ext4 and XFS are documented to be:

* A file is pages of 4,096 bytes. A page that was written and not synced since holds any of its versions from the last that is
  safe on, or some sectors of 512 bytes of one and the rest of the one before. Pages are independent of each other, and of other
  files. A disk writes a sector whole or not at all.
* The size of a file is any that it had since its last sync, independent of its pages: bytes that were never written are NUL.
  A write in progress may also have got as far as any of its bytes.
* A sync makes the pages that changed since the last one, and the size, safe. A sync that fails makes nothing safe, and the pages
  count as clean afterwards: a later sync does not write them again unless they change again.
* A change of names (a file or directory made, removed or renamed) is atomic, and safe once the directory that holds the (new)
  name was synced. Of those that are not safe, ``ordered`` keeps the first so many of all, as a journalled file system does;
  ``loose`` keeps any subset, as POSIX allows.
* What is synced is there.
"""

import random
from collections.abc import Callable, Iterator, Mapping

from tests.torture.memory_disk import Change, Link, Mark, Rename, Sync, SyncDirectory, Tree, Truncate, Unlink, Write

PAGE = 4_096
SECTOR = 512
LOOSE_SUBSETS = 4
"""Up to so many changes of names that are not safe, every subset is tried; beyond it, a sample."""

NAME_CHOICES = 12
"""At most so many choices of names are combined with all plain choices of bytes, after one change."""

TORN_BYTES = 16
"""A write in progress is cut at each of so many bytes from its beginning and its end, and at a sample of those between."""

Content = Callable[["FileHistory"], bytes]
"""Which of the states that a file may be in it is in."""


class FileHistory:
    """What a file may hold after a loss of power.

    Attributes:
        sizes: That which is safe, and all that it had since, the last one in the cache.
        versions: By page, the version that is safe and all since, the last one in the cache. A page that is not here is NUL.
    """

    def __init__(self, data: bytes = b"") -> None:
        self.sizes = [len(data)]
        self.versions = {start // PAGE: [data[start : start + PAGE]] for start in range(0, len(data), PAGE)}
        self._dirty: set[int] = set()

    @property
    def is_certain(self) -> bool:
        """Whether there is one state only."""
        return len(self.sizes) == 1 and all(len(versions) == 1 for versions in self.versions.values())

    def write(self, offset: int, data: bytes) -> None:
        """Change the cache."""
        position = offset
        while position < offset + len(data):
            page, start = divmod(position, PAGE)
            piece = data[position - offset : position - offset + PAGE - start]
            versions = self.versions.setdefault(page, [b""])
            old = versions[-1]
            versions.append(old[:start].ljust(start, b"\0") + piece + old[start + len(piece) :])
            self._dirty.add(page)
            position += len(piece)
        self.sizes.append(max(self.sizes[-1], offset + len(data)))

    def truncate(self, size: int) -> None:
        """Change the cache."""
        for page, versions in self.versions.items():
            kept = versions[-1][: max(size - page * PAGE, 0)]
            if kept != versions[-1]:
                versions.append(kept)
                self._dirty.add(page)
        self.sizes.append(size)

    def sync(self, *, succeeded: bool) -> None:
        """Make safe what is dirty, or only believe it."""
        if succeeded:
            for page in self._dirty:
                del self.versions[page][:-1]
            del self.sizes[:-1]
        self._dirty.clear()

    def content(self, size: int, version: Callable[[int, list[bytes]], bytes]) -> bytes:
        """Return the file at a size, with a version of each page as *version* chooses it by number and versions."""
        pages = bytearray()
        for page in range(-(-size // PAGE)):
            pages += version(page, self.versions.get(page, [b""]))[:PAGE].ljust(PAGE, b"\0")
        return bytes(pages[:size])


def newest(file: FileHistory) -> bytes:
    """Everything in the cache came to the disk."""
    return file.content(file.sizes[-1], lambda _, versions: versions[-1])


def oldest(file: FileHistory) -> bytes:
    """Nothing came to the disk but what was synced."""
    return file.content(file.sizes[0], lambda _, versions: versions[0])


def size_only(file: FileHistory) -> bytes:
    """The size came to the disk, and no page."""
    return file.content(file.sizes[-1], lambda _, versions: versions[0])


def pages_only(file: FileHistory) -> bytes:
    """The pages came to the disk, and not the size."""
    return file.content(file.sizes[0], lambda _, versions: versions[-1])


def but_first_page(file: FileHistory) -> bytes:
    """All came to the disk but the first page that changed."""
    first = min((page for page, versions in file.versions.items() if len(versions) > 1), default=-1)
    return file.content(file.sizes[-1], lambda page, versions: versions[0 if page == first else -1])


def but_last_page(file: FileHistory) -> bytes:
    """All came to the disk but the last page that changed."""
    last = max((page for page, versions in file.versions.items() if len(versions) > 1), default=-1)
    return file.content(file.sizes[-1], lambda page, versions: versions[0 if page == last else -1])


WHOLE_CHOICES: tuple[Content, ...] = (newest, oldest, size_only, pages_only, but_first_page, but_last_page)


class DiskHistory:
    """What a disk may hold after a loss of power, while the changes are taken in one by one.

    Args:
        tree: What was safe at the beginning, as ``MemoryIo`` got it.
    """

    def __init__(self, tree: Mapping[str, bytes | None]) -> None:
        self.files: dict[int, FileHistory] = {}
        self._names: dict[int, dict[str, int]] = {0: {}}
        self._pending: list[Link | Unlink | Rename] = []
        self._safe: list[bool] = []
        numbers = {"": 0}
        for number, (path, data) in enumerate(tree.items(), start=1):
            directory, _, name = path.rpartition("/")
            self._names[numbers[directory]][name] = numbers[path] = number
            if data is None:
                self._names[number] = {}
            else:
                self.files[number] = FileHistory(data)

    def take(self, change: Change) -> None:
        """Take in the next change."""
        match change:
            case Write():
                self._file(change.inode).write(change.offset, change.data)
            case Truncate():
                self._file(change.inode).truncate(change.size)
            case Sync():
                self._file(change.inode).sync(succeeded=change.succeeded)
            case SyncDirectory():
                self._make_safe(change.inode)
            case Link() | Unlink() | Rename():
                self._pending.append(change)
                self._safe.append(False)
            case Mark():
                pass

    def states(self, last: Change, chance: random.Random, samples: int) -> Iterator[Tree]:
        """Yield the states that a loss of power may leave now: all of the plain ones, and a sample of the rest.

        Args:
            last: The change that was taken last, which may have been in progress.
            chance: Chooses the sample.
            samples: How many to draw.
        """
        *some, every = self._name_choices(chance)
        ways = [*chance.sample(some, min(len(some), NAME_CHOICES)), every]
        for names in ways:
            for content in WHOLE_CHOICES if any(not file.is_certain for file in self.files.values()) else (newest,):
                yield self._tree(names, content)
        if isinstance(last, Write):
            size = len(last.data)
            inner = range(TORN_BYTES, size - TORN_BYTES)
            between = chance.sample(inner, min(TORN_BYTES, len(inner)))
            for reached in (*range(min(size, TORN_BYTES)), *between, *range(max(size - TORN_BYTES, TORN_BYTES), size)):
                for whole_size in (False, True):
                    yield self._tree(ways[-1], self._torn(last, reached, whole_size=whole_size))
        for _ in range(samples):
            yield self._tree(chance.choice(ways), _at_random(chance))

    def strict_state(self, content: Content) -> Tree:
        """Return the state in which no name is there that is not safe."""
        return self._tree(self._named(lambda place: self._safe[place]), content)

    def _file(self, inode: int) -> FileHistory:
        return self.files.setdefault(inode, FileHistory())

    def _make_safe(self, directory: int) -> None:
        """Note that the names in a directory are safe; what has nothing before it that is not is applied for good."""
        renamed: set[int] = set()
        for place, change in reversed(list(enumerate(self._pending))):
            # A name that was given is safe only together with the making of the file.
            self._safe[place] |= change.directory == directory or (isinstance(change, Link) and change.inode in renamed)
            if self._safe[place] and isinstance(change, Rename):
                renamed.add(change.inode)
        while self._safe and self._safe[0]:
            _apply(self._names, self._pending.pop(0))
            self._safe.pop(0)

    def _name_choices(self, chance: random.Random) -> Iterator[dict[int, dict[str, int]]]:
        """Yield what the directories may hold; the last one has every change."""
        open_places = [place for place, safe in enumerate(self._safe) if not safe]
        if len(open_places) <= LOOSE_SUBSETS:
            subsets = list(range(1 << len(open_places)))
        else:
            subsets = [chance.getrandbits(len(open_places)) for _ in range(1 << LOOSE_SUBSETS)]
        for subset in subsets:
            kept = {place for bit, place in enumerate(open_places) if subset >> bit & 1}
            yield self._named(lambda place, kept=kept: self._safe[place] or place in kept)  # type: ignore[misc]
        floor = max((place + 1 for place, safe in enumerate(self._safe) if safe), default=0)
        for end in range(floor, len(self._pending) + 1):
            yield self._named(lambda place, end=end: place < end)  # type: ignore[misc]

    def _named(self, is_kept: Callable[[int], bool]) -> dict[int, dict[str, int]]:
        names = {inode: dict(entries) for inode, entries in self._names.items()}
        for place, change in enumerate(self._pending):
            if is_kept(place):
                _apply(names, change)
        return names

    def _torn(self, write: Write, reached: int, *, whole_size: bool) -> Content:
        written = self._file(write.inode)

        def content(file: FileHistory) -> bytes:
            if file is not written:
                return newest(file)
            data = newest(file)
            end = write.offset + reached
            rest = file.sizes[-1] - end if whole_size else max(file.sizes[-2] - end, 0)
            return data[:end] + bytes(rest)

        return content

    def _tree(self, names: dict[int, dict[str, int]], content: Content) -> Tree:
        found: Tree = {}

        def walk(path: str, entries: dict[str, int]) -> None:
            for name, inode in sorted(entries.items()):
                below = f"{path}/{name}"
                directory = names.get(inode)
                if directory is not None:
                    found[below] = None
                    walk(below, directory)
                else:
                    found[below] = content(self._file(inode))

        walk("", names[0])
        return found


def _at_random(chance: random.Random) -> Content:
    drawn: dict[FileHistory, bytes] = {}

    def version(_: int, versions: list[bytes]) -> bytes:
        place = chance.randrange(len(versions))
        if place and chance.random() < 0.3:  # a share of the pages is torn
            sectors = [(chance.choice((place, place - 1)), start) for start in range(0, PAGE, SECTOR)]
            return b"".join(versions[number][start : start + SECTOR].ljust(SECTOR, b"\0") for number, start in sectors)
        return versions[place]

    def content(file: FileHistory) -> bytes:
        if file.is_certain:
            return newest(file)
        if file not in drawn:
            drawn[file] = file.content(chance.choice(file.sizes), version)
        return drawn[file]

    return content


def _apply(names: dict[int, dict[str, int]], change: Link | Unlink | Rename) -> None:
    """Apply a change of names; one whose premise is lost changes what is left of it, out of reach where its directory is."""
    match change:
        case Link():
            names.setdefault(change.directory, {})[change.name] = change.inode
            if change.is_directory:
                names.setdefault(change.inode, {})
        case Unlink():
            directory = names.setdefault(change.directory, {})
            if directory.get(change.name) == change.inode:
                del directory[change.name]
        case Rename():
            old = names.setdefault(change.old_directory, {})
            if old.get(change.old_name) == change.inode:
                del old[change.old_name]
            names.setdefault(change.directory, {})[change.name] = change.inode
