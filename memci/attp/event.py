"""What observers of a runtime hear of, in the order in which it happens.

A reply is parsed; if it calls tools, its code starts, calls them, and the call is finished.
A retry is answered from what is kept.
"""

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from memci.attp.document import Reply
from memci.attp.result import Result


@attrs.frozen(kw_only=True)
class ReplyParsed:
    """A reply was read.

    Attributes:
        call_id: The id that the caller gave; ``None`` without one.
        reply: The reply.
    """

    call_id: str | None
    reply: Reply


@attrs.frozen(kw_only=True)
class CodeStarted:
    """The code of a reply is about to run.

    Attributes:
        call_id: The id that the caller gave; ``None`` without one.
        target: What the call is for, in the model's words.
        code: What runs.
    """

    call_id: str | None
    target: str
    code: str


@attrs.frozen(kw_only=True)
class ToolCalled:
    """A tool was called and has returned or raised.

    Attributes:
        call_id: The id that the caller gave; ``None`` without one.
        tool: Its name.
        positional: Arguments by position, as the code gave them.
        named: Arguments by name.
        error: What it raised, whole; the model reads less of it. ``None`` if it returned.
        elapsed_s: Seconds that it took.
    """

    call_id: str | None
    tool: str
    positional: tuple[object, ...]
    named: Mapping[str, object]
    error: Exception | None
    elapsed_s: float


@attrs.frozen(kw_only=True)
class CallFinished:
    """A reply was carried out, refused, or had nothing to run.

    Attributes:
        call_id: The id that the caller gave; ``None`` without one.
        result: What came of it.
        elapsed_s: Seconds from its text to its result.
    """

    call_id: str | None
    result: Result
    elapsed_s: float


@attrs.frozen(kw_only=True)
class AnswerRepeated:
    """A retry was given what its call gave the first time; nothing ran.

    Attributes:
        call_id: The id of both.
        result: What came of the call.
    """

    call_id: str
    result: Result


Event: TypeAlias = ReplyParsed | CodeStarted | ToolCalled | CallFinished | AnswerRepeated
