"""System calls that fail or never return: ``python -m tests.torture.system_calls``. Needs Debian's strace.

A process talks through a session while strace looks on; at the n-th call of a kind, for every n, it kills the process, or
lets the call fail with EIO or ENOSPC, once or from then on. Whatever was acknowledged has to be there afterwards. Where a call
failed once, the process itself must hear of it by a typed error or not at all, open the session again, and carry the
conversation to its end.
"""

import argparse
import logging
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import MemciError, StoreError, UnavailableError
from tests.torture.forked import Forked
from tests.torture.programs import has_program
from tests.torture.seeded_bugs import maker
from tests.torture.store_workload import StoreMaker, file_store
from tests.torture.talker import SESSION, opened, problem_with, read, say, talk

CALLS = ("openat", "write", "pwrite64", "fdatasync", "fsync", "rename", "mkdir", "unlink", "ftruncate", "flock")
FAULTS = ("signal=SIGKILL", "error=EIO", "error=ENOSPC")
BEFORE, MESSAGES = 4, 24
ATTEMPTS = 4
NO_STRACE = 3
"""Exit code where there is no strace."""


class Injection(NamedTuple):
    """What strace does to a process.

    Attributes:
        call: Name of the system call.
        number: Which one of them, from 1.
        fault: As strace names it.
        lasts: Whether all that follow suffer the same.
    """

    call: str
    number: int
    fault: str
    lasts: bool

    def argument(self) -> str:
        """Return what strace takes."""
        return f"inject={self.call}:{self.fault}:when={self.number}{'+' if self.lasts else ''}"


def converse(make: StoreMaker, root: str, ready: int, acknowledge: Callable[[int], None]) -> None:
    """Wait for strace, then talk to the end, opening the session again after each error; give up after some in a row."""
    engine = opened(make, root)
    engine._worker.close()  # strace looks on at this thread alone: what is done ahead in another would make its calls fewer
    os.read(ready, 1)
    number, attempts = BEFORE, 0
    session: Session | None = None
    while number < MESSAGES and attempts < ATTEMPTS:
        try:
            session = session or engine.session(SESSION)
            _talk(session, number)
            acknowledge(number)
            number, attempts = number + 1, 0
        except UnavailableError:
            attempts += 1
            _close(session)
            session = None
    _close(engine)


def _talk(session: Session, number: int) -> None:
    """Say a message, and now and then do what reads the index and old pages."""
    say(session, number)
    if number % 5 == 0:
        for facts in session.pages("archived")[:1]:
            session.recall(facts.index)
        session.search("w1x1")


def _close(opened: Session | Engine | None) -> None:
    try:
        if opened is not None:
            opened.close()
    except StoreError:
        return


class Strace:
    """Runs the conversation under strace.

    Args:
        make: Makes the store.
        directory: For the store, which begins each time as a copy of one with a few messages.
    """

    def __init__(self, make: StoreMaker, directory: Path) -> None:
        self._make = make
        self._origin = directory / "origin"
        self._root = directory / "store"
        self._log = directory / "strace"
        with opened(make, str(self._origin)) as engine:
            talk(engine.session(SESSION), 0, lambda _: None, BEFORE)
        # Loads every module that a run needs: forked processes would open its file until this one has loaded it.
        self._lay()
        with opened(make, str(self._root)) as engine:
            for number in range(BEFORE, MESSAGES):
                _talk(engine.session(SESSION), number)
        if problem := self._look(MESSAGES - 1):
            message = f"without any fault: {problem}"
            raise RuntimeError(message)

    def run(self, *options: str) -> tuple[list[int], int]:
        """Return what the process told, and its exit status."""
        self._lay()
        waiting, ready = os.pipe()
        process = Forked(partial(converse, self._make, str(self._root), waiting))
        command = ["strace", "-o", str(self._log), *options, "-p", str(process.pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as strace:  # noqa: S603 (fixed words)
            assert strace.stderr is not None
            strace.stderr.readline()  # it is attached
            os.write(ready, b"x")
            told = process.wait()
            strace.stderr.read()
        os.close(waiting)
        os.close(ready)
        return told

    def counts(self) -> Counter[str]:
        """Return how often each call is made where nothing fails."""
        told, status = self.run("-e", "trace=" + ",".join(CALLS))
        if (told, status) != (list(range(BEFORE, MESSAGES)), 0):
            message = f"without any fault the process told {told} and ended with {status}"
            raise RuntimeError(message)
        return Counter(re.findall(r"^(\w+)\(", self._log.read_text(errors="replace"), re.MULTILINE))

    def try_injection(self, injection: Injection) -> str:
        """Return what is wrong afterwards; nothing where all is well."""
        told, status = self.run("-e", f"trace={injection.call}", "-e", injection.argument())
        is_killed = injection.fault == "signal=SIGKILL"
        if status != (-9 if is_killed else 0):
            return f"the process ended with {status}"
        if not is_killed and not injection.lasts and told != list(range(BEFORE, MESSAGES)):
            return f"it did not go on: {told[-3:]}"
        return self._look(told[-1] if told else BEFORE - 1)

    def _lay(self) -> None:
        """Copy the store as it begins."""
        shutil.rmtree(self._root, ignore_errors=True)
        shutil.copytree(self._origin, self._root)

    def _look(self, last: int) -> str:
        """Return what is wrong with a store in which this was the last message that was acknowledged."""
        try:
            problem = problem_with(read(self._make, str(self._root)), last, beyond=1)
            with opened(self._make, str(self._root)) as engine:
                session = engine.session(SESSION)
                problems = [problem] if problem else []
                say(session, sum(1 for _ in session.messages()))
                session.fold("all")
                problems += session.verify().problems
        except MemciError as error:
            return f"{type(error).__name__}: {error}"
        return "; ".join(problems)


def injections(counts: Counter[str], every: int) -> list[Injection]:
    """Return every fault at every call, or at each *every*-th; not more than one of each kind that goes on for ever in ten."""
    found = []
    for call in CALLS:
        for number in range(1, counts[call] + 1, every):
            found += [Injection(call, number, fault, lasts=False) for fault in FAULTS]
            if number % 10 == 1:
                found += [Injection(call, number, fault, lasts=True) for fault in FAULTS[1:]]
    return found


def run(make: StoreMaker, directory: Path, every: int, sample: int, seed: int) -> tuple[Counter[str], int, list[str]]:
    """Try injections, a sample of so many where it is not 0; return the calls, how many were tried, and what was broken."""
    strace = Strace(make, directory)
    counts = strace.counts()
    tried = injections(counts, every)
    if sample:
        tried = random.Random(seed).sample(tried, min(sample, len(tried)))  # noqa: S311 (cases to repeat)
    losses = []
    for injection in tried:
        problem = strace.try_injection(injection)
        if problem:
            losses.append(f"{injection.argument()}: {problem}")
    return counts, len(tried), losses


def main() -> int:
    """Run, print the figures, and return the exit code."""
    arguments = argparse.ArgumentParser(description="Let system calls fail, each of them once.")
    arguments.add_argument("--every", type=int, default=1, help="of so many calls the first")
    arguments.add_argument("--sample", type=int, default=0, help="so many injections by chance; 0 for all")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--directory", type=Path, help="where to write; a temporary directory by default")
    arguments.add_argument("--install", action="store_true", help="install strace where it is missing, as root on Debian")
    arguments.add_argument("--bug", default="", help="a seeded bug that is to be noticed")
    given = arguments.parse_args()
    logging.getLogger("memci").addHandler(logging.NullHandler())
    if not has_program("strace", "strace", install=given.install):
        sys.stdout.write("system calls: not run, there is no strace: apt-get install strace\n")
        return NO_STRACE
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        make = maker(given.bug, file_store)
        counts, tried, losses = run(make, Path(directory), given.every, given.sample, given.seed)
    calls = ", ".join(f"{count} {call}" for call, count in counts.items())
    sys.stdout.write(f"system calls: {tried} injections into {calls}: {len(losses)} losses, {time.monotonic() - began:.0f} s\n")
    sys.stdout.writelines(f"  {loss}\n" for loss in losses[:20])
    return int(bool(losses))


if __name__ == "__main__":
    sys.exit(main())
