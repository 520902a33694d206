"""Carries out what a model writes: reads its reply, runs its code with the tools, and answers."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from memci.attp.document import Reply, parse, text_of
from memci.attp.result import USED_UP, Problem, Result, problem_of
from memci.attp.sandbox import Limits, Sandbox
from memci.attp.toolbox import Toolbox, runs_loop
from memci.errors import ArgumentError, AttpError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

KEPT_ANSWERS = 256  # calls with an id that a runtime remembers

_OTHER = Problem(
    kind="CallIdReusedError",
    message="another reply ran under the id of this call; nothing was run",
    hint="give each call an id of its own",
)


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
            result = Result(reply=reply, error=problem_of(error, tuple(self.toolbox.tools)))
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
