"""Whatever is changed in an export or a transcript, it is read and can be stored, or an error says where it is wrong."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

import memci
from memci.adapters.importing import chatgpt, claude
from memci.adapters.importing.imported import Imported, import_into
from memci.adapters.importing.transcript import transcript
from memci.errors import InvalidIdError, InvalidMessageError
from tests.adapters.exports import claude as exported
from tests.adapters.exports import talked, worked

ODD: tuple[Any, ...] = (None, 1e300, "", "\ud800", [], [5], {}, {"type": "odd"})

ITEMS = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
    {"type": "reasoning", "id": "r", "summary": []},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "b"}]},
]
CHAT = [
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "https://x.y/z"}}]},
    {
        "role": "assistant",
        "content": "b",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "d"},
]


def lines(value: Any) -> bytes:
    return b"\n".join(json.dumps(line).encode() for line in value)


SOURCES: dict[str, tuple[Any, Callable[[Any, str], list[Imported]]]] = {
    "chatgpt": ([talked().value], lambda value, to: [*chatgpt.conversations(value, to=to)]),
    "claude": ([exported()], lambda value, to: [*claude.conversations(value, to=to)]),
    "events": (worked().lines, lambda value, to: [transcript(lines(value), "file", to=to)]),
    "items": (
        [{"type": "response_item", "timestamp": "2026-01-02", "payload": item} for item in ITEMS],
        lambda value, to: [transcript(lines(value), "file", to=to)],
    ),
    "messages": ({"messages": CHAT, "system": "s"}, lambda value, to: [transcript(json.dumps(value).encode(), "file", to=to)]),
}


def ways(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value in a JSON value."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield (key,)
        yield from ((key, *rest) for rest in ways(item))


def changed(value: Any) -> Iterator[Any]:
    """Yield the value with each value in it missing, and with odd ones in its place."""
    for *way, last in ways(value):
        for odd in (..., *ODD):
            made = copy.deepcopy(value)
            holder = made
            for key in way:
                holder = holder[key]
            if odd is ...:
                del holder[last]
            else:
                holder[last] = odd
            yield made


@pytest.mark.slow
@pytest.mark.parametrize("to", ["openai", "responses", "anthropic"])
@pytest.mark.parametrize("source", SOURCES)
def test_what_is_read_can_be_stored(source: str, to: str) -> None:
    """Each value, missing or odd, gives a conversation that a session takes and shows, or an error with a place."""
    value, read = SOURCES[source]
    places, taken = set[str](), dict[str, Imported]()
    for made in changed(value):
        try:
            several = read(made, to)
        except InvalidMessageError as error:
            places.add(error.path)
        else:
            taken |= {repr(attrs.evolve(each, lost=())): each for each in several}
    assert "" not in places
    assert min(len(places), len(taken)) > 10
    for imported in taken.values():
        with memci.Engine("memory:", {"format": to}) as engine:
            try:
                assert len(imported.messages) == import_into(engine, imported)
            except InvalidIdError:
                assert "\ud800" in imported.session_id
                continue
            with engine.session(imported.session_id) as session:
                assert [] == memci.validate(session.window().messages, to)
