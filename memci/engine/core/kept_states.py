"""The states of sessions that were closed, kept for the next time one of them is opened."""

from collections import OrderedDict

import attrs

from memci.engine.history.state import State

_STATE_BYTES = 16_000
_ITEM_BYTES = 4_500  # a message beside its text, or an entry of the contents page, as measured


@attrs.frozen(kw_only=True)
class KeptState:
    """A state without a session.

    Attributes:
        mark: Tells the record of the state's last event from another one that could stand in its place.
    """

    state: State
    mark: str
    snapshot: int

    def estimated_bytes(self) -> int:
        """Return about how much memory it takes. O(visible)."""
        state = self.state
        raw = [len(node.message.raw) for chapter in (*state.verbatim(), state.archive) for node in chapter.message_list]
        raw += [len(attachment.block.raw) for attachment in state.recalled.attachments.values()]
        raw += [len(node.message.raw) for node in (state.opening.nodes if state.opening else ())]
        return _STATE_BYTES + sum(raw) + _ITEM_BYTES * (len(raw) + len(state.archive.entries))


class KeptStates:
    """States by session id, at most so many bytes of them: the one that was closed first leaves first. For one thread at a time.

    Attributes:
        total_bytes: What they take, as estimated.
    """

    def __init__(self, max_bytes: int) -> None:
        self.total_bytes = 0
        self._max_bytes = max_bytes
        self._states: OrderedDict[str, tuple[KeptState, int]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._states)

    def put(self, session_id: str, kept: KeptState) -> None:
        """Keep a state in the place of an older one of the session; one that is larger than the bound is not kept. O(visible)."""
        self.pop(session_id)
        size_bytes = kept.estimated_bytes()
        if size_bytes > self._max_bytes:
            return
        self._states[session_id] = (kept, size_bytes)
        self.total_bytes += size_bytes
        while self.total_bytes > self._max_bytes:
            self.pop(next(iter(self._states)))

    def pop(self, session_id: str) -> KeptState | None:
        """Give a state away, ``None`` where there is none. O(1)."""
        kept, size_bytes = self._states.pop(session_id, (None, 0))
        self.total_bytes -= size_bytes
        return kept
