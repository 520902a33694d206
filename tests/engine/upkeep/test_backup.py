"""Backups that are made while others write: what was acknowledged before one began is in it, and it is a store as any other."""

import base64
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from memci.archive.stores.url import open_store
from memci.engine.engine import Engine
from memci.engine.upkeep.copying import copy_session
from tests.engine.sessions import config_of
from tests.engine.wire import assistant, user

CONFIG = config_of(budget={"window": 2_000, "reserve": 0}, snapshot_every=20)
NAMES = ("one", "two", "blobs")


def url(store: str, place: Path) -> str:
    return f"sqlite:///{place}/chats.db" if store == "sqlite" else f"file:{place}/chats"


def picture(number: int) -> dict[str, object]:
    data = base64.b64encode(bytes([number % 251]) * 3 + bytes(range(256)) * 8).decode()
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}]}


@contextmanager
def writing(where: str) -> Iterator[Callable[[], dict[str, int]]]:
    """Let each session be written to, and yield what tells how many messages of each are acknowledged."""
    said, is_over = dict.fromkeys(NAMES, 0), threading.Event()

    def write(name: str) -> None:
        with Engine(where, CONFIG) as engine, engine.session(name) as session:
            while not is_over.is_set() and said[name] < 300:
                session.append(user(f"{name} asks {said[name]}" + " and again" * 20))
                said[name] += 1
                session.append(picture(said[name]) if said[name] % 9 == 0 else assistant(f"{name} is told {said[name]}"))
                said[name] += 1
                session.window()

    threads = [threading.Thread(target=write, args=(name,)) for name in NAMES]
    for thread in threads:
        thread.start()
    try:
        while min(said.values()) < 30:
            is_over.wait(0.01)
        yield said.copy
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def check(where: str, least: dict[str, int], name: str) -> None:
    """Assert that a session of a backup has what was acknowledged, is whole, and goes on."""
    with Engine(where, CONFIG) as engine, engine.session(name) as session:
        found = list(session.messages())
        assert least[name] <= len(found)
        assert [f"{name} asks {number}" in str(found[number]) for number in range(0, len(found), 2)] == [True] * -(
            -len(found) // 2
        )
        assert all(found[number] == picture(number) for number in range(9, len(found), 18))
        session.window()
        assert () == session.verify().problems
        session.append(user("and now from the backup"))
        session.window()


def by_copying(source: Path, target: Path, store: str) -> None:
    """As ``memci copy --all`` does."""
    with closing(open_store(url(store, source))) as from_there, closing(open_store(url(store, target))) as to_here:
        for name in from_there.sessions("default"):
            copy_session(from_there, to_here, name, now="2026-11-23T00:00:00+00:00")


def by_files(source: Path, target: Path, _store: str) -> None:
    """A tenant's sessions first, and what they refer to last."""
    (tenant,) = (source / "chats").iterdir()
    there = target / "chats" / tenant.name

    def copy(path: str, to: str) -> None:
        with suppress(FileNotFoundError):  # a file that was on its way to its name, as rsync has it too
            shutil.copy2(path, to)

    def left_out(place: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(place, name) == tenant / "blobs"]

    shutil.copytree(tenant, there, ignore=left_out, copy_function=copy)
    shutil.copytree(tenant / "blobs", there / "blobs", copy_function=copy)


def by_sqlite(source: Path, target: Path, _store: str) -> None:
    """With SQLite's own backup."""
    target.mkdir()
    with closing(sqlite3.connect(source / "chats.db")) as from_there, closing(sqlite3.connect(target / "chats.db")) as to_here:
        from_there.backup(to_here)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("store", "make"),
    [("file", by_copying), ("sqlite", by_copying), ("file", by_files), ("sqlite", by_sqlite)],
    ids=["file, copied", "sqlite, copied", "file, by files", "sqlite, by its backup"],
)
def test_a_backup_while_others_write(store: str, make: Callable[[Path, Path, str], None], tmp_path: Path) -> None:
    """All that was acknowledged before it began is there, every session is whole, and goes on."""
    source, target = tmp_path / "live", tmp_path / "backup"
    source.mkdir()
    with writing(url(store, source)) as told:
        least = told()
        make(source, target, store)
    for name in NAMES:
        check(url(store, target), least, name)
