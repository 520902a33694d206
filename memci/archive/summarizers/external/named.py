"""The summariser that the configuration names."""

from collections.abc import Mapping
from importlib import metadata
from typing import Any

from memci.archive.summarizers.summary import EXTRACTIVE, Summarizer
from memci.errors import ConfigError, shown

GROUP = "memci.summarizers"
"""The group of entry points of packages that bring summarisers: each is a function that returns one."""

_BY_KEY = ("model", "command")  # keys of a setting that name its kind


def make_summarizer(setting: str | Mapping[str, Any]) -> Summarizer | None:
    """Return the summariser of a setting, ``None`` for ``extractive``: entries are extracts then.

    It is a name, that of an entry point, or has the key ``model`` or ``command``, and other arguments of what makes it.
    ``ConfigError`` where there is no such one, or it cannot be made of these.
    """
    if setting == EXTRACTIVE:
        return None
    name = setting if isinstance(setting, str) else next((key for key in _BY_KEY if key in setting), "")
    known = {each.name: each for each in metadata.entry_points(group=GROUP)}
    if name not in known:
        names = ", ".join((EXTRACTIVE, *sorted(known.keys() - set(_BY_KEY))))
        message = f"{shown(setting)} is no summariser: give one of {names}, or keys with model and base_url, or with command"
        raise ConfigError(message, path="summarizer")
    arguments = {} if isinstance(setting, str) else dict(setting)
    try:
        summarizer: Summarizer = known[name].load()(**arguments)
    except (TypeError, ValueError) as error:
        message = f"{name} cannot be made of {', '.join(map(str, arguments)) or 'nothing'}: {error}"
        raise ConfigError(message, path="summarizer") from error
    return summarizer
