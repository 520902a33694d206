"""What all that a session shows has by another counter."""

from collections.abc import Sequence
from typing import Protocol

from memci.archive.contents.working_set import render
from memci.chapters.page import MessageNode, Page
from memci.engine.history.state import State
from memci.messages.message import Message


class Counting(Protocol):
    """Counts messages by the counter that is wanted, as they are sent."""

    def count(self, message: Message) -> int:
        """Return the size of a message."""

    def count_stub(self, at: str, message: Message, tokens: int) -> int:
        """Return the size of the stub of an entry at an address; 0 for none."""

    def count_trimmed(self, at: str, message: Message, tokens: int, bounds: Sequence[int]) -> int:
        """Return the size of a result that is trimmed to these stretches of its text."""


def recounted(state: State, by: Counting) -> dict[str, object]:
    """Return what ``SessionConfigured.counted`` holds: tokens and stub tokens of all that the state shows. O(visible)."""

    def sizes(page: Page) -> list[list[int]]:
        return [size(f"{page.index}/{position}", node) for position, node in enumerate(page.nodes(), start=1)]

    def size(at: str, node: MessageNode) -> list[int]:
        message, tokens = node.message, by.count(node.message)
        shown = [by.count_trimmed(at, message, tokens, node.trimmed[1:])] if node.trimmed else []
        return [tokens, by.count_stub(at, message, tokens), *shown]

    return {
        "pages": {page.index: sizes(page) for chapter in state.verbatim() for page in chapter.pages()},
        "opening": sizes(state.opening) if state.opening is not None else [],
        "blocks": {index: by.count(attachment.block) for index, attachment in state.recalled.attachments.items()},
        "quotes": {str(seq): by.count(quotes.block) for seq, quotes in state.recalled.quotes.items()},
        "contents": sum(by.count(node.message) for node in state.archive.message_list),
        "working": by.count(state.wire.block(render(state.working.shown))) if state.working.shown else 0,
    }
