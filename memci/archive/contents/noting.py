"""Reads the messages of pages for the working set: what calls touched, how they ended, and what the user said is to hold."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from memci.archive.contents.standing import standing
from memci.archive.contents.working_set import Kind, Note
from memci.archive.summarizers.entries import COLOURS
from memci.archive.summarizers.extractive import one_line
from memci.archive.summarizers.literals import EXTENSIONS, URL
from memci.messages.base64_runs import described_value
from memci.messages.message import Message
from memci.messages.parts import PartKind, parts

_MOST_SCANNED = 20_000  # characters of one argument or text
_TEXT_WEIGHT = 0.3  # of a name that stands in what is said, beside one that a call touched
_LONGEST_NAME, _LONGEST_LINE = 80, 160
_LONG_VALUE = 200  # characters of an argument: what is longer is a text or code, and what it names counts as said

_CODE = re.compile(r"```[^\n]*\n(.*?)(?:```|\Z)|<(\w{1,20})>\s*\n(.{1,2000}?)</\2>|`([^`\n]{2,120})`", re.DOTALL)
_PIECE = re.compile(r"[A-Za-z0-9_.@+%~/\u00c0-\u024f-]{3,240}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NUMBERED = r"[A-Z]{2,8}[0-9]{0,4}(?:-[A-Z0-9]{0,11}[0-9])+"  # such as HAT-136, INV-2026-0318
_WORD = re.compile(rf"{_NUMBERED}\b|[A-Za-z0-9_]{{4,80}}")
_HASH = re.compile(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}")
_CODED = re.compile(r"(?=[A-Z]*[0-9])(?=[0-9]*[A-Z])(?![0-9]+T[0-9]+$)[A-Z0-9]{5,20}|" + _NUMBERED)
_EDGE = ".,-@+%~"

_COMMAND_KEYS = frozenset({"command", "commands", "cmd", "code", "script"})
_DONE = frozenset({
    *("done", "completed", "complete", "closed", "cancelled", "canceled"),
    *("finished", "resolved", "skipped", "abandoned", "deleted"),
})  # fmt: skip
_OPEN = frozenset(("pending", "in_progress", "in-progress", "todo", "to_do", "open", "not_started", "new", "active", "blocked"))
_STATUSES = _DONE | _OPEN
_FAILED = re.compile(
    r"\b(?:errors?|fail(?:ed|ures?|s)?|exception|traceback|panic|fatal|denied|not found|exit (?:code|status):? [1-9])\b",
    re.IGNORECASE,
)


def notes_of(messages: Iterable[tuple[str, Message]], clock: int) -> list[Note]:
    """Return the notes of messages, oldest first, each with its page's index; *clock* messages came before. O(their size)."""
    found: list[Note] = []
    running = "", ""  # id of the call of the last command, and the command
    for at, (page, message) in enumerate(messages, start=clock + 1):
        names: dict[tuple[Kind, str], float] = {}
        for part in parts(message.value()):
            if part.kind is PartKind.CALL and part.call is not None:
                arguments = described_value(_read(part.call.arguments), "")  # base64 has no names
                items = _items(arguments)
                if items is not None:
                    found += [Note(Kind.ITEM, text, page, at) for text in items or [""]]
                    continue
                if command := _command(arguments):
                    running = part.call.id, command
                    found.append(Note(Kind.COMMAND, command, page, at))
                names |= _touched(arguments)
            elif part.kind is PartKind.RESULT and running[1] and part.answers == running[0]:
                ending = _ending(COLOURS.sub("", described_value(part.text, "")))
                found.append(Note(Kind.COMMAND, f"{running[1]} → {ending}", page, at))
            elif part.kind is PartKind.TEXT and message.speaker in ("user", "assistant"):
                text = described_value(part.text, "")
                names = dict.fromkeys(_said(text), _TEXT_WEIGHT) | names
                asked = standing(text) if message.from_user else ()
                found += [Note(Kind.RULE, line, page, at) for line in map(one_line, asked) if line]
        found += [Note(kind, text, page, at, weight) for (kind, text), weight in names.items()]
    return found


def _touched(arguments: Any) -> dict[tuple[Kind, str], float]:  # noqa: ANN401 (JSON)
    """Return what the arguments of a call name, with what each counts for."""
    names: dict[tuple[Kind, str], float] = {}
    for value in _texts(arguments):
        weight = 1.0 if len(value) <= _LONG_VALUE else _TEXT_WEIGHT
        for name in _names(value, said=False) if value not in _STATUSES else ():
            names[name] = max(names.get(name, 0.0), weight)
    return names


def _said(text: str) -> Iterator[tuple[Kind, str]]:
    """Yield what a text names, code in it included."""
    yield from _names(text, said=True)
    for match in _CODE.finditer(text[:_MOST_SCANNED]):
        yield from _names(next(filter(None, match.groups()[::-1]), ""), said=False)


def _read(arguments: str) -> Any:  # noqa: ANN401 (JSON)
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 (JSON)
    """Yield the texts in a JSON value, its keys left out, in order."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case dict() as held:
                waiting += reversed(held.values())
            case list() as held:
                waiting += reversed(held)


def _names(text: str, *, said: bool) -> Iterator[tuple[Kind, str]]:
    """Yield files, URLs and identifiers; of what is *said*, words with capitals inside them are no identifiers."""
    text = text[:_MOST_SCANNED]
    if "://" in text:
        for match in URL.finditer(text):
            if len(url := match.group().rstrip(".,:;!?*'\")]")) <= 2 * _LONGEST_NAME:
                yield Kind.URL, url
        text = URL.sub(" ", text)
    for match in _PIECE.finditer(text):
        piece = match.group().strip(_EDGE)
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        last = piece.rstrip("/").rpartition("/")[2]
        if after != "(" and _is_file(piece, last):
            if len(last) <= _LONGEST_NAME:
                yield Kind.FILE, "/".join(piece.rstrip("/").split("/")[-2:]).lstrip("/")
        elif _UUID.fullmatch(piece):
            yield Kind.NAME, piece
        else:
            piece = piece[1:] if before == "\\" and piece[:1] in "nrt" else piece  # a line break that is written in code
            yield from ((Kind.NAME, word) for word in _WORD.findall(piece) if _is_identifier(word, said=said))


def _is_file(piece: str, last: str) -> bool:
    """Return whether it is a file's name, or a way to one; branches and packages have slashes too."""
    stem, _, extension = last.rpartition(".")
    is_way = piece[:1] in ("/", "~", ".") and not piece.startswith("//") and "/" in piece[1:-1]
    return bool(stem and extension in EXTENSIONS) or (is_way and bool(last) and not stem)


def _is_identifier(word: str, *, said: bool) -> bool:
    inner = word.strip("_")
    if "_" in inner or _HASH.fullmatch(word) or _CODED.fullmatch(word):
        return True
    return not said and inner[1:] != inner[1:].lower() and not inner.isupper() and not inner[0].isdigit()


def _command(arguments: Any) -> str:  # noqa: ANN401 (JSON)
    """Return the command in a call's arguments, in one line; empty where there is none."""
    held = arguments if isinstance(arguments, dict) else {}
    inner = next((each for each in held.values() if isinstance(each, dict)), {})
    for key, value in (*held.items(), *inner.items()):
        words = value if isinstance(value, list) else [value]
        if key.lower() in _COMMAND_KEYS and words and all(isinstance(word, str) for word in words):
            return _short(one_line(" ".join(words)))
    return ""


def _items(arguments: Any) -> list[str] | None:  # noqa: ANN401 (JSON)
    """Return what is open of a list of items with a status, wherever it stands in a call's arguments; ``None`` for no list."""
    waiting = [arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list) and value:
            found = [_item(each) for each in value]
            if None not in found:
                return [text for text in found if text]
            waiting += value
    return None


def _item(value: Any) -> str | None:  # noqa: ANN401 (JSON)
    """Return an open item in one line; empty for one that is done, ``None`` for what is no item of such a list."""
    texts = {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}
    status = next((key for key, text in texts.items() if text.lower() in _STATUSES), None)
    said = max((text for key, text in texts.items() if key != status), key=len, default="")
    if status is None or not said:
        return None
    return "" if texts[status].lower() in _DONE else f"{_short(one_line(said))} ({texts[status].lower()})"


def _ending(result: str) -> str:
    """Return the line of a result that tells how it ended: the last that tells of a failure, else its last one."""
    lines = [line for line in result[-_MOST_SCANNED:].splitlines() if line.strip()]
    failed = next((line for line in reversed(lines) if _FAILED.search(line)), None)
    return _short(one_line(failed or (lines[-1] if lines else ""))) or "no output"


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"
