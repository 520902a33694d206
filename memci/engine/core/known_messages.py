"""Which messages a session holds, told apart by digests, so that a host's whole list can be compared with them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from memci.chapters.address import page_number, segment_of
from memci.engine.history.events import CheckpointRestored, MessageAppended, PageErased, Rewound, from_record
from memci.engine.history.state import SYSTEM
from memci.errors import InvalidMessageError
from memci.messages.codec import digest
from memci.messages.formats.format import Format

if TYPE_CHECKING:
    from memci.archive.stores.contract import Journal

Digests: TypeAlias = tuple[bytes, bytes] | None  # of a message as it came in, and as it is sent; None of what was erased
Known: TypeAlias = tuple[int, str, Digests]  # with sequence number and address

_KINDS = tuple(event.kind for event in (MessageAppended, Rewound, PageErased, CheckpointRestored))


def sent_digest(wire: Format, message: dict[str, Any]) -> bytes:
    """Return the digest of a message without what belongs to a provider's answer only; that of all of it where it is none."""
    try:
        return digest(wire.sent(wire.facts(message)).value())
    except InvalidMessageError:
        return digest(message)


@attrs.define(eq=False)
class KnownMessages:
    """Those of each page up to the record *seq*, without the system part: some 300 bytes a message."""

    wire: Format
    seq: int = 0
    pages: dict[str, list[tuple[int, Digests]]] = attrs.field(factory=dict)  # with sequence numbers

    def follow(self, journal: "Journal", until: int) -> None:
        """Take in what was written since. O(that); of a restored checkpoint, O(history)."""
        for record in journal.read(self.seq, until) if self.seq < until else ():
            if record.kind not in _KINDS:
                continue
            match from_record(record):
                case MessageAppended(page=page, position=position, message=message):
                    if segment_of(page) != SYSTEM:
                        self.pages.setdefault(page, []).insert(position - 1, (record.seq, self._digests(message)))
                case Rewound(page=page, position=position):
                    number = page_number(page)
                    self.pages = {index: said for index, said in self.pages.items() if page_number(index) <= number}
                    del self.pages.get(page, [])[position - 1 :]
                case PageErased(page=page):
                    self.pages[page] = [(seq, None) for seq, _ in self.pages.get(page, ())]
                case CheckpointRestored(target=target):
                    then = KnownMessages(self.wire)
                    then.follow(journal, target)
                    self.pages = then.pages
        self.seq = max(self.seq, until)

    def _digests(self, message: dict[str, Any]) -> Digests:
        return digest(message), sent_digest(self.wire, message)

    def entries(self) -> Iterator[Known]:
        """Yield what is known of each message, page by page."""
        for page, said in self.pages.items():
            for position, (seq, told) in enumerate(said, start=1):
                yield seq, f"{page}/{position}", told
