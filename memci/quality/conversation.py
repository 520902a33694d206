"""Conversations to measure with: messages, times and questions with the places of their answers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from memci.archive.summarizers.words import STOPWORDS, words
from memci.messages.parts import parts
from memci.messages.tokens.counter import TokenCounter
from memci.messages.tokens.message_tokens import count_message

SYSTEM_TOKENS = 1_000
"""What the system messages of every conversation hold at least, as those of agents and assistants in use do."""

SYSTEM_ROLES = ("system", "developer")
UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "km"})
"""Languages that put no spaces between words: an answer is looked for as it is written, not word by word."""

_RULES = (
    "Answer in the language in which the user writes, and in the fewest words that are complete.",
    "When a request can be read in two ways, say which one you take and why.",
    "Never guess an identifier, an amount or an address: ask for it, or look it up.",
    "Repeat names, numbers and addresses exactly as they were given.",
    "Say so when you do not know, and say what would help you to find out.",
    "Do not speak about these instructions unless somebody asks for them.",
    "When the user corrects you, take the correction over and go on with it.",
    "Ask before anything is done that cannot be undone.",
)


@attrs.frozen(kw_only=True)
class Question:
    """A question about a conversation.

    Attributes:
        question: What is asked; the query of the search.
        answer: The answer.
        category: The kind of question.
        evidence: Which messages hold the answer, counted from 0.
    """

    question: str
    answer: str
    category: str
    evidence: tuple[int, ...]


@attrs.frozen(kw_only=True)
class Conversation:
    """A conversation.

    Attributes:
        id: Its name.
        lang: Its language, as ISO 639 has it.
        messages: In OpenAI's chat format, oldest first.
        times: When each was said, in ISO 8601; ``None`` where that is not known.
        questions: What is asked at its end.
    """

    id: str
    lang: str
    messages: tuple[dict[str, Any], ...]
    times: tuple[str | None, ...]
    questions: tuple[Question, ...] = ()


def leading_system(messages: Sequence[dict[str, Any]]) -> int:
    """Return how many system messages stand before all others."""
    return next((number for number, value in enumerate(messages) if value.get("role") not in SYSTEM_ROLES), len(messages))


def joined(conversations: Sequence[Conversation]) -> Conversation:
    """Return conversations without questions as one, with the system messages that begin the first and no others."""
    first = conversations[0]
    kept = [pair for pair in zip(first.messages, first.times, strict=True) if pair[0].get("role") in SYSTEM_ROLES]
    for conversation in conversations:
        pairs = zip(conversation.messages, conversation.times, strict=True)
        kept += [pair for pair in pairs if pair[0].get("role") not in SYSTEM_ROLES]
    messages, times = zip(*kept, strict=True)
    name = first.id if len(conversations) == 1 else f"{first.id} and {len(conversations) - 1} more"
    return Conversation(id=name, lang=first.lang, messages=messages, times=times)


def with_system(conversation: Conversation, counter: TokenCounter) -> Conversation:
    """Return the conversation with at least 1,000 tokens of system messages.

    Where there are fewer, one is put before all messages: rules that are the same for every conversation, as many as it takes.
    """
    leading = leading_system(conversation.messages)
    missing = SYSTEM_TOKENS - sum(count_message(value, counter) for value in conversation.messages[:leading])
    if missing <= 0:
        return conversation
    message = {"role": "system", "content": "You are an assistant that helps people. These rules hold for every answer:"}
    number = 0
    while count_message(message, counter) < missing:
        message["content"] += f"\n{number + 1}. {_RULES[number % len(_RULES)]}"
        number += 1
    questions = tuple(
        attrs.evolve(question, evidence=tuple(place + 1 for place in question.evidence)) for question in conversation.questions
    )
    return attrs.evolve(
        conversation, messages=(message, *conversation.messages), times=(None, *conversation.times), questions=questions
    )


@attrs.define(eq=False)
class Turns:
    """The turns of a conversation, as it grows: what a user says, and all that answers it.

    Attributes:
        system: The numbers of the system messages that stand before all others.
        pages: The numbers of the messages of each turn, oldest first. Answers before all users' messages are one, too.
    """

    system: list[int] = attrs.field(factory=list)
    pages: list[list[int]] = attrs.field(factory=list)
    _answered: bool = False

    def add(self, number: int, message: Mapping[str, Any]) -> None:
        """Take in the next message."""
        role = message.get("role")
        if not self.pages and role in SYSTEM_ROLES:
            self.system.append(number)
            return
        if not self.pages or (role == "user" and self._answered):
            self.pages.append([])
            self._answered = False
        self.pages[-1].append(number)
        self._answered = self._answered or role != "user"


def turns_of(messages: Iterable[Mapping[str, Any]]) -> Turns:
    """Return the turns of a conversation. O(messages)."""
    turns = Turns()
    for number, message in enumerate(messages):
        turns.add(number, message)
    return turns


def full_text(message: dict[str, Any]) -> str:
    """Return all words of a message: its text, results, and calls with their arguments."""
    return "\n".join(part.text for part in parts(message) if part.text)


def content_words(text: str) -> set[str]:
    """Return the distinct words of a text, lower-cased, without the words that say nothing."""
    return set(words(text)) - STOPWORDS
