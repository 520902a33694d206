"""Sessions in one directory, readable with any editor.

::

    <root>/<tenant>/blobs/                         pictures and files of all sessions, each once
    <root>/<tenant>/<session>/journal.jsonl        the truth
                              lock                 taken by whoever writes
                              session.json         tenant and session, where a name is too long to spell them
                              pages/usr-12.json    raw pages
                              snapshots/500.json   cached states
                              index.sqlite         page facts and search
"""

import os
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

import orjson

from memci.archive import refusal
from memci.archive.disk import FileIo, find_file, is_of_other_kind
from memci.archive.stores.file.journal import FileJournal
from memci.archive.stores.file.pages import FileBlobs, FilePages, FileSnapshots
from memci.archive.stores.file.session import INDEX, NOTE, SessionFiles
from memci.archive.stores.names import check_identifier, check_key, file_name, find_session, is_hashed, session_name
from memci.archive.stores.record_codec import LineCodec
from memci.errors import ConfigError, CorruptError, StoreError, UnavailableError

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex


def check_durability(value: str) -> str:
    """Return the durability if it is a known one; raise ``ConfigError`` if not."""
    if value not in ("fsync", "flush"):
        message = f"{value!r} is no durability: give fsync or flush"
        raise ConfigError(message, path="durability")
    return value


class FileSession:
    """Implements ``memci.archive.stores.contract.SessionStore``. For one thread at a time."""

    def __init__(self, journal: FileJournal) -> None:
        self.journal = journal
        self.pages = FilePages(journal)
        self.snapshots = FileSnapshots(journal)
        self.blobs = FileBlobs(journal)
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
        try:
            return self.index.seq if os.path.exists(self._index_path) else 0  # noqa: PTH110 (no error on a failing disk)
        except (CorruptError, UnavailableError):
            return 0

    def close(self) -> None:
        """Give back files and locks. May be called twice."""
        if self._index is not None:
            self._index.close()
            self._index = None
        self.journal.close()


class FileStore:
    """Implements ``memci.archive.stores.contract.Store`` on a directory of a local file system (POSIX).

    Many processes of one machine may use it at once. *root* is made with the first record; a relative path is meant from here
    and now. With the durability ``fsync`` what is acknowledged survives a loss of power, with ``flush`` the end of the process
    only. *io* is the operating system, to count its calls or to make them fail.
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
        for entry in entries:
            session_id = self._find_session(tenant, entry)
            if session_id is not None:
                yield session_id

    def delete(self, tenant: str, session_id: str) -> None:
        """Remove all that is stored of a session; nothing happens where there is none. Durable once it returns.

        After an ``UnavailableError`` something is left: call again.
        """
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
        if session_id is None or session_name(session_id) != entry.name or not self._has_records(tenant, session_id):
            return None
        return session_id

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
        session = self.open(tenant, session_id, read_only=True)
        try:
            return session.journal.head() > 0
        except StoreError as error:
            if isinstance(error, UnavailableError) and not is_of_other_kind(error.__cause__):
                raise
            return True  # damaged, of a newer memci, or none: whoever opens it is told
        finally:
            session.close()
