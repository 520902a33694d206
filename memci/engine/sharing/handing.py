"""Handing over: what another session needs to go on from this one, as a note that stands open there."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import ceil
from typing import TypeAlias

import attrs

from memci.archive.contents.tree import Node, Origin
from memci.archive.contents.working_set import Kind, render
from memci.chapters.page import Page
from memci.engine.commands import checkpointing, keeping, preparing, recalling
from memci.engine.core.core import Core
from memci.engine.history.events import from_record
from memci.engine.history.shared_events import HandedOver
from memci.engine.reading import pages
from memci.engine.settings.setting import listed
from memci.engine.tree import notes
from memci.engine.view import planner
from memci.errors import ArgumentError, MemciError, shown
from memci.messages.headline import unheaded
from memci.messages.parts import PartKind, parts

PARTS = ("summary", "goal", "outcomes", "failures", "findings", "last")
# Of what is left when it is their turn.
_SHARES = {"summary": 0.4, "goal": 0.35, "outcomes": 0.35, "failures": 0.3, "findings": 0.5, "last": 1.0}
_FRAME_TOKENS = 60  # of the block around it, and of its name
_LEAST_TOKENS = 200  # below which a handoff says nothing
LEAST_BYTES = 2_000  # that its events take in both journals: without these nothing is begun
_LINE_CHARACTERS = 240  # of a failure, at most
_GOAL = (Kind.GOAL, Kind.ASKED, Kind.RULE, Kind.ITEM, Kind.COMMAND, Kind.FILE, Kind.URL, Kind.NAME)


Line: TypeAlias = tuple[str, Sequence[str]]  # and the pages and ranges that it is from


@attrs.frozen
class Handoff:
    """What is handed over: the text, and of what it was made, with the event of the sender and where that can come back to."""

    origin: Origin
    text: str


def checked_parts(include: object) -> tuple[str, ...]:
    """Return which parts are wanted, in their order; ``ArgumentError`` for one that there is not."""
    named = listed(include, "include", ", ".join(PARTS))
    if not named or not all(isinstance(part, str) and part in PARTS for part in named):
        raise ArgumentError(argument="include", value=include, wanted=f"a list of {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in named)


def checked_key(key: object) -> str:
    """Return a key, or nothing where there is none; ``ArgumentError`` for one that is no text."""
    if key is None or (isinstance(key, str) and key and key.isprintable()):
        return key or ""
    raise ArgumentError(argument="key", value=key, wanted="text of printable characters, or None")


def room(core: Core, share: object) -> int:
    """Return how many tokens a handoff may take in the session that receives it: a share of the budget, as opened pages have."""
    if not isinstance(share, float | int) or isinstance(share, bool) or not 0 < share <= 1:
        raise ArgumentError(argument="share", value=share, wanted="a share of the budget, above 0 and at most 1")
    budget = planner.next_budget(core.state, core.config)
    frame = _FRAME_TOKENS if core.counter.exact else 2 * _FRAME_TOKENS  # by an estimate it takes more
    most = int(min(share, core.config.recall.max_share) * budget / core.state.scale) - frame
    if most < _LEAST_TOKENS:
        least = ceil(100 * (_LEAST_TOKENS + frame) * core.state.scale / budget) / 100
        raise ArgumentError(
            argument="share", value=share, wanted=f"{least} of the budget or more, and as much for recall.max_share"
        )
    return most


def prepare(  # noqa: PLR0913 (what it is made of)
    core: Core, receiver: str, include: Sequence[str], most: int, count: Callable[[str], int], *, key: str, seq: int, mounted: str
) -> Handoff:
    """Make a checkpoint, and return what is handed over, in at most so many tokens. O(visible).

    It is as of the event *seq*. The receiver has the session *mounted* under that name; empty where it cannot read its pages.
    """
    if not seq:
        message = f"session {shown(core.session_id)} has no events: there is nothing to hand over"
        raise MemciError(message)
    made = checkpointing.make_checkpoint(core, f"handed over to {receiver}"[:200], "milestone")
    where = f"read usr-1 of it as {mounted}/usr-1" if mounted else "page indexes are its own"
    lines = [f"Session {core.session_id!r} handed over at event {seq}, checkpoint {made.id}; {where}."]
    left = most - _size((*lines, _name(core.session_id)), count)  # the note's name stands above it
    found = told(core, include, left, count)
    for name, said in found.items():
        lines += [f"{name}:", *(text for text, _ in said)]
    origin = Origin(session=core.session_id, pages=from_pages(found), seq=seq, checkpoint=made.id, key=key)
    return Handoff(origin, "\n".join(lines))


def from_pages(found: Mapping[str, Sequence[Line]]) -> tuple[str, ...]:
    """Return the pages that what is told is from, each once."""
    return tuple(dict.fromkeys(page for said in found.values() for _, of_pages in said for page in of_pages))


def told(core: Core, include: Sequence[str], left: int, count: Callable[[str], int]) -> dict[str, list[Line]]:
    """Return what is told of a session by part, in at most so many tokens. O(visible)."""
    found: dict[str, list[Line]] = {}
    for part in include:
        taken, space = list[Line](), int(_SHARES[part] * left)
        for line in _LINES[part](core, space, count):
            if (size := _size(line[:1], count)) > space:
                continue
            taken.append(line)
            space -= size
        if taken:
            found[part] = taken[::-1] if part in ("findings", "last") else taken
            left -= _size([f"{part}:", *(text for text, _ in taken)], count)
    return found


def find(core: Core, sender: str, key: str) -> Node | None:
    """Return the note of an earlier try to hand over with a key; ``None`` for none. O(notes)."""
    made = (node for node in core.state.tree if key and node.origin is not None)
    return next((node for node in made if node.origin and (node.origin.session, node.origin.key) == (sender, key)), None)


def receive(core: Core, handoff: Handoff) -> str:
    """Take a handoff in as a note, and return its index, or that of the note which somebody else wrote for its key meanwhile."""
    made, text = handoff.origin, handoff.text
    if (known := find(core, made.session, made.key)) is not None:
        return known.index
    told = f"from event {made.seq} of session {made.session!r}, checkpoint {made.checkpoint}"[:500]
    try:
        return notes.write_note(core, _name(made.session), told, text, None, by="application", origin=made)
    except ArgumentError:  # an id that looks like an index or a mark
        told = f"event {made.seq} of another session"
        return notes.write_note(core, "Handed over", told, text, None, by="application", origin=made)


def show(core: Core, index: str) -> None:
    """Let the note stand open, where it never did."""
    if not pages.get_facts(core, index).recall_count:
        recalling.recall(core, index, lasting=True, by="application")


def _name(sender: str) -> str:
    """Return what the note is called, in one line."""
    name = f"Handed over by {sender}"
    return " ".join((name if name.isprintable() else "Handed over").split())[:120]


def note(core: Core, origin: Origin, receiver: str, index: str) -> None:
    """Note in the sender where it was handed over to, where it does not have that yet. O(the events since)."""
    since = (from_record(record) for record in core.store.journal.read(origin.seq) if record.kind == HandedOver.kind)
    if any(isinstance(event, HandedOver) and (event.session, event.page) == (receiver, index) for event in since):
        return
    core.commit([HandedOver(session=receiver, page=index, checkpoint=origin.checkpoint, handed_at=origin.seq, at=core.now())])


def _size(lines: Iterable[str], count: Callable[[str], int]) -> int:
    """Return at most how many tokens lines take where they are quoted."""
    return sum(count(f"> {part}") + 1 for line in lines for part in line.splitlines() or [""])


def _noted(core: Core, kinds: Collection[Kind], space: int, count: Callable[[str], int]) -> Iterator[Line]:
    taken = [preparing.take(core, page, 0) for page in core.state.active.pages() if page.head is not None]
    found, clock = preparing.notes(core, taken, continues=True)
    known = attrs.evolve(core.state.working.noted(clock, found), continues=True, continuation=None, by_page=True)
    working = attrs.evolve(known, notes=tuple(each for each in known.notes if each.kind in kinds))
    shown = working.chosen(space, count)
    of_pages = tuple(dict.fromkeys(each.page for each in shown))
    _, *lines = render(attrs.evolve(working, shown=shown)).split("\n")
    yield from ((line, of_pages) for line in lines)


def _summary(core: Core, _space: int, _count: Callable[[str], int]) -> Iterator[Line]:
    """Yield the continuation that a summariser wrote, where there is one."""
    working = core.state.working
    if working.continuation is not None:
        of_pages = tuple(dict.fromkeys([*working.continuation.pages, *(each.page for each in working.shown)]))
        yield from ((line, of_pages) for line in render(working).split("\n")[1:])


def _goal(core: Core, space: int, count: Callable[[str], int]) -> Iterator[Line]:
    """Yield the rules that hold, and then what the user wants."""
    rules = [rule for rule in core.state.rules if rule.superseded_by is None]
    yield from [("the user said, to hold from then on:", ())] if rules else []
    yield from ((f'- "{rule.text}" ({rule.address.partition("#")[0]})', (rule.page,) if rule.page else ()) for rule in rules)
    yield from _noted(core, _GOAL, space, count)


def _outcomes(core: Core, space: int, count: Callable[[str], int]) -> Iterator[Line]:
    yield from islice(_noted(core, (Kind.OUTCOME,), space, count), 1, None)  # without their heading


def _failures(core: Core, _space: int, _count: Callable[[str], int]) -> Iterator[Line]:
    """Yield the results in view that tell of an error, the newest first: tool, address, and the line that tells of it."""
    from memci.archive.contents.noting import ending  # noqa: PLC0415 (compiles many patterns)

    for page in reversed([*core.state.active.pages()]):
        position = {node.seq: place for place, node in enumerate(page.nodes(), start=1)}
        for node, tool, failed in reversed([*keeping.results(page)]):
            if failed:
                said = "\n".join(part.text for part in parts(node.message.value()) if part.kind is PartKind.RESULT)
                line = f"- {tool or 'a tool'} ({page.index}/{position[node.seq]}): {ending(said)}"
                yield line[:_LINE_CHARACTERS], (page.index,)


def _findings(core: Core, space: int, count: Callable[[str], int]) -> Iterator[Line]:
    """Yield the facts that the window shows, all of them or none, and the entries of the contents page, the newest first."""
    facts = list(core.state.working.facts.lines())
    if facts:
        facts = [("returned by tools:", ()), *facts]
    if _size((text for text, _ in facts), count) <= space:  # a fact without the heading does not say where it is from
        yield from reversed(facts)
    for entry in reversed(core.state.archive.entries):
        yield from ((line, (entry.index,)) for line in reversed(entry.render().split("\n")))


def _last(core: Core, space: int, _count: Callable[[str], int]) -> Iterator[Line]:
    """Yield the last messages, the newest first, as far as they fit."""
    for page in reversed([*core.state.active.pages()]):
        yield from ((text, (page.index,)) for text in reversed(list(_said(page))))
        space -= page.tokens
        if space < 0:
            return


def _said(page: Page) -> Iterator[str]:
    for position, node in enumerate(page.nodes(), start=1):
        for part in parts(node.message.value()):
            if text := unheaded(node.message, part.text).strip():
                yield f"{page.index}/{position} {node.message.speaker}: {text}"


_LINES = {"summary": _summary, "goal": _goal, "outcomes": _outcomes, "failures": _failures, "findings": _findings, "last": _last}
