"""What an operation of the tree costs grows with the depth and with what is shown, not with what there is: by counts."""

from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from benchmarks.trace import profiled
from memci.archive.stores.memory import MemoryStore
from memci.engine.history.tree_events import DirectoryMade, NoteWritten
from tests.engine.counting_store import CountingStore
from tests.engine.sessions import open_session, talk
from tests.engine.wire import user

if TYPE_CHECKING:
    from memci.engine.history.events import Event
    from memci.engine.session import Session

WIDTH = 10
SLACK = 1.05  # longer numbers have more digits, and some caches are warm


class Tree:
    """A session with a tree whose pages lie at depth five, ten in each directory; at each depth ten directories lie side by side.

    Of those either each is full, which makes ten thousand pages, or the first one, which makes a hundred.

    Attributes:
        way: A directory at each depth, the outermost first.
        pages: Notes and pages of turns in the innermost one.
    """

    def __init__(self, pages: int) -> None:
        self.store = CountingStore(MemoryStore())
        self.session: Session = open_session(self.store, snapshot_every=1_000_000, contents={"max_tokens": 2_000})
        talk(self.session, 12)
        self.session.fold("all")
        self.numbers = iter(range(self.session._core.state.next_number["usr"], 1_000_000))
        self.events: list[Event] = []
        self.notes = 0  # at depth five, but for those of ``pages``
        self.way: list[str] = []
        self.fill("usr-0", 1, each=pages > WIDTH * WIDTH)
        with self.session._open() as core:
            core.commit(self.events)
        self.pages = [self.session.create_detail_page(f"Note {number}", "", "word " * 9, self.way[-1]) for number in range(3)]
        for turn in (2, 3, 4):
            self.session.move_page(turn, self.way[-1])
            self.pages.append(f"usr-{turn}")
        self.session.fold()
        self.session.append(user("and now?"))
        self.session.window()
        self.session.search("word")

    def fill(self, parent: str, depth: int, *, each: bool) -> None:
        """Make ten directories in each other one at this depth, each of them full, or the first one."""
        for place in range(WIDTH if depth < 4 else 1):
            index = f"usr-{next(self.numbers)}"
            self.events.append(DirectoryMade(page=index, name=f"Directory {index}", parent=parent, turn=12, by="application"))
            if depth == len(self.way) + 1:
                self.way.append(index)
            if depth == 4:
                self.events += [self.note(index) for _ in range(WIDTH)]
            elif each or not place or depth == 3:
                self.fill(index, depth + 1, each=each)

    def note(self, parent: str) -> NoteWritten:
        self.notes += 1
        return NoteWritten(
            page=f"note-{self.notes}",
            name=f"Note {self.notes}",
            message=user("something"),
            tokens=5,
            sha256="0" * 64,
            parent=parent,
            turn=12,
            at="2026-01-01T00:00:00.000000Z",
            by="application",
        )


def counted(tree: Tree, action: Callable[[Tree], object]) -> tuple[int, int]:
    """Return how many calls of functions, compiled ones too, an action makes, and how many bytes of events it writes."""
    calls, before = 0, tree.session.seq

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    profiled(lambda: action(tree), note)
    records = tree.session._core.store.journal.read(before)
    return calls, sum(len(record.body) for record in records)


OPERATIONS: dict[str, Callable[[Tree], object]] = {
    "write a note": lambda tree: tree.session.create_detail_page("New", "", "word", tree.way[-1]),
    "make a directory": lambda tree: tree.session.create_contents_page("New", "", tree.way[-1], [tree.pages[0]]),
    "undo it": lambda tree: tree.session.undo_edit(),
    "move a note": lambda tree: tree.session.move_page(tree.pages[0], tree.way[1]),
    "move it back": lambda tree: tree.session.move_page(tree.pages[0], tree.way[-1]),
    "move a page": lambda tree: tree.session.move_page(tree.pages[-1], tree.way[1]),
    "move a directory": lambda tree: tree.session.move_page(tree.way[3], tree.way[0]),
    "rename": lambda tree: tree.session.update_page(tree.way[2], name="Renamed"),
    "what is asked of a page": lambda tree: (
        tree.session.get_page(tree.pages[0]),
        tree.session.get_parent(tree.pages[0]),
        tree.session.get_ancestors(tree.pages[0]),
    ),
    "what a directory lists": lambda tree: tree.session.get_children(tree.way[-1]),
    "open a directory": lambda tree: tree.session.expand_details(tree.way[-1]),
    "open a page": lambda tree: tree.session.expand_details(tree.pages[-2]),
    "a window with both": lambda tree: tree.session.window(),
    "close the directory": lambda tree: tree.session.hide_details(tree.way[-1]),
    "remove a page": lambda tree: tree.session.remove_page(tree.pages[-1]),
    "remove a directory": lambda tree: tree.session.remove_page(tree.way[-1]),
    "restore it": lambda tree: tree.session.restore(tree.way[-1]),
    "open a large directory": lambda tree: tree.session.expand_details(tree.way[0]),
    "close it": lambda tree: tree.session.hide_details(tree.way[0]),
    "remove it": lambda tree: tree.session.remove_page(tree.way[0]),
    "take that back": lambda tree: tree.session.undo_edit(),
    "say something": lambda tree: tree.session.append(user("and then?")),
    "a window": lambda tree: tree.session.window(),
    "fold": lambda tree: tree.session.fold("all"),
    "explain": lambda tree: tree.session.explain(tree.pages[0]),
}


def test_costs_do_not_grow_with_the_tree() -> None:
    """An operation makes as many calls and writes as many bytes where a hundred times as many pages are in the tree."""
    small, large = Tree(100), Tree(10_000)
    assert (100, 10_000) == (small.notes, large.notes)
    grown = {}
    for name, action in OPERATIONS.items():
        (calls, written), (more_calls, more_written) = counted(small, action), counted(large, action)
        if more_calls > SLACK * calls + 10 or more_written > SLACK * written + 20:
            grown[name] = f"{calls} calls, {written} bytes: {more_calls} calls, {more_written} bytes"
    assert {} == grown
