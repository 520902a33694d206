"""What the errors of the SQLite library mean."""

from collections.abc import Iterator
from contextlib import contextmanager

from memci.archive import refusal
from memci.archive.disk import is_out_of_descriptors
from memci.archive.refusal import MORE_DESCRIPTORS, loading
from memci.archive.stores.sql.rows import SyncFailedError
from memci.errors import CorruptError, LockedError, UnavailableError


def damaged(name: str, what: str) -> CorruptError:
    """Make the error of a database that is not what was written."""
    problem = f"the database is damaged ({what}): restore it from a backup, or save what sqlite3's .recover finds"
    return CorruptError(problem, session="", place=name)


def locked(name: str, wait_s: float, session: str) -> LockedError:
    """Make the error of one who waited too long for others."""
    return refusal.locked(f"{name}: others have kept it locked for more than {wait_s:g} s", session)


@contextmanager
def mapped_errors(name: str, wait_s: float, session: str) -> Iterator[None]:
    """Turn errors of the library into memci's own.

    Args:
        name: Of the database, for error texts.
        wait_s: How long the library waits for others.
        session: Whom it waits for, for the error of one who waited too long.
    """
    with loading("sqlite3"):
        import sqlite3  # noqa: PLC0415 loads only when a database is opened
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a wrong call
    except UnicodeDecodeError as error:
        raise damaged(name, str(error)) from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the kind, the rest a refinement
        match code:
            case sqlite3.SQLITE_CANTOPEN if is_out_of_descriptors():
                advice = MORE_DESCRIPTORS
            case sqlite3.SQLITE_IOERR:
                text = f"{name}: {error}: see to the disk, then open the session again"
                raise SyncFailedError(text) from error
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                raise locked(name, wait_s, session) from error
            case sqlite3.SQLITE_FULL:
                advice = "make room, then do it again"
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
                advice = "change the rights of the file and its directory, or open read-only"
            case sqlite3.SQLITE_NOMEM | sqlite3.SQLITE_TOOBIG:
                advice = "write less at once"
            case _:
                raise damaged(name, str(error)) from error
        message = f"{name}: {error}: {advice}"
        raise UnavailableError(message) from error
