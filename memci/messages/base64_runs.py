"""Pictures, sound and files that stand in JSON as base64: where they are, and what is said in their place.

A run of base64 has ``LEAST_CHARACTERS`` or more of its alphabet, capitals, small letters and digits among them. In texts it may
be wrapped in lines, as ``base64`` and mail write it, and what a ``data:`` URL holds may be shorter.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from memci.messages.tokens.images import size_of_base64

LEAST_CHARACTERS = 1_024
"""Shorter runs are left where they are, but in blocks that are known to hold them."""

BEGIN = "(?<![A-Za-z0-9+/=_-])"
"""Where a run may begin. A pattern."""

RUN = rf"[A-Za-z0-9+/=_-]{{{LEAST_CHARACTERS},}}+"
"""What such a run is, before it is known to have all kinds of character. A pattern."""

_MARKS = bytes(ord("x") if re.fullmatch("[A-Za-z0-9+/=_-]", chr(byte)) else ord(" ") for byte in range(256))
_RUN_OF_MARKS = b"x" * LEAST_CHARACTERS
_LEAST_LINE = 60
_BEGIN = r"(?:(?<![A-Za-z0-9+/=_\\-])|(?<=\\[nrt]))"  # the letter of an escape is no part of it
_LINE_END = r"(?:\r?\n|(?:\\r)?\\n)"
_LINE = rf"[A-Za-z0-9+/]{{{_LEAST_LINE},}}+"
_WRAPPED = rf"{_LINE}(?:{_LINE_END}{_LINE})++(?:{_LINE_END}[A-Za-z0-9+/]++(?![^=\r\n\"\\]))?={{0,2}}"
_IN_TEXT = re.compile(
    rf"data:([a-z]{{1,20}})/[^,\"\s]{{0,200}};base64,({_WRAPPED}|[A-Za-z0-9+/=_-]++)"
    rf"|(?:data:([a-z]{{1,20}})/[^,\"\s]{{0,200}},)?{_BEGIN}({_WRAPPED}|{RUN})"
)
_LINE_ENDS = re.compile(_LINE_END)
_URL = re.compile(r"data:([a-z]{1,20})/[^,\"\s]{0,200};base64,([A-Za-z0-9+/=_-]*)")
_KINDS = {"image": "image", "audio": "sound", "video": "video"}
_MIXED = tuple(re.compile(kind) for kind in ("[A-Z]", "[a-z]", "[0-9]"))
_TEXT_KEYS = frozenset({"text", "content", "output", "arguments", "input"})

_BEGINNINGS = {
    "JVBERi0": "document",  # %PDF-
    "UEsDB": "file",  # ZIP, and the documents of office programs
    "UklGR": "sound",  # RIFF, where it is no picture
    "SUQz": "sound",  # MP3
    "T2dnU": "sound",  # Ogg
    "ZkxhQ": "sound",  # FLAC
}
"""How files begin, in base64: the first characters that the first bytes decide alone."""


def described(text: str, address: str = "") -> str:
    """Return a text with a description in the place of each picture or file in it. O(its size).

    That is what a ``data:`` URL holds, and base64 that begins as such files do; any other may be meant to be read.

    Args:
        text: The text.
        address: Where it is kept whole, such as ``usr-12/3``; empty for nowhere to name.
    """
    return _described(text, address, known=True)


def described_value(value: Any, address: str, *, known: bool = False) -> Any:  # noqa: ANN401 (JSON data)
    """Return a JSON value with a description in the place of all base64 in it; texts of messages are as ``described`` gives them.

    Args:
        value: The value.
        address: Where it is kept whole.
        known: It is a text of a message.
    """
    if isinstance(value, str):
        return _described(value, address, known=known)
    if isinstance(value, list):
        return [described_value(item, address, known=known) for item in value]
    if isinstance(value, dict):
        held = _held(value)
        return {
            key: description("", item, address) if key == held else described_value(item, address, known=key in _TEXT_KEYS)
            for key, item in value.items()
        }
    return value


def _held(block: Mapping[str, Any]) -> str:
    """Return the key under which a block of a message holds bare base64, however short; empty for any other mapping."""
    match block:
        case (
            {"type": "base64", "media_type": _, "data": str()}
            | {"data": str(), "format": "wav" | "mp3"}
            | {"data": str(), "transcript": _, "expires_at": _}
        ):
            return "data"
        case {"file_data": str(data)} if not data.startswith("data:"):
            return "file_data"
        case _:
            return ""


def _described(text: str, address: str, *, known: bool) -> str:
    if not known and (url := _URL.fullmatch(text)):
        return description(_KINDS.get(url[1], "file"), url[2], address)
    if ";base64," not in text and not _has_run(text.encode("utf-8", "surrogatepass"), b"x" * _LEAST_LINE):
        return text

    def describe(found: re.Match[str]) -> str:
        kind, lines = found[1] or found[3], found[2] or found[4]
        run = _LINE_ENDS.sub("", lines)
        if kind is not None:
            return description(_KINDS.get(kind, "file"), run, address)
        if len(run) < LEAST_CHARACTERS:
            return found[0]
        return (
            description("", run, address) if (_kind(run) if known or not has_run(lines.encode()) else is_data(run)) else found[0]
        )

    return _IN_TEXT.sub(describe, text)


def has_run(data: bytes) -> bool:
    """Return whether there is any run, a long word too. O(its size), much faster than to look where."""
    return _has_run(data, _RUN_OF_MARKS)


def _has_run(data: bytes, run: bytes) -> bool:
    return len(data) >= LEAST_CHARACTERS and run in data.translate(_MARKS)


def is_data(run: str) -> bool:
    """Return whether a run looks like base64 rather than a very long word."""
    return all(kind.search(run) for kind in _MIXED)


def _kind(base64: str) -> str:
    """Return what base64 is by its first bytes; empty for anything."""
    if size_of_base64(base64) is not None:
        return "image"
    return next((kind for beginning, kind in _BEGINNINGS.items() if base64.startswith(beginning)), "")


def description(kind: str, base64: str, address: str) -> str:
    """Return what is said in the place of a picture or file, such as ``[image, 700×500, 1.2 MB, kept at usr-12/3]``.

    Args:
        kind: What it is; empty for what its first bytes tell.
        base64: Its bytes; empty where they are not known.
        address: Where it is kept; empty for nowhere to name.
    """
    size = size_of_base64(base64)
    said = [kind or _kind(base64) or "data"]
    if size is not None:
        said.append("{}×{}".format(*size))
    if base64:
        said.append(_bytes(len(base64.rstrip("=")) * 3 // 4))
    if address:
        said.append(f"kept at {address}")
    return f"[{', '.join(said)}]"


def data_of(value: object) -> str:
    """Return the base64 that a block of a message holds, short ones too: its longest text, after the comma of a ``data:`` URL."""
    texts: list[str] = []
    _collect(value, texts.append)
    text = max(texts, key=len, default="")
    if text.startswith("data:"):
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


def _collect(value: object, take: Callable[[str], object]) -> None:
    if isinstance(value, str):
        take(value)
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _collect(item, take)


def _bytes(size: int) -> str:
    if size >= 1_000_000:  # noqa: PLR2004 (a megabyte)
        return f"{size / 1_000_000:.1f} MB"
    return f"{round(size / 1_000)} kB" if size >= 1_000 else f"{size} bytes"  # noqa: PLR2004 (a kilobyte)
