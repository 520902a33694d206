"""What each class of events says of itself."""

from typing import ClassVar

import attrs


@attrs.frozen
class Kind:
    """An event: its kind, as a record says it, and the latest version of that."""

    kind: ClassVar[str]
    version: ClassVar[int]

    def __init_subclass__(cls, kind: str = "", version: int = 1) -> None:
        """Take both."""
        if kind:  # else attrs makes the class anew, with what it has
            cls.kind, cls.version = kind, version
