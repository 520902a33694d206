"""A model that tidies its own memory: it groups pages, notes a lesson, closes what is off topic, and finds it again.

Run it with ``python examples/tidy.py``: a stand-in for a model says what was recorded, and calls the tools of the page tree.
With a real model behind an endpoint that speaks OpenAI's chat completions (the client is memci's extra ``chat``):

    python examples/tidy.py --base-url http://localhost:8080/v1 --model NAME
"""

import argparse
import json
import os
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import memci
from memci.chat import Chat, Endpoint, Faded, Model, Reply, Step, ToolAnswered, WindowSent

RECORDED = json.loads(Path(__file__).with_name("support.json").read_text(encoding="utf-8"))["messages"]
DRIFT = "Different topic."
QUESTION = "Back to the leak of the machine in March: what was the day and the hour of the technician's visit?"
CONFIG = {"budget": {"window": 6_000, "reserve": 1_500}, "contents": {"max_tokens": 900}, "recall": {"turns": 2}}

Plan: TypeAlias = Generator[tuple[str, dict[str, Any]], str, str]  # yields calls, is sent the window's texts, returns an answer


def pages(first: int, last: int) -> list[str]:
    """Return the indexes of some pages."""
    return [f"usr-{number}" for number in range(first, last + 1)]


def received(shown: str) -> str:
    """Return the index that the latest answer of a tool names."""
    return str(json.loads(shown.partition("\n")[0])["index"])


def listed(shown: str, name: str) -> str:
    """Return the index under which a window shows a directory."""
    found = re.search(rf"\[([a-z]+-\d+)\] {name}|([a-z]+-\d+)\b[^\n]*\b{name}\b", shown)
    assert found is not None, f"{name} is nowhere to be seen"
    return found[1] or found[2]


def tidy(answer: str, _shown: str) -> Plan:
    """Group what was said about the machine, three levels deep, note what must not be forgotten, and close the topic."""
    repair = {"name": "Repair", "description": "the leak under the machine", "pages": pages(22, 26)}
    inner = received((yield "group_pages", repair))
    machine = {"name": "Machine", "description": "settings, care, repair", "pages": [*pages(9, 16), inner]}
    middle = received((yield "group_pages", machine))
    yield "group_pages", {"name": "Spring", "description": "the order of March", "pages": [*pages(1, 8), middle]}
    yield "write_note", {"name": "Phone number", "description": "the account has an old one", "detail": "Call +31 6 5513 0862."}
    yield "close_topic", {"title": "The machine and its invoices"}
    return answer


def find(_answer: str, shown: str) -> Plan:
    """Open one directory after the other, and the page in the innermost one; close them all, and answer."""
    outer = listed(shown, "Spring")
    shown = yield "open_page", {"index": outer}
    shown = yield "open_page", {"index": listed(shown, "Machine")}
    shown = yield "open_page", {"index": listed(shown, "Repair")}
    shown = yield "open_page", {"index": "usr-24"}
    found = re.search(r"The first morning is ([^.]+)\.", shown)
    yield "close_page", {"index": outer}
    return f"It was {found[1]}." if found else "I cannot see that any more."


class Tidier:
    """Says what was recorded; where the topic drifts it tidies, and asked for something old it opens what it closed."""

    def __init__(self, recorded: Iterable[Mapping[str, Any]]) -> None:
        self.replies = (message["content"] for message in recorded if message["role"] == "assistant")
        self.plan: Plan | None = None
        self.calls = 0

    def complete(self, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]], *, may_call: bool) -> Reply:
        """Return the next reply: an answer, or a call of a tool."""
        del tools, may_call
        said, shown = messages[-1], "\n".join(message["content"] or "" for message in reversed(messages))
        plans: dict[str, Callable[[str, str], Plan]] = {DRIFT: tidy, QUESTION: find}
        if said["role"] != "tool":
            begun = next((plan for words, plan in plans.items() if said["content"].startswith(words)), None)
            answer = "You are welcome." if said["content"] == QUESTION else next(self.replies, "You are welcome.")
            self.plan = None if begun is None else begun(answer, shown)
            if self.plan is None:
                return Reply(message={"role": "assistant", "content": answer})
        assert self.plan is not None
        try:
            if said["role"] == "tool":
                name, arguments = self.plan.send(shown)
            else:
                name, arguments = next(self.plan)
        except StopIteration as done:
            return Reply(message={"role": "assistant", "content": done.value})
        self.calls += 1
        call = {"id": f"call_{self.calls}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        return Reply(message={"role": "assistant", "content": None, "tool_calls": [call]})


def tell(step: Step) -> None:
    """Print what happens, a line each."""
    match step:
        case memci.Fold(pages=folded):
            print(f"fold    {len(folded)} pages: the window goes from {step.tokens_before} to {step.tokens_after} tokens")
        case Faded(pages=faded):
            print(f"fade    {', '.join(faded)}")
        case ToolAnswered():
            print(f"call    {step.name} {step.arguments}\nresult  {' '.join(step.answer.split())[:160]}")
        case WindowSent(window=window) if window.breakdown["recalled"]:
            print(f"window  {window.tokens} of {window.budget} tokens, {window.breakdown['recalled']} of them opened")


def main() -> None:
    """Drive the user's side of a recorded conversation, and then ask for something that was closed and put away."""
    parser = argparse.ArgumentParser(description="Let a model tidy its own memory.")
    parser.add_argument("--base-url", help="an endpoint that speaks OpenAI's chat completions; without it, a stand-in")
    parser.add_argument("--model", default="default")
    given = parser.parse_args()
    with ExitStack() as opened:
        model: Model = Tidier(RECORDED)
        if given.base_url:
            model = opened.enter_context(Endpoint(given.base_url, given.model, api_key=os.environ.get("OPENAI_API_KEY")))
        engine = opened.enter_context(memci.Engine("memory:", CONFIG))
        session = opened.enter_context(engine.session("support-42"))
        session.add_segment("usr", permission="read_write")
        session.set_system([message for message in RECORDED if message["role"] == "system"])
        chat = Chat(session, model, observer=tell)
        for said in [message["content"] for message in RECORDED if message["role"] == "user"]:
            chat.say(said)
        print("user    " + QUESTION)
        print("answer  " + chat.say(QUESTION).text)


if __name__ == "__main__":
    main()
