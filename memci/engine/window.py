"""The window: what one call sends to the model, and the steps that make it fit."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import attrs

from memci.chapters.recalled import Attachment
from memci.engine import folding, planner
from memci.engine.config_checks import MOST
from memci.engine.core import Core
from memci.engine.events import PagesFaded, WindowSettled
from memci.engine.layout import RENDERER, Layout, lay_out, lay_out_least, stub_candidates
from memci.engine.monitor import Zone, zone
from memci.engine.prefetching import prefetch
from memci.engine.state import State
from memci.errors import BudgetError, ConfigError, InvalidMessageError, StoreError, shown
from memci.messages import codec
from memci.messages.tokens.message_tokens import count_tools


@attrs.frozen(kw_only=True)
class Window:
    """What a call sends.

    Attributes:
        messages: The messages as dicts, in the session's wire format; the list and all in it are the caller's own.
        system: The system prompt, where the format has a parameter of its own for it (Anthropic's ``system``: text blocks);
            ``None`` where it stands among the messages.
        tokens: At most its size, the tools and the start of the reply included; never above ``budget``.
        budget: What it may hold.
        zone: How full it is.
        breakdown: Tokens by part (``system``, ``tools``, ``contents``, ``recalled``, ``active``, ``open``, ``reply``); they add
            up to ``tokens``.
        seq: Sequence number of the last event in it; ``session.render(at=seq)`` makes it again.
    """

    messages: list[dict[str, Any]] = attrs.field(repr=False)
    system: list[dict[str, Any]] | None = attrs.field(repr=False)
    tokens: int
    budget: int
    zone: Zone
    breakdown: Mapping[str, int]
    seq: int
    _json: bytes = attrs.field(repr=False, alias="json")

    def to_json(self) -> bytes:
        """Return the messages as they were rendered, as a JSON list; the same bytes whenever it is rendered again."""
        return self._json


def make_window(core: Core, budget: int | None, tools: Sequence[Mapping[str, Any]] | None) -> Window:
    """Return a window that fits, taking the steps that it needs; their events are committed first.

    Raises:
        ConfigError: The budget is not a number above 0.
        BudgetError: No step makes it fit. Where that is plain from the system part and the open page, none was taken.
    """
    core.configure()
    budget = core.config.budget.tokens if budget is None else budget
    if type(budget) is not int or not 0 < budget <= MOST:
        message = f"{shown(budget)} is not a number of tokens above 0, or too large"
        raise ConfigError(message, path="budget")
    schemas = _checked_tools(tools)
    prefetch(core, budget)
    before = None
    while core.state.seq != before:  # so that the same window is found when it is asked for again
        before = core.state.seq
        layout, settled = _fitted(core, _settling(core, budget, schemas))
    if settled != core.state.settled:
        core.commit([settled])
    core.last_counted = layout.counted
    rendered = _rendered(core.state, layout, budget, core.state.seq)
    core.monitor.window(layout.tokens, budget)
    return rendered


def render_at(core: Core, seq: int) -> Window:
    """Return the window as it was after the event *seq*. Costs a snapshot and the events behind it."""
    state = core.state if seq == core.state.seq else core.state_at(seq)
    settled = state.settled
    if settled is None:
        return _rendered(state, lay_out(state, None), state.config.budget.tokens, seq)
    if settled.renderer != RENDERER:
        message = f"the window was laid out by renderer {settled.renderer}, and this memci has renderer {RENDERER} only"
        raise StoreError(message)
    return _rendered(state, lay_out(state, settled), settled.budget, seq)


def _checked_tools(tools: object) -> list[Mapping[str, Any]]:
    if tools is None:
        return []
    if not isinstance(tools, list | tuple) or not all(isinstance(tool, Mapping) for tool in tools):
        message = "tools are a list of tool schemas, each a dict"
        raise InvalidMessageError(message, path="tools")
    copy = codec.checked_copy([dict(tool) for tool in tools], "tools")
    try:
        codec.encode(copy)
    except ValueError as error:
        message = f"cannot be written as JSON: {error}"
        raise InvalidMessageError(message, path="tools") from error
    return cast("list[Mapping[str, Any]]", copy)


def _settling(core: Core, budget: int, tools: Sequence[Mapping[str, Any]]) -> WindowSettled:
    """Return the arguments of a window; the tools are counted only when they are not those of the last one."""
    last = core.state.settled
    sha256 = hashlib.sha256(codec.encode(tools)).hexdigest() if tools else ""
    tokens = last.tools_tokens if last is not None and last.tools_sha256 == sha256 else count_tools(tools, core.counter)
    return WindowSettled(
        budget=budget,
        format=core.config.format,
        tools_sha256=sha256,
        tools_tokens=tokens,
        renderer=RENDERER,
        stubs=last.stubs if last is not None and last.budget == budget else [],
        reads=core.config.recall.protocol == "attp" or any(_names_reader(tool) for tool in tools),
    )


def _names_reader(tool: Mapping[str, Any]) -> bool:
    """Return whether a tool's schema, of any format, is that of the tool which reads what a stub stands for."""
    function = tool.get("function")
    return "read_page" in (tool.get("name"), function.get("name") if isinstance(function, Mapping) else None)


def _fitted(core: Core, wanted: WindowSettled) -> tuple[Layout, WindowSettled]:
    """Climb the ladder until the window fits, and return it with what is shown as a stub, and whether the contents page is."""
    layout = lay_out(core.state, wanted)
    if layout.tokens <= wanted.budget:
        return layout, wanted
    least, wanted = _stubbed(core.state, wanted, lay_out_least)
    if least.tokens > wanted.budget:  # before any step is taken, as steps last and would bring nothing
        raise BudgetError(budget=wanted.budget, tokens=least.tokens, breakdown=least.breakdown)
    for steps in ((_fade_excess, _fold, _fade_prefetched, _shorten_contents), (_fade, _shorten_contents)):
        layout = _climbed(core, wanted, steps)
        if layout.tokens <= wanted.budget:
            return layout, wanted
    for contents in (True, False):  # without it in one window, nothing is lost for later ones
        layout, settled = _stubbed(core.state, attrs.evolve(wanted, contents=contents), lay_out)
        if layout.tokens <= wanted.budget:
            return layout, settled
    raise BudgetError(budget=wanted.budget, tokens=layout.tokens, breakdown=layout.breakdown)


def _climbed(core: Core, wanted: WindowSettled, steps: Sequence[Callable[[Core, Layout, int], None]]) -> Layout:
    """Take the steps in turn, again and again, until the window fits or none of them makes any more room."""
    layout, before = lay_out(core.state, wanted), None
    while layout.tokens > wanted.budget and core.state.seq != before:
        before = core.state.seq
        for step in steps:
            if layout.tokens > wanted.budget:
                step(core, layout, wanted.budget)
                layout = lay_out(core.state, wanted)
    return layout


def _stubbed(state: State, wanted: WindowSettled, lay: Callable[[State, WindowSettled], Layout]) -> tuple[Layout, WindowSettled]:
    """Show large entries of the open turn as stubs until what is laid out fits, or there is none left."""
    layout = lay(state, wanted)
    for node in stub_candidates(state):
        if layout.tokens <= wanted.budget:
            break
        if node.seq not in wanted.stubs:
            wanted = attrs.evolve(wanted, stubs=sorted([*wanted.stubs, node.seq]))
            layout = lay(state, wanted)
    return layout, wanted


def _fold(core: Core, layout: Layout, budget: int) -> None:
    plan = planner.plan_budget(core.state, core.config, layout, budget)
    done = folding.fold(core, plan, limit=plan.contents_tokens, evict=plan.contents_tokens is None)
    if plan.pages and not done.pages:
        folding.fold(core, plan)


def _shorten_contents(core: Core, layout: Layout, budget: int) -> None:
    """Leave the contents page what the other parts leave, where that is enough to say something of its pages.

    Otherwise nothing happens: what it lost would be lost for good, and another step is needed anyway.
    """
    room = _contents_room(core, layout, budget)
    if room > 0:
        folding.fold(core, planner.FoldPlan(pages=(), reason="budget"), limit=room, evict=False)


def _contents_room(core: Core, layout: Layout, budget: int) -> int:
    """Return how many tokens the entries of the contents page may have for the window to fit."""
    room = int((budget - layout.tokens + layout.breakdown["contents"]) / core.state.scale)
    return room - core.count(core.state.wire.block(core.state.archive.preview(()).heading()))


def _fade_excess(core: Core, layout: Layout, budget: int) -> None:
    """Let recalled pages go that take more than their share, the least recently used first."""
    _let_go(core, layout.breakdown["recalled"] - int(core.config.recall.max_share * budget), core.state.recalled.least_used())


def _fade_prefetched(core: Core, layout: Layout, budget: int) -> None:
    """Let pages go that nobody asked for until the window fits."""
    attached = [item for item in core.state.recalled.least_used() if item[1].prefetched]
    _let_go(core, layout.tokens - budget, attached)


def _fade(core: Core, layout: Layout, budget: int) -> None:
    """Let recalled pages go, the least recently used first, until the window fits."""
    _let_go(core, layout.tokens - budget, core.state.recalled.least_used())


def _let_go(core: Core, over: int, attached: Sequence[tuple[str, Attachment]]) -> None:
    faded = []
    for index, attachment in attached:
        if over > 0:
            faded.append(index)
            over -= int(attachment.tokens * core.state.scale)
    if faded:
        core.commit([PagesFaded(pages=faded, reason="budget")])


def _segment_ends(layout: Layout) -> set[int]:
    """Return the places of the messages behind which a segment ends: system part, contents page, complete pages, the window.

    A recalled block that fades changes the window from its own place on, so the complete pages end before it.
    """
    last = {piece.part: place for place, piece in enumerate(layout.pieces)}
    return {last[part] for part in ("system", "contents", "active") if part in last} | {len(layout.pieces) - 1}


def _rendered(state: State, layout: Layout, budget: int, seq: int) -> Window:
    cached = _segment_ends(layout) if state.config.cache_breakpoints else ()
    system, messages = state.wire.assemble([piece.message for piece in layout.pieces], cached)
    data = b"[" + b",".join(message.raw for message in messages) + b"]"
    return Window(
        messages=[message.value() for message in messages],
        system=system,
        tokens=layout.tokens,
        budget=budget,
        zone=zone(layout.tokens, budget),
        breakdown=layout.breakdown,
        seq=seq,
        json=data,
    )
