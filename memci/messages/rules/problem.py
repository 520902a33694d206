"""What a provider would refuse in a list of messages."""

import attrs


@attrs.frozen
class Problem:
    """One reason for which a provider would refuse a call.

    Attributes:
        place: Where, such as ``messages[3].content[0]``.
        text: What is wrong, and what to do.
    """

    place: str
    text: str

    def __str__(self) -> str:
        """Return place and text on one line."""
        return f"{self.place}: {self.text}"
