"""The way of each command through the code: ``python -m benchmarks.trace`` prints how many files it enters and changes.

A session on a file store is brought to its fourth turn; then each command runs once under ``sys.setprofile``. A change of file
is a call in another file of memci than the call before it.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType

import attrs

import memci

_HOME = str(Path(memci.__file__).parent)
_WORDS = "the invoice of March stands in billing/export as CSV with 412 rows and a limit of 10k rows a day "


@attrs.frozen
class Way:
    """What one command went through.

    Attributes:
        files: The files of memci that it entered, in the order of its first calls there.
        changes: How often a call was in another file of memci than the call before it.
        calls: Its calls of functions of memci.
    """

    files: tuple[str, ...]
    changes: int
    calls: int


def profiled(action: Callable[[], object], note: Callable[[FrameType, str, object], None]) -> None:
    """Run *action*, with *note* told of each call and return meanwhile, as ``sys.setprofile`` tells."""
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)


def traced(command: Callable[[], object]) -> Way:
    """Run a command, and return the way that it took."""
    called: list[str] = []

    def note(frame: FrameType, kind: str, _argument: object) -> None:
        if kind == "call" and frame.f_code.co_filename.startswith(_HOME):
            called.append(frame.f_code.co_filename)

    profiled(command, note)
    files = tuple(name.removeprefix(_HOME + "/") for name in dict.fromkeys(called))
    changes = sum(one != other for one, other in pairwise(called))
    return Way(files, changes, len(called))


def ways(directory: str) -> Iterator[tuple[str, Way]]:
    """Yield the commands by name, each with its way, of a session in a directory."""
    config = {"format": "openai", "budget": {"window": 2_400, "reserve": 400}}
    with memci.Engine(f"file:{directory}", config) as engine, engine.session("traced") as session:
        session.append({"role": "system", "content": "You are a helpful assistant."})
        for turn in range(1, 4):
            session.append({"role": "user", "content": f"{turn}: {_WORDS}?"})
            session.window()
            session.append({"role": "assistant", "content": f"{turn}: {_WORDS}."})
        session.append({"role": "user", "content": f"4: {_WORDS}?"})
        yield "window", traced(session.window)
        yield "append, assistant", traced(lambda: session.append({"role": "assistant", "content": f"4: {_WORDS}."}))
        yield "append, user", traced(lambda: session.append({"role": "user", "content": f"5: {_WORDS}?"}))
        yield "window, again", traced(session.window)
        yield "window, nothing to do", traced(session.window)
        while not session.contents.entries:
            session.append({"role": "assistant", "content": 3 * _WORDS})
            way = traced(lambda: session.append({"role": "user", "content": 3 * _WORDS}))
        yield "append that folds", way
        yield "window after a fold", traced(session.window)
        yield "recall", traced(lambda: session.recall("usr-1"))
        yield "search", traced(lambda: session.search("invoices in March as CSV"))


def main() -> None:
    """Print the table."""
    rows = [f"{'command':24} {'files':>6} {'changes':>8} {'calls':>8}"]
    with tempfile.TemporaryDirectory() as directory:
        for name, way in ways(directory):
            rows.append(f"{name:24} {len(way.files):>6} {way.changes:>8} {way.calls:>8}")
    sys.stdout.write("\n".join([*rows, ""]))


if __name__ == "__main__":
    main()
