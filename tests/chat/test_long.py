"""A hundred turns in a small window, after which a fact from an early page is asked for."""

import json
import re
import tomllib
from typing import Any

import attrs
import pytest

import memci
from memci.chat import Ending, Faded, Step, WindowSent
from tests.chat.model_server import Message, ModelServer, Said, calling, said, serving
from tests.chat.talks import config, last_user, talking

pytestmark = pytest.mark.server

TURNS = 100
EARLY = 3
FACT = "behind the third heron of the west wing"
QUESTION = "Where did I say that my spare key hangs?"
BUDGET: dict[str, Any] = {"budget": {"window": 2_600, "reserve": 0}, "active": {"min_pages": 3}}


def line(turn: int) -> str:
    """Return what the user says in a turn; in the early one, a fact among many other words."""
    shelf = " ".join(
        f"row {row} holds {turn * row} jars of kind {chr(96 + row)}{turn}, to be counted again;" for row in range(1, 9)
    )
    return f"Shelf {turn}: {shelf} {f'my spare key hangs {FACT};' if turn == EARLY else ''} that is all for shelf {turn}."


def block(messages: list[Message]) -> str:
    """Return the recalled blocks of a window."""
    texts = [message["content"] or "" for message in messages]
    return "\n".join(text for text in texts if text.startswith("[recalled page"))


def native(messages: list[Message]) -> Message:
    """Search, recall what was found, and answer from the block, with native calls."""
    if last_user(messages) != QUESTION:
        return said(f"Noted: {last_user(messages).partition(':')[0]}, and all its rows.")
    found = re.search("spare key hangs ([a-z ]+);", block(messages))
    if found:
        return said(f"It hangs {found[1]}.")
    if messages[-1]["role"] == "tool":
        return calling(("call_2", "recall_page", json.dumps({"index": json.loads(messages[-1]["content"])[0]["index"]})))
    return calling(("call_1", "search_pages", '{"query": "where the spare key hangs"}'))


def attp(messages: list[Message]) -> Message:
    """Do the same in one call of ATTP, once the system part has told of it."""
    if last_user(messages) != QUESTION:
        return native(messages)
    assert "search_pages" in "".join(message["content"] for message in messages if message["role"] == "system")
    if messages[-1]["content"].startswith("[tool_result]"):
        assert "success" == tomllib.loads(messages[-1]["content"])["tool_result"]["status"]
        return native(messages)
    code = 'hits = search_pages("where the spare key hangs")\n__result__ = recall_page(hits[0]["index"])'
    return said(f"[tool_call]\nstatus = \"success\"\ntarget = \"find the page\"\ncode = '''\n{code}\n'''\n")


@attrs.define
class Told:
    """What an observer was told."""

    steps: list[Step] = attrs.field(factory=list)

    def of(self, kind: type) -> list[Any]:
        return [step for step in self.steps if isinstance(step, kind)]


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "script", "calls"), [("native", native, 3), ("attp", attp, 2)])
def test_early_fact_is_recalled_and_fades(protocol: str, script: Any, calls: int) -> None:  # noqa: ANN401 (a script)
    """The model finds, recalls and says a fact that no window held any more; the block stands, then fades; all is kept."""
    told = Told()
    settings = config(recall={"protocol": protocol, "turns": 2, "passages_tokens": 0}, **BUDGET)  # it has to look by itself
    with serving(script) as server, talking(server, settings, observer=told.steps.append) as (chat, session):
        for turn in range(1, TURNS + 1):
            assert Ending.ANSWERED is chat.say(line(turn)).ending
        assert 5 <= len(told.of(memci.Fold))

        answer = chat.say(QUESTION)
        assert (f"It hangs {FACT}.", calls) == (answer.text, answer.calls)
        assert FACT not in json.dumps(server.requests[TURNS]["messages"])
        assert FACT in block(server.requests[-1]["messages"])
        recalled = [step.page for step in told.of(memci.Recall)]
        assert [f"usr-{EARLY}"] == recalled

        seen = [bool(block(after(server, chat, turn))) for turn in range(1, 5)]
        assert [True, False, False, False] == seen
        assert [(f"usr-{EARLY}",)] == [step.pages for step in told.of(Faded)]

        assert all(step.window.tokens <= step.window.budget == 2_600 for step in told.of(WindowSent))
        assert [] == server.refused
        messages = list(session.messages())
        spoken = [line(turn) for turn in range(1, TURNS + 1)] + [QUESTION] + [line(turn) for turn in range(1, 5)]
        users = [message["content"] for message in messages if message["role"] == "user"]
        assert spoken == [text for text in users if not text.startswith("[tool_result]")]
        assert server.replies == [message for message in messages if message["role"] == "assistant"]
        assert TURNS + 5 == session.turn
        assert session.verify().ok


def after(server: ModelServer, chat: Any, turn: int) -> list[Message]:  # noqa: ANN401 (the loop)
    """Say one line more, and return the messages that were sent with it."""
    chat.say(line(turn))
    messages: list[Message] = server.requests[-1]["messages"]
    return messages


def test_usage_keeps_the_window_within_what_the_endpoint_counts() -> None:
    """Where the endpoint counts more than the session does, its count too stays within the budget."""
    counted: list[int] = []
    told = Told()

    def script(messages: list[Message]) -> Said:
        counted.append(sum(len(json.dumps(value)) for value in (*messages, *server.requests[-1]["tools"])) // 2)
        return Said(native(messages), None, counted[-1])

    with serving(script) as server, talking(server, config(**BUDGET), observer=told.steps.append) as (chat, _):
        chat.say("Hello")
        for turn in range(1, 40):
            chat.say(line(turn))
    assert 3 <= len(told.of(memci.Fold))
    assert max(counted) <= 2_600
