"""The command ``memci``: what it ends with, whatever happens."""

from collections.abc import Sequence

from memci.cli import output
from memci.cli.exit_code import CommandError, ExitCode, code_of
from memci.errors import MemciError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code.

    Args:
        arguments: What follows the command's name; by default what the process was called with.
    """
    output.prepare()
    try:
        from memci.cli.commands import run  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("memci"):
            raise
        return _failed(f"the command line needs the package {error.name}: install memci with its extra cli", ExitCode.USAGE)
    try:
        code = run(arguments)
        output.write("", through=True)
    except CommandError as error:
        return _failed(str(error), error.code)
    except MemciError as error:
        return _failed(" ".join([str(error), *getattr(error, "__notes__", ())]), code_of(error))
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    return code


def _failed(words: str, code: ExitCode) -> int:
    if code is not ExitCode.PIPE_CLOSED:
        output.note(f"memci: {words}")
    return code
