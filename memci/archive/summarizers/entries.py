"""Reads the messages of a page as passages: who speaks, which tool answers, with which words."""

import re
from collections.abc import Sequence

import attrs

from memci.archive.summarizers.estimate import estimate
from memci.archive.summarizers.passage import atoms
from memci.archive.summarizers.selection import Passage
from memci.archive.summarizers.structure import FlatText, flat
from memci.messages.base64_runs import described
from memci.messages.message import Call, Message
from memci.messages.parts import PartKind, parts

_LINE_TOKENS = 1.0
_LONGEST_NAME = 64
_CALL_WORTH = 0.8
_IMAGE_WORTH = 0.3
_UNNAMED = re.compile("[^\\w.:/-]+")


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
    calls: list[Call]
    results: list[tuple[Call | None, str]]


def read_entries(messages: Sequence[Message]) -> list[Entry]:
    """Read all messages of a page; each result finds the nearest earlier unanswered call with its id. O(size of the page)."""
    entries = []
    unanswered: dict[str, list[Call]] = {}
    named: set[str] = set()
    for number, message in enumerate(messages):
        entry = Entry(clean_name(message.speaker) or "message", [], [], [])
        value = message.value()
        for part in parts(value):
            if part.kind is PartKind.CALL and part.call is not None:
                entry.calls.append(part.call)
                unanswered.setdefault(part.call.id, []).append(part.call)
                entry.passages.append(_call_passage(number, entry, part.call, named))
            elif part.kind is PartKind.RESULT:
                waiting = unanswered.get(part.answers or "")
                call = waiting.pop() if waiting else None
                text = described(part.text)
                entry.results.append((call, text[:200]))
                name = call.name if call else str(value.get("name") or "")
                entry.passages.append(_result_passage(number, entry, name, text))
            elif part.kind is PartKind.TEXT and part.text.strip():
                entry.passages.append(_passage(number, entry, entry.role, f"{entry.role}: ", " ", flat(described(part.text))))
            elif part.kind is PartKind.IMAGE:
                opening = f"{entry.role}: [image"
                entry.passages.append(
                    _passage(number, entry, entry.role, opening, " [image", FlatText(""), closing="]", worth=_IMAGE_WORTH)
                )
        entries.append(entry)
    return entries


def _call_passage(number: int, entry: Entry, call: Call, named: set[str]) -> Passage:
    name = clean_name(call.name) or "call"
    worth = _CALL_WORTH if name not in named else _CALL_WORTH / 4
    named.add(name)
    text = flat(described(call.arguments), "=")
    return _passage(number, entry, "call", f"{entry.role} → {name}(", f" → {name}(", text, closing=")", worth=worth)


def _result_passage(number: int, entry: Entry, name: str, text: str) -> Passage:
    opening = f"tool {clean_name(name)}: " if name else "tool: "
    return _passage(number, entry, "tool", opening, f" | {opening}", flat(text))


def _passage(  # noqa: PLR0913, PLR0917 (each part of a line)
    number: int,
    entry: Entry,
    speaker: str,
    opening: str,
    following: str,
    source: FlatText,
    *,
    closing: str = "",
    worth: float = 0.0,
) -> Passage:
    cost = estimate((following if entry.passages else opening) + closing) + (0.0 if entry.passages else _LINE_TOKENS)
    return Passage(number, speaker, source.text, atoms(source.text, source.pairs), opening, following, closing, cost, worth)


def clean_name(name: str) -> str:
    """Return a tool's name as it may stand on a line: without spaces, marks and line breaks, and not endless."""
    return _UNNAMED.sub("_", name)[:_LONGEST_NAME]
