"""What ``memci bench quality`` does."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from memci.cli import output
from memci.cli.exit_code import ExitCode, refuse
from memci.engine.settings.config import Config
from memci.errors import shown
from memci.messages import codec
from memci.messages.tokens.counter import get_counter
from memci.quality import report
from memci.quality.catalogue import MEMCI, engines
from memci.quality.conversation import read_set
from memci.quality.engines import EngineSpec
from memci.quality.measuring import BUDGETS, Cache, Row, measure
from memci.quality.playing import COUNTER
from memci.quality.report import draw

_TEXT_COLUMNS = ("set", "engine", "category")


def run(  # noqa: PLR0913 (the options of the command)
    paths: list[Path],
    *,
    budgets: list[int] | None,
    names: list[str] | None,
    config: Path | None,
    join: int | None,
    json: Path | None,
    picture: Path | None,
    jobs: int | None,
    cache: bool,
) -> bool:
    """Measure, write what was found, and return whether memci kept its promises; the arguments are those of the command.

    Raises:
        CommandError: There is no engine of a name, or a file cannot be written; as far as this can be seen, before anything is
            measured.
        ConfigError: The settings or a conversation cannot be used.
    """
    _check_outputs({"--json": json, "--picture": picture}, paths if config is None else [*paths, config])
    known = engines(Config() if config is None else Config.from_file(config))
    chosen = _chosen(known, names or list(known))
    wanted = sorted(set(budgets or BUDGETS))
    sets = [read_set(path, get_counter(COUNTER), join) for path in paths]
    kept = Cache(_cache_directory()) if cache else None
    with output.progress("measuring") as advance:
        rows = measure(sets, chosen, wanted, cache=kept, jobs=jobs or os.cpu_count() or 1, advance=advance)
    if json is not None:
        settings = {"counter": COUNTER, "paths": [str(path) for path in paths], "budgets": wanted}
        _write(json, codec.encode(report.to_mapping(rows, settings)) + b"\n")
    if picture is not None:
        _write(picture, draw(rows).encode())
    _tables(rows)
    return all(row.played.faults.ok for row in rows if row.engine == MEMCI)


def _chosen(known: dict[str, EngineSpec], names: list[str]) -> list[EngineSpec]:
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


def _tables(rows: list[Row]) -> None:
    _table(report.COLUMNS, report.table_rows(rows))
    least = min(row.budget for row in rows)  # what is found hardly depends on the budget
    found = list(report.category_rows(row for row in rows if row.budget == least))
    if found:
        output.text("")
        output.heading(f"search, by category of question, at a budget of {least:,}")
        _table(report.CATEGORY_COLUMNS, found)


def _table(names: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    output.table([name if name in _TEXT_COLUMNS else f"{name}#" for name in names], rows)
