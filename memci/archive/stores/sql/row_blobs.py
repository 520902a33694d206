"""Large data made of rows; a part of ``memci.archive.stores.sql.session``."""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from memci.archive.stores.sql.rows import BlobRows

if TYPE_CHECKING:
    from memci.archive.stores.sql.session import Opening


class SqlBlobs:
    """Implements ``memci.archive.stores.contract.Blobs`` on rows."""

    def __init__(self, opening: "Opening", rows: BlobRows) -> None:
        self._opening = opening
        self._rows = rows

    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:
        """Keep blobs for records up to *seq*, in one transaction.

        Raises:
            UnavailableError: They are not safe, or the session was deleted; nothing was written.
        """
        self._opening.check_writable()
        self._rows.put(self._opening.key, self._opening.begin(), blobs, seq)
        return blobs

    def find(self, name: str) -> bytes | None:
        """Return a blob, or ``None`` where there is none. One query."""
        self._opening.check_open()
        return self._rows.find(self._opening.key, name)

    def names(self) -> Iterator[str]:
        """Yield the names of the blobs that the session refers to, in no order. One query."""
        row = self._opening.find_row()
        yield from () if row is None else self._rows.names(row)

    def drop(self, names: Collection[str], seq: int) -> None:
        """Forget references for records up to *seq*, and blobs without any, in one transaction.

        Raises:
            UnavailableError: They are not known to be gone, or the session was deleted; call again.
        """
        self._opening.check_writable()
        row = self._opening.find_row()
        if row is not None:
            self._rows.drop(self._opening.key, row, names, seq)
