r"""Pictures, sound and files that stand in JSON as base64: where they are, and what is said in their place.

In texts that is what a ``data:`` URL holds, and a run that begins as a file does: ``LEAST_CHARACTERS`` or more, in one line or in
lines of 60 and more with white space or the marks of a quotation between them. JSON within a text and URLs may write ``\/``,
``\n``, ``\u002b`` or ``%2B`` in it. In other values it is any run of capitals, small letters and digits in one line.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from memci.messages.tokens.media import size_of_base64

LEAST_CHARACTERS = 1_024  # shorter runs are left where they are, but in blocks that are known to hold them
BEGIN = "(?<![A-Za-z0-9+/=_-])"  # where a run that is stored apart may begin: a pattern
RUN = rf"[A-Za-z0-9+/=_-]{{{LEAST_CHARACTERS},}}+"  # such a run, before it is known to have all kinds of character

_KINDS = {"image": "image", "audio": "sound", "video": "video"}
_BEGINNINGS = {
    "image": "iVBORw0KGg|R0lGODlh|R0lGODdh|/9j/",  # PNG, GIF, JPEG
    "document": "JVBERi0",  # %PDF-
    "file": "UEsDB|H4sIA",  # ZIP, and the documents of office programs; gzip
    "sound": "UklGR|SUQz|T2dnU|ZkxhQ",  # RIFF, where it is no picture; MP3; Ogg; FLAC
    "video": "GkXfo",  # Matroska, WebM
}
"""Patterns of how files begin in base64: the first characters that the first bytes decide alone."""

_BEGUN = tuple(begun.strip("/") for begun in "|".join(_BEGINNINGS.values()).split("|"))  # a file has one, however it is written

_LINE_CHARACTERS = 60
_SLASH = r"(?:\\*/|_|%2[Ff]|\\+u002[Ff])"
_FILE = f"(?={'|'.join(_BEGINNINGS.values()).replace('/', _SLASH)})"
_LETTERS = r"(?:[A-Za-z0-9+/_-]++|\\++(?:/|u002[BFbf])|%2[BFbf])++"
_PADDING = r"(?:=|%3[Dd]|\\+u003[Dd]){0,2}"
_BETWEEN = r"(?:[\s>|#*]|\\++[nrt]){1,80}+"
_LINE = rf"(?=[A-Za-z0-9+/_\\%-]{{{_LINE_CHARACTERS}}}){_LETTERS}"
_LAST = rf"{_BETWEEN}(?:[A-Za-z0-9+/_-]{{16}}{_LETTERS}|{_LETTERS}(?=[=\r\n\"\\%<)]|$))"
_LINES = rf"{_LINE}(?:{_BETWEEN}(?!{_FILE}){_LINE})*+(?:(?!{_BETWEEN}{_FILE}){_LAST})?{_PADDING}"
_URL = (
    r"(?i:data(?::|%3A)([a-z]{0,20})[^:,\"\s]{0,200}(?:;|%3B)base64(?:,|%2C))"
    rf"((?:{_BETWEEN})?{_LINES}|{_LETTERS}{_PADDING})"
)
# The letters of an escape before a run are no part of it.
_BEGIN_FILE = r"(?:(?<![A-Za-z0-9+/_\\%-])|(?<=\\[nrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
_WORD = rf"(?<![A-Za-z0-9+/_\\%-])(?=[A-Za-z0-9+/_\\%-]{{{LEAST_CHARACTERS}}}){_LETTERS}{_PADDING}"
_IN_TEXT = re.compile(f"{_URL}|{_BEGIN_FILE}{_FILE}({_LINES})|({_WORD})")
_ESCAPED = re.compile(r"(?:\\+u00|%)(2b|2f|3d)", re.IGNORECASE)
_NO_LETTER = re.compile(r"\\+[nrt]|[^A-Za-z0-9+/=_-]")
_USUAL = str.maketrans("-_", "+/")

_MARKS = bytes(ord("x") if re.fullmatch(r"[A-Za-z0-9+/=_\\%-]", chr(byte)) else ord(" ") for byte in range(256))
_MIXED = tuple(re.compile(kind) for kind in ("[A-Z]", "[a-z]", "[0-9]"))
_TEXT_KEYS = frozenset({"text", "content", "output", "arguments", "input"})


def described(text: str, address: str = "", *, known: bool = True) -> str:
    """Return a text with a description in the place of each picture or file in it. O(its size).

    In a *known* text, one of a message, any other base64 stays, to be read. *address* is where it is kept whole, if anywhere.
    """
    if not ("64" in text and "base64" in text.lower()) and not _has_file(text):
        return text

    def describe(found: re.Match[str]) -> str:
        media, of_url, file, word = found.groups()
        if media is not None:
            return description(_KINDS.get(media.lower(), "file"), _plain(of_url), address)
        run = _plain(file or word)
        data = len(run) >= LEAST_CHARACTERS and (file or (not known and is_data(run)))
        return description("", run, address) if data else found[0]

    return _IN_TEXT.sub(describe, text)


def described_value(value: Any, address: str, *, known: bool = False) -> Any:  # noqa: ANN401 (JSON data)
    """Return a JSON value with a description in the place of all base64; *known* texts are those of messages: ``described``."""
    if isinstance(value, str):
        return described(value, address, known=known)
    if isinstance(value, list):
        return [described_value(item, address, known=known) for item in value]
    if not isinstance(value, dict):
        return value
    held = _held(value)
    return {
        key: description("", item, address) if key == held else described_value(item, address, known=key in _TEXT_KEYS)
        for key, item in value.items()
    }


def _held(block: Mapping[str, Any]) -> str:
    """Return the key under which a block of a message holds bare base64, however short; empty for any other mapping."""
    match block:
        case (
            {"type": "base64", "media_type": _, "data": str()}
            | {"data": str(), "format": "wav" | "mp3"}
            | {"data": str(), "transcript": _, "expires_at": _}
            | {"data": str(), "mimeType": _}
        ):
            return "data"
        case {"type": "image_generation_call", "result": str()}:
            return "result"
        case {"file_data": str(data)} if data[:5].lower() != "data:":
            return "file_data"
        case _:
            return ""


def _plain(run: str) -> str:
    """Return base64 in its usual alphabet, without what stands between its lines and for its signs."""
    return _NO_LETTER.sub("", _ESCAPED.sub(lambda found: chr(int(found[1], 16)), run)).translate(_USUAL)


def has_run(data: bytes, characters: int = LEAST_CHARACTERS) -> bool:
    """Return whether there may be any run, a long word too. O(its size), much faster than to look where."""
    return len(data) >= LEAST_CHARACTERS and b"x" * characters in data.translate(_MARKS)


def _has_file(text: str) -> bool:
    """Return whether there may be a file, or a run as long as one is. O(its size), much faster than to look where."""
    data = text.encode("utf-8", "surrogatepass")
    return has_run(data, _LINE_CHARACTERS) and (any(begun in text for begun in _BEGUN) or has_run(data))


def is_data(run: str) -> bool:
    """Return whether a run looks like base64 rather than a very long word."""
    return all(kind.search(run) for kind in _MIXED)


def description(kind: str, base64: str, address: str) -> str:
    """Return a text such as ``[image, 700×500, 1.2 MB, kept at usr-12/3]``; the first bytes tell a kind that is empty."""
    size = size_of_base64(base64)
    begun = (begun for begun, pattern in _BEGINNINGS.items() if re.match(pattern, base64))
    said = [kind or ("image" if size else next(begun, "data"))]
    if size is not None:
        said.append("{}×{}".format(*size))
    if base64:
        said.append(_bytes(len(base64.rstrip("=")) * 3 // 4))
    if address:
        said.append(f"kept at {address}")
    return f"[{', '.join(said)}]"


def data_of(value: object) -> str:
    """Return the base64 that a block of a message holds, short ones too: its longest text, after the comma of a ``data:`` URL."""
    text = max(_texts(value), key=len, default="")
    if text[:5].lower() == "data:":
        text = text.partition(",")[2]
    return text if is_data(text) and re.fullmatch(r"[A-Za-z0-9+/_-]{64,}={0,2}", text) else ""


def data_url(picture: Mapping[str, Any]) -> str:
    """Return the ``data:`` URL of a picture of any format that holds its bytes; empty for one that only names them."""
    match picture:
        case {"source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return f"data:{kind};base64,{data}"
        case {"image_url": {"url": str(url)}} | {"image_url": str(url)} if url.startswith("data:"):
            return url
        case _:
            return ""


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(item)


def _bytes(size: int) -> str:
    if size >= 1_000_000:  # noqa: PLR2004 (a megabyte)
        return f"{size / 1_000_000:.1f} MB"
    return f"{round(size / 1_000)} kB" if size >= 1_000 else f"{size} bytes"  # noqa: PLR2004 (a kilobyte)
