"""What came of a model's reply, and the document in TOML that tells the model."""

from typing import Any

import attrs

from memci.attp.document import Reply
from memci.attp.host_error import whole_characters
from memci.attp.toolbox import MODULES
from memci.errors import AttpError, AttpSyntaxError, LimitExceededError, SandboxError, missing_extra

_MAX_INT_BITS = 13_000  # Python refuses to write integers of more than 4,300 digits

_HINTS = {
    "ImportError": f"no import is needed: {', '.join(MODULES)} are just there, and nothing else is",
    "AttributeError": "use the methods and attributes that have no underscore in front",
    "NotImplementedError": "write it with loops, comprehensions, plain functions, lists and dicts; pop(key) does what del would",
    "SyntaxError": "mend the code and send the whole call again",
    "TypeError": "tools take and give plain data: text, numbers, booleans, None, lists and dicts",
    "WorkerCrashedError": "send the call again, with less work in it",
    "LimitExceededError": "do it in smaller steps, one call each",
}

_UNSENDABLE = (
    ("Out of range float values", "nan and infinity have no form here: give None, or a text, where math.isfinite is False"),
    ("Exceeds the limit (4300 digits)", "so long a number has no form here: give its last digits, n % 10**9, or math.log10(n)"),
    ("Circular reference", "a list or dict holds itself: build another one, without the part that leads back"),
    ("the value nests deeper", "give a flatter value, such as a list of rows"),
)
"""What is wrong with a value that cannot leave the sandbox, as the libraries word it, and what to do."""


@attrs.frozen(kw_only=True)
class Problem:
    """Why a call gave nothing, for the model to read."""

    kind: str  # the error's name: one of memci's, of Python's, or of a tool's exceptions
    message: str
    line: int | None = None  # of the code, or of the reply where that could not be read, from 1, where it is known
    hint: str = ""  # what to do instead
    limit: str = ""  # name of the limit that was passed, such as ``time_s``


USED_UP = Problem(
    kind="LimitExceededError",
    message="the calls of this turn are used up, and this one was not carried out",
    hint="answer the user in plain text, with what you have",
)
"""Why a call is refused that comes after the last one of a turn."""

_LAST_CALL = '\n[limit]\nmessage = "that was the last call of this turn: answer the user in plain text now"\n'


@attrs.frozen(kw_only=True)
class Result:
    """What came of a reply."""

    reply: Reply | None = None  # where it could be read
    value: Any = None  # what the code assigned to ``__result__``, if it ran
    error: Problem | None = None  # why it gave nothing
    printed: str = ""  # what the code printed
    calls: int = 0  # how many tools it called
    last: bool = False  # whether the document says that no call may follow in this turn

    @property
    def answer(self) -> str | None:
        """What the model says to the user: its plain answer, or why no tool can do it. ``None`` if it waits for a result."""
        if self.error or self.reply is None:
            return None
        if self.reply.call is None:
            return self.reply.answer
        return self.reply.call.message if self.reply.call.status == "fail" else None

    def to_toml(self) -> str:
        """Return the document to send back to the model, see ``toml``; empty if it waits for none. O(its size)."""
        if self.answer is not None:
            return ""
        if self.error:
            problem = self.error
            facts = {"kind": problem.kind, "message": problem.message, "line": problem.line, "hint": problem.hint or None}
            found: dict[str, Any] = {"status": "error", "error": facts}
        else:
            found = {"status": "success", "result": self.value, "printed": self.printed or None}
        return toml({"tool_result": found}) + (_LAST_CALL if self.last else "")

    def message(self) -> dict[str, Any]:
        """Return the message to append, one of every wire format; ``AttpError`` if the reply waits for no result. O(its size)."""
        if self.answer is not None:
            text = "the reply is an answer to the user: there is no result to append"
            raise AttpError(text)
        return {"role": "user", "content": self.to_toml()}


def problem_of(error: AttpError, tools: tuple[str, ...]) -> Problem:
    """Return what a model is to read of an error, where the tools of these names are there."""
    match error:
        case AttpSyntaxError():
            message = f"{error.problem} (line {error.line}, column {error.column} of the reply)"
            return Problem(kind="AttpSyntaxError", message=message, line=error.line, hint=error.hint)
        case LimitExceededError():
            hint = _HINTS["LimitExceededError"]
            return Problem(kind="LimitExceededError", message=str(error), hint=hint, limit=error.limit)
        case SandboxError():
            hint = next((hint for problem, hint in _UNSENDABLE if problem in str(error)), _HINTS.get(error.kind, ""))
            if error.kind == "NameError" and tools:
                hint = f"the tools are {', '.join(tools)}"
            return Problem(kind=error.kind, message=str(error), line=error.line, hint=hint)
    return Problem(kind=type(error).__name__, message=str(error))


def toml(document: dict[str, Any]) -> str:
    r"""Return plain data as TOML in which every text stays inside of its string, and is read back as it was. O(its size).

    For three things TOML has no form. Half of a surrogate pair stands as its escape, ``\ud800`` as six characters; ``None`` is
    left out of tables and is the text ``None`` in lists; an integer of more than 4,000 digits is described.
    """
    try:
        import tomli_w  # noqa: PLC0415 (an extra, for those who speak ATTP)
    except ModuleNotFoundError as error:
        raise missing_extra(error, "attp") from error
    table = _writable(document)
    # In strings of several lines tomli_w writes CRLF as LF: a document that holds one has its strings in one line each.
    return tomli_w.dumps(table, multiline_strings=r"\r\n" not in repr(table))


def _writable(value: Any) -> Any:  # noqa: ANN401 (plain data)
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict):
        return {whole_characters(key): _writable(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_writable(inner) for inner in value]
    if isinstance(value, int) and value.bit_length() > _MAX_INT_BITS:
        return f"an integer of {value.bit_length()} bits"
    return "None" if value is None else value
