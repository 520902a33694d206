"""Summarisers and planners that the configuration names: those of entry points, which any package may bring."""

from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

from memci.engine.settings.config import EXTRACTIVE, MARKS
from memci.errors import ConfigError, shown

if TYPE_CHECKING:
    from memci.archive.summarizers.summary import Summarizer
    from memci.engine.view.planner import Planner

_SUMMARIZERS, _PLANNERS = "memci.summarizers", "memci.planners"  # groups of entry points: functions that return one
_BY_KEY = ("model", "command")  # keys of a setting that name the kind of summariser


def make_summarizer(setting: str | Mapping[str, Any]) -> "Summarizer | None":
    """Return the summariser of a setting, ``None`` for ``extractive``: entries are extracts then.

    It is a name, or has the key ``model`` or ``command``, with other arguments of what makes it. ``ConfigError`` where there is
    no such one, or it cannot be made of these.
    """
    if setting == EXTRACTIVE:
        return None
    name = setting if isinstance(setting, str) else next((key for key in _BY_KEY if key in setting), shown(setting))
    arguments = {} if isinstance(setting, str) else setting
    summarizer: Summarizer = _made(_SUMMARIZERS, name, arguments, path="summarizer", own=EXTRACTIVE, needed="summarize")
    return summarizer


def make_planner(name: str) -> "Planner | None":
    """Return the planner of a name, ``None`` for ``marks``, or raise ``ConfigError``."""
    if name == MARKS:
        return None
    planner: Planner = _made(_PLANNERS, name, {}, path="planner", own=MARKS, needed="plan")
    return planner


def _made(  # noqa: PLR0913 (what tells the two kinds from each other)
    group: str, name: str, arguments: Mapping[str, Any], *, path: str, own: str, needed: str
) -> Any:  # noqa: ANN401 (of any class)
    known = {each.name: each for each in metadata.entry_points(group=group)}
    if name not in known:
        names = ", ".join((own, *sorted(known.keys() - set(_BY_KEY))))
        keys = ", or keys with model and base_url, or with command" if group == _SUMMARIZERS else ""
        message = f"there is no {path} {name}: give one of {names}{keys}"
        raise ConfigError(message, path=path)
    try:
        made = known[name].load()(**arguments)
    except ConfigError:
        raise
    except Exception as error:
        message = f"{name} cannot be made of {', '.join(map(str, arguments)) or 'nothing'}: {type(error).__name__}: {error}"
        raise ConfigError(message, path=path) from error
    if isinstance(made, type) or not callable(getattr(made, needed, None)):
        message = f"{name} makes {shown(made)}: its entry point is a function, or a class, that returns an object with {needed}"
        raise ConfigError(message, path=path)
    return made
