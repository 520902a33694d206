"""Measure the tests by small wrong changes of the source: ``python -m tests.mutants``.

One mutation of the table is applied at a time, and the tests of its room run until the first one fails. Prints a line for each
mutation, and the share of those that some test noticed. The exit code is 1 if that is less than 95%.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import attrs

from tests.mutants.mutation import Mutation, find_problem
from tests.mutants.rooms import files_of
from tests.mutants.running import FAST, Outcome, failing_unchanged, run
from tests.mutants.table import MUTATIONS

LEAST_SHARE = 0.95


def measure(mutations: Sequence[Mutation], *, jobs: int, marks: str) -> list[Outcome]:
    """Run the tests of each mutation, *jobs* mutations at once, and print each outcome as it comes.

    A test that fails on the source as it is has noticed nothing: the mutation that it stands for survived.
    """
    outcomes = list[Outcome]()
    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(run, each, files_of(each.module), marks=marks) for each in mutations]):
            outcomes.append(future.result())
            write_outcome(outcomes[-1])
    caught_by = sorted({each.test for each in outcomes if each.test})
    failing = set(failing_unchanged(caught_by))
    if failing:
        _write(f"  fails on the unchanged source too, and so notices nothing: {', '.join(sorted(failing))}")
    return [attrs.evolve(each, test="") if each.test in failing else each for each in outcomes]


def write_outcome(outcome: Outcome) -> None:
    """Print the line of a mutation."""
    told = f"caught by {outcome.test}" if outcome.test else f"SURVIVED   {outcome.mutation.what}"
    _write(f"  {outcome.mutation.name:40} {outcome.seconds:6.1f} s  {told}")


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
    outcomes = measure(mutations, jobs=given.jobs, marks=FAST if given.fast else "")
    _write(share_line(outcomes))
    return int(sum(bool(each.test) for each in outcomes) < LEAST_SHARE * len(outcomes))


if __name__ == "__main__":
    sys.exit(main())
