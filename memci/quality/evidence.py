"""How much of the answers a window shows at the end of a conversation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from memci.messages import codec
from memci.quality.conversation import UNSPACED, Conversation, Question, content_words, full_text, leading_system, turns_of
from memci.quality.engines import ContextEngine, HeldPage


@attrs.frozen(kw_only=True)
class Evidence:
    """Sums over the questions of conversations.

    Attributes:
        questions: Questions of whose answer something stands in the evidence pages; only these count in the shares.
        anchored: Of each answer, the share that stands anywhere in the window, the conversation's system messages left out.
        at_page: Of each answer, the share that stands where the evidence pages are shown: in messages of them that are in the
            window word for word, or in the text that stands for them in the contents page.
        pages: Evidence pages, a page counted once for each question.
        verbatim: Of these, the pages whose evidence stands in the window word for word.
        indexed: Of these, the pages that the window's contents page lists by themselves.
    """

    questions: int = 0
    anchored: float = 0.0
    at_page: float = 0.0
    pages: int = 0
    verbatim: int = 0
    indexed: int = 0


class Text:
    """A text in which answers are looked for.

    Args:
        text: The text.
        lang: Its language.
    """

    def __init__(self, text: str, lang: str) -> None:
        self._text = text
        self._words = None if lang in UNSPACED else content_words(text)

    def answer(self, answer: str) -> set[str]:
        """Return what of an answer stands here: its content words, or in languages without spaces the answer as it is written."""
        return self.shown(content_words(answer) if self._words is not None else {answer.strip()} - {""})

    def shown(self, wanted: set[str]) -> set[str]:
        """Return which of these words, or of these answers as they are written, stand here."""
        return {value for value in wanted if value in self._text} if self._words is None else wanted & self._words


class EvidenceTurns:
    """The turns of a conversation, in which answers stand.

    Args:
        conversation: The conversation.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._messages, self._lang = conversation.messages, conversation.lang
        self._turn_of = {number: page for page in turns_of(self._messages).pages for number in page}

    def numbers(self, evidence: Iterable[int]) -> set[int]:
        """Return the numbers of all messages of the turns of the evidence."""
        return {number for place in evidence for number in self._turn_of.get(place, (place,))}

    def text(self, numbers: Iterable[int], more: Sequence[str] = ()) -> Text:
        """Return what some messages hold, and more."""
        return Text("\n".join([*(full_text(self._messages[number]) for number in sorted(numbers)), *more]), self._lang)

    def held(self, question: Question) -> set[str]:
        """Return what of the answer to a question stands in the turns of its evidence."""
        return self.text(self.numbers(question.evidence)).answer(question.answer)


def find_evidence(
    engine: ContextEngine, conversation: Conversation, window: Sequence[Mapping[str, Any]], pages: Sequence[HeldPage]
) -> Evidence:
    """Return what of the answers the last window shows.

    What can be shown of an answer is what stands in the turns that hold its evidence. What an engine says of a page is not
    believed: verbatim is a page whose evidence is in the window, indexed one whose entry begins a line of it.
    O(questions · their evidence, and the window).
    """
    turns = EvidenceTurns(conversation)
    shown = _Shown(engine, conversation, window, pages, turns)
    found = Evidence()
    for question in conversation.questions:
        evidence = question.evidence
        wanted = turns.held(question)
        held = held_pages(pages, evidence)
        places = shown.places(evidence, held)
        found = attrs.evolve(
            found,
            questions=found.questions + bool(wanted),
            anchored=found.anchored + shown_share(wanted, shown.window),
            at_page=found.at_page + shown_share(wanted, places),
            pages=found.pages + len(held),
            verbatim=found.verbatim + sum(page is not None and shown.is_verbatim(page, evidence) for page in held),
            indexed=found.indexed + sum(page is not None and shown.is_indexed(page) for page in held),
        )
    return found


def held_pages(pages: Sequence[HeldPage], evidence: Iterable[int]) -> list[HeldPage | None]:
    """Return the distinct pages that hold the evidence, and a ``None`` for each message of it that no page holds. O(pages)."""
    by_message = {number: page for page in pages for number in page.messages}
    held = [by_message.get(number) for number in evidence]
    known = {page.page: page for page in held if page is not None}
    return [*known.values(), *(None for page in held if page is None)]


class _Shown:
    """What the last window shows of a conversation."""

    def __init__(
        self,
        engine: ContextEngine,
        conversation: Conversation,
        window: Sequence[Mapping[str, Any]],
        pages: Sequence[HeldPage],
        turns: EvidenceTurns,
    ) -> None:
        self._messages, self._lang = conversation.messages, conversation.lang
        self._turns = turns
        system = {codec.encode(value) for value in self._messages[: leading_system(self._messages)]}
        rendered = {codec.encode(value): dict(value) for value in window}
        texts = [full_text(value) for raw, value in rendered.items() if raw not in system]
        self.window = Text("\n".join(texts), self._lang)
        self._lines = {line.strip() for text in texts for line in text.splitlines()}
        self._visible = {number for number, value in enumerate(self._messages) if codec.encode(value) in rendered}
        self._entries = {page.page: engine.entry(page.page) for page in pages}

    def places(self, evidence: Iterable[int], held: Iterable[HeldPage | None]) -> Text:
        """Return what is shown of the evidence pages."""
        entries = [self._entries[page.page] for page in held if page is not None]
        return self._turns.text(self._turns.numbers(evidence) & self._visible, entries)

    def is_verbatim(self, page: HeldPage, evidence: Sequence[int]) -> bool:
        return page.verbatim and (set(page.messages) & set(evidence)) <= self._visible

    def is_indexed(self, page: HeldPage) -> bool:
        entry = self._entries[page.page]
        return page.indexed and entry.partition("\n")[0].strip() in self._lines


def shown_share(wanted: set[str], text: Text) -> float:
    """Return how much of what is wanted stands in a text."""
    return len(text.shown(wanted)) / len(wanted) if wanted else 0.0
