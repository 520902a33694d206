"""Tokens of messages as they are sent, of the stubs that can stand for them, and of all that a state shows."""

from typing import Any

import attrs

from memci.chapters.page import Page
from memci.engine.history import blocks
from memci.engine.history.state import State
from memci.messages.formats.format import Format
from memci.messages.message import Message
from memci.messages.tokens.counter import TokenCounter
from memci.messages.tokens.message_tokens import count_message

_STUB_SLACK = 4  # tokens: a late result may move an entry to a position with more digits


def count(counter: TokenCounter, wire: Format, message: Message, value: dict[str, Any] | None = None) -> int:
    """Return at most the size of a message as it is sent: shorter at the end of a window, it may even be more tokens.

    *value* is the message as a dict, where the caller has it.
    """
    if not message.literal:
        message, value = wire.sent(message), None
    tokens = count_message(message.value() if value is None else value, counter)
    last = wire.ended(message) if wire.ended is not None else message
    return tokens if last is message else max(tokens, count_message(last.value(), counter))


def count_stub(  # noqa: PLR0913 (each is another thing)
    counter: TokenCounter,
    wire: Format,
    address: str,
    message: Message,
    tokens: int,
    *,
    characters: int = blocks.STUB_CHARACTERS,
) -> int:
    """Return at most how many tokens the stub of an entry has; 0 for an entry that is never shown as one."""
    if tokens <= blocks.STUB_MIN_TOKENS:
        return 0
    text = blocks.stub_text(address, message, tokens, offered=True, characters=characters)
    return count(counter, wire, wire.shortened(message, text)) + _STUB_SLACK


def recount(state: State, counter: TokenCounter) -> dict[str, object]:
    """Return what ``SessionConfigured.counted`` holds: tokens and stub tokens of all that the state shows. O(visible)."""
    wire = state.wire

    def sizes(page: Page) -> list[list[int]]:
        counted = []
        for position, node in enumerate(page.nodes(), start=1):
            tokens = count(counter, wire, node.message)
            counted.append([tokens, count_stub(counter, wire, f"{page.index}/{position}", node.message, tokens)])
        return counted

    opening = Page(index=state.opening.page if state.opening else "", turn=0)
    for node in state.opening.nodes if state.opening else ():
        opening.add(attrs.evolve(node, previous=None, next=None))
    attachments = state.recalled.attachments.items()
    return {
        "pages": {page.index: sizes(page) for chapter in state.verbatim() for page in chapter.pages()},
        "opening": sizes(opening),
        "blocks": {index: count(counter, wire, attachment.block) for index, attachment in attachments},
        "contents": sum(count(counter, wire, node.message) for node in state.archive.message_list),
    }
