"""Recovery run on every state in which a loss of power may leave a disk: ``python -m tests.torture.crash_states``.

A writer works on a disk that records every change. Each prefix of the record makes many states (``tests.torture.crash_model``);
recovery runs on each one that is not the same as one before, and what it finds is compared with what had been promised up to
there. Some of the states are the beginning of another writer whose disk fails too, so that recovery itself is interrupted.
"""

import argparse
import logging
import random
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import count

import attrs

from tests.torture import engine_workload, store_workload
from tests.torture.crash_model import DiskHistory
from tests.torture.memory_disk import ROOT, Mark, Tree
from tests.torture.promise import PICTURE_LOST, Promise, Recovered, broken
from tests.torture.store_workload import StoreMaker, TroubledIo, file_store

LATER_CRASHES = 6
"""How many of the states of one workload are the beginning of another."""

Recovery = Callable[[Tree, StoreMaker], dict[str, Recovered]]


@attrs.define
class Figures:
    """What a run saw.

    Attributes:
        built: States that were built.
        checked: States whose recovery was compared with a promise: a state again, with another promise, counts again.
        distinct: States whose contents differ from all others; recovery ran once on each.
        workloads: Writers that were run, those that begin where a crash ended another one included.
        losses: A sentence for each promise that was broken.
    """

    built: int = 0
    checked: int = 0
    distinct: set[bytes] = attrs.field(factory=set)
    workloads: int = 0
    losses: list[str] = attrs.field(factory=list)


@attrs.frozen
class Workload:
    """A kind of writer.

    Attributes:
        name: In a word.
        write: Runs it on a disk, from a promise, with a salt for its texts.
        recover: Opens what a crash left of it.
    """

    name: str
    write: Callable[[TroubledIo, StoreMaker, random.Random, Promise, str], None]
    recover: Recovery


def store_writer(io: TroubledIo, make: StoreMaker, chance: random.Random, promise: Promise, salt: str) -> None:
    """Run a writer on the store's own interface."""
    store_workload.StoreWriter(io, make, chance, promise, salt).run(18)


STORE = Workload("store", store_writer, store_workload.recover)
ENGINE = Workload("engine", engine_workload.write, engine_workload.recover)


class Bench:
    """Runs workloads and checks their states until there are enough.

    Args:
        workload: The kind of writer.
        make: Makes the store.
        states: Enough distinct states.
        samples: States drawn by chance after each change, beside the plain ones.
        stop_at_loss: Whether one broken promise is enough.
    """

    def __init__(
        self, workload: Workload, make: StoreMaker, *, states: int, samples: int = 4, stop_at_loss: bool = False
    ) -> None:
        self.figures = Figures()
        self._workload = workload
        self._make = make
        self._states = states
        self._samples = samples
        self._stop_at_loss = stop_at_loss

    def run(self, seed: int) -> Figures:
        """Run workloads, the same for the same seed."""
        for number in count(1):
            if self._is_done():
                break
            chance = random.Random(f"{seed} {number}")  # noqa: S311 (cases to repeat)
            places = self._run_one({ROOT: None}, Promise(), chance, f"s{number}")
            for later, (tree, promise) in enumerate(chance.sample(places, min(LATER_CRASHES, len(places)))):
                if not self._is_done():
                    self._run_one(tree, self._after(tree, promise), chance, f"s{number}l{later}")
        return self.figures

    def _is_done(self) -> bool:
        return len(self.figures.distinct) >= self._states or (self._stop_at_loss and bool(self.figures.losses))

    def _after(self, tree: Tree, promise: Promise) -> Promise:
        """Return what holds once a crash left this: what is there is there, and all the rest is not.

        The files of a deletion that was broken off are the exception: a page without its picture has it again when another
        session stores the same picture, and one that still has it loses it when that session forgets it.
        """
        found = self._workload.recover(tree, self._make)
        after = attrs.evolve(Promise(), forgotten=promise.forgotten)
        for session, recovered in found.items():
            after = after.surely(session, recovered.journal).surely_pages(session, recovered.pages)
            for seq, body in recovered.snapshots:
                after = after.maybe_snapshot(session, seq, body)
        leftovers = {key: pages for key, pages in promise.pages.items() if PICTURE_LOST in pages and key in after.pages}
        return attrs.evolve(after, pages={**after.pages, **leftovers})

    def _run_one(self, start: Tree, promise: Promise, chance: random.Random, salt: str) -> list[tuple[Tree, Promise]]:
        """Run a writer and check the states of its record; return some of those that were good."""
        self.figures.workloads += 1
        io = TroubledIo(start)
        io.mark(promise)
        self._workload.write(io, self._make, chance, promise, salt)
        recovered: dict[bytes, dict[str, Recovered]] = {}
        judged: set[tuple[bytes, int]] = set()
        good: list[tuple[Tree, Promise]] = []
        for tree, promised in self._states_of(io, start, chance):
            if self._is_done():
                break
            self.figures.built += 1
            key = _digest(tree)
            if (key, id(promised)) in judged:
                continue
            judged.add((key, id(promised)))
            if key not in recovered:
                recovered[key] = self._workload.recover(tree, self._make)
            self.figures.distinct.add(key)
            self.figures.checked += 1
            losses = broken(promised, recovered[key], tree)
            self.figures.losses += [f"workload {salt}, state {key.hex()[:8]}: {loss}" for loss in losses]
            if not losses and chance.random() < 0.01:
                good.append((tree, promised))
        return good

    def _states_of(self, io: TroubledIo, start: Tree, chance: random.Random) -> Iterator[tuple[Tree, Promise]]:
        history = DiskHistory(start)
        promise = Promise()
        for change in io.log:
            history.take(change)
            if isinstance(change, Mark):
                assert isinstance(change.promise, Promise)
                promise = change.promise
            for tree in history.states(change, chance, self._samples):
                yield tree, promise


def _digest(tree: Tree) -> bytes:
    digest = blake2b(digest_size=16)
    for path, data in tree.items():
        digest.update(f"{path}\0{-1 if data is None else len(data)}\0".encode())
        digest.update(data or b"")
    return digest.digest()


def main() -> int:
    """Run, print the figures, and return the exit code."""
    arguments = argparse.ArgumentParser(description="Replay recorded writes into every state after a loss of power.")
    arguments.add_argument("--states", type=int, default=100_000, help="distinct states; a fifth of them of the engine")
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    logging.getLogger("memci").addHandler(logging.NullHandler())
    code = 0
    for workload, states in ((STORE, given.states - given.states // 5), (ENGINE, given.states // 5)):
        began = time.monotonic()
        figures = Bench(workload, file_store, states=states).run(given.seed)
        sys.stdout.write(
            f"crash states, {workload.name}: {len(figures.distinct)} distinct of {figures.built} built, "
            f"{figures.checked} checks, {figures.workloads} workloads, seed {given.seed}: "
            f"{len(figures.losses)} losses, {time.monotonic() - began:.0f} s\n"
        )
        for loss in figures.losses[:20]:
            sys.stdout.write(f"  {loss}\n")
        code |= bool(figures.losses)
    return code


if __name__ == "__main__":
    sys.exit(main())
