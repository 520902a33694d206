"""Whose the files of a store are, and what becomes of links, pipes and other things that stand in their places."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from memci.archive.stores.file.store import FileStore
from memci.archive.stores.sql.sqlite import SqliteStore
from memci.engine.engine import Engine
from memci.errors import UnavailableError
from memci.testing.journal_suite import TENANT, append_each, texts_of
from tests.engine.sessions import config_of, talk

BESIDE = ["", "-wal", "-shm", "-journal"]


@pytest.fixture(params=[0, 0o022, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture(params=["file:{}/made/chats", "sqlite:///{}/made/chats.db"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param).format(tmp_path)


def rights_below(root: Path) -> dict[int, list[str]]:
    """Return the paths below a directory by their rights."""
    found: dict[int, list[str]] = {}
    for path in sorted(root.rglob("*")):
        found.setdefault(stat.S_IMODE(path.lstat().st_mode) | path.is_dir() << 12, []).append(path.name)
    return found


def fill(url: str, session_id: str = "chat") -> None:
    """Talk until there are pages, snapshots and an index."""
    config = config_of(active={"min_pages": 2, "max_pages": 4}, snapshot_every=10, durability="fsync")
    with Engine(url, config) as engine, engine.session(session_id) as session:
        talk(session, 8)
        assert session.search("say2x4")
        session.erase("usr-3")


@pytest.mark.usefixtures("umask")
def test_what_is_made_is_its_owners_alone(url: str, tmp_path: Path) -> None:
    """All files and directories that a store makes can be read by nobody else, under any umask."""
    fill(url)
    fill(url, "long " * 100)
    assert {0o600, 0o700 | 1 << 12} == set(rights_below(tmp_path))


def test_a_database_in_use_is_its_owners_alone(url: str, tmp_path: Path) -> None:
    """The files that are there only while a store is open have no other rights."""
    before = os.umask(0)
    try:
        with Engine(url) as engine, engine.session("chat") as session:
            talk(session, 2)
            assert session.search("say2x4", include_visible=True)
            assert {0o600, 0o700 | 1 << 12} == set(rights_below(tmp_path))
    finally:
        os.umask(before)


def test_what_is_there_keeps_its_rights(url: str, tmp_path: Path) -> None:
    """A store whose files others may read goes on working, and they may go on reading."""
    fill(url)
    for path in tmp_path.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    shared = {path for path in tmp_path.rglob("*") if path.name in ("journal.jsonl", "chats.db", "lock")}
    with Engine(url) as engine, engine.session("chat") as session:
        talk(session, 2, first=20)
        assert session.verify().ok
    assert {0o644} == {stat.S_IMODE(path.stat().st_mode) for path in shared}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    other = path.parent / f"{path.name} elsewhere"
    other.write_text("not to be touched")
    path.symlink_to(other)


@pytest.mark.parametrize("plant", [pipe, link, Path.mkdir])
@pytest.mark.parametrize("name", ["journal.jsonl", "lock", "pages/usr-1.json", "snapshots/1.json", "index.sqlite"])
def test_what_stands_in_the_place_of_a_file_is_told(tmp_path: Path, name: str, plant: Callable[[Path], None]) -> None:
    """A pipe, a link or a directory in the place of a file is a typed error, at once, and is not followed."""
    store = FileStore(tmp_path, "flush")
    session = store.open(TENANT, "session")
    append_each(session.journal, "one")
    session.pages.put({"usr-1": b"page"})
    session.snapshots.put(1, b"{}")
    assert 0 == session.index.seq
    session.close()
    path = tmp_path / TENANT / "session" / name
    path.unlink()
    plant(path)
    session = store.open(TENANT, "session")
    calls: dict[str, Callable[[], object]] = {
        "journal.jsonl": session.journal.head,
        "lock": lambda: append_each(session.journal, "two"),
        "pages/usr-1.json": lambda: session.pages.find("usr-1"),
        "snapshots/1.json": session.snapshots.find,
        "index.sqlite": lambda: session.index,
    }
    with pytest.raises(UnavailableError):
        calls[name]()
    session.close()
    assert [] == [place for place in path.parent.glob("* elsewhere") if place.read_text() != "not to be touched"]


@pytest.mark.parametrize("plant", [pipe, link])
def test_what_stands_in_the_place_of_a_temporary_file_is_swept(tmp_path: Path, plant: Callable[[Path], None]) -> None:
    """Nothing is written through a link or pipe with the name of a temporary file; the next append takes it away."""
    store = FileStore(tmp_path, "flush")
    append_each(store.open(TENANT, "session").journal, "one")
    plant(tmp_path / TENANT / "session" / "usr-1.json.tmp")
    session = store.open(TENANT, "session")
    with pytest.raises(UnavailableError):
        session.pages.put({"usr-1": b"page"})
    append_each(session.journal, "two")
    session.pages.put({"usr-1": b"page"})
    assert b"page" == session.pages.find("usr-1")
    assert all(path.read_text() == "not to be touched" for path in tmp_path.rglob("* elsewhere"))


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """Return a store with a session that has a page and a snapshot."""
    store = FileStore(tmp_path / "chats", "flush")
    session = store.open(TENANT, "session")
    append_each(session.journal, "one")
    session.pages.put({"usr-1": b"page"})
    session.snapshots.put(1, b"{}")
    session.close()
    return store


def moved(tmp_path: Path, name: str) -> Path:
    """Let a link lead to where a directory of the store was moved, and return that place."""
    place, elsewhere = tmp_path / "chats" / TENANT / name, tmp_path / "elsewhere"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    return elsewhere


@pytest.mark.parametrize("name", ["", "session"])
def test_a_session_behind_a_link_is_refused(tmp_path: Path, store: FileStore, name: str) -> None:
    """A session, or a tenant, is not read from, written to or deleted in another place."""
    elsewhere = moved(tmp_path, name)
    before = sorted(elsewhere.rglob("*"))
    session = store.open(TENANT, "session")
    for call in (
        lambda: texts_of(session.journal),
        lambda: append_each(session.journal, "two"),
        lambda: session.pages.put({"usr-2": b""}),
        lambda: session.pages.find("usr-1"),
        lambda: session.snapshots.put(1, b"{}"),
        lambda: session.index,
        lambda: store.delete(TENANT, "session"),
    ):
        with pytest.raises(UnavailableError, match="a link within a store"):
            call()
    assert before == sorted(elsewhere.rglob("*"))


def test_a_session_behind_a_link_is_listed(tmp_path: Path, store: FileStore) -> None:
    """A link in the place of a session is no reason to hide it, and one in the place of its tenant is an error."""
    moved(tmp_path, "session")
    assert ["session"] == list(store.sessions(TENANT))
    (tmp_path / "chats" / "other").symlink_to(tmp_path / "chats" / TENANT)
    with pytest.raises(UnavailableError, match="a link within a store"):
        list(store.sessions("other"))


@pytest.mark.parametrize("name", ["pages", "snapshots"])
def test_pages_and_snapshots_behind_a_link_are_refused(tmp_path: Path, store: FileStore, name: str) -> None:
    """What belongs to a session is not read from, written to or deleted in another place, and the journal is read."""
    elsewhere = moved(tmp_path, f"session/{name}")
    before = sorted(elsewhere.rglob("*"))
    session = store.open(TENANT, "session")
    pages, snapshots = session.pages, session.snapshots
    calls: dict[str, list[Callable[[], object]]] = {
        "pages": [lambda: pages.put({"usr-2": b""}), lambda: pages.find("usr-1"), lambda: pages.remove(["usr-1"])],
        "snapshots": [lambda: snapshots.put(1, b""), snapshots.find, snapshots.clear],
    }
    for call in calls[name]:
        with pytest.raises(UnavailableError, match="a link within a store"):
            call()
    assert ["one"] == texts_of(session.journal)
    assert before == sorted(elsewhere.rglob("*"))


def test_the_store_itself_may_be_a_link(url: str, tmp_path: Path) -> None:
    """Where the whole store was moved and a link leads to it, it goes on."""
    fill(url)
    place = next((tmp_path / "made").glob("chats*"))
    for path in sorted((tmp_path / "made").iterdir()):
        path.rename(tmp_path / path.name)
    place.symlink_to(tmp_path / place.name)
    with Engine(url) as engine, engine.session("chat") as session:
        talk(session, 2, first=20)
        assert session.verify().ok
    assert place.is_symlink()


@pytest.mark.parametrize(("plant", "beside"), [(pipe, ""), (Path.mkdir, ""), *product((pipe, link, Path.mkdir), BESIDE[1:])])
def test_what_stands_in_the_place_of_a_database_is_told(tmp_path: Path, plant: Callable[[Path], None], beside: str) -> None:
    """A pipe or directory in the place of the database, or anything but a file beside it, is a typed error, at once."""
    path = tmp_path / f"chats.db{beside}"
    with Engine(f"sqlite:///{tmp_path}/chats.db") as engine, engine.session("chat") as session:
        talk(session, 1)
    path.unlink(missing_ok=True)
    plant(path)
    for read_only in (True, False):
        store = SqliteStore(tmp_path / "chats.db")
        with pytest.raises(UnavailableError, match=r"chats\.db"):
            store.open(TENANT, "session", read_only=read_only).journal.head()
        store.close()


@pytest.mark.parametrize("plant", [pipe, link, Path.mkdir])
@pytest.mark.parametrize("beside", BESIDE)
def test_what_stands_in_the_place_of_an_index_costs_the_index_only(
    url: str, tmp_path: Path, beside: str, plant: Callable[[Path], None]
) -> None:
    """A session whose index is no file, or has something else beside it, searches in a copy of its own."""
    fill(url)
    index = next(path for path in tmp_path.rglob("*.sqlite"))
    for path in [index.parent / (index.name + ending) for ending in BESIDE]:
        path.unlink(missing_ok=True)
    plant(index.parent / (index.name + beside))
    for read_only in (True, False):
        with Engine(url, read_only=read_only) as engine, engine.session("chat") as session:
            assert session.search("say2x4", include_visible=True)
    shutil.rmtree(tmp_path / "made")


@pytest.mark.parametrize("name", ["journal.jsonl", "session.json"])
@pytest.mark.parametrize("kind", ["pipe", "directory", "link"])
def test_other_kinds_of_file_in_one_session_hide_no_other(tmp_path: Path, name: str, kind: str) -> None:
    """The sessions of a tenant are listed whatever stands in the place of a file of one of them."""
    store = FileStore(tmp_path)
    damaged = "L" * 300 if name == "session.json" else "damaged"
    for session_id in ("before", damaged, "other"):
        append_each(store.open(TENANT, session_id).journal, "one")
    store.close()
    (file,) = (path for path in tmp_path.rglob(name) if path.parent.name not in ("before", "other"))
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()
    else:
        file.symlink_to(tmp_path / TENANT / "other" / "journal.jsonl")
    hidden = {damaged} if name == "session.json" else set()
    assert sorted({"before", damaged, "other"} - hidden) == sorted(FileStore(tmp_path).sessions(TENANT))
