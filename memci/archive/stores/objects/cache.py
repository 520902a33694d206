"""The indexes of sessions that are stored elsewhere, as files of this machine."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from memci.archive import disk, refusal
from memci.archive.stores.names import file_name

if TYPE_CHECKING:
    import os

    from memci.archive.catalogue.page_index import PageIndex


class IndexCache:
    """Where the index of one session lies: ``<directory>/<tenant>/<session>/<incarnation>.sqlite``.

    All of it can be lost without harm. A session that took the place of a deleted one has a file of its own.

    Args:
        directory: ``None`` keeps indexes in memory.
        tenant: Of the session.
        session_id: Its id.
        read_only: Never write a file.
    """

    def __init__(self, directory: "str | os.PathLike[str] | None", tenant: str, session_id: str, *, read_only: bool) -> None:
        self._root = Path(directory or ".").absolute()
        self._folder = None if directory is None else self._root / file_name(tenant) / file_name(session_id)
        self._read_only = read_only

    def open(self, incarnation: str) -> "PageIndex":
        """Open the index, which may be empty or behind the journal.

        Raises:
            UnavailableError: The file can be neither opened nor made.
        """
        try:
            from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (loads sqlite3, which few openings need)

            if self._folder is None:
                return PageIndex(None)
            disk.refuse_links(str(self._root), str(self._folder))
            path = str(self._folder / f"{incarnation}.sqlite")
            if self._read_only:
                return PageIndex(path, read_only=True)
            with disk.locked(str(self._folder)):
                return PageIndex(path)
        except OSError as error:
            raise refusal.unavailable(error, "the directory of the indexes") from error

    def remove(self, incarnation: str) -> None:
        """Delete the index of one incarnation, which nobody has open."""
        if self._folder is not None and not self._read_only:
            from memci.archive.catalogue import index_file  # noqa: PLC0415 (few need it)

            index_file.remove(str(self._folder / f"{incarnation}.sqlite"))

    def remove_all(self) -> None:
        """Delete the indexes of all sessions that had this id."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
