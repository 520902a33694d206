"""Sessions in one SQLite file, for many processes of one machine.

::

    <path>                      the database
    <path>-journal or -wal      what a commit needs while it lasts
    <path>.index/7.sqlite       page facts and search of the session with row 7; can be lost without harm
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memci.archive import refusal
from memci.archive.stores.sql.rows import BEGIN, FIND, Found, Key, Statement, checked_head, place_of
from memci.archive.stores.sql.schema import Run
from memci.archive.stores.sql.session import SqlStore
from memci.archive.stores.sql.sqlite_database import SqliteDatabase, SqliteIo, is_wal_safe

if TYPE_CHECKING:
    import os


class _SqliteRows(SqliteDatabase):
    """Implements ``Rows``."""

    put_blob = """
    INSERT INTO blob (tenant, name, body) VALUES (?, ?, ?) ON CONFLICT (tenant, name) DO UPDATE SET body = excluded.body
    WHERE blob.body IS NOT excluded.body
    """
    sweep = """
    DELETE FROM blob WHERE tenant = ? AND NOT EXISTS (
        SELECT 1 FROM blob_use JOIN session ON session.id = blob_use.session
        WHERE blob_use.name = blob.name AND session.tenant = blob.tenant
    )
    """

    def change(self, key: Key, row: int | None, statements: Sequence[Statement], *, removes: bool = False) -> list[Found]:
        def work(run: Run) -> list[Found]:
            if row is not None and not run("SELECT id FROM session WHERE id = ?", (row,)):
                raise refusal.deleted(key.session_id)
            return [run(sql, values) for sql, values in statements]

        done = self.write(work, key.session_id) if statements else []
        if removes:
            self.clean()
        return done

    def append(self, key: Key, row: int | None, expected: int, lines: Sequence[bytes]) -> int:
        def work(run: Run) -> int:
            place = place_of(run(FIND, (key.tenant, key.name)))
            if row is not None and (place is None or place.row != row):
                raise refusal.deleted(key.session_id)
            head = checked_head(key, place)
            if head != expected:
                raise refusal.conflict(expected, head)
            found = place.row if place else int(run(BEGIN, (key.tenant, key.name, key.session_id.encode()))[0][0])
            for seq, line in enumerate(lines, start=expected + 1):
                run("INSERT INTO record (session, seq, line) VALUES (?, ?, ?)", (found, seq, line))
            run("UPDATE session SET head = ? WHERE id = ?", (expected + len(lines), found))
            return found

        return self.write(work, key.session_id)


class SqliteStore(SqlStore):
    """Implements ``memci.archive.stores.contract.Store`` in one SQLite file on a local file system.

    Many processes of one machine, and their threads, may use it at once; threads that append to different sessions at the same
    time share transactions.

    Args:
        path: The database; it is made with the first record, and a relative path is meant from here and now.
        durability: ``fsync``: what is acknowledged survives a loss of power (``synchronous = EXTRA``). ``flush``: it survives
            the end of the process; a loss of power may take the last commits, but leaves the database whole (``NORMAL``).
        io: The library, to count its calls or to make them fail.
    """

    def __init__(self, path: "str | os.PathLike[str]", durability: str = "fsync", *, io: SqliteIo | None = None) -> None:
        self.io = io or SqliteIo()
        self._database = _SqliteRows(str(Path(path).absolute()), self.io, synced=durability == "fsync")
        indexes = Path(f"{self._database.path}.index")
        super().__init__(self._database, lambda: indexes, durability)

    @property
    def journal_mode(self) -> str:
        """``wal`` where the database was made by a library that is safe with it, else ``truncate``, a rollback journal."""
        found = self._database.read("PRAGMA journal_mode")
        return str(found[0][0]) if found else "wal" if is_wal_safe(self.io.version()) else "truncate"
