"""Taking over the list of messages that a host keeps: what is known stays, what is new comes in, and edits go back first."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise, takewhile
from typing import Any

import attrs

from memci.chapters.page import Entry
from memci.engine.commands import appending, checkpointing, rewinding
from memci.engine.core.core import Core
from memci.engine.core.known_messages import Digests, Known, KnownMessages, sent_digest
from memci.errors import ArgumentError, InvalidMessageError, QuotaError
from memci.messages.codec import digest, dumped
from memci.messages.formats.format import SYSTEM_ROLES, Format


@attrs.frozen(kw_only=True)
class Synced:
    """What a host's list changed.

    *known* messages stood there already; the session went back to before the entry at *rewound*, an address as it was then, and
    took the *appended* ones in; *system* tells whether the system part was replaced.
    """

    known: int
    appended: tuple[Entry, ...] = ()
    rewound: str | None = None
    system: bool = False


def sync(core: Core, values: Sequence[object]) -> Synced:
    """Bring the session to what a host's list says. O(its length), and what was written since the last time."""
    given = [dumped(value) for value in values]
    leading = [*takewhile(lambda value: isinstance(value, dict) and value.get("role") in SYSTEM_ROLES, given)]
    asked = given[len(leading) :]
    wanted = [_Wanted(core.state.wire, value) for value in asked]
    number, entries = _compared(core, wanted)
    if not entries and core.state.system.message_list.head is None:
        return Synced(known=0, appended=_append(core, given))
    if not number:
        _refuse_part(wanted, entries)
    before = core.state.seq
    try:
        is_new = bool(leading) and not appending.is_system(core, leading)
        if is_new:
            appending.set_system(core, leading)
        known, rewound = _rewind(core, wanted, number, entries)
        return Synced(known=known, appended=_append(core, asked[known:]), rewound=rewound, system=is_new)
    except (InvalidMessageError, QuotaError):
        if core.state.seq != before:  # what was done for a list that is refused is taken back
            checkpointing.go_back(core, before, "")
        raise


def _rewind(core: Core, wanted: Sequence["_Wanted"], number: int, entries: Sequence[Known]) -> tuple[int, str | None]:
    """Go back to where a list differs, and return how many of its messages are known then, and the first entry that is gone."""
    rewound = None
    while number < len(entries):  # of results that came late, the order here is not that in which they came
        seq, address, _ = entries[number]
        rewound = rewound or address
        rewinding.rewind(core, address, seq)
        number, entries = _compared(core, wanted)
    return number, rewound


class _Wanted:
    """A message of a host's list."""

    def __init__(self, wire: Format, value: Any) -> None:  # noqa: ANN401 (what the host gives)
        self._wire, self._value = wire, value
        self.digest = digest(value)

    @cached_property
    def sent(self) -> bytes:
        """The digest of what of it is sent; that of all of it where it is no message."""
        try:
            return sent_digest(self._wire, self._wire.checked(self._value))
        except InvalidMessageError:
            return self.digest

    def is_(self, known: Digests) -> bool:
        """Return whether it is the message that is known."""
        return known is None or self.digest == known[0] or self.sent == known[1]


def _compared(core: Core, wanted: Sequence[_Wanted]) -> tuple[int, list[Known]]:
    """Return how many messages are known from the first on, and all that are, in the order in which more of them fit."""
    known = core.prepared.known = core.prepared.known or KnownMessages(core.state.wire)
    known.follow(core.store.journal, core.state.seq)
    by_page = [*known.entries()]
    orders = (by_page, sorted(by_page))
    return max(((_fitting(wanted, order), order) for order in orders), key=lambda found: found[0])


def _fitting(wanted: Sequence[_Wanted], entries: Sequence[Known]) -> int:
    fits = takewhile(lambda pair: pair[0].is_(pair[1][2]), zip(wanted, entries, strict=False))
    return sum(1 for _ in fits)


def _refuse_part(wanted: Sequence[_Wanted], entries: Sequence[Known]) -> None:
    """Refuse a list that begins later in the conversation: taken at its word, all before it would be gone."""
    told = [each for *_, each in entries]
    pairs = pairwise(told[1:])
    if len(wanted) > 1 and any(None not in pair and wanted[0].is_(pair[0]) and wanted[1].is_(pair[1]) for pair in pairs):
        whole = "the whole conversation, from its first message on; append takes what is new"
        raise ArgumentError(argument="messages", value=len(wanted), wanted=whole)


def _append(core: Core, values: Sequence[object]) -> tuple[Entry, ...]:
    return tuple(appending.append(core, values, at=None, key=None, on_conflict="raise")) if values else ()
