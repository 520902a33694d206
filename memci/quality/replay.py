"""Feeding a conversation to a session as a chat backend would, and measuring every call."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import attrs

from memci.archive.summarizers.external.extension import Part, extension
from memci.archive.summarizers.external.model import prompt
from memci.archive.summarizers.summary import SentWindow
from memci.chapters.dates import utc_text
from memci.chapters.page import Page
from memci.engine.commands.appending import note_answer
from memci.engine.commands.window import Window
from memci.engine.core.monitor import Eviction, Fold, FoldFailed, Notice, Recall
from memci.engine.engine import Engine
from memci.engine.history.state import SYSTEM
from memci.engine.session import Session
from memci.engine.settings.config import Config, Prices
from memci.engine.summaries.summarizing import LEAST_TOKENS, MOST_TOGETHER
from memci.errors import BudgetError, ConfigError, InvalidIdError, InvalidMessageError, shown
from memci.messages.formats import format as formats
from memci.messages.formats.format import SYSTEM_ROLES
from memci.messages.message import Message
from memci.messages.tokens.counter import TokenCounter, get_counter
from memci.messages.tokens.message_tokens import REPLY_TOKENS, count_message
from memci.quality.conversation import GOES_ON, Conversation, joined, read_document
from memci.quality.conversation import read_conversation as read_asking
from memci.quality.played import ANSWER_TOKENS, Calls, Needs, Summaries
from memci.quality.playing import canonical
from memci.quality.prompt_meter import PromptMeter
from memci.quality.timestamp import iso_time

_NO_WINDOW = SentWindow(
    seq=0, at=datetime.min.replace(tzinfo=UTC), format="openai", tokens=0, raws=(), system=b"null", tools=b"[]", pages={}
)

SPILL_HIGH_WATER, SPILL_LOW_WATER = 1.0, 0.999  # so near to each other that a fold takes about one page


@attrs.frozen
class Said:
    """One message of a conversation."""

    message: dict[str, Any]  # as the file holds it
    at: str | None  # when it was said, in ISO 8601 and UTC; ``None`` where the file does not tell
    place: str  # the file and the number of the message, for error texts
    attp: bool = False  # whether it is known to be an answer of ATTP, though its role is the user's


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


def read_asked(paths: Sequence[Path], said: list[Said]) -> tuple[list[Said], Conversation | None]:
    """Return the messages of files and the same with what is asked of them at their end; ``None`` where nothing is.

    Needs are those of the last file, and with them the user wants more at the end. ``ConfigError`` where questions or needs
    cannot be used.
    """
    if not any(document.get("questions") or document.get("needs") for document in map(read_document, paths)):
        return said, None
    several = [read_asking(path) for path in paths]
    asked = attrs.evolve(joined(several) if len(paths) > 1 else several[0], needs=several[-1].needs)
    if asked.needs:
        more = {"role": "user", "content": GOES_ON}
        asked = attrs.evolve(asked, messages=(*asked.messages, more), times=(*asked.times, None))
        said = [*said, Said(more, None, "the end")]
    return said, asked


def stored(session: Session) -> list[Said]:
    """Return the messages of a session as a conversation: its system part, and all others in the order in which they came.

    O(messages), which it holds all at once.
    """
    pages = [session.page(facts.index) for facts in session.pages()]
    system = [node for page in pages if page.index.startswith(f"{SYSTEM}-") for node in page.nodes()]
    others = [node for page in pages if not page.index.startswith(f"{SYSTEM}-") for node in page.nodes()]
    nodes = [*system, *sorted(others, key=lambda node: node.seq)]
    said = []
    for number, node in enumerate(nodes, start=1):
        message = node.message
        attp = message.role == "user" and not message.from_user and not message.answers
        said.append(Said(message.value(), node.at, f"message {number}", attp))
    return said


def requested(session: Session) -> int:
    """Return how many tokens of tools and extra texts the last calls of a session carried beside its messages, at most."""
    with session._open() as core:  # noqa: SLF001 (no handle tells it)
        return core.state.carried_tokens()


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
    """What a replay found; the fields but for the last five have their names in the JSON document."""

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
    contents_tokens: int = 0  # size of the contents page at the end, where windows show it
    at_page: float | None = None  # of the answers, the share that the last window shows at their pages; None without questions
    needs: float | None = None  # of what was needed after the end, the share that stands in the last window; None without needs
    budget: int  # what a window may hold
    prices: Prices
    sent: Calls = attrs.field(factory=Calls)  # what the windows sent; verbatim are active, open and recalled pages
    summaries: Summaries = attrs.field(factory=Summaries)  # what a model would be asked of the pages that folded
    whole: Calls = attrs.field(factory=Calls)  # what sending all messages so far at every call would have sent

    @property
    def ok(self) -> bool:
        """Whether every promise held."""
        return self.reopened_equal and not (self.over_budget or self.broken_pairs or self.unequal_messages or self.problems)

    def to_mapping(self) -> dict[str, Any]:
        """Return it as a JSON value, without the whole history."""
        counts = attrs.asdict(self, filter=attrs.filters.exclude("budget", "prices", "sent", "summaries", "whole"))
        verbatim = {"verbatim_tokens": self.sent.verbatim_tokens, "verbatim_share": self.sent.verbatim_share}
        calls, made = max(self.sent.calls, 1), self.summaries
        costs = {"summaries_cost": made.own_cost / calls, "window_summaries_cost": made.window_cost(self.prices) / calls}
        return {"ok": self.ok, **counts, **self.traffic(self.sent), "summarised_pages": made.pages, **costs, **verbatim}

    def traffic(self, calls: Calls) -> dict[str, float]:
        """Return what calls sent, at the prices of this replay, as a JSON value."""
        return {
            "tokens_sent": calls.tokens,
            "tokens_per_call": calls.tokens_per_call,
            "prefix_reuse": calls.prefix_reuse,
            "cost_per_call": calls.cost_per_call(self.prices),
        }


class SummaryMeter:
    """Measures what a model would be asked of the pages that a session folds or trims, each with the last window before that."""

    def __init__(self, session: Session, counter: TokenCounter) -> None:
        self.summaries = Summaries()
        self._session, self._counter = session, counter
        self._window: Window | None = None
        self._known = 0  # notices that were taken in
        self._seq = 0  # up to which it is known what was shown in part
        self._left: set[str] = set()  # pages that left the window, or were trimmed
        self._stubs: set[int] = set()  # seqs of messages that were shown as stubs

    def called(self, window: Window) -> None:
        """Take in that a window was sent."""
        self._window = window

    def heard(self, notices: Sequence[Notice]) -> None:
        """Take in the notices of the session so far: each new one of a fold. O(new ones, and the pages that folded)."""
        for notice in islice(notices, self._known, None):
            if isinstance(notice, Fold):
                self._folded(notice.pages)
        self._known = len(notices)

    def _folded(self, indexes: Sequence[str]) -> None:
        left = dict.fromkeys(indexes)
        for event in self._session.events(after=self._seq):
            self._seq = event.seq
            left |= dict.fromkeys(event.data["results"] if event.kind == "trimmed" else ())
            self._stubs.update(event.data["stubs"] if event.kind == "settled" else ())
        found = [self._session.page(index) for index in left if index not in self._left]
        self._left |= left.keys()
        pages = [page for page in found if page.tokens >= LEAST_TOKENS]
        shown = [page for page in pages if self._is_shown(page)]
        alone = {page.index: self._alone(page) for page in pages}
        requests = math.ceil(len(shown) / MOST_TOGETHER)
        batches = (shown[start : start + MOST_TOGETHER] for start in range(0, len(shown), MOST_TOGETHER))
        self.summaries += Summaries(
            pages=len(pages),
            alone=sum(alone.values()),
            cached=requests * (self._window.tokens if self._window is not None else 0),
            new=sum(map(self._asked, batches)) + sum(alone[page.index] for page in pages if page not in shown),
        )

    def _is_shown(self, page: Page) -> bool:
        """Return whether the last window showed a page whole."""
        is_late = self._window is None or page.tail is None or page.tail.seq > self._window.seq
        return not is_late and self._stubs.isdisjoint(node.seq for node in page.nodes())

    def _alone(self, page: Page) -> int:
        request = prompt(_messages(page), ANSWER_TOKENS)
        return REPLY_TOKENS + sum(count_message(message, self._counter) for message in request)

    def _asked(self, pages: Sequence[Page]) -> int:
        parts = [Part(index=page.index, messages=_messages(page), max_tokens=ANSWER_TOKENS) for page in pages]
        return count_message(extension(_NO_WINDOW, parts).messages[-1], self._counter)


def _messages(page: Page) -> list[Message]:
    return [node.message for node in page.nodes()]


def spill(config: Config) -> Config:
    """Return the settings with marks that let one page spill at a time, as soon as the window is full."""
    return attrs.evolve(config, active=attrs.evolve(config.active, high_water=SPILL_HIGH_WATER, low_water=SPILL_LOW_WATER))


def replay(  # noqa: PLR0913 (what is played, and how)
    engine: Engine,
    session_id: str,
    conversation: Sequence[Said],
    advance: Callable[[], None] = lambda: None,
    asked: Conversation | None = None,
    *,
    tools: int = 0,
) -> Measurement:
    """Append a conversation to a new session, asking for a window before each answer, and measure it.

    *advance* is called after each message; what is *asked* is looked for in a window at the end. Each call is counted
    with *tools*, a number of tokens for which the engine's settings keep room. Raises InvalidMessageError or
    ConfigError, with its place, if a message is refused, and InvalidIdError if the session has messages already.
    """
    config = engine.config
    counter = get_counter(config.counter)
    meter = PromptMeter(counter, formats.get(config.format), config.budget.tokens + tools, tools=tools)
    notices: list[Notice] = []
    found, numbers = Measurement(budget=config.budget.tokens + tools, prices=config.prices), dict[int, int]()
    with engine.session(session_id) as session:
        if session.seq:
            message = f"session {shown(session_id)} has messages already: name a new one with --session"
            raise InvalidIdError(message, value=session_id)
        session.observe(notices.append)
        summaries = SummaryMeter(session, counter)
        for said in conversation:
            if meter.opens_answer(said.message):
                found.calls += 1
                try:
                    window = _call(session, meter)
                    summaries.heard(notices)
                    summaries.called(window)
                except BudgetError as error:
                    facts = {"tokens": error.tokens, "budget": error.budget, "breakdown": error.breakdown}
                    found.budget_errors += ({"call": found.calls, **facts},)
            if said.attp:
                with session._open() as core:  # noqa: SLF001 (``session.attp`` would carry a reply out)
                    note_answer(core, said.message)
            try:
                entry = session.append(said.message, at=said.at)
            except (InvalidMessageError, ConfigError) as error:
                raise type(error)(str(error), path=said.place) from error
            numbers[entry.node.seq] = len(numbers)
            meter.added(said.message)
            summaries.heard(notices)
            advance()
        if asked is not None:
            _look(session, asked, numbers, found)
        found.problems = session.verify().problems
        before = _shown(session)
    with engine.session(session_id) as session:
        found.reopened_equal = before == _shown(session)
        found.messages, found.turns = len(conversation), session.turn
        found.contents_tokens = session.contents.tokens if session.config.contents.listed else 0
        found.pages = dict(sorted(Counter(str(facts.state) for facts in session.pages()).items()))
        found.unequal_messages = _unequal([said.message for said in conversation], session)
    found.sent, found.whole, found.summaries = meter.calls, meter.whole, summaries.summaries
    found.over_budget, found.broken_pairs = meter.faults.over_budget, meter.faults.broken_pairs
    kinds = Counter(map(type, notices))
    found.folds, found.failed_folds, found.recalls = kinds[Fold], kinds[FoldFailed], kinds[Recall]
    found.evictions = sum(len(notice.pages) for notice in notices if isinstance(notice, Eviction))
    return found


def side_by_side(
    strategies: Mapping[str, Config],
    conversation: Sequence[Said],
    advance: Callable[[], None] = lambda: None,
    asked: Conversation | None = None,
    *,
    tools: int = 0,
) -> dict[str, Measurement]:
    """Return what a conversation is under each of some settings, as ``replay`` measures it in memory.

    A window beside tools of a number of tokens is as a window that is smaller by them.
    """
    measured = {}
    for name, settings in strategies.items():
        budget = attrs.evolve(settings.budget, reserve=min(settings.budget.reserve + tools, settings.budget.window - 1))
        with Engine("memory:", attrs.evolve(settings, budget=budget)) as engine:
            measured[name] = replay(engine, "replay", conversation, advance, asked, tools=tools)
    return measured


def _call(session: Session, meter: PromptMeter) -> Window:
    meter.begin_call()
    window = session.window()
    system = [] if window.system is None else [{"role": "system", "content": window.system}]
    prompt = meter.call([*system, *window.messages], window.tokens)
    meter.sent(prompt, window.tokens, sum(window.breakdown[part] for part in ("active", "open", "recalled")))
    return window


def _look(session: Session, asked: Conversation, numbers: Mapping[int, int], found: Measurement) -> None:
    """Look for what is asked in the window at the end; where none fits, it shows nothing."""
    from memci.quality.engines import pages_of  # noqa: PLC0415 (for those who ask)
    from memci.quality.scoring.evidence import find_evidence, find_needs  # noqa: PLC0415 (as above: it loads a database)

    try:
        window = session.window().messages
    except BudgetError:
        window = []
    evidence, needs = find_evidence(asked, window, pages_of(session, numbers)), Needs.of(find_needs(asked, window).values())
    found.at_page = evidence.at_page / evidence.questions if evidence.questions else None
    found.needs = needs.met / needs.asked if needs.asked else None


def _shown(session: Session) -> tuple[object, ...]:
    window = session.render(at=session.seq)
    return window.to_json(), window.breakdown, session.turn, session.contents, session.pages()


def _unequal(given: Sequence[object], session: Session) -> int:
    """Count the messages that are not stored as they came, and in their order: a late result stands with its call in the page."""
    nodes = [node for facts in session.pages() for node in session.page(facts.index).nodes()]
    stored = [node.message.value() for node in sorted(nodes, key=lambda node: node.seq)]
    pairs = zip(map(canonical, given), map(canonical, stored), strict=False)
    return sum(one != other for one, other in pairs) + abs(len(given) - len(stored))
