r"""Documents as TOML: what a tool answered, and calls as a model should have written them.

A value, whatever it holds, stays inside of its string, and is read back as it was, but for three things that TOML cannot say:
half of a surrogate pair stands as its escape, ``\ud800`` as six characters; ``None`` is left out of tables and is the text
``None`` in lists; an integer of more than 4,000 digits is described.
"""

import re
from typing import Any

from memci.attp.document import CodeCall
from memci.attp.plain import plain

_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_INT_BITS = 13_000  # Python refuses to write integers of more than 4,300 digits


def call_toml(call: CodeCall, *, thought: str = "") -> str:
    """Return the document that ``parse`` reads as this call and thought."""
    texts = {"status": call.status, "target": call.target, "code": call.code, "message": call.message}
    table = {name: value for name, value in texts.items() if value}
    return _dumps(({"thought": thought} if thought else {}) | {"tool_call": table})


def result_toml(value: object, *, printed: str = "") -> str:
    """Return the document that tells the model what its code gave; without ``result`` where that is ``None``.

    Args:
        value: What the code assigned to ``__result__``.
        printed: What it printed; left out where that is nothing.

    Raises:
        TypeError, ValueError: The value is not plain data and cannot become it.
    """
    return _dumps({"tool_result": {"status": "success", "result": plain(value), "printed": printed or None}})


def error_toml(*, kind: str, message: str, line: int | None = None, hint: str = "") -> str:
    """Return the document that tells the model what went wrong.

    Args:
        kind: The error's name.
        message: What went wrong.
        line: The line of the code, from 1, where one is to blame.
        hint: What to do instead.
    """
    error = {"kind": kind, "message": message, "line": line, "hint": hint or None}
    return _dumps({"tool_result": {"status": "error", "error": error}})


def _dumps(document: dict[str, Any]) -> str:
    import tomli_w  # noqa: PLC0415 (needed by those who write documents alone)

    table = _writable(document)
    # In strings of several lines tomli_w writes CRLF as LF: a document that holds one has its strings in one line each.
    return tomli_w.dumps(table, multiline_strings=not _holds_crlf(table))


def _writable(value: Any) -> Any:  # noqa: ANN401 (plain data)
    if isinstance(value, str):
        return _SURROGATE.sub(_escape, value)
    if isinstance(value, dict):
        return {_SURROGATE.sub(_escape, key): _writable(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_writable(inner) for inner in value]
    if isinstance(value, int) and value.bit_length() > _MAX_INT_BITS:
        return f"an integer of {value.bit_length()} bits"
    return "None" if value is None else value


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _holds_crlf(value: Any) -> bool:  # noqa: ANN401 (plain data)
    match value:
        case str():
            return "\r\n" in value
        case dict():
            return any(map(_holds_crlf, value.values()))
        case list():
            return any(map(_holds_crlf, value))
    return False
