"""Writers that are killed at any moment: ``python -m tests.torture.kills``.

A process talks through a session, with folds, recalls and searches, and tells each acknowledged message through a pipe. It is
killed with SIGKILL after a time that is drawn anew each time; then everything is read, and the next one goes on.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from memci.errors import MemciError
from tests.torture.forked import Forked
from tests.torture.seeded_bugs import given_to, maker
from tests.torture.store_workload import StoreMaker, file_store
from tests.torture.talker import SESSION, opened, problem_with, read, talk

SHORT = 20
"""Kills in one session: reading everything after each kill takes the longer the more there is."""

LONGEST_S = 0.1


def write(make: StoreMaker, root: str, first: int, acknowledge: Callable[[int], None]) -> None:
    """Talk for ever."""
    talk(opened(make, root).session(SESSION), first, acknowledge)


def run(make: StoreMaker, directory: Path, kills: int, seed: int) -> tuple[int, list[str]]:
    """Kill so many writers; return how many messages were acknowledged, and what was broken."""
    chance = random.Random(seed)  # noqa: S311 (when to kill)
    acknowledged, losses, number = 0, [], 0
    for kill in range(kills):
        root = directory / str(kill // SHORT)
        number = 0 if kill % SHORT == 0 else number
        writer = Forked(partial(write, make, str(root), number))
        if chance.random() < 0.9:  # else it is killed while it opens
            writer.told_first()
        writer.told_within(chance.random() * LONGEST_S)
        told, status = writer.kill()
        acknowledged += len(told)
        last = told[-1] if told else number - 1
        try:
            said = read(make, str(root))
            problem = problem_with(said, last)
            number = len(said)
            if (kill + 1) % SHORT == 0 and not problem:
                with opened(make, str(root)) as engine:
                    problem = "; ".join(engine.session(SESSION).verify().problems)
                shutil.rmtree(root)
        except MemciError as error:
            problem = f"{type(error).__name__}: {error}"
        if status != -9:
            problem = f"{problem} the writer ended by itself, with {status}"
        if problem:
            losses.append(f"kill {kill}: {problem}")
            return acknowledged, losses
    return acknowledged, losses


def main() -> int:
    """Run, print the figures, and return the exit code."""
    arguments = argparse.ArgumentParser(description="Kill writers at any moment and look for what they acknowledged.")
    arguments.add_argument("--kills", type=int, default=3_000)
    arguments.add_argument("--seed", type=int, default=1)
    given = given_to(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        acknowledged, losses = run(maker(given.bug, file_store), Path(directory), given.kills, given.seed)
    sys.stdout.write(
        f"kills: {given.kills} kills, {acknowledged} messages acknowledged, seed {given.seed}: "
        f"{len(losses)} losses, {time.monotonic() - began:.0f} s\n"
    )
    sys.stdout.writelines(f"  {loss}\n" for loss in losses)
    return int(bool(losses))


if __name__ == "__main__":
    sys.exit(main())
