"""What it costs to take a page out of the messages and to bring it back: views on a linked list, beside lists and files."""

import gc
import statistics
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import thread_time_ns
from typing import Any

import attrs

from memci.chapters.page import Chapter, MessageNode, Page
from memci.messages import codec
from memci.messages.message import Message

HISTORIES = (100, 1_000, 10_000, 100_000, 1_000_000)
PAGES = (1, 10, 100, 1_000)
_TEXT = "It was ordered on Monday, and it left the warehouse in March. " * 6  # as long as a message of chat
_SAMPLES = 32  # pages that one round takes out and brings back, so that reading the clock weighs little
_ROUNDS, _ROUNDS_NS = (3, 40), 2 * 10**8  # at least and at most, and the time after which no more begin


class Way:
    """One history, and a way to take pages out of it: here a list of references to the messages, cut in place.

    Args:
        messages: The history, as dicts, oldest first.
        size: Messages of a page.
        starts: Where the chosen pages begin, ascending; each stands between pages that stay.
        scratch: Where it may write files.
    """

    def __init__(self, messages: list[dict[str, Any]], size: int, starts: Sequence[int], scratch: Path) -> None:
        self.messages, self.size, self.starts, self.scratch = messages, size, starts, scratch
        self.held: dict[int, list[dict[str, Any]]] = {}
        self.prepare()

    def prepare(self) -> None:
        """Do what comes before all pages."""

    def detach(self, start: int) -> None:
        """Take out the page that begins there; pages are taken from the last to the first."""
        self.held[start] = self.messages[start : start + self.size]
        del self.messages[start : start + self.size]

    def recall(self, start: int) -> None:
        """Bring it back to its place; pages are brought from the first to the last."""
        self.messages[start:start] = self.held.pop(start)

    def moved_bytes(self) -> int:
        """Return how many bytes have to be moved in memory for one of the two, references being 8 each."""
        return 8 * (len(self.messages) - self.starts[len(self.starts) // 2])

    def limit(self) -> Callable[[], object]:
        """Return what the machine has to do at least for one of the two, without any of Python's objects."""
        size = self.moved_bytes()
        memory = memoryview(bytearray(size + 8 * self.size))
        source, target = memory[8 * self.size :], memory[:size]

        def move() -> None:
            target[:] = source

        return move

    def content(self) -> list[dict[str, Any]]:
        """Return all messages in their order."""
        return self.messages


class Rebuilt(Way):
    """A list of references, made anew each time, as where a list that was handed out must not change."""

    def detach(self, start: int) -> None:
        self.held[start] = self.messages[start : start + self.size]
        self.messages = self.messages[:start] + self.messages[start + self.size :]

    def recall(self, start: int) -> None:
        self.messages = self.messages[:start] + self.held.pop(start) + self.messages[start:]

    def moved_bytes(self) -> int:
        return 8 * len(self.messages)


class Copied(Way):
    """A list cut in place, which gives and takes copies of the messages, so that whoever holds one cannot change the other."""

    def detach(self, start: int) -> None:
        self.held[start] = [message.copy() for message in self.messages[start : start + self.size]]
        del self.messages[start : start + self.size]

    def recall(self, start: int) -> None:
        self.messages[start:start] = [message.copy() for message in self.held.pop(start)]

    def moved_bytes(self) -> int:
        return super().moved_bytes() + self.size * sys.getsizeof(self.messages[0])


class Reread(Way):
    """A list cut in place; the page is in a file, written before, and is read and decoded to come back."""

    def prepare(self) -> None:
        for start in self.starts:
            self._file(start).write_bytes(codec.encode(self.messages[start : start + self.size]))

    def detach(self, start: int) -> None:
        del self.messages[start : start + self.size]

    def recall(self, start: int) -> None:
        self.messages[start:start] = codec.decode(self._file(start).read_bytes())

    def limit(self) -> Callable[[], object]:
        return self._file(self.starts[0]).read_bytes

    def _file(self, start: int) -> Path:
        return self.scratch / f"{start}.json"


class Views(Way):
    """memci's chapters: a page is a view on a run of a linked list, which is cut and joined at the page's two ends."""

    def prepare(self) -> None:
        self._chapter = Chapter()
        starts, self._pages = set(self.starts), dict[int, tuple[Page, Page | None]]()
        for start in range(0, len(self.messages), self.size):
            page = Page(index=f"usr-{start}", turn=1)
            for message in self.messages[start : start + self.size]:
                page.add(MessageNode(message=_HELD, tokens=100, seq=message["id"]))
            self._chapter.add_page(page)
            if start in starts:
                self._pages[start] = page, None
            elif start - self.size in starts:
                self._pages[start - self.size] = self._pages[start - self.size][0], page
        self.messages = []

    def detach(self, start: int) -> None:
        self._pages[start][0].detach()

    def recall(self, start: int) -> None:
        page, following = self._pages[start]
        self._chapter.add_page(page, before=following)

    def limit(self) -> Callable[[], object]:
        run = next(page for page, _ in self._pages.values())
        before, after = run.head, run.tail
        assert before is not None
        assert after is not None
        outer = before.previous, after.next

        def swap() -> None:
            before.previous, after.next = outer

        return swap

    def content(self) -> list[dict[str, Any]]:
        self._chapter._check()  # noqa: SLF001 (its own invariants)
        return [{"role": "user", "content": _TEXT, "id": node.seq} for node in self._chapter.message_list]


_HELD = Message(raw=b'{"role":"user","content":""}', role="user")
WAYS: dict[str, type[Way]] = {
    "views (memci)": Views,
    "references, cut in place": Way,
    "references, list rebuilt": Rebuilt,
    "dicts copied": Copied,
    "read from its file": Reread,
}


@attrs.frozen(kw_only=True)
class Cost:
    """What one page costs, detached and recalled.

    Attributes:
        way: Name of the way.
        history: Messages in all.
        page: Messages of the page.
        detach_ns: CPU time of taking it out, the median of the rounds.
        recall_ns: The same of bringing it back.
        limit_ns: The same of what the machine has to do at least for one of the two.
        blocks: Blocks of memory that both leave allocated.
        peak_bytes: Most bytes that either had allocated at once.
    """

    way: str
    history: int
    page: int
    detach_ns: float
    recall_ns: float
    limit_ns: float
    blocks: int
    peak_bytes: int


def measure(histories: Collection[int], pages: Collection[int], advance: Callable[[int, int], None]) -> list[Cost]:
    """Measure all ways at each length of the history and size of a page that it holds twice; their rounds alternate."""
    places = [(history, page) for history in sorted(set(histories)) for page in sorted(set(pages)) if 2 * page <= history]
    costs: list[Cost] = []
    for done, (history, page) in enumerate(places):
        advance(done, len(places))
        costs += _compare(history, page)
    return costs


def make(kind: type[Way], history: int, size: int, scratch: Path) -> Way:
    """Return a history in one of the ways, with as many chosen pages as there is room for between others, at most 32."""
    room = history // size // 2
    chosen = min(_SAMPLES, room)
    starts = [size * (1 + 2 * (number * room // chosen)) for number in range(chosen)]
    return kind([{"role": "user", "content": _TEXT, "id": number} for number in range(history)], size, starts, scratch)


def _compare(history: int, size: int) -> Iterator[Cost]:
    with ExitStack() as stack:
        ways: dict[str, list[Way]] = {}
        for name, kind in WAYS.items():
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            ways[name] = [make(kind, history, size, scratch)]
            while sum(len(way.starts) for way in ways[name]) < _SAMPLES:  # a short history has few pages: take several of it
                ways[name].append(make(kind, history, size, scratch))
        for name, spent in _rounds(ways).items():
            detach, recall, limit = (statistics.median(column) for column in zip(*spent, strict=True))
            blocks, peak = zip(*_allocated(ways[name][0]), strict=True)
            yield Cost(
                way=name,
                history=history,
                page=size,
                detach_ns=detach,
                recall_ns=recall,
                limit_ns=limit,
                blocks=sum(blocks),
                peak_bytes=max(peak),
            )


def _rounds(ways: dict[str, list[Way]]) -> dict[str, list[tuple[float, float, float]]]:
    """Return the nanoseconds of a detachment, a recall and the limit, of each way in each round."""
    limits = {name: several[0].limit() for name, several in ways.items()}
    spent: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    collecting = gc.isenabled()
    gc.disable()
    try:
        begin = thread_time_ns()
        for number in range(_ROUNDS[1] + 1):
            for name, several in ways.items():
                times = _round(several, limits[name])
                if number:  # the first one warms up
                    spent[name].append(times)
            if number >= _ROUNDS[0] and thread_time_ns() - begin > _ROUNDS_NS * len(ways):
                break
    finally:
        if collecting:
            gc.enable()
    return spent


def _round(several: Sequence[Way], limit: Callable[[], object]) -> tuple[float, float, float]:
    taken = [(way.detach, start) for way in several for start in reversed(way.starts)]
    brought = [(way.recall, start) for way in several for start in way.starts]
    repeated = range(len(taken))
    begin = thread_time_ns()
    for detach, start in taken:
        detach(start)
    detached = thread_time_ns()
    for recall, start in brought:
        recall(start)
    recalled = thread_time_ns()
    for _ in repeated:
        limit()
    ended = thread_time_ns()
    return (detached - begin) / len(taken), (recalled - detached) / len(taken), (ended - recalled) / len(taken)


def _allocated(way: Way) -> Iterator[tuple[int, int]]:
    """Yield what a detachment and then a recall leave allocated, in blocks, and the bytes of its peak."""
    start = way.starts[len(way.starts) // 2]
    for action in (way.detach, way.recall):
        tracemalloc.start()
        action(start)
        _, peak = tracemalloc.get_traced_memory()
        yield len(tracemalloc.take_snapshot().traces), peak
        tracemalloc.stop()
