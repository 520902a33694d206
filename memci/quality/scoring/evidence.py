"""Where the answers to a conversation's questions stand: in its last window, and in what a search finds."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise, takewhile
from typing import Any

import attrs

from memci.errors import BudgetError
from memci.messages import codec
from memci.messages.tokens.counter import TokenCounter
from memci.quality.conversation import FILE, UNSPACED, Conversation, Question, content_words, full_text, turns_of
from memci.quality.engines import ContextEngine, HeldPage
from memci.quality.played import Asked, Evidence, Needs, Recall
from memci.quality.prompt_meter import PromptMeter
from memci.quality.scoring.contents import ShownContents
from memci.quality.scoring.truth import cut_numbers, inverted, said_of

PLACES = (1, 5, 10)  # among how many of the first pages the evidence is looked for
PASSAGES = 5  # in the passages of how many of the first pages the answer is looked for
MOST_PAGES = 50  # how many pages a search is asked for
ROWS = 5  # among how many rows of the contents page a reader would look for a page
_QUOTED = "> "  # in front of each line that an engine quotes
_SHORTEST_OWNER = 3  # characters
_WHOLE_PATH = r"(?<![\w.])/[\w./@+-]*/%s(?![\w.-])"  # of a file by its name
NAMED_PAGES = 16  # the largest range whose heading says something of a page
NAMED_WORDS = 2  # how many content words of a page name it
RETURNED_TOKENS = 1_000  # how much returned text a model is willing to read


class Text:
    """A text of a language, in which answers are looked for: by content words, or as written in languages without spaces."""

    def __init__(self, text: str, lang: str) -> None:
        self._text = text
        self._words = None if lang in UNSPACED else content_words(text)

    def answer(self, answer: str) -> set[str]:
        """Return what of an answer stands here."""
        return self.shown(content_words(answer) if self._words is not None else {answer.strip()} - {""})

    def shown(self, wanted: set[str]) -> set[str]:
        """Return which of these words, or of these answers as they are written, stand here."""
        return {value for value in wanted if value in self._text} if self._words is None else wanted & self._words

    def share(self, wanted: set[str]) -> float:
        """Return how much of what is wanted stands here."""
        return len(self.shown(wanted)) / len(wanted) if wanted else 0.0


class EvidenceTurns:
    """The turns of a conversation, in which answers stand."""

    def __init__(self, conversation: Conversation) -> None:
        self._messages, self._lang = conversation.messages, conversation.lang
        self._turn_of = {number: page for page in turns_of(self._messages).pages for number in page}
        self._everything = "\n".join(map(full_text, self._messages))

    def numbers(self, evidence: Iterable[int]) -> set[int]:
        """Return the numbers of all messages of the turns of the evidence."""
        return {number for place in evidence for number in self._turn_of.get(place, (place,))}

    def text(self, numbers: Iterable[int], more: Sequence[str] = ()) -> Text:
        """Return what some messages hold, and more."""
        return Text("\n".join([*(full_text(self._messages[number]) for number in sorted(numbers)), *more]), self._lang)

    def owner(self, question: Question) -> str:
        """Return what a question asks about: the longest name in it that the conversation has too; empty for none.

        That is a word with a capital within the question, or as many characters of it as stand together in a language without
        spaces. O(length of the conversation).
        """
        text = question.question
        if self._lang not in UNSPACED:
            words = [word.strip(".,;:?!'\"()").removesuffix("'s") for word in text.split()[1:]]
            names = [word for word in words if word[:1].isupper() and len(word) > 1 and word in self._everything]
            return max(names, key=len, default="")
        start, longest = 0, ""
        for end in range(1, len(text) + 1):
            while start < end and text[start:end] not in self._everything:
                start += 1
            longest = max(longest, text[start:end], key=len)
        return longest if len(longest) >= _SHORTEST_OWNER else ""

    def held(self, question: Question) -> set[str]:
        """Return what of the answer to a question stands in the turns of its evidence."""
        return self.text(self.numbers(question.evidence)).answer(question.answer)


def with_foreign(conversations: Sequence[Conversation]) -> tuple[Conversation, ...]:
    """Return conversations, each with the answers of the one before it, of the first with those of the last; O(questions)."""
    if len(conversations) == 1:
        return tuple(conversations)
    wanted = []
    for conversation in conversations:
        turns = EvidenceTurns(conversation)
        wanted.append(tuple(tuple(sorted(turns.held(question))) for question in conversation.questions))
    return tuple(attrs.evolve(one, foreign=wanted[number - 1]) for number, one in enumerate(conversations))


def _said(conversation: Conversation) -> list[bytes]:
    return [codec.encode(value) for value in conversation.messages]


def _visible(said: Sequence[bytes], rendered: Iterable[bytes]) -> set[int]:
    """Return the numbers of the messages that a window shows word for word; of equal ones the newest. O(messages)."""
    left, visible = Counter(rendered), set[int]()
    for number, raw in reversed(list(enumerate(said))):
        if left[raw]:
            left[raw] -= 1
            visible.add(number)
    return visible


@attrs.frozen
class _Rows:
    """Rows that a contents page has for the evidence of one question."""

    lines: list[str]  # of each page, empty where it has none
    near: list[str]  # the same, with the row before it

    @classmethod
    def of(cls, contents: ShownContents, pages: Iterable[HeldPage]) -> "_Rows":
        before = {page: earlier for earlier, page in pairwise(contents.lines)}
        names = [page.page for page in pages]
        lines = [contents.lines.get(name, "") for name in names]
        earlier = [contents.lines.get(before.get(name, ""), "") for name in names]
        return cls(lines, [f"{row}\n{line}" for row, line in zip(earlier, lines, strict=True)])

    def owned(self, owner: str) -> list[str]:
        """Return the rows next to a name."""
        return [line for line, near in zip(self.lines, self.near, strict=True) if _names(owner, near)]


def find_asked(engine: ContextEngine, conversation: Conversation, pages: Sequence[HeldPage], meter: PromptMeter) -> Asked:
    """Ask each question as the user, after the conversation, and return what that call shows. O(questions · the window).

    Evidence is in view word for word, or as a quotation of it; at its page also in the page's row of the contents page.
    """
    turns, said, found = EvidenceTurns(conversation), _said(conversation), Asked()
    own, page_of = set(said), pages_by_message(pages)
    for question in conversation.questions:
        wanted = turns.held(question)
        if not wanted:
            continue
        owner = turns.owner(question)
        found += Asked(questions=1, owners=bool(owner))
        try:
            window = engine.asked(question.question)
        except BudgetError:
            continue
        prompt = meter.compared(window)
        rendered = [codec.encode(value) for value in window]
        others = [full_text(dict(value)) for raw, value in zip(rendered, window, strict=True) if raw not in own]
        numbers = turns.numbers(question.evidence)
        whole = {number: full_text(conversation.messages[number]) for number in numbers}
        quotes = [line[len(_QUOTED) :] for text in others for line in text.split("\n") if line.startswith(_QUOTED)]
        quoted = [line for line in quotes if line.strip() and any(line.strip() in text for text in whole.values())]
        visible = numbers & _visible(said, rendered)
        held = [page for page in held_pages(page_of, question.evidence) if page is not None]
        rows = _Rows.of(ShownContents(others), held)
        found += Asked(
            calls=1,
            tokens=prompt.tokens,
            length=prompt.length,
            prefix=prompt.prefix,
            in_view=turns.text(visible, quoted).share(wanted),
            at_page=turns.text(visible, [*quoted, *rows.lines]).share(wanted),
            owned=turns.text(visible, [*quoted, *rows.owned(owner)]).share(wanted) if owner else 0.0,
        )
    return found


def find_evidence(conversation: Conversation, window: Sequence[Mapping[str, Any]], pages: Sequence[HeldPage]) -> Evidence:
    """Return what of the answers, as the turns of their evidence hold them, the last window shows. O(questions, and the window).

    An engine is not believed: verbatim is a page whose evidence is in the window, indexed one that its contents page lists.
    """
    turns = EvidenceTurns(conversation)
    system = {codec.encode(value) for value in conversation.system}
    said = _said(conversation)
    rendered = [codec.encode(value) for value in window]
    texts = {raw: full_text(dict(value)) for raw, value in zip(rendered, window, strict=True) if raw not in system}
    everything = Text("\n".join(texts.values()), conversation.lang)
    contents = ShownContents(texts[raw] for raw in texts.keys() - set(said))
    visible = _visible(said, rendered)
    page_of = pages_by_message(pages)
    gone = [page.page for page in pages if not (page.verbatim and visible.issuperset(page.messages))]
    found = Evidence(left=len(gone), listed=len(contents.lines.keys() & gone))
    for page in pages:
        row = said_of(contents.lines.get(page.page, ""))
        text = "\n".join(full_text(conversation.messages[number]) for number in page.messages) if row else ""
        found += Evidence(falsified=len(cut_numbers(text, row)), inverted=len(inverted(text, row)))
    for wanted in filter(None, map(set, conversation.foreign)):
        found += Evidence(foreign=1, coincidence=everything.share(wanted))
    for question in conversation.questions:
        wanted, evidence = turns.held(question), set(question.evidence)
        held = held_pages(page_of, question.evidence)
        kept = [page for page in held if page is not None]
        folded = [page for page in kept if not (page.verbatim and set(page.messages) & evidence <= visible)]
        rows = sorted(contents.search(question.question, ROWS), key=len)
        verbatim, shown_rows = turns.numbers(evidence) & visible, _Rows.of(contents, kept)
        places = turns.text(verbatim, shown_rows.lines)
        owner = turns.owner(question) if wanted else ""
        owned = turns.text(verbatim, shown_rows.owned(owner)).share(wanted)
        only_rows = bool(owner) and not verbatim and bool(folded)
        found += Evidence(
            questions=bool(wanted),
            anchored=everything.share(wanted),
            at_page=places.share(wanted),
            pages=len(held),
            verbatim=len(kept) - len(folded),
            indexed=sum(page.page in contents.lines for page in kept),
            named=sum(_is_named(page, contents, conversation) for page in kept),
            folded=bool(folded),
            owners=bool(owner),
            owned=owned if owner else 0.0,
            row_owners=only_rows,
            row_owned=owned if only_rows else 0.0,
            chosen=sum(next((1 / len(row) for row in rows if page.page in row), 0.0) for page in folded) / max(len(folded), 1),
        )
    return found


def _names(owner: str, text: str) -> bool:
    """Return whether a text names an owner: with a half of its characters at least, as names are shortened."""
    return any(owner[start : start + (len(owner) + 1) // 2] in text for start in range(len(owner) // 2 + 1)) if owner else False


def _is_named(page: HeldPage, contents: ShownContents, conversation: Conversation) -> bool:
    told = [*filter(None, [contents.lines.get(page.page)]), *contents.headings(page.page, NAMED_PAGES)]
    held = content_words("\n".join(full_text(conversation.messages[number]) for number in page.messages)) if told else set()
    return any(len(held & content_words(text)) >= NAMED_WORDS for text in told)


def find_needs(conversation: Conversation, window: Sequence[Mapping[str, Any]]) -> dict[str, Needs]:
    """Return how many of the conversation's needs stand in the last window, by kind. O(needs · the window)."""
    text = "\n".join(full_text(dict(value)) for value in window)
    under, everything = _paths_under(text), "\n".join(map(full_text, conversation.messages)) if conversation.needs else ""
    met: dict[str, Needs] = {}
    for need in conversation.needs:
        paths = set(re.findall(_WHOLE_PATH % re.escape(need.text), everything)) if need.kind == FILE else set()
        opened = any(path in text or path in under for path in paths)
        found = Needs(asked=1, met=need.text in text, paths=bool(paths), openable=opened)
        met[need.kind] = met.get(need.kind, Needs()) + found
    return met


def _paths_under(text: str) -> set[str]:
    """Return the whole paths of files that are shown below a directory.

    That is in a list, as in ``files under /srv/app/: a.py, b/c.py``, or with a mark instead of it, as a heading says before:
    ``…/ is /srv/app/``.
    """
    lists = re.findall(r"^(?:- )?files under (\S+)(?: \([^)]*\))?: (.*)$", text, re.MULTILINE)
    found = {directory + name for directory, names in lists for name in names.split(", ")}
    for base, rows in re.findall(r"^\[.* · …/ is (/.*)\n((?:\d.*(?:\n|\Z))*)", text, re.MULTILINE):
        found |= {base + name for name in re.findall(r"…/([\w./@+-]+)", rows)}
    return found


def pages_by_message(pages: Sequence[HeldPage]) -> dict[int, HeldPage]:
    """Return the page of each message that one holds. O(messages)."""
    return {number: page for page in pages for number in page.messages}


def held_pages(page_of: Mapping[int, HeldPage], evidence: Iterable[int]) -> list[HeldPage | None]:
    """Return the distinct pages that hold the evidence, and a ``None`` for each message of it that no page holds."""
    held = [page_of.get(number) for number in evidence]
    known = {page.page: page for page in held if page is not None}
    return [*known.values(), *(None for page in held if page is None)]


def find_recall(
    engine: ContextEngine, conversation: Conversation, pages: Sequence[HeldPage], counter: TokenCounter
) -> dict[str, Recall]:
    """Ask every question as a query, and return what was found by category; empty for an engine without a search.

    All pages are searched, so that the budget does not count; evidence that no page holds counts as a page that is not found.
    """
    found: dict[str, Recall] = {}
    turns, page_of = EvidenceTurns(conversation), pages_by_message(pages)
    for question in conversation.questions:
        hits = engine.search(question.question, MOST_PAGES)
        if hits is None:
            return {}
        wanted = [page.page if page is not None else None for page in held_pages(page_of, question.evidence)]
        if not wanted:
            continue
        names = [hit.page for hit in hits]
        sizes = accumulate(counter.count(hit.text) for hit in hits)
        read = sum(1 for _ in takewhile(lambda size: size <= RETURNED_TOKENS, sizes))
        new = turns.held(question)
        new -= Text(question.question, conversation.lang).shown(new)
        passages = Text("\n".join(hit.passage for hit in hits[:PASSAGES]), conversation.lang)
        first, five, ten, within = (sum(name in names[:place] for name in wanted) / len(wanted) for place in (*PLACES, read))
        one = Recall(1, first, five, ten, within, bool(new), passages.share(new))
        found[question.category] = found.get(question.category, Recall()) + one
    return dict(sorted(found.items()))
