"""What is measured of conversations: sums, so that those of several conversations add up."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from operator import add
from typing import Any, Self, TypeVar

import attrs

from memci.engine.settings.config import Prices

_Sums = TypeVar("_Sums", bound="Sums")

ANSWER_TOKENS = 60  # of a page's summary, its index included
ANSWER_PRICE = 5.0  # of a token of it, relative to plain input


@attrs.frozen
class Sums:
    """Figures that add up, each for itself."""

    def __add__(self, other: Self) -> Self:
        """Return the sums of both."""
        return type(self)(*map(add, attrs.astuple(self, recurse=False), attrs.astuple(other, recurse=False)))

    @classmethod
    def of(cls, several: Iterable[Self]) -> Self:
        """Return the sums of several; of none, nothing."""
        return functools.reduce(add, several, cls())


@attrs.frozen
class Calls(Sums):
    """What calls sent."""

    calls: int = 0  # how many windows were sent
    tokens: int = 0  # their size by the counter
    length: int = 0  # their size in tokens of the sequences that prefixes are compared on
    prefix: int = 0  # how many of these were the same as at the beginning of the call before
    outgrown: int = 0  # calls since the history outgrew the budget
    verbatim: int = 0  # tokens of the conversation's own messages in these, word for word, the leading system messages left out
    room: int = 0  # what the windows of these might hold

    @property
    def prefix_reuse(self) -> float:
        """Share of the tokens that stood at the same place in the call before, from the beginning on."""
        return self.prefix / self.length if self.length else 0.0

    @property
    def tokens_per_call(self) -> float:
        """Mean size of a call."""
        return self.tokens / self.calls if self.calls else 0.0

    @property
    def verbatim_tokens(self) -> float | None:
        """Mean tokens shown word for word since the history outgrew the budget; ``None`` when it never did."""
        return self.verbatim / self.outgrown if self.outgrown else None

    @property
    def verbatim_share(self) -> float | None:
        """The same as a share of the budget."""
        return self.verbatim / self.room if self.room else None

    def cost_per_call(self, prices: Prices) -> float:
        """Return the mean cost of a call in tokens of plain input: what is reused costs a cache read, the rest a cache write."""
        return self.tokens_per_call * (self.prefix_reuse * prices.read + (1 - self.prefix_reuse) * prices.write)


@attrs.frozen
class Summaries(Sums):
    """Requests for summaries of the pages that folded or were trimmed, in tokens."""

    pages: int = 0  # that are asked for
    alone: int = 0  # tokens of requests of their own, of each page
    cached: int = 0  # of requests that extend the last window: what the cache holds
    new: int = 0  # and what it does not, with the requests of their own for pages that the last window did not show whole

    @property
    def own_cost(self) -> float:
        """What requests of their own cost, in tokens of plain input: none of them is in a cache."""
        return self.alone + self._answered

    def window_cost(self, prices: Prices) -> float:
        """Return what requests that extend the last window cost, in tokens of plain input."""
        return self.cached * prices.read + self.new + self._answered

    @property
    def _answered(self) -> float:
        return self.pages * ANSWER_TOKENS * ANSWER_PRICE


@attrs.frozen
class Evidence(Sums):
    """What the window at the end shows."""

    questions: int = 0  # those of whose answer something stands in the evidence pages; only these count in the shares
    anchored: float = 0.0  # of each answer, the share anywhere in the window but in the conversation's system messages
    at_page: float = 0.0  # the share where the evidence pages are shown: word for word, or in their place in the contents
    pages: int = 0  # evidence pages, a page counted once for each question
    verbatim: int = 0  # of these, the pages whose evidence stands in the window word for word
    indexed: int = 0  # of these, the pages that the window's contents page lists by themselves
    named: int = 0  # of these, the pages of which a row of their own, or the heading of a small range, holds two content words
    folded: int = 0  # questions with evidence in pages that are kept, but not verbatim
    chosen: float = 0.0  # of these pages, the share that the question finds within five rows of the contents page
    foreign: int = 0  # questions of another conversation
    coincidence: float = 0.0  # of their answers, the share anywhere in this window
    left: int = 0  # all pages that are kept, but not in the window
    listed: int = 0  # of these, those that the contents page lists by themselves
    falsified: int = 0  # numbers in the rows of these that their pages hold only as a part of another number, or not at all
    inverted: int = 0  # clauses of which these rows show words without the negation, exception or condition
    owners: int = 0  # questions that name something which the conversation names too
    owned: float = 0.0  # of their answers, the share shown at their pages, in rows next to that name or word for word
    row_owners: int = 0  # of these questions, those whose pages only have rows
    row_owned: float = 0.0  # of their answers, the share in rows next to that name


@attrs.frozen
class Asked(Sums):
    """What windows show when the questions are asked, each after the conversation, by the user."""

    questions: int = 0
    in_view: float = 0.0  # of each answer, the share in the messages of the evidence's turns, or in quotations of these
    calls: int = 0  # windows that could be made
    tokens: int = 0  # their size
    length: int = 0  # their size in tokens of the sequences that prefixes are compared on
    prefix: int = 0  # how many of these are the same as at the beginning of the last window
    at_page: float = 0.0  # of each answer, the share in view, or in the rows of the evidence's pages
    owners: int = 0  # questions that name something which the conversation names too
    owned: float = 0.0  # of their answers, the same share, of rows those next to that name

    def cost(self, prices: Prices) -> float | None:
        """Return the mean cost of such a call, as ``Calls.cost_per_call`` has it; ``None`` without calls."""
        return Calls(self.calls, self.tokens, self.length, self.prefix).cost_per_call(prices) if self.calls else None


@attrs.frozen
class Needs(Sums):
    """What an agent used after the end of conversations."""

    asked: int = 0
    met: int = 0  # of these, what stands in the last window
    paths: int = 0  # of these, the files of which the conversation has a whole path
    openable: int = 0  # of these, the files of which such a path is in the last window


@attrs.frozen
class Recall(Sums):
    """Of questions, the share of their evidence pages that a search found."""

    questions: int = 0
    first: float = 0.0  # the share among the first page
    five: float = 0.0
    ten: float = 0.0
    within: float = 0.0  # among the first pages whose returned text together has at most 1,000 tokens
    asked: int = 0  # of the questions, those with something of the answer in the evidence that they do not say themselves
    told: float = 0.0  # of these answers, the share that the passages of the first five pages hold together


@attrs.frozen
class Faults(Sums):
    """What must not happen, whatever an engine leaves out of its windows."""

    over_budget: int = 0  # windows above their budget, counted from what was rendered
    no_window: int = 0  # calls for which the engine found no window that fits
    broken_pairs: int = 0  # calls without their result directly after them, and results without a call, over all windows
    lost: int = 0  # messages that do not come back, as the same JSON values in the same order, when every page is recalled

    @property
    def ok(self) -> bool:
        """Whether every promise held. That no window fits is none: a budget may be too small for the conversation."""
        return not (self.over_budget or self.broken_pairs or self.lost)


@attrs.frozen(kw_only=True)
class Played:
    """What one engine did with conversations at one budget; what a search found by category, if it has one, and needs by kind."""

    calls: Calls = attrs.field(factory=Calls)
    evidence: Evidence = attrs.field(factory=Evidence)
    asked: Asked = attrs.field(factory=Asked)
    recall: Mapping[str, Recall] = attrs.field(factory=dict)
    needs: Mapping[str, Needs] = attrs.field(factory=dict)
    faults: Faults = attrs.field(factory=Faults)

    @classmethod
    def of(cls, played: Iterable["Played"]) -> "Played":
        """Return the sums over several conversations."""
        several = list(played)
        return cls(
            calls=Calls.of(one.calls for one in several),
            evidence=Evidence.of(one.evidence for one in several),
            asked=Asked.of(one.asked for one in several),
            recall=_by_name(Recall, [one.recall for one in several]),
            needs=_by_name(Needs, [one.needs for one in several]),
            faults=Faults.of(one.faults for one in several),
        )

    @property
    def all_recall(self) -> Recall:
        """What the search found over all categories of questions."""
        return Recall.of(self.recall.values())

    @classmethod
    def from_mapping(cls, value: Mapping[str, Any]) -> "Played":
        """Make it of what ``attrs.asdict`` gives."""
        recall = {category: Recall(**sums) for category, sums in value["recall"].items()}
        needs = {kind: Needs(**sums) for kind, sums in value["needs"].items()}
        calls, evidence, faults = Calls(**value["calls"]), Evidence(**value["evidence"]), Faults(**value["faults"])
        return cls(calls=calls, evidence=evidence, asked=Asked(**value["asked"]), recall=recall, needs=needs, faults=faults)


def _by_name(kind: type[_Sums], several: Sequence[Mapping[str, _Sums]]) -> dict[str, _Sums]:
    names = sorted({name for sums in several for name in sums})
    return {name: kind.of(sums[name] for sums in several if name in sums) for name in names}
