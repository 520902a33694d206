"""Commands that look into a store, and write nothing."""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

import attrs
import typer

import memci
from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.contents.contents_page import entries_text
from memci.chapters.page import Entry
from memci.cli import output
from memci.cli.exit_code import ExitCode, refuse
from memci.cli.opening import STORE, TENANT, IndexArgument, JsonOption, Place, StoreOption, TenantOption, placed
from memci.cli.output import breakdown, count
from memci.engine.commands.window import Window
from memci.engine.core.monitor import zone
from memci.engine.history.state import USER
from memci.engine.reading.pages import entry_address, is_list
from memci.engine.settings.config import Config, config_file_text
from memci.engine.settings.config_checks import MOST
from memci.messages.base64_runs import data_of, described, description
from memci.messages.parts import Part, PartKind, parts

_NUMBER = re.compile(r"[0-9]{1,18}")
_NUMBERS = re.compile(r"[0-9]+\.\.[0-9]+")

_PAGE_COLUMNS = ("page", "state", "turn#", "entries#", "tokens#", "recalls#", "title")
_HIT_COLUMNS = ("entry", "state", "score#", "passage")


def sessions(*, store: StoreOption = STORE, tenant: TenantOption = TENANT, json: JsonOption = False) -> None:
    """List the ids of all sessions."""
    found = Place(store, tenant, None).sessions()
    output.tell(found, "\n".join(map(output.one_line, found)), json=json)


@placed
def pages(
    place: Place,
    *,
    state: Annotated[PageState | None, typer.Option(help="Only pages in this state.")] = None,
    json: JsonOption = False,
) -> None:
    """List the pages of a session, oldest first.

    Archived pages have an entry of their own in the contents page; those that it groups in directories are hidden.
    """
    with place.opened() as session:
        facts = session.pages(state)
        hidden = len(session.pages(PageState.HIDDEN)) if state is PageState.ARCHIVED else 0
    _page_table(facts, list(map(attrs.asdict, facts)) if json else None)
    if hidden:
        output.note(f"{count(hidden)} more are grouped in directories: --state hidden lists them")


@placed
def contents(place: Place, *, json: JsonOption = False) -> None:
    """Show the contents page.

    That is what the model reads of pages that left the window.
    """
    with place.opened() as session:
        page = session.contents
    if json:
        entries = [{**entry.to_mapping(), "text": entry.render()} for entry in page.entries]
        output.document({"index": page.index, "tokens": page.tokens, "entries": entries})
    elif page.entries:
        output.text(page.render())
    else:
        output.note("the contents page is empty: no page has left the window")


@placed
def search(  # noqa: PLR0913 (the options of a command)
    place: Place,
    query: Annotated[list[str], typer.Argument(metavar="WORDS...", help="Any text; none of it is syntax.")],
    *,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="At most so many pages.")] = 10,
    include_visible: Annotated[bool, typer.Option("--all", help="Search the pages that stand in the window, too.")] = False,
    role: Annotated[list[str] | None, typer.Option(help="Only what this role said; may be given several times.")] = None,
    state: Annotated[list[str] | None, typer.Option(help="Only pages in this state; may be given several times.")] = None,
    from_turn: Annotated[int, typer.Option(metavar="N", min=0, help="Only pages opened in this turn or later.")] = 0,
    to_turn: Annotated[int | None, typer.Option(metavar="N", min=0, help="Only pages opened in this turn or earlier.")] = None,
    json: JsonOption = False,
) -> None:
    """Search pages that left the window.

    Evicted pages are searched too; the best comes first.
    """
    with place.opened() as session:
        turns = (from_turn, max(from_turn, MOST) if to_turn is None else to_turn) if from_turn or to_turn is not None else None
        hits = session.search(" ".join(query), limit, include_visible, turns=turns, roles=role or None, states=state or None)
    if json:
        output.document([attrs.asdict(hit) for hit in hits])
    elif hits:
        output.table(_HIT_COLUMNS, ([hit.entry, hit.state, f"{hit.score:.2f}", hit.snippet] for hit in hits))
    else:
        whole = include_visible or state
        output.note("no such page has any of these words" if whole else "no such page outside the window has any of these words")


@placed
def show(
    place: Place,
    address: Annotated[
        str,
        typer.Argument(
            metavar="INDEX", help="A page such as usr-12 or 12, one entry of it: usr-12/3, or a range: usr-12..40 or 12..40."
        ),
    ],
    *,
    json: JsonOption = False,
) -> None:
    """Show a raw page, or one entry of it.

    All of it is shown, wherever the page is, and it does not count as a recall. Of a range, or of a root such as usr-0, it is the
    list of its pages, those that were evicted left out.
    """
    index, position = _parsed(address)
    with place.opened() as session:
        page = session.page(index)
        entries = page.entries
    if position is not None:
        if position > len(entries):
            message = f"page {page.index} has {len(entries)} entries: there is no {page.index}/{position}"
            refuse(message, ExitCode.NOT_FOUND)
        entries = [entries[position - 1]]
    if is_list(page.index):
        _page_table(page.pages, {"index": page.index, "pages": list(map(attrs.asdict, page.pages))} if json else None)
        return
    if json:
        output.document({"index": page.index, "turn": page.turn, "tokens": page.tokens, "entries": list(map(_mapping, entries))})
        return
    if position is None:
        output.heading(f"{page.index} · turn {page.turn} · {entries_text(len(entries))} · {count(page.tokens)} tokens")
    for entry in entries:
        output.heading(f"{entry.address} {entry.role} · {count(entry.tokens)} tokens · {entry.node.at}")
        output.text(_message_text(entry.message))


@placed
def export(
    place: Place,
    *,
    file_format: Annotated[
        Literal["jsonl", "json"], typer.Option("--format", help="A message a line, or one document with times.")
    ] = "jsonl",
) -> None:
    """Write all messages of a session.

    They come page by page, each as it was appended. `memci replay` reads both formats.
    """
    with place.opened() as session:
        if file_format == "jsonl":
            for entry in _all_entries(session):
                output.document(entry.message)
        else:
            entries = list(_all_entries(session))
            messages, times = [entry.message for entry in entries], [entry.node.at for entry in entries]
            output.document({"id": session.id, "format": session.config.format, "messages": messages, "timestamps": times})


@placed
def window(
    place: Place,
    *,
    budget: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Tokens to compare it with; by default those of the last call.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show the window as it stands now.

    Nothing is written. Where the window is over its budget this is said: the next call makes room first.
    """
    with place.opened() as session:
        rendered = session.render(at=session.seq)
    _show_window(rendered, rendered.budget if budget is None else budget, json=json)


@placed
def render(
    place: Place,
    *,
    at: Annotated[int, typer.Option(metavar="SEQ", help="Sequence number of an event; `memci window` tells the last one.")],
    json: JsonOption = False,
) -> None:
    """Show the window as it was."""
    with place.opened() as session:
        rendered = session.render(at=at)
    _show_window(rendered, rendered.budget, json=json)


@placed
def explain(place: Place, index: IndexArgument, *, json: JsonOption = False) -> None:
    """Say why a page is where it is."""
    with place.opened() as session:
        answer = session.explain(page_argument(index))
    output.tell(attrs.asdict(answer), str(answer), json=json)


@placed
def verify(place: Place, *, json: JsonOption = False) -> None:
    """Compare a session with its journal.

    Page files, snapshots and index are compared; the exit code is 1 where one of them is not what the journal makes.
    """
    with place.opened() as session:
        report = session.verify()
    compared = f"{count(report.events)} events, {count(report.pages)} page files, {count(report.snapshots)} snapshots compared"
    problems = "\n".join(report.problems) or "no problem found"
    output.tell({"ok": report.ok, **attrs.asdict(report)}, f"{report.session}: {compared}\n{problems}", json=json)
    if not report.ok:
        raise typer.Exit(ExitCode.FAILED)


def config(*, json: JsonOption = False) -> None:
    """Print a configuration file.

    It holds every key with its default and what it means.
    """
    output.tell(Config().to_mapping(), config_file_text().rstrip("\n"), json=json)


def page_argument(text: str) -> str | int:
    """Return a page index as the library takes it: a bare number, or two as in ``12..40``, is one of the common segment."""
    if _NUMBER.fullmatch(text):
        return int(text)
    return f"{USER}-{text}" if _NUMBERS.fullmatch(text) else text


def _parsed(address: str) -> tuple[str | int, int | None]:
    if "/" not in address:
        return page_argument(address), None
    page, _, position = address.rpartition("/")
    number = page_argument(page)
    return entry_address(f"{USER}-{number}/{position}" if isinstance(number, int) else f"{number}/{position}")


def _page_table(facts: Iterable[PageFacts], document: object) -> None:
    """Write a table of pages, or where there is one the document."""
    if document is not None:
        output.document(document)
        return
    rows = (
        [page.index, page.state, count(page.turn), count(page.entries), count(page.tokens), count(page.recall_count), page.title]
        for page in facts
    )
    output.table(_PAGE_COLUMNS, rows)


def _mapping(entry: Entry) -> dict[str, Any]:
    return {"address": entry.address, "at": entry.node.at, "tokens": entry.tokens, "message": entry.message}


def _all_entries(session: memci.Session) -> Iterator[Entry]:
    for facts in session.pages():
        yield from session.page(facts.index).entries


def _show_window(window: Window, budget: int, *, json: bool) -> None:
    fits = window.tokens <= budget
    if json:
        output.document(
            {
                "seq": window.seq,
                "tokens": window.tokens,
                "budget": budget,
                "fits": fits,
                "zone": zone(window.tokens, budget),
                "breakdown": dict(window.breakdown),
                **({} if window.system is None else {"system": window.system}),
                "messages": window.messages,
            }
        )
        return
    for block in window.system or ():
        output.heading("system")
        output.text(block["text"])
    for number, message in enumerate(window.messages, start=1):
        output.heading(f"{number} {message.get('role') or message['type']}")
        output.text(_message_text(message))
    output.heading(f"event {window.seq} · {count(window.tokens)} of {count(budget)} tokens ({breakdown(window.breakdown)})")
    if not fits:
        output.note(
            f"it does not fit {count(budget)} tokens as it stands: the next call of session.window() folds pages, or takes "
            "the other steps that make room, and writes that down"
        )


def _message_text(value: dict[str, Any]) -> str:
    """Return a message as text: its words, a line for each call, what pictures and files are, the rest as JSON."""
    return "\n".join(map(_part_text, parts(value)))


def _part_text(part: Part) -> str:
    if part.call is not None:
        return f"→ {part.call.name}({described(part.call.arguments)}) [{part.call.id}]"
    return description("image", data_of(part.value), "") if part.kind is PartKind.IMAGE else described(part.text)
