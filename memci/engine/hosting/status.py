"""How a session stands: numbers by part and by role, and what is advised, without writing anything."""

from collections import Counter
from collections.abc import Mapping
from typing import Literal

import attrs

from memci.archive.catalogue.page_facts import PageState
from memci.engine.core.core import Core
from memci.engine.core.monitor import Zone, zone
from memci.engine.view import planner
from memci.engine.view.layout import Layout
from memci.engine.view.rule_facts import count_states, rule_facts

_FULL_SHARE = 0.75  # of the budget, that what can neither fold nor fade may take before another session is advised

Advice = Literal["none", "fold", "trim", "hand_over"]


@attrs.frozen(kw_only=True)
class Status:
    """How a session stands.

    *tokens* are those of the window as it is now, before any step that makes it fit its *budget*; *breakdown* has them by part,
    *roles* those of what is in view by who said it. *messages* and *calls* are how many there are in view, *waiting* how many
    calls have no result yet; *pages* counts them by state, as far as window and contents page show them, and *rules* counts the
    rules by the state in their ``RuleFacts``. *advised* is ``none``, ``fold``, ``trim`` (long results) or ``hand_over`` (to
    another session, as what cannot fold takes most of the budget), and *why* says it in a sentence.
    """

    seq: int
    turn: int
    tokens: int
    budget: int
    zone: Zone
    breakdown: Mapping[str, int]
    roles: Mapping[str, int]
    messages: int
    calls: int
    waiting: int
    pages: Mapping[str, int]
    notes: int
    rules: Mapping[str, int] = attrs.field(factory=dict)
    advised: Advice
    why: str

    def line(self) -> str:
        """Return it as one line, for a model or a log: numbers, and nothing that anybody said."""
        waiting = f", {self.waiting} calls wait" if self.waiting else ""
        advised = "" if self.advised == "none" else f"; {self.advised.replace('_', ' ')}: {self.why}"
        return f"context: {self.tokens:,} of {self.budget:,} tokens ({self.zone}), turn {self.turn}{waiting}{advised}"


@attrs.frozen(kw_only=True)
class Stats:
    """A session in figures, for a list: its last event and turn, what was said and sent so far, and its window now.

    *said_tokens* are those of all messages that came in. Of *calls*, assistant messages since a window was first asked for,
    *sent_tokens* is what their windows took, about: by the counter, and long results that were shown in part count whole, up to
    the budget. Of *reports*, those that ``report_usage`` accepted, *reported_tokens* is what the provider counted of the prompts,
    and *cached_tokens* what its cache had of these; *cost* is theirs in tokens of plain input, by the settings' ``prices``: a
    cache read for what was cached, a write for the rest; ``None`` without a report. *tokens*, *budget* and *zone* are of the
    window as it is now.
    """

    session: str
    seq: int
    turn: int
    said_tokens: int
    calls: int
    sent_tokens: int
    reports: int
    reported_tokens: int
    cached_tokens: int
    cost: int | None
    tokens: int
    budget: int
    zone: Zone


def stats(core: Core) -> Stats:
    """Return a session in figures. O(visible)."""
    state, budget, spent, prices = core.state, core.config.budget.tokens, core.state.spent, core.config.prices
    written = spent.reported_tokens - spent.cached_tokens
    tokens = _laid_out(core).tokens
    return Stats(
        session=core.session_id,
        seq=state.seq,
        turn=state.turn,
        **attrs.asdict(spent),
        cost=round(spent.cached_tokens * prices.read + written * prices.write) if spent.reports else None,
        tokens=tokens,
        budget=budget,
        zone=zone(tokens, budget),
    )


def _laid_out(core: Core) -> Layout:
    """Return the window as it is now, without what was beside one call."""
    settled = core.state.settled
    return core.lay_out(core.state, settled and attrs.evolve(settled, extra={}, extra_tokens=0))


def status(core: Core) -> Status:
    """Return how a session stands. O(visible)."""
    state, budget = core.state, core.config.budget.tokens
    layout = _laid_out(core)
    roles, messages, calls = Counter[str](), 0, 0
    for chapter in state.verbatim():
        for node in chapter.message_list:
            roles[node.message.speaker] += round(node.tokens * layout.scale)
            messages, calls = messages + 1, calls + len(node.message.calls)
    states = Counter(str(state.page_state(page.index)) for page in state.active.pages())
    states[str(PageState.ATTACHED)] = len(state.recalled.attachments)
    states[str(PageState.ARCHIVED)] = sum(entry.pages for entry in state.archive.entries)
    advised, why = _advice(core, layout.tokens, layout.breakdown)
    return Status(
        seq=state.seq,
        turn=state.turn,
        tokens=layout.tokens,
        budget=budget,
        zone=zone(layout.tokens, budget),
        breakdown=dict(layout.breakdown),
        roles=dict(roles),
        messages=messages,
        calls=calls,
        waiting=sum(len(seqs) for page in state.active.pages() for seqs in page.open_calls.values()),
        pages={name: number for name, number in states.items() if number},
        notes=state.tree.next_note - 1,
        rules=count_states(rule_facts(state)),
        advised=advised,
        why=why,
    )


def _advice(core: Core, tokens: int, breakdown: Mapping[str, int]) -> tuple[Advice, str]:
    state, config, budget = core.state, core.config, core.config.budget.tokens
    plan = planner.plan(state, config, core.lay_out) if core.planner is None else planner.planned_by(core.planner, state, config)
    stays = sum(breakdown.get(part, 0) for part in ("system", "tools", "open", "slots", "extra"))
    if plan.pages:
        return "fold", f"{len(plan.pages)} pages are over the marks"
    if plan.trimmed:
        return "trim", f"long results of {len(plan.trimmed)} pages take room that the dialogue needs"
    if stays > _FULL_SHARE * budget:
        return "hand_over", f"{stays:,} of {budget:,} tokens are the system part and the open page, which do not fold"
    if zone(tokens, budget) in (Zone.ORANGE, Zone.RED):
        return "fold", f"the window takes {tokens / budget:.0%} of its budget"
    return "none", f"the window takes {tokens / budget:.0%} of its budget"
