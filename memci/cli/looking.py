"""Commands that look into a store, and write nothing."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

import attrs
from typer import Argument, Option

import memci
from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.contents.contents_page import entries_text
from memci.chapters.dates import dates, moment
from memci.chapters.page import Entry
from memci.cli import output
from memci.cli.exit_code import ExitCode, refuse
from memci.cli.output import Answer, Heading, Table, breakdown, count
from memci.cli.place import STORE, TENANT, IndexArgument, Place, StoreOption, TenantOption, command, page_argument
from memci.engine.commands.window import Window
from memci.engine.core.monitor import zone
from memci.engine.reading.pages import entry_address, is_list
from memci.engine.settings.config import Config, config_file_text
from memci.engine.settings.setting import MOST
from memci.messages.base64_runs import data_of, described, description
from memci.messages.parts import Part, PartKind, parts


@command
def sessions(*, store: StoreOption = STORE, tenant: TenantOption = TENANT) -> Answer:
    """List the ids of all sessions."""
    found = Place(store, tenant=tenant).sessions()
    return Answer(found, map(output.one_line, found))


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
def verify(place: Place) -> Answer:
    """Compare a session with its journal.

    Page files, snapshots and index are compared; the exit code is 1 where one of them is not what the journal makes.
    """
    with place.opened() as session:
        report = session.verify()
    compared = f"{count(report.events)} events, {count(report.pages)} page files, {count(report.snapshots)} snapshots compared"
    told = [f"{report.session}: {compared}", *(report.problems or ["no problem found"])]
    return Answer({"ok": report.ok, **attrs.asdict(report)}, told, ok=report.ok)


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


def _window_parts(window: Window, budget: int) -> Iterator[str]:
    for block in window.system or ():
        yield from (Heading("system"), block["text"])
    for number, message in enumerate(window.messages, start=1):
        yield from (Heading(f"{number} {message.get('role') or message['type']}"), _message_text(message))
    yield Heading(f"event {window.seq} · {count(window.tokens)} of {count(budget)} tokens ({breakdown(window.breakdown)})")


def _message_text(value: dict[str, Any]) -> str:
    """Return a message as text: its words, a line for each call, what pictures and files are, the rest as JSON."""
    return "\n".join(map(_part_text, parts(value)))


def _part_text(part: Part) -> str:
    if part.call is not None:
        return f"→ {part.call.name}({described(part.call.arguments)}) [{part.call.id}]"
    return description("image", data_of(part.value), "") if part.kind is PartKind.IMAGE else described(part.text)
