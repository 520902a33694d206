"""Snapshots make loading faster, and nothing else."""

from pathlib import Path

import pytest

from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.history import state_codec
from memci.messages import codec
from tests.engine.counting_store import CountingStore
from tests.engine.sessions import config_of, talk


def told(store: MemoryStore) -> list[object]:
    """Return what a process that opens the session sees of it, now and at every event."""
    with Engine(store, config_of(active={"min_pages": 1}), read_only=True) as engine, engine.session("chat") as session:
        renderings = [session.render(at=seq).to_json() for seq in range(session.seq + 1)]
        return [session.pages(), session.contents.render(), list(session.messages()), session.checkpoints(), *renderings]


def test_a_session_without_snapshots_is_the_same() -> None:
    """With all snapshots deleted, everything is what it was: the view, every earlier window, and what a restore brings back."""
    store = MemoryStore()
    session = Engine(store, config_of(active={"min_pages": 1}, snapshot_every=4)).session("chat")
    talk(session, 4)
    session.fold("all")
    checkpoint = session.checkpoint("four turns")
    talk(session, 2, first=5)
    session.recall(1)
    session.restore_checkpoint(checkpoint.id)
    talk(session, 2, first=7)
    session.fold("all")
    before = told(store)
    snapshots = store.open("default", "chat").snapshots
    assert snapshots.find() is not None
    snapshots.clear()
    assert before == told(store)
    session.restore_checkpoint(checkpoint.id)
    restored = told(store)
    snapshots.clear()
    assert restored == told(store)
    assert () == session.verify().problems


def test_a_snapshot_of_another_version_is_passed_over() -> None:
    """What an older or newer memci wrote of its state is neither loaded nor reported as damage."""
    store = MemoryStore()
    session = Engine(store, config_of(snapshot_every=4)).session("chat")
    talk(session, 4)
    before = told(store)
    snapshots = store.open("default", "chat").snapshots
    for version in (state_codec.VERSION - 1, state_codec.VERSION + 1):
        found = snapshots.find()
        assert found is not None
        value = codec.decode(found[1])
        snapshots.put(found[0], codec.encode({**value, "state": {**value["state"], "v": version, "pinned": ["usr-1"]}}))
        assert before == told(store)
        assert () == session.verify().problems


@pytest.mark.parametrize("closes_session", [False, True])
def test_closing_an_engine_keeps_what_the_next_one_would_have_to_replay(tmp_path: Path, *, closes_session: bool) -> None:
    """Where much came since the last snapshot, the next process reads one record; else nothing is kept."""
    config = config_of(snapshot_every=40)
    sizes = []
    for turns in (1, 8, 0, 2):
        engine = Engine(FileStore(tmp_path), config)
        session = engine.session("chat")
        talk(session, turns, first=session.turn + 1)
        if closes_session:
            session.close()
        engine.close()
        sizes.append(sorted(int(path.stem) for path in tmp_path.rglob("snapshots/*.json")))
    assert [[], [19], [19], [19]] == sizes
    counted = CountingStore(FileStore(tmp_path))
    with Engine(counted, config, read_only=True) as engine, engine.session("chat") as session:
        assert 11 == session.turn
        assert 1 + session.seq - 19 == counted.records


def test_what_was_just_erased_is_kept_in_no_snapshot_at_closing(tmp_path: Path) -> None:
    """An engine that is closed after an erasure leaves no snapshot with the words."""
    with Engine(FileStore(tmp_path), config_of(snapshot_every=8)) as engine, engine.session("chat") as session:
        talk(session, 3)
        session.erase("usr-2")
    assert not any(b"ask2x1" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
