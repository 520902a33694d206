"""Measure the tests by small wrong changes of the source: ``python -m tests.mutants``.

One mutation of the table is applied at a time, and the tests of its room that reach its place run until the first one fails.
Prints a line for each mutation, and the share of those that some test noticed. The exit code is 1 if that is less than 95%.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from itertools import chain
from time import monotonic

import attrs

from tests.costs import QUICK
from tests.mutants.mutation import Mutation, find_problem
from tests.mutants.reaching import find_reach
from tests.mutants.rooms import files_of
from tests.mutants.running import Outcome, failed_tests, run
from tests.mutants.table import MUTATIONS

LEAST_SHARE = 0.95
FEW = 8  # up to this number, mutations run all tests of their rooms: finding those that reach the places would take longer


def measure(mutations: Sequence[Mutation], *, jobs: int, marks: str) -> list[Outcome]:
    """Run the tests of each mutation, *jobs* mutations at once, and print each outcome as it comes.

    A test that fails on the source as it is has noticed nothing: its mutation survived.
    """
    outcomes = list[Outcome]()
    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed(_submitted(pool, mutations, jobs=jobs, marks=marks)):
            outcomes.append(future.result())
            write_outcome(outcomes[-1])
    caught_by = sorted({each.test for each in outcomes if each.test})
    failing = set(failed_tests(caught_by, os.environ)) if caught_by else set()
    if failing:
        _write(f"  fails on the unchanged source too, and so notices nothing: {', '.join(sorted(failing))}")
    return [attrs.evolve(each, test="") if each.test in failing else each for each in outcomes]


def _submitted(pool: ThreadPoolExecutor, mutations: Sequence[Mutation], *, jobs: int, marks: str) -> list[Future[Outcome]]:
    files = {each.name: files_of(each.module) for each in mutations}
    if len(mutations) <= FEW:
        return [pool.submit(run, each, files[each.name], marks=marks) for each in mutations]
    started = monotonic()
    reach = find_reach(mutations, sorted(set(chain(*files.values()))), jobs=jobs, marks=marks)
    _write(f"  {len(reach.seconds)} tests ran on the unchanged source in {monotonic() - started:.0f} s")
    if reach.failing:
        _write(f"  left out, as they fail there: {', '.join(sorted(reach.failing))}")
    chosen = [(each, reach.tests_of(each, files[each.name])) for each in mutations]
    return [pool.submit(run, each, list(tests), chosen=[*chain(*tests.values())]) for each, tests in chosen]


def write_outcome(outcome: Outcome) -> None:
    """Print the line of a mutation."""
    result = f"caught by {outcome.test}" if outcome.test else f"SURVIVED   {outcome.mutation.what}"
    _write(f"  {outcome.mutation.name:40} {outcome.seconds:6.1f} s  {result}")


def share_line(outcomes: Sequence[Outcome]) -> str:
    """Return the closing line: how many were caught, in all and of those that were written from the source alone."""
    alone = [each for each in outcomes if each.mutation.from_source]
    return f"mutants: {_counted(outcomes)} caught; of those written from the source alone {_counted(alone)}"


def _counted(outcomes: Sequence[Outcome]) -> str:
    caught = sum(bool(each.test) for each in outcomes)
    return f"{caught} of {len(outcomes)} ({caught / max(len(outcomes), 1):.1%})"


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, and return the exit code."""
    parser = argparse.ArgumentParser(description="Measure the tests by mutations of the source.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutations to run; by default all")
    parser.add_argument("--jobs", type=int, default=2, help="how many run at once")
    parser.add_argument("--fast", action="store_true", help="run only the tests that make test runs")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.names if name not in MUTATIONS]:
        parser.error(f"no such mutation: {', '.join(unknown)}")
    mutations = [MUTATIONS[name] for name in given.names] or list(MUTATIONS.values())
    if problems := list(filter(None, map(find_problem, mutations))):
        parser.error("; ".join(problems))
    outcomes = measure(mutations, jobs=given.jobs, marks=QUICK if given.fast else "")
    _write(share_line(outcomes))
    return int(sum(bool(each.test) for each in outcomes) < LEAST_SHARE * len(outcomes))


if __name__ == "__main__":
    sys.exit(main())
