"""``memci bench``: how good windows are on conversations of yours, and what pages and turns cost beside other ways."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import typer
from typer import Argument, Option

from memci.cli import output
from memci.cli.exit_code import ExitCode, refuse
from memci.cli.output import Heading, Table
from memci.cli.place import ConfigOption
from memci.engine.settings.config import Config
from memci.errors import shown
from memci.messages import codec
from memci.messages.tokens.counter import get_counter

if TYPE_CHECKING:
    from memci.quality.conversation import ConversationSet
    from memci.quality.engines import EngineSpec
    from memci.quality.scoring.reading import ReadRow

READER_TIMEOUT_S = 900.0  # for one answer: a small model reads a large window for minutes before its first one


def quality(  # noqa: PLR0913 (the options of a command)
    paths: Annotated[list[Path], Argument(metavar="PATH...", help="Conversations: a file, or a directory, which is a set.")],
    *,
    budget: Annotated[list[int] | None, Option(metavar="N", min=1, help="Tokens that a window may hold.")] = None,
    engine: Annotated[list[str] | None, Option(metavar="NAME", help="Measure this engine; without it, all.")] = None,
    config: ConfigOption = None,
    join: Annotated[
        int | None,
        Option(metavar="N", min=1, help="Join so many conversations to one; else all where no question is."),
    ] = None,
    json: Annotated[Path | None, Option(metavar="FILE", help="Write the figures as JSON, too.")] = None,
    picture: Annotated[Path | None, Option(metavar="FILE", help="Draw cost against evidence, as SVG.")] = None,
    jobs: Annotated[int | None, Option(metavar="N", min=1, help="Processes; by default one for each core.")] = None,
    cache: Annotated[bool, Option("--cache/--no-cache", help="Use what was measured before, and keep results.")] = True,
    reader: Annotated[
        str | None, Option(metavar="URL", help="Ask a model behind an OpenAI-compatible endpoint the questions, too.")
    ] = None,
    reader_model: Annotated[str, Option(metavar="NAME", help="The reader's name at its endpoint.")] = "default",
    questions: Annotated[int, Option(metavar="N", min=1, help="Ask the reader at most N questions of each conversation.")] = 40,
) -> None:
    """Measure how good the windows of memci are, beside simpler ways to fill a window. No model is asked without --reader.

    PATH holds conversations in OpenAI's chat format: {"messages": […]}, and perhaps "timestamps", "lang" and "questions", each
    with question, answer, category and evidence (numbers of the messages that hold the answer, from 0), or "needs", each
    with kind and text. Before each assistant message a window is asked for: a call. At the end the window is searched for the
    answers, and for what is needed. A reader answers each question from nothing but the last window, and from nothing but the
    rows of the pages with the evidence; its key is read from MEMCI_API_KEY.

    Fails (exit code 1) when a window of memci was over its budget, a call was parted from its result, or a message did not
    come back. docs/quality.md says how each figure is made.
    """
    # These load a database and what makes processes.
    from memci.quality.catalogue import MEMCI, engines  # noqa: PLC0415 (as said)
    from memci.quality.conversation import read_set  # noqa: PLC0415 (as said)
    from memci.quality.measuring import BUDGETS, Cache, measure  # noqa: PLC0415 (as said)
    from memci.quality.playing import COUNTER  # noqa: PLC0415 (as said)
    from memci.quality.reports import windows as report  # noqa: PLC0415 (as said)

    _check_outputs({"--json": json, "--picture": picture}, paths if config is None else [*paths, config])
    known = engines(Config() if config is None else Config.from_file(config))
    chosen = _chosen(known, engine or list(known))
    budgets = sorted(set(budget or BUDGETS))
    sets = [read_set(path, get_counter(COUNTER), join) for path in paths]
    kept = Cache(_cache_directory()) if cache else None
    with output.progress("measuring") as advance:
        rows = measure(sets, chosen, budgets, cache=kept, jobs=jobs or os.cpu_count() or 1, advance=advance)
    readings = [] if reader is None else _read(sets, chosen, budgets, reader, reader_model, questions, cache=cache)
    if json is not None:
        settings = {"counter": COUNTER, "paths": [str(path) for path in paths], "budgets": budgets}
        _write(json, codec.encode(report.to_mapping(rows, settings, readings)) + b"\n")
    if picture is not None:
        _write(picture, report.draw(rows).encode())
    columns, *cells = report.table(rows)
    output.show([Table(columns, cells)])
    least = min(row.budget for row in rows)  # what is found hardly depends on the budget
    if found := list(report.category_rows(row for row in rows if row.budget == least)):
        heading = Heading(f"search, by category of question, at a budget of {least:,}")
        output.show(["", heading, Table(report.CATEGORY_COLUMNS, found)])
    if readings:
        heading = Heading(f"answers of {reader_model}, token F1 with the interval of 95%")
        output.show(["", heading, Table(report.READING_COLUMNS, list(report.reading_rows(readings)))])
    if not all(row.played.faults.ok for row in rows if row.engine == MEMCI):
        raise typer.Exit(ExitCode.FAILED)


def _read(  # noqa: PLR0913, PLR0917 (the options that concern it)
    sets: "Sequence[ConversationSet]",
    chosen: "Sequence[EngineSpec]",
    budgets: Sequence[int],
    url: str,
    model: str,
    most_questions: int,
    *,
    cache: bool,
) -> "list[ReadRow]":
    """Let a model answer the questions; answers are kept with the results."""
    from memci.chat.endpoint import Endpoint  # noqa: PLC0415 (loads the client, an extra)
    from memci.messages.parts import text_of  # noqa: PLC0415 (as above)
    from memci.quality.scoring.reading import ANSWER_TOKENS, KeptAnswers, read  # noqa: PLC0415 (loads a database)

    options = {"temperature": 0, "max_completion_tokens": ANSWER_TOKENS}
    endpoint = Endpoint(url, model, api_key=os.environ.get("MEMCI_API_KEY"), timeout_s=READER_TIMEOUT_S, options=options)

    def ask(messages: list[dict[str, Any]]) -> str:
        return text_of(dict(endpoint.complete(messages, (), may_call=False).message))

    kept = KeptAnswers(ask, _cache_directory() / "answers", f"{url} {model}") if cache else ask
    with endpoint, output.progress("reading") as advance:
        return read(sets, chosen, budgets, kept, most_questions=most_questions, advance=advance)


def peers(
    result: Annotated[Path, Argument(metavar="FILE", help="What `make bench-peers` wrote.")],
    *,
    picture: Annotated[Path | None, Option(metavar="FILE", help="Draw what a turn costs as its history grows, as SVG.")] = None,
) -> None:
    """Show what memci's turns cost beside other libraries, and what each of them loses, in a result of `make bench-peers`.

    Then come the ratios, and all in which another one is better than the memci that keeps as much, as shares of memci's figure.
    docs/benchmarks.md says how each figure is made.
    """
    from memci.quality.reports import peers as report  # noqa: PLC0415 (loaded when it is asked for)

    _check_outputs({"--picture": picture}, [result])
    try:
        found = codec.decode(result.read_bytes())
        rows = report.rows_of(found)
        once, ratios, won = report.once_of(found), list(report.ratios(found)), list(report.better(found, rows))
    except OSError as error:
        refuse(f"{result}: cannot be read: {error.strerror}", ExitCode.STORE)
    except (ValueError, KeyError, TypeError):
        refuse(f"{result}: is no result of make bench-peers")
    for heading, part in report.parts_of(rows):
        for of, measures in report.TABLES.items():
            if lines := report.table(measures, part):
                output.show([Heading(f"{heading}: {of}"), Table(lines[0], lines[1:]), ""])
    promises = report.table(report.ONCE, once)
    output.show([Heading("promises, over all works"), Table(promises[0], promises[1:]), ""])
    output.show([Heading("ratios, at the longest chat"), Table(report.RATIO_COLUMNS, ratios), ""])
    output.show([Heading("in what others are better, as shares of memci's figure"), Table(("peer", "better in"), won)])
    output.show(["", *report.problems(rows)])
    if picture is not None:
        _write(picture, report.draw(rows).encode())


def detach(
    *,
    history: Annotated[list[int] | None, Option(metavar="N", min=2, help="Messages of the history.")] = None,
    page: Annotated[list[int] | None, Option(metavar="N", min=1, help="Messages of the page, at most half as many.")] = None,
    json: Annotated[Path | None, Option(metavar="FILE", help="Write the figures as JSON, too.")] = None,
) -> None:
    """Measure what it costs to detach a page from the messages and to recall it, beside lists that are cut, made anew or copied.

    Without options, for pages of 1 to 1,000 messages in histories of 100 to 1,000,000; that takes a minute and 1.5 GB.
    docs/performance.md says how each figure is made.
    """
    from memci.quality.detaching import HISTORIES, PAGES, measure  # noqa: PLC0415 (for this command only)
    from memci.quality.reports.detaching import tables  # noqa: PLC0415 (as above)

    _check_outputs({"--json": json}, [])
    with output.progress("measuring") as advance:
        costs = measure(history or HISTORIES, page or PAGES, advance)
    if not costs:
        refuse("no history holds two pages: name a longer one, or a smaller page")
    if json is not None:
        _write(json, codec.encode([attrs.asdict(cost) for cost in costs]) + b"\n")
    for heading, cells in tables(costs):
        output.show([Heading(heading), Table(cells[0], cells[1:]), ""])


def _chosen(known: "dict[str, EngineSpec]", names: list[str]) -> "list[EngineSpec]":
    unknown = [name for name in names if name not in known]
    if unknown:
        refuse(f"there is no engine {shown(unknown[0])}: name one of {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)]


def _cache_directory() -> Path:
    """Return where results are kept: below the user's directory for what can be made again (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "memci" / "quality"


def _check_outputs(outputs: dict[str, Path | None], read: list[Path]) -> None:
    """Refuse files that cannot be written, or would be written over what is read or over each other."""
    files = [file for path in read for file in (path, *path.glob("*.json"))]
    taken = {file.resolve(): f"{file} is read" for file in files}
    for option, path in outputs.items():
        if path is None:
            continue
        if not path.parent.is_dir() or path.is_dir():
            reason = f"{path} is a directory" if path.is_dir() else f"there is no directory {path.parent}"
            refuse(f"{path}: cannot be written: {reason}", ExitCode.STORE)
        if path.resolve() in taken:
            refuse(f"{option} {path}: {taken[path.resolve()]}: name another file")
        taken[path.resolve()] = f"{option} writes to the same file"


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        refuse(f"{path}: cannot be written: {error.strerror}", ExitCode.STORE)
