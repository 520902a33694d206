"""The window: what one call sends to the model, and the budget ladder, the steps that make it fit, in their order."""

import hashlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

import attrs

from memci.archive.summarizers.summary import SentWindow
from memci.chapters.page import MessageNode
from memci.chapters.recalled import Attachment
from memci.engine.commands import folding, quoting
from memci.engine.core.configuring import configured
from memci.engine.core.core import Core
from memci.engine.core.kept_state import SentPrompt
from memci.engine.core.monitor import Zone, zone
from memci.engine.history import blocks
from memci.engine.history.blocks import OLDEST_RENDERER, RENDERER, STUB_CHARACTERS
from memci.engine.history.events import PagesFaded, WindowSettled
from memci.engine.history.state import State
from memci.engine.settings.setting import MOST
from memci.engine.view import planner
from memci.engine.view.layout import Layout, lay_out, lay_out_least, open_entries, stubbed
from memci.errors import (
    ArgumentError,
    BudgetError,
    ConfigError,
    InvalidMessageError,
    PermissionDeniedError,
    StoreError,
    is_line,
    shown,
)
from memci.messages import codec
from memci.messages.tokens.message_tokens import count_tools

_SHORTER = 4  # by which what a stub shows is divided where later messages need its room
_EXCERPTS_SHARE = 0.97  # of the room that is left; a short answer then changes nothing
_EXCERPT_TRIES, _FULL_SHARE = 10, 0.98  # until what is shown of a large entry takes so much of its room
# The tools that the system part explains, and those where few are offered.
_RECALLING, _READING = {"recall_page", "search_pages"}, {"read_page", "search_pages"}


@attrs.frozen(kw_only=True)
class Window:
    """What a call sends: ``messages`` as dicts in the session's wire format, the caller's own.

    ``system`` is the system prompt, where the format has a parameter of its own for it (Anthropic's: text blocks), else ``None``.
    ``tokens`` is its size by the counter, the tools and the start of the reply included, and never above ``budget``; what answers
    a call that has no result yet counts as the most that it may take. ``zone`` is how full the window is; ``breakdown`` has the
    tokens by part and adds up: ``system, tools, contents, work, recalled, active, open, reply``, and ``mounted``,
    ``facts``, ``rules``, ``directives``, ``slots`` and ``extra`` where there are any.
    ``seq`` is the sequence number of the last event in it; ``session.render(at=seq)`` makes it again.
    """

    messages: list[dict[str, Any]] = attrs.field(repr=False)
    system: list[dict[str, Any]] | None = attrs.field(repr=False)
    tokens: int
    budget: int
    zone: Zone
    breakdown: Mapping[str, int]
    seq: int
    _raws: tuple[bytes, ...] = attrs.field(repr=False, alias="raws")

    def to_json(self) -> bytes:
        """Return the messages as they were rendered, as a JSON list; the same bytes whenever it is rendered again."""
        return b"[%b]" % b",".join(self._raws)


def not_made(session_id: str) -> PermissionDeniedError:
    """Return the error of a window that cannot be made, as nothing may be written."""
    message = (
        f"session {shown(session_id)}: by its config, budget or tools this window is not the one that was made last, and its "
        "making would be written down, which an engine that only reads does not do: render(session.seq) is the last"
    )
    return PermissionDeniedError(message)


def make_window(core: Core, budget: int | None, tools: Sequence[Mapping[str, Any]] | None, extra: object = None) -> Window:
    """Return a window that fits, taking the steps that it needs; their events are committed first."""
    texts = {} if extra is None else _checked_extra(core, extra)
    core.configure()
    budget = core.config.budget.tokens if budget is None else budget
    if type(budget) is not int or not 0 < budget <= MOST:
        message = f"{shown(budget)} is not a number of tokens above 0, or too large"
        raise ConfigError(message, path="budget")
    schemas, sha256, written = _checked_tools(tools)
    heard = quoting.quote(core, budget)
    if core.state.tree and not core.read_only:
        folding.show_outline(core)
    before = None
    while core.state.seq != before:  # so that the same window is found when it is asked for again
        before = core.state.seq
        wanted = _settling(core, budget, schemas, sha256, heard)
        layout, settled = _fit(core, wanted if not texts else attrs.evolve(wanted, **_beside(core, texts)))
        if layout.view.in_part:
            layout, settled = _sized(core, layout, settled)
    if settled != core.state.settled:
        core.commit([settled])
    core.prepared.counted = layout.counted
    made = rendered(core.state, layout, budget, core.state.seq)
    core.monitor.window(made.zone, layout.tokens, budget)
    assert core.state.settled is not None
    core.prepared.sent = SentPrompt(made.seq, made._raws, made.system, core.state.settled, core.used_at)  # noqa: SLF001 (of this module)
    if core.pool is not None and core.pool.extends:
        _note_sent(core, made, written)
    return made


def count(core: Core, messages: Sequence[object], tools: Sequence[Mapping[str, Any]] | None) -> int:
    """Return how many tokens messages and tools take of a window, without the start of the reply. Nothing is written."""
    schemas, settings = _checked_tools(tools)[0], core.configuration()
    state = configured(core.state, settings) if settings else core.state
    tokens = sum(core.count(state.wire.read(message)) for message in messages) + count_tools(schemas, core.counter)
    settled = state.settled
    return math.ceil(tokens * (state.scale if settled is None or settled.scale is None else settled.scale))


def render_at(core: Core, seq: int) -> Window:
    """Return the window as it was after the event *seq*. Costs a snapshot and the events after it."""
    check_event(core, seq)
    state = core.state if seq == core.state.seq else core.state_at(seq)
    check_renderer(state)
    return rendered(state, lay_out(state, state.settled), planner.next_budget(state, state.config), seq)


def check_event(core: Core, at: object) -> None:
    """Raise ``ConfigError`` where there is no event of a number, nor the beginning."""
    if type(at) is not int or not 0 <= at <= core.state.seq:
        message = f"there is no event {shown(at)}: the session is at {core.state.seq}"
        raise ConfigError(message, path="at")


def check_renderer(state: State) -> None:
    """Raise ``StoreError`` where the window of a state cannot be made again, as another memci laid it out."""
    settled = state.settled
    if settled is not None and not OLDEST_RENDERER <= settled.renderer <= RENDERER:
        message = f"the window was laid out by renderer {settled.renderer}; this memci has {OLDEST_RENDERER} to {RENDERER}"
        raise StoreError(message)


def _checked_tools(tools: object) -> tuple[list[Mapping[str, Any]], str, bytes]:
    """Return a copy of tool schemas, the SHA-256 of their JSON, empty for none, and that JSON."""
    if tools is None:
        return [], "", b"[]"
    if not isinstance(tools, list | tuple) or not all(isinstance(tool, Mapping) for tool in tools):
        message = "tools are a list of tool schemas, each a dict"
        raise InvalidMessageError(message, path="tools")
    copy = codec.checked_copy([dict(tool) for tool in tools], "tools")
    written = codec.encode(copy)
    return cast("list[Mapping[str, Any]]", copy), hashlib.sha256(written).hexdigest() if tools else "", written


def _checked_extra(core: Core, extra: object) -> dict[str, str]:
    """Return what stands beside one call, as texts by name."""
    texts = {"text": extra} if isinstance(extra, str) else extra
    if not isinstance(texts, Mapping) or not all(is_line(name) and isinstance(text, str) for name, text in texts.items()):
        raise ArgumentError(argument="extra", value=extra, wanted="a text, or texts by name, each name a line")
    most = core.config.limits.message_bytes
    if len(codec.encode(dict(texts))) > most:
        wanted = f"at most {most} bytes as JSON, or raise limits.message_bytes"
        raise ArgumentError(argument="extra", value=[*texts], wanted=wanted)
    return dict(texts)


def _beside(core: Core, texts: dict[str, str]) -> dict[str, Any]:
    """Return how a window notes what stands beside it; it is counted only when it is not that of the last one."""
    last = core.state.settled
    known = last is not None and last.extra == texts
    return {
        "extra": texts,
        "extra_tokens": last.extra_tokens if known and last else core.count(blocks.extra_block(texts, core.state.wire)),
    }


def _note_sent(core: Core, window: Window, tools: bytes) -> None:
    """Note what the provider's cache holds of a window, and which pages that shows whole. O(visible).

    Where pages folded or were trimmed since the last one, that one can be extended still; who does that is told of it.
    """
    state = core.state
    stubs = set(state.settled.stubs) if state.settled is not None else ()
    shown = {
        page.index: (page.length, page.tail.seq)
        for page in state.active.pages()
        if page.tail is not None and not any(node.trimmed or node.seq in stubs for node in page.nodes())
    }
    sent = SentWindow(
        seq=window.seq,
        at=core.clock(),
        format=state.config.format,
        tokens=window.tokens,
        raws=window._raws,  # noqa: SLF001 (of this module)
        system=codec.encode(window.system),
        tools=tools,
        pages=shown,
    )
    last, *former = core.prepared.windows or (sent,)
    has_less = any(index not in shown for index in last.pages)
    core.prepared.windows = (sent, last) if has_less else (sent, *former)
    if has_less:
        core.offer(core)


def rendered(state: State, layout: Layout, budget: int, seq: int) -> Window:
    """Return a layout as a window of the event *seq*. O(its messages)."""
    view = layout.view
    system, (messages, values) = None, view.written()
    if state.wire.assemble is not None:
        changes = state.slots is not None or (state.settled is not None and state.settled.extra)
        last = view.slots_place() if changes else len(view.messages)  # what follows is new then
        last_block = next((part for part in ("work", "facts") if part in view.ends), "contents")
        parts = ("system", last_block, "active")
        ends = {min(end, last) - 1 for end in (*map(view.ends.get, parts), last) if end}
        cached = ends if state.config.cache_breakpoints else ()
        system, messages, values = state.wire.assemble(messages, values, cached)
    return Window(
        messages=values,
        system=system,
        tokens=layout.tokens,
        budget=budget,
        zone=zone(layout.tokens, budget),
        breakdown=layout.breakdown,
        seq=seq,
        raws=tuple([message.raw for message in messages]),
    )


def _settling(core: Core, budget: int, tools: Sequence[Mapping[str, Any]], sha256: str, heard: int) -> WindowSettled:
    """Return the arguments of a window; the tools are counted only when they are not those of the last one."""
    last = core.state.settled
    known = last if last is not None and last.budget == budget else None
    attp = core.config.recall.protocol == "attp" and core.state.archive.message_list.head is not None  # the system part says so
    names = set(map(_name, tools))
    explains = core.config.recall.protocol == "attp" or (
        bool(names) and names >= (_READING if core.config.has_few_tools else _RECALLING)
    )
    if core.read_only and last is not None and last.tools_sha256 == sha256:
        explains = last.explains  # of a journal that is older than this rule
    tokens = last.tools_tokens if last is not None and last.tools_sha256 == sha256 else count_tools(tools, core.counter)
    return WindowSettled(
        budget=budget,
        format=core.config.format,
        tools_sha256=sha256,
        tools_tokens=tokens,
        renderer=core.state.renderer,
        stubs=known.stubs if known is not None else [],
        excerpts=known.excerpts if known is not None else {},
        reads=attp or "read_page" in names,
        explains=explains,
        passages_seq=heard,
    )


def _name(tool: Mapping[str, Any]) -> object:
    """Return the name in a tool's schema of any format."""
    function = tool.get("function")
    name = function.get("name") if isinstance(function, Mapping) else tool.get("name")
    return name if isinstance(name, str) else None


def _fit(core: Core, wanted: WindowSettled) -> tuple[Layout, WindowSettled]:
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
    new = new.intersection(node.seq for *_, node in open_entries(core.state)) if new else new
    if not new or not settled.contents or settled.scale is not None:  # such a window is asked for in another way again
        return layout, settled
    return _shown_further(core, _with_room(core, layout, settled, new), settled, new)


def _sized(core: Core, layout: Layout, settled: WindowSettled) -> tuple[Layout, WindowSettled]:
    """Count what is shown of entries in part as it is: all that fits a window fits by the most that these may take.

    O(the entries), and the text of those that were not sent before.
    """
    sizes, last = dict[str, list[int]](), core.state.settled
    for seq, (part, most, _) in layout.view.in_part.items():
        if part.tokens is None:
            part.tokens = core.count(part.message)
        sizes[seq] = [most, part.tokens]
    if core.read_only and last is not None:
        sizes = last.sizes  # of a journal that may be older than these
    settled = attrs.evolve(settled, sizes=sizes)
    return layout.view.layout(settled), settled


def _with_room(core: Core, layout: Layout, settled: WindowSettled, new: Collection[int]) -> Layout:
    """Fold older pages, and shorten the contents page, for entries that are new and too large: these come before older ones."""
    hidden = sum(node.tokens - node.stub_tokens for _, _, node in open_entries(core.state) if node.seq in new)
    plan = planner.plan_oldest(core.state, core.config, layout, settled.budget - math.ceil(hidden * layout.scale), kept=False)
    least = int(planner.LEAST_CONTENTS_SHARE * planner.conversation_budget(core.state, settled.budget))
    if plan.pages or core.state.archive.contents.tokens > least:
        for limit in (least, 2 * least, 3 * least, None):  # the first by which no page leaves the contents page
            if folding.fold(core, plan, limit=limit, evict=False).seq:
                break
        layout = core.lay_out(core.state, settled)
    return layout


def _shown_further(core: Core, layout: Layout, settled: WindowSettled, new: Collection[int]) -> tuple[Layout, WindowSettled]:
    """Let new stubs show more of their entries: nearly all that is left of the window, in equal parts."""
    room = int(_EXCERPTS_SHARE * (settled.budget - layout.tokens) / layout.scale / len(new))
    excerpts = dict(settled.excerpts)
    for index, position, node in open_entries(core.state):
        if node.seq in new and (excerpt := _excerpt(core, f"{index}/{position}", node, room)) is not None:
            excerpts[str(node.seq)] = excerpt
    further = attrs.evolve(settled, excerpts=excerpts)
    laid = core.lay_out(core.state, further)
    return (laid, further) if laid.tokens <= settled.budget else (layout, settled)


def _excerpt(core: Core, at: str, node: MessageNode, room: int) -> list[int] | None:
    """Return how many characters of an entry a stub of so many tokens shows, and its tokens; ``None`` for hardly more."""
    least, most, characters, best = 2 * STUB_CHARACTERS, math.inf, 4 * room, None
    for _ in range(_EXCERPT_TRIES):
        if characters <= 2 * STUB_CHARACTERS:
            break
        tokens = core.count_stub(at, node.message, node.tokens, characters=characters)
        if tokens <= room:
            least, best = characters, [characters, tokens]
            if tokens >= _FULL_SHARE * room:
                break
        else:
            most = characters
        characters = int(characters * (_FULL_SHARE + 1) / 2 * room / tokens)
        if not least < characters < (least + 3 * most) / 4:  # a text that is shown whole for many numbers tells nothing of others
            characters = int(least + most) // 2
    return best


def _shortened(core: Core, wanted: WindowSettled) -> tuple[Layout, WindowSettled]:
    """Let what stubs show beyond the least give way before any other step is taken."""
    while wanted.excerpts and core.lay_out(core.state, wanted).tokens > wanted.budget:
        wanted = attrs.evolve(wanted, excerpts=_shorter(core, wanted.excerpts))
    layout = core.lay_out(core.state, wanted)
    return (layout, wanted) if layout.tokens <= wanted.budget else _climb(core, *_in_part(core, wanted, layout))


def _in_part(core: Core, wanted: WindowSettled, layout: Layout) -> tuple[WindowSettled, Layout]:
    """Show a part of a large entry, where a fold of its page would leave much of the window empty; the low mark decides."""
    over = layout.tokens - planner.low_mark(core.state, core.config, layout, wanted.budget)
    for page in core.state.active.pages():
        if over <= 0 or page is core.state.active.open_page:
            break
        found = planner.large_entry(core.state, page)
        if found is not None and layout.page(page.index) > planner.LARGE_FACTOR * over:
            position, node = found
            excerpt = _excerpt(core, f"{page.index}/{position}", node, int(node.tokens - over / layout.scale))
            if excerpt is not None:
                excerpts = {**wanted.excerpts, str(node.seq): excerpt}
                wanted = attrs.evolve(wanted, stubs=sorted({*wanted.stubs, node.seq}), excerpts=excerpts)
                return wanted, core.lay_out(core.state, wanted)
        over -= layout.page(page.index)
    return wanted, layout


def _shorter(core: Core, excerpts: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Return what stubs show after the next of few steps in which they get shorter: a quarter of it each, then the least.

    Each step changes the prompt from the stub on: halves would be twice as many (``memci bench quality``, coding).
    """
    shorter = dict[str, list[int]]()
    apart = core.state.opening
    for page in (*([] if apart is None else [apart]), *core.state.active.pages()):
        for position, node in enumerate(page.nodes(), start=1):
            characters = excerpts.get(str(node.seq), (0, 0))[0] // _SHORTER
            if characters > 2 * STUB_CHARACTERS:
                tokens = core.count_stub(f"{page.index}/{position}", node.message, node.tokens, characters=characters)
                shorter[str(node.seq)] = [characters, tokens]
    return shorter


def _climb(core: Core, wanted: WindowSettled, layout: Layout) -> tuple[Layout, WindowSettled]:
    if layout.tokens <= wanted.budget:
        return layout, wanted
    least, wanted = stubbed(core.state, wanted, lay_out_least)
    if least.tokens > wanted.budget:  # before any step is taken, as steps last and would bring nothing
        raise BudgetError(budget=wanted.budget, tokens=least.tokens, breakdown=least.breakdown)
    last = ((_fold_kept, _shorten_contents),) if core.state.kept else ()
    for steps in ((_fade_excess, _fold, _drop_passages, _shorten_contents), (_fade_older, _shorten_contents), *last):
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
    for contents, directives in ((True, True), (False, True), (False, False)):  # nothing is lost for later windows
        layout, settled = stubbed(core.state, attrs.evolve(wanted, contents=contents, directives=directives), lay_out)
        if layout.tokens <= wanted.budget:
            return layout, settled
    raise BudgetError(budget=wanted.budget, tokens=layout.tokens, breakdown=layout.breakdown)


def _climbed(core: Core, wanted: WindowSettled, steps: Sequence[Callable[[Core, Layout, int], None]]) -> Layout:
    """Take the steps in turn, again and again, until the window fits or they make no more room, nor take anything out of it."""
    layout, before = core.lay_out(core.state, wanted), (math.inf, math.inf)
    while layout.tokens > wanted.budget and (left := (_shown(core.state), layout.tokens)) < before:
        before = left
        for step in steps:
            if layout.tokens > wanted.budget:
                step(core, layout, wanted.budget)
                layout = core.lay_out(core.state, wanted)
    return layout


def _shown(state: State) -> int:
    """Return how many pages, recalled ones and passages the window holds. O(those)."""
    return sum(1 for _ in state.active.pages()) + len(state.recalled.attachments) + len(state.recalled.quotes)


def _fold(core: Core, layout: Layout, budget: int) -> None:
    plan = planner.plan_budget(core.state, core.config, layout, budget)
    if plan.contents_tokens is None or not folding.fold(core, plan, limit=plan.contents_tokens, evict=False).seq:
        folding.fold(core, plan)


def _fold_kept(core: Core, layout: Layout, budget: int) -> None:
    folding.fold(core, planner.plan_oldest(core.state, core.config, layout, budget, kept=True))


def _shorten_contents(core: Core, layout: Layout, budget: int) -> None:
    """Leave the contents page what the other parts leave, if that says something of its pages: what it lost is lost for good."""
    heading = core.state.wire.block(core.state.archive.preview(()).heading())
    room = int((budget - layout.tokens + layout.breakdown["contents"]) / layout.scale) - core.count(heading)
    if room > 0:
        folding.fold(core, planner.FoldPlan(pages=(), reason="budget"), limit=room, evict=False)


def _fade_excess(core: Core, layout: Layout, budget: int) -> None:
    """Let recalled pages go that take more than their share."""
    _fade(core, layout, layout.tokens - layout.breakdown["recalled"] + int(core.config.recall.max_share * budget))


def _drop_passages(core: Core, layout: Layout, budget: int) -> None:
    """Let passages go, the oldest first, until the window fits."""
    over, gone = layout.tokens - budget, []
    for seq, quotes in core.state.recalled.quotes.items():
        if over > 0:
            gone.append(seq)
            over -= int(quotes.tokens * layout.scale)
    if gone:
        core.commit(quoting.dropped(gone))


def _fade_older(core: Core, layout: Layout, budget: int) -> None:
    """Let pages go that were recalled in earlier turns until the window fits."""
    _fade(core, layout, budget, lambda each: each.turn < core.state.turn)


def _fade(core: Core, layout: Layout, budget: int, may_go: Callable[[Attachment], bool] | None = None) -> None:
    """Let recalled pages go, the least recently used first, until the window fits."""
    over, faded = layout.tokens - budget, []
    for index, attachment in core.state.recalled.least_used():
        if over > 0 and (may_go is None or may_go(attachment)):
            faded.append(index)
            over -= int(attachment.tokens * layout.scale)
    if faded:
        core.commit([PagesFaded(pages=faded, reason="budget")])
