"""A bit flipped in, and a cut at, every byte of every file of a store: ``python -m tests.torture.damage``.

After each case a process that only reads, and one that writes, look at the session and at another one. What they may find is the
conversation as it was said, whole; or a typed error that names the session; or, where the journal itself was cut, a
conversation that ends earlier. Never a message that nobody said, and never anything else of the other session.
A session whose id is too long for a file name is not listed where the note of its id is damaged; whoever knows the id opens it.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from memci.errors import CorruptError, MemciError, StoreError
from tests.torture.seeded_bugs import given_to, maker
from tests.torture.store_workload import StoreMaker, file_store
from tests.torture.talker import SESSION, opened, say

OTHER = "a long name of another session " * 8
MESSAGES, OTHER_MESSAGES = 26, 3
REPLY = "said after the damage"


class Case(NamedTuple):
    """One damage.

    Attributes:
        path: Of the file, below the store.
        place: Of the byte.
        bit: The one that is flipped; -1 to cut the file before the byte.
    """

    path: str
    place: int
    bit: int


def build(make: StoreMaker, root: Path) -> dict[str, list[str]]:
    """Talk in both sessions; return what was said in each."""
    said = {}
    with opened(make, str(root)) as engine:
        for session_id, count in ((SESSION, MESSAGES), (OTHER, OTHER_MESSAGES)):
            session = engine.session(session_id)
            for number in range(count):
                say(session, number)
            said[session_id] = [message["content"] for message in session.messages()]
            assert session.verify().ok
    return said


def all_cases(files: dict[str, bytes]) -> Iterator[Case]:
    """Yield every cut and every flip of every file."""
    for path, data in files.items():
        for place in range(len(data)):
            yield Case(path, place, -1)
            for bit in range(8):
                yield Case(path, place, bit)


def sample(files: dict[str, bytes], count: int, chance: random.Random) -> Iterator[Case]:
    """Yield so many cases, of each file alike, its first and last bytes more often."""
    paths = [path for path, data in files.items() if data]
    for number in range(count):
        path = paths[number % len(paths)]
        size = len(files[path])
        edge = chance.random()
        place = chance.randrange(min(size, 300)) if edge < 0.2 else chance.randrange(size)
        place = size - 1 - place if edge < 0.1 else place
        yield Case(path, place, chance.choice([-1, -1, *range(8)]))


class Damage:
    """Damages a store and looks at it, case after case.

    Attributes:
        outcomes: How often each outcome came, by kind of file.
        losses: A sentence for each one that may not be.
    """

    def __init__(self, make: StoreMaker, root: Path) -> None:
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.losses: list[str] = []
        self._make = make
        self._root = root
        self._said = build(make, root)
        self.files = {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}

    def try_case(self, case: Case) -> None:
        """Damage a file, look, and mend it."""
        owner = SESSION if f"/{SESSION}/" in case.path else OTHER
        self._lay(case)
        outcomes = [self._look(case, session, read_only=True) for session in self._said]
        outcomes += [self._look(case, session, read_only=False) for session in self._said]
        for session, outcome in zip((*self._said, *self._said), outcomes, strict=True):
            if session == owner:
                self.outcomes[_kind(case), outcome] += 1
            if outcome == "different" or (session != owner and outcome != "whole"):
                self.losses.append(f"{case}: {session[:12]} is {outcome}")
            elif outcome == "shorter" and (case.bit >= 0 or not case.path.endswith("journal.jsonl")):
                self.losses.append(f"{case}: {session[:12]} ends earlier")

    def _lay(self, case: Case) -> None:
        shutil.rmtree(self._root)
        for path, data in self.files.items():
            place = self._root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            damaged = data
            if path == case.path and case.bit < 0:
                damaged = data[: case.place]
            elif path == case.path:
                damaged = data[: case.place] + bytes([data[case.place] ^ 1 << case.bit]) + data[case.place + 1 :]
            place.write_bytes(damaged)

    def _look(self, case: Case, session_id: str, *, read_only: bool) -> str:
        """Return ``whole``, ``whole, not listed``, ``shorter``, ``different``, or the name of the error."""
        said = self._said[session_id]
        try:
            with opened(self._make, str(self._root), read_only=read_only) as engine:
                is_listed = session_id in set(engine.sessions())
                session = engine.session(session_id)
                found = [message["content"] for message in session.messages()]
                if found == said and not read_only:
                    session.append({"role": "user", "content": REPLY})
                    for facts in session.pages("archived"):
                        session.recall(facts.index)
                    if [*said, REPLY] != [message["content"] for message in session.messages()]:
                        return "different"
                    session.verify()
        except StoreError as error:
            if isinstance(error, CorruptError) and error.session != session_id:
                self.losses.append(f"{case}: the error names {error.session[:12]!r}: {error}")
            return type(error).__name__
        except (MemciError, OSError, ValueError, TypeError, AttributeError, LookupError) as error:
            self.losses.append(f"{case}: {type(error).__name__}: {error}")
            return type(error).__name__
        if found == said:
            return "whole" if is_listed else "whole, not listed"
        return "shorter" if found == said[: len(found)] else "different"


def _kind(case: Case) -> str:
    parts = case.path.split("/")
    return f"{parts[2] if len(parts) > 3 else parts[-1]} {'cut' if case.bit < 0 else 'flipped'}"


def run(make: StoreMaker, directory: Path, cases: int, seed: int, *, stop_at_loss: bool = False) -> Damage:
    """Try so many cases, all for 0, the same for the same seed."""
    damage = Damage(make, directory / "store")
    chance = random.Random(seed)  # noqa: S311 (cases to repeat)
    for case in sample(damage.files, cases, chance) if cases else all_cases(damage.files):
        damage.try_case(case)
        if len(damage.losses) >= (1 if stop_at_loss else 100):
            break
    return damage


def main() -> int:
    """Run, print the figures, and return the exit code."""
    arguments = argparse.ArgumentParser(description="Damage every file of a store and see what is served.")
    arguments.add_argument("--cases", type=int, default=20_000, help="0 for every bit and every cut")
    arguments.add_argument("--seed", type=int, default=1)
    given = given_to(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        damage = run(maker(given.bug, file_store), Path(directory), given.cases, given.seed, stop_at_loss=bool(given.bug))
    looks = damage.outcomes.total()
    sys.stdout.write(
        f"damage: {looks // 2} cases, {looks} looks, seed {given.seed}: {len(damage.losses)} losses, "
        f"{time.monotonic() - began:.0f} s\n"
    )
    for (kind, outcome), count in sorted(damage.outcomes.items()):
        sys.stdout.write(f"  {kind}: {outcome} {count}\n")
    sys.stdout.writelines(f"  {loss}\n" for loss in damage.losses[:20])
    return int(bool(damage.losses))


if __name__ == "__main__":
    sys.exit(main())
