"""The window: what one call sends to the model."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import attrs

from memci.engine.commands import ladder
from memci.engine.commands.prefetching import prefetch
from memci.engine.core.core import Core
from memci.engine.core.monitor import Zone, zone
from memci.engine.history.state import State
from memci.engine.settings.config_checks import MOST
from memci.engine.view.layout import RENDERER, Layout, lay_out
from memci.errors import ConfigError, InvalidMessageError, StoreError, shown
from memci.messages import codec


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
    """Return a window that fits, taking the steps that it needs; their events are committed first."""
    core.configure()
    budget = core.config.budget.tokens if budget is None else budget
    if type(budget) is not int or not 0 < budget <= MOST:
        message = f"{shown(budget)} is not a number of tokens above 0, or too large"
        raise ConfigError(message, path="budget")
    schemas = _checked_tools(tools)
    heard = core.state.settled.passages_seq if core.state.settled is not None else 0
    if core.config.recall.passages_tokens and not core.read_only:
        heard = prefetch(core, budget, heard)
    before = None
    while core.state.seq != before:  # so that the same window is found when it is asked for again
        before = core.state.seq
        layout, settled = ladder.fit(core, attrs.evolve(ladder.settling(core, budget, schemas), passages_seq=heard))
    if settled != core.state.settled:
        core.commit([settled])
    core.last_counted = layout.counted
    rendered = _rendered(core.state, layout, budget, core.state.seq)
    core.monitor.window(layout.tokens, budget)
    return rendered


def render_at(core: Core, seq: int) -> Window:
    """Return the window as it was after the event *seq*. Costs a snapshot and the events after it."""
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


def _rendered(state: State, layout: Layout, budget: int, seq: int) -> Window:
    view = layout.view
    if state.wire.assembled is not None:
        system, (raws, values) = None, view.written()
    else:
        ends = {view.ends[part] - 1 for part in ("system", "contents", "active") if part in view.ends}
        cached = {*ends, len(view.messages) - 1} if state.config.cache_breakpoints else ()
        system, messages = state.wire.assemble(view.messages, cached)
        raws = [message.raw for message in messages]
        values = codec.decode_list(raws)
    return Window(
        messages=values,
        system=system,
        tokens=layout.tokens,
        budget=budget,
        zone=zone(layout.tokens, budget),
        breakdown=layout.breakdown,
        seq=seq,
        json=b"[" + b",".join(raws) + b"]",
    )
