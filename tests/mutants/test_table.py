"""The table of mutations can be applied, and the machinery tells caught mutations from those that survive."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path

import attrs

from tests.mutants.__main__ import share_line
from tests.mutants.mutation import ROOT, Mutation, find_problem
from tests.mutants.reaching import Reach, find_reach
from tests.mutants.rooms import ROOMS, files_of
from tests.mutants.running import Outcome, mutated, run
from tests.mutants.table import MUTATIONS, TABLES

TINY_ROOM = ["tests/chapters/test_address.py"]
PLANTED = Mutation(
    name="planted",
    what="the last page of a range is its first one",
    module="memci.chapters.address",
    right='return [f"{segment_of(each)}-{last_number(each)}" for each in ranges]',
    wrong='return [f"{segment_of(each)}-{page_number(each)}" for each in ranges]',
)
HARMLESS = Mutation(
    name="harmless",
    what="nothing",
    module="memci.chapters.address",
    right='return [f"{segment_of(each)}-{last_number(each)}" for each in ranges]',
    wrong='return [*(f"{segment_of(each)}-{last_number(each)}" for each in ranges)]',
)


def test_every_mutation_can_be_applied() -> None:
    """Each module contains the text to replace exactly once, and compiles with the replacement."""
    assert [] == list(filter(None, map(find_problem, MUTATIONS.values())))


def test_names_are_unique() -> None:
    """No two mutations of the table have the same name."""
    assert sum(len(table.MUTATIONS) for table in TABLES) == len(MUTATIONS)


def test_a_text_that_is_not_there_once_is_an_error() -> None:
    """A mutation whose text is missing, ambiguous, or in no module is reported with its name."""
    missing = Mutation(name="missing", what="", module="memci.version", right="no such text", wrong="")
    ambiguous = Mutation(name="ambiguous", what="", module="memci.chapters.address", right="return", wrong="yield")
    homeless = Mutation(name="homeless", what="", module="memci.nowhere", right="a", wrong="b")
    broken = Mutation(name="broken", what="", module="memci.version", right="VERSION", wrong="VERSION VERSION")
    for mutation in (missing, ambiguous, homeless, broken):
        assert find_problem(mutation).startswith(f"{mutation.name}: ")


def test_every_room_has_its_tests() -> None:
    """Each path of a room exists, and the files named after a mutated module come first."""
    assert [] == [path for paths in ROOMS.values() for path in paths if not [*ROOT.glob(path)]]
    assert all(files_of(mutation.module) for mutation in MUTATIONS.values())
    assert "tests/http/test_guard.py" == files_of("memci.http.guard")[0]


def test_a_planted_mutation_is_caught_and_a_harmless_one_survives() -> None:
    """The outcome of a mutation is the test that failed first, or none where all pass."""
    with ThreadPoolExecutor() as pool:
        planted, harmless = pool.map(partial(run, files=TINY_ROOM), [PLANTED, HARMLESS])
    assert planted.test.startswith(f"{TINY_ROOM[0]}::test_")
    assert not harmless.test


def test_a_mutation_meets_the_tests_that_reach_it() -> None:
    """Tests that reach the place of a mutation are found, and not those that do not."""
    unreached = Mutation(name="unreached", what="", module=PLANTED.module, right='return ".." in index', wrong="return True")
    reach = find_reach([PLANTED, unreached], TINY_ROOM, jobs=1)
    assert {TINY_ROOM[0]: [f"{TINY_ROOM[0]}::test_ends_are_the_last_pages"]} == reach.tests_of(PLANTED, TINY_ROOM)
    assert {} == reach.tests_of(unreached, TINY_ROOM)
    assert (3, frozenset()) == (len(reach.seconds), reach.failing)


def test_a_place_that_is_reached_outside_of_tests_meets_all() -> None:
    """A statement that runs as its module is loaded meets all tests, one that a fixture reaches all of the fixture's file."""
    tests = ["tests/a.py::test_a", "tests/a.py::test_b", "tests/b.py::test_a"]
    reached = {"a": {("", "")}, "b": {(tests[0], "(setup)")}, "c": {(tests[0], "(call)")}}
    reach = Reach(reached=reached, seconds=dict.fromkeys(tests, 1.0), failing=[])
    found = [attrs.evolve(PLANTED, name=name) for name in "abcd"]
    wanted = [tests, tests[:2], tests[:1], []]
    assert wanted == [[*chain(*reach.tests_of(each, ["tests/a.py", "tests/b.py"]).values())] for each in found]


def test_a_mutation_holds_in_processes_of_the_tests() -> None:
    """A Python process that a mutated process starts has the mutation, too."""
    code = "from memci.chapters.address import ends; print(*ends(['usr-1..2']))"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}], check=True)"
    told = [
        subprocess.run(  # noqa: S603 (fixed words)
            [sys.executable, "-c", outer], capture_output=True, text=True, check=True, cwd=ROOT, env=env
        ).stdout.strip()
        for env in (os.environ, mutated(PLANTED))
    ]
    assert ["usr-2", "usr-1"] == told


def test_the_source_stays_as_it_is(tmp_path: Path) -> None:
    """A mutated module leaves no trace in the file or in its compiled copy."""
    env = {**mutated(PLANTED), "PYTHONPYCACHEPREFIX": str(tmp_path)}
    subprocess.run([sys.executable, "-c", "import memci.chapters.address"], check=True, cwd=ROOT, env=env)
    assert [] == list(tmp_path.rglob("address*.pyc"))
    assert not find_problem(PLANTED)


def test_the_closing_line_counts() -> None:
    """The last line has the caught mutations and their share, in all and of those from the source alone."""
    seen = MUTATIONS["rewind-keeps-claims"]
    alone = MUTATIONS["rewind-keeps-pins"]
    outcomes = [Outcome(mutation=seen, test="tests/a.py::test_b", seconds=1.0), Outcome(mutation=alone, test="", seconds=1.0)]
    wanted = "mutants: 1 of 2 (50.0%) caught; of those written from the source alone 0 of 1 (0.0%)"
    assert wanted == share_line(outcomes)
