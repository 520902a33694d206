"""Reads the messages of a page as passages: who speaks, which tool answers, with which words."""

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import attrs

from memci.archive.summarizers.literals import LiteralKind
from memci.archive.summarizers.outcome import failure, rehearsal
from memci.archive.summarizers.passage import SCANNED_CHARACTERS, Atoms
from memci.archive.summarizers.selection import Passage
from memci.archive.summarizers.whole import beginning
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
_LONGEST_TARGET, _LONGEST_CHANGE, _LONGEST_COMMAND = 160, 160, 80
_GLOSSES = ("content", "description", "explanation", "text")  # what a call writes, or what the model says of it
_LONGEST_LINE = 600
_COMMANDS = ("command", "cmd")
_SEPARATOR = re.compile("[|&;]+")
_REDIRECTION = re.compile(" ?(?:[0-9]?>&[0-9-]|&>|>&) ?(?:/dev/null)?")
_QUOTED = r"""[0-9]?>&[0-9-]?|&>|[^|&;"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*'"""
_COMMAND = re.compile(f"[|&;]+|(?:{_QUOTED}|.)(?:{_QUOTED})*")  # one, or what stands between two
_TARGET = re.compile(r"^(?:url|(?:\w*_)?(?:path|file)(?:_?name)?|\w*(?:Path|File)(?:Name)?)$")
_OLD = ("old_string", "old_str", "old_text", "oldText", "oldString", "search", "old")
_NEW = ("new_string", "new_str", "new_text", "newText", "newString", "replace", "new")
_TOKENS = re.compile(r"\w+|\s+|[^\w\s]")
COLOURS = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")  # and other codes for terminals (ECMA-48)
_NAMES = {None: "null", True: "true", False: "false"}


class FlatText(NamedTuple):
    """Text that may have been structured data.

    *units* are what is shown whole or not at all, in order: start and end of keys and short ``key: value`` pairs (``PAIR``), of
    commands and edits (``CLAUSE``).
    """

    text: str
    units: tuple[tuple[int, int, LiteralKind], ...] = ()


@attrs.define(eq=False)
class Source:
    """A page as a summariser sees it."""

    passages: list[Passage] = attrs.field(factory=list)
    atoms: Atoms = attrs.field(factory=Atoms)  # of all passages
    calls: list[Call] = attrs.field(factory=list)
    failed: list[Call] = attrs.field(factory=list)  # of these


def read_source(messages: Sequence[Message]) -> Source:
    """Read all messages of a page; each result finds the nearest earlier unanswered call with its id. O(size of the page)."""
    source = Source()
    unanswered: dict[str, list[tuple[Call, int]]] = {}  # each with the number of its passage
    named: set[str] = set()
    for number, message in enumerate(messages):
        role = clean_name(message.speaker) or "message"
        value = message.value()
        for part in parts(value):
            if part.kind is PartKind.CALL and part.call is not None:
                source.calls.append(part.call)
                unanswered.setdefault(part.call.id, []).append((part.call, len(source.passages)))
                name = clean_name(part.call.name) or "call"
                lead, worth = f" → {name}(", _CALL_WORTH / 4 if name in named else _CALL_WORTH
                passage = _add(source, number, "call", (role + lead, lead, ")"), called(described(part.call.arguments)), worth)
                passage.tool = name
                _note(passage, rehearsal(part.call.arguments))
                named.add(name)
            elif part.kind is PartKind.RESULT:
                waiting = unanswered.get(part.answers or "")
                call, place = waiting.pop() if waiting else (None, None)
                text = described(part.text)
                words = failure(text) or (
                    "is_error: true" if isinstance(part.value, dict) and part.value.get("is_error") is True else ""
                )
                if call is not None and place is not None and words:
                    source.failed.append(call)
                    _note(source.passages[place], words)
                name = call.name if call else str(value.get("name") or "")
                lead = f"tool {clean_name(name)}: " if name else "tool: "
                _add(source, number, "tool", (lead, f" | {lead}", ""), flat(text)).call = place
            elif part.kind is PartKind.TEXT:
                text = unheaded(message, part.text)
                if text.strip():
                    _add(source, number, role, (f"{role}: ", " ", ""), flat(described(text)))
            elif part.kind is PartKind.IMAGE:
                _add(source, number, role, (f"{role}: [image", " [image", "]"), FlatText(""), _IMAGE_WORTH)
    return source


def _note(call: Passage, words: str) -> None:
    """Let what is shown of a call say that it failed, or only tried something out."""
    if words and not call.failure:
        call.failure = words
        call.closing += f" ({words})"
        call.opening_cost += _estimate(words)


def _add(source: Source, number: int, speaker: str, around: tuple[str, str, str], said: FlatText, worth: float = 0.0) -> Passage:  # noqa: PLR0913, PLR0917 (each part of a line)
    opening, following, closing = around
    goes_on = source.passages and source.passages[-1].entry == number
    cost = _estimate(following + closing) if goes_on else _estimate(opening + closing) + _LINE_TOKENS
    places = source.atoms.add(said.text, said.units)
    passage = Passage(number, speaker, said.text, places, opening, following, closing, cost, worth)
    source.passages.append(passage)
    return passage


def clean_name(name: str) -> str:
    """Return a tool's name as it may stand on a line: without spaces, marks and line breaks, and not endless."""
    return _UNNAMED.sub("_", name)[:_LONGEST_NAME]


def called(text: str) -> FlatText:
    """Write the arguments of a call, which are JSON: what it is about first, without its key, and an edit as ``old → new``."""
    try:
        arguments = json.loads(text, parse_float=str, parse_int=str) if text.lstrip()[:1] == "{" else None
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict) or len(text) > SCANNED_CHARACTERS:
        return flat(text, "=")
    target = next((key for key, value in arguments.items() if _is_target(key, value)), None)
    lead = "" if target is None else " ".join(str(arguments.pop(target)).split())
    commands = list[tuple[int, int, LiteralKind]]()
    if target in _COMMANDS:
        lead, commands = _commands(lead)
    old, new = (next((key for key in keys if isinstance(arguments.get(key), str)), None) for keys in (_OLD, _NEW))
    change = new_text = ""
    if old is not None and new is not None:
        before, after = str(arguments.pop(old)), str(arguments.pop(new))
        change = _change(before, after)
        new_text = "" if change else _new_lines(before, after)
        change = change or ("" if new_text else _removal(before, after))
    else:
        new_text = next((str(arguments.pop(key)) for key in _GLOSSES if isinstance(arguments.get(key), str)), "")
    about = ": ".join(filter(None, (lead, change or new_text)))
    try:
        rest = flat(json.dumps(arguments, ensure_ascii=False), "=") if arguments else FlatText("")
    except (ValueError, RecursionError):
        return flat(text, "=")
    joint = ", " if about and rest.text else ""
    start = len(about) + len(joint)
    own = [(0, len(about), LiteralKind.CLAUSE)] if change and len(about) <= _LONGEST_CHANGE else commands
    return FlatText(about + joint + rest.text, (*own, *((first + start, last + start, kind) for first, last, kind in rest.units)))


def _commands(line: str) -> tuple[str, list[tuple[int, int, LiteralKind]]]:
    """Return a line of commands, each of them from its beginning, and their places: one is shown whole or not at all."""
    written, units = "", list[tuple[int, int, LiteralKind]]()
    for command in _COMMAND.finditer(line):
        if len(written) > _LONGEST_LINE:
            return f"{written.rstrip(' |&;')} …", units
        text = _REDIRECTION.sub(" ", command[0]).strip()
        if text and not _SEPARATOR.fullmatch(text):
            text = beginning(text, _LONGEST_COMMAND)
            units.append((len(written), len(written) + len(text), LiteralKind.CLAUSE))
        written += f"{text} "
    return written.rstrip(), units


def _is_target(key: str, value: object) -> bool:
    """Return whether a call is about an argument: its command, or a file or address of a line."""
    if not isinstance(value, str) or not value.strip():
        return False
    return key in _COMMANDS or (len(value) <= _LONGEST_TARGET and _TARGET.search(key) is not None)


def _change(old: str, new: str) -> str:
    """Return the words that an edit replaces, and those that it writes; empty where either is long or the edit has none."""
    before, after = _TOKENS.findall(old), _TOKENS.findall(new)
    first = next((place for place, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), None)
    if first is None:
        first = min(len(before), len(after))
    shorter = min(len(before), len(after)) - first
    pairs = zip(before[::-1][:shorter], after[::-1][:shorter], strict=True)
    last = next((place for place, (one, other) in enumerate(pairs) if one != other), shorter)
    removed, added = ("".join(each[first : len(each) - last]).strip() for each in (before, after))
    if "\n" in removed + added or len(removed) + len(added) > _LONGEST_CHANGE // 2 or not removed + added:
        return ""
    return f"{removed or 'nothing'} → {added or 'nothing'}"


def _new_lines(old: str, new: str) -> str:
    """Return the lines that an edit writes, without those that were there and stay around them."""
    known = set(old.splitlines())
    return "\n".join(line for line in new.splitlines() if line not in known).strip()


def _removal(old: str, new: str) -> str:
    """Return the first line that an edit takes out, as such; empty where all lines stay."""
    left = set(new.splitlines())
    gone = [" ".join(line.split()) for line in old.splitlines() if line.strip() and line not in left]
    return f"removed {beginning(gone[0], _LONGEST_COMMAND)}{' and more' * (len(gone) > 1)}" if gone else ""


def flat(text: str, equals: str = ": ") -> FlatText:
    """Write JSON of at most 32 levels as ``key: value, key: value``, numbers as written; any other text is left as it is."""
    if len(text) > SCANNED_CHARACTERS or text.lstrip()[:1] not in ("{", "["):
        return FlatText(COLOURS.sub("", text) if "\x1b" in text else text)
    pairs: list[tuple[int, int]] = []
    try:
        written = _written(json.loads(text, parse_float=str, parse_int=str), equals, 0, pairs)
    except (ValueError, RecursionError):
        return FlatText(text)
    return FlatText(written, tuple((first, last, LiteralKind.PAIR) for first, last in sorted(pairs)))


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
