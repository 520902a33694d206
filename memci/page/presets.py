"""A session under other strategies, side by side with its own settings."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from memci.engine.session import Session
from memci.quality.replay import requested, side_by_side, stored

NOW = "now"  # the column of the session's own settings

_ROWS = (
    ("calls", "calls", ""),
    ("folds", "folds", ""),
    ("evictions", "entries evicted", ""),
    ("over_budget", "windows over budget", ""),
    ("tokens_sent", "tokens sent", ""),
    ("tokens_per_call", "tokens a call", ""),
    ("prefix_reuse", "prefix reuse", "share"),
    ("cost_per_call", "cost a call, in tokens of plain input", ""),
    ("verbatim_tokens", "verbatim tokens a call, once outgrown", ""),
    ("contents_tokens", "contents page at the end, tokens", ""),
)
"""Keys of what was measured, what people read, and how the figures are written."""


def compared(session: Session, presets: Sequence[str], advance: Callable[[int, int], None]) -> dict[str, Any]:
    """Play a session's messages in memory under its own settings and under presets, and return the figures as a JSON value.

    *advance* hears how many messages are done, and of how many. Each call carries what the session's last ones carried beside
    its messages. What a person did beside appending is not repeated.
    ``ConfigError`` for a name that is no preset. O(messages), for each.
    """
    said, settings = stored(session), session.config
    strategies = {NOW: settings} | {name: settings.with_choice({"preset": name}) for name in presets}
    steps, total = itertools.count(1), len(strategies) * len(said)
    found = side_by_side(strategies, said, lambda: advance(next(steps), total), tools=requested(session))
    columns = [each.to_mapping() for each in found.values()]
    rows = [{"label": label, "kind": kind, "values": [each[key] for each in columns]} for key, label, kind in _ROWS]
    return {"columns": list(found), "rows": rows}
