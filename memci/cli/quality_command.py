"""``memci bench quality``."""

from pathlib import Path
from typing import Annotated

import typer

from memci.cli.exit_code import ExitCode


def quality(  # noqa: PLR0913 (the options of a command)
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Conversations: a file, or a directory, which is a set.")
    ],
    *,
    budget: Annotated[list[int] | None, typer.Option(metavar="N", min=1, help="Tokens that a window may hold.")] = None,
    engine: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Measure this engine; without it, all.")] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings of memci, as `memci config` prints them.")] = None,
    join: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Join so many conversations without questions to one; all by default.")
    ] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the figures as JSON, too.")] = None,
    picture: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw cost against evidence, as SVG.")] = None,
    jobs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Processes; by default one for each core.")] = None,
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Use what was measured before, and keep results.")] = True,
) -> None:
    """Measure how good the windows of memci are, beside simpler ways to fill a window. No model is asked.

    PATH holds conversations in OpenAI's chat format: {"messages": […]}, and perhaps "timestamps", "lang" and "questions", each
    with question, answer, category and evidence (numbers of the messages that hold the answer, from 0). Before each assistant
    message a window is asked for: a call. At the end the window is searched for the answers.

    Fails (exit code 1) when a window of memci was over its budget, a call was parted from its result, or a message did not
    come back. docs/quality.md says how each figure is made.
    """
    from memci.cli import quality_run  # noqa: PLC0415 (loads a database and what makes processes)

    kept = quality_run.run(
        paths, budgets=budget, names=engine, config=config, join=join, json=json, picture=picture, jobs=jobs, cache=cache
    )
    if not kept:
        raise typer.Exit(ExitCode.FAILED)
