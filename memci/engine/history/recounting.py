"""What all that a session shows has by another counter."""

from collections.abc import Callable, Sequence

import attrs

from memci.archive.contents.working_set import render
from memci.archive.rules.listing import line
from memci.chapters.page import MessageNode, Page
from memci.engine.history.state import State
from memci.messages.message import Message


def recounted(
    state: State,
    count: Callable[[Message], int],
    count_stub: Callable[[str, Message, int], int],
    count_trimmed: Callable[[str, Message, int, Sequence[int]], int],
    count_text: Callable[[str], int],
) -> dict[str, object]:
    """Return what ``SessionConfigured.counted`` holds: tokens and stub tokens of all that the state shows. O(visible).

    A stub, and a result that is trimmed to stretches of its text, are counted by their address, their message and its tokens.
    """

    def sizes(page: Page) -> list[list[int]]:
        return [size(f"{page.index}/{position}", node) for position, node in enumerate(page.nodes(), start=1)]

    def size(at: str, node: MessageNode) -> list[int]:
        message, tokens = node.message, count(node.message)
        shown = [count_trimmed(at, message, tokens, node.trimmed[1:])] if node.trimmed else []
        return [tokens, count_stub(at, message, tokens), *shown]

    working, directives = state.working, state.all_directives()
    return {
        "pages": {page.index: sizes(page) for chapter in state.verbatim() for page in chapter.pages()},
        "opening": sizes(state.opening) if state.opening is not None else [],
        "blocks": {index: count(attachment.block) for index, attachment in state.recalled.attachments.items()},
        "quotes": {str(seq): count(quotes.block) for seq, quotes in state.recalled.quotes.items()},
        **({} if not directives else {"directives": [count(each.node.message) for each in directives]}),
        **({} if not state.rules else {"rules": {rule.address: count_text(line(rule)) for rule in state.rules}}),
        **({} if not state.hidden else {"hidden": {index: count(each.message) for index, each in state.hidden.items()}}),
        **({} if not state.mounts else {"mounts": _mounts(state, count)}),
        **({} if state.slots is None else {"slots": count(state.slots.block)}),
        "contents": sum(count(node.message) for node in state.archive.message_list),
        "working": count(state.wire.block(render(attrs.evolve(working, continuation=None)))) if working.shown else 0,
        **({} if not working.facts.tokens else {"facts": count(state.wire.block(working.facts.render()))}),
        **({} if working.continuation is None else {"continuation": count(state.wire.block(render(working)))}),
    }


def _mounts(state: State, count: Callable[[Message], int]) -> dict[str, int]:
    return {name: count(state.wire.block(mount.text)) if mount.text else 0 for name, mount in state.mounts.items()}
