"""One session for a very long time: ``python -m tests.torture.soak``.

Turns go through one open session, with windows, recalls and searches between them. The memory of the process must not grow with
the history, and at the end everything must be there.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

import attrs

from memci.archive.stores.file.store import FileStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from tests.torture.seeded_bugs import given_to, maker
from tests.torture.store_workload import StoreMaker, file_store
from tests.torture.talker import SESSION

GROWTH = 1.10
"""What the peak may be at the end, of what it was after two fifths of the turns, when all caches of words are full."""

CONFIG = {"counter": "approximate", "budget": {"window": 8_000, "reserve": 0}}
WORDS = ("invoice", "delivery", "refund", "address", "battery", "colour", "warranty", "parcel", "receipt", "voucher", "account")


@attrs.frozen
class Soaked:
    """What a run saw.

    Attributes:
        early_bytes: Peak of the resident memory after two fifths of the turns.
        late_bytes: Peak of the resident memory after all of them.
        seconds: For all turns.
        messages: How many were found at the end, in order.
        problems: What was not as it should be.
    """

    early_bytes: int
    late_bytes: int
    seconds: float
    messages: int
    problems: tuple[str, ...]


def text_of(number: int) -> str:
    """Return the text of a message, of some dozens of words."""
    words = (f"{WORDS[(number * 7 + place * place) % len(WORDS)]}{(number + place) % 97}" for place in range(number % 50 + 10))
    return f"{number}: " + " ".join(words)


def turn(session: Session, number: int) -> None:
    """Say a question and an answer; now and then ask for the window, an old page, and what was said of a word."""
    session.append({"role": "user", "content": text_of(2 * number)})
    session.append({"role": "assistant", "content": text_of(2 * number + 1)})
    if number % 10 == 0:
        session.window()
    if number % 100 == 50:
        for entry in session.contents.entries[-1:]:
            session.recall(entry.index)
    if number % 1_000 == 500:
        session.search(f"{WORDS[number % len(WORDS)]} {number % 97}", limit=3)


def run(make: StoreMaker, directory: Path, turns: int, *, verify: bool = True) -> Soaked:
    """Take so many turns; every store is as good, so nothing is synced."""
    began = time.monotonic()
    early = late = 0
    with Engine(make(str(directory), durability="flush"), CONFIG) as engine:
        session = engine.session(SESSION)
        for number in range(turns):
            turn(session, number)
            if number + 1 == 2 * turns // 5:
                early = _peak_bytes()
        late, seconds = _peak_bytes(), time.monotonic() - began
        problems = list(session.verify().problems) if verify else []
    with Engine(FileStore(directory), CONFIG, read_only=True) as engine:
        found = 0
        for message in engine.session(SESSION).messages():
            if message["content"] != text_of(found):
                problems.append(f"message {found} is another one")
                break
            found += 1
    if found != 2 * turns:
        problems.append(f"{found} messages are there, and not {2 * turns}")
    if late > early * GROWTH:
        problems.append(f"the memory grew by {late / early - 1:.0%}")
    return Soaked(early, late, seconds, found, tuple(problems))


def _peak_bytes() -> int:
    """Return the most memory that was in use; not as getrusage tells it, which begins with what the parent used."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def main() -> int:
    """Run, print the figures, and return the exit code."""
    arguments = argparse.ArgumentParser(description="Take very many turns through one session.")
    arguments.add_argument("--turns", type=int, default=50_000)
    given = given_to(arguments)
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        soaked = run(maker(given.bug, file_store), Path(directory), given.turns, verify=not given.bug)
        size = sum(path.stat().st_size for path in Path(directory).rglob("*") if path.is_file())
        shutil.rmtree(directory, ignore_errors=True)
        Path(directory).mkdir()
    sys.stdout.write(
        f"soak: {given.turns} turns, {soaked.messages} messages read back in order, {size / 1e6:.0f} MB on disk, peak memory "
        f"{soaked.early_bytes / 1e6:.1f} MB after two fifths and {soaked.late_bytes / 1e6:.1f} MB at the end, "
        f"{soaked.seconds / given.turns * 1e3:.2f} ms a turn: {len(soaked.problems)} problems\n"
    )
    sys.stdout.writelines(f"  {problem}\n" for problem in soaked.problems[:20])
    return int(bool(soaked.problems))


if __name__ == "__main__":
    sys.exit(main())
