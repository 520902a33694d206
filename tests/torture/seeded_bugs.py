"""File stores that are wrong in one way each, to see that the bench notices. They live here only."""

import argparse
import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import attrs

from memci.archive.disk import FileIo, write_all
from memci.archive.stores.contract import NewRecord, Store
from memci.archive.stores.file.journal import FileJournal, Tail
from memci.archive.stores.file.session import PAGES, SessionFiles, SyncError
from memci.archive.stores.file.store import FileSession, FileStore
from memci.archive.stores.record_codec import Header, LineCodec
from tests.torture.store_workload import StoreMaker


class NoDirectorySync(SessionFiles):
    def sync(self, target: int | str) -> None:
        if isinstance(target, int):
            super().sync(target)


class NewSessionUnsynced(SessionFiles):
    def settle(self) -> None:
        pass


class PageNamesUnsynced(SessionFiles):
    def sync(self, target: int | str) -> None:
        if not isinstance(target, str) or not target.endswith(PAGES):
            super().sync(target)


class RenamedBeforeSync(SessionFiles):
    def write_file(self, pieces: Iterable[bytes], path: str, *, sync: bool) -> None:
        super().write_file(pieces, path, sync=False)
        fd = self.io.open(path, os.O_RDWR)
        if sync:
            self.sync(fd)
        self.io.close(fd)


class NoFileSync(SessionFiles):
    def sync(self, target: int | str) -> None:
        if isinstance(target, str):
            super().sync(target)


class JournalUnsynced(FileJournal):
    def _write(self, fd: int, commit: bytes) -> None:
        write_all(self._io, fd, commit)


class WrittenInPlace(SessionFiles):
    def write_file(self, pieces: Iterable[bytes], path: str, *, sync: bool) -> None:
        if PAGES not in path:
            super().write_file(pieces, path, sync=sync)
            return
        fd = self.io.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        write_all(self.io, fd, b"".join(pieces))
        if sync:
            self.sync(fd)
        self.io.close(fd)


class FailedSyncSwallowed(SessionFiles):
    def sync(self, target: int | str) -> None:
        try:
            super().sync(target)
        except OSError:
            if isinstance(target, str):
                raise


class FailedCommitSwallowed(FileJournal):
    def _write(self, fd: int, commit: bytes) -> None:
        with suppress(SyncError):
            super()._write(fd, commit)


class DeletesTheJournalOnly(SessionFiles):
    def remove(self, forget_blobs: Callable[[], None]) -> None:  # noqa: ARG002 (the bug)
        self.unlink(self.journal)
        self.sync(self.directory)


class NoLock(SessionFiles):
    def __init__(self, root: str, io: FileIo, key: tuple[str, str], *, durable: bool, read_only: bool) -> None:
        super().__init__(root, cast("FileIo", Without(io, "lock")), key, durable=durable, read_only=read_only)


class Without:
    """The operating system without some of its calls: they do nothing."""

    def __init__(self, io: FileIo, *calls: str) -> None:
        self._io = io
        self._calls = calls

    def __getattr__(self, name: str) -> object:
        """Return the call, or one that does nothing."""
        return (lambda *_: None) if name in self._calls else getattr(self._io, name)


class CutsTooMuch(FileJournal):
    def _find_tail(self, size: int) -> Tail:
        tail = super()._find_tail(size)
        return super()._find_tail(tail.end - 1) if tail.end < size else tail


class TakesHolesForDamage(FileJournal):
    def _is_torn(self, start: int, line: bytes, size: int) -> bool:
        return super()._is_torn(start, line.replace(b"\0", b" "), size)


class TornTailKept(FileJournal):
    def __init__(self, files: SessionFiles, codec: LineCodec) -> None:
        super().__init__(files, codec)
        self._io = cast("FileIo", Without(files.io, "truncate"))


class AnyHeadWillDo(FileJournal):
    def _commit(self, expected: int, commit: bytes, count: int, size: int) -> None:
        file = self._opened()
        if file is not None:
            size = self._io.stat(file.fd).st_size
            file.tail = Tail(expected, size)
        super()._commit(expected, commit, count, size)


class AcknowledgesFirst(FileJournal):
    """Writes in a thread, and whoever comes next waits for it."""

    _writing: threading.Thread | None = None

    def head(self) -> int:
        self._wait()
        return super().head()

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        self._wait()
        self._writing = threading.Timer(0.02, super().append, (expected, records))
        self._writing.start()
        return expected + len(records)

    def read(self, after: int = 0, until: int | None = None) -> Any:  # noqa: ANN401 (what the journal's own returns)
        self._wait()
        return super().read(after, until)

    def _wait(self) -> None:
        if self._writing is not None:
            self._writing.join()


class CommitsInPieces(LineCodec):
    def encode_commit(self, expected: int, records: Sequence[NewRecord]) -> bytes:
        each = super().encode_commit
        return b"".join(each(expected + place, [record]) for place, record in enumerate(records))


class NoChecksum(LineCodec):
    def decode_body(self, line: bytes, header: Header) -> tuple[bytes, bool]:
        return line[header.body_start : -2], False


class SnapshotsUnchecked(LineCodec):
    def decode_snapshot(self, line: bytes, seq: int) -> bytes:
        del seq
        return line.partition(b'"body":')[2][:-2]


class Hoards(LineCodec):
    kept: tuple[bytes, ...] = ()

    def encode_commit(self, expected: int, records: Sequence[NewRecord]) -> bytes:
        lines = super().encode_commit(expected, records)
        Hoards.kept = (*Hoards.kept[-1:], lines * 4, *Hoards.kept[:-1])
        return lines


class BuggyStore(FileStore):
    """A file store with some of its parts replaced."""

    def __init__(self, root: str, durability: str, io: FileIo | None, parts: "Parts") -> None:
        super().__init__(root, durability, io=io)
        self._parts = parts

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> FileSession:
        durable = self.durability == "fsync"
        files = self._parts.files(self.root, self.io, (tenant, session_id), durable=durable, read_only=read_only)
        journal = self._parts.journal(files, self._parts.codec(tenant, session_id))
        self._opened.add(journal)
        return FileSession(journal)


@attrs.frozen
class Parts:
    """What a store is put together from."""

    files: Callable[..., SessionFiles] = SessionFiles
    journal: Callable[[SessionFiles, LineCodec], FileJournal] = FileJournal
    codec: Callable[[str, str], LineCodec] = LineCodec


@attrs.frozen
class Bug:
    """A store that is wrong.

    Attributes:
        what: In a few words.
        part: The module of the bench that is to notice.
        parts: What is wrong in it.
    """

    what: str
    part: str
    parts: Parts

    def make(self, root: str, io: FileIo | None = None, durability: str = "fsync") -> Store:
        """Make the store; it is a ``StoreMaker``."""
        return BuggyStore(root, durability, io, self.parts)


BUGS = {
    "no-directory-sync": Bug("directories are never synced", "crash_states", Parts(NoDirectorySync)),
    "new-session-unsynced": Bug("the directories of a new session are not synced", "crash_states", Parts(NewSessionUnsynced)),
    "page-names-unsynced": Bug("no directory sync after the rename of a page file", "crash_states", Parts(PageNamesUnsynced)),
    "rename-before-sync": Bug("files are renamed before they are synced", "crash_states", Parts(RenamedBeforeSync)),
    "no-file-sync": Bug("files are never synced", "crash_states", Parts(NoFileSync, JournalUnsynced)),
    "journal-unsynced": Bug("the journal is written and not synced", "crash_states", Parts(journal=JournalUnsynced)),
    "in-place": Bug("page files are written in place", "crash_states", Parts(WrittenInPlace)),
    "failed-sync-swallowed": Bug(
        "a sync that fails is taken for a good one", "crash_states", Parts(FailedSyncSwallowed, FailedCommitSwallowed)
    ),
    "half-deletion": Bug("deleting removes the journal only", "crash_states", Parts(DeletesTheJournalOnly)),
    "cut-too-much": Bug("a torn tail takes the last whole commit with it", "crash_states", Parts(journal=CutsTooMuch)),
    "holes-are-damage": Bug(
        "a block that was never written is taken for damage", "crash_states", Parts(journal=TakesHolesForDamage)
    ),
    "torn-tail-kept": Bug("a torn tail is not cut", "crash_states", Parts(journal=TornTailKept)),
    "commits-in-pieces": Bug("a commit of several records is as many commits", "crash_states", Parts(codec=CommitsInPieces)),
    "snapshots-unchecked": Bug("snapshots are not checked", "crash_states", Parts(codec=SnapshotsUnchecked)),
    "no-checksum": Bug("bodies are not compared with their hash", "damage", Parts(codec=NoChecksum)),
    "acknowledges-first": Bug("an append is acknowledged before it is written", "kills", Parts(journal=AcknowledgesFirst)),
    "no-lock": Bug("writers do not lock", "writers", Parts(NoLock)),
    "any-head-will-do": Bug("an append does not compare the head", "writers", Parts(journal=AnyHeadWillDo)),
    "hoards": Bug("every commit is kept in memory", "soak", Parts(codec=Hoards)),
}
"""By name."""


def maker(bug: str, otherwise: StoreMaker) -> StoreMaker:
    """Return what makes the store with a bug of this name; without a name, the other one."""
    return BUGS[bug].make if bug else otherwise


def given_to(arguments: argparse.ArgumentParser) -> argparse.Namespace:
    """Read the arguments of a part of the bench that writes, with those that all such parts take; memci's log goes nowhere."""
    arguments.add_argument("--directory", type=Path, help="where to write; a temporary directory by default")
    arguments.add_argument("--bug", default="", help="a seeded bug that is to be noticed")
    logging.getLogger("memci").addHandler(logging.NullHandler())
    return arguments.parse_args()
