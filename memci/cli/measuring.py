"""``memci replay`` and ``memci bench quality``: measurements on conversations from files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import attrs
import typer

import memci
from memci.archive.stores.url import shown_url
from memci.cli import output
from memci.cli.conversation import Said, read_conversation
from memci.cli.exit_code import ExitCode
from memci.cli.opening import TENANT, ConfigOption, JsonOption, TenantOption
from memci.cli.output import breakdown, count, share
from memci.cli.replay import Measurement, replay, spill
from memci.engine.settings.config import Budget, Config
from memci.quality.money import Traffic

_SESSION = "replay"

_Told = Callable[[Measurement], str]

_BEFORE: tuple[tuple[str, _Told], ...] = (
    ("messages", lambda found: count(found.messages)),
    ("turns", lambda found: count(found.turns)),
    ("calls", lambda found: count(found.calls)),
    ("folds", lambda found: count(found.folds)),
    ("entries evicted", lambda found: count(found.evictions)),
    ("recalls", lambda found: count(found.recalls)),
    ("windows over budget", lambda found: count(found.over_budget)),
    ("broken call/result pairs", lambda found: count(found.broken_pairs)),
    ("messages that came back unequal", lambda found: count(found.unequal_messages)),
    ("folds that failed and were tried again", lambda found: count(found.failed_folds)),
    ("problems found by verify", lambda found: count(len(found.problems))),
    ("equal when opened again", lambda found: "yes" if found.reopened_equal else "NO"),
    ("calls for which no window fits", lambda found: count(len(found.budget_errors))),
)
_TRAFFIC: tuple[tuple[str, Callable[[Traffic], str]], ...] = (
    ("tokens sent", lambda traffic: count(traffic.tokens)),
    ("tokens a call", lambda traffic: count(traffic.tokens_per_call)),
    ("prefix reuse", lambda traffic: share(traffic.prefix_reuse)),
    ("cost a call", lambda traffic: count(traffic.cost_per_call)),
)
_AFTER: tuple[tuple[str, _Told], ...] = (
    ("verbatim tokens a call, once outgrown", lambda found: count(found.verbatim_tokens)),
    ("the same as a share of the budget", lambda found: share(found.verbatim_share)),
    ("contents page at the end, tokens", lambda found: count(found.contents_tokens)),
    ("pages at the end", lambda found: count(sum(found.pages.values()))),
)

Policy = Literal["config", "spill"]
Durability = Literal["fsync", "flush"]


def replay_files(  # noqa: PLR0913 (the options of a command)
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="JSON or JSONL; several make one conversation.")],
    *,
    budget: Annotated[int | None, typer.Option(metavar="N", help="Tokens of the model's window.")] = None,
    reserve: Annotated[
        int | None, typer.Option(metavar="N", help="Tokens of it kept free for the reply; 0 where --budget is given.")
    ] = None,
    config: ConfigOption = None,
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
    with output.progress("replay") as hear:
        advance = _steps(hear, runs * len(conversation))
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


def quality(  # noqa: PLR0913 (the options of a command)
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Conversations: a file, or a directory, which is a set.")
    ],
    *,
    budget: Annotated[list[int] | None, typer.Option(metavar="N", min=1, help="Tokens that a window may hold.")] = None,
    engine: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Measure this engine; without it, all.")] = None,
    config: ConfigOption = None,
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


def _steps(hear: Callable[[int, int], None], total: int) -> Callable[[], None]:
    done = iter(range(1, total + 1))
    return lambda: hear(next(done), total)


@contextmanager
def _store(url: str | None) -> Iterator[str]:
    """Give the store that was named, or one in a temporary directory that is removed afterwards."""
    if url is not None:
        yield url
        return
    with TemporaryDirectory(prefix="memci-replay-") as directory:
        yield f"file:{directory}"


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
    beside = [] if spilled is None else ["one page a turn#"]
    output.table(["", f"window of {count(found.budget)}#", *beside, "whole history#"], _rows(found, spilled))
    for failure in found.budget_errors:
        output.text(
            f"call {failure.call}: no window fits {count(failure.budget)} tokens; the smallest has "
            f"{count(failure.tokens)} ({breakdown(failure.breakdown)})"
        )
    for problem in found.problems:
        output.text(f"verify: {problem}")


def _rows(found: Measurement, spilled: Measurement | None) -> Iterator[list[str]]:
    """Yield the rows of the table: what happened, what must be 0, what was sent."""
    runs = [found] if spilled is None else [found, spilled]
    for name, told in _BEFORE:
        if not name.startswith("folds that failed") or any(run.failed_folds for run in runs):
            yield [name, *map(told, runs), ""]
    for name, shown in _TRAFFIC:
        yield [name, *(shown(run.traffic) for run in runs), shown(found.whole_history)]
    for name, told in _AFTER:
        yield [name, *map(told, runs), ""]
    for state in sorted({state for run in runs for state in run.pages}):
        yield [f"of them {state}", *(count(run.pages.get(state, 0)) for run in runs), ""]
