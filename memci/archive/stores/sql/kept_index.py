"""The page index of a session in a database: SQLite works on a file whose blocks are rows there."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import apsw

from memci.archive.catalogue.index_file import Database, refuse_damaged, storable
from memci.archive.catalogue.index_writer import IndexWriter
from memci.archive.catalogue.page_index import PageIndex
from memci.archive.stores.sql.index_blocks import BLOCK_BYTES, Blocks, OwnRows
from memci.errors import CorruptError, StoreError

_LEAST_RECORDS = 64  # after which what was indexed is kept when the index is closed
_MOST_RECORDS, _MOST_WRITTEN = 256, 256  # and blocks, after which it is kept at the end of a transaction

# One process has it open, a transaction is undone from memory, and what is written lasts when it is kept.
_SETTINGS = (
    f"PRAGMA page_size = {BLOCK_BYTES}",
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = MEMORY",
    "PRAGMA synchronous = OFF",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_spill = OFF",
    "PRAGMA cache_size = -512",
)


class KeptIndex(PageIndex):
    """An index whose file is in the database: read from there as far as it is asked, kept there from time to time.

    ``ReopenIndexError`` where others kept theirs meanwhile, and a block is wanted that is not here.
    """

    def __init__(self, session: OwnRows, *, copied: Blocks | None = None, read_only: bool = False) -> None:
        """Open the index as the database has it, or as it is in *copied* blocks. One query."""
        self._session, self._blocks = session, copied or Blocks(session)
        self._is_copy, self._keeps = copied is not None, copied is None and not read_only
        super().__init__(None)

    @contextmanager
    def write(self) -> Iterator[IndexWriter]:
        """Begin a transaction; where much is new by its end, it is kept."""
        with super().write() as writer:
            yield writer
        if self._keeps and (self._blocks.written > _MOST_WRITTEN or self.seq - self._kept >= _MOST_RECORDS):
            self._keep()

    def in_place(self) -> AbstractContextManager[None]:
        """Do nothing: there is no log."""
        return nullcontext()

    @property
    def has_file(self) -> bool:
        """Tell that it is stored."""
        return True

    def reset(self) -> None:
        """Empty the index, and take it out of the database."""
        self._give_back()
        self._blocks.clear()

    def copy_in_memory(self) -> "KeptIndex":
        """Return a copy of all of it that can be written to and is not kept. O(its size)."""
        self._db()
        whole = self._blocks.copy()
        whole.read_all()
        return KeptIndex(self._session, copied=whole)

    def branch(self) -> "KeptIndex":
        """Return an index that begins as this one is, can be written to, and is not kept. O(blocks that are in memory)."""
        self._db()
        return KeptIndex(self._session, copied=self._blocks.copy())

    def close(self) -> None:
        """Keep what was indexed, where that is much, and give back what it holds: O(what changed). May be called twice."""
        with suppress(StoreError):
            if self._keeps and self._opened is not None and self.seq - self._kept >= _LEAST_RECORDS:
                self._keep()
        self._give_back()

    def _give_back(self) -> None:
        super().close()
        self._opened = None

    def _keep(self) -> None:
        self._kept = self.seq  # where it fails, the next time is as far away
        with suppress(StoreError):  # it can be made again, and somebody else may have deleted the session
            if not self._blocks.keep():  # others went on, and what they kept is as good
                self._give_back()

    def _db(self) -> Database:
        if self._opened is None:
            try:
                if not self._is_copy:
                    self._blocks.load()
                self._opened = _Database(self._blocks)
            except CorruptError:
                self._blocks.empty()
                self._opened = _Database(self._blocks)
            self._kept = self.seq
        return self._opened


class _Database(Database):
    """An index on blocks."""

    def __init__(self, blocks: Blocks) -> None:
        self._files = _Files(blocks)
        self._transactions = 0
        with _mapped_errors():
            self._own = apsw.Connection("index", vfs=self._files.name)
            for setting in _SETTINGS:
                self._own.execute(setting).fetchall()
        try:
            if not blocks.size or not self.is_usable():
                with self.transaction():
                    self.create()
        except BaseException:
            self.close()
            raise

    def run(self, sql: str, *values: object) -> list[Any]:
        """Run a statement and return its rows."""
        with _mapped_errors():
            return self._own.execute(sql, [storable(value) for value in values]).fetchall()

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each of some rows, whose texts UTF-8 can encode."""
        with _mapped_errors():
            self._own.executemany(sql, rows)

    def each(self, sql: str, *values: Any) -> Iterator[Any]:  # noqa: ANN401 (what SQLite takes)
        """Yield the rows of a query as they are read; its values are no texts."""
        with _mapped_errors():
            yield from self._own.execute(sql, values)

    def add_function(self, name: str, arguments: int, function: Callable[..., Any]) -> None:
        """Let statements call a function."""
        self._own.create_scalar_function(name, function, arguments)

    def rollback(self) -> None:
        """Undo the transaction that is open, if one is."""
        if self._own.in_transaction:
            self._own.execute("ROLLBACK")

    def close(self) -> None:
        """Give back what it holds. May be called twice."""
        self._own.close()
        self._files.unregister()


class _Files(apsw.VFS):
    """The files that SQLite sees: a single one. The names are SQLite's, see https://sqlite.org/c3ref/vfs.html."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.name = f"memci-{id(self)}"
        super().__init__(self.name, "")

    def xOpen(self, name: object, flags: list[int]) -> "_File":  # type: ignore[override]  # noqa: N802
        del name, flags
        return _File(self._blocks)

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802
        del pathname, flags
        return False

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name


class _File:
    """What SQLite asks of a file, see https://sqlite.org/c3ref/io_methods.html. It writes whole pages, which are the blocks."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        if offset >= self._blocks.size:
            return b""
        number, start = divmod(offset, BLOCK_BYTES)
        return self._blocks.read(number)[start : start + amount]

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        number, start = divmod(offset, BLOCK_BYTES)
        if start or len(data) != BLOCK_BYTES:
            refuse_damaged(f"its pages have {len(data)} bytes")
        self._blocks.write(number, bytes(data))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._blocks.size = size

    def xFileSize(self) -> int:  # noqa: N802
        return self._blocks.size

    def xSync(self, flags: int) -> None:  # noqa: N802
        pass

    def xLock(self, level: int) -> None:  # noqa: N802
        pass

    def xUnlock(self, level: int) -> None:  # noqa: N802
        pass

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: N802
        del op, pointer
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return BLOCK_BYTES

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return 0

    def xClose(self) -> None:  # noqa: N802
        pass


@contextmanager
def _mapped_errors() -> Iterator[None]:
    """Turn errors of SQLite into memci's own: as no file is involved, each means that the blocks are not what was written."""
    try:
        yield
    except (apsw.ConnectionClosedError, apsw.ThreadingViolationError):
        raise  # a wrong call, such as one after close()
    except (apsw.Error, UnicodeDecodeError) as error:
        refuse_damaged(error)
