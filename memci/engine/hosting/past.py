"""Windows of the past, one after the other, and what each of their messages is."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

import attrs

from memci.chapters.page import Page
from memci.engine.commands.window import Window, check_event, check_renderer, rendered
from memci.engine.core.core import Core
from memci.engine.history.apply import apply
from memci.engine.history.events import AT_THE_END, from_record
from memci.engine.history.state import State
from memci.engine.view import planner
from memci.engine.view.layout import View
from memci.engine.view.rule_facts import RuleFacts, rule_facts

_BATCH = 256  # records that are read with the session's lock at once

Open: TypeAlias = Callable[[], AbstractContextManager[Core]]


@attrs.frozen
class Source:
    """What a message of a window is: its *part*, as in the breakdown, and the *page* that it is of; empty for none."""

    part: str
    page: str = ""


@attrs.frozen(kw_only=True)
class PastWindow:
    """A window as it was, with a source for each of its messages; where one was made of several, that of the first.

    There are no sources where none were asked for. *rules* are those that the session had then.
    """

    window: Window
    raws: Sequence[bytes] = attrs.field(repr=False)  # its messages, as they are sent
    sources: Sequence[Source] = attrs.field(repr=False)
    rules: Sequence[RuleFacts] = attrs.field(default=(), repr=False)


def past_windows(opened: Open, seqs: Sequence[int]) -> Iterator[PastWindow]:
    """Yield the windows after some events, in ascending order, as ``render_at`` makes each. O(events, and what each shows).

    The session is locked while some records are read, and not while their windows are made. ``ConfigError`` for no event.
    """
    return Past().windows(opened, seqs, seqs)


class Past:
    """Goes through the windows of a session, and later on from the last one that it made. It is for one thread at once."""

    def __init__(self) -> None:
        self._state: State | None = None  # after the event of that window
        self._view: View | None = None

    def windows(self, opened: Open, seqs: Sequence[int], sourced: Collection[int]) -> Iterator[PastWindow]:
        """Yield windows as ``past_windows`` does, those after *sourced* events with their sources. O(events since the last)."""
        if not seqs:
            return
        with opened() as core:
            for seq in seqs:
                check_event(core, seq)
            state = self._state = self._state or core.state_at(seqs[0])
        for seq in seqs:
            while state.seq < seq:
                with opened() as core:
                    records = list(core.store.journal.read(state.seq, min(seq, state.seq + _BATCH)))
                for record in records:
                    event = from_record(record)
                    self._view = self._view if isinstance(event, AT_THE_END) else None
                    apply(state, event, record.seq)
            if self._view is None or not self._view.goes_on(state, state.settled):
                self._view = View(state, state.settled)
            check_renderer(state)
            window = rendered(state, self._view.layout(state.settled), planner.next_budget(state, state.config), seq)
            raws = window._raws  # noqa: SLF001 (bytes of the window, as its to_json joins them)
            sources = _sources(state, self._view) if seq in sourced else []
            if sources and state.wire.assemble is not None:
                sources = _assembled(self._view, sources, raws, apart=window.system is not None)
            yield PastWindow(window=window, raws=raws, sources=sources, rules=rule_facts(state))


def _sources(state: State, view: View) -> list[Source]:
    """Return what each message of a window is. O(visible)."""
    known = dict(_known(state))
    contents_end, first = view.ends.get("contents", 0), view.ends.get("system", 0)
    ends = {name: view.ends.get(name, 0) for name in ("facts", "mounted", "work", "rules")}
    before = ("system", "contents", *ends)
    sources, last = list[Source](), Source("system")
    for place, message in enumerate(view.messages):
        source = known.get(id(message))
        if source is None and message.role in ("system", "developer") and place < max(contents_end, first):
            source = Source("system")
        elif source is None:
            named = [name for name, end in ends.items() if last.part in before and place < end]
            source = Source(named[0]) if named else last  # what stands for a missing result goes with its call
        sources.append(source)
        last = source
    beside = [Source("slots")] * (state.slots is not None)
    beside += [Source("extra")] * bool(state.settled is not None and state.settled.extra)
    if beside:
        place = view.slots_place()
        sources[place:place] = beside
    return sources


def _known(state: State) -> Iterator[tuple[int, Source]]:
    """Yield the identity of each message that stands in the state, with what it is."""
    for page in state.system.pages():
        yield from ((id(node.message), Source("system", page.index)) for node in page.nodes())
    yield from ((id(line.message), Source("system", index)) for index, line in state.hidden.items())
    if (shown := state.archive.message_list.head) is not None:
        yield id(shown.message), Source("contents")
    yield from ((id(each.block), Source("recalled", index)) for index, each in state.recalled.attachments.items())
    yield from ((id(each.block), Source("recalled")) for each in state.recalled.quotes.values())
    yield from ((id(each.node.message), Source("directives", each.page)) for each in state.directives)
    if state.opening is not None:
        yield from _of_page(state.opening, "open")
    for page in state.active.pages():
        yield from _of_page(page, "open" if page is state.active.open_page else "active")


def _of_page(page: Page, part: str) -> Iterator[tuple[int, Source]]:
    for node in page.nodes():
        yield id(node.message), Source(part, page.index)
        if node.stub is not None:
            yield id(node.stub.message), Source(part, page.index)


def _assembled(view: View, sources: Sequence[Source], raws: Sequence[bytes], *, apart: bool) -> list[Source]:
    """Return what each message is where the format makes one of several: what is sent as it came tells the place again.

    The system messages at the beginning may stand *apart*.
    """
    sent, found = view.written()[0], list[Source]()
    place = next((number for number, message in enumerate(sent) if not apart or message.role != "system"), len(sent))
    for raw in raws:
        place = next((number for number in range(place, len(sent)) if sent[number].raw == raw), min(place, len(sent) - 1))
        found.append(sources[place])
        place += 1
    return found
