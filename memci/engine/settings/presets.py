"""Strategies by name: what each preset says in the place of the defaults."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

Preset: TypeAlias = Literal["chapters", "sliding", "truncate", "threshold", "query_only", "two_layer", "hybrid"]
Section: TypeAlias = Mapping[str, Any]  # some of the keys of a section

CHAPTERS: Final = "chapters"  # the default: nothing but the defaults
_UNLISTED: Final = {"listed": False}
_UNTOLD: Final = {"passages_tokens": 0, "protocol": "none"}
_CONTINUED: Final = {"continuation": True}

PRESETS: Final[Mapping[str, Mapping[str, Section]]] = {
    CHAPTERS: {},
    "sliding": {"active": {"max_messages": 40, "keep_messages": 20}, "contents": _UNLISTED, "recall": _UNTOLD},
    "truncate": {"contents": _UNLISTED, "recall": _UNTOLD},
    "threshold": {
        "active": {"max_messages": 30, "least_tokens": 8_000, "keep_messages": 15},
        "contents": _UNLISTED,
        "recall": _UNTOLD,
        "summary": _CONTINUED,
    },
    "query_only": {"contents": _UNLISTED, "recall": {"passages_tokens": 500}},
    "two_layer": {"recall": {"passages_tokens": 0}, "summary": _CONTINUED},
    "hybrid": {"recall": {"passages_tokens": 500}, "summary": _CONTINUED},
}
"""By name and section, the keys that differ from the defaults."""


def preset_section(preset: object, section: str) -> Section:
    """Return what a preset says in a section; nothing for a name that is none, which the configuration refuses."""
    return PRESETS.get(preset, {}).get(section, {}) if isinstance(preset, str) else {}
