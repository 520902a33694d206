"""Boundaries that the application sets: the system part, and pages that it begins by hand."""

from collections.abc import Sequence

from memci.engine.commands import appending, checkpointing
from memci.engine.core.core import Core
from memci.engine.history.events import Event, PageBegan, SystemSet
from memci.engine.history.state import SYSTEM, USER
from memci.errors import ConfigError, InvalidMessageError, shown


def set_system(core: Core, values: Sequence[object]) -> None:
    """Replace the system part."""
    messages = [appending.read_message(core, value) for value in values]
    for number, message in enumerate(messages):
        if message.role not in ("system", "developer"):
            text = f"message {number} has the role {shown(message.role)}: the system part holds system and developer messages"
            raise InvalidMessageError(text, path="role")
    first = core.state.next_number[SYSTEM]
    pages = [
        {"index": f"{SYSTEM}-{number}", "message": message.value(), "tokens": core.count(message)}
        for number, message in enumerate(messages, start=first)
    ]
    core.commit([SystemSet(pages=pages, at=core.now())])


def begin_page(core: Core, name: object) -> str:
    """Open a page, or name the open one that has no entries, and return its index."""
    if name is not None and not isinstance(name, str):
        message = f"{shown(name)} is not a name: give text"
        raise ConfigError(message, path="name")
    state = core.state
    page = state.active.open_page
    if page is not None and page.head is None:
        core.commit([PageBegan(page=page.index, turn=state.turn, name=name)])
        return page.index
    index, turn = f"{USER}-{state.next_number[USER]}", state.turn + 1
    events: list[Event] = [
        *checkpointing.between_turns(core.config, state.turn, state.next_checkpoint, core.now()),
        PageBegan(page=index, turn=turn, name=name),
        *appending.turn_events(appending.Cursor(state), core.config, turn),
    ]
    core.commit(events)
    appending.after_turn(core, events)
    return index
