"""What a tool's exception may tell a model: what happened, and nothing of the machine it happened on."""

import builtins
import json
import re
from typing import Any

MAX_MESSAGE_CHARS = 500  # of an exception's message, for a model to read

_KNOWN = frozenset({
    "ArithmeticError", "AssertionError", "AttributeError", "FileExistsError", "FileNotFoundError", "IndexError",
    "IsADirectoryError", "KeyError", "LookupError", "NotADirectoryError", "NotImplementedError", "OSError", "OverflowError",
    "PermissionError", "RuntimeError", "StopIteration", "TimeoutError", "TypeError", "ValueError", "ZeroDivisionError",
})  # fmt: skip

SURROGATE = re.compile("[\ud800-\udfff]")  # half of a pair of UTF-16, for which UTF-8 has no form
_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\):[\s\S]*")
_ADDRESS = re.compile(r"(?:\s+at)?\s*\b0x[0-9a-fA-F]{6,}\b")
_QUOTED_PATH = re.compile(r"(['\"])(?:~?/|[A-Za-z]:[\\/]|\\\\|file:)[^'\"\n]*\1")
_PATH = re.compile(r"(?<![\w./:~-])(?:~?(?:/[\w.+@%~-]+)+/?|[A-Za-z]:\\[\w.+@%~\\-]*|file:/[^\s'\"]*)")
_HOST = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?![\w.]\d)")


def sandbox_name(error: Exception) -> str:
    """Return the name of the nearest exception that the sandbox knows, so that the code can catch it as what it is."""
    names = (kind.__name__ for kind in type(error).__mro__ if getattr(builtins, kind.__name__, None) is kind)
    return next((name for name in names if name in _KNOWN), "RuntimeError")


def safe_message(error: Exception) -> str:
    """Return the message without paths, memory and network addresses, and tracebacks; at most 500 characters."""
    match error:
        case OSError(strerror=str(text)) if text:
            pass
        case KeyError(args=(key,)):  # its text is the repr of its key, which reads as a quoted word without more
            text = str(key)
        case _:
            text = str(error)
    text = _TRACEBACK.sub("", text[: 20 * MAX_MESSAGE_CHARS])
    for pattern, instead in ((_QUOTED_PATH, r"\1…\1"), (_PATH, "…"), (_ADDRESS, ""), (_HOST, "…")):
        text = pattern.sub(instead, text)
    text = whole_characters(text.strip())
    return text if len(text) <= MAX_MESSAGE_CHARS else text[: MAX_MESSAGE_CHARS - 1] + "…"


def whole_characters(text: str) -> str:
    """Return the text with each half of a surrogate pair as its escape: workers take UTF-8, which has none. O(its length)."""
    return SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def without_halves(value: Any) -> Any:  # noqa: ANN401 (JSON data)
    """Return a JSON value with U+FFFD for each half of a surrogate pair. O(its size)."""
    return json.loads(SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))
