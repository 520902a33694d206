"""The settings of a session: the event that puts in force what this process and the session want."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memci.archive.rules.listing import rules_block
from memci.engine.history import blocks, state_codec
from memci.engine.history.apply import apply
from memci.engine.history.events import Event, SessionConfigured
from memci.engine.history.recounting import recounted
from memci.engine.history.state import State
from memci.errors import ConfigError, shown
from memci.version import VERSION

if TYPE_CHECKING:
    from memci.engine.core.core import Core


def configuration(core: "Core", *, is_alike: bool) -> Event:
    """Return the event that puts the settings in force that are wanted here; ``ConfigError`` for another format. O(visible).

    *is_alike*: what the journal shows is rendered as this memci does it, or is to stay.
    """
    state, known, given = core.state, core.state.config.format, core.config.format
    if known != given:
        message = (
            f"session {shown(core.session_id)} holds messages in the format {known}, and the settings say {given}: open it "
            f"with format: {known}, or begin a new session with what memci.convert makes of its messages"
        )
        raise ConfigError(message, path="format")

    def count(text: str) -> int:
        return core.count(state.wire.facts({"role": "system", "content": text})) if text else 0

    changed = bool(state.configured) and state.config.counter != core.config.counter
    return SessionConfigured(
        memci=VERSION,
        session=core.session_id,
        tenant=core.key.tenant,
        config=core.policy,
        chosen=core.chosen,
        instructions=core.instructions,
        instruction_tokens=count(core.instructions),
        headlines=core.headlines,
        headlines_tokens=count(core.headlines),
        rules_tokens=core.count(rules_block((), state.wire)),
        scale=state.scale if state.configured and not changed else core.counter.margin,
        counted=recounted(state, core.count, core.count_stub, core.count_trimmed, core.counter.count)
        if changed or (state.configured and not is_alike)
        else None,
        renderer=blocks.RENDERER,
    )


def configured(state: State, settings: Sequence[Event]) -> State:
    """Return a copy of a state with new settings in force. O(visible)."""
    copy = state_codec.from_mapping(state_codec.to_mapping(state)) if state.configured else State()
    for event in settings:
        apply(copy, event, copy.seq + 1)
    return copy
