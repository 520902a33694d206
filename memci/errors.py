"""Every error that memci raises on purpose.

The tree::

    MemciError
    ├── ConfigError
    ├── InvalidMessageError
    ├── InvalidIdError
    ├── BudgetError
    ├── PageNotFoundError
    ├── PageEvictedError
    ├── PermissionDeniedError
    ├── StoreError
    │   ├── ConflictError
    │   ├── CorruptError
    │   └── UnavailableError
    ├── SummaryError
    └── SessionClosedError

An error carries its data as attributes; its text says what to do next.
"""

from collections.abc import Mapping


def shown(value: object) -> str:
    """Return a value as an error text shows it: its ``repr``, cut to 80 characters."""
    try:
        return repr(value)[:80]
    except ValueError:  # an integer of more than 4,300 digits
        return "such a number"


class MemciError(Exception):
    """The root: catch this to catch all of them."""


class ConfigError(MemciError):
    """The configuration cannot be used.

    Attributes:
        path: Where in the configuration, such as ``active.max_pages``; empty when it is the whole.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class InvalidMessageError(MemciError):
    """A message was refused; nothing was stored.

    Attributes:
        path: Where in the message, such as ``content[1].type``; empty when it is the whole.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class InvalidIdError(MemciError):
    """A session id, tenant, page index or label cannot be used as one.

    Attributes:
        value: What was given.
    """

    def __init__(self, message: str, *, value: object) -> None:
        super().__init__(message)
        self.value = value


class BudgetError(MemciError):
    """No window fits, whatever is folded, shortened or faded for it.

    Attributes:
        budget: Tokens the window was to hold.
        tokens: Tokens of the smallest window that could be made.
        breakdown: Tokens by part of that window; they add up to ``tokens``.
    """

    def __init__(self, *, budget: int, tokens: int, breakdown: Mapping[str, int]) -> None:
        parts = ", ".join(f"{part} {count}" for part, count in breakdown.items() if count)
        super().__init__(
            f"the smallest window holds {tokens} tokens and the budget is {budget} ({parts}): "
            "raise the budget, or shorten the largest part; nothing is lost and the session goes on"
        )
        self.budget = budget
        self.tokens = tokens
        self.breakdown = dict(breakdown)


class PageNotFoundError(MemciError):
    """No page has this index.

    Attributes:
        index: The index that was asked for.
    """

    def __init__(self, message: str, *, index: str) -> None:
        super().__init__(message)
        self.index = index


class PageEvictedError(MemciError):
    """The page left the contents page; it is stored and can be found by ``search`` and put back by ``restore``.

    Attributes:
        index: The page's index.
    """

    def __init__(self, index: str) -> None:
        super().__init__(
            f"page {index} was evicted from the contents page: find it with search, put it back with restore({index!r})"
        )
        self.index = index


class PermissionDeniedError(MemciError):
    """The segment, or the way the store was opened, does not allow this."""


class StoreError(MemciError):
    """The store cannot do what was asked."""


class ConflictError(StoreError):
    """Somebody else wrote first, or a key was used for something else; nothing was written.

    Attributes:
        expected: The sequence number that the writer believed to be the head.
        head: The sequence number that is the head.
    """

    def __init__(self, message: str, *, expected: int, head: int) -> None:
        super().__init__(message)
        self.expected = expected
        self.head = head


class CorruptError(StoreError):
    """Stored bytes are not what was written.

    Attributes:
        session: The session they belong to.
        place: The file or key, and where in it.
        seq: The sequence number of the damaged record; ``None`` where it is not known.
    """

    def __init__(self, message: str, *, session: str, place: str, seq: int | None = None) -> None:
        super().__init__(f"session {session!r}, {place}: {message}")
        self.session = session
        self.place = place
        self.seq = seq


class UnavailableError(StoreError):
    """The store did not do it this time: a full disk, a failed sync, a session that was deleted meanwhile."""


class SummaryError(MemciError):
    """A page could not be summarised; it stays in view."""


class SessionClosedError(MemciError):
    """The session or its engine was closed; open it again with ``engine.session(session_id)``."""
