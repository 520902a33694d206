from pathlib import Path
from typing import Any

import pytest

import memci
from memci.chat import Chat, Faded, Model, Reply, Step, ToolAnswered, WindowSent
from memci.errors import ConfigError, InvalidMessageError, ModelError
from tests.chat.model_server import Http, Message, calling, said, serving
from tests.chat.talks import config, roles, talking
from tests.chat.test_attp import GOOD

LOOKING = calling(("c1", "list_pages", "{}"), ("c2", "search_pages", '{"query": "x"}'))


class Scripted:
    """A model without HTTP, which says what it was given, one message a call."""

    def __init__(self, *messages: Message) -> None:
        self.messages = list(messages)
        self.windows: list[list[Message]] = []

    def complete(self, messages: list[Message], tools: Any, *, may_call: bool) -> Reply:  # noqa: ANN401 (schemas)
        assert may_call
        assert all("function" in tool for tool in tools)
        self.windows.append(messages)
        return Reply(message=self.messages.pop(0))


def stored(path: Path, *messages: Message, protocol: str = "native") -> str:
    """Store messages in a process that ends behind the last of them, and return the store's URL."""
    with memci.Engine(f"file:{path}", config(protocol)) as engine, engine.session("talk") as session:
        for message in messages:
            session.append(message)
    return f"file:{path}"


def resumed(url: str, model: Model, protocol: str = "native") -> tuple[str | None, list[Message]]:
    """Resume the conversation in a new process, and return the answer's text and all messages."""
    with memci.Engine(url, config(protocol)) as engine, engine.session("talk") as session:
        answer = Chat(session, model).resume()
        return None if answer is None else answer.text, list(session.messages())


USER: Message = {"role": "user", "content": "Where is x?"}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "system", "content": "Be brief."}],
        [USER, said("There.")],
        [USER, said("")],
        [USER, said("There."), {"role": "system", "content": "Be briefer."}],
    ],
)
@pytest.mark.parametrize("protocol", ["native", "attp", "none"])
def test_nothing_waits(messages: list[Message], protocol: str, tmp_path: Path) -> None:
    """Where nobody waits for the model it is not asked."""
    url = stored(tmp_path, *messages, protocol=protocol)
    assert (None, messages) == resumed(url, Scripted(), protocol)


def test_unanswered_message_is_answered_once(tmp_path: Path) -> None:
    """A message whose process ended before the reply is answered in the next, and stands in the session once."""
    url = stored(tmp_path, USER)
    assert ("There.", [USER, said("There.")]) == resumed(url, Scripted(said("There.")))
    assert (None, [USER, said("There.")]) == resumed(url, Scripted())


@pytest.mark.parametrize("answered", [0, 1, 2])
def test_calls_without_result_are_carried_out(answered: int, tmp_path: Path) -> None:
    """Of the calls of the last reply those without a result are carried out, the others not again."""
    results = [{"role": "tool", "tool_call_id": f"c{number}", "content": "before"} for number in (1, 2)]
    url = stored(tmp_path, USER, LOOKING, *results[:answered])
    text, messages = resumed(url, Scripted(said("There.")))
    assert ("There.", 5) == (text, len(messages))
    assert ["c1", "c2"] == [message["tool_call_id"] for message in messages[2:4]]
    assert answered == sum(message["content"] == "before" for message in messages[2:4])


def test_repeated_ids_are_told_apart(tmp_path: Path) -> None:
    """A call that has the id of an earlier one, which was answered, is carried out."""
    first = [USER, LOOKING, *({"role": "tool", "tool_call_id": f"c{number}", "content": "old"} for number in (1, 2))]
    text, messages = resumed(stored(tmp_path, *first, LOOKING), Scripted(said("There.")))
    assert ("There.", ["old", "old"]) == (text, [message["content"] for message in messages[2:4]])
    assert "old" not in [message["content"] for message in messages[5:7]]
    assert 8 == len(messages)


def test_code_without_result_is_run(tmp_path: Path) -> None:
    """A call in ATTP whose process ended before its result is run in the next."""
    url = stored(tmp_path, USER, said(GOOD), protocol="attp")
    text, messages = resumed(url, Scripted(said("There.")), "attp")
    assert "There." == text
    assert ["user", "assistant", "user", "assistant"] == [message["role"] for message in messages]
    assert messages[2]["content"].startswith('[tool_result]\nstatus = "success"')


def test_result_without_reply_is_sent(tmp_path: Path) -> None:
    """A result in ATTP whose process ended before the model read it is sent in the next, and is not run again."""
    result: Message = {"role": "user", "content": '[tool_result]\nstatus = "success"\nresult = 1\n'}
    url = stored(tmp_path, USER, said(GOOD), result, protocol="attp")
    assert ("There.", [USER, said(GOOD), result, said("There.")]) == resumed(url, Scripted(said("There.")), "attp")


@pytest.mark.server
def test_protocol_may_change(tmp_path: Path) -> None:
    """A turn that began in one protocol goes on in that of the engine which resumes it."""
    url = stored(tmp_path, USER)
    with serving(lambda _: said("There.")) as server, talking(server, config("attp"), store=url) as (chat, _):
        assert "There." == getattr(chat.resume(), "text", None)
        assert "tools" not in server.requests[0]


@pytest.mark.server
def test_failure_within_a_turn(tmp_path: Path) -> None:
    """A request that fails behind a tool's result is made again in a new process, and the tool is not called again."""

    def fails(messages: list[Message]) -> Message | Http:
        return Http(500) if messages[-1]["role"] == "tool" else calling(("c1", "list_pages", "{}"))

    url = f"file:{tmp_path}"
    steps: list[Step] = []
    with serving(fails) as server:
        with talking(server, store=url) as (chat, session):
            with pytest.raises(ModelError):
                chat.say("Where is x?")
            before = list(session.messages())
        server.script = lambda _: said("There.")
        with talking(server, store=url, observer=steps.append) as (chat, session):
            assert "There." == getattr(chat.resume(), "text", None)
            assert [*before, said("There.")] == list(session.messages())
    assert [] == [step for step in steps if isinstance(step, ToolAnswered)]
    assert [] == server.refused


@pytest.mark.server
def test_next_message_may_come_instead() -> None:
    """After a failure the user may say more: both messages stand in one page, once, and are answered together."""
    with serving(lambda _: Http(500)) as server, talking(server) as (chat, session):
        with pytest.raises(ModelError):
            chat.say("One")
        server.script = lambda _: said("Two.")
        assert "Two." == chat.say("Two").text
        assert ["One", "Two", "Two."] == [message["content"] for message in session.messages()]
        assert (1, [["user", "user"]]) == (session.turn, [[m["role"] for m in server.requests[-1]["messages"]]])


def test_observer_that_fails_stops_the_turn() -> None:
    """What an observer raises at a step reaches the caller, and the turn can go on."""

    def observer(step: object) -> None:
        if isinstance(step, WindowSent) and not model.windows and len(model.messages) == 2:
            model.messages.pop(0)
            message = "the screen is gone"
            raise OSError(message)

    model = Scripted(said("unsaid"), said("There."))
    with memci.Engine("memory:", config()) as engine, engine.session("talk") as session:
        chat = Chat(session, model, observer=observer)
        with pytest.raises(OSError, match="the screen is gone"):
            chat.say("Where is x?")
        assert "There." == getattr(chat.resume(), "text", None)
        assert ["user", "assistant"] == roles(session)


@pytest.mark.server
def test_others_may_write_meanwhile(tmp_path: Path) -> None:
    """What another process writes to the session between two turns, or during a request, stops nothing and is kept."""
    url = f"file:{tmp_path}"
    settings = config("none", budget={"window": 600, "reserve": 0}, active={"min_pages": 1})
    with memci.Engine(url, settings) as other, other.session("talk") as beside:

        def script(messages: list[Message]) -> Message:
            beside.refresh()
            if beside.contents.entries:
                beside.recall("usr-1")
            return said(f"Noted as number {len(messages)}, with its long list of words.")

        with serving(script) as server, talking(server, settings, store=url) as (chat, session):
            for number in range(30):
                chat.say(f"Item {number} is to be kept with some words that take room in the window")
                beside.refresh()
                if beside.contents.entries:
                    beside.pin("usr-1")
            assert 60 == len(list(session.messages()))
            assert 1 == session.facts("usr-1").recall_count
            assert session.verify().ok


@pytest.mark.server
def test_pages_recalled_before_fade_too(tmp_path: Path) -> None:
    """A loop tells of the fading of pages that were recalled before it was made."""
    url = f"file:{tmp_path}"
    steps: list[Step] = []
    settings = config("none", budget={"window": 600, "reserve": 0}, active={"min_pages": 1})
    with memci.Engine(url, settings) as engine, engine.session("talk") as session:
        for number in range(30):
            session.append({"role": "user", "content": f"Item {number} is to be kept with some words that take room"})
            session.append(said("Noted, with a long list of words."))
        session.recall("usr-2")
    with serving(lambda _: said("Noted.")) as server, talking(server, settings, store=url, observer=steps.append) as (chat, _):
        for number in range(4):
            chat.say(f"And {number}")
    assert [("usr-2",)] == [step.pages for step in steps if isinstance(step, Faded)]


def test_only_users_say_something() -> None:
    """A message of another role is refused, and nothing is stored or sent."""
    with memci.Engine("memory:", config()) as engine, engine.session("talk") as session:
        with pytest.raises(InvalidMessageError, match="'assistant'"):
            Chat(session, Scripted()).say(said("Hello."))
        assert 0 == session.seq


@pytest.mark.parametrize("max_rounds", [0, -1, 1.5, True])
def test_wrong_number_of_rounds(max_rounds: Any) -> None:  # noqa: ANN401 (what nobody should give)
    """The number of rounds is a whole number from 1."""
    with memci.Engine("memory:", config()) as engine, engine.session("talk") as session, pytest.raises(ConfigError):
        Chat(session, Scripted(), max_rounds=max_rounds)
