"""A counter that anybody can follow, for tests."""

from typing import ClassVar

import attrs


@attrs.define(eq=False)
class WordCounter:
    """Counts words as tokens: what stands between white space."""

    name: ClassVar[str] = "words"
    exact: ClassVar[bool] = True
    margin: ClassVar[float] = 1.0

    calls: int = 0  # how often ``count`` was called

    def count(self, text: str) -> int:
        """Return the number of words in *text*."""
        self.calls += 1
        return len(text.split())
