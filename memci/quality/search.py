"""How well an engine's search finds the pages that hold an answer."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, takewhile

import attrs

from memci.messages.tokens.counter import TokenCounter
from memci.quality.conversation import Conversation
from memci.quality.engines import ContextEngine, HeldPage
from memci.quality.evidence import EvidenceTurns, Text, held_pages, shown_share

PLACES = (1, 5, 10)
"""Among how many of the first pages the evidence is looked for."""

PASSAGES = 5
"""In the passages of how many of the first pages the answer is looked for."""

MOST_PAGES = 50
"""How many pages a search is asked for."""

RETURNED_TOKENS = 1_000
"""How much returned text a model is willing to read."""


@attrs.frozen(kw_only=True)
class Recall:
    """Sums over questions of the share of their evidence pages that a search found.

    Attributes:
        questions: How many questions were asked.
        first: The share among the first page.
        five: Among the first five.
        ten: Among the first ten.
        within: Among the first pages whose returned text together has at most 1,000 tokens.
        asked: Of the questions, those of whose answer something stands in the evidence that the question does not say itself.
        told: Of these answers, the share that the passages of the first five pages hold together.
    """

    questions: int = 0
    first: float = 0.0
    five: float = 0.0
    ten: float = 0.0
    within: float = 0.0
    asked: int = 0
    told: float = 0.0


def find_recall(
    engine: ContextEngine, conversation: Conversation, pages: Sequence[HeldPage], counter: TokenCounter
) -> dict[str, Recall]:
    """Ask every question as a query, and return what was found by category; empty for an engine without a search.

    The whole conversation is searched, pages that stand in the window too, so that the figures do not depend on the budget.
    A message of the evidence that no page holds counts as a page that was not found. O(questions · a search).
    """
    found: dict[str, Recall] = {}
    turns = EvidenceTurns(conversation)
    for question in conversation.questions:
        hits = engine.search(question.question, MOST_PAGES)
        if hits is None:
            return {}
        wanted = [page.page if page is not None else None for page in held_pages(pages, question.evidence)]
        if not wanted:
            continue
        names = [hit.page for hit in hits]
        shares = [_share(wanted, names[:place]) for place in PLACES]
        read = _readable((hit.text for hit in hits), counter)
        before = found.get(question.category, Recall())
        new = turns.held(question)
        new -= Text(question.question, conversation.lang).shown(new)
        passages = Text("\n".join(hit.passage for hit in hits[:PASSAGES]), conversation.lang)
        found[question.category] = Recall(
            questions=before.questions + 1,
            first=before.first + shares[0],
            five=before.five + shares[1],
            ten=before.ten + shares[2],
            within=before.within + _share(wanted, names[:read]),
            asked=before.asked + bool(new),
            told=before.told + shown_share(new, passages),
        )
    return dict(sorted(found.items()))


def _readable(texts: Iterable[str], counter: TokenCounter) -> int:
    """Return how many of the first texts have at most 1,000 tokens together."""
    sizes = accumulate(counter.count(text) for text in texts)
    return sum(1 for _ in takewhile(lambda size: size <= RETURNED_TOKENS, sizes))


def _share(wanted: Sequence[str | None], names: Sequence[str]) -> float:
    return sum(name is not None and name in names for name in wanted) / len(wanted)
