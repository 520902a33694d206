"""What happens while a turn is carried through, and what comes of it."""

from enum import StrEnum
from typing import TypeAlias

import attrs

from memci.engine.commands.window import Window
from memci.engine.core.monitor import Notice


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
    """A window is about to be sent.

    Attributes:
        window: What is sent.
    """

    window: Window


@attrs.frozen(kw_only=True)
class ToolAnswered:
    """A native tool call was carried out, or refused, and its answer is in the session.

    Attributes:
        name: The tool's name; empty where the call has none.
        arguments: As the model wrote them: JSON, if all is well.
        answer: The text of the tool's message.
    """

    name: str
    arguments: str
    answer: str


@attrs.frozen(kw_only=True)
class CodeAnswered:
    """A reply in ATTP that is no answer to the user was answered, and the answer is in the session.

    Attributes:
        reply: The reply's text.
        answer: The ``[tool_result]`` document.
    """

    reply: str
    answer: str


@attrs.frozen(kw_only=True)
class Faded:
    """Recalled pages left the window.

    Attributes:
        pages: Their indexes, in the order in which they were recalled.
    """

    pages: tuple[str, ...]


Step: TypeAlias = WindowSent | ToolAnswered | CodeAnswered | Faded | Notice
