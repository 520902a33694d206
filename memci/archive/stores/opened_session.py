"""An opened session of a store whose page index lies apart from the rest: in a file on this machine, or in memory."""

from typing import TYPE_CHECKING

from memci.archive import refusal

if TYPE_CHECKING:
    from memci.archive.catalogue.index_folder import IndexPlace
    from memci.archive.catalogue.page_index import PageIndex


class OpenedSession:
    """What refuses the calls that a closed or read-only session does not take, and has the index. For one thread at a time."""

    def __init__(self, session_id: str, *, read_only: bool) -> None:
        self.session_id = session_id
        self.read_only = read_only
        self._index: PageIndex | None = None
        self._is_closed = False

    def check_open(self) -> None:
        """Raise ``SessionClosedError`` after ``close``."""
        if self._is_closed:
            raise refusal.closed(self.session_id)

    def check_writable(self) -> None:
        """Raise what ``check_open`` does, or ``PermissionDeniedError`` where it was opened read-only."""
        self.check_open()
        if self.read_only:
            raise refusal.read_only(self.session_id)

    @property
    def index(self) -> "PageIndex":
        """Page facts and search; one in memory is empty after each opening of the session."""
        self.check_open()
        if self._index is None:
            from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (loads sqlite3, which few openings need)

            place = self.index_place()
            self._index = self.index_in_memory() if place is None else PageIndex.at(place, read_only=self.read_only)
        return self._index

    def index_in_memory(self) -> "PageIndex":
        """Return an index that lives in memory, empty where nothing of it is kept elsewhere."""
        from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (as above)

        return PageIndex(None)

    def index_place(self) -> "IndexPlace | None":
        """Return where the index lies; ``None`` for one in memory."""
        return None

    def indexed_seq(self) -> int:
        """Return 0: the index is not kept together with the journal."""
        self.check_open()
        return 0

    def rest(self) -> None:
        """Give back the index, where it has a file, until the next call."""
        if self._index is not None and self._index.has_file:
            self._close_index()

    def close(self) -> None:
        """Give back what it holds, and refuse every further call. May be called twice."""
        self._close_index()
        self._is_closed = True

    def _close_index(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            index.close()
