"""The budget bar: how much of a window's budget each part takes, drawn on a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self

import attrs

from memci.engine.core.monitor import Zone, zone

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

    from memci.engine.commands.window import Window

_PARTS = {
    "system": ("s", "blue", "system"),
    "tools": ("t", "bright_blue", "tools"),
    "contents": ("c", "cyan", "contents"),
    "facts": ("f", "bright_white", "facts"),
    "work": ("w", "bright_cyan", "working set"),
    "mounted": ("m", "bright_magenta", "mounted"),
    "rules": ("u", "red", "rules"),
    "directives": ("i", "bright_red", "instructions"),
    "recalled": ("r", "magenta", "recalled"),
    "active": ("a", "green", "active"),
    "open": ("o", "bright_green", "open"),
    "slots": ("l", "yellow", "slots"),
    "extra": ("x", "bright_yellow", "extra"),
    "reply": ("y", "white", "reply"),
    "free": (".", "bright_black", "free"),
}
"""The letter of each part where there are no colours, its colour, and what it is called."""

_ZONES = {Zone.GREEN: "green", Zone.YELLOW: "yellow", Zone.ORANGE: "dark_orange", Zone.RED: "bold red"}
_BESIDE_COLUMNS = 60  # of a terminal that has room for the bar and its numbers on one line


@attrs.frozen(kw_only=True)
class Bar:
    """A window's tokens and budget; what is *brief* has no legend. Drawn in the terminal's width, in letters without colours."""

    tokens: int
    budget: int
    breakdown: Mapping[str, int]
    brief: bool = False

    @classmethod
    def of(cls, window: "Window", budget: int | None = None, *, brief: bool = False) -> Self:
        """Return the bar of a window, by default in its own budget."""
        wanted = window.budget if budget is None else budget
        return cls(tokens=window.tokens, budget=wanted, breakdown=window.breakdown, brief=brief)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator["Text"]:
        """Yield its lines, as rich asks for them."""
        from rich.text import Text  # noqa: PLC0415 (40 ms, for terminals only)

        width, summary = options.max_width, self._summary()
        plain = console.no_color or console.color_system is None or options.ascii_only
        if self.brief and width >= _BESIDE_COLUMNS:
            yield Text.assemble(self._drawn(width - len(summary) - 1, plain=plain), " ", summary)
            return
        yield self._drawn(width, plain=plain)
        if not self.brief:
            yield from self._legend(width, plain=plain)
        yield summary

    def _sizes(self) -> dict[str, int]:
        sizes = {part: tokens for part, tokens in self.breakdown.items() if tokens}
        return sizes if self.tokens >= self.budget else {**sizes, "free": self.budget - self.tokens}

    def _drawn(self, width: int, *, plain: bool) -> "Text":
        from rich.text import Text  # noqa: PLC0415 (as above)

        sizes, drawn = self._sizes(), Text(no_wrap=True, overflow="crop")
        for part, columns in zip(sizes, shares(list(sizes.values()), width), strict=True):
            drawn.append_text(_mark(part, columns, plain=plain))
        return drawn

    def _legend(self, width: int, *, plain: bool) -> Iterator["Text"]:
        """Yield lines of what each part is called and takes, as many on a line as fit."""
        from rich.text import Text  # noqa: PLC0415 (as above)

        line = Text()
        for part, tokens in self._sizes().items():
            entry = Text.assemble(_mark(part, 1, plain=plain), f" {_PARTS[part][2]} {tokens:,}")
            if line and len(line) + 2 + len(entry) > width:
                yield line
                line = Text()
            line = Text("  ").join([line, entry]) if line else entry
        yield line

    def _summary(self) -> "Text":
        from rich.text import Text  # noqa: PLC0415 (as above)

        now, over = zone(self.tokens, self.budget), self.tokens - self.budget
        left = f", {over:,} over" if over > 0 else ""
        return Text.assemble("zone ", (now, _ZONES[now]), f", {self.tokens:,} of {self.budget:,} tokens{left}")


def shares(sizes: Sequence[int], width: int) -> list[int]:
    """Return how many columns of *width* each size gets: at least one, as far as there are any, the rest by size."""
    if len(sizes) >= width:
        return [1 if place < width else 0 for place in range(len(sizes))]
    left, whole = width - len(sizes), sum(sizes)
    columns = [1 + size * left // whole for size in sizes]
    by_remainder = sorted(range(len(sizes)), key=lambda place: -(sizes[place] * left % whole))
    for place in by_remainder[: width - sum(columns)]:
        columns[place] += 1
    return columns


def _mark(part: str, columns: int, *, plain: bool) -> "Text":
    from rich.text import Text  # noqa: PLC0415 (40 ms, for terminals only)

    letter, colour, _ = _PARTS[part]
    return Text(letter * columns) if plain else Text(("░" if part == "free" else "█") * columns, style=colour)
