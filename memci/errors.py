"""Every error that memci raises on purpose.

The tree:

    MemciError
    ├── ArgumentError (a TypeError too)
    ├── ConfigError
    ├── InvalidMessageError
    ├── InvalidIdError
    ├── BudgetError
    ├── PageNotFoundError
    ├── PageEvictedError
    ├── PermissionDeniedError
    ├── QuotaError
    ├── StoreError
    │   ├── ConflictError
    │   ├── CorruptError
    │   ├── EncryptionError
    │   ├── ErasureError
    │   └── UnavailableError
    │       └── LockedError
    ├── SummaryError
    │   └── SummaryTimeoutError
    ├── SessionClosedError
    ├── ModelError
    │   └── ModelTimeoutError
    └── AttpError
        ├── AttpSyntaxError
        ├── ToolDefinitionError
        ├── ToolNotFoundError
        ├── ToolArgumentError
        ├── SandboxError
        └── LimitExceededError

An error carries its data as attributes and can be pickled and copied; its text says what to do next, is of bounded length
whatever it quotes, and can be encoded.
"""

import copyreg
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

MOST_SHOWN = 80  # characters of a quoted value
MOST_NAMED = 200  # of the name of a part that is somebody's own, and of the reason that it gives

_MOST_SECONDS = 1_000_000  # systems cannot wait much longer
_HEAD, _TAIL = 1_500, 500
"""Characters that are left of the beginning and of the end of a longer text: the advice stands at the end."""


def shown(value: object) -> str:
    """Return a value as an error text shows it: its ``repr``, cut to 80 characters. O(1) for text and lists."""
    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = MOST_SHOWN
    try:
        text = brief.repr(value)
    except ValueError:  # an integer of more than 4,300 digits
        return "a number too large to be shown"
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def is_span(seconds: object) -> bool:
    """Return whether it is a number of seconds that can be waited for: above 0, and at most a million."""
    return isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds <= _MOST_SECONDS


def is_line(text: object) -> bool:
    """Return whether it is text on one line, of at most ``MOST_NAMED`` characters, that UTF-8 can encode, and no mere space."""
    return isinstance(text, str) and text.isprintable() and 0 < len(text.strip()) <= len(text) <= MOST_NAMED


def shortened(text: str) -> str:
    """Return a text as an error has it: without its middle, where it is long, and with lone surrogates written out."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} … {text[-_TAIL:]}"


class PicklableError(Exception):
    """An exception that pickling and copying make again from what it holds, and not by calling its class."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes it again: its class, its text and its attributes."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]  # unlisted there


class MemciError(PicklableError):
    """The root: catch this to catch all of them."""

    def __init__(self, message: str = "") -> None:
        super().__init__(shortened(message))


class ArgumentError(MemciError, TypeError):
    """An argument of a call is of a type that it does not take; nothing was done. ``argument`` is the name of the parameter."""

    def __init__(self, *, argument: str, value: object, wanted: str) -> None:
        super().__init__(f"{argument}: {shown(value)} cannot be used here: give {wanted}")
        self.argument = argument


class ConfigError(MemciError):
    """The configuration cannot be used. ``path`` is the place in it, such as ``active.max_pages``; empty for the whole."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


def missing_extra(error: ModuleNotFoundError, extra: str) -> ConfigError:
    """Return the error for a package that an extra of memci brings."""
    return ConfigError(f"the package {error.name} is not installed: install memci with its extra {extra}")


class InvalidMessageError(MemciError):
    """A message was refused; nothing was stored. ``path`` is the place, such as ``content[1].type``; empty for the whole."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class InvalidIdError(MemciError):
    """A session id, tenant, page index or label cannot be used as one.

    ``value`` is what was given; of what is neither text, bytes nor a number, how it is shown.
    """

    def __init__(self, message: str, *, value: object) -> None:
        super().__init__(message)
        self.value = value if isinstance(value, str | bytes | int | float | None) else shown(value)


class BudgetError(MemciError):
    """No window of ``budget`` tokens fits, whatever is folded, shortened or faded for it.

    ``tokens`` has the smallest window that could be made; ``breakdown``, its tokens by part, adds up to them.
    """

    def __init__(self, *, budget: int, tokens: int, breakdown: Mapping[str, int]) -> None:
        parts = ", ".join(f"{part} {count}" for part, count in breakdown.items() if count)
        super().__init__(
            f"the smallest window holds {tokens} tokens and the budget is {budget} ({parts}): "
            "raise the budget, or shorten the largest part; nothing is lost and the session goes on"
        )
        self.budget, self.tokens, self.breakdown = budget, tokens, dict(breakdown)


class PageNotFoundError(MemciError):
    """No page has this ``index``."""

    def __init__(self, message: str, *, index: str) -> None:
        super().__init__(message)
        self.index = index


class PageEvictedError(MemciError):
    """The page with this ``index`` left the contents page; ``search`` finds it, and ``restore`` puts it back."""

    def __init__(self, index: str) -> None:
        super().__init__(
            f"page {index} was evicted from the contents page: a search (tool: search_pages) finds it by its words, read_page "
            "reads it, and the application can restore it"
        )
        self.index = index


class PermissionDeniedError(MemciError):
    """The segment, or the way the store was opened, does not allow this."""


class StoreError(MemciError):
    """The store cannot do what was asked."""


class ConflictError(StoreError):
    """Somebody else wrote first, or a key was used for something else; nothing was written.

    ``head`` is the sequence number of the last record, ``expected`` the one that the writer believed to be it.
    """

    def __init__(self, message: str, *, expected: int, head: int) -> None:
        super().__init__(message)
        self.expected, self.head = expected, head


class CorruptError(StoreError):
    """Stored bytes are not what was written: those at ``place``, which is a file or key, and where in it.

    ``session`` is the one they belong to, empty where that is not known or is all of a store; ``seq`` is the sequence number of
    the damaged record, ``None`` where it is not known.
    """

    def __init__(self, message: str, *, session: str, place: str, seq: int | None = None) -> None:
        super().__init__(f"session {shown(session)}, {place}: {message}" if session else f"{place}: {message}")
        self.session, self.place, self.seq = session, place, seq


class EncryptionError(StoreError):
    """What is stored of a *session* cannot be read with the keys that were given: *key_id* is that of the key which wrote it.

    It is empty where the session is not encrypted.
    """

    def __init__(self, session: str, key_id: str) -> None:
        lost = (
            f"it is encrypted with the key {key_id}, which is not there: give it as encryption.key, or among encryption.old_keys"
        )
        plain = "it is not encrypted, and a key was given: copy it with memci copy --to-key, or leave encryption.key out"
        super().__init__(f"session {shown(session)}: {lost if key_id else plain}")
        self.session, self.key_id = session, key_id


class ErasureError(StoreError):
    """A ``page`` was erased in a session and in some of its forks, and in others it could not be: these may still hold it.

    ``receipts`` are what ``Session.erase`` returned where it was erased; ``failed`` are the errors elsewhere, by session.
    """

    def __init__(self, page: str, receipts: Sequence[Any], failed: Mapping[str, MemciError]) -> None:
        done = ", ".join(shown(receipt.session) for receipt in receipts)
        reasons = "; ".join(f"{shown(session)}: {error}" for session, error in failed.items())
        super().__init__(
            f"page {page} is erased in {done}, and may still be held by others: mend or delete them, and erase it again with "
            f"its forks ({reasons})"
        )
        self.page, self.receipts, self.failed = page, tuple(receipts), dict(failed)


class UnavailableError(StoreError):
    """The store did not do it this time: a full disk, a failed sync, a session that was deleted meanwhile."""


class QuotaError(MemciError):
    """A *tenant* would have more than it may; nothing was written.

    ``quota`` is the setting's path, such as ``limits.tenant_bytes``; ``used`` is what the tenant has, ``wanted`` what was to
    come, ``most`` what it may have.
    """

    def __init__(self, *, quota: str, tenant: str, used: int, wanted: int, most: int) -> None:
        what = f"tenant {shown(tenant)} has {used:,} of {most:,}, and {wanted:,} more were to come"
        super().__init__(f"{quota}: {what}: delete sessions, or raise the quota")
        self.quota, self.tenant, self.used, self.wanted, self.most = quota, tenant, used, wanted, most


class LockedError(UnavailableError):
    """Somebody else kept the ``session`` locked for longer than a writer waits; nothing was written: try again.

    ``session`` is empty where the lock is not that of one session.
    """

    def __init__(self, message: str, *, session: str) -> None:
        super().__init__(f"session {session!r}: {message}" if session else message)
        self.session = session


class SummaryError(MemciError):
    """A page could not be summarised: its contents entry is made of extracts.

    ``usage`` is that of an answer which came and is no summary, so that asking again would pay again; ``None`` where none came.
    """

    def __init__(self, message: str = "", *, usage: Mapping[str, float] | None = None) -> None:
        super().__init__(message)
        self.usage = usage


class SummaryTimeoutError(SummaryError):
    """A summariser took longer than it may."""


class SessionClosedError(MemciError):
    """The session or its engine was closed; open it again with ``engine.session(session_id)``."""


class ModelError(MemciError):
    """A model gave no reply, or one that cannot be kept; the session is as it was before the request.

    ``status`` is the HTTP status of its endpoint's answer; ``None`` where there was no answer, or nothing to do with it.
    ``retry_after_s`` are the seconds for which the endpoint wants not to be asked, ``None`` where it does not say.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after_s = status, retry_after_s


class ModelTimeoutError(ModelError):
    """A model's endpoint did not answer in time."""


class AttpError(MemciError):
    """A model's tool call could not be read or carried out. The text is written for the model: it says what to change."""


class AttpSyntaxError(AttpError):
    """A reply tries to call a tool and cannot be read; nothing was run.

    ``problem`` is what is wrong, ``line`` and ``column`` where (both from 1), ``hint`` what to write instead.
    """

    def __init__(self, problem: str, *, line: int, column: int, hint: str) -> None:
        super().__init__(f"line {line}, column {column}: {problem}; {hint}")
        self.problem, self.line, self.column, self.hint = problem, line, column, hint


class ToolDefinitionError(AttpError):
    """The function of a ``tool`` cannot be offered, as its signature does not say what a model has to know.

    ``parameter`` is the one at fault; ``return`` for the result, empty for the whole function.
    """

    def __init__(self, problem: str, *, tool: str, parameter: str = "") -> None:
        super().__init__(f"{tool}: {parameter}: {problem}" if parameter else f"{tool}: {problem}")
        self.tool, self.parameter = tool, parameter


class ToolNotFoundError(AttpError):
    """No tool has this ``name``; ``nearest`` are the names of tools that look like it, the most alike first."""

    def __init__(self, name: str, *, nearest: Sequence[str] = ()) -> None:
        advice = f"did you mean {' or '.join(nearest)}?" if nearest else "use one of the tools that the prompt describes"
        super().__init__(f"there is no tool {shown(name)}: {advice}")
        self.name, self.nearest = name, tuple(nearest)


class ToolArgumentError(AttpError):
    """A ``tool`` was called with arguments that it does not take; it was not run.

    ``parameter`` is the one at fault, empty for none in particular; ``signature`` is how the tool is called.
    """

    def __init__(self, problem: str, *, tool: str, parameter: str = "", signature: str = "") -> None:
        super().__init__(f"{tool}: {problem}; call it as {signature}" if signature else f"{tool}: {problem}")
        self.tool, self.parameter, self.signature = tool, parameter, signature


class SandboxError(AttpError):
    """The model's code failed, or the worker that ran it did.

    ``kind`` is the Python exception's name, or what became of the worker; ``line`` that of the code, from 1, where it is known.
    """

    def __init__(self, message: str, *, kind: str, line: int | None = None) -> None:
        super().__init__(message)
        self.kind, self.line = kind, line


class LimitExceededError(AttpError):
    """A call went past one of its limits and was stopped: ``limit`` is its name, such as ``time_s``, ``value`` what it allows."""

    def __init__(self, message: str, *, limit: str, value: float) -> None:
        super().__init__(message)
        self.limit, self.value = limit, value
