"""Feeding a conversation to a session as a chat backend would, and measuring every call."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

import memci
from memci.cli.conversation import Said
from memci.cli.exit_code import refuse
from memci.engine.core.monitor import Eviction, Fold, FoldFailed, Notice, Recall
from memci.engine.settings.config import Config
from memci.errors import BudgetError, ConfigError, InvalidMessageError, shown
from memci.messages.formats import format as formats
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import REPLY_TOKENS
from memci.quality.money import Traffic
from memci.quality.prompt_meter import PromptMeter, encoder

SPILL_HIGH_WATER, SPILL_LOW_WATER = 1.0, 0.999
"""Marks that are so near to each other that a fold takes about one page."""


@attrs.frozen(kw_only=True)
class BudgetFailure:
    """A call for which no window fitted.

    Attributes:
        call: Its number, from 1.
        tokens: Size of the smallest window that could be made.
        budget: What it was to hold.
        breakdown: Tokens by part of that window.
    """

    call: int
    tokens: int
    budget: int
    breakdown: dict[str, int]


@attrs.frozen(kw_only=True)
class Measurement:
    """What a replay found.

    Attributes:
        messages: Messages that went in.
        turns: Turns at the end.
        calls: Windows that were asked for, one before each assistant message.
        pages: Pages at the end, by state.
        folds: Folds.
        failed_folds: Folds that failed and were tried again.
        evictions: Entries that left the contents page.
        recalls: Pages that were recalled.
        over_budget: Windows above their budget, counted anew from what was rendered; a promise is that there is none.
        broken_pairs: Calls without their result directly behind them, and results without a call, over all windows.
        unequal_messages: Places at which the session gives back another message than went in.
        reopened_equal: Whether the session opened again shows the same window, contents page and pages.
        problems: What verification found.
        budget_errors: Calls for which no window fitted; the session went on.
        traffic: What the windows sent.
        whole_history: What sending all messages so far at every call would have sent.
        verbatim_tokens: Mean tokens of messages shown word for word (active, open and recalled pages) over the calls since the
            history outgrew the budget; ``None`` when it never did.
        budget: What a window may hold.
        contents_tokens: Size of the contents page at the end.
    """

    messages: int
    turns: int
    calls: int
    pages: dict[str, int]
    folds: int
    failed_folds: int
    evictions: int
    recalls: int
    over_budget: int
    broken_pairs: int
    unequal_messages: int
    reopened_equal: bool
    problems: tuple[str, ...]
    budget_errors: tuple[BudgetFailure, ...]
    traffic: Traffic
    whole_history: Traffic
    verbatim_tokens: float | None
    budget: int
    contents_tokens: int

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
        counts = attrs.asdict(self, filter=attrs.filters.exclude("traffic", "whole_history", "verbatim_tokens", "budget"))
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

    Args:
        engine: Where the session is made, and with which settings.
        session_id: Its id.
        conversation: The messages.
        advance: Called after each message.

    Raises:
        CommandError: A message is refused, or the session exists already.
    """
    run = _Run(engine.config)
    with engine.session(session_id) as session:
        if session.seq:
            refuse(f"session {shown(session_id)} has messages already: name a new one with --session")
        session.observe(run.notices.append)
        for said in conversation:
            if run.opens_answer(said.message):
                run.call(session)
            _append(session, said)
            run.appended(said.message)
            advance()
        problems = session.verify().problems
        before = _shown(session)
    with engine.session(session_id) as session:
        return _measurement(session, conversation, run, problems=problems, reopened_equal=before == _shown(session))


class _Run:
    """Counts what the calls of one replay send."""

    def __init__(self, config: Config) -> None:
        counter = get_counter(config.counter)
        self.notices: list[Notice] = []
        self.wire = formats.get(config.format)
        self.meter = PromptMeter(counter, self.wire, encoder(counter))
        self.budget = config.budget.tokens
        self.margin = counter.margin
        self.calls = self.over_budget = self.broken_pairs = 0
        self.tokens = self.length = self.prefix = 0
        self.budget_errors: list[BudgetFailure] = []
        self.verbatim: list[int] = []
        self.history_tokens = self.history_length = 0
        self.whole_tokens = self.whole_length = self.whole_prefix = 0
        self._last_history_length = 0
        self._in_answer = False

    def opens_answer(self, message: dict[str, Any]) -> bool:
        """Return whether the model was called for a message, and not for one before it of which it is a part."""
        try:
            facts = self.wire.read(message)
        except InvalidMessageError:
            return False  # the session says what is wrong with it
        goes_on, self._in_answer = self._in_answer, facts.partial
        return facts.role == "assistant" and not (facts.partial and goes_on)

    def appended(self, message: dict[str, Any]) -> None:
        known = self.meter.message(message)
        self.history_tokens += known.tokens
        self.history_length += len(known.sequence)

    def call(self, session: memci.Session) -> None:
        self.calls += 1
        history_tokens = math.ceil((self.history_tokens + REPLY_TOKENS) * self.margin)
        self.whole_tokens += history_tokens
        self.whole_length += self.history_length
        self.whole_prefix += self._last_history_length
        self._last_history_length = self.history_length
        try:
            window = session.window()
        except BudgetError as error:
            self.budget_errors.append(
                BudgetFailure(call=self.calls, tokens=error.tokens, budget=error.budget, breakdown=error.breakdown)
            )
            return
        system = [] if window.system is None else [{"role": "system", "content": window.system}]
        prompt = self.meter.call([*system, *window.messages])
        self.tokens += window.tokens
        self.length += prompt.length
        self.prefix += prompt.prefix
        self.over_budget += max(prompt.tokens, window.tokens) > window.budget
        self.broken_pairs += prompt.broken_pairs
        if history_tokens > self.budget:
            self.verbatim.append(sum(window.breakdown[part] for part in ("active", "open", "recalled")))


def _append(session: memci.Session, said: Said) -> None:
    try:
        session.append(said.message, at=said.at)
    except (InvalidMessageError, ConfigError) as error:
        refuse(f"{said.place}: {error}")


def _shown(session: memci.Session) -> tuple[object, ...]:
    window = session.render(at=session.seq)
    return window.to_json(), window.breakdown, session.turn, session.contents, session.pages()


def _measurement(
    session: memci.Session,
    conversation: Sequence[Said],
    run: _Run,
    *,
    problems: tuple[str, ...],
    reopened_equal: bool,
) -> Measurement:
    prices, notices = session.config.prices, run.notices
    return Measurement(
        messages=len(conversation),
        turns=session.turn,
        calls=run.calls,
        pages=dict(sorted(Counter(str(facts.state) for facts in session.pages()).items())),
        folds=sum(isinstance(notice, Fold) for notice in notices),
        failed_folds=sum(isinstance(notice, FoldFailed) for notice in notices),
        evictions=sum(len(notice.pages) for notice in notices if isinstance(notice, Eviction)),
        recalls=sum(isinstance(notice, Recall) for notice in notices),
        over_budget=run.over_budget,
        broken_pairs=run.broken_pairs,
        unequal_messages=_unequal([said.message for said in conversation], list(_in_order(session))),
        reopened_equal=reopened_equal,
        problems=problems,
        budget_errors=tuple(run.budget_errors),
        traffic=Traffic(
            calls=run.calls - len(run.budget_errors),
            tokens=run.tokens,
            prefix_reuse=run.prefix / run.length if run.length else 0.0,
            prices=prices,
        ),
        whole_history=Traffic(
            calls=run.calls,
            tokens=run.whole_tokens,
            prefix_reuse=run.whole_prefix / run.whole_length if run.whole_length else 0.0,
            prices=prices,
        ),
        verbatim_tokens=sum(run.verbatim) / len(run.verbatim) if run.verbatim else None,
        budget=run.budget,
        contents_tokens=session.contents.tokens,
    )


def _in_order(session: memci.Session) -> Iterator[dict[str, Any]]:
    """Yield the stored messages in the order in which they came: a late result stands with its call in the page."""
    nodes = [node for facts in session.pages() for node in session.page(facts.index).nodes()]
    for node in sorted(nodes, key=lambda node: node.seq):
        yield node.message.value()


def _unequal(given: Sequence[object], stored: Sequence[object]) -> int:
    pairs = zip(map(_canonical, given), map(_canonical, stored), strict=False)
    return sum(one != other for one, other in pairs) + abs(len(given) - len(stored))


def _canonical(value: object) -> str:
    """Return JSON in which the order of keys does not matter, and 1, 1.0 and true are not the same."""
    return json.dumps(value, sort_keys=True)
