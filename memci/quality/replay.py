"""Feeding a conversation to a session as a chat backend would, and measuring every call."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import attrs

from memci.chapters.dates import utc_text
from memci.engine.core.monitor import Eviction, Fold, FoldFailed, Notice, Recall
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.settings.config import Config, Prices
from memci.errors import BudgetError, ConfigError, InvalidIdError, InvalidMessageError, shown
from memci.messages.formats import format as formats
from memci.messages.tokens.counter import get_counter
from memci.quality.conversation import SYSTEM_ROLES, read_document
from memci.quality.played import Calls
from memci.quality.playing import canonical
from memci.quality.prompt_meter import PromptMeter
from memci.quality.timestamp import iso_time

SPILL_HIGH_WATER, SPILL_LOW_WATER = 1.0, 0.999  # so near to each other that a fold takes about one page


@attrs.frozen
class Said:
    """One message of a conversation."""

    message: dict[str, Any]  # as the file holds it
    at: str | None  # when it was said, in ISO 8601 and UTC; ``None`` where the file does not tell
    place: str  # the file and the number of the message, for error texts


def read_conversation(paths: Sequence[Path]) -> tuple[list[Said], str | None]:
    """Return the messages of all files as one conversation, and its wire format where the first file tells it.

    Only the first file's system messages are taken. Beside ``messages`` may stand ``timestamps``, ``format`` and Anthropic's
    ``system``. Raises ConfigError if a file cannot be read, there is no message, or a timestamp is no time.
    """
    (wire, said), *others = map(_read, paths)
    said += [each for _, more in others for each in more if each.message.get("role") not in SYSTEM_ROLES]
    if not said:
        _refuse(paths[0], "there is no message in it")
    return said, wire


def _read(path: Path) -> tuple[str | None, list[Said]]:
    document = read_document(path)
    wire, messages, times = document.get("format"), document.get("messages"), document.get("timestamps")
    if wire is not None and wire not in formats.NAMES:
        _refuse(path, f"there is no wire format {shown(wire)}; there is {', '.join(formats.NAMES)}")
    if not isinstance(messages, list) or not isinstance(times, list | None):
        _refuse(path, 'it is no conversation: give {"messages": […]}, a list of messages, or a message a line')
    times = [None] * len(messages) if times is None else times
    if len(times) != len(messages):
        _refuse(path, f"{len(times)} timestamps for {len(messages)} messages: give one for each, or none")
    if document.get("system"):
        messages, times = [{"role": "system", "content": document["system"]}, *messages], [None, *times]
    dated = enumerate(zip(messages, times, strict=True), start=1)
    return wire, [_said(value, at, f"{path}: message {number}") for number, (value, at) in dated]


def _said(value: object, at: object, place: str) -> Said:
    if not isinstance(value, dict):
        _refuse(place, f"it is no JSON object, but a {type(value).__name__}")
    try:
        return Said(value, None if at is None else utc_text(iso_time(at)), place)
    except InvalidMessageError:
        _refuse(
            place,
            f"the timestamp {shown(at)} is not a time: give ISO 8601 text such as 2026-03-01T12:30:00+00:00, "
            "text such as 1:56 pm on 8 May, 2023, or null where it is not known",
        )


def _refuse(place: object, reason: str) -> NoReturn:
    raise ConfigError(reason, path=str(place))


@attrs.define(kw_only=True, eq=False)
class Measurement:
    """What a replay found; the fields but for the last four have their names in the JSON document."""

    messages: int = 0
    turns: int = 0
    calls: int = 0  # windows that were asked for, one before each answer
    pages: dict[str, int] = attrs.field(factory=dict)  # those at the end, by state
    folds: int = 0
    failed_folds: int = 0
    evictions: int = 0
    recalls: int = 0
    over_budget: int = 0  # windows above their budget, counted anew from what was rendered; a promise is that there is none
    broken_pairs: int = 0  # calls not followed at once by their result, and results without a call, over all windows
    unequal_messages: int = 0  # places at which the session gives back another message than went in
    reopened_equal: bool = False  # whether the session opened again shows the same window, contents page and pages
    problems: tuple[str, ...] = ()  # what verification found
    budget_errors: tuple[dict[str, Any], ...] = ()  # calls without a window: the smallest that could be made, and its parts
    contents_tokens: int = 0  # size of the contents page at the end
    budget: int  # what a window may hold
    prices: Prices
    sent: Calls = attrs.field(factory=Calls)  # what the windows sent; verbatim are active, open and recalled pages
    whole: Calls = attrs.field(factory=Calls)  # what sending all messages so far at every call would have sent

    @property
    def ok(self) -> bool:
        """Whether every promise held."""
        return self.reopened_equal and not (self.over_budget or self.broken_pairs or self.unequal_messages or self.problems)

    def to_mapping(self) -> dict[str, Any]:
        """Return it as a JSON value, without the whole history."""
        counts = attrs.asdict(self, filter=attrs.filters.exclude("budget", "prices", "sent", "whole"))
        verbatim = {"verbatim_tokens": self.sent.verbatim_tokens, "verbatim_share": self.sent.verbatim_share}
        return {"ok": self.ok, **counts, **self.traffic(self.sent), **verbatim}

    def traffic(self, calls: Calls) -> dict[str, float]:
        """Return what calls sent, at the prices of this replay, as a JSON value."""
        return {
            "tokens_sent": calls.tokens,
            "tokens_per_call": calls.tokens_per_call,
            "prefix_reuse": calls.prefix_reuse,
            "cost_per_call": calls.cost_per_call(self.prices),
        }


def spill(config: Config) -> Config:
    """Return the settings with marks that let one page spill at a time, as soon as the window is full."""
    return attrs.evolve(config, active=attrs.evolve(config.active, high_water=SPILL_HIGH_WATER, low_water=SPILL_LOW_WATER))


def replay(
    engine: Engine, session_id: str, conversation: Sequence[Said], advance: Callable[[], None] = lambda: None
) -> Measurement:
    """Append a conversation to a new session, asking for a window before each answer, and measure it.

    *advance* is called after each message. Raises InvalidMessageError or ConfigError, with its place, if a message is refused,
    and InvalidIdError if the session has messages already.
    """
    config = engine.config
    meter = PromptMeter(get_counter(config.counter), formats.get(config.format), config.budget.tokens)
    notices: list[Notice] = []
    found = Measurement(budget=config.budget.tokens, prices=config.prices)
    with engine.session(session_id) as session:
        if session.seq:
            message = f"session {shown(session_id)} has messages already: name a new one with --session"
            raise InvalidIdError(message, value=session_id)
        session.observe(notices.append)
        for said in conversation:
            if meter.opens_answer(said.message):
                found.calls += 1
                try:
                    _call(session, meter)
                except BudgetError as error:
                    facts = {"tokens": error.tokens, "budget": error.budget, "breakdown": error.breakdown}
                    found.budget_errors += ({"call": found.calls, **facts},)
            try:
                session.append(said.message, at=said.at)
            except (InvalidMessageError, ConfigError) as error:
                raise type(error)(str(error), path=said.place) from error
            meter.added(said.message)
            advance()
        found.problems = session.verify().problems
        before = _shown(session)
    with engine.session(session_id) as session:
        found.reopened_equal = before == _shown(session)
        found.messages, found.turns = len(conversation), session.turn
        found.contents_tokens = session.contents.tokens
        found.pages = dict(sorted(Counter(str(facts.state) for facts in session.pages()).items()))
        found.unequal_messages = _unequal([said.message for said in conversation], session)
    found.sent, found.whole = meter.calls, meter.whole
    found.over_budget, found.broken_pairs = meter.faults.over_budget, meter.faults.broken_pairs
    kinds = Counter(map(type, notices))
    found.folds, found.failed_folds, found.recalls = kinds[Fold], kinds[FoldFailed], kinds[Recall]
    found.evictions = sum(len(notice.pages) for notice in notices if isinstance(notice, Eviction))
    return found


def _call(session: Session, meter: PromptMeter) -> None:
    meter.begin_call()
    window = session.window()
    system = [] if window.system is None else [{"role": "system", "content": window.system}]
    prompt = meter.call([*system, *window.messages], window.tokens)
    meter.sent(prompt, window.tokens, sum(window.breakdown[part] for part in ("active", "open", "recalled")))


def _shown(session: Session) -> tuple[object, ...]:
    window = session.render(at=session.seq)
    return window.to_json(), window.breakdown, session.turn, session.contents, session.pages()


def _unequal(given: Sequence[object], session: Session) -> int:
    """Count the messages that are not stored as they came, and in their order: a late result stands with its call in the page."""
    nodes = [node for facts in session.pages() for node in session.page(facts.index).nodes()]
    stored = [node.message.value() for node in sorted(nodes, key=lambda node: node.seq)]
    pairs = zip(map(canonical, given), map(canonical, stored), strict=False)
    return sum(one != other for one, other in pairs) + abs(len(given) - len(stored))
