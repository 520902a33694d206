"""What calls cost."""

from typing import Any

import attrs

from memci.engine.settings.config import Prices


@attrs.frozen(kw_only=True)
class Traffic:
    """What all calls together sent."""

    calls: int  # how many there were
    tokens: int  # their size by the counter
    prefix_reuse: float  # share of the tokens that stood at the same place in the call before, from the beginning on
    prices: Prices  # what cached and other tokens cost

    @property
    def tokens_per_call(self) -> float:
        """Mean size of a call."""
        return self.tokens / self.calls if self.calls else 0.0

    @property
    def cost_per_call(self) -> float:
        """Mean cost of a call, in tokens of plain input: what is reused costs a cache read, the rest a cache write."""
        return self.tokens_per_call * (self.prefix_reuse * self.prices.read + (1 - self.prefix_reuse) * self.prices.write)

    def to_mapping(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        return {
            "tokens_sent": self.tokens,
            "tokens_per_call": round(self.tokens_per_call, 1),
            "prefix_reuse": round(self.prefix_reuse, 4),
            "cost_per_call": round(self.cost_per_call, 1),
        }
