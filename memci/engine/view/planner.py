"""Which pages fold or are trimmed, and when: pure functions of the state."""

import math
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Protocol

import attrs

from memci.chapters.page import MessageNode, Page
from memci.engine.history.state import USER, State
from memci.engine.settings.config import Config
from memci.engine.view.layout import Lay, Layout, lay_out, lay_out_least, stubbed
from memci.errors import ConfigError

# With ``low_water`` and ``contents.max_tokens`` at ``auto``: what verbatim pages have on average of the budget, and by which
# share of that they are more before a fold and less after it; of short pages, as in talk, and of long ones, as of agents.
VERBATIM_SHARES, SWING_SHARES = (0.385, 0.475), (0.3, 0.45)
SHORT_TOKENS, LONG_TOKENS = 100, 400  # mean sizes of pages that are called so
LEAST_CONTENTS_SHARE = 0.13  # of the room beside the system part, which the contents page may take in any case
LEAST_GAP_SHARE = 0.1  # of the room of verbatim pages: the gap between the marks

NEAR_SHARE = 0.5  # of the high marks, from where on a fold is near
TRIM_SHARE = 0.1  # of the budget: what trimming frees at least, as it costs words that were in view
LONG_FACTOR = 2  # a result is trimmed that has so many times the tokens of its stub

OPEN_PAGE_SHARE = 0.25  # share of the budget at which the open page is cut, where ``active.page_tokens`` is more than that

_RESULTS = ("tool", "function")


@attrs.frozen(kw_only=True)
class FoldPlan:
    """What is to fold, and what else makes room."""

    pages: tuple[str, ...]  # oldest first; empty for nothing
    trimmed: tuple[str, ...] = ()  # pages that stay, and whose long results are shown in part from then on
    reason: str
    contents_tokens: int | None = None  # to which the contents page shrinks if that evicts nothing; None for its usual limit


class Planner(Protocol):
    """Decides which pages fold when a page was opened: a pure function of what it is given, which it must not change."""

    def plan(self, state: State, config: Config) -> FoldPlan:
        """Return what is to fold; pages that are open, or wait for a result, cannot."""
        ...


_NOTHING = FoldPlan(pages=(), reason="marks")


def plan(state: State, config: Config, lay: Lay = lay_out) -> FoldPlan:
    """Return what the marks ask for, by the configured budget. O(1) well below them, else a layout, which *lay* gives."""
    active, budget = config.active, config.budget.tokens
    high = active.high_water * budget
    over_pages = active.max_pages is not None and len(state.active) > active.max_pages
    if not over_pages and _raw_tokens(state) <= high:
        return _NOTHING
    settled = state.settled
    if settled is not None:  # what has to be a stub in a window drives nothing out
        _, settled = stubbed(state, attrs.evolve(settled, budget=budget, excerpts={}), lay_out_least)
    layout = lay(state, settled)
    is_over = own_tokens(state, layout) > high
    if not over_pages and not is_over:
        return _NOTHING
    most = active.min_pages if over_pages else len(state.active)
    goal = low_mark(state, config, layout, budget) if is_over else math.inf
    layout = _trimmed(state, config, layout, goal, budget)
    return _planned(layout, _oldest(state, config, layout, goal, most), reason="marks")


def planned_by(planner: Planner, state: State, config: Config) -> FoldPlan:
    """Return the plan of somebody's planner, or raise ``ConfigError`` for what is none. O(visible), and what it does."""
    found: object = planner.plan(state, config)
    if not isinstance(found, FoldPlan):
        message = f"a planner returns a FoldPlan, not a {type(found).__name__}"
        raise ConfigError(message, path="planner")
    complete = {page.index for page in state.active.pages() if _is_complete(state, page)}
    if wrong := [index for index in found.pages if index not in complete]:
        message = f"it wants to fold {', '.join(map(str, wrong))}: only complete pages in view fold"
        raise ConfigError(message, path="planner")
    return found


def nears_fold(state: State, config: Config) -> bool:
    """Return whether the marks may ask for a fold before long. O(attached)."""
    active = config.active
    nears_pages = active.max_pages is not None and len(state.active) > NEAR_SHARE * active.max_pages
    return nears_pages or _raw_tokens(state) > NEAR_SHARE * active.high_water * config.budget.tokens


def next_folded(state: State, config: Config) -> Iterator[Page]:
    """Yield the pages that the next fold at the marks takes, about, oldest first, where it is near. O(pages that it yields)."""
    active, budget = config.active, config.budget.tokens
    if not nears_fold(state, config):
        return
    if isinstance(active.low_water, str):
        verbatim, swing = _shares(state)
        most = 1.3 * max(2 * swing * verbatim, LEAST_GAP_SHARE) * budget
    else:
        most = (active.high_water - active.low_water) * budget
    pages = 0 if active.max_pages is None else active.max_pages + 1 - active.min_pages
    for place, page in enumerate(state.active.pages()):
        if page is state.active.open_page or (most <= 0 and place >= pages):
            return
        if not page.open_calls:
            yield page
            most -= page.tokens * state.scale


def plan_command(state: State, config: Config, pages: Collection[str] | None, lay: Lay = lay_out) -> FoldPlan:
    """Return what a command asks for: down to the low marks for ``None``, else those of the named pages that are complete."""
    if pages is not None:
        named = tuple(page.index for page in state.active.pages() if page.index in pages and _is_complete(state, page))
        return FoldPlan(pages=named, reason="command")
    layout = lay(state, state.settled)
    low = low_mark(state, config, layout, config.budget.tokens)
    most = config.active.min_pages if config.active.max_pages is not None else len(state.active)
    layout = _trimmed(state, config, layout, low, config.budget.tokens)
    return _planned(layout, _oldest(state, config, layout, low, most), reason="command")


def plan_budget(state: State, config: Config, layout: Layout, budget: int) -> FoldPlan:
    """Return what makes room for a window: down to the low mark of its budget, and past the floor where that is not enough.

    Recalled pages bring no fold to the low mark forward: where it is only they that do not fit, the oldest pages make room for
    the share that recalled pages may have, and no more. The contents page then takes none of it: it does not grow.
    """
    contents, spared, goal = None, 0, float(budget)
    if own_tokens(state, layout) > budget:
        goal = low_mark(state, config, layout, budget)
    elif state.recalled.attachments:
        now = state.archive.contents.tokens
        contents = min(now, int(config.contents.low_share * contents_limit(state, config, config.budget.tokens)))
        spared = math.floor((now - contents) * state.scale)
        goal = budget * (1 - config.recall.max_share) + spared
    layout = _trimmed(state, config, layout, goal, budget)
    folded = set(_oldest(state, config, layout, goal, len(state.active)))
    left = layout.tokens - spared - _stale_tokens(state, layout) - sum(layout.page(index) for index in folded)
    for page in state.active.pages():
        if left <= budget or page is state.active.open_page:
            break
        if page.index not in folded:
            folded.add(page.index)
            left -= layout.page(page.index)
    order = (page.index for page in state.active.pages() if page.index in folded)
    return attrs.evolve(_planned(layout, order, reason="budget"), contents_tokens=contents)


def next_budget(state: State, config: Config) -> int:
    """Return the budget of the next window, as far as it is known: that of the last one, or else the configured one."""
    return config.budget.tokens if state.settled is None else state.settled.budget


def own_tokens(state: State, layout: Layout) -> int:
    """Return the size of a window without recalled pages, and without what opened a turn that ended: the next fold drops it."""
    pages = sum(attachment.tokens for attachment in state.recalled.attachments.values())
    return layout.tokens - math.ceil(pages * layout.scale) - _stale_tokens(state, layout)


def _stale_tokens(state: State, layout: Layout) -> int:
    """Return the size of what the next fold takes away for nothing: the opening of a turn that ended, and its passages."""
    opening, said = state.opening, state.open_seqs() if state.recalled.quotes else ()
    quotes = sum(quotes.tokens for seq, quotes in state.recalled.quotes.items() if seq not in said)
    stale = layout.page(opening.index) if opening is not None and opening.index != state.turn_page else 0
    return stale + math.floor(quotes * layout.scale)


def low_mark(state: State, config: Config, layout: Layout, budget: int) -> float:
    """Return the low mark for a budget, in tokens of a whole window.

    With ``low_water: auto`` the gap up to the high mark is the cheapest: folding makes the provider write the L tokens that stay
    verbatim, and the C tokens of the contents page, to its cache again, and a gap of G tokens is read G/2 times over on average,
    so that for t new tokens a call G = sqrt(k·(L + C)) with k = 2·(w-r)/r·t. L and G share the room H that the other parts
    leave, L + G = H, which makes G = (sqrt(k² + 4·k·(H + C)) - k) / 2. It is no wider than verbatim pages may swing.
    """
    high = config.active.high_water * budget
    low_water = config.active.low_water
    if not isinstance(low_water, str):
        return low_water * budget
    contents = layout.breakdown["contents"] + layout.breakdown["working"]
    room = max(high - contents - sum(layout.breakdown[part] for part in ("system", "tools", "reply")), 0.0)
    prices = config.prices
    factor = 2 * (prices.write - prices.read) / prices.read * state.traffic.tokens_per_call * state.scale
    cheapest = (math.sqrt(factor**2 + 4 * factor * (room + contents)) - factor) / 2
    verbatim, swing = _shares(state)
    widest = 2 * min(swing * verbatim * budget, room - verbatim * budget)
    return high - min(cheapest, max(widest, LEAST_GAP_SHARE * room))


def contents_limit(state: State, config: Config, budget: int) -> int:
    """Return how many tokens the contents page's entries may hold: with ``auto``, what verbatim pages leave at their most."""
    limit = config.contents.max_tokens
    if not isinstance(limit, str):
        return limit
    room = max(budget - math.ceil((state.system.tokens + state.instruction_tokens) * state.scale), 0)
    verbatim, swing = _shares(state)
    return int(max(room - (1 + swing) * verbatim * budget, LEAST_CONTENTS_SHARE * room))


def _shares(state: State) -> tuple[float, float]:
    """Return what verbatim pages have of a budget on average, and how far that swings, by the mean size of the pages so far."""
    size = state.traffic.tokens / max(state.next_number[USER] - 1, 1)
    place = min(max((size - SHORT_TOKENS) / (LONG_TOKENS - SHORT_TOKENS), 0.0), 1.0)
    (short, long), (narrow, wide) = VERBATIM_SHARES, SWING_SHARES
    return short + place * (long - short), narrow + place * (wide - narrow)


def entry_room(limit: int, page_tokens: int) -> int:
    """Return how many tokens an entry's lines may hold: a quarter of the page, but a 24th of the contents page at most."""
    return max(16, min(page_tokens // 4, limit // 24))


def cut_tokens(config: Config) -> int:
    """Return the size at which the open page is cut."""
    return max(1, min(config.active.page_tokens, int(OPEN_PAGE_SHARE * config.budget.tokens)))


def _raw_tokens(state: State) -> float:
    """Return the size of the window with no entry shown as a stub, without what stands for missing results. O(attached)."""
    tokens = state.system.tokens + state.instruction_tokens + state.archive.tokens + state.working.tokens + state.active.tokens
    tokens += sum(attachment.tokens for attachment in state.recalled.attachments.values())
    tokens += sum(quotes.tokens for quotes in state.recalled.quotes.values())
    tokens += sum(node.tokens for node in state.opening.nodes()) if state.opening else 0
    tokens += state.settled.tools_tokens if state.settled else 0
    return tokens * state.scale


def _planned(layout: Layout, folded: Iterable[str], *, reason: str) -> FoldPlan:
    pages = tuple(folded)
    return FoldPlan(pages=pages, trimmed=tuple(index for index in layout.spared if index not in pages), reason=reason)


def long_results(state: State, page: Page) -> Iterator[tuple[int, MessageNode]]:
    """Yield the results in a page that can be trimmed, long ones that have their message, each with its position. O(entries)."""
    stubs = state.settled.stubs if state.settled is not None else ()
    for position, node in enumerate(page.nodes(), start=1):
        is_whole = not node.trimmed and node.seq not in stubs and bool(node.message.answers)
        if node.message.speaker in _RESULTS and is_whole and 0 < LONG_FACTOR * node.stub_tokens <= node.tokens:
            yield position, node


def _trimmed(state: State, config: Config, layout: Layout, goal: float, budget: int) -> Layout:
    """Return about what is left when complete pages are trimmed, the oldest first, until *goal* tokens are. O(visible).

    The last n pages are not, and where all others would bring too little, none is. Trimming costs nothing beside the folds that
    it is done in the place of: window and cache go down to the same mark.
    """
    over = own_tokens(state, layout) - goal
    spared = dict[str, int]()
    most = max(len(state.active) - config.active.min_pages, 0) if over > 0 else 0
    for page in islice(state.active.pages(), most):
        if _is_complete(state, page):
            tokens = sum(node.tokens - node.stub_tokens for _, node in long_results(state, page))
            spared[page.index] = math.floor(tokens * state.scale)
    if sum(spared.values()) < TRIM_SHARE * budget:
        return layout
    needed = dict[str, int]()
    for index, tokens in spared.items():
        if tokens and sum(needed.values()) < over:
            needed[index] = tokens
    return attrs.evolve(layout, tokens=layout.tokens - sum(needed.values()), spared=needed)


def _oldest(state: State, config: Config, layout: Layout, goal: float, most: int) -> Iterator[str]:
    """Yield complete pages, oldest first, until at most *most* pages and *goal* tokens are left, and never the last n."""
    left, tokens = len(state.active), own_tokens(state, layout)
    for page in islice(state.active.pages(), max(left - config.active.min_pages, 0)):
        if left <= most and tokens <= goal:
            return
        if _is_complete(state, page):
            yield page.index
            left -= 1
            tokens -= layout.page(page.index)


def _is_complete(state: State, page: Page) -> bool:
    return page is not state.active.open_page and not page.open_calls
