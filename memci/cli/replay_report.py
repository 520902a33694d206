"""A replay's findings as a table."""

from collections.abc import Callable, Iterator

from memci.cli import wording
from memci.cli.output import Column
from memci.cli.replay import BudgetFailure, Measurement
from memci.quality.money import Traffic

_COUNTS: tuple[tuple[str, str], ...] = (
    ("messages", "messages"),
    ("turns", "turns"),
    ("calls", "calls"),
    ("folds", "folds"),
    ("entries evicted", "evictions"),
    ("recalls", "recalls"),
    ("windows over budget", "over_budget"),
    ("broken call/result pairs", "broken_pairs"),
    ("messages that came back unequal", "unequal_messages"),
)

_TRAFFIC: tuple[tuple[str, Callable[[Traffic], str]], ...] = (
    ("tokens sent", lambda traffic: wording.count(traffic.tokens)),
    ("tokens a call", lambda traffic: wording.count(traffic.tokens_per_call)),
    ("prefix reuse", lambda traffic: wording.share(traffic.prefix_reuse)),
    ("cost a call", lambda traffic: wording.count(traffic.cost_per_call)),
)

_SHOWN: tuple[tuple[str, Callable[[Measurement], str]], ...] = (
    ("verbatim tokens a call, once outgrown", lambda found: wording.count(found.verbatim_tokens)),
    ("the same as a share of the budget", lambda found: wording.share(found.verbatim_share)),
    ("contents page at the end, tokens", lambda found: wording.count(found.contents_tokens)),
)


def columns(found: Measurement, spilled: Measurement | None) -> list[Column]:
    """Return the columns: the session, the same with one page spilled a turn, and the whole history sent at every call."""
    named = [f"window of {wording.count(found.budget)}"]
    if spilled is not None:
        named.append("one page a turn")
    return [Column(""), *(Column(name, number=True) for name in [*named, "whole history"])]


def rows(found: Measurement, spilled: Measurement | None) -> Iterator[list[str]]:
    """Yield the rows of the table: what happened, what must be 0, what was sent."""
    runs = [found] if spilled is None else [found, spilled]
    for name, attribute in _COUNTS:
        yield [name, *(wording.count(getattr(run, attribute)) for run in runs), ""]
    if any(run.failed_folds for run in runs):
        yield ["folds that failed and were tried again", *(wording.count(run.failed_folds) for run in runs), ""]
    yield ["problems found by verify", *(wording.count(len(run.problems)) for run in runs), ""]
    yield ["equal when opened again", *("yes" if run.reopened_equal else "NO" for run in runs), ""]
    yield ["calls for which no window fits", *(wording.count(len(run.budget_errors)) for run in runs), ""]
    for name, told in _TRAFFIC:
        yield [name, *(told(run.traffic) for run in runs), told(found.whole_history)]
    for name, shown in _SHOWN:
        yield [name, *(shown(run) for run in runs), ""]
    yield ["pages at the end", *(wording.count(sum(run.pages.values())) for run in runs), ""]
    for state in sorted({state for run in runs for state in run.pages}):
        yield [f"of them {state}", *(wording.count(run.pages.get(state, 0)) for run in runs), ""]


def failure_line(failure: BudgetFailure) -> str:
    """Return a call for which no window fitted as a line."""
    return (
        f"call {failure.call}: no window fits {wording.count(failure.budget)} tokens; the smallest has "
        f"{wording.count(failure.tokens)} ({wording.breakdown(failure.breakdown)})"
    )
