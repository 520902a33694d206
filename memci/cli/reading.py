"""Commands that give raw messages back."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import attrs
import typer

import memci
from memci.archive.contents.contents_page import entries_text
from memci.chapters.page import Entry, Page
from memci.cli import output
from memci.cli.exit_code import CommandError, ExitCode
from memci.cli.listing import page_table
from memci.cli.opening import STORE, TENANT, JsonOption, Place, SessionOption, StoreOption, TenantOption, opened
from memci.cli.wording import count, message_text
from memci.engine.history.state import USER
from memci.engine.reading.pages import entry_address, is_list

_NUMBER = re.compile(r"[0-9]{1,18}")
_NUMBERS = re.compile(r"[0-9]+\.\.[0-9]+")

IndexArgument = Annotated[str, typer.Argument(metavar="INDEX", help="Such as usr-12, or the number alone.")]
AddressArgument = Annotated[
    str,
    typer.Argument(
        metavar="INDEX", help="A page such as usr-12 or 12, one entry of it: usr-12/3, or a range: usr-12..40 or 12..40."
    ),
]


def show(
    address: AddressArgument,
    *,
    store: StoreOption = STORE,
    session: SessionOption = None,
    tenant: TenantOption = TENANT,
    json: JsonOption = False,
) -> None:
    """Show a raw page, or one entry of it.

    All of it is shown, wherever the page is, and it does not count as a recall. Of a range, or of a root such as usr-0, it is the
    list of its pages, those that were evicted left out.
    """
    index, position = _parsed(address)
    with opened(Place(store, tenant, session)) as found:
        page = found.page(index)
        entries = page.entries if position is None else [_entry(page, position)]
    if is_list(page.index):
        if json:
            output.document({"index": page.index, "pages": list(map(attrs.asdict, page.pages))})
        else:
            page_table(page.pages)
        return
    if json:
        output.document({"index": page.index, "turn": page.turn, "tokens": page.tokens, "entries": list(map(_mapping, entries))})
        return
    if position is None:
        output.heading(f"{page.index} · turn {page.turn} · {entries_text(len(entries))} · {count(page.tokens)} tokens")
    for entry in entries:
        output.heading(f"{entry.address} {entry.role} · {count(entry.tokens)} tokens · {entry.node.at}")
        output.text(message_text(entry.message))


def export(
    *,
    file_format: Annotated[
        Literal["jsonl", "json"], typer.Option("--format", help="A message a line, or one document with times.")
    ] = "jsonl",
    store: StoreOption = STORE,
    session: SessionOption = None,
    tenant: TenantOption = TENANT,
) -> None:
    """Write all messages of a session.

    They come page by page, each as it was appended. `memci replay` reads both formats.
    """
    with opened(Place(store, tenant, session)) as found:
        if file_format == "jsonl":
            for entry in _all_entries(found):
                output.document(entry.message)
        else:
            entries = list(_all_entries(found))
            messages, times = [entry.message for entry in entries], [entry.node.at for entry in entries]
            output.document({"id": found.id, "format": found.config.format, "messages": messages, "timestamps": times})


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


def _entry(page: Page, position: int) -> Entry:
    if position > len(page):
        message = f"page {page.index} has {len(page)} entries: there is no {page.index}/{position}"
        raise CommandError(message, ExitCode.NOT_FOUND)
    return page.entries[position - 1]


def _mapping(entry: Entry) -> dict[str, Any]:
    return {"address": entry.address, "at": entry.node.at, "tokens": entry.tokens, "message": entry.message}


def _all_entries(session: memci.Session) -> Iterator[Entry]:
    for facts in session.pages():
        yield from session.page(facts.index).entries
