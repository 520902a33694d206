"""The work that all peers do: turns of chat, with calls of a tool, and with long results of it, in a file a kind."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks import history
from memci.messages.tokens.counter import TokenCounter
from memci.messages.tokens.message_tokens import count_message

KINDS = {
    "chat": "a user's and an assistant's message of 212 tokens together",
    "tools": "the same, and between them one or two calls of a tool, each with a result of 300 characters",
    "results": "the same, and between them one call of a tool with a result of 20,000 characters",
}
_RESULTS = {
    "chat": (),
    "tools": (300, 300),
    "results": (20_000,),
}  # of every second turn, in characters; the others have the first of them

Message = dict[str, Any]


def turns(kind: str, count: int) -> Iterator[list[Message]]:
    """Yield the messages of each turn, in OpenAI's chat format."""
    said = history.messages(count)
    for number in range(count):
        user, answer = islice(said, 2)
        yield [user, *_calls(number, _RESULTS[kind][: 1 + number % 2]), answer]


def _calls(number: int, results: tuple[int, ...]) -> Iterator[Message]:
    for place, characters in enumerate(results):
        name = f"call-{number}-{place}"
        function = {"name": "look_up", "arguments": json.dumps({"record": number, "part": place})}
        yield {"role": "assistant", "content": None, "tool_calls": [{"id": name, "type": "function", "function": function}]}
        lines = (message["content"] for message in history.messages(characters, 1_000_000 + 100 * number))
        yield {"role": "tool", "tool_call_id": name, "content": _first(lines, characters)}


def _first(lines: Iterator[str], characters: int) -> str:
    """Return lines up to a number of characters."""
    found, length = [], 0
    while length < characters:
        found.append(next(lines))
        length += len(found[-1]) + 1
    return "\n".join(found)[:characters]


def message_bytes(kind: str, count: int = 100) -> float:
    """Return how long the JSON of a turn's messages is."""
    return sum(len(json.dumps(message)) for turn in turns(kind, count) for message in turn) / count


def write(path: Path, kind: str, count: int, counter: TokenCounter) -> Path:
    """Write turns to a file, one a line: messages, each with its tokens."""
    with path.open("w", encoding="utf-8") as file:
        for turn in turns(kind, count):
            file.write(json.dumps([(message, count_message(message, counter)) for message in turn]) + "\n")
    return path
