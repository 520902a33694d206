"""Reads the messages of a page as passages: who speaks, which tool answers, with which words."""

import json
import re
from collections.abc import Sequence
from typing import Any

import attrs

from memci.archive.summarizers.estimate import estimate
from memci.archive.summarizers.passage import SCANNED_CHARACTERS, atoms
from memci.archive.summarizers.selection import Passage
from memci.messages.message import Call, Message
from memci.messages.parts import PartKind, parts

_LINE_TOKENS = 1.0
_LONGEST_NAME = 64
_LONGEST_UNIT = 60
_DEEPEST = 32
_CALL_WORTH = 0.8
_NAME = re.compile("[^\\w.:/-]+")


@attrs.define(eq=False)
class Entry:
    """One message as a summariser sees it.

    Attributes:
        role: Who speaks: ``user``, ``assistant``, ``tool`` …
        passages: What is said, in order.
        calls: The calls that it makes, in order.
        results: The answered calls, each with the beginning of its result.
    """

    role: str
    passages: list[Passage]
    calls: tuple[Call, ...]
    results: list[tuple[Call | None, str]]


def read_entries(messages: Sequence[Message]) -> list[Entry]:
    """Read all messages of a page; each result finds the nearest earlier unanswered call with its id. O(size of the page)."""
    entries = []
    unanswered: dict[str, list[Call]] = {}
    named: set[str] = set()
    for number, message in enumerate(messages):
        entry = Entry(_NAME.sub(" ", message.role).strip() or "user", [], message.calls, [])
        value = message.value()
        for part in parts(value):
            if part.kind is PartKind.CALL and part.call is not None:
                unanswered.setdefault(part.call.id, []).append(part.call)
                entry.passages.append(_call_passage(number, entry, part.call, named))
            elif part.kind is PartKind.RESULT:
                waiting = unanswered.get(part.answers or "")
                call = waiting.pop() if waiting else None
                entry.results.append((call, part.text[:200]))
                name = call.name if call else str(value.get("name") or "")
                entry.passages.append(_result_passage(number, entry, name, part.text))
            elif part.kind is PartKind.TEXT and part.text.strip():
                _say(number, entry, part.text)
        entries.append(entry)
    return entries


def flat_json(text: str, equals: str = ": ") -> tuple[str, tuple[tuple[int, int], ...]] | None:
    """Write a JSON object or array as ``key: value, key: value``, and say where each short pair stands.

    Numbers stay as they are written. ``None`` when the text is no JSON object or array, is nested deeply, or is longer than
    ``SCANNED_CHARACTERS``. O(its length).
    """
    if len(text) > SCANNED_CHARACTERS or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return None
    pieces: list[str] = []
    units: list[tuple[int, int]] = []
    if not _flatten(value, equals, pieces, units, 0, 0):
        return None
    return "".join(pieces), tuple(units)


def _flatten(value: object, equals: str, pieces: list[str], units: list[tuple[int, int]], length: int, depth: int) -> int:
    """Append the flat form of *value*; return the length of all pieces, or 0 when it is nested too deeply."""
    if depth > _DEEPEST:
        return 0
    start = length
    if isinstance(value, dict | list):
        items: Any = value.items() if isinstance(value, dict) else ((None, item) for item in value)
        for key, item in items:
            if length > start:
                pieces.append(", ")
                length += 2
            begin = length
            if key is not None:
                mark = key + (equals if not isinstance(item, dict | list) else " ")
                pieces.append(mark)
                length += len(mark)
            after = _flatten(item, equals, pieces, units, length, depth + 1)
            if not after and (isinstance(item, dict | list) and item):
                return 0
            length = after or length
            if key is not None and not isinstance(item, dict | list) and length - begin <= _LONGEST_UNIT:
                units.append((begin, length))
        return length
    word = value if isinstance(value, str) else {None: "null", True: "true", False: "false"}.get(value, "")  # type: ignore[call-overload]
    pieces.append(word)
    return length + len(word)


def _say(number: int, entry: Entry, text: str) -> None:
    opening = f"{entry.role}: " if not entry.passages else " "
    speaker = entry.role
    flat = flat_json(text)
    shown, units = flat or (text, ())
    entry.passages.append(Passage(number, speaker, shown, atoms(shown, units), opening, opening_cost=_opening_cost(opening, entry)))


def _call_passage(number: int, entry: Entry, call: Call, named: set[str]) -> Passage:
    name = clean_name(call.name)
    opening = (f"{entry.role} → " if not entry.passages else " → ") + name + "("
    flat = flat_json(call.arguments, "=")
    shown, units = flat or (call.arguments, ())
    worth = _CALL_WORTH if name not in named else _CALL_WORTH / 4
    named.add(name)
    return Passage(
        number,
        "call",
        shown,
        atoms(shown, units),
        opening,
        ")",
        opening_cost=_opening_cost(opening, entry) + 0.5,
        opening_worth=worth,
    )


def _result_passage(number: int, entry: Entry, name: str, text: str) -> Passage:
    opening = f"tool {clean_name(name)}: " if name else "tool: "
    if entry.passages:
        opening = " | " + opening
    flat = flat_json(text)
    shown, units = flat or (text, ())
    return Passage(number, "tool", shown, atoms(shown, units), opening, opening_cost=_opening_cost(opening, entry))


def clean_name(name: str) -> str:
    """Return a tool's name as it may stand on a line: without spaces, marks and line breaks, and not endless."""
    return _NAME.sub("_", name)[:_LONGEST_NAME]


def _opening_cost(opening: str, entry: Entry) -> float:
    return estimate(opening) + (0.0 if entry.passages else _LINE_TOKENS)
