"""Rules that the user sets are listed once their message has folded, until they are replaced or taken back."""

from typing import Any

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.core.monitor import Fold
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import ArgumentError, ConflictError, InvalidIdError
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import REPLY_TOKENS, count_message
from tests.engine.core.test_short_ways import called
from tests.engine.sessions import config_of, heard, open_session, talk
from tests.engine.wire import Value, assistant, user

RULE = "Never push to main without asking me."
NAME = "Call me Dr. Weber."


def ruled(store: MemoryStore | None = None, **sections: Any) -> Session:  # noqa: ANN401 (any section of the file)
    """Return a session with a rule in each of its first two pages, of which all but the last of five folded."""
    session = open_session(store, **sections)
    session.extend([user(f"Hello. {RULE} What is the time?"), assistant("Five.")], at="2026-03-01T10:00:00+00:00")
    session.extend([user(NAME), assistant("Gladly.")])
    talk(session, 3, first=3)
    session.fold("all")
    return session


def listed(session: Session) -> list[str]:
    """Return the lines of the block of rules in a window."""
    blocks = [str(value["content"]) for value in session.window().messages if str(value["content"]).startswith("[rules]")]
    return [line for block in blocks for line in block.splitlines()[1:-1]]


def texts(session: Session) -> list[str]:
    """Return the rules that hold."""
    return [rule.text for rule in session.rules() if rule.superseded_by is None]


def test_a_rule_is_listed_once_its_message_has_folded() -> None:
    """Word for word, with its page and the day; while it is in view it stands there alone."""
    session = open_session()
    session.extend([user(f"Hello. {RULE} What is the time?"), assistant("Five.")], at="2026-03-01T10:00:00+00:00")
    talk(session, 2, first=2)
    assert [] == listed(session)
    session.fold(["usr-1"])
    assert [f'- "{RULE}" (usr-1/1, 2026-03-01)'] == listed(session)
    session.undo_fold()
    assert [] == listed(session)


def test_the_window_counts_them() -> None:
    """They have a part of their own, which is as large as it is sent, before the conversation."""
    session = ruled()
    window = session.window()
    counter = get_counter("o200k_base")
    assert window.tokens == sum(count_message(value, counter) for value in window.messages) + REPLY_TOKENS
    assert window.tokens == sum(window.breakdown.values())
    kinds = [str(value["content"]).partition(" ")[0] for value in window.messages]
    assert kinds.index("[usr-0]") < kinds.index("[rules]")
    assert 0 < window.breakdown["rules"]


def test_a_rule_says_where_it_is_from() -> None:
    """Text, address, time, speaker and kind, newest last; the second rule of a message has an address of its own."""
    session = open_session()
    session.append({"role": "user", "content": f"{RULE} {NAME}", "name": "Ann"}, at="2026-03-01T10:00:00+00:00")
    first, second = session.rules()
    assert (RULE, "usr-1/1", "2026-03-01T10:00:00+00:00", "Ann", "prohibition", None) == (
        *(first.text, first.address, first.at, first.speaker, first.kind, first.superseded_by),
    )
    assert (NAME, "usr-1/1#2", "identity") == (second.text, second.address, second.kind)
    session.append(assistant("Good."))
    session.append(user("Go on."))
    session.fold(["usr-1"])
    assert f'- Ann: "{NAME}" (usr-1/1, 2026-03-01)' in listed(session)


@pytest.mark.parametrize("snapshot_every", [1, 500])
def test_a_session_opened_again_has_them(snapshot_every: int) -> None:
    """From a snapshot, from the journal alone, in a fork and in a draft; earlier windows render as they were."""
    store = MemoryStore()
    session = ruled(store, snapshot_every=snapshot_every)
    window = session.window()
    again = Engine(store, config_of(snapshot_every=snapshot_every)).session("chat")
    assert session.rules() == again.rules()
    assert window.to_json() == again.window().to_json() == again.render(at=window.seq).to_json()
    assert window.tokens == again.render(at=window.seq).tokens
    assert session.rules() == Engine(store, config_of()).fork("chat", "other").rules()
    with session.draft() as draft:
        draft.append(user("Never mention prices."))
        assert 3 == len(draft.rules())
    assert 2 == len(session.rules())


def test_what_is_taken_back_takes_its_rules_with_it() -> None:
    """Going back, erasing a page, restoring a checkpoint."""
    session = ruled()
    made = session.checkpoint("before")
    session.append(user("Answer in German only."))
    assert 3 == len(session.rules())
    session.rewind("usr-6/1")
    assert [RULE, NAME] == texts(session)
    session.erase("usr-1")
    assert [NAME] == texts(session)
    assert RULE not in session.window().to_json().decode()
    assert session.verify().ok
    session.restore_checkpoint(made.id)
    assert RULE not in [rule.text for rule in session.rules()]


def test_a_handoff_tells_the_rules_that_hold() -> None:
    """Whoever goes on from a session knows what its user asked for."""
    with Engine(MemoryStore(), config_of(budget={"window": 8_000, "reserve": 0})) as engine:
        session, other = engine.session("chat"), engine.session("other")
        session.extend([user(RULE), assistant("Good."), user(NAME), assistant("Good."), user("Call me Anna."), assistant("Yes.")])
        told = other.page(session.handoff(other)).messages[0]["content"]
        assert f'- "{RULE}" (usr-1/1)' in told
        assert '- "Call me Anna." (usr-3/1)' in told
        assert f'- "{NAME}"' not in told


def test_erased_rules_are_in_no_journal() -> None:
    """Neither in the events nor in what a process loads from them."""
    store = MemoryStore()
    session = ruled(store)
    session.erase("usr-1")
    bodies = b"".join(record.body for record in session._core.store.journal.read())
    assert RULE.encode() not in bodies
    again = Engine(store, config_of()).session("chat")
    assert session.rules() == again.rules()
    shown = again.window().to_json()
    session.refresh()
    assert shown == session.window().to_json()


def test_a_host_that_changes_its_list_changes_the_rules() -> None:
    """``sync`` goes back to before the message that was edited, and takes the new one in."""
    session = open_session()
    session.sync([user(RULE), assistant("Good.")])
    session.sync([user("Never push at night."), assistant("Good.")])
    assert ["Never push at night."] == texts(session)


def test_the_application_adds_and_removes_rules() -> None:
    """An added one is shown at once; one that was removed is not found again."""
    session = ruled()
    added = session.add_rule("  Prices with\n VAT. ")
    assert ("Prices with VAT.", "rule-1", "added") == (added.text, added.address, added.kind)
    assert 'Prices with VAT." (rule-1, ' in listed(session)[-1]
    session.remove_rule("usr-1/1")
    session.remove_rule("rule-1")
    assert [NAME] == texts(session)
    session.append(user("Go on."))
    session.refresh()
    assert [NAME] == texts(session)
    assert "rule-2" == session.add_rule("No discounts.").address


@pytest.mark.parametrize("text", ["", " \n", None, 7, "x" * 2_001, "a\x00b"])
def test_what_is_no_rule_is_refused(text: Any) -> None:  # noqa: ANN401 (no text)
    """Nothing is written."""
    session = open_session()
    with pytest.raises(ArgumentError, match="text"):
        session.add_rule(text)
    with pytest.raises(ArgumentError, match="the address of a rule"):
        session.remove_rule("usr-1/1")
    assert [] == session.rules()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Answer in German.", "From now on, please answer in English."),
        (NAME, "Call me Anna."),
        ("We use pnpm here.", "We use yarn here."),
        ("Never exceed the budget of 500 dollars.", "Never exceed the budget of 900 dollars."),
    ],
)
def test_another_value_of_the_same_thing_replaces_a_rule(before: str, after: str) -> None:
    """The former one stays known, and says what replaced it; going back brings it into force again."""
    session = open_session()
    session.extend([user(before), assistant("Good."), user(after)])
    assert [after] == texts(session)
    assert [before, after] == [rule.text for rule in session.rules()]
    assert "usr-2/1" == session.rules()[0].superseded_by
    session.rewind("usr-2/1")
    assert [before] == texts(session)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Never suggest hotels with pools.", "Never suggest hotels with stairs."),
        ("Never deploy on Fridays.", "Never deploy on Mondays."),
        ("Always answer my daughter in French.", "Always answer my son in German."),
        ("Never spend more than $500 on hotels.", "Never spend more than $200 on meals."),
        ("Keep answers under 100 words.", "Keep emails under 300 words."),
        ("I'm allergic to peanuts.", "I'm allergic to shellfish."),
    ],
)
def test_in_doubt_both_rules_stay(before: str, after: str) -> None:
    """What may be two things is two."""
    session = open_session()
    session.extend([user(before), assistant("Good."), user(after)])
    assert [before, after] == texts(session)


def test_a_rule_that_is_taken_back_holds_no_more() -> None:
    """The message that takes it back names what it is about; it sets no rule itself."""
    session = open_session()
    session.extend([user("Stop using emojis in your answers."), assistant("Good."), user(RULE), assistant("Good.")])
    session.append(user("You can use emojis again."))
    assert [RULE] == texts(session)
    assert "usr-3/1" == session.rules()[0].superseded_by


def test_what_is_allowed_of_something_else_takes_no_rule_back() -> None:
    """A word that both share is not what they are about."""
    session = open_session()
    session.extend([user("Never push to main."), assistant("Good."), user("You can push to staging again.")])
    assert ["Never push to main."] == texts(session)


def test_the_same_rule_is_listed_once() -> None:
    """Said again, it is the newest one."""
    session = open_session()
    session.extend([user(RULE), assistant("Good."), user(RULE), assistant("Yes.")])
    assert [RULE] == texts(session)


def test_without_room_the_oldest_are_left_out_and_reported() -> None:
    """They stay known, and a fold says which have no room."""
    session = open_session(budget={"window": 1_500, "reserve": 0})
    notices = heard(session)
    for number in range(40):
        session.append(user(f"Never open the door of room {number} without asking me first."))
        session.append(assistant("Good. " * 30))
    window = session.window()
    assert window.breakdown["rules"] <= 150
    shown = listed(session)
    assert "room 0 " not in str(shown)
    dropped = [address for notice in notices if isinstance(notice, Fold) for address in notice.dropped_rules]
    assert "usr-1/1" in dropped
    assert 40 == len(session.rules())


def test_what_is_hidden_of_a_message_is_listed() -> None:
    """A rule in a message that is shown in part is listed beside it, as the part may not have it."""
    session = open_session(budget={"window": 1_000, "reserve": 0})
    session.append(user(f"{RULE}\n\n{'word ' * 3_000}\n\n{NAME}"))
    assert [f'"{RULE}"', f'"{NAME}"'] == [line.partition(" (")[0].removeprefix("- ") for line in listed(session)]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": RULE},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": RULE}]},
        {"role": "user", "content": f"> {RULE}"},
    ],
)
def test_others_set_no_rules(message: Value) -> None:
    """What the assistant says, what a tool answers, also in a message of the user's, and what is quoted."""
    session = open_session(format="anthropic")
    call = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    session.extend([user("Look."), {"role": "assistant", "content": [call]}])
    session.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "fine"}]})
    if "tool_result" not in str(message):
        session.append(message)
    assert [] == session.rules()


def test_without_detection_only_added_rules_are_listed() -> None:
    """``rules.detect: false`` finds none."""
    session = ruled(rules={"detect": False})
    assert [] == session.rules()
    session.add_rule("Prices with VAT.")
    assert 1 == len(listed(session))


def test_another_counter_counts_rules_anew() -> None:
    """The part has the size that it is sent with by the counter that is in force."""
    store = MemoryStore()
    ruled(store).window()
    session = Engine(store, config_of(counter="cl100k_base")).session("chat")
    session.append(user("Go on."))
    window, counter = session.window(), get_counter("cl100k_base")
    assert window.tokens == sum(count_message(value, counter) for value in window.messages) + REPLY_TOKENS


def test_a_key_adds_a_rule_once() -> None:
    """The first answer comes again, also once the rule was removed and from a later engine; nothing is written for it."""
    store = MemoryStore()
    session = open_session(store)
    first = session.add_rule("Quote prices with VAT.", key="request-1")
    before = session.seq
    assert first == session.add_rule("Quote  prices with VAT.", key="request-1")
    assert ["Quote prices with VAT."] == texts(session)
    assert before == session.seq
    session.remove_rule(first.address)
    with Engine(store, config_of()) as engine, engine.session("chat") as later:
        assert first == later.add_rule("Quote prices with VAT.", key="request-1")
        assert [] == texts(later)
        assert "rule-2" == later.add_rule("Quote prices with VAT.", key="request-2").address


def test_a_key_that_was_used_for_something_else_is_a_conflict() -> None:
    """For another rule or for a message, and the other way round; nothing is written."""
    session = open_session()
    session.add_rule(RULE, key="rule")
    session.append(user("hello"), key="message")
    before = session.seq
    for key in ("rule", "message"):
        with pytest.raises(ConflictError):
            session.add_rule("Quote prices with VAT.", key=key)
    with pytest.raises(ConflictError):
        session.append(user(RULE), key="rule")
    with pytest.raises(ConflictError), session.stream(key="rule"):
        pass
    with pytest.raises(InvalidIdError):
        session.add_rule(RULE, key="")
    assert before == session.seq


def test_a_key_is_known_when_another_process_used_it() -> None:
    """An engine that did not hear of the first command finds it as it repeats it."""
    store = MemoryStore()
    with (
        Engine(store, config_of(), on_conflict="retry") as one,
        Engine(store, config_of(), on_conflict="retry") as two,
        one.session("chat") as here,
        two.session("chat") as there,
    ):
        here.append(user("hello"))
        there.refresh()
        first = here.add_rule(RULE, key="k")
        assert first == there.add_rule(RULE, key="k")
        assert [first] == here.rules() == there.rules()


def test_a_rule_that_a_checkpoint_took_back_is_added_again() -> None:
    """With its key, as a message is: what came after the checkpoint is gone from view."""
    session = open_session()
    session.append(user("hello"))
    made = session.checkpoint("before")
    session.add_rule(RULE, key="k")
    session.restore_checkpoint(made.id)
    assert [] == texts(session)
    session.add_rule(RULE, key="k")
    assert [RULE] == texts(session)


def test_a_turn_looks_at_few_of_many_rules() -> None:
    """What a turn calls is the same with ten times as many rules, most of which have no room."""
    calls = list[int]()
    for count in (50, 500):
        session = open_session(budget={"window": 2_000, "reserve": 0})
        for number in range(count):
            session.add_rule(f"Never open the door of room {number} without asking me first.")
        session.extend([user("Hello."), assistant("Hello.")])
        session.window()

        def turn(opened: Session = session) -> None:
            opened.append(user("Never open the door of the cellar without asking me first."))
            opened.window()

        calls.append(sum(called(turn).values()))
    assert calls[1] <= 1.05 * calls[0], calls
