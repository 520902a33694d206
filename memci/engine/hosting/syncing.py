"""Taking over the list of messages that a host keeps: what is known stays, what is new comes in, and edits go back first."""

from collections.abc import Sequence
from itertools import takewhile

import attrs

from memci.chapters.page import Entry
from memci.engine.commands import appending, rewinding
from memci.engine.core.core import Core
from memci.engine.core.known_messages import Known, KnownMessages
from memci.errors import ArgumentError
from memci.messages.codec import digest, dumped

_ROLES = ("system", "developer")


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
    leading = [*takewhile(lambda value: isinstance(value, dict) and value.get("role") in _ROLES, given)]
    asked = given[len(leading) :]
    wanted, rewound = [*map(digest, asked)], None
    number, entries = _compared(core, wanted)
    system = [digest(node.message.value()) for node in core.state.system.message_list]
    if not entries and not system:
        return Synced(known=0, appended=_append(core, given))
    is_new = bool(leading) and [*map(digest, leading)] != system
    if is_new:
        appending.set_system(core, leading)
    if not number:
        _refuse_part(wanted, entries)
    while number < len(entries):  # of results that came late, the order here is not that in which they came
        seq, address, _ = entries[number]
        rewound = rewound or address
        rewinding.rewind(core, address, seq)
        number, entries = _compared(core, wanted)
    return Synced(known=number, appended=_append(core, asked[number:]), rewound=rewound, system=is_new)


def _compared(core: Core, wanted: Sequence[bytes]) -> tuple[int, list[Known]]:
    """Return how many messages are known from the first on, and all that are, in the order in which more of them fit."""
    known = core.prepared.known = core.prepared.known or KnownMessages()
    known.follow(core.store.journal, core.state.seq)
    by_page = [*known.entries()]
    orders = (by_page, sorted(by_page))
    return max(((_fitting(wanted, order), order) for order in orders), key=lambda found: found[0])


def _fitting(wanted: Sequence[bytes], entries: Sequence[Known]) -> int:
    fits = takewhile(lambda pair: pair[1][2] in (None, pair[0]), zip(wanted, entries, strict=False))
    return sum(1 for _ in fits)


def _refuse_part(wanted: Sequence[bytes], entries: Sequence[Known]) -> None:
    """Refuse a list that begins later in the conversation: taken at its word, all before it would be gone."""
    told = [each for *_, each in entries]
    first = wanted[:2]
    if len(wanted) > 1 and any(first == told[place : place + 2] for place in range(1, len(told))):
        whole = "the whole conversation, from its first message on; append takes what is new"
        raise ArgumentError(argument="messages", value=len(wanted), wanted=whole)


def _append(core: Core, values: Sequence[object]) -> tuple[Entry, ...]:
    return tuple(appending.append(core, values, at=None, key=None, on_conflict="raise")) if values else ()
