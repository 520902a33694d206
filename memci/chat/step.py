"""What the loop needs of a model, what happens while a turn is carried through, and what comes of it."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

import attrs

from memci.engine.commands.window import Window
from memci.engine.core.monitor import Notice


@attrs.frozen(kw_only=True)
class Reply:
    """What a model said in one call.

    Attributes:
        message: The assistant message, as it came.
        finish_reason: Why it ended, in the provider's words: ``stop``, ``tool_calls``, ``length`` or ``content_filter``.
        prompt_tokens: What the provider counted for the window; ``None`` where it does not tell.
    """

    message: Mapping[str, Any]
    finish_reason: str = "stop"
    prompt_tokens: int | None = None


class Model(Protocol):
    """A model: ``memci.chat.Endpoint`` is one, and so is any object with this method."""

    def complete(self, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]], *, may_call: bool) -> Reply:
        """Return the model's reply to a window; ``ModelError`` where there is none.

        Args:
            messages: The window's messages, in OpenAI's chat format; the callee may change them.
            tools: Schemas of the tools that it is offered; empty for none.
            may_call: Whether it may call them now; the tools stay offered where it may not, so that the prompt begins alike.
        """
        ...


class Ending(StrEnum):
    """How a turn ended."""

    ANSWERED = "answered"
    CUT = "cut"
    REFUSED = "refused"
    EMPTY = "empty"
    LIMIT = "limit"


@attrs.frozen(kw_only=True)
class Answer:
    """What came of a turn.

    Attributes:
        text: What the model says to the user; may be empty.
        ending: ``answered``; ``cut``: the provider's limit for replies ended it, and the text is its beginning; ``refused``: the
            model or a filter refused, and the text is what there is of an answer, else the reason; ``empty``: the reply
            holds no text; ``limit``: the model called tools to the end of its rounds and beyond.
        calls: How many calls of the model the turn took, since it was begun or resumed.
    """

    text: str
    ending: Ending
    calls: int


@attrs.frozen(kw_only=True)
class WindowSent:
    """A window is about to be sent."""

    window: Window


@attrs.frozen(kw_only=True)
class ToolAnswered:
    """A native tool call was carried out, or refused; the text of the tool's message, the answer, is in the session.

    The name is empty where the call has none; the arguments are as the model wrote them, JSON if all is well.
    """

    name: str
    arguments: str
    answer: str


@attrs.frozen(kw_only=True)
class CodeAnswered:
    """A reply in ATTP that is no answer to the user was answered; the answer, a ``[tool_result]``, is in the session."""

    reply: str
    answer: str


@attrs.frozen(kw_only=True)
class Faded:
    """Recalled pages left the window: their indexes, in the order in which they were recalled."""

    pages: tuple[str, ...]


Step: TypeAlias = WindowSent | ToolAnswered | CodeAnswered | Faded | Notice
