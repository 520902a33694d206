"""A recap: where a session stands, for whoever comes back to it."""

from collections import Counter
from collections.abc import Mapping, Sequence

import attrs

from memci.engine.core.core import Core
from memci.engine.settings.setting import MOST
from memci.engine.sharing.handing import told
from memci.errors import ArgumentError

_HAPPENED = {  # by kind of an event
    "appended": "messages",
    "folded": "folds",
    "recalled": "recalls",
    "note_written": "notes",
    "rewound": "rewinds",
    "handed_over": "handoffs",
}


@attrs.frozen(kw_only=True)
class Recap:
    """Where a session stands: what is told of it by part (summary, goal, outcomes, failures, findings, last), each some lines.

    *happened* counts messages, folds, recalls, notes, rewinds and handoffs after the event *since*; *seq* and *turn* are of now.
    """

    session: str
    seq: int
    turn: int
    since: int
    parts: Mapping[str, Sequence[str]]
    happened: Mapping[str, int]

    @property
    def text(self) -> str:
        """All of it, for a person or a model."""
        counted = ", ".join(f"{number} {what}" for what, number in self.happened.items()) or "nothing"
        lines = [f"Session {self.session!r}, turn {self.turn}. After event {self.since}: {counted}."]
        for name, said in self.parts.items():
            lines += [f"{name}:", *said]
        return "\n".join(lines)


def recap(core: Core, max_tokens: object, since: object, include: Sequence[str]) -> Recap:
    """Return where a session stands. O(visible, and the events after *since*)."""
    if type(max_tokens) is not int or not 0 < max_tokens <= MOST:
        raise ArgumentError(argument="max_tokens", value=max_tokens, wanted="a number of tokens from 1")
    if type(since) is not int or not 0 <= since <= MOST:
        raise ArgumentError(argument="since", value=since, wanted="the number of an event, from 0")
    state = core.state
    counted = Counter(record.kind for record in core.store.journal.read(since, state.seq))
    return Recap(
        session=core.session_id,
        seq=state.seq,
        turn=state.turn,
        since=since,
        parts={name: [text for text, _ in said] for name, said in told(core, include, max_tokens, core.counter.count).items()},
        happened={what: counted[kind] for kind, what in _HAPPENED.items() if counted[kind]},
    )
