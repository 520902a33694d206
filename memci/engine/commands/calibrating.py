"""Scaling counts by what the provider counted.

The scale follows a report at once where it makes windows smaller, and where it makes them larger only when the last two agree: it
is the newest of the last three ratios or their median, whichever is more. So no single report lets a window pass its budget, and
none keeps windows small once a better one came. None blocks a session either: see ``window``.
"""

import attrs

from memci.engine.core.core import Core
from memci.engine.core.monitor import CacheMiss
from memci.engine.history.events import UsageReported
from memci.engine.history.state import State
from memci.engine.reading import caching
from memci.engine.reading.caching import CacheReport
from memci.errors import ConfigError, shown
from memci.messages.tokens.message_tokens import REPLY_TOKENS
from memci.messages.usage import MOST_TOKENS, cached_tokens, prompt_tokens

RATIO_LIMITS = (0.5, 4.0)  # tokens of the provider for one of the counter; beyond them, the report is about something else
ESTIMATE_SLACK = 1.05  # what stays on top of a calibrated estimate: single messages differ more than the window does
FIXED_SHARE = 0.75  # of the budget: what a report may make of all that no step shortens, so that the next message has room


@attrs.frozen(kw_only=True)
class Calibration:
    """What came of a report of usage: whether it can be about the last window, what counts are multiplied by now, and why.

    *cache* says how much of the prompt the provider's cache had, and why not more.
    """

    accepted: bool
    scale: float
    reason: str
    cache: CacheReport | None = None  # where the usage tells of the provider's cache, and there was a report before


def report_usage(core: Core, usage: object, tokens: int | None) -> Calibration:
    """Take a report in; see ``Session.report_usage``."""
    if (usage is None) is (tokens is None):
        message = "give the provider's usage, or prompt_tokens, a number above 0"
        raise ConfigError(message, path="usage")
    if tokens is None:
        tokens = prompt_tokens(usage, core.state.config.format)
    elif type(tokens) is not int or not 0 < tokens <= MOST_TOKENS:
        message = f"{shown(tokens)} is not a number of tokens above 0, or too large"
        raise ConfigError(message, path="prompt_tokens")
    state, counted = core.state, core.prepared.counted
    if not counted:
        reason = "no window was asked for since the session was opened here: report the usage of a call right after it"
        return Calibration(accepted=False, scale=state.scale, reason=reason)
    low, high = RATIO_LIMITS
    reason = f"the provider counted {tokens} tokens, and the counter {counted} in the last window"
    if not low * counted <= tokens <= high * counted:
        reason = f"{reason}: fewer than half, or more than {high:g} times as many, are not of that window"
        return Calibration(accepted=False, scale=state.scale, reason=reason)
    ratio = tokens / counted * (1.0 if core.counter.exact else ESTIMATE_SLACK)
    wanted = max(ratio, sorted((*state.ratios, ratio))[1], 1.0 if core.counter.exact else 0.0)
    scale = min(wanted, max(state.scale, _most_scale(state)))
    if scale < wanted:
        reason = f"{reason}; by a scale of {wanted:.2f} what no step shortens would leave the next message no room"
    elif scale > ratio:
        why = "an exact counter counts no less" if scale == 1.0 else "one report alone makes windows no larger"
        reason = f"{reason}; {why}"
    cached = None if usage is None else cached_tokens(usage)
    told = UsageReported(
        prompt_tokens=tokens, counted_tokens=counted, scale=scale, ratio=ratio, cached_tokens=min(cached or 0, tokens)
    )
    core.commit([told])
    cache = None if cached is None else caching.report(core, cached, tokens)
    if cache is not None and cache.missed:
        core.monitor.report(CacheMiss(report=cache))
    return Calibration(accepted=True, scale=scale, reason=reason, cache=cache)


def _most_scale(state: State) -> float:
    """Return the scale by which what no step shortens takes ``FIXED_SHARE`` of the budget. O(open page)."""
    budget, tools_tokens = state.config.budget.tokens, 0
    if state.settled is not None:
        budget, tools_tokens = min(budget, state.settled.budget), state.settled.tools_tokens + state.settled.extra_tokens
    system_tokens = state.system.tokens + state.hidden_tokens
    least = system_tokens + state.headlines_tokens + state.instruction_tokens + tools_tokens + REPLY_TOKENS
    least += state.slots.tokens if state.slots is not None else 0
    for page in filter(None, (state.opening, state.active.open_page)):
        least += sum(min(node.tokens, node.stub_tokens or node.tokens) for node in page.nodes())
    return FIXED_SHARE * budget / least
