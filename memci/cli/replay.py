"""``memci replay`` and ``memci simulate``: what a model would see of a conversation from files or from a store, measured."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import attrs
from typer import Argument, Option

import memci
from memci.archive.stores.url import shown_url
from memci.cli import output
from memci.cli.exit_code import refuse
from memci.cli.output import Answer, Table, breakdown, count, share
from memci.cli.place import TENANT, ConfigOption, Place, TenantOption, command
from memci.engine.settings.config import Budget, Config
from memci.engine.settings.presets import PRESETS
from memci.quality.conversation import Conversation
from memci.quality.replay import Measurement, Said, read_asked, read_conversation, requested, side_by_side, spill, stored
from memci.quality.replay import replay as measure

_SESSION = "replay"
_NOW = "now"  # the column of a session's own settings

_ROWS = {
    "messages": "messages",
    "turns": "turns",
    "calls": "calls",
    "folds": "folds",
    "evictions": "entries evicted",
    "recalls": "recalls",
    "over_budget": "windows over budget",
    "broken_pairs": "broken call/result pairs",
    "unequal_messages": "messages that came back unequal",
    "failed_folds": "folds that failed and were tried again",
    "problems": "problems found by verify",
    "reopened_equal": "equal when opened again",
    "budget_errors": "calls for which no window fits",
    "tokens_sent": "tokens sent",
    "tokens_per_call": "tokens a call",
    "prefix_reuse": "prefix reuse",
    "cost_per_call": "cost a call",
    "summarised_pages": "pages worth a summary",
    "summaries_cost": "summaries, cost a call: each alone",
    "window_summaries_cost": "the same, after the last window",
    "verbatim_tokens": "verbatim tokens a call, once outgrown",
    "verbatim_share": "the same as a share of the budget",
    "at_page": "answers at their page",
    "needs": "needs in the last window",
    "contents_tokens": "contents page at the end, tokens",
    "pages": "pages at the end",
}
"""The rows of the table: keys of the JSON document, and what people read."""

_SHARES = ("prefix_reuse", "verbatim_share", "at_page", "needs")
_RARE = {"failed_folds": 0, "at_page": None, "needs": None}  # rows that are left out where all columns say this

PresetsOption = Annotated[
    str, Option("--preset", metavar="NAME,...", help="Strategies that are set side by side: " + ", ".join(PRESETS) + ".")
]

Policy = Literal["config", "spill"]
Durability = Literal["fsync", "flush"]


@command
def replay(  # noqa: PLR0913 (the options of a command)
    files: Annotated[list[Path], Argument(metavar="FILE...", help="JSON or JSONL; several make one conversation.")],
    *,
    budget: Annotated[int | None, Option(metavar="N", help="Tokens of the model's window.")] = None,
    reserve: Annotated[
        int | None, Option(metavar="N", help="Tokens of it kept free for the reply; 0 where --budget is given.")
    ] = None,
    config: ConfigOption = None,
    preset: PresetsOption = "",
    policy: Annotated[Policy, Option(help="How pages fold: as configured, or one page at a time.")] = "config",
    store: Annotated[
        str | None, Option(metavar="URL", help="Keep the session in this store; else it is made in a temporary one.")
    ] = None,
    session: Annotated[str, Option(metavar="ID", help="Id of the new session.")] = _SESSION,
    tenant: TenantOption = TENANT,
    durability: Annotated[
        Durability | None, Option(help="When an append returns; flush in a temporary store, else as configured.")
    ] = None,
) -> Answer:
    """Measure the windows of a conversation.

    It is fed to a new session. FILE holds {"messages": […], "timestamps": […], "format": "openai"} (timestamps and format may
    be left out; Anthropic's system prompt may stand under "system"), a list of messages, or a message a line. The format is the
    first file's, else the one of the settings: openai, responses or anthropic. Of several files only the first one's system
    messages are kept. Before each answer of the assistant a window is asked for: a call.

    Beside the session stand the same conversation with one page spilled a turn (marks at 1.0 and 0.999 of the budget) and the
    whole history sent at every call. Prefix reuse is the share of the sent tokens that are, from the beginning on, those of
    the call before. The cost of a call, in tokens of plain input, is its mean tokens × (reuse × prices.read + (1 - reuse) ×
    prices.write), at 0.1 and 1.25 by default. What summaries of the folded pages by a model would add to it is told in two ways:
    a request for each page, or requests that extend the last window, which is read from the cache.

    With --preset the conversation is played under each of these strategies, over the settings of --config, and nothing is kept.
    Where files have "questions" or "needs", as docs/quality.md has them, it is told how much of that the last window shows.

    Fails (exit code 1) when a window was over its budget, a call was parted from its result, a message came back unequal,
    the session was another one when opened again, or verify found a problem. A call for which no window fits is listed,
    and does not fail.
    """
    settings = _settings(config, budget, reserve)
    if preset:
        if store is not None or policy != "config" or durability is not None:
            refuse("--preset keeps nothing: leave --store, --durability and --policy out")
        return _replayed(files, settings, preset)
    chosen = durability or ("flush" if store is None else settings.durability)
    settings = attrs.evolve(spill(settings) if policy == "spill" else settings, durability=chosen)
    conversation, settings = _read(files, settings)
    with output.progress("replay") as hear, TemporaryDirectory(prefix="memci-replay-") as directory:
        url = f"file:{directory}" if store is None else store
        runs = [(url, settings), ("memory:", spill(settings))][: 1 if policy == "spill" else 2]
        steps, total = itertools.count(1), len(runs) * len(conversation)
        measured: list[Measurement] = []
        for place, used in runs:
            with memci.Engine(place, used, tenant) as engine:
                measured.append(measure(engine, session, conversation, lambda: hear(next(steps), total)))
    found, *beside = measured
    whole = found.traffic(found.whole)
    columns = [*(each.to_mapping() for each in measured), whole]
    shown = None if store is None else shown_url(store)
    value = {
        "files": [str(path) for path in files],
        "store": shown,
        "session": session,
        "durability": chosen,
        "counter": settings.counter,
        "budget": found.budget,
        "prices": settings.prices,
        **_rounded(columns[0]),
        "one_page_a_turn": _rounded(columns[1]) if beside else None,
        "whole_history": _rounded(whole),
    }
    kept = f"kept in {shown}" if shown is not None else "removed with its temporary store; --store keeps it"
    remark = f"the session {session!r} ({chosen}) is {kept}"
    return Answer(value, _told(found, columns), remark, ok=all(each.ok for each in measured))


@command
def simulate(place: Place, *, preset: PresetsOption) -> Answer:
    """Measure a stored session under other strategies.

    Its messages are played in memory, in the order in which they came, under each preset and under the settings that the session
    has now; a window is asked for before each answer of the assistant, and each call carries as many tokens of tools and extra
    texts as the session's last calls did. The store is only read. What a person or a program did beside appending, such as
    recalls, folds and other budgets, is not repeated. What the columns say is as for replay.

    Fails (exit code 1) as replay does.
    """
    with place.opened() as session:
        said, settings, now, tools = stored(session), session.config, session.render(session.seq), requested(session)
        facts = {"seq": session.seq, "window_tokens": now.tokens, "tools_tokens": tools}
        value = {"store": shown_url(place.store), "session": session.id, **facts}
    return _compared(_side_by_side({_NOW: settings, **_strategies(settings, preset)}, said, tools=tools), value, settings)


def _read(files: Sequence[Path], settings: Config) -> tuple[list[Said], Config]:
    """Return the conversation of files, and the settings with its format."""
    said, wire = read_conversation(files)
    return said, settings if wire is None else Config.from_mapping({**settings.to_mapping(), "format": wire})


def _replayed(files: Sequence[Path], settings: Config, presets: str) -> Answer:
    """Return what presets make of the conversation of files."""
    conversation, settings = _read(files, settings)
    said, asked = read_asked(files, conversation)
    measured = _side_by_side(_strategies(settings, presets), said, asked)
    return _compared(measured, {"files": [str(path) for path in files]}, settings)


def _strategies(settings: Config, presets: str) -> dict[str, Config]:
    """Return the settings under each preset of a list with commas; ``ConfigError`` for a name that is none."""
    return {name: settings.with_choice({"preset": name}) for name in presets.split(",")}


def _side_by_side(
    strategies: Mapping[str, Config], said: Sequence[Said], asked: Conversation | None = None, *, tools: int = 0
) -> dict[str, Measurement]:
    """Return what a conversation is under each strategy, while a bar moves."""
    steps, total = itertools.count(1), len(strategies) * len(said)
    with output.progress("replay") as hear:
        return side_by_side(strategies, said, lambda: hear(next(steps), total), asked, tools=tools)


def _compared(measured: Mapping[str, Measurement], value: Mapping[str, Any], settings: Config) -> Answer:
    """Return strategies side by side, and the whole history beside them, which is the same for all."""
    first = next(iter(measured.values()))
    whole, columns = first.traffic(first.whole), {name: found.to_mapping() for name, found in measured.items()}
    document = {
        **value,
        "counter": settings.counter,
        "budget": first.budget,
        "prices": settings.prices,
        "presets": {name: _rounded(column) for name, column in columns.items()},
        "whole_history": _rounded(whole),
    }
    table = Table(["", *(f"{name}#" for name in columns), "whole history#"], _rows([*columns.values(), whole]))
    told = [f"{name}: {problem}" for name, found in measured.items() for problem in _problems(found)]
    return Answer(document, [table, *told], ok=all(found.ok for found in measured.values()))


def _settings(path: Path | None, budget: int | None, reserve: int | None) -> Config:
    settings = Config() if path is None else Config.from_file(path)
    if budget is None and reserve is None:
        return settings
    window = settings.budget.window if budget is None else budget
    kept = (settings.budget.reserve if budget is None else 0) if reserve is None else reserve
    return attrs.evolve(settings, budget=Budget(window=window, reserve=kept))


def _rounded(column: Mapping[str, Any]) -> dict[str, Any]:
    return {key: round(value, 4 if key in _SHARES else 1) if isinstance(value, float) else value for key, value in column.items()}


def _told(found: Measurement, columns: Sequence[Mapping[str, Any]]) -> Iterator[str | Table]:
    beside = ["one page a turn#"][: len(columns) - 2]
    yield Table(["", f"window of {count(found.budget)}#", *beside, "whole history#"], _rows(columns))
    yield from _problems(found)


def _problems(found: Measurement) -> Iterator[str]:
    for failure in found.budget_errors:
        yield (
            f"call {failure['call']}: no window fits {count(failure['budget'])} tokens; the smallest has "
            f"{count(failure['tokens'])} ({breakdown(failure['breakdown'])})"
        )
    for problem in found.problems:
        yield f"verify: {problem}"


def _rows(columns: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield the rows of the table: what happened, what must be 0, what was sent."""
    for key, label in _ROWS.items():
        if key not in _RARE or any(column.get(key, _RARE[key]) != _RARE[key] for column in columns):
            yield [label, *(_cell(key, column.get(key)) for column in columns)]
    for state in sorted({state for column in columns for state in column.get("pages", ())}):
        yield [f"of them {state}", *(count(column["pages"].get(state, 0)) if "pages" in column else "" for column in columns)]


def _cell(key: str, value: Any) -> str:  # noqa: ANN401 (a JSON value)
    match value:
        case bool():
            return "yes" if value else "NO"
        case tuple() | list():
            return count(len(value))
        case dict():
            return count(sum(value.values()))
        case _:
            return share(value) if key in _SHARES else count(value)
