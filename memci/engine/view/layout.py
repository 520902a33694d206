"""What stands in a window, part by part, in its order. Reads the state and nothing else."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from memci.archive.contents.working_set import render
from memci.archive.facts.table import FactTable
from memci.archive.rules.listing import rules_block
from memci.chapters.page import MessageNode, Page, ShownInPart
from memci.chapters.recalled import Attachment
from memci.engine.history import blocks
from memci.engine.history.directives import SHARE as DIRECTIVES_SHARE
from memci.engine.history.directives import Directive, fitting
from memci.engine.history.events import WindowSettled
from memci.engine.history.state import Mount, State, opening_of
from memci.messages import codec
from memci.messages.message import Message
from memci.messages.tokens.message_tokens import REPLY_TOKENS

PARTS = ("system", "tools", "contents", "work", "recalled", "active", "open", "reply")
"""The parts of every window; ``mounted``, ``facts``, ``rules``, ``directives``, ``slots``, ``extra`` are in some."""

MOUNTS_SHARE = 0.5  # of a window's budget, that contents of mounted sessions may take

_STUB_ORDER = {"tool": 0, "function": 0, "user": 2}
_SCALARS = frozenset({str, int, float, bool, type(None)})


@attrs.frozen(kw_only=True)
class Layout:
    """A window before it is written. It is of the moment: what is not a number changes with the state."""

    breakdown: dict[str, int]  # tokens by part, scaled; they add up to ``tokens``
    tokens: int
    counted: int  # its size by the counter, before the scale
    scale: float
    view: "View"
    spared: Mapping[str, int] = attrs.field(factory=dict)  # tokens that trimming would take from pages, scaled

    def page(self, index: str) -> int:
        """Return what the messages of a page take at least, scaled; 0 for a page that is not in it."""
        return math.floor(self.view.page_tokens.get(index, 0) * self.scale) - self.spared.get(index, 0)


class View:
    """The messages of a window. What comes in at its end is laid out when it is asked for again; what is there stays.

    It is asked for as in *settled*, ``None`` for nothing shown as a stub; with *least*, see ``lay_out_least``.
    """

    def __init__(self, state: State, settled: WindowSettled | None, *, least: bool = False) -> None:
        self.messages: list[Message] = []
        self.page_tokens: dict[str, int] = {}  # of the entries of each page, and of what stands for missing results, by index
        self.ends: dict[str, int] = {}  # the place after the last message of each part
        self.in_part: dict[str, tuple[ShownInPart, int, str]] = {}  # by seq: what is shown, the most it may take, its page
        self._state = state
        self._asked = _asked(state, settled)
        self._stubs: Collection[int] = frozenset(settled.stubs) if settled is not None else ()
        self._excerpts = settled.excerpts if settled is not None and not least else {}
        self._reads = settled is not None and settled.reads
        self._quotes = {} if least else state.recalled.quotes
        self._tokens = dict.fromkeys(PARTS, 0) | {"reply": REPLY_TOKENS}
        self._begun = False
        self._sent: list[Message] = []  # what is sent of the messages that were written
        self._values: list[dict[str, Any]] = []  # them as dicts, empty in the places of nested ones
        self._nested: list[int] = []
        self._page: Page | None = None  # the last one
        # Messages, open and recalled tokens before its entries, and whether the conversation had begun.
        self._before_page = (0, 0, 0, False)
        self._last: MessageNode | None = None  # of its entries, that was laid out
        self._missing = False  # whether something stands for results that may come still
        self._laid = 0  # entries of the page that were laid out
        self._laid_before = 0  # entries of the pages before it
        for page in state.system.pages():
            if page.index in state.hidden:
                line = state.hidden[page.index]
                self._put("system", line.message, line.tokens)
                continue
            for node in page.nodes():
                self._put("system", node.message, node.tokens)
        self._system_length = state.system.message_list.length
        if state.headlines:
            self._put("system", state.wire.facts({"role": "system", "content": state.headlines}), state.headlines_tokens)
        if least:
            self._opening(_lasting_opening(state))
            if state.active.open_page is not None:
                self._open(state.active.open_page)
        else:
            self._all(settled)

    def layout(self, settled: WindowSettled | None) -> Layout:
        """Measure it."""
        self._tokens["tools"] = settled.tools_tokens if settled is not None else 0
        scale, counted = self._state.scale if settled is None or settled.scale is None else settled.scale, self._tokens
        if self._state.slots is not None:
            counted = {**counted, "slots": self._state.slots.tokens}
        if settled is not None and settled.extra:
            counted = {**counted, "extra": settled.extra_tokens}
        if settled is not None and settled.sizes:
            counted = self._sized(counted, settled.sizes)
        breakdown = counted.copy() if scale == 1 else {part: math.ceil(tokens * scale) for part, tokens in counted.items()}
        return Layout(breakdown=breakdown, tokens=sum(breakdown.values()), counted=sum(counted.values()), scale=scale, view=self)

    def _sized(self, counted: Mapping[str, int], sizes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Return the tokens by part with what is shown of entries as large as it is, where that was counted."""
        sized = dict(counted)
        said = {page.index for page in (self._state.opening, self._page) if page is not None}
        for seq, (_, most, page) in self.in_part.items():
            known, size = sizes.get(seq, (0, 0))
            if known == most:
                sized["open" if page in said else "active"] -= most - size
        return sized

    def goes_on(self, state: State, settled: WindowSettled | None) -> bool:
        """Lay out what came in at the end, and return whether that makes what the state shows. O(open page and what came in)."""
        page = self._page
        if (
            state is not self._state
            or self._asked != _asked(state, settled)
            or state.system.message_list.length != self._system_length
        ):
            return False
        if page is None:
            page = state.active.first_page
            if page is None:
                return True
            self._open(page)
        elif self._laid != page.length:
            self._entries(page)
        while page.next is not None:
            page = page.next
            self._open(page)
        return self._laid_before + self._laid == state.active.message_list.length  # else one came into a page before

    def slots_place(self) -> int:
        """Return where slots and extra texts stand: last, so that they change nothing before. O(what the model goes on with).

        What the model said last it may go on with, as that is the end of the window: they stand in front of it.
        """
        place = len(self.messages)
        while place and self.messages[place - 1].role == "assistant":
            place -= 1
        return place

    def written(self) -> tuple[list[Message], list[dict[str, Any]]]:
        """Return what is sent of each message for itself, and these as new dicts. O(messages)."""
        new = list(map(self._state.wire.assembled, self.messages[len(self._sent) :]))
        self._sent += new
        for value in codec.decode_list([message.raw for message in new]):
            is_flat = _SCALARS.issuperset(map(type, value.values()))
            if not is_flat:
                self._nested.append(len(self._values))
            self._values.append(value if is_flat else {})
        values = list(map(dict.copy, self._values))
        if self._nested:
            raws = [self._sent[place].raw for place in self._nested]
            for place, value in zip(self._nested, codec.decode_list(raws), strict=True):
                values[place] = value
        slots, settled = self._state.slots, self._state.settled
        last = [] if slots is None else [slots.block]
        if settled is not None and settled.extra:
            last.append(blocks.extra_block(settled.extra, self._state.wire))
        if not last:
            return self._sent, values
        place = self.slots_place()
        values[place:place] = [block.value() for block in last]
        return [*self._sent[:place], *last, *self._sent[place:]], values

    def _all(self, settled: WindowSettled | None) -> None:
        state = self._state
        shown, has_room = state.archive.message_list.head, settled is None or settled.contents
        listed, continues = state.config.contents.listed, state.working.continues
        if shown is not None and has_room:
            if state.instructions and state.explains(settled):
                message = state.wire.facts({"role": "system", "content": state.instructions})
                self._put("system", message, state.instruction_tokens)
            if listed:
                self._put("contents", shown.message, shown.tokens)
                self._facts(state.working.facts)
        for mount in _shown_mounts(state, settled) if has_room else ():
            self._tokens.setdefault("mounted", 0)
            self._put("mounted", state.wire.block(mount.text), mount.tokens)
        tells = shown is not None or continues if listed else continues and state.config.summary.continuation
        if has_room and tells and (text := render(state.working)):
            self._put("work", state.wire.block(text), state.working.message_tokens)
        if rules := state.listed_rules(settled) if state.rules else ():
            self._tokens.setdefault("rules", 0)
            self._put("rules", rules_block(rules, state.wire), state.rules_tokens + sum(rule.tokens for rule in rules))
        for directive in _shown_directives(state, settled) if state.directives else ():
            self._tokens.setdefault("directives", 0)
            self._put("directives", directive.node.message, directive.node.tokens)
        self._opening(state.opening)
        anchored: dict[str, list[Attachment]] = {}
        for attachment in state.recalled.attachments.values():
            anchored.setdefault(attachment.anchor if attachment.anchor in state.active else "", []).append(attachment)
        self._recalled(anchored.get("", ()))
        for page in state.active.pages():
            self._open(page, anchored.get(page.index, ()))

    def _facts(self, table: FactTable) -> None:
        if text := table.render():
            self._tokens.setdefault("facts", 0)
            self._put("facts", self._state.wire.block(text), table.tokens)

    def _put(self, part: str, message: Message, tokens: int, page: str = "") -> None:
        """Add a message, and before the first one of the conversation what the format wants to stand there."""
        if not self._begun and part != "system":
            self._begun = True
            opening = self._state.wire.opening(message)
            if opening is not None:
                self.messages.append(opening)
                self._tokens[part] += blocks.OPENING_TOKENS
        self.messages.append(message)
        self._tokens[part] += tokens
        self.ends[part] = len(self.messages)
        if page:
            self.page_tokens[page] = self.page_tokens.get(page, 0) + tokens

    def _recalled(self, attachments: Iterable[Attachment]) -> None:
        for attachment in attachments:
            self._put("recalled", attachment.block, attachment.tokens)

    def _opening(self, page: Page | None) -> None:
        if page is not None:
            for position, node in enumerate(page.nodes(), start=1):
                self._entry(page.index, position, node)

    def _open(self, page: Page, anchored: Iterable[Attachment] = ()) -> None:
        """Lay a page out after the one that was open until now."""
        done = self._tokens["open"] - self._before_page[1]
        if done and self._page is not None:
            self._tokens["open"] -= done
            self._tokens["active"] += done
            self.ends["active"] = len(self.messages)
        self._recalled(anchored)
        self._laid_before += self._laid
        self._page = page
        self._before_page = (len(self.messages), self._tokens["open"], self._tokens["recalled"], self._begun)
        self._last, self._missing, self._laid = None, False, 0
        self._entries(page)

    def _entries(self, page: Page) -> None:
        """Lay out what came into the last page; all of it, where something stands for results."""
        if self._missing:
            start, self._tokens["open"], self._tokens["recalled"], self._begun = self._before_page
            del self.messages[start:], self._sent[start:], self._values[start:], self.page_tokens[page.index]
            self._nested = [place for place in self._nested if place < start]
            self._last, self._missing, self._laid = None, False, 0
        calling: MessageNode | None = None
        while self._last is not page.tail:
            self._last = node = page.head if self._last is None else self._last.next
            assert node is not None
            if calling is not None and not {call.id for call in calling.message.calls} & set(node.message.answers):
                self._no_results(page, calling)
                calling = None
            self._laid += 1
            self._entry(page.index, self._laid, node)
            calling = node if node.message.calls else calling
        if calling is not None:
            self._no_results(page, calling)

    def _entry(self, index: str, position: int, node: MessageNode) -> None:
        """Lay out an entry with the passages beside it: what the user says is last."""
        quotes = self._quotes.get(node.seq)
        if quotes is not None and node.message.from_user:
            self._put("recalled", quotes.block, quotes.tokens)
        message, tokens = node.message, node.tokens
        if node.stub_tokens and (node.trimmed or node.seq in self._stubs):  # what was erased since has none
            message, tokens = self._shown(f"{index}/{position}", node)
        self._put("open", message, tokens, index)
        if quotes is not None and not node.message.from_user:
            self._put("recalled", quotes.block, quotes.tokens)

    def _no_results(self, page: Page, node: MessageNode) -> None:
        """Lay out what stands for the missing results of a node's calls."""
        for call in page.unanswered(node):
            self._missing = True
            message = self._state.wire.result(call, blocks.NO_RESULT)
            self._put("open", message, blocks.no_result_tokens(call), page.index)

    def _shown(self, address: str, node: MessageNode) -> tuple[Message, int]:
        if node.trimmed:
            (tokens, *bounds), characters = node.trimmed, blocks.STUB_CHARACTERS
        else:
            bounds = []
            characters, tokens = self._excerpts.get(str(node.seq), (blocks.STUB_CHARACTERS, node.stub_tokens))
        stub = blocks.Stub(
            address=address,
            tokens=node.tokens,
            offered=self._reads,
            characters=characters,
            bounds=tuple(bounds),
            renderer=self._state.renderer,
        )
        if node.stub is None or node.stub.made_by != stub:
            node.stub = ShownInPart(stub, stub.of(node.message, self._state.wire))
        self.in_part[str(node.seq)] = node.stub, tokens, address.partition("/")[0]
        return node.stub.message, tokens


Lay: TypeAlias = Callable[[State, WindowSettled | None], Layout]


def lay_out(state: State, settled: WindowSettled | None) -> Layout:
    """Return the window that the state makes, without tools and stubs for ``None``. O(visible)."""
    return View(state, settled).layout(settled)


def lay_out_least(state: State, settled: WindowSettled | None) -> Layout:
    """Return what is left when all that can leave the window has left: system part, open page, and what opened its turn."""
    return View(state, settled, least=True).layout(settled)


def _asked(state: State, settled: WindowSettled | None) -> tuple[object, ...]:
    """Return what decides which messages a window shows, and how."""
    mounts = _shown_mounts(state, settled) if state.mounts else []
    shown = [directive.node.seq for directive in _shown_directives(state, settled)] if state.directives else []
    rules = [rule.address for rule in state.listed_rules(settled)] if state.rules else []
    if settled is None:
        return True, mounts, rules, shown, False, state.explains(settled), [], {}
    return settled.contents, mounts, rules, shown, settled.reads, settled.explains, settled.stubs, settled.excerpts


def _shown_directives(state: State, settled: WindowSettled | None) -> list[Directive]:
    """Return the directives that a window shows: those that fit their share of what its request leaves to the conversation."""
    shown = [directive for directive in state.directives if not directive.repeated]
    if settled is None or not shown:
        return shown
    if not settled.directives:
        return []
    scale = settled.scale or state.scale
    left = settled.budget - (settled.tools_tokens + settled.extra_tokens) * scale
    return fitting(shown, DIRECTIVES_SHARE * left / scale)


def _shown_mounts(state: State, settled: WindowSettled | None) -> list[Mount]:
    """Return the mounted sessions whose contents stand in a window: in their order, as far as their share has room for each."""
    shown, room = list[Mount](), math.inf
    if settled is not None:
        room = MOUNTS_SHARE * settled.budget / (settled.scale or state.scale) if settled.mounts else 0.0
    for mount in state.mounts.values():
        if mount.text and mount.tokens <= room:
            shown.append(mount)
            room -= mount.tokens
    return shown


def stubbed(state: State, wanted: WindowSettled, lay: Lay) -> tuple[Layout, WindowSettled]:
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
    """Return the open turn's entries that can be stubs: results first, what the user wrote last, larger ones before smaller."""
    stubbed = [node for *_, node in open_entries(state) if 0 < node.stub_tokens < node.tokens]
    return sorted(stubbed, key=lambda node: (_STUB_ORDER.get(node.message.speaker, 1), -node.tokens, node.seq))


def open_entries(state: State) -> Iterator[tuple[str, int, MessageNode]]:
    """Yield what is being said, and what opened its turn, each with its page and its position there."""
    for page in filter(None, (_lasting_opening(state), state.active.open_page)):
        for position, node in enumerate(page.nodes(), start=1):
            yield page.index, position, node


def _lasting_opening(state: State) -> Page | None:
    """Return the messages that opened the turn, where they stand apart from the open page or would after a fold."""
    if state.opening is not None and state.opening.index == state.turn_page:
        return state.opening
    first = state.active.find_page(state.turn_page)
    return None if first is None or first is state.active.open_page else opening_of(first)
