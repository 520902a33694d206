"""Which pages fold or are trimmed, and when: pure functions of the state."""

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Any, NamedTuple, Protocol

import attrs

from memci.archive.contents.contents_page import ContentsEntry
from memci.chapters.address import page_number
from memci.chapters.page import MessageNode, Page, Run
from memci.engine.history.state import RULE, USER, State
from memci.engine.settings.config import Active, Config
from memci.engine.view.layout import Lay, Layout, lay_out, lay_out_least, stubbed
from memci.errors import ConfigError, is_line, shown

# With ``low_water`` and ``contents.max_tokens`` at ``auto``: what verbatim pages have on average of the budget, and by which
# share of that they are more before a fold and less after it; of short pages, as in talk, and of long ones, as of agents.
VERBATIM_SHARES, SWING_SHARES = (0.385, 0.475), (0.3, 0.45)
SHORT_TOKENS, LONG_TOKENS = 100, 400  # mean sizes of pages that are called so
LARGE_SHARE, LARGE_FACTOR = 0.25, 1.5  # of the budget: a page that is shown in part rather than folded; times what has to go
# By how many times a conversation is as long as the budget it counts as longer, and as long (``memci bench quality``, beam).
LONG_HISTORY = 4, 16
LONG_HISTORY_SHARE = 0.6  # of the verbatim share, which is left then
LEAST_VERBATIM_TOKENS = 5_000  # which a long conversation does not go below for that
LEAST_CONTENTS_SHARE = 0.13  # of the room beside the system part, which the contents page may take in any case
LEAST_GAP_SHARE = 0.1  # of the room of verbatim pages: the gap between the marks

NEAR_SHARE = 0.5  # of the high marks, from where on a fold is near
CLOSE_SHARE = 0.85  # from where on hardly a page comes any more that the next fold takes
TRIM_SHARE = 0.1  # of the budget: what trimming frees at least, as it costs words that were in view
LONG_FACTOR = 2  # a result is trimmed that has so many times the tokens of its stub

# Share of the budget at which the open page is cut, where ``active.page_tokens`` is more. It is to come back whole: recalled
# pages may have 0.25, and a cut page is larger by what was said last, its block by a heading. Of agents' pages, at a budget of
# 8,000, 32% fit that when they are cut at 0.25, 62% at 0.18, and 74% at 0.125, which shows fewer words as they were said.
OPEN_PAGE_SHARE = 0.18

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


class _Goal(NamedTuple):
    """Down to how many tokens of the window, and pages, messages and calls in view, the oldest pages fold."""

    tokens: float = math.inf
    pages: float = math.inf
    messages: float = math.inf
    calls: float = math.inf
    kept: int = 0  # newest messages that stay where it is not the tokens that are too many


_NOTHING = FoldPlan(pages=(), reason="marks")


def plan(state: State, config: Config, lay: Lay = lay_out) -> FoldPlan:
    """Return what levels and marks ask for, by the configured budget. O(1) well below the marks, else a layout, by *lay*.

    With ``active.max_calls``, ``levels.trimmed`` or ``levels.lines`` what is in view is looked at: O(visible).
    """
    budget, high = config.budget.tokens, high_mark(state, config, config.budget.tokens)
    goal, levels = _fired(state, config), config.levels
    far = _NOTHING if levels.trimmed is None and levels.lines is None else _far(state, config)
    if goal is None and _raw_tokens(state) + request_tokens(state) <= high:
        return far
    settled = state.settled
    if settled is not None:  # what has to be a stub in a window drives nothing out
        _, settled = stubbed(state, attrs.evolve(settled, budget=budget, excerpts={}), lay_out_least)
    layout = _without(state, lay(state, settled), far)
    if own_tokens(state, layout) > high:
        goal = (goal or _Goal())._replace(tokens=low_mark(state, config, layout, budget))
    if goal is None:
        return far
    layout = _trimmed(state, config, layout, goal.tokens, conversation_budget(state, budget))
    folded = {*far.pages, *_oldest(state, config, layout, goal, far.pages)}
    return _planned(layout, (page.index for page in state.active.pages() if page.index in folded), reason="marks")


def planned_by(planner: Planner, state: State, config: Config) -> FoldPlan:
    """Return the plan of somebody's planner, or raise ``ConfigError`` for what is none. O(visible), and what it does."""
    found: object = planner.plan(state, config)
    if not isinstance(found, FoldPlan):
        message = f"a planner returns a FoldPlan, not a {type(found).__name__}"
        raise ConfigError(message, path="planner")
    if problem := _problem(state, found):
        raise ConfigError(problem, path="planner")
    if not state.kept:
        return found
    passed_by = held(state, config)
    pages, trimmed = ([index for index in named if index not in passed_by] for named in (found.pages, found.trimmed))
    return attrs.evolve(found, pages=tuple(pages), trimmed=tuple(trimmed))


def _problem(state: State, plan: Any) -> str:  # noqa: ANN401 (its fields may hold anything)
    """Return why somebody's plan cannot be carried out and noted; empty where it can. O(pages in view)."""
    if not (isinstance(plan.pages, tuple | list) and isinstance(plan.trimmed, tuple | list)):
        return "pages and trimmed of a FoldPlan are tuples of page indexes"
    complete = [page.index for page in state.active.pages() if _is_complete(state, page)]
    named = [*plan.pages, *plan.trimmed]
    if wrong := [shown(index) for index in named if index not in complete]:
        return f"it wants to fold or to trim {', '.join(wrong)}: only complete pages in view can"
    if len(set(named)) < len(named):
        return "it names a page twice: a page folds once, or it is trimmed"
    if not is_line(plan.reason):
        return f"its reason is {shown(plan.reason)}: give a short line of text"
    if plan.contents_tokens is not None and (type(plan.contents_tokens) is not int or plan.contents_tokens < 0):
        return f"its contents_tokens are {shown(plan.contents_tokens)}: give a whole number from 0, or None"
    return ""


def nears_fold(state: State, config: Config, share: float = NEAR_SHARE) -> bool:
    """Return whether a *share* of a mark is reached, and it may ask for a fold before long. O(attached), see ``_fired``."""
    high = config.active.high_water * conversation_budget(state, config.budget.tokens)
    is_near = _raw_tokens(state) > share * high
    return is_near or _fired(state, config, share) is not None


def next_folded(state: State, config: Config) -> Iterator[Page]:
    """Yield the pages that the next folds take, about, oldest first, where they are near. O(pages that it yields).

    With ``levels.lines`` O(pages in view).
    """
    active, budget, lines = config.active, conversation_budget(state, config.budget.tokens), config.levels.lines
    is_near = nears_fold(state, config)
    if not is_near and lines is None:
        return
    if isinstance(active.low_water, str):
        verbatim, swing = _shares(state, budget)
        most = 1.3 * max(2 * swing * verbatim, LEAST_GAP_SHARE) * budget
    else:
        most = (active.high_water - active.low_water) * budget
    goal, now = _farthest(active), state.active
    pages = max(1 + (active.max_pages or 0), len(now)) - goal.pages
    messages = max(1 + (active.max_messages or 0), now.message_list.length) - goal.messages
    calls = 1 + (active.max_calls or 0) - goal.calls
    passed_by = held(state, config) if state.kept else ()
    for page in now.pages():
        if page.index in passed_by:
            continue
        is_next = is_near and max(most, pages, messages, calls) > 0
        if page is now.open_page or (not is_next and lines is None):
            return
        is_next = is_next or (lines is not None and distance(state, page) > NEAR_SHARE * lines)
        if is_next and not page.open_calls:
            yield page
            most -= page.tokens * state.scale
        pages -= 1
        messages -= page.length
        calls -= _calls(page) if calls > 0 else 0


def plan_command(state: State, config: Config, pages: Collection[str] | None, lay: Lay = lay_out) -> FoldPlan:
    """Return what a command asks for: down to the low marks for ``None``, else those of the named pages that are complete."""
    if pages is not None:
        named = [page for page in state.active.pages() if page.index in pages and _is_complete(state, page)]
        return FoldPlan(pages=tuple(page.index for page in _loose(state, config, named)), reason="command")
    layout = lay(state, state.settled)
    goal = _farthest(config.active)._replace(tokens=low_mark(state, config, layout, config.budget.tokens))
    layout = _trimmed(state, config, layout, goal.tokens, conversation_budget(state, config.budget.tokens))
    return _planned(layout, _oldest(state, config, layout, goal), reason="command")


def plan_to(state: State, config: Config, goal: int, added: Callable[[Sequence[Page]], float], lay: Lay = lay_out) -> FoldPlan:
    """Return what brings a window down to *goal* tokens, past the floor of n pages too, or all that is complete.

    The fold of pages has *added* so many tokens to the window, by the counter. O(visible), and that for some numbers of pages.
    """
    layout = lay(state, state.settled)
    tokens = layout.tokens - _stale_tokens(state, layout)
    budget = conversation_budget(state, config.budget.tokens)
    layout = _trimmed(state, config, layout, goal - tokens + own_tokens(state, layout), budget)
    tokens -= sum(layout.spared.values())
    complete = [page for page in _loose(state, config, state.active.pages()) if _is_complete(state, page)]
    left = list(accumulate((-layout.page(page.index) for page in complete), initial=tokens))

    def is_enough(number: int) -> bool:
        return left[number] <= goal and left[number] + added(complete[:number]) * state.scale <= goal

    number = min(bisect_left(range(len(left)), True, key=is_enough), len(complete))  # noqa: FBT003 (what is looked for)
    if left[number] + added(complete[:number]) * state.scale >= left[0]:  # what tells of short pages may take more than they do
        number = 0
    return _planned(layout, (page.index for page in complete[:number]), reason="command")


def plan_budget(state: State, config: Config, layout: Layout, budget: int) -> FoldPlan:
    """Return what makes room for a window: down to the low mark of its budget, and past the floor where that is not enough.

    Recalled pages bring no fold to the low mark forward: where it is only they that do not fit, the oldest pages make room for
    the share that recalled pages may have, and no more. The contents page then takes none of it: it does not grow.
    """
    contents, spared, goal = None, 0, float(budget)
    if own_tokens(state, layout) > budget:
        goal = low_mark(state, config, layout, budget)
    elif state.recalled.attachments and not config.contents.listed:
        goal = budget * (1 - config.recall.max_share)
    elif state.recalled.attachments:
        now = state.archive.contents.tokens + state.tree.outline_tokens
        contents = min(now, int(config.contents.low_share * contents_limit(state, config, config.budget.tokens)))
        spared = math.floor((now - contents) * state.scale)
        goal = budget * (1 - config.recall.max_share) + spared
    layout = _trimmed(state, config, layout, goal, budget)
    folded = set(_oldest(state, config, layout, _Goal(goal)))
    left = layout.tokens - spared - _stale_tokens(state, layout) - sum(layout.page(index) for index in folded)
    passed_by = held(state, config) if state.kept else ()
    for page in state.active.pages():
        if left <= budget or page is state.active.open_page:
            break
        if page.index not in folded and page.index not in passed_by:
            folded.add(page.index)
            left -= layout.page(page.index)
    order = (page.index for page in state.active.pages() if page.index in folded)
    return attrs.evolve(_planned(layout, order, reason="budget"), contents_tokens=contents)


def plan_oldest(state: State, config: Config, layout: Layout, goal: int, *, kept: bool) -> FoldPlan:
    """Return the oldest pages that fold until a window has its *goal* in tokens: the *kept* ones alone, or all others."""
    folded, size = list[str](), layout.tokens
    passed_by = held(state, config) if state.kept else ()
    for page in state.active.pages():
        if size <= goal or page is state.active.open_page:
            break
        if (page.index in passed_by) == kept:
            folded.append(page.index)
            size -= layout.page(page.index)
    return FoldPlan(pages=tuple(folded), reason="budget")


def held(state: State, config: Config) -> Collection[str]:
    """Return the kept pages that folds pass by: as many as fit their share, the newest first, those of a rule after all others.

    O(kept pages).
    """
    room, found = keep_tokens(state, config), list[str]()
    for index in sorted(state.kept, key=lambda index: (state.kept[index] == RULE, -page_number(index))):
        page = state.active.find_page(index)
        if page is not None and page.tokens <= room:
            found.append(index)
            room -= page.tokens
    return found


def keep_tokens(state: State, config: Config) -> float:
    """Return how many tokens kept pages may have, as they are counted."""
    return config.active.keep_share * next_budget(state, config) / state.scale


def _loose(state: State, config: Config, pages: Iterable[Page]) -> list[Page]:
    """Return the pages that folds do not pass by. O(pages)."""
    passed_by = held(state, config) if state.kept else ()
    return [page for page in pages if page.index not in passed_by]


def next_budget(state: State, config: Config) -> int:
    """Return the budget of the next window, as far as it is known: that of the last one, or else the configured one."""
    return config.budget.tokens if state.settled is None else state.settled.budget


def request_tokens(state: State) -> int:
    """Return the tokens that requests carry in addition to the conversation: tools, extra texts and slots.

    Tools and extra texts are those of the largest of the last three windows, so that a host that leaves its tools out of some
    calls does not fold for each of the others.
    """
    slots = state.slots.tokens if state.slots is not None else 0
    return math.ceil((state.carried_tokens() + slots) * state.scale)


def conversation_budget(state: State, budget: int) -> int:
    """Return the tokens of a window's budget that requests leave to the conversation.

    Marks, the room of the contents page and the length of the open page are shares of it: a window of W tokens with tools of N
    plans as one of W - N.
    """
    return max(budget - request_tokens(state), 1)


def high_mark(state: State, config: Config, budget: int) -> float:
    """Return the high mark for a budget, in tokens of a whole window."""
    conversation = conversation_budget(state, budget)
    return budget - conversation + config.active.high_water * conversation


def own_tokens(state: State, layout: Layout) -> int:
    """Return the size of a window without recalled pages and without the opening of an ended turn, which the next fold drops.

    What requests carry counts as in the marks, even if this layout has less of it.
    """
    pages = sum(attachment.tokens for attachment in state.recalled.attachments.values())
    carried = sum(layout.breakdown.get(part, 0) for part in ("tools", "slots", "extra"))
    own = layout.tokens - math.ceil(pages * layout.scale) - _stale_tokens(state, layout)
    return own - carried + request_tokens(state)


def _stale_tokens(state: State, layout: Layout) -> int:
    """Return the size of what the next fold takes away for nothing: the opening of a turn that ended, and its passages."""
    opening, said = state.opening, state.open_seqs() if state.recalled.quotes else ()
    quotes = sum(quotes.tokens for seq, quotes in state.recalled.quotes.items() if seq not in said)
    stale = layout.page(opening.index) if opening is not None and opening.index != state.turn_page else 0
    return stale + math.floor(quotes * layout.scale)


def calls_to_fold(state: State, config: Config, budget: int) -> float:
    """Return about how many calls come before the next fold, by the mean tokens that a call has added so far. O(attached)."""
    left = high_mark(state, config, budget) - _raw_tokens(state) - request_tokens(state)
    return max(left, 0.0) / max(state.traffic.tokens_per_call * state.scale, 1.0)


def low_mark(state: State, config: Config, layout: Layout, budget: int) -> float:
    """Return the low mark for a budget, in tokens of a whole window.

    With ``low_water: auto`` the gap up to the high mark is the cheapest: folding makes the provider write the L tokens that stay
    verbatim, and the C tokens of the contents page, to its cache again, and a gap of G tokens is read G/2 times over on average,
    so that for t new tokens a call G = sqrt(k·(L + C)) with k = 2·(w-r)/r·t. L and G share the room H that the other parts
    leave, L + G = H, which makes G = (sqrt(k² + 4·k·(H + C)) - k) / 2. It is no wider than verbatim pages may swing.
    """
    conversation, low_water = conversation_budget(state, budget), config.active.low_water
    carried = budget - conversation
    if not isinstance(low_water, str):
        return carried + low_water * conversation
    contents = layout.breakdown["contents"] + layout.breakdown["work"] + layout.breakdown.get("facts", 0)
    others = layout.breakdown["system"] + layout.breakdown["reply"]
    others += sum(layout.breakdown.get(part, 0) for part in ("mounted", "rules", "directives"))
    high = high_mark(state, config, budget)
    room = max(high - carried - contents - others, 0.0)
    prices = config.prices
    factor = 2 * (prices.write - prices.read) / prices.read * state.traffic.tokens_per_call * state.scale
    cheapest = (math.sqrt(factor**2 + 4 * factor * (room + contents)) - factor) / 2
    verbatim, swing = _shares(state, conversation)
    mean = verbatim * conversation
    widest = 2 * min(swing * mean, room - mean)
    return high - min(cheapest, max(widest, LEAST_GAP_SHARE * room))


def contents_limit(state: State, config: Config, budget: int) -> int:
    """Return how many tokens the contents page's entries may hold: with ``auto``, what verbatim pages leave at their most."""
    limit = config.contents.max_tokens
    if not isinstance(limit, str):
        return limit
    system = state.system.tokens + state.hidden_tokens + state.headlines_tokens + state.instruction_tokens
    system += (state.directive_tokens if state.directives else 0) + (state.mount_tokens if state.mounts else 0)
    system += state.rule_tokens if state.rules else 0
    conversation = conversation_budget(state, budget)
    room = max(conversation - math.ceil(system * state.scale), 0)
    verbatim, swing = _shares(state, conversation)
    most = room - (1 + swing) * verbatim * conversation
    return int(max(most, LEAST_CONTENTS_SHARE * room))


def _shares(state: State, budget: float) -> tuple[float, float]:
    """Return what verbatim pages have of a budget on average, and how far that swings, by the mean size of the pages so far.

    Where a conversation of long pages is many times as long as the budget, so that more can be listed, they have less.
    """
    place = page_length(state)
    (short, long), (narrow, wide) = VERBATIM_SHARES, SWING_SHARES
    verbatim, (least, most) = short + place * (long - short), LONG_HISTORY
    length = min(max((state.traffic.tokens / budget - least) / (most - least), 0.0), 1.0)
    fewest = min(verbatim, max(LONG_HISTORY_SHARE * verbatim, LEAST_VERBATIM_TOKENS / budget))
    return verbatim + place * length * (fewest - verbatim), narrow + place * (wide - narrow)


def page_length(state: State) -> float:
    """Return how long the pages so far are on average, from 0 for short ones to 1."""
    size = state.traffic.tokens / max(state.next_number[USER] - 1, 1)
    return min(max((size - SHORT_TOKENS) / (LONG_TOKENS - SHORT_TOKENS), 0.0), 1.0)


def entry_room(limit: int, page_tokens: int) -> int:
    """Return how many tokens an entry's lines may hold: a quarter of the page, but a 24th of the contents page at most."""
    return max(16, min(page_tokens // 4, limit // 24))


def cut_tokens(state: State, config: Config) -> int:
    """Return the size at which the open page is cut."""
    return max(1, min(config.active.page_tokens, int(OPEN_PAGE_SHARE * conversation_budget(state, config.budget.tokens))))


def _raw_tokens(state: State) -> float:
    """Return the size of the conversation with no entry as a stub, without placeholders of missing results. O(attached)."""
    tokens = state.system.tokens + state.hidden_tokens + state.headlines_tokens + state.instruction_tokens + state.active.tokens
    listed = state.config.contents.listed
    tokens += state.archive.tokens + state.working.facts.tokens if listed else 0
    tokens += state.working.message_tokens if listed or state.config.summary.continuation else 0
    for attachment in state.recalled.attachments.values():
        tokens += attachment.tokens
    for quotes in state.recalled.quotes.values():
        tokens += quotes.tokens
    tokens += sum(node.tokens for node in state.opening.nodes()) if state.opening else 0
    tokens += (state.directive_tokens if state.directives else 0) + (state.mount_tokens if state.mounts else 0)
    tokens += state.rule_tokens if state.rules else 0
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
    passed_by = held(state, config) if state.kept and most else ()
    for page in islice(state.active.pages(), most):
        if _is_complete(state, page) and page.index not in layout.spared and page.index not in passed_by:
            spared[page.index] = _spared(state, page)
    if sum(spared.values()) < TRIM_SHARE * budget:
        return layout
    needed = dict[str, int]()
    for index, tokens in spared.items():
        if tokens and sum(needed.values()) < over:
            needed[index] = tokens
    return attrs.evolve(layout, tokens=layout.tokens - sum(needed.values()), spared={**layout.spared, **needed})


def _spared(state: State, page: Page) -> int:
    """Return how many tokens trimming takes from a page, scaled, about. O(entries)."""
    return math.floor(sum(node.tokens - node.stub_tokens for _, node in long_results(state, page)) * state.scale)


def distance(state: State, page: Page | ContentsEntry) -> int:
    """Return how far away a page is, in turns: since it was opened, or touched, recalled or brought back last. O(1)."""
    return state.turn - state.near_turn(page)


def _far(state: State, config: Config) -> FoldPlan:
    """Return which complete pages are so far away that they fold, or are trimmed, and never the last n. O(visible)."""
    levels, folded, trimmed = config.levels, list[str](), list[str]()
    passed_by = held(state, config) if state.kept else ()
    for page in islice(state.active.pages(), max(len(state.active) - config.active.min_pages, 0)):
        if page.index in passed_by:
            continue
        turns = distance(state, page)
        if _is_complete(state, page) and levels.lines is not None and turns > levels.lines:
            folded.append(page.index)
        elif _is_complete(state, page) and levels.trimmed is not None and turns > levels.trimmed and _spared(state, page):
            trimmed.append(page.index)
    return FoldPlan(pages=tuple(folded), trimmed=tuple(trimmed), reason="levels")


def _without(state: State, layout: Layout, plan: FoldPlan) -> Layout:
    """Return about what is left of a layout once a plan is carried out; what is done with its pages is in ``spared``."""
    folded = sum(layout.page(index) for index in plan.pages)
    trimmed = {page.index: _spared(state, page) for page in filter(None, map(state.active.find_page, plan.trimmed))}
    spared = {**dict.fromkeys(plan.pages, 0), **trimmed}
    return attrs.evolve(layout, tokens=layout.tokens - folded - sum(trimmed.values()), spared=spared)


def _oldest(state: State, config: Config, layout: Layout, goal: _Goal, gone: Collection[str] = ()) -> Iterator[str]:
    """Yield complete pages, oldest first, until no more is left than *goal* has, and never the last n. O(visible).

    Those that are *gone* fold in any case, and the layout has left them out. Kept ones do not count for what is left.
    """
    gone = [*gone, *held(state, config)] if state.kept else gone
    pages = [page for page in state.active.pages() if page.index not in gone]
    left, messages, tokens = len(pages), sum(page.length for page in pages), own_tokens(state, layout)
    calls = sum(map(_calls, pages)) if goal.calls < math.inf else 0
    newer = messages
    for page in pages[: max(left - config.active.min_pages, 0)]:
        newer -= page.length
        is_done = left <= goal.pages and messages <= goal.messages and calls <= goal.calls
        if tokens <= goal.tokens and (is_done or newer < goal.kept):
            return
        size = layout.page(page.index)
        if (
            is_done and size > LARGE_FACTOR * (tokens - goal.tokens) and large_entry(state, page) is not None
        ):  # the next window shows a part of it
            return
        if _is_complete(state, page):
            yield page.index
            left -= 1
            messages -= page.length
            calls -= _calls(page) if calls else 0
            tokens -= size


def large_entry(state: State, page: Page) -> tuple[int, MessageNode] | None:
    """Return the entry that a large page mostly consists of and that can be shown in part, after its position. O(entries)."""
    if page.tokens < LARGE_SHARE * state.config.budget.tokens:
        return None
    stubs = state.settled.stubs if state.settled is not None else ()
    for position, node in enumerate(page.nodes(), start=1):
        is_whole = not node.trimmed and node.seq not in stubs
        if is_whole and 0 < node.stub_tokens < node.tokens and 2 * node.tokens > page.tokens:
            return position, node
    return None


def _fired(state: State, config: Config, share: float = 1.0) -> _Goal | None:
    """Return how far the marks in numbers and turns fold, as far as a *share* of them is reached; ``None`` where none is.

    Kept pages do not count.
    """
    active = config.active
    pages, messages, calls, turns = active.max_pages, active.max_messages, active.max_calls, active.every_turns
    kept = [page for page in map(state.active.find_page, held(state, config)) if page is not None] if state.kept else []
    if pages is not None and len(state.active) - len(kept) <= share * pages:
        pages = None
    if messages is not None and state.active.message_list.length - sum(map(len, kept)) <= share * messages:
        messages = None
    if calls is not None and _calls(state.active.message_list) - sum(map(_calls, kept)) <= share * calls:
        calls = None
    if turns is not None and state.turn - state.folded_turn < share * turns:
        turns = None
    if pages is messages is calls is turns is None:
        return None
    if active.least_tokens is not None and _raw_tokens(state) + request_tokens(state) < share * active.least_tokens:
        return None
    return _goal(active, pages, messages, calls, turns)


def _goal(active: Active, pages: int | None, messages: int | None, calls: int | None, turns: int | None) -> _Goal:
    """Return how far these marks fold, ``None`` for those that do not."""
    if active.keep_messages is not None and (pages, messages, calls, turns) != (None,) * 4:
        return _Goal(messages=active.keep_messages, kept=active.keep_messages)
    return _Goal(
        pages=math.inf if pages is None and turns is None else active.min_pages,
        messages=math.inf if messages is None else messages // 2,
        calls=math.inf if calls is None else calls // 2,
    )


def _farthest(active: Active) -> _Goal:
    """Return how far all marks in numbers and turns fold that are set."""
    return _goal(active, active.max_pages, active.max_messages, active.max_calls, active.every_turns)


def _calls(run: Run) -> int:
    """Return how many calls the messages make. O(messages)."""
    return sum([len(node.message.calls) for node in run.nodes()])


def _is_complete(state: State, page: Page) -> bool:
    return page is not state.active.open_page and not page.open_calls
