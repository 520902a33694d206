"""What the command tells its caller by its exit code."""

from enum import IntEnum
from typing import NoReturn

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
    """The exit codes; ``EXPLAINED`` has their meaning in words."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    STORE = 4
    INTERRUPTED = 130
    PIPE_CLOSED = 141


EXPLAINED = {
    ExitCode.OK: "all went well",
    ExitCode.FAILED: (
        "a check failed: verify found a problem, a promise was broken (replay, bench), no window fits, or a model gave no reply"
    ),
    ExitCode.USAGE: "wrong usage, a configuration or a conversation that cannot be used",
    ExitCode.NOT_FOUND: "there is no such store, session, page, entry or checkpoint",
    ExitCode.STORE: "the store is damaged, or it or the output cannot be read or written",
    ExitCode.INTERRUPTED: "interrupted with Ctrl-C",
    ExitCode.PIPE_CLOSED: "whoever read the output closed it",
}


class CommandError(PicklableError):
    """A command cannot go on; its text is one line for people.

    Attributes:
        code: What the process exits with.
    """

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(shortened(message))
        self.code = code


def refuse(message: str, code: ExitCode = ExitCode.USAGE) -> NoReturn:
    """End the command with a line for people.

    Raises:
        CommandError: Always.
    """
    raise CommandError(message, code)


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
