"""The command ``memci``. Loads typer, and rich only where something is drawn on a terminal; no other package of memci does."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from memci.cli import (
    chat_command,
    checks,
    listing,
    mcp_command,
    output,
    quality_command,
    reading,
    recalling,
    replay_command,
    time_commands,
    upkeep,
    windows,
)
from memci.cli.exit_code import EXPLAINED, CommandError, ExitCode, code_of
from memci.errors import MemciError, shortened
from memci.version import VERSION

_HELP = """Look into stored conversations, talk with a model, and replay conversations to measure what a model would see.

No command writes but chat, recall, fork, copy, erase, delete, repair --apply, checkpoints when it is asked to, mcp when its
client recalls, and replay into a new session; the others can be used while another process writes.
"""


_REFUSED: Any = typer.BadParameter.__mro__[2]
"""Whatever the parser of the command line refuses; typer does not export it."""

_MOST_HELP = 10_000
"""More characters than any command's help has, which is the text of a refusal where arguments are missing."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code.

    Args:
        arguments: What stands behind the command's name; by default what the process was called with.
    """
    output.prepare()
    try:
        code = _run(arguments)
        output.flush()
    except CommandError as error:
        return _failed(str(error), error.code)
    except MemciError as error:
        return _failed(" ".join([str(error), *getattr(error, "__notes__", ())]), code_of(error))
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = get_command(_app()).main(arguments, prog_name="memci", standalone_mode=False)
    except _REFUSED as error:
        if len(error.message) > _MOST_HELP:  # it quotes an argument
            error.message = shortened(error.message)
        error.show()
        code = error.exit_code
    except typer.Abort:
        code = ExitCode.FAILED
    except SystemExit as ended:  # whoever read the output closed it
        code = ended.code
    return code if isinstance(code, int) else ExitCode.OK


def _failed(words: str, code: ExitCode) -> int:
    if code is not ExitCode.PIPE_CLOSED:
        output.note(f"memci: {words}")
    return code


def _app() -> typer.Typer:
    codes = "\n".join(f"  {code:<4} {meaning}" for code, meaning in EXPLAINED.items())
    app = typer.Typer(
        help=_HELP,
        epilog=f"\b\nExit codes:\n{codes}",
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    app.command("chat")(chat_command.chat)
    app.command("replay")(replay_command.replay_files)
    bench = typer.Typer(help="Measure what memci does on conversations of yours.", no_args_is_help=True)
    bench.callback()(_no_options)
    bench.command("quality")(quality_command.quality)
    app.add_typer(bench, name="bench")
    app.command("sessions")(listing.sessions)
    app.command("pages")(listing.pages)
    app.command("contents")(listing.contents)
    app.command("search")(listing.search)
    app.command("show")(reading.show)
    app.command("recall")(recalling.recall)
    app.command("window")(windows.window)
    app.command("render")(windows.render)
    app.command("explain")(checks.explain)
    app.command("verify")(checks.verify)
    app.command("export")(reading.export)
    app.command("checkpoints")(time_commands.checkpoints)
    app.command("fork")(time_commands.fork)
    app.command("copy")(time_commands.copy)
    app.command("mcp")(mcp_command.mcp)
    app.command("repair")(upkeep.repair)
    app.command("erase")(upkeep.erase)
    app.command("delete")(upkeep.delete)
    app.command("config")(checks.config)
    return app


def _version(asked: bool) -> None:  # noqa: FBT001 (the signature of an option's callback)
    if asked:
        output.text(f"memci {VERSION}")
        raise typer.Exit(ExitCode.OK)


def _no_options() -> None:
    """Measure what memci does on conversations of yours."""


def _options(
    *, version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False
) -> None:
    """Take the options that stand before a command; each acts by its callback."""
    del version
