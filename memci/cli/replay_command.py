"""``memci replay``."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import attrs
import typer

import memci
from memci.archive.stores.url import shown_url
from memci.cli import output, replay_report
from memci.cli.conversation import Said, read_conversation
from memci.cli.exit_code import ExitCode
from memci.cli.opening import TENANT, JsonOption, TenantOption
from memci.cli.replay import Measurement, replay, spill
from memci.engine.settings.config import Budget, Config

_SESSION = "replay"

Policy = Literal["config", "spill"]
Durability = Literal["fsync", "flush"]


def replay_files(  # noqa: PLR0913 (the options of a command)
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="JSON or JSONL; several make one conversation.")],
    *,
    budget: Annotated[int | None, typer.Option(metavar="N", help="Tokens of the model's window.")] = None,
    reserve: Annotated[
        int | None, typer.Option(metavar="N", help="Tokens of it kept free for the reply; 0 where --budget is given.")
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings, as `memci config` prints them.")] = None,
    policy: Annotated[Policy, typer.Option(help="How pages fold: as configured, or one page at a time.")] = "config",
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="Keep the session in this store; else it is made in a temporary one.")
    ] = None,
    session: Annotated[str, typer.Option("--session", metavar="ID", help="Id of the new session.")] = _SESSION,
    tenant: TenantOption = TENANT,
    durability: Annotated[
        Durability | None, typer.Option(help="When an append returns; flush in a temporary store, else as configured.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure the windows of a conversation.

    It is fed to a new session. FILE holds {"messages": […], "timestamps": […], "format": "openai"} (timestamps and format may
    be left out; Anthropic's system prompt may stand under "system"), a list of messages, or a message a line. The format is the
    first file's, else the one of the settings: openai, responses or anthropic. Of several files only the first one's system
    messages are kept. Before each answer of the assistant a window is asked for: a call.

    Beside the session stand the same conversation with one page spilled a turn (marks at 1.0 and 0.999 of the budget) and the
    whole history sent at every call. Prefix reuse is the share of the sent tokens that are, from the beginning on, those of
    the call before. The cost of a call, in tokens of plain input, is its mean tokens × (reuse × prices.read + (1 - reuse) ×
    prices.write), at 0.1 and 1.25 by default.

    Fails (exit code 1) when a window was over its budget, a call was parted from its result, a message came back unequal,
    the session was another one when opened again, or verify found a problem. A call for which no window fits is listed,
    and does not fail.
    """
    settings = _settings(config, budget, reserve)
    chosen = durability or ("flush" if store is None else settings.durability)
    settings = attrs.evolve(spill(settings) if policy == "spill" else settings, durability=chosen)
    read = read_conversation(files)
    conversation = read.said
    if read.format is not None:
        settings = Config.from_mapping({**settings.to_mapping(), "format": read.format})
    runs = 1 if policy == "spill" else 2
    with _progress(runs * len(conversation)) as advance:
        with _store(store) as url, memci.Engine(url, settings, tenant) as engine:
            found = replay(engine, session, conversation, advance)
        spilled = _beside(settings, conversation, advance) if policy == "config" else None
    shown = None if store is None else shown_url(store)
    if json:
        made = {"files": [str(path) for path in files], "store": shown, "session": session, "durability": chosen}
        output.document({**made, **_mapping(found, spilled, settings)})
    else:
        _write_table(found, spilled)
        kept = f"kept in {shown}" if shown is not None else "removed with its temporary store; --store keeps it"
        output.note(f"the session {session!r} ({chosen}) is {kept}")
    if not found.ok or (spilled is not None and not spilled.ok):
        raise typer.Exit(ExitCode.FAILED)


def _settings(path: Path | None, budget: int | None, reserve: int | None) -> Config:
    settings = Config() if path is None else Config.from_file(path)
    if budget is None and reserve is None:
        return settings
    window = settings.budget.window if budget is None else budget
    kept = (settings.budget.reserve if budget is None else 0) if reserve is None else reserve
    return attrs.evolve(settings, budget=Budget(window=window, reserve=kept))


def _beside(settings: Config, conversation: list[Said], advance: Callable[[], None]) -> Measurement:
    with memci.Engine("memory:", spill(settings)) as engine:
        return replay(engine, _SESSION, conversation, advance)


@contextmanager
def _store(url: str | None) -> Iterator[str]:
    """Give the store that was named, or one in a temporary directory that is removed afterwards."""
    if url is not None:
        yield url
        return
    with TemporaryDirectory(prefix="memci-replay-") as directory:
        yield f"file:{directory}"


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """Show a bar on a terminal, on standard error; give what moves it on."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console  # noqa: PLC0415 (40 ms, for terminals only)
    from rich.progress import Progress  # noqa: PLC0415 (as above)

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("replay", total=total)
        yield lambda: bar.advance(task)


def _mapping(found: Measurement, spilled: Measurement | None, settings: Config) -> dict[str, Any]:
    return {
        "counter": settings.counter,
        "budget": found.budget,
        "prices": attrs.asdict(settings.prices),
        **found.to_mapping(),
        "one_page_a_turn": None if spilled is None else spilled.to_mapping(),
        "whole_history": found.whole_history.to_mapping(),
    }


def _write_table(found: Measurement, spilled: Measurement | None) -> None:
    output.table(replay_report.columns(found, spilled), replay_report.rows(found, spilled))
    for failure in found.budget_errors:
        output.text(replay_report.failure_line(failure))
    for problem in found.problems:
        output.text(f"verify: {problem}")
