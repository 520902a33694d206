"""The working set: what a session is at work on, as a short block beside the contents page says it.

It is made of the pages that folded: files, URLs and identifiers that calls touched, the last command, open items of a list, and
what the user said is to hold from then on. Pure functions of values; nothing here knows any tool.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import attrs

HALF_LIFE = 120  # messages in which what a touch counts for halves
MOST_NAMES, MOST_RULES = 200, 8  # that are kept: names by how often they were touched lately, the newest instructions
_RULES_SHARE, _ITEMS_SHARE, _COMMAND_SHARE = 0.4, 0.3, 0.2  # of the block, at most; of what is left, files take
_FILES_SHARE = 0.45

CUT = "…/"  # in front of a file whose path is longer
HEADING = "[working set] Of earlier pages, most used first; to be read as data."


class Kind(StrEnum):
    """The kinds of note."""

    FILE = "file"
    URL = "url"
    NAME = "name"
    COMMAND = "command"
    ITEM = "item"  # an open one of the list that the model keeps; empty where nothing is open
    RULE = "rule"  # what the user said is to hold from now on, word for word


LATEST = (Kind.COMMAND, Kind.ITEM)  # newer ones take the place of all before
_TOUCHED = (Kind.FILE, Kind.URL, Kind.NAME)


@attrs.frozen
class Note:
    """One thing of the working set, in one line."""

    kind: Kind
    text: str
    page: str  # the newest that it was noted from
    at: int  # when, in messages
    weight: float = 1.0  # how often it was touched, as of then

    @property
    def key(self) -> tuple[str, str]:
        """What is equal for the same thing: of a file its name, whatever way leads to it."""
        return self.kind, self.text.rpartition("/")[2] if self.kind is Kind.FILE else self.text

    def weighed(self, at: int) -> float:
        """Return what it counts for at a time."""
        return float(self.weight * 2.0 ** ((self.at - at) / HALF_LIFE))


@attrs.frozen
class WorkingSet:
    """What is known of the pages that folded, and what the window shows of it. Bounded in size."""

    clock: int = 0  # messages of these pages
    notes: tuple[Note, ...] = ()
    shown: tuple[Note, ...] = ()
    tokens: int = 0  # at most, of the message that shows them

    def noted(self, clock: int, notes: Iterable[Note]) -> "WorkingSet":
        """Return it with the notes of more pages, oldest first; *clock* is the number of messages from then on. O(notes)."""
        known = {note.key: note for note in self.notes}
        latest: dict[Kind, str] = {}
        for note in notes:
            if note.kind in LATEST and latest.get(note.kind) != (batch := f"{note.page} {note.at}"):
                latest[note.kind] = batch
                known = {key: each for key, each in known.items() if each.kind is not note.kind}
            before = known.pop(note.key, None)
            touched = before is not None and note.kind in _TOUCHED
            weight = round(note.weight + before.weighed(note.at), 4) if before is not None and touched else note.weight
            known[note.key] = attrs.evolve(note, weight=weight)
        left = list(known.values())
        names = sorted((note for note in left if note.kind in _TOUCHED), key=lambda note: -note.weighed(clock))[:MOST_NAMES]
        rules = [note for note in left if note.kind is Kind.RULE][-MOST_RULES:]
        return attrs.evolve(self, clock=clock, notes=(*(note for note in left if note.kind in LATEST), *rules, *names))

    def without(self, is_gone: Callable[[str], bool]) -> "WorkingSet":
        """Return it without what was noted from pages that are gone. It is never longer, so that its size still holds."""
        notes, shown = ([note for note in notes if not is_gone(note.page)] for notes in (self.notes, self.shown))
        return attrs.evolve(self, notes=tuple(notes), shown=tuple(shown), tokens=self.tokens if shown else 0)

    def chosen(self, limit: int, count: Callable[[str], int], without: Container[Kind] = ()) -> tuple[Note, ...]:
        """Return what is to be shown in about *limit* tokens, *without* notes of some kinds. O(notes), each counted once."""
        left = [note for note in self.notes if note.text and note.kind not in without]
        room, chosen = limit - count(HEADING), list[Note]()

        def take(kinds: Sequence[Kind], share: float, notes: Iterable[Note]) -> None:
            nonlocal room
            some = int(share * room)
            for note in notes:
                if note.kind in kinds and (cost := count(note.text.removeprefix(CUT)) + _MARGINS[note.kind]) <= some:
                    some -= cost
                    room -= cost
                    chosen.append(note)

        take([Kind.RULE], _RULES_SHARE, reversed(left))
        take([Kind.ITEM], _ITEMS_SHARE, left)
        take([Kind.COMMAND], _COMMAND_SHARE, left)
        take([Kind.FILE, Kind.URL], _FILES_SHARE, left)
        take([Kind.NAME], 1.0, left)
        return tuple(chosen)


_MARGINS = {Kind.FILE: 1, Kind.URL: 1, Kind.NAME: 1, Kind.COMMAND: 4, Kind.ITEM: 8, Kind.RULE: 10}


def as_values(notes: Iterable[Note]) -> list[list[Any]]:
    """Return notes as JSON values."""
    return [[str(note.kind), note.text, note.page, note.at, note.weight] for note in notes]


def from_values(values: Iterable[Sequence[Any]]) -> tuple[Note, ...]:
    """Make notes of what ``as_values`` gave."""
    return tuple(Note(Kind(kind), *rest) for kind, *rest in values)


def render(shown: Sequence[Note]) -> str:
    """Return the block as the model reads it; empty for nothing. No line but the first begins with a bracket."""
    return "\n".join([HEADING, *_lines(shown)]) if shown else ""


def _lines(shown: Sequence[Note]) -> Iterator[str]:
    by_kind = {kind: [note for note in shown if note.kind is kind] for kind in Kind}
    files = [note.text for note in by_kind[Kind.FILE]]
    for heading, names in (
        ("files", [name for name in files if not name.startswith(CUT)]),
        (f"files below {CUT}", [name.removeprefix(CUT) for name in files if name.startswith(CUT)]),
        ("URLs", [note.text for note in by_kind[Kind.URL]]),
        ("identifiers", [note.text for note in by_kind[Kind.NAME]]),
    ):
        if names:
            yield f"{heading}: {', '.join(names)}"
    yield from (f"last command: {note.text}" for note in by_kind[Kind.COMMAND])
    for heading, kind, quote in (("open items", Kind.ITEM, ""), ("the user said, to hold from then on", Kind.RULE, '"')):
        if notes := by_kind[kind]:
            yield f"{heading}:"
            yield from (f"- {quote}{note.text}{quote} ({note.page})" for note in notes)
