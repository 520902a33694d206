"""A tiny conversation, and engines that cheat."""

from collections.abc import Sequence
from typing import Any

from memci.messages.tokens.counter import get_counter
from memci.quality.baselines import WholeHistory
from memci.quality.conversation import Conversation, Question
from memci.quality.engines import FoundPage, HeldPage
from memci.quality.scoring.contents import HEADING


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


COUNTER = get_counter("o200k_base")

SYSTEM = {"role": "system", "content": "You are terse."}
CALL = {"id": "c1", "type": "function", "function": {"name": "weigh", "arguments": "{}"}}

MESSAGES: tuple[dict[str, Any], ...] = (
    SYSTEM,
    user("My cat Tango weighs nine pounds."),
    assistant("Noted: Tango, nine pounds."),
    user("Weigh the dog."),
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "forty pounds"},
    assistant("The dog has forty pounds."),
    user("Thanks."),
    assistant("Welcome."),
)


def question(text: str, answer: str, *evidence: int, category: str = "facts") -> Question:
    return Question(question=text, answer=answer, category=category, evidence=evidence)


def conversation(
    *questions: Question, messages: Sequence[dict[str, Any]] = MESSAGES, lang: str = "en", name: str = "pets"
) -> Conversation:
    return Conversation(id=name, lang=lang, messages=tuple(messages), times=(None,) * len(messages), questions=questions)


class Noting(WholeHistory):
    """Shows the first turn by an entry and all others word for word, and finds what it is told to find."""

    shown = "[turn-1] a cat of nine pounds"
    hits: tuple[FoundPage, ...] = ()

    def __init__(self, budget: int = 1_000) -> None:
        super().__init__(budget, COUNTER)

    def window(self) -> list[dict[str, Any]]:
        rest = [number for page in self._turns.pages[1:] for number in page]
        return [SYSTEM, user(f"{HEADING}\n{self.shown}"), *(self._messages[number] for number in rest)]

    def pages(self) -> list[HeldPage]:
        pages = super().pages()
        pages[1] = HeldPage(page="turn-1", messages=pages[1].messages, verbatim=False)
        return pages

    def search(self, query: str, limit: int) -> Sequence[FoundPage]:
        del query
        return self.hits[:limit]


class Dropping(Noting):
    """Has no first turn any more."""

    def pages(self) -> list[HeldPage]:
        return [page for page in super().pages() if page.page != "turn-1"]


class Forgetful(WholeHistory):
    """Keeps nothing, and says that it does."""

    def window(self) -> list[dict[str, Any]]:
        return [SYSTEM]


class Parting(WholeHistory):
    """Leaves results out of its windows."""

    def window(self) -> list[dict[str, Any]]:
        return [value for value in super().window() if value["role"] != "tool"]


class Altering(WholeHistory):
    """Gives back one message as another one."""

    def recall(self, page: str) -> list[dict[str, Any]]:
        messages = super().recall(page)
        return [{**messages[0], "content": "?"}, *messages[1:]] if page == "turn-1" else messages
