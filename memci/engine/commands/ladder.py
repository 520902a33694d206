"""The budget ladder: the steps that make a window fit, in their order."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import attrs

from memci.chapters.page import MessageNode
from memci.chapters.recalled import Attachment
from memci.engine.commands import folding
from memci.engine.core.core import Core
from memci.engine.core.counting import count_stub
from memci.engine.history.blocks import STUB_CHARACTERS
from memci.engine.history.events import PagesFaded, WindowSettled
from memci.engine.view import planner
from memci.engine.view.layout import RENDERER, Layout, lay_out, lay_out_least, open_entries, stubbed
from memci.errors import BudgetError
from memci.messages import codec
from memci.messages.tokens.message_tokens import count_tools


def settling(core: Core, budget: int, tools: Sequence[Mapping[str, Any]]) -> WindowSettled:
    """Return the arguments of a window; the tools are counted only when they are not those of the last one."""
    last = core.state.settled
    known = last if last is not None and last.budget == budget else None
    sha256 = hashlib.sha256(codec.encode(tools)).hexdigest() if tools else ""
    tokens = last.tools_tokens if last is not None and last.tools_sha256 == sha256 else count_tools(tools, core.counter)
    return WindowSettled(
        budget=budget,
        format=core.config.format,
        tools_sha256=sha256,
        tools_tokens=tokens,
        renderer=RENDERER,
        stubs=known.stubs if known is not None else [],
        excerpts=known.excerpts if known is not None else {},
        reads=_tells_of_attp(core) or any(_names_reader(tool) for tool in tools),
    )


def _tells_of_attp(core: Core) -> bool:
    """Return whether the system part tells of ATTP: it does once there is a contents page."""
    return core.config.recall.protocol == "attp" and core.state.archive.message_list.head is not None


def _names_reader(tool: Mapping[str, Any]) -> bool:
    """Return whether a tool's schema, of any format, is that of the tool which reads what a stub stands for."""
    function = tool.get("function")
    return "read_page" in (tool.get("name"), function.get("name") if isinstance(function, Mapping) else None)


def fit(core: Core, wanted: WindowSettled) -> tuple[Layout, WindowSettled]:
    """Climb the ladder until the window fits, and return it with what is shown as a stub, and whether the contents page is.

    Where it does not by a scale that reports of usage raised, the counter's own margin counts: no report blocks a session.
    """
    try:
        layout, settled = _shortened(core, wanted)
    except BudgetError:
        if core.state.scale <= core.counter.margin:
            raise
        layout, settled = _shortened(core, attrs.evolve(wanted, scale=core.counter.margin))
    new = set(settled.stubs).difference(wanted.stubs)
    if not new or not settled.contents or settled.scale is not None:  # such a window is asked for in another way again
        return layout, settled
    return _shown_further(core, layout, settled, new)


def _shown_further(core: Core, layout: Layout, settled: WindowSettled, new: Collection[int]) -> tuple[Layout, WindowSettled]:
    """Let new stubs show more of their entries: half of what is left of the window, so that the next messages have room too."""
    room = int((settled.budget - layout.tokens) / layout.scale / 2 / len(new))
    excerpts = dict(settled.excerpts)
    for address, node in open_entries(core.state):
        if node.seq in new and (excerpt := _excerpt(core, address, node, room)) is not None:
            excerpts[str(node.seq)] = excerpt
    further = attrs.evolve(settled, excerpts=excerpts)
    laid = core.lay_out(core.state, further)
    return (laid, further) if laid.tokens <= settled.budget else (layout, settled)


def _excerpt(core: Core, address: str, node: MessageNode, room: int) -> list[int] | None:
    """Return how many characters of an entry a stub of so many tokens shows, and its tokens; ``None`` for hardly more."""
    characters = 4 * room
    while characters > 2 * STUB_CHARACTERS:
        tokens = count_stub(core.counter, core.state.wire, address, node.message, node.tokens, characters=characters)
        if tokens <= room:
            return [characters, tokens]
        characters = min(characters * room // tokens, characters * 9 // 10)
    return None


def _shortened(core: Core, wanted: WindowSettled) -> tuple[Layout, WindowSettled]:
    """Let what stubs show beyond the least give way before any other step is taken."""
    if wanted.excerpts and core.lay_out(core.state, wanted).tokens > wanted.budget:
        wanted = attrs.evolve(wanted, excerpts={})
    return _fit(core, wanted)


def _fit(core: Core, wanted: WindowSettled) -> tuple[Layout, WindowSettled]:
    layout = core.lay_out(core.state, wanted)
    if layout.tokens <= wanted.budget:
        return layout, wanted
    least, wanted = stubbed(core.state, wanted, lay_out_least)
    if least.tokens > wanted.budget:  # before any step is taken, as steps last and would bring nothing
        raise BudgetError(budget=wanted.budget, tokens=least.tokens, breakdown=least.breakdown)
    for steps in ((_fade_excess, _fold, _fade_prefetched, _shorten_contents), (_fade_older, _shorten_contents)):
        layout = _climbed(core, wanted, steps)
        if layout.tokens <= wanted.budget:
            return layout, wanted
    if core.state.recalled.attachments:  # what was recalled in this turn goes before the contents page
        layout = lay_out(core.state, attrs.evolve(wanted, contents=False))
        if layout.tokens <= wanted.budget:
            return layout, attrs.evolve(wanted, contents=False)
        layout = _climbed(core, wanted, (_fade, _shorten_contents))
        if layout.tokens <= wanted.budget:
            return layout, wanted
    for contents in (True, False):  # without it in one window, nothing is lost for later ones
        layout, settled = stubbed(core.state, attrs.evolve(wanted, contents=contents), lay_out)
        if layout.tokens <= wanted.budget:
            return layout, settled
    raise BudgetError(budget=wanted.budget, tokens=layout.tokens, breakdown=layout.breakdown)


def _climbed(core: Core, wanted: WindowSettled, steps: Sequence[Callable[[Core, Layout, int], None]]) -> Layout:
    """Take the steps in turn, again and again, until the window fits or none of them makes any more room."""
    layout, before = core.lay_out(core.state, wanted), None
    while layout.tokens > wanted.budget and core.state.seq != before:
        before = core.state.seq
        for step in steps:
            if layout.tokens > wanted.budget:
                step(core, layout, wanted.budget)
                layout = core.lay_out(core.state, wanted)
    return layout


def _fold(core: Core, layout: Layout, budget: int) -> None:
    plan = planner.plan_budget(core.state, core.config, layout, budget)
    if plan.contents_tokens is None or not folding.fold(core, plan, limit=plan.contents_tokens, evict=False).seq:
        folding.fold(core, plan)


def _shorten_contents(core: Core, layout: Layout, budget: int) -> None:
    """Leave the contents page what the other parts leave, where that is enough to say something of its pages.

    Otherwise nothing happens: what it lost would be lost for good, and another step is needed anyway.
    """
    heading = core.state.wire.block(core.state.archive.preview(()).heading())
    room = int((budget - layout.tokens + layout.breakdown["contents"]) / layout.scale) - core.count(heading)
    if room > 0:
        folding.fold(core, planner.FoldPlan(pages=(), reason="budget"), limit=room, evict=False)


def _fade_excess(core: Core, layout: Layout, budget: int) -> None:
    """Let recalled pages go that take more than their share, the least recently used first."""
    over = layout.breakdown["recalled"] - int(core.config.recall.max_share * budget)
    _let_go(core, layout, over, core.state.recalled.least_used())


def _fade_prefetched(core: Core, layout: Layout, budget: int) -> None:
    """Let pages go that nobody asked for until the window fits."""
    attached = [item for item in core.state.recalled.least_used() if item[1].prefetched]
    _let_go(core, layout, layout.tokens - budget, attached)


def _fade_older(core: Core, layout: Layout, budget: int) -> None:
    """Let pages go that were recalled in earlier turns, the least recently used first, until the window fits."""
    older = [item for item in core.state.recalled.least_used() if item[1].turn < core.state.turn]
    _let_go(core, layout, layout.tokens - budget, older)


def _fade(core: Core, layout: Layout, budget: int) -> None:
    """Let recalled pages go, the least recently used first, until the window fits."""
    _let_go(core, layout, layout.tokens - budget, core.state.recalled.least_used())


def _let_go(core: Core, layout: Layout, over: int, attached: Sequence[tuple[str, Attachment]]) -> None:
    faded = []
    for index, attachment in attached:
        if over > 0:
            faded.append(index)
            over -= int(attachment.tokens * layout.scale)
    if faded:
        core.commit([PagesFaded(pages=faded, reason="budget")])
