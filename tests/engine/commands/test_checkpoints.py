"""Checkpoints: what they list, and going back to them."""

import pytest

from memci.archive.catalogue.page_facts import CheckpointKind
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.errors import ArgumentError, ConfigError, InvalidIdError, MemciError, PageNotFoundError
from tests.engine.sessions import config_of, heard, open_session, states, talk, turn
from tests.engine.wire import assistant, calling, result, user


def test_a_checkpoint_says_where_and_what_it_is() -> None:
    """A checkpoint has an id, its event's number, the label, the kind and the turn; they are listed oldest first."""
    session = open_session()
    talk(session, 2)
    first = session.checkpoint("before the offer")
    assert ("cp-1", session.seq, "before the offer", "manual", 2) == (first.id, first.seq, first.label, first.kind, first.turn)
    second = session.checkpoint("the offer was taken", kind="milestone")
    assert [first, second] == session.checkpoints()
    assert CheckpointKind.MILESTONE is second.kind


@pytest.mark.parametrize("label", ["", 7, None, "half of a \ud800 character"])
def test_a_label_is_text(label: object) -> None:
    """What is no text of at least one character is refused, and nothing is written."""
    session = open_session()
    with pytest.raises(InvalidIdError, match="label"):
        session.checkpoint(label)  # type: ignore[arg-type]
    assert 0 == session.seq


@pytest.mark.parametrize("kind", ["auto", "later", 7])
def test_a_kind_is_one_that_can_be_asked_for(kind: object) -> None:
    """Unknown kinds are refused, and ``auto``, which only the settings make."""
    with pytest.raises(ConfigError, match="manual"):
        open_session().checkpoint("here", kind=kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("checkpoint", ["cp-2", "CP-1", "", 1, None])
def test_only_checkpoints_that_are_there_can_be_restored(checkpoint: object) -> None:
    """Any other id is refused, and nothing is written."""
    session = open_session()
    seq = session.checkpoint("here").seq
    with pytest.raises(InvalidIdError, match="checkpoint"):
        session.restore_checkpoint(checkpoint)  # type: ignore[arg-type]
    assert seq == session.seq


def test_restoring_brings_everything_back() -> None:
    """Messages, window, contents page, pages, recalls and search are those of the checkpoint."""
    session = open_session(active={"min_pages": 1})
    talk(session, 4)
    session.fold([1, 2])
    session.recall(1)
    session.pin(2)
    window, pages, contents = session.window(), session.pages(), session.contents.render()
    checkpoint = session.checkpoint("four turns")
    talk(session, 4, first=5)
    session.fold("all")
    session.recall(3)
    session.unpin(2)
    session.restore_checkpoint(checkpoint.id)
    assert window.to_json() == session.window().to_json()
    assert (pages, contents) == (session.pages(), session.contents.render())
    assert [value for number in range(1, 5) for value in turn(number)] == list(session.messages())
    assert [] == session.search("say6x4", include_visible=True)
    assert ["usr-1", "usr-2"] == sorted(hit.index for hit in session.search("say1x4 say2x4", include_visible=True))
    with pytest.raises(PageNotFoundError):
        session.page(5)
    assert () == session.verify().problems


def test_past_windows_render_before_and_after_a_restore() -> None:
    """Every window that was ever rendered renders again, byte for byte, whichever side of a restore it stood on."""
    session = open_session(active={"min_pages": 1}, snapshot_every=3)
    windows = []
    for number in range(1, 5):
        talk(session, 1, first=number)
        windows.append(session.window())
    checkpoint = session.checkpoint("here")
    talk(session, 1, first=5)
    session.fold("all")
    windows.append(session.window())
    session.restore_checkpoint(checkpoint.id)
    windows.append(session.window())
    assert [window.to_json() for window in windows] == [session.render(at=window.seq).to_json() for window in windows]
    assert windows[3].to_json() == windows[5].to_json()


def test_a_restore_can_be_taken_back() -> None:
    """The engine makes a checkpoint before each restore; restoring that one brings back what the first took out of view."""
    session = open_session(active={"min_pages": 1})
    talk(session, 2)
    start = session.checkpoint("two turns")
    talk(session, 3, first=3)
    session.fold([1, 3])
    before, pages = session.window(), session.pages()
    recovery = session.restore_checkpoint(start.id)
    assert [("cp-1", "manual"), ("cp-2", "recovery")] == [(each.id, each.kind) for each in session.checkpoints()]
    talk(session, 1, first=9)
    session.restore_checkpoint(recovery.id)
    assert (before.to_json(), pages) == (session.window().to_json(), session.pages())
    assert ["cp-1", "cp-2", "cp-3"] == [each.id for each in session.checkpoints()]
    assert () == session.verify().problems


def test_turns_that_come_together_have_checkpoints_of_their_own() -> None:
    """Each turn's end has one, with a number of its own, in one append as in many."""
    session = open_session(checkpoints={"every_turns": 1})
    session.extend([*turn(1), *turn(2), *turn(3), *turn(4)])
    assert [("cp-1", 1), ("cp-2", 2), ("cp-3", 3)] == [(each.id, each.turn) for each in session.checkpoints()]


def test_numbers_are_not_used_again() -> None:
    """A page that opens after a restore takes a number that no page had, and so does a checkpoint."""
    session = open_session()
    talk(session, 1)
    checkpoint = session.checkpoint("one turn")
    talk(session, 2, first=2)
    session.restore_checkpoint(checkpoint.id)
    assert "usr-4/1" == session.append(user("another way")).address
    assert "cp-3" == session.checkpoint("and here").id


def test_a_fold_before_a_checkpoint_can_be_undone_after_restoring_it() -> None:
    """The last fold is again the one that was the last there."""
    session = open_session(active={"min_pages": 1})
    talk(session, 4)
    session.fold([1])
    checkpoint = session.checkpoint("one page folded")
    session.fold("all")
    session.restore_checkpoint(checkpoint.id)
    session.undo_fold()
    assert {"usr-1": "active", "usr-2": "active", "usr-3": "active", "usr-4": "open"} == states(session)
    with pytest.raises(MemciError, match="no fold to undo"):
        session.undo_fold()


def test_what_a_rewind_took_comes_back() -> None:
    """A page whose later entries were replaced and folded has those of the checkpoint again, and its page file too."""
    session = open_session(active={"min_pages": 1})
    talk(session, 3)
    session.fold([1, 2])
    checkpoint = session.checkpoint("first answer")
    session.rewind("usr-2/2")
    session.append(assistant("second answer"))
    talk(session, 1, first=4)
    session.fold("all")
    second = session.checkpoint("second answer")
    notices = heard(session)
    session.restore_checkpoint(checkpoint.id)
    assert turn(2) == session.page(2).messages
    assert () == session.verify().problems
    session.restore_checkpoint(second.id)
    assert [turn(2)[0], assistant("second answer")] == session.page(2).messages
    assert () == session.verify().problems
    assert [] == notices


def test_a_page_that_was_erased_meanwhile_has_its_file() -> None:
    """A page that was archived at the checkpoint, came back and was erased is archived again, complete without its words."""
    session = open_session(active={"min_pages": 1})
    talk(session, 3)
    session.fold([1, 2])
    checkpoint = session.checkpoint("here")
    session.undo_fold()
    session.erase("usr-2")
    notices = heard(session)
    session.restore_checkpoint(checkpoint.id)
    assert () == session.verify().problems
    assert "say2x1" not in str(session.page(2).messages)
    assert [] == notices


def test_a_call_that_was_answered_after_the_checkpoint_waits_again() -> None:
    """Calls are as open as they were: the result is taken in once more."""
    session = open_session()
    session.extend([user("look it up"), calling("x")])
    checkpoint = session.checkpoint("asked")
    session.append(result("x", "first"))
    session.restore_checkpoint(checkpoint.id)
    session.append(result("x", "second"))
    assert [user("look it up"), calling("x"), result("x", "second")] == list(session.messages())
    assert () == session.verify().problems


def test_keys_are_as_they_were() -> None:
    """The key of an append that a restore took back appends again; one from before the checkpoint gives its first answer."""
    session = open_session()
    session.append(user("one"), key="a")
    checkpoint = session.checkpoint("one message")
    session.append(assistant("two"), key="b")
    session.restore_checkpoint(checkpoint.id)
    assert "usr-1/1" == session.append(user("one"), key="a").address
    assert [user("one")] == list(session.messages())
    session.append(assistant("other"), key="b")
    assert [user("one"), assistant("other")] == list(session.messages())


def test_the_settings_of_now_stay_in_force() -> None:
    """Whatever was in force at the checkpoint, windows are made with the settings and the counter of this process."""
    store = MemoryStore()
    with Engine(store, config_of(counter="approximate")) as engine, engine.session("chat") as session:
        talk(session, 3)
        checkpoint = session.checkpoint("counted approximately")
    with Engine(store, config_of(counter="o200k_base", active={"min_pages": 2})) as engine, engine.session("chat") as session:
        exact = session.window()
        session.restore_checkpoint(checkpoint.id)
        assert ("o200k_base", 2) == (session.config.counter, session.config.active.min_pages)
        assert (exact.to_json(), exact.tokens) == (session.window().to_json(), session.window().tokens)
        assert () == session.verify().problems


def test_what_the_provider_counted_stays_known() -> None:
    """The calibration of the counter is knowledge of the counter, and no part of the conversation: a restore keeps it."""
    session = open_session()
    talk(session, 3)
    checkpoint = session.checkpoint("before the report")
    tokens = session.window().tokens
    session.report_usage(prompt_tokens=2 * tokens)
    scaled = session.window().tokens
    session.restore_checkpoint(checkpoint.id)
    assert scaled == session.window().tokens > tokens


def test_auto_checkpoints_stand_between_turns() -> None:
    """Every so many turns a checkpoint is made of what was said until then, before the message that opens the next turn."""
    session = open_session(checkpoints={"every_turns": 2})
    talk(session, 5)
    found = session.checkpoints()
    assert [("auto", 2, "after turn 2"), ("auto", 4, "after turn 4")] == [(each.kind, each.turn, each.label) for each in found]
    session.restore_checkpoint(found[0].id)
    assert [*turn(1), *turn(2)] == list(session.messages())
    session.begin_page("by hand")
    assert "after turn 2" == session.checkpoints()[-1].label


def test_only_the_newest_auto_checkpoints_are_kept() -> None:
    """Older auto ones are gone from the list and cannot be restored; those that were asked for stay."""
    session = open_session(checkpoints={"every_turns": 1, "keep": 2})
    talk(session, 1)
    session.checkpoint("mine")
    talk(session, 5, first=2)
    assert ["mine", "after turn 4", "after turn 5"] == [each.label for each in session.checkpoints()]
    with pytest.raises(InvalidIdError):
        session.restore_checkpoint("cp-2")
    assert () == session.verify().problems


def test_another_process_sees_the_restore() -> None:
    """A session that was open elsewhere follows with refresh, with all that it lists and finds."""
    store = MemoryStore()
    session, other = (Engine(store, config_of()).session("chat") for _ in range(2))
    talk(session, 2)
    checkpoint = session.checkpoint("two turns")
    talk(session, 2, first=3)
    other.refresh()
    assert ["usr-4"] == [hit.index for hit in other.search("ask4x1", include_visible=True)]
    session.restore_checkpoint(checkpoint.id)
    session.window()
    other.refresh()
    assert session.window().to_json() == other.window().to_json()
    assert session.pages() == other.pages()
    assert [] == other.search("ask4x1", include_visible=True)


def test_a_new_index_follows_all_restores() -> None:
    """An index that is made again from the journal equals the one that grew with it, whatever was restored in between."""
    session = open_session(active={"min_pages": 1})
    talk(session, 2)
    first = session.checkpoint("a")
    talk(session, 2, first=3)
    second = session.checkpoint("b")
    session.restore_checkpoint(first.id)
    talk(session, 2, first=5)
    third = session.checkpoint("c")
    session.restore_checkpoint(second.id)
    session.fold("all")
    session.restore_checkpoint(third.id)
    talk(session, 1, first=7)
    last = session.checkpoint("d")
    talk(session, 1, first=8)
    session.restore_checkpoint(last.id)
    pages, listed = session.pages(), session.checkpoints()
    assert [value for number in (1, 2, 5, 6, 7) for value in turn(number)] == list(session.messages())
    session._core.store.index.reset()
    assert (pages, listed) == (session.pages(), session.checkpoints())
    assert () == session.verify().problems


def test_a_checkpoint_ends_after_its_turns() -> None:
    """One with a time to live is listed and restored for so many turns, and then there is no such checkpoint."""
    session = open_session()
    talk(session, 1)
    made = session.checkpoint("before the switch", kind="mode_switch", ttl_turns=2)
    session.checkpoint("for good", kind="start")
    talk(session, 2, first=10)
    assert ["before the switch", "for good"] == [each.label for each in session.checkpoints()]
    talk(session, 1, first=20)
    assert ["for good"] == [each.label for each in session.checkpoints()]
    with pytest.raises(InvalidIdError):
        session.restore_checkpoint(made.id)
    assert () == session.verify().problems


def test_a_checkpoint_has_variables() -> None:
    """What the application keeps with it comes back with it, after the index was made anew as well; slots are restored."""
    session = open_session()
    talk(session, 1)
    session.slots["goal"] = "ship"
    made = session.checkpoint("before approval", kind="approval", variables={"step": 3, "files": ["a.py"], "word": "\u00fc"})
    session.slots["goal"] = "rest"
    session._core.empty_index()
    (found,) = session.checkpoints()
    assert {"step": 3, "files": ["a.py"], "word": "\u00fc"} == made.variables == found.variables
    session.restore_checkpoint(made.id)
    assert {"goal": "ship"} == session.slots


BAD = [{"ttl_turns": 0}, {"ttl_turns": True}, *({"variables": value} for value in ([1], {"a": object()}, {"a": "x" * 70_000}))]


@pytest.mark.parametrize("given", BAD)
def test_what_no_checkpoint_takes_is_refused(given: dict[str, object]) -> None:
    """A time that is none, and variables that are no JSON or too many, are ArgumentErrors; nothing is written."""
    session = open_session()
    talk(session, 1)
    seq = session.seq
    with pytest.raises(ArgumentError):
        session.checkpoint("here", **given)  # type: ignore[arg-type]
    assert seq == session.seq
