"""A conversation that a model drives by itself: it grows, folds, and the model brings an old page back when it needs one.

Run it with ``python examples/recall_loop.py``: a stand-in for a model says what was recorded. With a real model, such as one that
llama.cpp or Ollama serves, or OpenAI's (the key is read from OPENAI_API_KEY, the client is memci's extra ``chat``):

    python examples/recall_loop.py --base-url http://localhost:8080/v1 --model NAME [--protocol attp] [FILE]
"""

import argparse
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import memci
from memci.chat import Chat, CodeAnswered, Endpoint, Faded, Model, Reply, Step, ToolAnswered, WindowSent

RECORDED = Path(__file__).with_name("support.json")
QUESTIONS = (
    "One more thing: a colleague wants an engraving too. What exactly did we put on Joost's?",
    "Thank you!",
    "Then I have all that I need.",
    "Goodbye!",
)
BUDGET = {"window": 3_500, "reserve": 1_000}


class StandIn:
    """Says what was recorded; asked for something old, it searches, recalls what it found, and answers from that page."""

    def __init__(self, recorded: Iterable[dict[str, Any]]) -> None:
        self.replies = (message for message in recorded if message["role"] == "assistant")

    def complete(self, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]], *, may_call: bool) -> Reply:
        """Return the next reply; the tools are those that it knows, and it may call them."""
        del tools, may_call
        last = messages[-1]
        found = re.search(r'"index":"(usr-\d+)"[^{}]*"snippet"[^{}]*Voor Joost', last["content"])
        if last["content"] == QUESTIONS[0]:
            return calling("call_1", "search_pages", {"query": "engraving for Joost"})
        if found:
            return calling("call_2", "recall_page", {"index": found[1]})
        if last["role"] == "tool":
            blocks = [message["content"] for message in messages if (message["content"] or "").startswith("[recalled page")]
            return Reply(message={"role": "assistant", "content": "It says: " + re.findall(r"Voor Joost, [\d·]+", blocks[0])[0]})
        return Reply(message=next(self.replies, {"role": "assistant", "content": "You are welcome."}))


def calling(call_id: str, name: str, arguments: dict[str, str]) -> Reply:
    """Return a reply with one tool call."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return Reply(message={"role": "assistant", "content": None, "tool_calls": [call]})


def tell(step: Step) -> None:
    """Print what happens, a line each."""
    match step:
        case memci.Fold(pages=pages):
            folded = f"{pages[0]} to {pages[-1]}" if pages else "contents page only"
            print(f"fold    {folded}: the window goes from {step.tokens_before} to {step.tokens_after} tokens")
        case memci.Recall():
            print(f"recall  {step.page}")
        case Faded(pages=pages):
            print(f"fade    {', '.join(pages)}")
        case ToolAnswered():
            print(f"call    {step.name} {step.arguments}\nresult  {short(step.answer)}")
        case CodeAnswered():
            print(f"call    {short(step.reply)}\nresult  {short(step.answer)}")
        case WindowSent(window=window) if window.breakdown["recalled"]:
            print(f"window  {window.tokens} of {window.budget} tokens, {window.breakdown['recalled']} of them recalled")


def short(text: str) -> str:
    """Return the beginning of a text on one line."""
    return " ".join(text.split())[:160]


def main() -> None:
    """Drive the user's side of a recorded conversation against a model, and then ask for something from its middle."""
    parser = argparse.ArgumentParser(description="Drive a recorded conversation against a model with a small window.")
    parser.add_argument("file", nargs="?", type=Path, default=RECORDED, metavar="FILE")
    parser.add_argument("--base-url", help="an endpoint that speaks OpenAI's chat completions; without it, a stand-in")
    parser.add_argument("--model", default="default")
    parser.add_argument("--protocol", choices=["native", "attp"], default="native")
    given = parser.parse_args()
    recorded = json.loads(given.file.read_text(encoding="utf-8"))["messages"]
    config = {"budget": BUDGET, "recall": {"turns": 2, "passages_tokens": 0, "protocol": given.protocol}}

    with ExitStack() as opened:
        model: Model = StandIn(recorded)
        if given.base_url:
            key = os.environ.get("OPENAI_API_KEY")
            model = opened.enter_context(Endpoint(given.base_url, given.model, api_key=key))
        engine = opened.enter_context(memci.Engine("memory:", config))
        session = opened.enter_context(engine.session("support-42"))
        session.set_system([message for message in recorded if message["role"] == "system"])
        chat = Chat(session, model, observer=tell)
        for said in [message["content"] for message in recorded if message["role"] == "user"]:
            chat.say(said)
        for question in QUESTIONS:
            print("user    " + question)
            print("answer  " + chat.say(question).text)


if __name__ == "__main__":
    main()
