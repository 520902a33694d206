"""All commands. Loads typer, and rich only where something is drawn on a terminal; no other package of memci does."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer import Option
from typer.main import get_command

from memci.cli import bench, chat, html, output, replay, serve, watch, work
from memci.cli.exit_code import ExitCode
from memci.cli.sessions import changing, editing, looking, tree
from memci.errors import shortened
from memci.version import VERSION

_HELP = """Look into stored conversations, talk with a model, and replay conversations to measure what a model would see.

No command writes but chat, recall, those that change a window (fold to note, in the list below), fork, copy, import, erase,
delete, repair --apply, checkpoints and rules when they are asked to, mcp when its client recalls, serve when it is asked to,
work, and replay into a new session; the others, and those with --dry-run, can be used while another process writes.
"""

_COMMANDS = (
    *(looking.sessions, looking.pages, tree.tree, looking.contents, looking.search, looking.show, looking.window),
    *(html.html, watch.watch),
    *(changing.recall, editing.fold, editing.undo, editing.fade, editing.keep, editing.unkeep, editing.pin, editing.unpin),
    *(editing.evict, editing.restore, editing.move, editing.note),
    *(replay.simulate, looking.render, looking.explain, looking.verify, looking.export),
    *(changing.checkpoints, changing.rules, changing.fork, changing.copy, changing.import_),
    *(chat.mcp, serve.serve, work.work, looking.doctor, changing.repair, changing.erase, changing.delete, looking.config),
)
"""Those after chat, replay and bench, in the order of the help; each has its function's name, without a line at its end."""

_REFUSED: Any = typer.BadParameter.__mro__[2]  # whatever the parser of the command line refuses; typer does not export it

_MOST_HELP = 10_000  # more characters than any command's help has, which is the text of a refusal where arguments are missing


def run(arguments: Sequence[str] | None) -> int:
    """Run a command, and return its exit code; whatever it cannot do is raised."""
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


def _app() -> typer.Typer:
    codes = "\n".join(f"  {code:<4} {code.meaning}" for code in ExitCode)
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
    app.command()(chat.chat)
    app.command()(replay.replay)
    benches = typer.Typer(
        help="Measure what memci does, on conversations of yours and beside other libraries.", no_args_is_help=True
    )
    benches.command()(bench.quality)
    benches.command()(bench.detach)
    benches.command()(bench.peers)
    app.add_typer(benches, name="bench")
    for command in _COMMANDS:
        app.command(command.__name__.rstrip("_"))(command)
    return app


def _version(asked: bool) -> None:  # noqa: FBT001 (the signature of an option's callback)
    if asked:
        output.write(f"memci {VERSION}\n")
        raise typer.Exit(ExitCode.OK)


def _options(
    *, version: Annotated[bool, Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False
) -> None:
    """Take the options that stand before a command; each acts by its callback."""
    del version
