"""Reads the messages of a page as passages: who speaks, which tool answers, with which words."""

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import attrs

from memci.archive.summarizers.passage import SCANNED_CHARACTERS, Atoms
from memci.archive.summarizers.selection import Passage
from memci.archive.summarizers.words import estimate
from memci.messages.base64_runs import described
from memci.messages.headline import unheaded
from memci.messages.message import Call, Message
from memci.messages.parts import PartKind, parts

_estimate = lru_cache(maxsize=1_000)(estimate)  # of what stands around passages
_LINE_TOKENS = 1.0
_LONGEST_NAME = 64
_CALL_WORTH = 0.8
_IMAGE_WORTH = 0.3
_UNNAMED = re.compile("[^\\w.:/-]+")
_LONGEST_PAIR = 60
_DEEPEST = 32
COLOURS = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")  # and other codes for terminals (ECMA-48)
_NAMES = {None: "null", True: "true", False: "false"}


class FlatText(NamedTuple):
    """Text that may have been structured data: *pairs* are start and end of its keys and short ``key: value`` pairs, in order."""

    text: str
    pairs: tuple[tuple[int, int], ...] = ()


@attrs.define(eq=False)
class Source:
    """A page as a summariser sees it; *results* are the calls that were answered, each with the beginning of its result."""

    passages: list[Passage] = attrs.field(factory=list)
    atoms: Atoms = attrs.field(factory=Atoms)  # of all passages
    calls: list[Call] = attrs.field(factory=list)
    results: list[tuple[Call | None, str]] = attrs.field(factory=list)


def read_source(messages: Sequence[Message]) -> Source:
    """Read all messages of a page; each result finds the nearest earlier unanswered call with its id. O(size of the page)."""
    source = Source()
    unanswered: dict[str, list[Call]] = {}
    named: set[str] = set()
    for number, message in enumerate(messages):
        role = clean_name(message.speaker) or "message"
        value = message.value()
        for part in parts(value):
            if part.kind is PartKind.CALL and part.call is not None:
                source.calls.append(part.call)
                unanswered.setdefault(part.call.id, []).append(part.call)
                name = clean_name(part.call.name) or "call"
                said = flat(described(part.call.arguments), "=")
                lead = f" → {name}("
                _add(source, number, "call", (role + lead, lead, ")"), said, _CALL_WORTH / 4 if name in named else _CALL_WORTH)
                named.add(name)
            elif part.kind is PartKind.RESULT:
                waiting = unanswered.get(part.answers or "")
                call = waiting.pop() if waiting else None
                text = described(part.text)
                source.results.append((call, text[:200]))
                name = call.name if call else str(value.get("name") or "")
                lead = f"tool {clean_name(name)}: " if name else "tool: "
                _add(source, number, "tool", (lead, f" | {lead}", ""), flat(text))
            elif part.kind is PartKind.TEXT:
                text = unheaded(message, part.text)
                if text.strip():
                    _add(source, number, role, (f"{role}: ", " ", ""), flat(described(text)))
            elif part.kind is PartKind.IMAGE:
                _add(source, number, role, (f"{role}: [image", " [image", "]"), FlatText(""), _IMAGE_WORTH)
    return source


def _add(source: Source, number: int, speaker: str, around: tuple[str, str, str], said: FlatText, worth: float = 0.0) -> None:  # noqa: PLR0913, PLR0917 (each part of a line)
    opening, following, closing = around
    goes_on = source.passages and source.passages[-1].entry == number
    cost = _estimate(following + closing) if goes_on else _estimate(opening + closing) + _LINE_TOKENS
    places = source.atoms.add(said.text, said.pairs)
    source.passages.append(Passage(number, speaker, said.text, places, opening, following, closing, cost, worth))


def clean_name(name: str) -> str:
    """Return a tool's name as it may stand on a line: without spaces, marks and line breaks, and not endless."""
    return _UNNAMED.sub("_", name)[:_LONGEST_NAME]


def flat(text: str, equals: str = ": ") -> FlatText:
    """Write JSON of at most 32 levels as ``key: value, key: value``, numbers as written; any other text is left as it is."""
    if len(text) > SCANNED_CHARACTERS or text.lstrip()[:1] not in ("{", "["):
        return FlatText(COLOURS.sub("", text) if "\x1b" in text else text)
    pairs: list[tuple[int, int]] = []
    try:
        written = _written(json.loads(text, parse_float=str, parse_int=str), equals, 0, pairs)
    except (ValueError, RecursionError):
        return FlatText(text)
    return FlatText(written, tuple(sorted(pairs)))


def _written(value: Any, equals: str, start: int, pairs: list[tuple[int, int]], depth: int = 0) -> str:  # noqa: ANN401 (JSON)
    """Return a JSON value as flat text that begins at *start*, and add its pairs."""
    if depth > _DEEPEST:
        raise RecursionError
    if not isinstance(value, dict | list):
        return value if isinstance(value, str) else _NAMES.get(value, "")
    items: Iterable[tuple[str | None, Any]] = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    text = ""
    for key, item in items:
        text += ", " if text else ""
        begin = start + len(text)
        nested = isinstance(item, dict | list)
        text += "" if key is None else key + (" " if nested else equals)
        key_end = start + len(text) - 1
        text += _written(item, equals, start + len(text), pairs, depth + 1)
        end = key_end if nested else start + len(text)
        if key is not None and 0 < end - begin <= _LONGEST_PAIR:
            pairs.append((begin, end))
    return text
