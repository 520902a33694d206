"""What stands in a window, part by part, in its order. Reads the state and nothing else."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from memci.chapters.message_list import MessageNode
from memci.chapters.page import Entry, Page
from memci.engine.history import blocks
from memci.engine.history.events import WindowSettled
from memci.engine.history.state import State
from memci.messages.message import Message
from memci.messages.tokens.message_tokens import REPLY_TOKENS

RENDERER = 2
"""Version of the layout and of the texts in ``blocks``."""

PARTS = ("system", "tools", "contents", "recalled", "active", "open", "reply")
"""The parts that a breakdown counts."""

_STUB_ORDER = {"tool": 0, "function": 0, "user": 2}


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
        scale: What its counts are multiplied by.
        pages: What the pieces of each page take at least, by index, scaled.
    """

    pieces: tuple[Piece, ...]
    breakdown: dict[str, int]
    tokens: int
    counted: int
    scale: float
    pages: dict[str, int]


def lay_out(state: State, settled: WindowSettled | None) -> Layout:
    """Return the window that the state makes. O(visible).

    Args:
        state: The state.
        settled: How it is asked for; ``None`` for no tools, and nothing shown as a stub.
    """
    return _measured(state, _pieces(state, settled), settled)


def lay_out_least(state: State, settled: WindowSettled | None) -> Layout:
    """Return what is left when all that can leave the window has left: system part, open page, and what opened its turn."""
    open_page = state.active.open_page
    pieces = [*_system(state), *_opening(state, _lasting_opening(state), settled)]
    if open_page is not None:
        pieces += _page(state, open_page, "open", settled)
    return _measured(state, pieces, settled)


def _measured(state: State, parts: Iterable[Piece], settled: WindowSettled | None) -> Layout:
    pieces = tuple(_opened(state, parts))
    counted = dict.fromkeys(PARTS, 0)
    pages: dict[str, int] = {}
    for piece in pieces:
        counted[piece.part] += piece.tokens
        if piece.page:
            pages[piece.page] = pages.get(piece.page, 0) + piece.tokens
    counted["tools"], counted["reply"] = settled.tools_tokens if settled is not None else 0, REPLY_TOKENS
    scale = state.scale if settled is None or settled.scale is None else settled.scale
    breakdown = {part: math.ceil(tokens * scale) for part, tokens in counted.items()}
    return Layout(
        pieces=pieces,
        breakdown=breakdown,
        tokens=sum(breakdown.values()),
        counted=sum(counted.values()),
        scale=scale,
        pages={index: math.floor(tokens * scale) for index, tokens in pages.items()},
    )


def stubbed(state: State, wanted: WindowSettled, lay: Callable[[State, WindowSettled], Layout]) -> tuple[Layout, WindowSettled]:
    """Show large entries of the open turn as stubs until what is laid out fits, or there is none left.

    New ones that turn out to be needless, since a larger one had to follow, are shown whole again, what the user wrote first.
    """
    layout, candidates = lay(state, wanted), [node.seq for node in _stub_candidates(state)]
    for seq in candidates:
        if layout.tokens > wanted.budget and seq not in wanted.stubs:
            wanted = attrs.evolve(wanted, stubs=sorted([*wanted.stubs, seq]))
            layout = lay(state, wanted)
    known = state.settled.stubs if state.settled is not None and state.settled.budget == wanted.budget else ()
    for seq in reversed(candidates):
        whole = attrs.evolve(wanted, stubs=[each for each in wanted.stubs if each != seq or seq in known])
        if whole.stubs != wanted.stubs and (laid := lay(state, whole)).tokens <= wanted.budget:
            layout, wanted = laid, whole
    return layout, wanted


def _stub_candidates(state: State) -> list[MessageNode]:
    """Return the entries of the open turn that can be shown as stubs: results of tools first, what the user wrote last.

    Those with more tokens go before smaller ones of their kind. O(open page).
    """
    open_page = state.active.open_page
    nodes = [*_lasting_opening(state)[1], *(open_page.nodes() if open_page is not None else ())]
    stubbed = [node for node in nodes if 0 < node.stub_tokens < node.tokens]
    return sorted(stubbed, key=lambda node: (_STUB_ORDER.get(node.message.speaker, 1), -node.tokens, node.seq))


def _lasting_opening(state: State) -> tuple[str, Sequence[MessageNode]]:
    """Return the page and the messages that opened the turn, where they stand apart from the open page or would after a fold."""
    if state.opening is not None and state.opening.page == state.turn_page:
        return state.turn_page, state.opening.nodes
    first = state.active.find_page(state.turn_page)
    if first is None or first is state.active.open_page:
        return "", ()
    return first.index, list(itertools.takewhile(lambda node: node.message.from_user, first.nodes()))


def _opened(state: State, pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the pieces, and before the first message of the conversation what the format wants to stand there."""
    begun = False
    for piece in pieces:
        if not begun and piece.part != "system":
            begun = True
            opening = state.wire.opening(piece.message)
            if opening is not None:
                yield Piece(piece.part, opening, blocks.OPENING_TOKENS)
        yield piece


def _pieces(state: State, settled: WindowSettled | None) -> Iterator[Piece]:
    yield from _system(state)
    shown = state.archive.message_list.head
    if shown is not None and (settled is None or settled.contents):
        if state.instructions:
            message = state.wire.facts({"role": "system", "content": state.instructions})
            yield Piece("system", message, state.instruction_tokens)
        yield Piece("contents", shown.message, shown.tokens)
    if state.opening is not None:
        yield from _opening(state, (state.opening.page, state.opening.nodes), settled)
    anchored = _anchored(state)
    yield from anchored.pop("", ())
    open_page = state.active.open_page
    for page in state.active.pages():
        yield from anchored.pop(page.index, ())
        yield from _page(state, page, "open" if page is open_page else "active", settled)


def _system(state: State) -> Iterator[Piece]:
    for page in state.system.pages():
        for node in page.nodes():
            yield Piece("system", node.message, node.tokens)


def _opening(state: State, opening: tuple[str, Sequence[MessageNode]], settled: WindowSettled | None) -> Iterator[Piece]:
    index, nodes = opening
    page = Page(index=index, turn=0)
    for position, node in enumerate(nodes, start=1):
        yield _verbatim(state, "open", Entry(page, position, node), settled)


def _anchored(state: State) -> dict[str, list[Piece]]:
    anchored: dict[str, list[Piece]] = {}
    for attachment in state.recalled.attachments.values():
        anchor = attachment.anchor if attachment.anchor in state.active else ""
        anchored.setdefault(anchor, []).append(Piece("recalled", attachment.block, attachment.tokens))
    return anchored


def _page(state: State, page: Page, part: str, settled: WindowSettled | None) -> Iterator[Piece]:
    missing: list[Piece] = []
    expected: set[str] = set()
    for position, node in enumerate(page.nodes(), start=1):
        if missing and not expected & set(node.message.answers):
            yield from missing
            missing = []
        yield _verbatim(state, part, Entry(page, position, node), settled)
        if node.message.calls:
            expected = {call.id for call in node.message.calls}
            missing = [
                Piece(part, state.wire.result(call, blocks.NO_RESULT), blocks.no_result_tokens(call), page.index)
                for call in page.unanswered(node)
            ]
    yield from missing


def _verbatim(state: State, part: str, entry: Entry, settled: WindowSettled | None) -> Piece:
    node = entry.node
    if settled is None or node.seq not in settled.stubs or not node.stub_tokens:  # what was erased since has none
        return Piece(part, node.message, node.tokens, entry.page.index)
    text = blocks.stub_text(entry.page, entry.position, node, offered=settled.reads)
    return Piece(part, state.wire.shortened(node.message, text), node.stub_tokens, entry.page.index)
