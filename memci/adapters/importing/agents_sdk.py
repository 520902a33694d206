"""Histories of the OpenAI Agents SDK: those of a session, and those of an SQLite file of sessions."""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from agents.memory import Session, SQLiteSession

from memci.adapters.importing.draft import Draft, refuse, several, time
from memci.adapters.importing.imported import Imported
from memci.errors import ConfigError

_SESSIONS = "SELECT session_id FROM agent_sessions ORDER BY created_at, session_id"
_TIMES = "SELECT created_at FROM agent_messages WHERE session_id = ? ORDER BY id"


async def history(session: Session, *, to: str = "responses") -> Imported:
    """Return all items of a session of the SDK, whatever keeps it, in a wire format; the SDK does not tell when they were said.

    In the format ``responses`` they are as the SDK has them.

    Raises:
        InvalidMessageError: An item is none of the Responses API; ``path`` is the place.
    """
    return _read(session.session_id, await session.get_items(), [], to)


def database(path: Path, *, to: str = "responses") -> Iterator[Imported]:
    """Yield the sessions of a file of ``SQLiteSession``, oldest first, with the times at which items were stored.

    They are read from a copy, and what the file holds stays as it is. Rows that the SDK passes over, as they are no JSON, are
    counted in ``lost``.

    Raises:
        ConfigError: The file cannot be read.
        InvalidMessageError: It has not the SDK's tables, or holds an item that is none.
    """
    with TemporaryDirectory(prefix="memci-import-") as folder:
        copy = Path(folder) / "sessions.db"
        _copy(path, copy)
        try:
            with closing(sqlite3.connect(copy)) as connection:
                ids = [row[0] for row in connection.execute(_SESSIONS)]
                times = {each: [row[0] for row in connection.execute(_TIMES, (each,))] for each in ids}
        except sqlite3.Error as error:
            refuse(path.name, f"it holds no sessions of the Agents SDK ({error})")
        for each in ids:
            with closing(SQLiteSession(each, copy)) as session:
                items = asyncio.run(session.get_items())
            yield _read(each, items, times[each], to)


def _copy(path: Path, copy: Path) -> None:
    """Copy a database with what its log holds, so that the SDK, which would make tables, does not write to it."""
    if not path.is_file():
        message = "there is no such file"
        raise ConfigError(message, path=str(path))
    try:
        there = f"{path.absolute().as_uri()}?mode=rw"  # a reader alone would leave the files of its log
        with closing(sqlite3.connect(there, uri=True)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
    except sqlite3.DatabaseError as error:
        refuse(path.name, f"it is no SQLite database that can be read ({error})")


def _read(session_id: str, items: Sequence[object], times: Sequence[object], to: str) -> Imported:
    draft = Draft("responses")
    if times and len(times) != len(items):
        draft.lose(session_id, f"{several(len(times) - len(items), 'row')} of no JSON, and when the others were stored")
        times = []
    for number, item in enumerate(items):
        place = f"{session_id}[{number}]"
        if not isinstance(item, dict):
            refuse(place, f"an item is a JSON object, and this is a {type(item).__name__}")
        draft.add(item, time(times[number] if times else None, place), place)
    return draft.done(session_id, to)
