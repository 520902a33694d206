"""What a summariser wrote lately of which content, so that it is not asked again: bounded, for one engine."""

import threading
from collections import OrderedDict
from typing import TypeAlias

import attrs

from memci.archive.stores.names import SessionKey
from memci.archive.summarizers.summary import Summary
from memci.engine.history.events import SummaryPrepared

MOST_BYTES = 8_000_000  # about, of all that is kept: some thousand summaries
_LEAST_BYTES, _WORD_BYTES = 300, 100  # of what holds the texts of a summary, and one of its words

_Content: TypeAlias = tuple[str, str, int]  # a tenant, the SHA-256 of a page's messages, and the room that its summary was given


@attrs.define
class _Kept:
    summary: Summary
    size: int
    pages: set[tuple[SessionKey, str]]  # of which it was written or known: sessions and indexes


class SummaryCache:
    """Summaries of one summariser by the content that they are of; what was asked for longest ago leaves first.

    Safe to use from many threads. All is O(1).
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()  # protects what follows
        self._kept: OrderedDict[_Content, _Kept] = OrderedDict()
        self._contents: dict[tuple[SessionKey, str], set[_Content]] = {}  # by page
        self._bytes = 0

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._kept)

    def find(self, tenant: str, sha256: str, room: int) -> Summary | None:
        """Return what was written of a content in so many tokens, without what it cost."""
        with self._lock:
            found = self._kept.get((tenant, sha256, room))
            if found is None:
                return None
            self._kept.move_to_end((tenant, sha256, room))
            return found.summary

    def put(self, session: SessionKey, event: SummaryPrepared) -> None:
        """Keep what was written of a page of a session, where it was believed; older journals do not say in how much room."""
        if event.reason or not event.room:
            return
        words = tuple([(text, worth, lead) for text, worth, lead in event.words])
        made = Summary(title=event.title, summary=event.summary, lines=tuple(event.lines), outcome=event.outcome, words=words)
        texts = (made.title, made.summary, *made.lines, made.outcome, *(text for text, _, _ in words))
        size = _LEAST_BYTES + _WORD_BYTES * len(words) + sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        content, page = (session.tenant, event.sha256, event.room), (session, event.page)
        with self._lock:
            known = self._drop(content)
            self._kept[content] = _Kept(made, size, {page} | (known.pages if known is not None else set()))
            self._bytes += size
            for each in self._kept[content].pages:
                self._contents.setdefault(each, set()).add(content)
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._kept)))

    def forget(self, session: SessionKey, page: str) -> None:
        """Drop what was written of a page, for all that say the same."""
        with self._lock:
            for content in list(self._contents.get((session, page), ())):
                self._drop(content)

    def _drop(self, content: _Content) -> _Kept | None:
        gone = self._kept.pop(content, None)
        if gone is not None:
            self._bytes -= gone.size
            for page in gone.pages:
                self._contents[page].discard(content)
                if not self._contents[page]:
                    del self._contents[page]
        return gone
