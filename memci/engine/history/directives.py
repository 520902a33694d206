"""System and developer messages said in mid-conversation: they stay in the window, in their role, when their pages fold."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs

from memci.chapters.page import MessageNode, Page
from memci.messages import codec
from memci.messages.formats.format import SYSTEM_ROLES
from memci.messages.formats.reading import ERASED
from memci.messages.message import Message
from memci.messages.parts import text_of

SHARE = 0.1  # of what requests leave of the budget: the most that all directives of a window take


@attrs.frozen(kw_only=True)
class Directive:
    """A system or developer message of a folded page.

    Attributes:
        node: A copy of its node, linked to no other.
        last_seq: Sequence number of the latest message that equals it.
        repeated: A message that equals it is in the active part, so the window shows that one only.
    """

    address: str
    node: MessageNode
    last_seq: int
    repeated: bool = False

    @property
    def is_erased(self) -> bool:
        """Return whether its content was erased."""
        return text_of(self.node.message.value()) == ERASED

    @property
    def page(self) -> str:
        """The index of its page."""
        return self.address.rpartition("/")[0]


def directives_of(page: Page, after_seq: int) -> Iterator[Directive]:
    """Yield the directives of a page that were said after an event. O(its entries)."""
    for position, node in enumerate(page.nodes(), start=1):
        if node.message.role in SYSTEM_ROLES and node.seq > after_seq:
            copy = attrs.evolve(node, previous=None, next=None)
            yield Directive(address=f"{page.index}/{position}", node=copy, last_seq=node.seq)


def merged(directives: Iterable[Directive]) -> list[Directive]:
    """Return one directive for each text that is not erased, that said first, in the order in which they were said last."""
    distinct = dict[tuple[str, bytes], Directive]()
    for directive in directives:
        if directive.is_erased:
            continue
        key = _key(directive.node.message)
        first = distinct.pop(key, directive)
        distinct[key] = attrs.evolve(first, last_seq=max(first.last_seq, directive.last_seq))
    return sorted(distinct.values(), key=lambda directive: directive.last_seq)


def fitting(directives: Sequence[Directive], room: float) -> list[Directive]:
    """Return the directives that fit a number of tokens, the newest first to be taken, in their order."""
    chosen = list[Directive]()
    for directive in reversed(directives):
        if directive.node.tokens <= room:
            chosen.append(directive)
            room -= directive.node.tokens
    return chosen[::-1]


def marked(directives: Sequence[Directive], visible: Iterable[MessageNode]) -> tuple[Directive, ...]:
    """Return directives with ``repeated`` as the messages in the active part have it. O(those), O(1) without directives."""
    if not directives:
        return ()
    keys = {_key(node.message) for node in visible if node.message.role in SYSTEM_ROLES}
    return tuple(attrs.evolve(directive, repeated=_key(directive.node.message) in keys) for directive in directives)


def to_value(directive: Directive, page_value: Callable[[Page], dict[str, Any]]) -> dict[str, Any]:
    """Return a directive as a snapshot holds it."""
    page = Page(index=directive.page, turn=0)
    page.add(attrs.evolve(directive.node, previous=None, next=None))
    return {
        "address": directive.address,
        "last_seq": directive.last_seq,
        "repeated": directive.repeated,
        "page": page_value(page),
    }


def from_value(
    value: dict[str, Any], page_from_value: Callable[[dict[str, Any]], Page], known: Sequence[Directive] = ()
) -> Directive:
    """Read back what ``to_value`` returned. Its node is that of a *known* directive with the same address."""
    shared = [directive.node for directive in known if directive.address == value["address"]]
    (node,) = shared or page_from_value(value["page"]).nodes()
    return Directive(address=value["address"], node=node, last_seq=value["last_seq"], repeated=value["repeated"])


def _key(message: Message) -> tuple[str, bytes]:
    """Return what two messages have in common that say the same: hosts give a repeated message a new id."""
    value = message.value()
    value.pop("id", None)
    return message.role, codec.encode(value)
