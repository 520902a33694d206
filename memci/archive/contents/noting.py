"""Reads the messages of pages for the working set: what calls touched, how they ended, and what is open."""

import json
import re
from collections.abc import Iterable, Iterator
from posixpath import normpath
from typing import Any

import attrs

from memci.archive.contents.working_set import Kind, Note
from memci.archive.summarizers.entries import COLOURS
from memci.archive.summarizers.extractive import one_line
from memci.archive.summarizers.literals import EXTENSIONS, URL
from memci.archive.summarizers.whole import beginning
from memci.archive.summarizers.words import CJK, UNSPACED, compiled
from memci.messages.base64_runs import described_value
from memci.messages.formats.reading import ERASED
from memci.messages.headline import unheaded
from memci.messages.message import Message
from memci.messages.parts import PartKind, parts

_MOST_SCANNED = 20_000  # characters of one argument or text
_TEXT_WEIGHT = 0.3  # of a name that stands in what is said, beside one that a call touched
_SHORTEST_NAME, _LONGEST_NAME, _LONGEST_LINE = 4, 80, 160
_MOST_SAID, _MOST_QUOTED = 2_000, 300  # characters of a text that are looked at for its beginning, and of that
_MOST_WORDS = 2  # before the last, of a relative way whose key does not tell that it is one
_LONG_VALUE = 200  # characters of an argument: what is longer is a text or code, and what it names counts as said

_CODE = re.compile(r"```[^\n]*\n(.*?)(?:```|\Z)|<(\w{1,20})>\s*\n(.{1,2000}?)</\2>|`([^`\n]{2,120})`", re.DOTALL)
_OF_PIECE = f"[\\w{CJK}\u0300-\u036f\u064b-\u065f\u0900-\u0963\u0966-\u0dff.@+%~/-]"  # with marks, which are no letters
_PIECE, _ASCII_PIECE = (  # no plain words
    re.compile(f"(?<!{of})(?![A-Z]?[a-z]{{1,80}}[.-]?(?!{of})){of}{{3,240}}") for of in (_OF_PIECE, "[A-Za-z0-9_.@+%~/-]")
)
_NARROW = re.compile(r"[A-Za-z0-9_.@+%~/\u00c0-\u024f-]{3,240}")  # of a piece where words stand side by side without spaces
_BESIDE = re.compile(f"[{CJK}][A-Za-z]|[A-Za-z][{CJK}]")
_SPACED = re.compile(  # what may be a way with spaces: in quotes, or with a backslash before each
    r"""(["'])([^"'\n]{3,240})\1|(?<![^\s"'=])[^\s"'\\]{0,120}(?:\\ [^\s"'\\]{1,120}){1,20}"""
)
_QUOTED = re.compile(_SPACED.pattern.partition("|")[0])
_LISTED = re.compile("[ ,]")
_START = re.compile(r"(?:/|~/|\.{1,2}/|[A-Za-z]:[\\/])(?!/)")
_URL_STOP = re.compile(",(?=[A-Za-z][A-Za-z0-9+.-]*://)|[…】〉〕］｝]")
_URL_EDGE = ".,:;!?*'"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*")
_HASH = re.compile(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}")
_CODED = re.compile(  # HAT136; HAT-136, MARE-15-SPRING
    r"(?=[A-Z]*[0-9])(?=[0-9]*[A-Z])(?![0-9]+T[0-9]+$)[A-Z0-9]{5,20}|(?=[A-Z-]+[0-9])[A-Z][A-Z0-9]{1,11}(?:-[A-Z0-9]{1,12}){1,8}"
)
_EDGE = ".,-@+%~"
_VARIABLE = re.compile(r"(?:[})\]*?$]|\w>)\Z")  # what a slash follows that does not begin a way
_NO_FILES = ("/dev/", "/proc/", "/sys/", "/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/")  # and programs

_PATH_KEY = re.compile(r"(?:(?:\b|_)(?:path|file)|Path|File)(?:_?name|Name)?s?$")
_BARE = re.compile(r"[\w./,'+@~-]*[^\W\d][\w./,'+@~-]*")  # what may be a file's name where nothing but its key tells so
_COMMAND_KEYS = frozenset({"command", "commands", "cmd", "code", "script"})
_CODE_KEYS = frozenset({"code", "script"})  # which may hold a one-time code as well
_COMMANDING = re.compile(r"[\n`=(){}\[\]<>|&;:$\"'/*]|[a-z]\s+\S")
_DONE = frozenset({
    *("done", "completed", "complete", "closed", "cancelled", "canceled"),
    *("finished", "resolved", "skipped", "abandoned", "deleted"),
})  # fmt: skip
_OPEN = frozenset(("pending", "in_progress", "in-progress", "todo", "to_do", "open", "not_started", "new", "active", "blocked"))
_STATUSES = _DONE | _OPEN
_FAILED = re.compile(
    r"(?:errors?|exception|\b(?:fail(?:ed|ures?|s)?|panic|fatal|denied|not found|exit (?:code|status):? [1-9]))\b(?!.*:\s*\Z)",
    re.IGNORECASE,
)


def notes_of(messages: Iterable[tuple[str, Message]], clock: int) -> list[Note]:
    """Return the notes of messages, oldest first, each with its page's index; *clock* messages came before. O(their size)."""
    found: list[Note] = []
    running: dict[str, int] = {}  # by id of the call: the place of its command
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
                    running[part.call.id] = len(found)
                    found.append(Note(Kind.COMMAND, command, page, at))
                names |= _touched(arguments)
            elif part.kind is PartKind.RESULT and part.answers in running:
                ended = ending(COLOURS.sub("", described_value(part.text, "")))
                place = running.pop(part.answers)
                found[place] = attrs.evolve(found[place], text=f"{found[place].text} → {ended}")
            elif part.kind is PartKind.TEXT and message.speaker in ("user", "assistant"):
                text = described_value(unheaded(message, part.text), "")
                names = dict.fromkeys(_said(text), _TEXT_WEIGHT) | names
        found += [Note(kind, text, page, at, weight) for (kind, text), weight in names.items()]
    return found


def course_of(messages: Iterable[tuple[str, Message]], clock: int) -> list[Note]:
    """Return of a page's messages, oldest first, what the user began it with, and what was said last. O(their size).

    That is what the assistant said last, or anybody, where it said nothing; *clock* messages came before.
    """
    asked: list[Note] = []
    ended: dict[bool, Note] = {}  # what anybody said, and what the assistant did
    for at, (page, message) in enumerate(messages, start=clock + 1):
        for part in parts(message.value()):
            text = one_line(COLOURS.sub("", described_value(unheaded(message, part.text), "")[:_MOST_SAID]))
            if part.kind not in (PartKind.TEXT, PartKind.RESULT) or text == ERASED or not any(map(str.isalnum, text)):
                continue
            line = _short(text, _MOST_QUOTED)
            if message.from_user and not asked and not ended:
                asked = [Note(kind, line, page, at) for kind in (Kind.GOAL, Kind.ASKED)]
            else:
                ended[message.speaker == "assistant"] = Note(Kind.OUTCOME, line, page, at)
    return [*asked, *(ended[said] for said in sorted(ended)[-1:])]


def latest_kinds(message: Message) -> frozenset[Kind]:
    """Return the kinds of ``LATEST`` of which a message's calls have notes. O(its size)."""
    found = set()
    for part in parts(message.value()):
        if part.call is not None:
            arguments = described_value(_read(part.call.arguments), "")
            if _items(arguments) is not None:
                found.add(Kind.ITEM)
            elif _command(arguments):
                found.add(Kind.COMMAND)
    return frozenset(found)


def said_in(message: Message) -> Iterator[str]:
    """Yield what a message says, and the texts in the arguments of its calls. O(its size)."""
    for part in parts(message.value()):
        if part.call is not None:
            yield from (text for _, text in _texts(described_value(_read(part.call.arguments), "")))
        elif part.kind is PartKind.TEXT:
            yield str(described_value(part.text, ""))


def _touched(arguments: Any) -> dict[tuple[Kind, str], float]:  # noqa: ANN401 (JSON)
    """Return what the arguments of a call name, with what each counts for."""
    names: dict[tuple[Kind, str], float] = {}
    for key, value in _texts(arguments):
        weight = 1.0 if len(value) <= _LONG_VALUE else _TEXT_WEIGHT
        is_way = key.lower() not in _COMMAND_KEYS and _is_way(value, named=bool(_PATH_KEY.search(key)))
        found = [(Kind.FILE, _shown(value))] if is_way else _names(value, said=False) if value not in _STATUSES else ()
        for name in found:
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


def _texts(value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 (JSON)
    """Yield the texts in a JSON value in order, each with the nearest key that it stands under; empty for none."""
    waiting = [("", value)]
    while waiting:
        match waiting.pop():
            case key, str(text):
                yield key, text
            case _, dict() as held:
                waiting += reversed(held.items())
            case key, list() as held:
                waiting += ((key, each) for each in reversed(held))


def _names(text: str, *, said: bool) -> Iterator[tuple[Kind, str]]:
    """Yield files, URLs and identifiers; of what is *said*, words with capitals inside them are no identifiers."""
    text, at = text[:_MOST_SCANNED], 0
    while "://" in text and (match := URL.search(text, at)):
        url = _alone(match.group())
        if len(shown := url.rstrip(_URL_EDGE)) <= 2 * _LONGEST_NAME:
            yield Kind.URL, shown
        at = match.start() + 1
        text = f"{text[: at - 1]} {text[at - 1 + len(url) :]}"
    spaced = _SPACED if "\\ " in text else _QUOTED
    ways = [(way, match) for match in spaced.finditer(text) if " " in match[0] and (way := _spaced(match))]
    yield from ((Kind.FILE, _shown(way)) for way, _ in ways)
    for _, match in reversed(ways):
        text = f"{text[: match.start()]} {text[match.end() :]}"
    for match in _pieces(text):
        whole = match.group().rstrip(_EDGE)
        if said and whole.isalpha():
            continue
        piece = whole.lstrip(_EDGE)
        if _is_file(piece) and text[match.end() : match.end() + 1] != "(":
            before = text[max(match.start() - 2, 0) : match.start()]
            way = whole if whole[:2] == "~/" else piece if piece == whole and not _VARIABLE.search(before) else piece.lstrip("/")
            if len(way.rstrip("/").rpartition("/")[2]) <= _LONGEST_NAME:
                yield Kind.FILE, _shown(way)
        elif _UUID.fullmatch(piece):
            yield Kind.NAME, piece
        else:
            if piece[:1] in "nrt" and text[match.start() - 1 : match.start()] == "\\":  # a line break that is written in code
                piece = piece[1:]
            yield from ((Kind.NAME, word) for word in _WORD.findall(piece) if _is_identifier(word, said=said))


def _alone(url: str) -> str:
    """Return a URL up to what is no part of it: a bracket that closes what was opened before it, or another URL."""
    opened = 0
    for place, sign in enumerate(url):
        opened += (sign in "([") - (sign in ")]")
        if opened < 0:
            url = url[:place]
            break
    return _URL_STOP.split(url, maxsplit=1)[0]


def _pieces(text: str) -> Iterator[re.Match[str]]:
    """Yield what may be names; in a script without spaces between words, a file's name goes on where other words begin."""
    if text.isascii() or compiled(UNSPACED).search(text) is None:
        yield from (_ASCII_PIECE if text.isascii() else _PIECE).finditer(text)
        return
    for match in _PIECE.finditer(text):
        piece = match.group()
        if compiled(UNSPACED).search(piece) and (_BESIDE.search(piece) or not _is_file(piece.strip(_EDGE))):
            yield from _NARROW.finditer(text, match.start(), match.end())
        else:
            yield match


def _is_file(piece: str) -> bool:
    """Return whether it is a file's name, or a way to one; branches and packages have slashes too, and devices are no files."""
    last = piece.rstrip("/").rpartition("/")[2]
    if _has_extension(last):
        return True
    is_way = piece[:1] in ("/", "~", ".") and "/" in piece[1:-1] and not piece.startswith(("//", *_NO_FILES))
    return is_way and bool(last) and not last.rpartition(".")[0]


def _has_extension(name: str) -> bool:
    stem, _, extension = name.rpartition(".")
    return bool(stem and extension in EXTENSIONS)


def _is_way(text: str, *, named: bool) -> bool:
    """Return whether a whole text is one way to a file, and no command, list or sentence; *named* where its key tells so."""
    *words, last = _LISTED.split(text) if named else text.split(" ")
    if len(text) > 2 * _LONGEST_NAME or not text.isprintable() or any(word[:1] == "-" or _has_extension(word) for word in words):
        return False
    if named:
        return _is_file(text) if " " in text or not text.isascii() else _is_bare(text)
    first = words[0] if words and "/bin/" not in words[0] else ""
    is_start = _START.match(first) is not None
    if _has_extension(last):
        return is_start or (len(words) <= _MOST_WORDS and "/" in first and ":" not in first and "/" not in last)
    return is_start and "/" in first[1:] and first[0] != "."


def _is_bare(text: str) -> bool:
    last = text.rpartition("/")[2]
    is_file = "." in last or last[:1].isupper() or _is_file(text)  # and no folder
    return is_file and _BARE.fullmatch(text) is not None and not text.startswith(_NO_FILES)


def _spaced(match: re.Match[str]) -> str:
    """Return the way that a match is; empty where it is none."""
    way = match[2] or match[0].replace("\\ ", " ")
    return way if _is_way(way, named=not match[2]) else ""


def _shown(way: str) -> str:
    """Return a way to a file as the working set shows it: whole, so that a call can open it."""
    return normpath(way.replace("\\", "/"))


def _is_identifier(word: str, *, said: bool) -> bool:
    if not _SHORTEST_NAME <= len(word) <= _LONGEST_NAME:
        return False
    return ("-" in word and _CODED.fullmatch(word) is not None) or any(_is_named(part, said=said) for part in word.split("-"))


def _is_named(word: str, *, said: bool) -> bool:
    inner = word.strip("_")
    if "_" in inner or (not inner.isalpha() and (_HASH.fullmatch(word) or _CODED.fullmatch(word))):
        return True
    return not said and inner[1:] != inner[1:].lower() and not inner.isupper() and not inner[0].isdigit()


def _command(arguments: Any) -> str:  # noqa: ANN401 (JSON)
    """Return the command in a call's arguments, in one line; empty where there is none."""
    held = arguments if isinstance(arguments, dict) else {}
    inner = next((each for each in held.values() if isinstance(each, dict)), {})
    given = {**held, **inner}
    for key, value in given.items():
        words = value if isinstance(value, list) else [value]
        if key.lower() in _COMMAND_KEYS and words and all(isinstance(word, str) for word in words):
            command = " ".join(words)
            is_word = key.lower() not in _CODE_KEYS and not any(map(_PATH_KEY.search, given))  # of an editor, it is an action
            if is_word or _COMMANDING.search(command):
                return _short(one_line(command))
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
            if 2 * found.count(None) <= len(found):
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


def ending(result: str) -> str:
    """Return the line of a result that tells how it ended: the last that tells of a failure, else its last one."""
    lines = [line for line in result[-_MOST_SCANNED:].splitlines() if line.strip()]
    failed = next((line for line in reversed(lines) if _FAILED.search(line)), None)
    return _short(one_line(failed or (lines[-1] if lines else ""))) or "no output"


def _short(line: str, most: int = _LONGEST_LINE) -> str:
    return beginning(line, most)
