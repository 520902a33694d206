"""Pages as JSON: in page files, in events and in snapshots."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from memci.chapters.page import MessageNode, Opening, Page
from memci.messages import codec
from memci.messages.message import Message

FILE_VERSION = 1

Written: TypeAlias = Callable[[Message], object]  # what stands for a message in a value that is to be encoded


def encoded(make: Callable[[Written], object]) -> bytes:
    """Encode what *make* gives: with the bytes that messages have, where those of all of them can be written as they are."""
    try:
        return codec.encode(make(lambda message: codec.embedded(message.raw)))
    except TypeError:
        return codec.encode(make(Message.value))


def page_value(page: Page, written: Written = Message.value) -> dict[str, Any]:
    """Return a page with its messages and their sizes, as events and snapshots hold it. O(its size)."""
    value = _value(page, written)
    for node, entry in zip(page.nodes(), value["entries"], strict=True):
        entry |= {"tokens": node.tokens, "stub_tokens": node.stub_tokens}
        if node.trimmed:
            entry["trimmed"] = node.trimmed
    return {**value, "name": page.name}


def _value(page: Page, written: Written) -> dict[str, Any]:
    def entry(node: MessageNode) -> dict[str, Any]:
        noted = {} if node.message.attp is None else {"attp": node.message.attp}
        return {"seq": node.seq, "at": node.at, **noted, "message": written(node.message)}

    head = {"page": page.index, "turn": page.turn, "opened_by": page.opened_by.value}
    return {**head, "entries": [entry(node) for node in page.nodes()]}


def page_from_value(value: Mapping[str, Any], facts: Callable[[dict[str, Any]], Message]) -> Page:
    """Make a detached page of what ``page_value`` gave; *facts* is the wire format's. O(its size)."""
    page = Page(index=value["page"], turn=value["turn"], opened_by=Opening(value["opened_by"]), name=value["name"])
    for entry in value["entries"]:
        message = facts(entry["message"]).marked(entry.get("attp"))
        kept = {name: entry[name] for name in ("tokens", "seq", "stub_tokens", "at")}
        page.add(MessageNode(message=message, trimmed=tuple(entry.get("trimmed", ())), **kept))
        for call_id in message.answers:
            if call_id in page.open_calls:
                page.answer(call_id)
    return page


def page_file(page: Page) -> tuple[bytes, str]:
    """Return the bytes of a page's file and their SHA-256 in hex. O(its size).

    They follow from the journal, byte for byte, so that the file can be made again; a fork's files are those of its source.
    """
    data = encoded(lambda written: {"v": FILE_VERSION, **_value(page, written)})
    return data, hashlib.sha256(data).hexdigest()


def file_name(index: str, revision: int) -> str:
    """Return the name of a page's file, such as ``usr-12``, or ``usr-12.r1`` after a late result."""
    return f"{index}.r{revision}" if revision else index


def file_place(name: str) -> tuple[str, int]:
    """Return index and revision of the page whose file has a name."""
    index, _, revision = name.partition(".r")
    return index, int(revision or 0)
