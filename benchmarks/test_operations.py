"""What each operation costs, at each length of the history."""

import itertools
from time import process_time

import pytest

from benchmarks import history
from benchmarks.bench import Bench
from benchmarks.conftest import Open
from benchmarks.opened import Opened
from memci.archive.contents.contents_page import Directory

pytestmark = pytest.mark.benchmark(timer=process_time, disable_gc=True)

TURN_ROUND = 50
FOLDED_PAGES = 20
LISTED_PAGES = 40


def test_turn(bench: Bench, turns: int, open_copy: Open) -> None:
    """A turn: append the user's message, ask for a window, append the reply; folds and snapshots shared out over 50 turns."""
    with open_copy(turns) as opened:
        bench.run(
            "turn, folds included",
            turns,
            opened.take,
            rounds=8,
            prepare=lambda: (opened.next_messages(TURN_ROUND),),
            per_round=TURN_ROUND,
            opened=opened,
        )


def test_append(bench: Bench, turns: int, open_copy: Open) -> None:
    """Appending one message; the median is that of an append without a fold, as all but one in fifty are."""
    with open_copy(turns) as opened:
        waiting = iter(itertools.chain.from_iterable(iter(lambda: opened.next_messages(1), [])))
        bench.run("append", turns, opened.session.append, rounds=400, prepare=lambda: (next(waiting),), opened=opened)


def test_window(bench: Bench, turns: int, open_copy: Open) -> None:
    """Rendering the window."""
    with open_copy(turns) as opened:
        bench.run("window", turns, opened.session.window, rounds=200, opened=opened)


def test_fold(bench: Bench, turns: int, open_copy: Open) -> None:
    """Folding 20 pages: summaries, page files, one event, and the index of pages brought up to date."""
    with open_copy(turns) as opened:
        opened.session.fold("all")

        def prepare() -> tuple[str]:
            opened.session.extend(opened.next_messages(FOLDED_PAGES))
            return ("all",)

        bench.run(f"fold of {FOLDED_PAGES} pages", turns, opened.session.fold, rounds=10, prepare=prepare, opened=opened)


def test_page(bench: Bench, turns: int, open_copy: Open) -> None:
    """Reading an archived page from its page file, checked and counted."""
    with open_copy(turns) as opened:
        indexes = itertools.cycle(archived(opened))
        bench.run("read a page file", turns, opened.session.page, rounds=200, prepare=lambda: (next(indexes),), opened=opened)


def test_recall(bench: Bench, turns: int, open_copy: Open) -> None:
    """Recalling an archived page: read, attached, noted in the journal."""
    with open_copy(turns) as opened:
        indexes = itertools.cycle(archived(opened))

        index = next(indexes)

        def prepare() -> tuple[str]:
            nonlocal index
            opened.session.fade(index)
            index = next(indexes)
            return (index,)

        bench.run("recall", turns, opened.session.recall, rounds=50, prepare=prepare, opened=opened)


def test_reopen(bench: Bench, turns: int, open_copy: Open) -> None:
    """Opening and closing the stored session: the newest snapshot and the events behind it."""
    with open_copy(turns) as opened:
        opened.session.close()
        bench.run("reopen", turns, lambda: opened.open().close(), rounds=50, opened=opened)


def test_search(bench: Bench, turns: int, open_copy: Open) -> None:
    """Searching all pages for a question of two common words and a rare name."""
    with open_copy(turns) as opened:
        questions = itertools.cycle(history.queries(100))
        bench.run("search", turns, opened.session.search, rounds=40, prepare=lambda: (next(questions),), opened=opened)


def archived(opened: Opened) -> list[str]:
    """Return the newest pages that the contents page lists, in entries of their own or in directories."""
    numbers: list[int] = []
    for item in opened.session.contents.entries:
        covers = item.covers if isinstance(item, Directory) else [(page_number(item.index),) * 2]
        numbers += [number for first, last in covers for number in range(first, last + 1)]
    return [f"usr-{number}" for number in sorted(numbers)[-LISTED_PAGES:]]


def page_number(index: str) -> int:
    """Return the number in a page's index."""
    return int(index.rpartition("-")[2])
