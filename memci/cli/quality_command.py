"""``memci bench quality``."""

import os
from pathlib import Path
from typing import Annotated

import typer

from memci.cli import output
from memci.cli.exit_code import CommandError, ExitCode
from memci.cli.output import Column
from memci.engine.config import Config
from memci.messages import codec
from memci.messages.tokens.counter import get_counter
from memci.quality import report
from memci.quality.cache import Cache
from memci.quality.catalogue import engines
from memci.quality.conversation_set import read_set
from memci.quality.engines import EngineSpec
from memci.quality.measuring import BUDGETS, Row, measure
from memci.quality.memci_engine import MEMCI
from memci.quality.picture import draw
from memci.quality.playing import COUNTER

_TEXT_COLUMNS = ("set", "engine", "category")


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
    known = engines(Config() if config is None else Config.from_file(config))
    chosen = _chosen(known, engine or list(known))
    budgets = sorted(set(budget or BUDGETS))
    sets = [read_set(path, get_counter(COUNTER), join) for path in paths]
    kept = Cache(_cache_directory()) if cache else None
    with output.progress("measuring") as advance:
        rows = measure(sets, chosen, budgets, cache=kept, jobs=jobs or os.cpu_count() or 1, advance=advance)
    if json is not None:
        settings = {"counter": COUNTER, "paths": [str(path) for path in paths], "budgets": budgets}
        _write(json, codec.encode(report.to_mapping(rows, settings)) + b"\n")
    if picture is not None:
        _write(picture, draw(rows).encode())
    _tables(rows)
    if not all(row.played.faults.ok for row in rows if row.engine == MEMCI):
        raise typer.Exit(ExitCode.FAILED)


def _chosen(known: dict[str, EngineSpec], names: list[str]) -> list[EngineSpec]:
    unknown = [name for name in names if name not in known]
    if unknown:
        message = f"there is no engine {unknown[0]!r}: name one of {', '.join(known)}"
        raise CommandError(message, ExitCode.USAGE)
    return [known[name] for name in dict.fromkeys(names)]


def _cache_directory() -> Path:
    """Return where results are kept: below the user's directory for what can be made again (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "memci" / "quality"


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror}"
        raise CommandError(message, ExitCode.STORE) from error


def _tables(rows: list[Row]) -> None:
    names = ["set", "budget", "engine", *(name for name, _ in report.COLUMNS)]
    output.table([_column(name) for name in names], report.table_rows(rows))
    least = min(row.budget for row in rows)  # what is found hardly depends on the budget
    found = list(report.category_rows(row for row in rows if row.budget == least))
    if found:
        output.text("")
        output.heading(f"search, by category of question, at a budget of {least:,}")
        output.table([_column(name) for name in report.CATEGORY_COLUMNS], found)


def _column(name: str) -> Column:
    return Column(name, number=name not in _TEXT_COLUMNS)
