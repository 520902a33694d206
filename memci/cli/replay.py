"""Feeding a conversation to a session as a chat backend would, and measuring every call."""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import attrs

import memci
from memci.cli.conversation import Said
from memci.cli.exit_code import refuse
from memci.engine.core.monitor import Eviction, Fold, FoldFailed, Notice, Recall
from memci.engine.settings.config import Config, Prices
from memci.errors import BudgetError, ConfigError, InvalidMessageError, shown
from memci.messages.formats import format as formats
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import REPLY_TOKENS
from memci.quality.money import Traffic
from memci.quality.played import Calls
from memci.quality.prompt_meter import PromptMeter, encoder

SPILL_HIGH_WATER, SPILL_LOW_WATER = 1.0, 0.999
"""Marks that are so near to each other that a fold takes about one page."""


@attrs.frozen(kw_only=True)
class BudgetFailure:
    """A call, by its number from 1, for which no window fitted: the smallest that could be made, and its parts."""

    call: int
    tokens: int
    budget: int
    breakdown: dict[str, int]


@attrs.define(kw_only=True, eq=False)
class Measurement:
    """What a replay found; the first fields have their names in the JSON document.

    Attributes:
        calls: Windows that were asked for, one before each assistant message.
        pages: Pages at the end, by state.
        over_budget: Windows above their budget, counted anew from what was rendered; a promise is that there is none.
        broken_pairs: Calls not followed at once by their result, and results without a call, over all windows.
        unequal_messages: Places at which the session gives back another message than went in.
        reopened_equal: Whether the session opened again shows the same window, contents page and pages.
        problems: What verification found.
        contents_tokens: Size of the contents page at the end.
        budget: What a window may hold.
        sent: What the windows sent; since the history outgrew the budget, also the tokens of messages shown word for word:
            those of active, open and recalled pages.
        whole: What sending all messages so far at every call would have sent.
    """

    messages: int = 0
    turns: int = 0
    calls: int = 0
    pages: dict[str, int] = attrs.field(factory=dict)
    folds: int = 0
    failed_folds: int = 0
    evictions: int = 0
    recalls: int = 0
    over_budget: int = 0
    broken_pairs: int = 0
    unequal_messages: int = 0
    reopened_equal: bool = False
    problems: tuple[str, ...] = ()
    budget_errors: tuple[BudgetFailure, ...] = ()
    contents_tokens: int = 0
    budget: int
    prices: Prices
    sent: Calls = attrs.field(factory=Calls)
    whole: Calls = attrs.field(factory=Calls)

    @property
    def traffic(self) -> Traffic:
        """What the windows sent."""
        return self.sent.traffic(self.prices)

    @property
    def whole_history(self) -> Traffic:
        """What sending the whole history would have sent."""
        return self.whole.traffic(self.prices)

    @property
    def verbatim_tokens(self) -> float | None:
        """Mean tokens shown word for word since the history outgrew the budget; ``None`` when it never did."""
        return self.sent.verbatim / self.sent.outgrown if self.sent.outgrown else None

    @property
    def verbatim_share(self) -> float | None:
        """``verbatim_tokens`` as a share of the budget."""
        return None if self.verbatim_tokens is None else self.verbatim_tokens / self.budget

    @property
    def ok(self) -> bool:
        """Whether every promise held."""
        return self.reopened_equal and not (self.over_budget or self.broken_pairs or self.unequal_messages or self.problems)

    def to_mapping(self) -> dict[str, Any]:
        """Return it as a JSON value, without the whole history."""
        counts = attrs.asdict(self, filter=attrs.filters.exclude("budget", "prices", "sent", "whole"))
        verbatim = None if self.verbatim_tokens is None else round(self.verbatim_tokens, 1)
        share = None if self.verbatim_share is None else round(self.verbatim_share, 4)
        return {"ok": self.ok, **counts, **self.traffic.to_mapping(), "verbatim_tokens": verbatim, "verbatim_share": share}


def spill(config: Config) -> Config:
    """Return the settings with marks that let one page spill at a time, as soon as the window is full."""
    return attrs.evolve(config, active=attrs.evolve(config.active, high_water=SPILL_HIGH_WATER, low_water=SPILL_LOW_WATER))


def replay(
    engine: memci.Engine, session_id: str, conversation: Sequence[Said], advance: Callable[[], None] = lambda: None
) -> Measurement:
    """Append a conversation to a new session, asking for a window before each assistant message, and measure it.

    *advance* is called after each message.

    Raises:
        CommandError: A message is refused, or the session exists already.
    """
    run = _Run(engine.config)
    found, notices = run.found, list[Notice]()
    with engine.session(session_id) as session:
        if session.seq:
            refuse(f"session {shown(session_id)} has messages already: name a new one with --session")
        session.observe(notices.append)
        for said in conversation:
            if run.opens_answer(said.message):
                run.call(session)
            try:
                session.append(said.message, at=said.at)
            except (InvalidMessageError, ConfigError) as error:
                refuse(f"{said.place}: {error}")
            run.appended(said.message)
            advance()
        found.problems = session.verify().problems
        before = _shown(session)
    with engine.session(session_id) as session:
        found.reopened_equal = before == _shown(session)
        found.messages, found.turns = len(conversation), session.turn
        found.contents_tokens = session.contents.tokens
        found.pages = dict(sorted(Counter(str(facts.state) for facts in session.pages()).items()))
        found.unequal_messages = _unequal([said.message for said in conversation], session)
    found.folds = sum(isinstance(notice, Fold) for notice in notices)
    found.failed_folds = sum(isinstance(notice, FoldFailed) for notice in notices)
    found.evictions = sum(len(notice.pages) for notice in notices if isinstance(notice, Eviction))
    found.recalls = sum(isinstance(notice, Recall) for notice in notices)
    return found


class _Run:
    """Counts what the calls of one replay send."""

    def __init__(self, config: Config) -> None:
        counter = get_counter(config.counter)
        self.found = Measurement(budget=config.budget.tokens, prices=config.prices)
        self._wire = formats.get(config.format)
        self._meter = PromptMeter(counter, self._wire, encoder(counter))
        self._margin = counter.margin
        self._history = self._last_history = Calls()
        self._in_answer = False

    def opens_answer(self, message: dict[str, Any]) -> bool:
        """Return whether the model was called for a message, and not for one before it of which it is a part."""
        try:
            facts = self._wire.read(message)
        except InvalidMessageError:
            return False  # the session says what is wrong with it
        goes_on, self._in_answer = self._in_answer, facts.partial
        return facts.role == "assistant" and not (facts.partial and goes_on)

    def appended(self, message: dict[str, Any]) -> None:
        known = self._meter.message(message)
        self._history += Calls(tokens=known.tokens, length=len(known.sequence))

    def call(self, session: memci.Session) -> None:
        found, history = self.found, self._history
        found.calls += 1
        tokens = math.ceil((history.tokens + REPLY_TOKENS) * self._margin)
        found.whole += Calls(calls=1, tokens=tokens, length=history.length, prefix=self._last_history.length)
        self._last_history = history
        try:
            window = session.window()
        except BudgetError as error:
            failure = BudgetFailure(call=found.calls, tokens=error.tokens, budget=error.budget, breakdown=error.breakdown)
            found.budget_errors += (failure,)
            return
        system = [] if window.system is None else [{"role": "system", "content": window.system}]
        prompt = self._meter.call([*system, *window.messages])
        found.sent += Calls(calls=1, tokens=window.tokens, length=prompt.length, prefix=prompt.prefix)
        found.over_budget += max(prompt.tokens, window.tokens) > window.budget
        found.broken_pairs += prompt.broken_pairs
        if tokens > found.budget:
            verbatim = sum(window.breakdown[part] for part in ("active", "open", "recalled"))
            found.sent += Calls(outgrown=1, verbatim=verbatim)


def _shown(session: memci.Session) -> tuple[object, ...]:
    window = session.render(at=session.seq)
    return window.to_json(), window.breakdown, session.turn, session.contents, session.pages()


def _unequal(given: Sequence[object], session: memci.Session) -> int:
    """Count the messages that are not stored as they came, and in their order: a late result stands with its call in the page."""
    nodes = [node for facts in session.pages() for node in session.page(facts.index).nodes()]
    stored = [node.message.value() for node in sorted(nodes, key=lambda node: node.seq)]
    pairs = zip(map(_canonical, given), map(_canonical, stored), strict=False)
    return sum(one != other for one, other in pairs) + abs(len(given) - len(stored))


def _canonical(value: object) -> str:
    """Return JSON in which the order of keys does not matter, and 1, 1.0 and true are not the same."""
    return json.dumps(value, sort_keys=True)
