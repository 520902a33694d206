"""Pages by index: where each one is read from, and how a damaged file is made good from the journal."""

import hashlib
import re
from collections.abc import Collection
from typing import TYPE_CHECKING

import attrs

from memci.archive.catalogue.page_facts import INDEX_PLACE, PageFacts
from memci.chapters.address import is_range, range_index
from memci.chapters.page import MessageNode, Opening, Page
from memci.engine.core.core import Core
from memci.engine.core.monitor import PageRebuilt, logger
from memci.engine.history.events import MessageAppended, from_record
from memci.engine.history.page_codec import FILE_VERSION, file_name, page_file
from memci.engine.history.state import SYSTEM, USER, LateResult
from memci.engine.reading.listing import list_facts, list_page, range_page
from memci.engine.settings.config import MOST
from memci.errors import CorruptError, InvalidIdError, PageNotFoundError, PermissionDeniedError, StoreError, shown
from memci.messages import codec
from memci.messages.message import Message

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex

_INDEX = re.compile(r"([a-z][a-z0-9_]*)-(0|[1-9][0-9]{0,17})")
_RANGE = re.compile(r"([a-z][a-z0-9_]*)-(0|[1-9][0-9]{0,17})\.\.(?:\1-)?(0|[1-9][0-9]{0,17})")
_ADDRESS = re.compile(r"(.+)/([1-9][0-9]{0,17})")
_ROOTS = (f"{SYSTEM}-0", f"{USER}-0")
_GAP = 64  # records of other pages that are read over rather than begin another reading


def page_index(index: object) -> str:
    """Return the index of a page or a range of pages as text, a bare number as ``usr-12``; else raise ``InvalidIdError``."""
    if type(index) is int and 0 <= index <= MOST:
        return f"{USER}-{index}"
    if isinstance(index, str) and _INDEX.fullmatch(index):
        return index
    found = _RANGE.fullmatch(index) if isinstance(index, str) else None
    if found is not None and int(found[2]) <= int(found[3]):
        return range_index(found[1], int(found[2]), int(found[3]))
    message = f"{shown(index)} is not a page index: give one such as 'usr-12' or, first page first, 'usr-12..15'"
    raise InvalidIdError(message, value=index)


def entry_address(address: object) -> tuple[str, int]:
    """Return the page index and the position of an address such as ``usr-12/3``; else raise ``InvalidIdError``."""
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if found is None:
        message = f"{shown(address)} is not the address of an entry: give one such as 'usr-12/3'"
        raise InvalidIdError(message, value=address)
    return page_index(found[1]), int(found[2])


def get_facts(core: Core, index: str) -> PageFacts:
    """Return the facts of a page, or raise ``PageNotFoundError``."""
    facts = core.facts(index)
    if facts is None:
        raise not_found(index)
    return facts


def not_found(index: str) -> PageNotFoundError:
    """Return the error of an index that no page has."""
    what = "a directory of pages, not a page" if is_range(index) else "no page"
    message = f"{index} is {what}: the list of pages (tool: list_pages) says which there are"
    return PageNotFoundError(message, index=index)


def is_list(index: str) -> bool:
    """Return whether an index is that of a range of pages, or of a root."""
    return is_range(index) or index in _ROOTS


def refuse_root(index: object) -> None:
    """Raise ``PermissionDeniedError`` for a root, where something is to be done that is done to pages."""
    if index in _ROOTS:
        message = f"{index} is the root of its segment and stays as it is: name a page of it, or a range such as 'usr-12..15'"
        raise PermissionDeniedError(message)


def read(core: Core, index: str) -> Page:
    """Return a page, whole, as ``load`` does; a root and a range have the facts of their pages, and no messages."""
    return list_page(core, index) if is_list(index) else load(core, index)


def read_facts(core: Core, index: str) -> PageFacts:
    """Return the facts of a page, a root or a range, or raise ``PageNotFoundError``."""
    return list_facts(core, index) if is_list(index) else get_facts(core, index)


def load(core: Core, index: str, *, late: Collection[LateResult] | None = None) -> Page:
    """Return a page, whole: the one in the window, or a detached one read from the store. O(its size).

    For a root, and for a range of pages such as a directory, it is one that lists them. The SHA-256 of a file is checked; a
    damaged or missing one is made again from the journal, and observers hear of it.
    An archived page takes in the results *late* beside what its file holds, by default those that wait for a fold.
    ``CorruptError`` where the journal is damaged where the page lies.
    """
    shown = core.state.active.find_page(index) or core.state.system.find_page(index)
    if shown is not None:
        return shown
    if is_list(index):
        return range_page(core, index)
    facts = get_facts(core, index)
    if (data := _find_file(core, facts)) is not None:
        page = _parse(core, data)
    else:
        page = rebuild(core, index)
        _put_back(core, facts, page)
        core.monitor.tell(PageRebuilt(page=index))
    for result in core.state.late.get(index, ()) if late is None else late:
        node = attrs.evolve(result.node, tokens=core.count(result.node.message), previous=None, next=None)
        position = page.join(node, [(call_id, result.call_seq) for call_id in node.message.answers])
        node.stub_tokens = core.count_stub(index, position, node.message, node.tokens)
    return page


def rebuild(core: Core, index: str) -> Page:
    """Return an archived page from the journal alone, as it is in its file. O(its size, and the journal's part it spans)."""
    facts = get_facts(core, index)
    events = core.ask(lambda known: _appended(core, known, index))
    opens = events[min(events)].opens
    page = Page(index=index, turn=facts.turn, opened_by=Opening.CONTINUATION if opens == Opening.CONTINUATION else Opening.TURN)
    for seq, event in events.items():
        _add(core, page, core.state.wire.facts(event.message).marked(event.attp), seq, event.at)
    return page


def put_file(core: Core, index: str) -> None:
    """Write the file of an archived page as the journal has it. O(its size)."""
    core.store.pages.put({file_name(index, get_facts(core, index).revision): page_file(rebuild(core, index))[0]})


def mend_file(core: Core, index: str) -> None:
    """Make the file of a page again, where it is archived and its file is not as it must be. O(its size)."""
    facts = core.facts(index)
    if facts is not None and facts.sha256 and _find_file(core, facts) is None:
        _put_back(core, facts, rebuild(core, index))


def _find_file(core: Core, facts: PageFacts) -> bytes | None:
    """Return the file of an archived page; ``None`` where it is missing or damaged."""
    data = core.store.pages.find(file_name(facts.index, facts.revision))
    return data if data is not None and hashlib.sha256(data).hexdigest() == facts.sha256 else None


def _put_back(core: Core, facts: PageFacts, page: Page) -> None:
    if core.read_only:
        return
    try:
        core.store.pages.put({file_name(facts.index, facts.revision): page_file(page)[0]})
    except StoreError as error:
        logger().warning("session %r: the file of page %s could not be put back: %s", core.session_id, page.index, error)


def _appended(core: Core, known: "PageIndex", index: str) -> dict[int, MessageAppended]:
    """Return the events of a page's entries in the order of their positions, where the index and the journal agree on them."""
    late = {result.node.seq for result in core.state.late.get(index, ())}
    seqs = [seq for seq in known.entry_seqs(index) if seq not in late]
    stretches: list[tuple[int, int]] = []  # ranges that hold the numbers and little else
    for seq in sorted(seqs):
        joins = stretches and seq - stretches[-1][1] < _GAP
        stretches[-1:] = [(stretches[-1][0], seq)] if joins else [*stretches[-1:], (seq, seq)]
    wanted, found = set(seqs), {}
    for first, last in stretches:
        for record in core.store.journal.read(first - 1, last):
            event = from_record(record) if record.seq in wanted else None  # others are of other pages, or were taken back
            if isinstance(event, MessageAppended) and event.page == index:
                found[record.seq] = event
    if not seqs or found.keys() != wanted:
        message = f"page {index} is not in the journal as the index says: it is made again from the journal"
        raise CorruptError(message, session=core.session_id, place=INDEX_PLACE)
    return {seq: found[seq] for seq in seqs}


def _parse(core: Core, data: bytes) -> Page:
    value = codec.decode(data)
    if value["v"] != FILE_VERSION:
        message = f"a page file of version {value['v']}, which this memci does not know: upgrade memci"
        raise CorruptError(message, session=core.session_id, place=f"page {value.get('page')}")
    page = Page(index=value["page"], turn=value["turn"], opened_by=Opening(value["opened_by"]))
    for entry in value["entries"]:
        _add(core, page, core.state.wire.facts(entry["message"]).marked(entry.get("attp")), entry["seq"], entry["at"])
    return page


def _add(core: Core, page: Page, message: Message, seq: int, at: str) -> None:
    node = MessageNode(message=message, tokens=core.count(message), seq=seq, at=at)
    position = page.add(node)
    node.stub_tokens = core.count_stub(page.index, position, message, node.tokens)
    for call_id in message.answers:
        if call_id in page.open_calls:
            page.answer(call_id)
