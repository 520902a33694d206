"""Pictures and files of sessions are stored once, go with what they belong to, and come back as they were."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memci.archive.stores.contract import NewRecord
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.sql.sqlite import SqliteStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.upkeep.copying import copy_session
from memci.errors import CorruptError
from memci.messages import codec
from tests.engine.pictures import picture, png, shown
from tests.engine.sessions import config_of, open_session, talk
from tests.engine.wire import Value, assistant

SETTINGS = {"active": {"min_pages": 1, "max_pages": 2}, "snapshot_every": 3}
ONE, TWO = png(1), png(2)


def engine_on(root: Path) -> Engine:
    return Engine(FileStore(root, "flush"), config_of(**SETTINGS))


def seen(*data: str) -> list[Value]:
    """Return a turn that shows pictures."""
    return [shown("openai", "look", *(picture("openai", each) for each in data)), assistant("seen")]


def blobs(root: Path, tenant: str = "default") -> list[bytes]:
    """Return the blobs of a tenant."""
    return sorted(path.read_bytes() for path in (root / tenant / "blobs").iterdir() if len(path.name) == 64)


def holding(root: Path, data: str) -> list[str]:
    """Return the files that hold some of a picture."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    return [path.relative_to(root).parts[1] for path in paths if data[-400:-8].encode() in path.read_bytes()]


def told(session: Session, *turns: list[Value]) -> list[Value]:
    """Append turns, and then others that bring them into the archive; return all messages."""
    for turn in turns:
        session.extend(turn)
    talk(session, 4, first=len(turns) + 1)
    session.fold("all")
    return list(session.messages())


def test_a_picture_is_stored_once(tmp_path: Path) -> None:
    """Journal, page files, snapshots and index of two sessions name it, ``blobs/`` has it once, and all comes back."""
    with engine_on(tmp_path) as engine:
        said = {name: told(engine.session(name), seen(ONE), seen(TWO), seen(ONE)) for name in ("a", "b")}
        for name in said:
            engine.session(name).recall(1)
    assert [ONE.encode(), TWO.encode()] == sorted(blobs(tmp_path), key=[ONE.encode(), TWO.encode()].index)
    assert ["blobs"] == holding(tmp_path, ONE) == holding(tmp_path, TWO)
    with engine_on(tmp_path) as engine:
        for name, messages in said.items():
            session = engine.session(name)
            assert messages == list(session.messages())
            assert ONE in json.dumps(session.page(1).messages)
            assert ONE in json.dumps(session.window().messages)
            assert () == session.verify().problems


def test_a_message_may_look_like_a_reference(tmp_path: Path) -> None:
    """A text that is written like what stands for a blob comes back as that text."""
    text = rf"\/blobs\/{'0' * 64} /blobs/{'0' * 64}"
    with engine_on(tmp_path) as engine:
        told(engine.session("a"), [assistant(text)], seen(ONE))
    with engine_on(tmp_path) as engine:
        assert text == next(iter(engine.session("a").messages()))["content"]


@pytest.mark.parametrize("kept", ["", "page", "session"])
def test_erasing_takes_what_nothing_else_has(tmp_path: Path, kept: str) -> None:
    """The blob of an erased page goes, unless another page or session of the tenant has it too."""
    with engine_on(tmp_path) as engine:
        session = engine.session("a")
        told(session, seen(ONE, TWO), seen(TWO, *[ONE] * (kept == "page")))
        if kept == "session":
            told(engine.session("b"), seen(ONE))
        session.recall(1)
        session.erase(1)
        assert (["blobs"] if kept else []) == holding(tmp_path, ONE)
        assert ["blobs"] == holding(tmp_path, TWO)
        assert () == session.verify().problems


def test_erasing_again_takes_what_was_left(tmp_path: Path) -> None:
    """Where erasing was broken off before the blob went, erasing again removes it."""
    with engine_on(tmp_path) as engine:
        session = engine.session("a")
        told(session, seen(ONE))
        session.erase(1)
        raw = FileStore(tmp_path, "flush").open("default", "a")
        raw.blobs.put({"0" * 64: b"left"}, 1)
        session.erase(1)
        assert [] == blobs(tmp_path)


def test_another_process_takes_its_copies_along(tmp_path: Path) -> None:
    """One that learns of an erasure leaves no blob behind that only its snapshots held."""
    with engine_on(tmp_path) as engine, engine_on(tmp_path) as other:
        told(engine.session("a"), seen(ONE))
        late = other.session("a")
        engine.session("a").erase(1)
        late.refresh()
        assert [] == blobs(tmp_path)


def test_deleting_a_session_takes_its_blobs(tmp_path: Path) -> None:
    """Those that it shares stay until the last of its tenant goes; other tenants have their own."""
    with engine_on(tmp_path) as engine, Engine(FileStore(tmp_path, "flush"), config_of(**SETTINGS), tenant="t") as other:
        told(engine.session("a"), seen(ONE, TWO))
        told(engine.session("b"), seen(ONE))
        told(other.session("a"), seen(ONE))
        engine.delete("a")
        assert [ONE.encode()] == blobs(tmp_path)
        engine.delete("b")
        assert ([], [ONE.encode()]) == (blobs(tmp_path), blobs(tmp_path, "t"))


def test_a_fork_keeps_its_blobs(tmp_path: Path) -> None:
    """A fork refers to what its messages hold: its source can be erased in, and deleted."""
    with engine_on(tmp_path) as engine:
        messages = told(engine.session("a"), seen(ONE), seen(TWO))
        fork = engine.fork("a", "b")
        engine.session("a").erase(1)
        engine.delete("a")
        assert messages == list(fork.messages())
        assert () == fork.verify().problems
        assert 2 == len(blobs(tmp_path))


def test_a_copy_brings_blobs_along(tmp_path: Path) -> None:
    """A session copied to a store of another kind, and back, is whole."""
    with engine_on(tmp_path / "files") as engine:
        messages = told(engine.session("a"), seen(ONE))
    files, database = FileStore(tmp_path / "files", "flush"), SqliteStore(tmp_path / "one.db", "flush")
    back = FileStore(tmp_path / "back", "flush")
    copy_session(files, database, "a", now="2026-01-01T00:00:00Z")
    copy_session(database, back, "a", now="2026-01-01T00:00:00Z")
    database.close()
    with Engine(back, config_of(**SETTINGS)) as engine:
        assert messages == list(engine.session("a").messages())
        assert () == engine.session("a").verify().problems
    assert [ONE.encode()] == blobs(tmp_path / "back")


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_damaged_blob_is_one_sessions_trouble(tmp_path: Path, damage: str) -> None:
    """The session says which blob and record it is; others of the tenant go on; put back, all is well again."""
    with engine_on(tmp_path) as engine:
        told(engine.session("a"), seen(ONE))
        messages = told(engine.session("b"), seen(TWO))
    (path,) = (path for path in (tmp_path / "default/blobs").iterdir() if path.read_bytes() == ONE.encode())
    path.unlink()
    if damage == "changed":
        path.write_bytes(b"A" + ONE.encode()[1:])
    with engine_on(tmp_path) as engine:
        session = engine.session("a")
        with pytest.raises(CorruptError) as caught:
            list(session.messages())
        assert ("a", f"blob {path.name}") == (caught.value.session, caught.value.place)
        assert any(path.name in problem for problem in session.verify().problems)
        assert messages == list(engine.session("b").messages())
        path.write_bytes(ONE.encode())
        assert () == session.verify().problems


def test_records_of_the_time_before_are_read() -> None:
    """A journal that holds its pictures itself goes on as it is, and what comes to it is stored apart."""
    store = MemoryStore()
    session = open_session(store, **SETTINGS)
    session.extend(seen(ONE))
    seq = session.seq
    session.close()
    source, target = store.open("default", "chat"), MemoryStore()
    old = target.open("default", "chat")
    found = {name: source.blobs.find(name) for name in source.blobs.names()}
    for record in source.journal.read():
        body = record.body
        for name, blob in found.items():
            body = body.replace(rb"\/blobs\/%b" % name.encode(), blob or b"")
        old.journal.append(record.seq - 1, [NewRecord(record.kind, record.version, body)])
    again = open_session(target, **SETTINGS)
    again.extend(seen(TWO))
    assert [*seen(ONE), *seen(TWO)] == list(again.messages())
    bodies = [record.body for record in old.journal.read()]
    assert any(ONE.encode() in body for body in bodies[:seq])
    assert not any(TWO.encode() in body for body in bodies[seq:])
    assert codec.decode(bodies[0]) == codec.decode(next(source.journal.read()).body)


def test_sessions_that_come_and_go_take_no_picture_from_others(tmp_path: Path) -> None:
    """While threads make and delete sessions with the same picture, each finds it as long as it has one."""

    def come_and_go(name: str) -> bool:
        with engine_on(tmp_path) as engine:
            for _ in range(8):
                session = engine.session(name)
                session.extend(seen(ONE))
                session.close()
                with engine_on(tmp_path) as other:
                    assert seen(ONE) == list(other.session(name).messages())
                engine.delete(name)
        return True

    with ThreadPoolExecutor(4) as pool:
        assert [True] * 4 == list(pool.map(come_and_go, "abcd"))
    assert [] == blobs(tmp_path)
