"""Whole stores as earlier versions of memci wrote them: with snapshots, page files and an index, in files and in SQLite.

``first`` has records of version 1, an SQLite database of version 1, and directories that said more; ``blobs`` has pictures by
themselves, and a database of version 2; ``short`` has short records, of version 2. All have the same conversation.
"""

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from memci.archive.stores.url import open_store
from memci.engine.engine import Engine
from memci.engine.upkeep.copying import copy_session
from tests.engine.sessions import config_of
from tests.engine.wire import assistant, user

KEPT = Path(__file__).parent / "kept"
NAME = "Größe/../chat"
CONFIG = config_of(counter="approximate", budget={"window": 900, "reserve": 0})


def unpacked(name: str, place: Path) -> Path:
    """Unpack a store into a directory, and return where it is."""
    with tarfile.open(KEPT / f"{name}.tar.gz") as kept:
        kept.extractall(place / name, filter="data")
    return place / name


@pytest.fixture(params=sorted(path.name.partition(".")[0] for path in KEPT.iterdir()))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpacked(str(request.param), tmp_path)


def url(place: Path) -> str:
    return f"sqlite:///{place}/chats.db" if (place / "chats.db").exists() else f"file:{place}/chats"


def said(place: Path) -> list[object]:
    return list(json.loads((place / "messages.json").read_text(encoding="utf-8")))


def test_all_is_there(place: Path) -> None:
    """Every message and page is read, the index is made anew where it must be, and nothing is wrong with the session."""
    with Engine(url(place), CONFIG) as engine, engine.session(NAME) as session:
        assert [NAME] == list(engine.sessions())
        assert said(place) == list(session.messages())
        assert 13 == len(session.pages())
        assert "question 4" in str(session.page("usr-4").messages)
        assert "usr-3" in [hit.index for hit in session.search("question 3 harbour")]
        assert () == session.verify().problems


def test_it_goes_on(place: Path) -> None:
    """What earlier versions wrote is appended to, folded, recalled, erased and forked, and opened again."""
    with Engine(url(place), CONFIG) as engine, engine.session(NAME) as session:
        session.extend([user("and now?"), assistant("The tide is high.")])
        assert session.window().tokens <= 900
        session.fold("all")
        session.recall("usr-5")
        session.erase("usr-4")
        engine.fork(NAME, "fork").close()
    with Engine(url(place), CONFIG) as engine:
        for name in (NAME, "fork"):
            with engine.session(name) as session:
                assert "question 4" not in str(list(session.messages()))
                assert "The tide is high." in str(session.window().messages) + str(list(session.messages()))
                assert () == session.verify().problems


@pytest.mark.parametrize("name", ["first-file", "blobs-file", "short-file"])
def test_files_are_read_by_who_only_reads(name: str, tmp_path: Path) -> None:
    """Nothing is written by whoever only looks at files. A database is brought to its newest version by any who opens it."""
    place = unpacked(name, tmp_path)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    with Engine(url(place), CONFIG, read_only=True) as engine, engine.session(NAME) as session:
        assert said(place) == list(session.messages())
        assert session.search("question 3 harbour")
    assert before == {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_it_is_copied(place: Path, tmp_path: Path) -> None:
    """A copy in another store has all of it."""
    source, target = open_store(url(place)), open_store(f"sqlite:///{tmp_path}/copy.db")
    copy_session(source, target, NAME, now="2026-11-23T00:00:00+00:00")
    source.close()
    shutil.rmtree(place / "chats", ignore_errors=True)
    with Engine(target, CONFIG) as engine, engine.session(NAME) as session:
        assert said(place) == list(session.messages())
        assert () == session.verify().problems
