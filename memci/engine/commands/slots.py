"""Slots: named texts that the application refreshes, near the end of the window, which no page holds."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, cast

from memci.engine.core.core import Core
from memci.engine.history import blocks
from memci.engine.history.events import SlotsSet
from memci.errors import ArgumentError, is_line, shown

NAME_CHARACTERS = 64  # of a slot's name, at most


class SessionSlots(MutableMapping[str, str]):
    """The slots of a session, as a dict of texts by name, in the order in which they first came: ``session.slots["goal"] = "…"``.

    They stand in one block, as quoted data, at the end of the window, or in front of what the model said last. They count, and
    are in no page, fold or search. Setting what is there already writes nothing; each call that changes something is one event.
    Earlier windows (``render``) and checkpoints have them as they were then; ``rewind`` and ``undo_fold`` leave them as they are.
    ``ArgumentError`` for a name that is no line of 1 to 64 characters, for what is no text, and for more than
    ``limits.message_bytes`` of them all.
    """

    def __init__(self, run: Callable[[Callable[[Core], Any]], Any]) -> None:
        self._run = run

    def __getitem__(self, name: str) -> str:
        """Return a text; ``KeyError`` where there is none. O(1)."""
        text: str = self._run(lambda core: _texts(core)[name])
        return text

    def __setitem__(self, name: str, text: str) -> None:
        """Give a slot a text. O(all slots)."""
        if not isinstance(text, str):
            raise ArgumentError(argument=f"slots[{shown(name)}]", value=text, wanted="a text, or delete the slot")
        self.update({name: text})

    def __delitem__(self, name: str) -> None:
        """Take a slot away; ``KeyError`` where there is none. O(all slots)."""
        if name not in self:
            raise KeyError(name)
        self.update({name: None})

    def __iter__(self) -> Iterator[str]:
        """Yield the names as they are now. O(slots)."""
        return iter(self.copy())

    def __len__(self) -> int:
        """How many there are."""
        return len(self.copy())

    def copy(self) -> dict[str, str]:
        """Return all texts by name, as they are now. O(slots)."""
        return dict(self._run(_texts))

    def update(self, given: object = (), /, **texts: str | None) -> None:  # all that a dict takes
        """Give several slots their texts, or take those away whose text is ``None``, in one commit. O(all slots)."""
        try:
            wanted = dict(cast("Mapping[str, str | None]", given), **texts)
        except (TypeError, ValueError):
            raise ArgumentError(argument="slots", value=given, wanted="texts by name, as dict.update takes them") from None
        self._run(lambda core: set_slots(core, wanted))

    def clear(self) -> None:
        """Take all slots away, in one commit. O(slots)."""
        self._run(lambda core: set_slots(core, dict.fromkeys(_texts(core))))


def set_slots(core: Core, given: Mapping[str, str | None]) -> None:
    """Commit what changes of the slots; raises what ``SessionSlots`` does."""
    for name, text in given.items():
        if not is_line(name) or len(name) > NAME_CHARACTERS:
            raise ArgumentError(argument="name", value=name, wanted=f"a line of 1 to {NAME_CHARACTERS} characters")
        if not isinstance(text, str | None):
            raise ArgumentError(argument=f"slots[{shown(name)}]", value=text, wanted="a text, or None to take the slot away")
    known, most = _texts(core), core.config.limits.message_bytes
    changed = {name: text for name, text in given.items() if known.get(name) != text}
    if not changed:
        return
    texts = {name: text for name, text in {**known, **changed}.items() if text is not None}
    block = blocks.slots_block(texts, core.state.wire)
    if len(block.raw) > most:
        wanted = f"at most {most} bytes as JSON in all slots, or raise limits.message_bytes"
        raise ArgumentError(argument="slots", value=list(changed), wanted=wanted)
    core.commit([SlotsSet(slots=changed, tokens=core.count(block) if texts else 0)])


def _texts(core: Core) -> Mapping[str, str]:
    return core.state.slots.texts if core.state.slots is not None else {}
