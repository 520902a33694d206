"""Snapshots make loading faster, and nothing else."""

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.history import state_codec
from memci.messages import codec
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
