"""Sessions in one directory, readable with any editor; docs/reference.md shows the files."""

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

import orjson

from memci.archive import refusal
from memci.archive.disk import FileIo, find_file, is_of_other_kind, take_lock
from memci.archive.stores.contract import Usage
from memci.archive.stores.file.journal import FileJournal
from memci.archive.stores.file.session import INDEX, JSON, LOCK, NOTE, SessionFiles
from memci.archive.stores.names import (
    BLOBS,
    check_identifier,
    check_key,
    check_page_name,
    file_name,
    find_session,
    is_hashed,
    is_page_name,
    session_name,
)
from memci.archive.stores.record_codec import DamagedLineError, LineCodec, superfluous
from memci.errors import ConfigError, StoreError, UnavailableError

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex


def check_durability(value: str) -> str:
    """Return the durability if it is a known one; raise ``ConfigError`` if not."""
    if value not in ("fsync", "flush"):
        message = f"{value!r} is no durability: give fsync or flush"
        raise ConfigError(message, path="durability")
    return value


class _Part:
    _is_settled = False  # the directory's own name is safe

    def __init__(self, journal: FileJournal) -> None:
        self._files = journal.files
        self._journal = journal


class _Pages(_Part):
    """One file a page, readable with any editor."""

    def put(self, pages: Mapping[str, bytes]) -> None:
        """Write n pages with n + 1 syncs, the first of an opening one more. A crash leaves each as it was or as it should be."""
        files = self._files
        names = [check_page_name(name) + JSON for name in pages]
        if not names:
            return
        with self._journal.locked(files.pages):
            if files.make_directory(files.pages) or not self._is_settled:
                # Whoever made it, or began the journal, may have died before its name was safe.
                if self._journal.size():
                    files.sync(files.directory)
                else:
                    files.settle()
                self._is_settled = True
            for name, page in zip(names, pages.values(), strict=True):
                files.write_file([page], f"{files.pages}/{name}", sync=True)
            files.sync(files.pages)

    def find(self, name: str) -> bytes | None:
        file = check_page_name(name) + JSON
        with self._files.reported(f"{self._files.pages}/{file}"):
            return self._files.find_file(self._files.pages, file)

    def names(self) -> Iterator[str]:
        with self._files.reported(self._files.pages):
            files = self._files.list_names(self._files.pages)
        yield from filter(is_page_name, [file.removesuffix(JSON) for file in files if file.endswith(JSON)])

    def remove(self, names: Collection[str]) -> None:
        wanted = {check_page_name(name) + JSON for name in names}
        with self._journal.locked(self._files.pages):
            self._files.remove_files(self._files.pages, wanted)


class _Snapshots(_Part):
    """One file a state, replaced whole and never synced."""

    def put(self, seq: int, body: bytes) -> None:
        files = self._files
        with self._journal.locked(files.snapshots):
            files.make_directory(files.snapshots)
            files.write_file([self._journal.codec.encode_snapshot(seq, body)], f"{files.snapshots}/{seq}{JSON}", sync=False)
            for old in superfluous(files.snapshot_seqs()):
                files.unlink(f"{files.snapshots}/{old}{JSON}")

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        return next(((seq, body) for seq, body in self._bodies(at_most) if isinstance(body, bytes)), None)

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each damaged snapshot, oldest first."""
        place = self._files.snapshots.removeprefix(f"{self._files.root}/")
        for seq, error in reversed([(seq, body) for seq, body in self._bodies() if not isinstance(body, bytes)]):
            yield f"{place}/{seq}{JSON}: {error}; it is not used and can be deleted"

    def clear(self) -> None:
        with self._journal.locked(self._files.snapshots):
            self._files.remove_files(self._files.snapshots)

    def _bodies(self, at_most: int | None = None) -> Iterator[tuple[int, bytes | DamagedLineError]]:
        """Yield the states with ``seq <= at_most``, newest first, each with its body or what is wrong with that."""
        files = self._files
        with files.reported(files.snapshots):
            for seq in sorted(files.snapshot_seqs(), reverse=True):
                line = files.find_file(files.snapshots, f"{seq}{JSON}") if at_most is None or seq <= at_most else None
                if line is not None:
                    try:
                        yield seq, self._journal.codec.decode_snapshot(line, seq)
                    except DamagedLineError as error:
                        yield seq, error


class _Blobs(_Part):
    """The data of a tenant as files named by their SHA-256, and beside each a file ``<SHA-256>.<session>`` for who refers to it.

    That holds the last record that the session put it for; it is safe before the data, and goes before it. Whoever adds or
    removes takes the lock of the directory, under that of the session.
    """

    def __init__(self, journal: FileJournal) -> None:
        super().__init__(journal)
        self._directory = self._files.blobs
        self._suffix = f".{self._files.name}"

    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:
        """Keep blobs for records up to *seq*. New ones cost two syncs each, and there is one for all; copies cost none."""
        files = self._files
        with files.reported(self._directory):
            if not seq and all(self._seq(name) >= 0 and self._read(name) == blob for name, blob in blobs.items()):
                return blobs  # what records hold is safe, and all others are copies
        with self._journal.locked(self._directory), self._locked():
            made: list[str] = []
            try:
                for name, blob in blobs.items():
                    known, stored = self._seq(name), self._read(name)
                    made += [name + self._suffix] * (known < 0) + [name] * (stored is None)
                    if known < seq:
                        files.write_file([b"%d" % seq], self._path(name + self._suffix), sync=True)
                    if stored != blob:
                        files.write_file([blob], self._path(name), sync=True)
                if not self._is_settled:  # whoever made the directory may have died before its name was safe
                    files.sync(files.tenant_directory)
                    files.sync(files.root)
                    self._is_settled = True
                files.sync(self._directory)  # whoever made what is there may have died before
            except OSError:
                for name in reversed(made):  # nobody may take what is not safe for what is there
                    with suppress(OSError):
                        files.unlink(self._path(name))
                raise
        return blobs

    def find(self, name: str) -> bytes | None:
        with self._files.reported(self._directory):
            return self._read(name)

    def names(self) -> Iterator[str]:
        """Yield the names of the blobs that the session refers to, in no order. O(blobs of the tenant)."""
        with self._files.reported(self._directory):
            yield from self._own()

    def drop(self, names: Collection[str], seq: int) -> None:
        """Forget references for records up to *seq*, and files without any. One sync. O(blobs of the tenant)."""
        with self._journal.locked(self._directory), self._locked():
            self._forget([name for name in names if self._seq(name) <= seq])

    def forget_all(self) -> None:
        """Forget all references of the session, which is being deleted, under its lock. Raises ``OSError``."""
        if self._files.list_names(self._directory):
            with self._locked():
                self._forget(self._own())

    def _forget(self, names: Collection[str]) -> None:
        for name in names:
            self._files.unlink(self._path(name + self._suffix))
        found = self._files.list_names(self._directory)
        referred = {LOCK, *(name.partition(".")[0] for name in found if "." in name)}
        for name in found:
            if "." not in name and name not in referred:
                self._files.unlink(self._path(name))
        self._files.sync(self._directory)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        io = self._files.io
        self._files.make_directory(self._directory)
        fd = io.open(self._path(LOCK), os.O_RDWR | os.O_CREAT)
        try:
            take_lock(fd, io.wait_s, io.lock)
            yield
        finally:
            io.close(fd)

    def _seq(self, name: str) -> int:
        """Return the record that the session put a blob for last, -1 for none."""
        text = self._read(name + self._suffix)
        return -1 if text is None else int(text) if text.isdigit() else 0

    def _own(self) -> list[str]:
        found = self._files.list_names(self._directory)
        return [name.removesuffix(self._suffix) for name in found if name.endswith(self._suffix)]

    def _read(self, name: str) -> bytes | None:
        return self._files.find_file(self._directory, name)

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"


class FileSession:
    """Implements ``memci.archive.stores.contract.SessionStore``. For one thread at a time."""

    def __init__(self, journal: FileJournal) -> None:
        self.journal = journal
        self.pages = _Pages(journal)
        self.snapshots = _Snapshots(journal)
        self.blobs = _Blobs(journal)
        self.durability = "fsync" if journal.files.durable else "flush"
        self._index_path = f"{journal.files.directory}/{INDEX}"
        self._index: PageIndex | None = None

    @property
    def index(self) -> "PageIndex":
        """Page facts and search, opened when first asked for, which makes the directory of a new session."""
        if self._index is None:
            files = self.journal.files
            with files.reported(self._index_path):
                from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (loads sqlite3, which few openings need)

                files.entered(files.directory)
                with nullcontext() if files.read_only else self.journal.locked(self._index_path):
                    self._index = PageIndex(self._index_path, read_only=files.read_only)
        return self._index

    def indexed_seq(self) -> int:
        """Return the last record that the index knows of; 0 where there is none that can be read."""
        if not os.path.exists(self._index_path):  # noqa: PTH110 (no error on a failing disk)
            return 0
        from memci.archive.catalogue.index_file import stored_seq  # noqa: PLC0415 (as above)

        return stored_seq(self._index_path)

    def rest(self) -> None:
        """Give back the files until the next call."""
        self._close_index()
        self.journal.rest()

    def close(self) -> None:
        """Give back files and locks. May be called twice."""
        self._close_index()
        self.journal.close()

    def _close_index(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            index.close()


class FileStore:
    """Implements ``memci.archive.stores.contract.Store`` on a directory of a local file system (POSIX).

    Many processes of one machine may use it at once; docs/durability.md has the promises. *root* is made with the first record; a
    relative path is meant from here and now. *io* is the operating system, to count its calls or to make them fail.
    """

    def __init__(self, root: "str | os.PathLike[str]", durability: str = "fsync", *, io: FileIo | None = None) -> None:
        self.durability = check_durability(durability)
        self.io = io or FileIo()
        self.root = str(Path(root).absolute())
        self._opened: WeakSet[FileJournal] = WeakSet()

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> FileSession:
        """Open what is stored of a session; nothing is read or written before it is asked for."""
        key = check_key(tenant, session_id)
        files = SessionFiles(self.root, self.io, key, durable=self.durability == "fsync", read_only=read_only)
        journal = FileJournal(files, LineCodec(*key))
        self._opened.add(journal)
        return FileSession(journal)

    def sessions(self, tenant: str) -> Iterator[str]:
        """Yield the ids of the sessions that have at least one record, in no order. Reads the end of each journal.

        What is left of a session that was half made or half deleted is passed over. A session is listed whatever stands in
        the place of its journal: whoever opens it is told.
        """
        name = file_name(check_identifier(tenant, "tenant"))
        path = f"{self.root}/{name}"
        try:
            self.io.refuse_links(self.root, path)
            entries = self.io.list_directory(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise refusal.unavailable(error, name) from error
        yield from filter(None, (self._find_session(tenant, entry) for entry in entries))

    def usage(self, tenant: str) -> Usage:
        """Measure the files of a tenant, its indexes included. O(files)."""
        place = f"{self.root}/{file_name(check_identifier(tenant, 'tenant'))}"
        measured = 0
        try:
            self.io.refuse_links(self.root, place)
            for directory, _, names in os.walk(place):
                for name in names:
                    with suppress(FileNotFoundError):  # a file that goes meanwhile
                        measured += os.lstat(f"{directory}/{name}").st_size
        except FileNotFoundError:
            pass
        except OSError as error:
            raise refusal.unavailable(error, place) from error
        return Usage(sessions=sum(1 for _ in self.sessions(tenant)), stored_bytes=measured)

    def sweep(self, tenant: str) -> None:
        """Remove the directories of a tenant that hold no session with a record, but for blobs of others. O(its sessions)."""
        name = file_name(check_identifier(tenant, "tenant"))
        try:
            self.io.refuse_links(self.root, f"{self.root}/{name}")
            entries = [entry for entry in self.io.list_directory(f"{self.root}/{name}") if not entry.is_symlink()]
        except FileNotFoundError:
            return
        except OSError as error:
            raise refusal.unavailable(error, name) from error
        for entry in entries:
            if not entry.is_dir() or entry.name == BLOBS or self._find_session(tenant, entry) is not None:
                continue
            session_id = self._noted_id(tenant, entry) if is_hashed(entry.name) else find_session(entry.name)
            if session_id and session_name(session_id) == entry.name:
                self.delete(tenant, session_id)
            elif is_hashed(entry.name):  # its id went first
                shutil.rmtree(entry.path, ignore_errors=True)

    def delete(self, tenant: str, session_id: str) -> None:
        """Remove all that is stored of a session, durably; after an ``UnavailableError`` something is left: call again."""
        session = self.open(tenant, session_id)
        files = session.journal.files
        with files.reported(files.directory), closing(session):
            try:
                self.io.list_directory(files.directory)
            except FileNotFoundError:
                return
            with session.journal.locked(files.directory):
                files.remove(session.blobs.forget_all)

    def close(self) -> None:
        """Give back the files of the sessions that are still open. May be called twice."""
        for journal in list(self._opened):
            journal.close()

    def _find_session(self, tenant: str, entry: "os.DirEntry[str]") -> str | None:
        """Return the id of the session in a directory, ``None`` where there is none with a record."""
        if entry.is_symlink():
            return find_session(entry.name)  # whoever opens it is told that it is a link
        if not entry.is_dir():
            return None
        session_id = self._noted_id(tenant, entry) if is_hashed(entry.name) else find_session(entry.name)
        is_one = session_id and session_name(session_id) == entry.name and self._has_records(tenant, session_id)
        return session_id if is_one else None

    def _noted_id(self, tenant: str, entry: "os.DirEntry[str]") -> str | None:
        try:
            note = orjson.loads(find_file(self.io, f"{entry.path}/{NOTE}") or b"")
        except ValueError:
            return None
        except OSError as error:
            if is_of_other_kind(error):  # as damaged as one that is no JSON
                return None
            raise refusal.unavailable(error, f"{entry.name}/{NOTE}") from error
        match note:
            case {"tenant": str(owner), "session": str(session_id)} if owner == tenant:
                return session_id
        return None

    def _has_records(self, tenant: str, session_id: str) -> bool:
        try:
            with closing(self.open(tenant, session_id, read_only=True)) as session:
                return session.journal.head() > 0
        except StoreError as error:
            if isinstance(error, UnavailableError) and not is_of_other_kind(error.__cause__):
                raise
            return True  # damaged, of a newer memci, or none: whoever opens it is told
