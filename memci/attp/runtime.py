"""Carries out what a model writes: reads its reply, runs its code with the tools, and answers in TOML."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from memci.attp.document import Reply, parse, text_of
from memci.attp.host_error import whole_characters
from memci.attp.sandbox import Limits, Sandbox
from memci.attp.toolbox import MODULES, Toolbox, runs_loop
from memci.errors import ArgumentError, AttpError, AttpSyntaxError, LimitExceededError, SandboxError, missing_extra

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

KEPT_ANSWERS = 256  # calls with an id that a runtime remembers
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


_OTHER = Problem(
    kind="CallIdReusedError",
    message="another reply ran under the id of this call; nothing was run",
    hint="give each call an id of its own",
)

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


@attrs.frozen(kw_only=True)
class ReplyParsed:
    """A reply was read; its *call_id*, here and below, is the one that the caller gave, ``None`` without one."""

    call_id: str | None
    reply: Reply


@attrs.frozen(kw_only=True)
class CodeStarted:
    """The code of a reply is about to run; the *target* is what the call is for, in the model's words."""

    call_id: str | None
    target: str
    code: str


@attrs.frozen(kw_only=True)
class ToolCalled:
    """A tool was called, with these arguments by position and by name, and has returned or raised."""

    call_id: str | None
    tool: str
    positional: tuple[object, ...]
    named: Mapping[str, object]
    error: Exception | None  # what it raised, whole; the model reads less of it
    elapsed_s: float


@attrs.frozen(kw_only=True)
class CallFinished:
    """A reply was carried out, refused, or had nothing to run; *elapsed_s* are the seconds from its text to its result."""

    call_id: str | None
    result: Result
    elapsed_s: float


@attrs.frozen(kw_only=True)
class AnswerRepeated:
    """A retry was given what its call gave the first time; nothing ran."""

    call_id: str
    result: Result


Event: TypeAlias = ReplyParsed | CodeStarted | ToolCalled | CallFinished | AnswerRepeated
"""What observers of a runtime hear of, in this order; the last one for a retry alone."""


@attrs.define(eq=False)
class _Answer:
    """A reply with an id, and what it gave, kept for its retries."""

    text: str
    running: threading.Lock = attrs.field(factory=threading.Lock)  # a retry that comes while the call runs waits for it
    result: Result | None = None


class Runtime(AbstractContextManager["Runtime"]):
    """Runs the tool calls of models against one toolbox. Safe to use from many threads; workers start with the first call."""

    def __init__(self, toolbox: Toolbox, limits: Limits | None = None) -> None:
        self.toolbox = toolbox
        self.sandbox = Sandbox(limits)
        self._answers: dict[str, _Answer] = {}
        self._lock = threading.Lock()  # protects the dict, not the runs
        self._observers: list[Callable[[Event], None]] = []

    def run(self, text: str | None, call_id: str | None = None) -> Result:
        """Carry out a model's whole reply. Whatever the model did wrong is in the result; nothing is raised for it.

        ``None``, as where a message has no content, is an empty answer. A call with an id runs once: the same text under the same
        id gives the stored result, as long as it is one of the last 256; another text under it is refused. ``ArgumentError`` if
        reply or id are no text, RuntimeError if a tool is async and this thread runs an event loop: await ``arun`` there.
        """
        if any(tool.is_async for tool in self.toolbox.tools.values()) and runs_loop():
            message = "a tool is async, and this thread runs an event loop: await arun instead of run"
            raise RuntimeError(message)
        return self._once(text_of(text), call_id, None)

    async def arun(self, text: str | None, call_id: str | None = None) -> Result:
        """Like ``run``, in a thread: async tools run in the loop of the caller, all others in that thread.

        Where it is cancelled, the thread finishes the call within its limits, and a retry with its id gets what it gave.
        """
        import asyncio  # noqa: PLC0415 (46 ms, for those who have a loop)

        return await asyncio.to_thread(self._once, text_of(text), call_id, asyncio.get_running_loop())

    def refuse(self, text: str | None) -> Result:
        """Return what comes of a reply when no call may be carried out any more: its answer to the user, or an error."""
        reply = None
        with suppress(AttpError):
            reply = parse(text_of(text))
        result = Result(reply=reply)
        return Result(reply=reply, error=USED_UP) if result.answer is None else result

    def observe(self, callback: Callable[[Event], None]) -> None:
        """Call this for each event, in the thread in which it happens. If it raises, that is logged and the call goes on."""
        self._observers.append(callback)

    def close(self) -> None:
        """End the workers; a later call starts others."""
        self.sandbox.close()

    def __exit__(self, *raised: object) -> None:
        """End the workers."""
        self.close()

    def _once(self, text: str, call_id: str | None, loop: "AbstractEventLoop | None") -> Result:
        if call_id is None:
            return self._run(text, None, loop)
        if not isinstance(call_id, str):
            raise ArgumentError(argument="call_id", value=call_id, wanted="text, or None for a call without an id")
        with self._lock:
            answer = self._answers.setdefault(call_id, _Answer(text))
            done = [known for known, kept in self._answers.items() if not kept.running.locked() and kept is not answer]
            for known in done[: max(0, len(self._answers) - KEPT_ANSWERS)]:
                del self._answers[known]
        if answer.text != text:
            return Result(error=_OTHER)
        with answer.running:
            if answer.result is not None:
                self._tell(AnswerRepeated(call_id=call_id, result=answer.result))
            else:
                answer.result = self._run(text, call_id, loop)
            return answer.result

    def _run(self, text: str, call_id: str | None, loop: "AbstractEventLoop | None") -> Result:
        start = time.monotonic()
        reply = None
        try:
            reply = parse(text)
            self._tell(ReplyParsed(call_id=call_id, reply=reply))
            if reply.call is None or reply.call.status == "fail":
                result = Result(reply=reply)
            else:
                code = reply.call.program
                self._tell(CodeStarted(call_id=call_id, target=reply.call.target, code=code))
                tools = {name: partial(self._call, name, call_id, loop) for name in self.toolbox.tools}
                outcome = self.sandbox.run(code, tools)
                result = Result(reply=reply, value=outcome.value, printed=outcome.printed, calls=outcome.calls)
        except AttpError as error:
            result = Result(reply=reply, error=_problem(error, tuple(self.toolbox.tools)))
        self._tell(CallFinished(call_id=call_id, result=result, elapsed_s=time.monotonic() - start))
        return result

    def _call(
        self, name: str, call_id: str | None, loop: "AbstractEventLoop | None", /, *positional: object, **named: object
    ) -> Any:  # noqa: ANN401 (JSON data)
        """Run a tool; an async one in the loop of the caller or one of its own, until the time of tools is over."""
        start = time.monotonic()
        failed: Exception | None = None
        try:
            if not self.toolbox.get(name).is_async:
                return self.toolbox.call(name, named, positional=positional)
            import asyncio  # noqa: PLC0415 (46 ms, for async tools only)

            work = asyncio.wait_for(self.toolbox.acall(name, named, positional=positional), self.sandbox.limits.tools_s)
            return asyncio.run(work) if loop is None else asyncio.run_coroutine_threadsafe(work, loop).result()
        except Exception as error:
            failed = error
            raise
        finally:
            called = partial(ToolCalled, call_id=call_id, tool=name, positional=positional, named=named, error=failed)
            self._tell(called(elapsed_s=time.monotonic() - start))

    def _tell(self, event: Event) -> None:
        for observer in self._observers:
            try:
                observer(event)
            except Exception:  # what is observed has happened: an observer cannot undo it, and must not hide it
                import logging  # noqa: PLC0415 (slow to load, and seldom needed)

                logging.getLogger("memci").exception("an observer failed on %s", type(event).__name__)


def _problem(error: AttpError, tools: tuple[str, ...]) -> Problem:
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
