"""What stands in a window, part by part, in its order. Reads the state and nothing else."""

import math
from collections.abc import Iterator

import attrs

from memci.chapters.page import Entry, Page
from memci.engine import blocks
from memci.engine.state import State
from memci.messages.message import Message
from memci.messages.tokens.message_tokens import REPLY_TOKENS

RENDERER = 1
"""Version of the layout and of the texts in ``blocks``."""

PARTS = ("system", "tools", "contents", "recalled", "active", "open", "reply")
"""The parts that a breakdown counts."""


@attrs.frozen
class Piece:
    """One message of a window.

    Attributes:
        part: The part it belongs to, one of ``PARTS``.
        message: The message.
        tokens: At most its size, before the scale.
        page: Index of the page whose entry it shows, or for a call of which it stands; empty for what is of no one page.
    """

    part: str
    message: Message
    tokens: int
    page: str = ""


@attrs.frozen(kw_only=True)
class Layout:
    """A window before it is written.

    Attributes:
        pieces: Its messages in order.
        breakdown: Tokens by part, scaled; they add up to ``tokens``.
        tokens: Its size.
        counted: Its size by the counter, before the scale.
        pages: What the pieces of each page take at least, by index, scaled.
    """

    pieces: tuple[Piece, ...]
    breakdown: dict[str, int]
    tokens: int
    counted: int
    pages: dict[str, int]


def lay_out(state: State, *, tools_tokens: int = 0, stub_tokens: int | None = None, contents: bool = True) -> Layout:
    """Return the window that the state makes. O(visible).

    Args:
        state: The state.
        tools_tokens: Size of the tool schemas that go with it.
        stub_tokens: Verbatim entries above this are shown as stubs; ``None`` for those whose text is over ``active.entry_tokens``
            only. Pictures, sound and files are no reason for a stub as long as a window has room: no tool can show them.
        contents: Whether the contents page is shown, where there is one.
    """
    pieces = tuple(_opened(state, _pieces(state, stub_tokens, contents=contents)))
    counted = dict.fromkeys(PARTS, 0)
    pages: dict[str, int] = {}
    for piece in pieces:
        counted[piece.part] += piece.tokens
        if piece.page:
            pages[piece.page] = pages.get(piece.page, 0) + piece.tokens
    counted["tools"], counted["reply"] = tools_tokens, REPLY_TOKENS
    breakdown = {part: math.ceil(tokens * state.scale) for part, tokens in counted.items()}
    return Layout(
        pieces=pieces,
        breakdown=breakdown,
        tokens=sum(breakdown.values()),
        counted=sum(counted.values()),
        pages={index: math.floor(tokens * state.scale) for index, tokens in pages.items()},
    )


def _opened(state: State, pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Yield the pieces, and before the first message of the conversation what the format wants to stand there."""
    begun = False
    for piece in pieces:
        if not begun and piece.part != "system":
            begun = True
            opening = state.wire.opening(piece.message)
            if opening is not None:
                yield Piece(piece.part, opening, blocks.OPENING_TOKENS)
        yield piece


def _pieces(state: State, limit: int | None, *, contents: bool) -> Iterator[Piece]:
    for page in state.system.pages():
        for node in page.nodes():
            yield Piece("system", node.message, node.tokens)
    shown = state.archive.message_list.head
    if contents and shown is not None:
        if state.instructions:
            message = state.wire.facts({"role": "system", "content": state.instructions})
            yield Piece("system", message, state.instruction_tokens)
        yield Piece("contents", shown.message, shown.tokens)
    if state.opening is not None:
        opening = Page(index=state.opening.page, turn=0)
        for position, node in enumerate(state.opening.nodes, start=1):
            yield _verbatim(state, "open", Entry(opening, position, node), limit)
    anchored = _anchored(state)
    yield from anchored.pop("", ())
    open_page = state.active.open_page
    for page in state.active.pages():
        yield from anchored.pop(page.index, ())
        yield from _page(state, page, "open" if page is open_page else "active", limit)


def _anchored(state: State) -> dict[str, list[Piece]]:
    anchored: dict[str, list[Piece]] = {}
    for attachment in state.recalled.attachments.values():
        anchor = attachment.anchor if attachment.anchor in state.active else ""
        anchored.setdefault(anchor, []).append(Piece("recalled", attachment.block, attachment.tokens))
    return anchored


def _page(state: State, page: Page, part: str, limit: int | None) -> Iterator[Piece]:
    missing: list[Piece] = []
    expected: set[str] = set()
    for position, node in enumerate(page.nodes(), start=1):
        if missing and not expected & set(node.message.answers):
            yield from missing
            missing = []
        yield _verbatim(state, part, Entry(page, position, node), limit)
        if node.message.calls:
            expected = {call.id for call in node.message.calls}
            missing = [
                Piece(part, state.wire.result(call, blocks.NO_RESULT), blocks.no_result_tokens(call), page.index)
                for call in page.unanswered(node)
            ]
    yield from missing


def _verbatim(state: State, part: str, entry: Entry, limit: int | None) -> Piece:
    node = entry.node
    large = node.tokens - node.media_tokens > state.config.active.entry_tokens or (limit is not None and node.tokens > limit)
    if not large or not 0 < node.stub_tokens < node.tokens:
        return Piece(part, node.message, node.tokens, entry.page.index)
    stub = state.wire.shortened(node.message, blocks.stub_text(entry.page, entry.position, node))
    return Piece(part, stub, node.stub_tokens, entry.page.index)
