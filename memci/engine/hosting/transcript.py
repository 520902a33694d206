"""The conversation as an application shows it: newest first, part by part, with times, what is said of messages, and variants."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import attrs

from memci.archive.stores.contract import Journal
from memci.chapters.address import page_number, segment_of
from memci.chapters.page import Entry, Page
from memci.engine.commands import checkpointing
from memci.engine.commands.rewinding import entry_seq
from memci.engine.core.core import Core
from memci.engine.history.events import CheckpointRestored, MessageAnnotated, MessageAppended, Rewound, from_record
from memci.engine.history.state import SYSTEM, USER
from memci.engine.reading import pages
from memci.engine.settings.setting import MOST
from memci.errors import ArgumentError, InvalidMessageError, PageNotFoundError, is_line
from memci.messages import codec

MOST_BYTES = 16_384  # of what is said of a message at once, as JSON
INTERRUPTED = "interrupted"  # is said of an answer that broke off
_CHUNK = 16  # numbers of archived pages that are looked at together


@attrs.frozen(kw_only=True)
class Said:
    """A message as an application shows it.

    *address* is that of its entry, *seq* its event, *at* when it was said, in UTC; *text* is what a user reads of it, *metadata*
    what ``Session.annotate`` said of it.
    """

    address: str
    seq: int
    role: str
    at: str
    text: str
    message: Mapping[str, Any]
    metadata: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Variant:
    """One of several messages that stand, or stood, at the same place of a conversation; by *seq*, its event, it is chosen."""

    seq: int
    address: str  # as it was when it came
    at: str
    message: Mapping[str, Any]
    current: bool  # whether the conversation has it now


def annotate(core: Core, address: str, values: Mapping[str, Any]) -> None:
    """Say something of a message; a value that is ``None`` takes away what was said."""
    seq, (page, _) = entry_seq(core, address), pages.entry_address(address)
    try:
        given: Any = codec.checked_copy(dict(values))
    except (InvalidMessageError, TypeError, ValueError) as error:
        raise ArgumentError(argument="values", value=values, wanted="values of JSON by name") from error
    if not all(map(is_line, given)):
        raise ArgumentError(argument="values", value=[*values], wanted="names that are lines of text")
    written = {name: None if value is None else codec.encode(value).decode() for name, value in given.items()}
    if len(codec.encode(written)) > MOST_BYTES:
        raise ArgumentError(argument="values", value=[*values], wanted=f"at most {MOST_BYTES:,} bytes as JSON")
    known = core.ask(lambda index: index.annotations([seq])).get(seq, {})
    changed = {name: value for name, value in written.items() if known.get(name) != value}
    if changed:
        core.commit([MessageAnnotated(page=page, entry_seq=seq, values=changed)])


def is_there(core: Core, page: str, length: int) -> bool:
    """Return whether a page has so many entries still. O(1)."""
    try:
        return pages.get_facts(core, page).entries >= length
    except PageNotFoundError:
        return False


def is_interrupted(core: Core, entry: Entry) -> bool:
    """Return whether an answer broke off as it was streamed."""
    seq = entry.node.seq
    return INTERRUPTED in core.ask(lambda index: index.annotations([seq])).get(seq, {})


def transcript(core: Core, limit: int, before: str | None) -> list[Said]:
    """Return the newest messages that stand before an address, newest first. O(limit, and the page of the address)."""
    if type(limit) is not int or not 0 < limit <= MOST:
        raise ArgumentError(argument="limit", value=limit, wanted="a whole number from 1")
    last, position = (f"{USER}-{MOST}", 0) if before is None else pages.entry_address(before)
    if segment_of(last) != USER:
        raise ArgumentError(argument="before", value=before, wanted="the address of a message, such as usr-12/3")
    found = list(islice(_entries(core, page_number(last), position), limit))
    said = core.ask(lambda index: index.annotations([entry.node.seq for entry in found]))
    return [_said(entry, said.get(entry.node.seq, {})) for entry in found]


def _said(entry: Entry, said: Mapping[str, str]) -> Said:
    return Said(
        address=entry.address,
        seq=entry.node.seq,
        role=entry.role,
        at=entry.node.at,
        text=entry.text,
        message=entry.message,
        metadata={name: codec.decode(value.encode()) for name, value in said.items()},
    )


def _entries(core: Core, number: int, position: int) -> Iterator[Entry]:
    """Yield the entries before one, newest first."""
    for page in _pages(core, number):
        entries = page.entries
        yield from reversed(entries[: position - 1] if page_number(page.index) == number else entries)


def _pages(core: Core, number: int) -> Iterator[Page]:
    """Yield the pages up to a number, newest first: those in view, then archived ones, read when they are asked for."""
    first = min(number + 1, core.state.next_number[USER])
    for page in reversed([*core.state.active.pages()]):
        first = min(first, page_number(page.index))
        if page_number(page.index) <= number:
            yield page
    while first > 1:
        low = max(first - _CHUNK, 1)
        known = core.ask(lambda index, ends=(low, first - 1): list(index.pages(numbers=ends)))  # type: ignore[misc]
        for facts in sorted(known, key=lambda facts: -page_number(facts.index)):
            if segment_of(facts.index) == USER and facts.index not in core.state.active:
                yield pages.load(core, facts.index)
        first = low


@attrs.define(eq=False)
class _Branches:
    """Which message came after which, in all that was said, and when each left the conversation."""

    after: dict[int, int] = attrs.field(factory=dict)  # by seq of a message: that of the one before it; 0 for none
    places: dict[int, tuple[str, str]] = attrs.field(factory=dict)  # address and time, as it came
    left: dict[int, int] = attrs.field(factory=dict)  # by seq of a message that is not there now: the event that took it away
    pages: dict[str, list[int]] = attrs.field(factory=dict)  # those that are there

    @classmethod
    def of(cls, journal: Journal, until: int) -> "_Branches":
        """Read a journal up to an event. O(history), and again for each checkpoint that was restored."""
        found, kinds = cls(), (MessageAppended.kind, Rewound.kind, CheckpointRestored.kind)
        for record in journal.read(0, until):
            if record.kind not in kinds:
                continue
            match from_record(record):
                case MessageAppended(page=page, position=position, at=at) if segment_of(page) != SYSTEM:
                    found.after[record.seq] = found._before(page, position)
                    found.places[record.seq] = f"{page}/{position}", at
                    found.pages.setdefault(page, []).insert(position - 1, record.seq)
                case Rewound(page=page, position=position):
                    number = page_number(page)
                    kept = {each: seqs for each, seqs in found.pages.items() if page_number(each) <= number}
                    if page in kept:
                        kept[page] = kept[page][: position - 1]
                    found._become(kept, record.seq)
                case CheckpointRestored(target=target):
                    found._become(cls.of(journal, target).pages, record.seq)
        return found

    def _before(self, page: str, position: int) -> int:
        if position > 1:
            return self.pages[page][position - 2]
        return next((seqs[-1] for each, seqs in reversed(self.pages.items()) if each != page and seqs), 0)

    def _become(self, pages: dict[str, list[int]], seq: int) -> None:
        there = {each for seqs in pages.values() for each in seqs}
        self.left |= dict.fromkeys({each for seqs in self.pages.values() for each in seqs} - there, seq)
        self.left = {each: at for each, at in self.left.items() if each not in there}
        self.pages = {page: list(seqs) for page, seqs in pages.items()}


def variants(core: Core, address: str) -> list[Variant]:
    """Return all messages that ever came after the one before an entry, oldest first. O(history)."""
    seq, journal = entry_seq(core, address), core.store.journal
    found = _Branches.of(journal, core.state.seq)
    several = [each for each, before in found.after.items() if before == found.after[seq]]
    return [
        Variant(
            seq=each,
            address=found.places[each][0],
            at=found.places[each][1],
            message=_message(journal, each),
            current=each not in found.left,
        )
        for each in several
    ]


def _message(journal: Journal, seq: int) -> dict[str, Any]:
    event = from_record(next(journal.read(seq - 1, seq)))
    assert isinstance(event, MessageAppended)
    return event.message


def choose(core: Core, variant: object) -> str:
    """Go back to where a variant stood, with what had followed it, and return its address. O(history)."""
    seq = variant.seq if isinstance(variant, Variant) else variant
    found = _Branches.of(core.store.journal, core.state.seq)
    if type(seq) is not int or seq not in found.after:
        raise ArgumentError(argument="variant", value=variant, wanted="a variant, or its seq, as variants() gives them")
    if (left := found.left.get(seq)) is not None:
        checkpointing.go_back(core, left - 1, "")
    return _Branches.of(core.store.journal, core.state.seq).places[seq][0]
