"""What the command tells its caller by its exit code."""

from enum import IntEnum
from typing import NoReturn, Self

from memci.errors import (
    ArgumentError,
    ConfigError,
    InvalidIdError,
    InvalidMessageError,
    MemciError,
    PageEvictedError,
    PageNotFoundError,
    PicklableError,
    StoreError,
    shortened,
)


class ExitCode(IntEnum):
    """The exit codes, each with its ``meaning`` in words."""

    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> Self:
        """Make one of them."""
        made = int.__new__(cls, code)
        made._value_, made.meaning = code, meaning
        return made

    OK = 0, "all went well"
    FAILED = (
        1,
        "a check failed: verify found a problem, a promise was broken (replay, simulate, bench), no window fits, no reply came",
    )
    USAGE = 2, "wrong usage, a configuration or a conversation that cannot be used"
    NOT_FOUND = 3, "there is no such store, session, page, entry, checkpoint or rule"
    STORE = 4, "the store is damaged, or it or the output cannot be read or written"
    INTERRUPTED = 130, "interrupted with Ctrl-C"
    PIPE_CLOSED = 141, "whoever read the output closed it"


class CommandError(PicklableError):
    """A command cannot go on; its text is one line for people, ``code`` is what the process exits with."""

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(shortened(message))
        self.code = code


def refuse(message: str, code: ExitCode = ExitCode.USAGE) -> NoReturn:
    """End the command with a line for people."""
    raise CommandError(message, code)


def refuse_without(error: ModuleNotFoundError, what: str, extra: str) -> NoReturn:
    """End the command where a package is missing that an extra brings; one of memci's own is an error of memci."""
    if error.name is None or error.name.startswith("memci"):
        raise error
    refuse(f"{what} needs the package {error.name}: install memci with its extra {extra}")


def code_of(error: MemciError) -> ExitCode:
    """Return what the process exits with after an error of the library."""
    match error:
        case ArgumentError() | ConfigError() | InvalidIdError() | InvalidMessageError():
            return ExitCode.USAGE
        case PageNotFoundError() | PageEvictedError():
            return ExitCode.NOT_FOUND
        case StoreError():
            return ExitCode.STORE
        case _:
            return ExitCode.FAILED
