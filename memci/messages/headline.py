"""Headlines: the line at the end of an answer by which a model says, where it is asked to, what its turn was about."""

from collections.abc import Iterable

from memci.messages.message import Message
from memci.messages.parts import PartKind, parts

MARK = "[memci:title]"  # no answer has a line that begins with it, unless somebody asks for it
HEADLINE_CHARACTERS = 120  # of what it says; a longer one is no title

REQUEST = (
    f"When a turn is complete, end your answer with one line of its own: {MARK} and then a title of at most ten words, in the "
    "language of the conversation and in its words, that tells this turn from others, with the names and values that matter. "
    "Nothing follows that line. It is not shown to the user: say nothing there that you do not say above it."
)
"""What the system part tells the model."""

_AROUND = " \t\r*_`>#"  # blanks, and what models set lines off with
_SPOKEN = (PartKind.TEXT, PartKind.RESULT)


def parted(text: str) -> tuple[str, str]:
    """Return a text without the marked lines at its end, and what they say: empty where there is not just one. O(length).

    Models set such a line off: with stars, as a quotation or a heading.
    """
    if MARK not in text:
        return text, ""
    left, said = text.rstrip(), list[str]()
    while (line := left[left.rfind("\n") + 1 :].strip(_AROUND)).startswith(MARK):
        said.append(line.removeprefix(MARK).strip(_AROUND))
        left = left[: left.rfind("\n") + 1].rstrip()
    if not said:
        return text, ""
    is_title = len(said) == 1 and MARK not in left and len(said[0]) <= HEADLINE_CHARACTERS
    return left, said[0] if is_title else ""


class HeadlineFilter:
    """Passes a text on that comes in pieces, but for the marked lines at its end, as ``parted`` does with a whole one."""

    def __init__(self) -> None:
        self._begun = ""  # a letter in the place of all that was passed on, so that what follows is known to begin no line
        self._held = ""  # blanks, marked lines, and what may become one

    def add(self, piece: str) -> str:
        """Take a piece in, and return what can be passed on. O(the piece, and what is held)."""
        text = self._begun + self._held + piece
        begin = text.rfind("\n") + 1
        line = text[begin:].lstrip(_AROUND)
        if line.startswith(MARK) or MARK.startswith(line):
            end = len(text[:begin].rstrip())
            while text[text.rfind("\n", 0, end) + 1 : end].strip(_AROUND).startswith(MARK):
                end = len(text[: text.rfind("\n", 0, end) + 1].rstrip())
        else:
            end = len(text.rstrip())
        passed, self._held = text[len(self._begun) : end], text[end:]
        self._begun = self._begun or ("x" if passed else "")
        return passed

    def rest(self) -> str:
        """Return what is left of it where the text has ended."""
        return parted(self._begun + self._held)[0].removeprefix(self._begun)


def unheaded(message: Message, text: str) -> str:
    """Return a text of a message without a headline. O(its length)."""
    return parted(text)[0] if message.role == "assistant" else text


def spoken(message: Message) -> str:
    """Return the words of a message as a user reads them: texts and results, a line apart, without a headline. O(its size)."""
    return _parted(message)[0]


def find_headline(messages: Iterable[Message]) -> str:
    """Return the headline of a page, oldest message first: that of the last answer with words; empty for none. O(their size)."""
    answers = ((text, said) for text, said in map(_parted, _answers(messages)) if text or said)
    return next((said for _, said in answers), "")


def _answers(messages: Iterable[Message]) -> Iterable[Message]:
    return (message for message in reversed(list(messages)) if message.role == "assistant")


def _parted(message: Message) -> tuple[str, str]:
    text = "\n".join(part.text for part in parts(message.value()) if part.kind in _SPOKEN and part.text)
    return parted(text) if message.role == "assistant" else (text, "")
