"""What one page held at each event of a session, without its content: what the SHA-256 of its files follows from."""

from collections.abc import Mapping
from typing import Any

import attrs

from memci.chapters.address import page_number
from memci.chapters.message_list import MessageNode
from memci.chapters.page import Opening, Page
from memci.engine.history.page_codec import page_file
from memci.messages.message import Message


@attrs.frozen
class _Entry:
    seq: int
    at: str
    message: Message
    tokens: int
    opens: str | None


@attrs.define
class PageTrace:
    """One page, along the events of its session, which are told in order.

    Attributes:
        page: The page's index.
        begun: Sequence number of the first event that tells of it, 0 before it was met.
        begun_at: When its first message came in, as the journal says it; empty before that.
    """

    page: str
    begun: int = 0
    begun_at: str = ""
    _turn: int = 0
    _entries: tuple[_Entry, ...] = ()
    _kept: dict[int, tuple[_Entry, ...]] = attrs.field(factory=dict)  # by the sequence number of a checkpoint

    def meet(self, seq: int, kind: str, body: Mapping[str, Any]) -> None:
        """Note where the page begins, if an event tells. O(1)."""
        match kind:
            case "appended" if body["page"] == self.page:
                self._meet(seq, body["at"])
            case "page_began" if body["page"] == self.page:
                self._meet(seq, "")
            case "system_set" if any(page["index"] == self.page for page in body["pages"]):
                self._meet(seq, body["at"])
            case _:
                pass

    def follow(self, seq: int, kind: str, body: Mapping[str, Any]) -> None:
        """Go over an event; ``join`` takes in what ``appended`` brings. O(the page's entries)."""
        self.meet(seq, kind, body)
        match kind:
            case "page_began" if body["page"] == self.page:
                self._turn = body["turn"]
            case "rewound" if body["page"] == self.page:
                self._entries = self._entries[: body["position"] - 1]
            case "rewound" if _is_behind(self.page, body["page"]):
                self._entries = ()
            case "checkpoint_made":
                self._kept[seq] = self._entries
            case "checkpoint_restored":
                self._entries = self._kept[body["target"]]
            case _:
                pass

    def join(self, seq: int, body: Mapping[str, Any], message: Message, tokens: int) -> None:
        """Take in a message of the page, as it is left. O(the page's entries)."""
        if body["opens"] is not None:
            self._turn = body["turn"]
        place = body["position"] - 1
        entry = _Entry(seq, body["at"], message, tokens, body["opens"])
        self._entries = (*self._entries[:place], entry, *self._entries[place:])

    def sizes(self) -> list[int]:
        """Return the tokens of the messages that the page holds now, in their order."""
        return [entry.tokens for entry in self._entries]

    def sha256(self) -> str:
        """Return the SHA-256 of the file that the page has when it is folded now, in hex. O(its size)."""
        first = min(self._entries, key=lambda entry: entry.seq, default=None)
        goes_on = first is not None and first.opens == Opening.CONTINUATION
        page = Page(index=self.page, turn=self._turn, opened_by=Opening.CONTINUATION if goes_on else Opening.TURN)
        for entry in self._entries:
            page.add(MessageNode(message=entry.message, tokens=entry.tokens, seq=entry.seq, at=entry.at))
        return page_file(page)[1]

    def _meet(self, seq: int, at: str) -> None:
        self.begun = self.begun or seq
        self.begun_at = self.begun_at or at


def _is_behind(page: str, other: str) -> bool:
    """Return whether a page comes after another one of its segment."""
    return page.rpartition("-")[0] == other.rpartition("-")[0] and page_number(page) > page_number(other)
