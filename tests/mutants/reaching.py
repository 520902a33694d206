"""Which tests reach the places of mutations: no other test can notice them, and running those takes a fraction of the time.

All tests of the rooms run once on the unchanged source, where each place has a mark (``hook/sitecustomize.py``).
"""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs

from tests.mutants.mutation import Mutation
from tests.mutants.running import environment, failed_tests

PLACES: Final = "MEMCI_MUTATION_PLACES"  # as in the hook
REACHED: Final = "MEMCI_MUTATION_REACHED"
_CALL = "(call)"


@attrs.frozen(kw_only=True)
class Reach:
    """What a run of the tests on the unchanged source showed.

    Attributes:
        reached: By mutation, the tests that reached its place, each with the phase, such as ``(call)``.
        seconds: By test, how long it took.
        failing: Tests that failed, and so can notice nothing.
    """

    reached: Mapping[str, Collection[tuple[str, str]]]
    seconds: Mapping[str, float]
    failing: Collection[str]

    def tests_of(self, mutation: Mutation, files: Sequence[str]) -> dict[str, list[str]]:
        """Return the tests in some files that reach the place of a mutation, by file: the first file, then quick ones first.

        What a fixture reaches, all tests of the file may have reached; what was reached outside of tests, all tests.
        """
        reached = self.reached.get(mutation.name, ())
        called = {test for test, phase in reached if phase == _CALL}
        fixtures = {_file(test) for test, phase in reached if phase != _CALL}
        found = {file: list[str]() for file in files}
        for test in self.seconds:
            file = _file(test)
            if file in found and test not in self.failing and (test in called or file in fixtures or "" in fixtures):
                found[file].append(test)
        order = sorted(found, key=lambda file: (file != files[0], sum(self.seconds[test] for test in found[file])))
        return {file: found[file] for file in order if found[file]}


def find_reach(mutations: Sequence[Mutation], files: Sequence[str], *, jobs: int, marks: str = "") -> Reach:
    """Run the tests of some files with a mark at the place of each mutation, in *jobs* processes."""
    places = defaultdict[str, dict[str, str]](dict)
    for each in mutations:
        places[each.module][each.name] = each.right
    with TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        told = Path(folder) / "reached.jsonl"
        told.touch()
        (Path(folder) / "places.json").write_text(json.dumps(places), encoding="utf-8")
        env = environment({PLACES: str(Path(folder) / "places.json"), REACHED: str(told)})
        clocks = [Path(folder) / f"seconds-{number}.json" for number in range(jobs)]
        parts = [files[number::jobs] for number in range(jobs)]
        runs = [
            pool.submit(failed_tests, ["--seconds", str(clock), *part], env, marks=marks)
            for clock, part in zip(clocks, parts, strict=True)
            if part
        ]
        failing = [test for run in runs for test in run.result()]
        seconds = Counter[str]()
        for clock in filter(os.path.exists, clocks):
            seconds.update(json.loads(clock.read_text(encoding="utf-8")))
        reached = defaultdict[str, set[tuple[str, str]]](set)
        for name, test, phase in map(json.loads, told.read_text(encoding="utf-8").splitlines()):
            reached[name].add((test, phase))
    return Reach(reached=reached, seconds=seconds, failing=frozenset(failing))


def _file(test: str) -> str:
    return test.partition("::")[0]
