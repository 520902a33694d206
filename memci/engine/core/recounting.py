"""Putting settings in force, and the sizes of what is visible by another counter than before."""

from typing import TYPE_CHECKING

import attrs

from memci.chapters.page import Page
from memci.engine.history.events import Event, SessionConfigured
from memci.errors import ConfigError, shown

if TYPE_CHECKING:
    from memci.engine.core.core import Core


def configuration(core: "Core") -> list[Event]:
    """Return the event that puts the settings in force which this process wants; none where they are.

    Raises:
        ConfigError: They name another wire format than that of the session.
    """
    known, given = core.state.config.format, core.config.format
    if known != given:
        message = (
            f"session {shown(core.session_id)} holds messages in the format {known}, and the settings say {given}: open it with "
            f"format: {known}, or begin a new session with what memci.convert makes of its messages"
        )
        raise ConfigError(message, path="format")
    wanted = core.policy
    instructions = core.instructions
    if core.state.configured == wanted and core.state.instructions == instructions:
        return []
    changed = bool(core.state.configured) and core.state.config.counter != core.config.counter
    tokens = core.count(core.state.wire.facts({"role": "system", "content": instructions})) if instructions else 0
    event = SessionConfigured(
        memci=core.memci,
        session=core.session_id,
        tenant=core.tenant,
        config=wanted,
        instructions=instructions,
        instruction_tokens=tokens,
        scale=core.counter.margin,
        counted=recount(core) if changed else None,
    )
    return [event]


def recount(core: "Core") -> dict[str, object]:
    """Return what ``SessionConfigured.counted`` holds: tokens and stub tokens of all that the state shows. O(visible)."""
    state = core.state

    def sizes(page: Page) -> list[list[int]]:
        counted = []
        for position, node in enumerate(page.nodes(), start=1):
            again = attrs.evolve(node, tokens=core.count(node.message), previous=None, next=None)
            counted.append([again.tokens, core.count_stub(page, position, again)])
        return counted

    opening = Page(index=state.opening.page if state.opening else "", turn=0)
    for node in state.opening.nodes if state.opening else ():
        opening.add(attrs.evolve(node, previous=None, next=None))
    return {
        "pages": {page.index: sizes(page) for chapter in state.verbatim() for page in chapter.pages()},
        "opening": sizes(opening),
        "blocks": {index: core.count(attachment.block) for index, attachment in state.recalled.attachments.items()},
        "contents": sum(core.count(node.message) for node in state.archive.message_list),
    }
