"""Numbers and messages as people read them."""

from collections.abc import Mapping
from typing import Any

from memci.messages.base64_runs import data_of, described, description
from memci.messages.parts import Part, PartKind, parts


def count(number: float | None) -> str:
    """Return a number without decimals, its thousands apart; empty for ``None``."""
    return "" if number is None else f"{number:,.0f}"


def share(value: float | None) -> str:
    """Return a share as a percentage; empty for ``None``."""
    return "" if value is None else f"{value:.1%}"


def breakdown(tokens_by_part: Mapping[str, int]) -> str:
    """Return the tokens of a window by part, without the empty parts."""
    return ", ".join(f"{part} {count(tokens)}" for part, tokens in tokens_by_part.items() if tokens)


def message_text(value: dict[str, Any]) -> str:
    """Return a message as text: its words, a line for each call, what pictures and files are, the rest as JSON."""
    return "\n".join(_part_text(part) for part in parts(value))


def _part_text(part: Part) -> str:
    if part.call is not None:
        return f"→ {part.call.name}({described(part.call.arguments)}) [{part.call.id}]"
    return description("image", data_of(part.value), "") if part.kind is PartKind.IMAGE else described(part.text)
