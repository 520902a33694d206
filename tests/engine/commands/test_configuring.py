"""What a session chooses for itself: over the settings of whatever engine opens it, as events, and taken back with them."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memci.archive.stores.contract import Store
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.history import state_codec
from memci.engine.history.apply import apply
from memci.engine.history.events import from_record
from memci.engine.history.state import State
from memci.engine.session import Session
from memci.engine.settings.presets import PRESETS
from memci.errors import ConfigError, PermissionDeniedError
from tests.engine.sessions import config_of, open_session, talk, turn
from tests.engine.whole_state import told
from tests.engine.wire import assert_paired, calling, result, system, user

SMALL = {"budget": {"window": 900, "reserve": 0}}


def opened(store: Store, **sections: Any) -> Session:  # noqa: ANN401 (sections of the config)
    return Engine(store, config_of(**{**SMALL, **sections})).session("chat")


def filled(**sections: Any) -> Session:  # noqa: ANN401 (sections of the config)
    session = open_session(**{**SMALL, **sections})
    session.append(system("You are a clerk."))
    talk(session, 40)
    return session


def shows_contents(session: Session) -> bool:
    return bool(session.window().breakdown["contents"])


def test_a_choice_changes_the_window_and_loses_nothing() -> None:
    """A session goes from a contents page to nothing listed and back, and each window is rendered again as it was."""
    session = filled()
    before = session.window()
    session.configure(preset="truncate")
    without = session.window()
    session.configure(preset="chapters")
    after = session.window()
    assert before.breakdown["contents"]
    assert not without.breakdown["contents"]
    assert before.to_json() == after.to_json()
    for window in (before, without, after):
        assert window.to_json() == session.render(at=window.seq).to_json()


def test_keys_are_chosen_one_by_one() -> None:
    """Keys of a section are chosen over those chosen before; the others are the engine's. A preset begins anew."""
    session = filled(recall={"turns": 9})
    session.configure(recall={"max_share": 0.5}, active={"min_pages": 1})
    session.configure(recall={"protocol": "none"})
    assert (9, 0.5, "none") == (session.config.recall.turns, session.config.recall.max_share, session.config.recall.protocol)
    assert 1 == session.config.active.min_pages
    session.configure(preset="query_only", eviction={"stale_turns": 4})
    assert ("native", 0.25, 9) == (session.config.recall.protocol, session.config.recall.max_share, session.config.recall.turns)
    assert ("query_only", 2, 4) == (
        session.config.preset,
        session.config.active.min_pages,
        session.config.eviction.stale_turns,
    )


def test_a_choice_wins_over_every_engine() -> None:
    """Other engines, with other presets and keys, go on with what the session chose, and have their own in the rest."""
    store = MemoryStore()
    with opened(store) as session:
        talk(session, 3)
        session.configure(active={"max_pages": 3})
    engines: list[dict[str, Any]] = [{"preset": "sliding"}, {"active": {"max_pages": 50}, "recall": {"turns": 2}}, {}]
    for sections in engines:
        with opened(store, **sections) as session:
            session.append(user("go on"))
            session.append(turn(1)[1])
            assert 3 == session.config.active.max_pages
            assert sections.get("preset", "chapters") == session.config.preset
            assert sections.get("recall", {"turns": 6})["turns"] == session.config.recall.turns


def test_a_chosen_preset_takes_the_place_of_the_engines() -> None:
    """What the preset of an engine says does not hold where the session chose another; what the engine's file adds does."""
    store = MemoryStore()
    with opened(store, preset="sliding", recall={"protocol": "none", "turns": 3}) as session:
        talk(session, 3)
        session.configure(preset="chapters")
        assert (True, 2, None) == (
            session.config.contents.listed,
            session.config.active.min_pages,
            session.config.active.max_pages,
        )
        assert 3 == session.config.recall.turns
    with opened(store, preset="truncate") as session:
        session.append(user("and now?"))
        assert ("chapters", True) == (session.config.preset, session.config.contents.listed)


def test_an_engine_that_a_choice_does_not_fit_takes_the_section_as_it_was() -> None:
    """Where an engine's keys and the chosen ones contradict each other, the session keeps the whole section of before."""
    store = MemoryStore()
    with opened(store) as session:
        talk(session, 2)
        session.configure(budget={"window": 700})
    with opened(store, budget={"window": 9_000, "reserve": 5_000}) as session:
        session.append(user("and now?"))
        assert (700, 0) == (session.config.budget.window, session.config.budget.reserve)
        assert session.window().tokens <= 700
        session.configure(recall={"turns": 2})
        assert (700, 2) == (session.config.budget.window, session.config.recall.turns)
        with pytest.raises(ConfigError, match=r"budget\.reserve: 5000 leaves no room in a window of 800 tokens"):
            session.configure(budget={"window": 800})


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"format": "anthropic"}, "format"),
        ({"store": "memory:"}, "store"),
        ({"counter": "approximate"}, "counter"),
        ({"durability": "flush"}, "durability"),
        ({"limits": {"message_bytes": 1}}, "limits"),
        ({"search": {"vectors": True}}, "search"),
        ({"summary": {"timeout_s": 5}}, "summary.timeout_s"),
        ({"actve": {}}, "actve"),
        ({"active": {"max_page": 3}}, "active.max_page"),
        ({"active": {"max_pages": 1}}, "active.max_pages"),
        ({"active": 3}, "active"),
        ({"preset": "slidng"}, "preset"),
        ({"preset": 3}, "preset"),
        ({"budget": {"window": "8k"}}, "budget.window"),
    ],
)
def test_what_cannot_be_chosen_is_refused_by_name(given: Any, path: str) -> None:  # noqa: ANN401 (what anybody may give)
    """A wrong key, a wrong value and a key of the engine name their place; nothing is written, and nothing changes."""
    session = filled()
    window = session.window()
    seq, config = session.seq, session.config
    with pytest.raises(ConfigError) as caught:
        session.configure(**given)
    assert path == caught.value.path
    assert (seq, config) == (session.seq, session.config)
    assert window.to_json() == session.window().to_json()


def test_choosing_the_same_again_writes_nothing() -> None:
    """A choice that changes nothing is no event; the same value as the engine's is a choice all the same."""
    session = filled()
    session.configure(active={"min_pages": 2})
    seq = session.seq
    session.configure(active={"min_pages": 2})
    session.configure()
    assert seq == session.seq


def test_an_engine_that_only_reads_chooses_nothing() -> None:
    """It writes nothing, and shows what was chosen."""
    store = MemoryStore()
    with opened(store) as session:
        talk(session, 2)
        session.configure(preset="truncate")
        session.window()
    session = Engine(store, config_of(**SMALL), read_only=True).session("chat")
    assert "truncate" == session.config.preset
    with pytest.raises(PermissionDeniedError):
        session.configure(preset="chapters")
    assert session.window().tokens


def test_a_fork_and_a_copy_take_it_along() -> None:
    """A fork has what was chosen up to its place, and chooses for itself from then on."""
    engine = Engine(MemoryStore(), config_of(**SMALL))
    session = engine.session("chat")
    talk(session, 20)
    before = session.seq
    session.configure(preset="truncate")
    early, late = engine.fork("chat", "early", at=before), engine.fork("chat", "late")
    late.configure(preset="sliding")
    for fork in (early, late, session):
        fork.append(user("and now?"))
    assert ["chapters", "sliding", "truncate"] == [each.config.preset for each in (early, late, session)]


def test_a_checkpoint_goes_back_to_what_was_chosen_then() -> None:
    """What was chosen since is gone with the rest, and the checkpoint made before brings it back."""
    session = filled()
    checkpoint = session.checkpoint("before")
    session.configure(preset="truncate")
    assert not shows_contents(session)
    recovery = session.restore_checkpoint(checkpoint.id)
    assert shows_contents(session)
    session.restore_checkpoint(recovery.id)
    assert "truncate" == session.config.preset
    assert not shows_contents(session)


def test_a_rewind_keeps_what_was_chosen() -> None:
    """Going back in the conversation takes no choice back; nor does undoing a fold, or erasing a page."""
    session = filled()
    session.configure(preset="query_only")
    session.fold("all")
    session.undo_fold()
    session.rewind("usr-30/1")
    session.erase(3)
    assert "query_only" == session.config.preset
    assert not shows_contents(session)
    assert session.verify().ok


def test_another_process_hears_of_it() -> None:
    """A session that is open elsewhere follows the choice once it takes in what was written."""
    store = MemoryStore()
    one, other = opened(store), opened(store)
    talk(one, 30)
    other.refresh()
    one.configure(preset="truncate")
    other.refresh()
    assert "truncate" == other.config.preset
    assert not shows_contents(other)
    other.configure(preset="chapters")
    one.refresh()
    assert shows_contents(one)


def test_it_is_in_snapshots_and_journals(tmp_path: Any) -> None:  # noqa: ANN401 (a path)
    """A state that is read back, or made of the events, has the choice; the event leaves it out where there is none."""
    store = FileStore(tmp_path, "flush")
    with opened(store, snapshot_every=5) as session:
        talk(session, 9)
        assert {} == next(session.events("configured")).data["chosen"]
        session.configure(active={"max_pages": 4})
        talk(session, 9, first=10)
        with session._open() as core:
            replayed = State()
            for record in core.store.journal.read():
                apply(replayed, from_record(record), record.seq)
            back = state_codec.from_mapping(state_codec.to_mapping(core.state))
            assert {"active": {"max_pages": 4}} == core.state.chosen
            assert told(core.state) == told(back) == told(replayed)
    with opened(store, snapshot_every=5) as session:
        assert 4 == session.config.active.max_pages
        talk(session, 2, first=20)
        assert len(session.pages("active")) <= 4


CHOICES: list[dict[str, Any]] = [
    *({"preset": name} for name in PRESETS),
    {"contents": {"listed": False}},
    {"contents": {"listed": True}},
    {"active": {"min_pages": 1, "max_pages": 3}},
    {"budget": {"window": 700}},
    {"recall": {"protocol": "attp"}},
    {"recall": {"passages_tokens": 100}},
]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(CHOICES), min_size=1, max_size=7), st.randoms(), st.sampled_from(sorted(PRESETS)))
def test_a_live_session_goes_through_all_strategies(choices: list[dict[str, Any]], chance: random.Random, other: str) -> None:
    """Each window is in its budget, pairs are whole, every message is there, and all windows render again."""
    store = MemoryStore()
    said = [system("You are a clerk.")]
    windows = []
    with opened(store, budget={"window": 2_000, "reserve": 0}) as session:
        session.append(said[0])
        for number, chosen in enumerate(choices * 3):
            session.configure(**chosen)
            new = turn(number, chance.choice([3, 8, 60]))
            if chance.random() < 0.4:
                call = f"call-{number}"
                new[1:1] = [calling(call), result(call, "found " * chance.choice([2, 90]))]
            session.extend(new)
            said += new
            if session.pages("archived") and chance.random() < 0.3:
                session.recall(chance.choice(session.pages("archived")).index)
            if chance.random() < 0.1:
                session.fold("all")
            window = session.window()
            assert window.tokens <= session.config.budget.tokens == window.budget
            assert_paired(window.messages)
            windows.append(window)
        assert said == list(session.messages())
    with opened(store, preset=other, active={"min_pages": 5}) as session:
        session.append(user("and now?"))
        session.window()
        assert [each.to_json() for each in windows] == [session.render(at=each.seq).to_json() for each in windows]
        assert session.verify().ok
