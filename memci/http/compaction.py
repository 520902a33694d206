"""Folding before it has to be, as marks of the session's settings: the planner obeys them, wherever the session is open."""

from collections.abc import Mapping
from itertools import product
from typing import get_args

from memci.client.answer import Auto, AutoZone, Level
from memci.engine.commands.folding import LIGHTER
from memci.engine.core.monitor import Zone, begins
from memci.engine.settings.config import Config

NO_MARKS: Mapping[str, object] = {"high_water": 1.0, "low_water": "auto"}
"""Those of a session that folds only where a window would not fit."""


def marks(zone: AutoZone, level: Level) -> Mapping[str, object]:
    """Return the marks at which a window folds as it comes into a zone, and down to which."""
    high = begins(Zone(zone))
    return {"high_water": high, "low_water": round(high * (1 - LIGHTER[level]), 3)}


def told(config: Config) -> Auto:
    """Return what settings say of it."""
    active = config.active
    now = {"high_water": active.high_water, "low_water": active.low_water}
    known = ((zone, level) for zone, level in product(get_args(AutoZone), get_args(Level)) if marks(zone, level) == now)
    zone, level = next(known, (None, None))
    return Auto(enabled=active.high_water < 1, zone=zone, level=level)
