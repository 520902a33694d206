"""What the loop needs of a model, what happens while a turn is carried through, and what comes of it."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

import attrs

from memci.engine.commands.window import Window
from memci.engine.core.monitor import Notice


@attrs.frozen(kw_only=True)
class Reply:
    """The assistant message with which a model answered a call, as it came.

    It ended for the *finish_reason*, in the provider's words: ``stop``, ``tool_calls``, ``length`` or ``content_filter``. The
    *prompt_tokens* are what the provider counted for the window.
    """

    message: Mapping[str, Any]
    finish_reason: str = "stop"
    prompt_tokens: int | None = None


class Model(Protocol):
    """A model: ``memci.chat.Endpoint`` is one, and so is any object with this method."""

    def complete(self, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]], *, may_call: bool) -> Reply:
        """Return the model's reply to the messages of a window, in OpenAI's chat format; ``ModelError`` where there is none.

        The callee may change the messages. *tools* are the schemas of those that are offered; where the model may not call
        them now, they stay offered, so that the prompt begins alike.
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
    """What came of a turn: the text that the model says to the user, which may be empty.

    *ending* is ``answered``; ``cut``: the provider's limit for replies ended it, and the text is its beginning; ``refused``: the
    model or a filter refused, and the text is what there is of an answer, else the reason; ``empty``: the reply holds no text;
    ``limit``: the model called tools to the end of its rounds and beyond. The turn took so many *calls* of the model, since it
    was begun or resumed.
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
