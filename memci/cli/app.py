"""The command ``memci``: what it ends with, whatever happens."""

from collections.abc import Sequence

from memci.cli import output
from memci.cli.exit_code import CommandError, ExitCode, code_of, refuse_without
from memci.errors import MemciError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with what follows its name, by default that of the process, and return its exit code."""
    output.prepare()
    try:
        try:
            from memci.cli.commands import run  # noqa: PLC0415 (an extra)
        except ModuleNotFoundError as error:
            refuse_without(error, "the command line", "cli")
        code = run(arguments)
        output.write("", through=True)
    except CommandError as error:
        code = error.code
        if code is not ExitCode.PIPE_CLOSED:
            output.note(f"memci: {error}")
    except MemciError as error:
        code = code_of(error)
        output.note(" ".join([f"memci: {error}", *getattr(error, "__notes__", ())]))
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    return code
