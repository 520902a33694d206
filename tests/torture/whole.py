"""Every part of the bench, two at a time, with a table of the figures at the end: ``python -m tests.torture.whole``.

``--only kills --only damage`` runs those parts alone; ``--jobs 1`` runs one at a time.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import attrs

from tests.torture.power_loss import NO_MOUNT
from tests.torture.system_calls import NO_STRACE

ROOT = Path(__file__).parents[2]


@attrs.frozen
class Part:
    """A part of the bench.

    Attributes:
        task: The line at its start.
        minutes: Roughly how long it takes on two cores with nothing else to do.
        arguments: Arguments for Python.
        figures: How the lines with its figures begin.
        writes: Whether it takes ``--directory``.
        cannot: Its exit code where the machine cannot run it, or not all of it.
    """

    task: str
    minutes: float
    arguments: tuple[str, ...]
    figures: str
    writes: bool = False
    cannot: int | None = None


PARTS = {
    "crash_states": Part(
        "recover from the states that a loss of power may leave",
        14,
        ("-m", "tests.torture.crash_states", "--states", "100000"),
        "crash states, ",
    ),
    "soak": Part(
        "take very many turns through one session",
        7,
        ("-m", "tests.torture.soak", "--turns", "50000"),
        "soak: ",
        writes=True,
    ),
    "exploring": Part(
        "run the property tests with new examples",
        14,
        ("-m", "tests.torture.exploring", "--minutes", "13"),
        "exploring: ",
    ),
    "serving": Part(
        "attack a server",
        10,
        ("-m", "tests.torture.serving", "--minutes", "10"),
        "serving: ",
        writes=True,
    ),
    "kills": Part(
        "kill writers at any moment",
        6,
        ("-m", "tests.torture.kills", "--kills", "3000"),
        "kills: ",
        writes=True,
    ),
    "damage": Part(
        "flip bits in the files of a store and cut them",
        4,
        ("-m", "tests.torture.damage", "--cases", "4000"),
        "damage: ",
        writes=True,
    ),
    "system_calls": Part(
        "let system calls fail, one after another",
        6,
        ("-m", "tests.torture.system_calls", "--install"),
        "system calls: ",
        writes=True,
        cannot=NO_STRACE,
    ),
    "driver": Part(
        "drive sessions at random and compare them with plain lists",
        5,
        ("-m", "tests.torture.driver", "--minutes", "5"),
        "driver: ",
        writes=True,
    ),
    "earlier_releases": Part(
        "test each adapter with the release of its framework before the current one",
        5,
        (".ci/earlier_releases.py",),
        "earlier releases: ",
    ),
    "users": Part(
        "let many users talk to a few workers on each store",
        4,
        ("-m", "tests.torture.users", "--store", "all"),
        "users, ",
    ),
    "agents": Part(
        "let three agents share a context on each store",
        4,
        ("-m", "tests.torture.agents", "--store", "all", "--steps", "60", "--kill-every", "4"),
        "agents, ",
    ),
    "erasers": Part(
        "erase pages while others write, on each store",
        4,
        ("-m", "tests.torture.erasers", "--store", "all", "--seconds", "60"),
        "erasers, ",
    ),
    "power_loss": Part(
        "shut down ext4 and XFS under a writer",
        4,
        ("-m", "tests.torture.power_loss", "--losses", "500", "--install"),
        "power losses, ",
        writes=True,
        cannot=NO_MOUNT,
    ),
    "sqlite_syncs": Part(
        "count how often SQLite syncs",
        0.1,
        ("-m", "tests.torture.sqlite_syncs"),
        "sqlite",
        cannot=NO_STRACE,
    ),
    "writers": Part(
        "append to one session from 16 processes",
        2,
        ("-m", "tests.torture.writers", "--processes", "16", "--appends", "20000"),
        "writers: ",
        writes=True,
    ),
    "trees": Part(
        "drive page trees at random and compare them with a plain tree",
        3,
        ("-m", "tests.torture.trees", "--sessions", "300"),
        "trees: ",
        writes=True,
    ),
    "permitted": Part(
        "call tools at random under each permission",
        2,
        ("-m", "tests.torture.permitted", "--calls", "20000"),
        "permitted: ",
    ),
    "bug_table": Part(
        "look for seeded bugs",
        4,
        ("-m", "tests.torture.bug_table"),
        "seeded bugs: ",
    ),
    "fuzz_document": Part(
        "parse mutated replies",
        1,
        ("-m", "tests.attp.fuzz_document", "--cases", "200000", "--seed", "1"),
        "replies: ",
    ),
}
"""By name, in the order in which they begin: the longest first."""


@attrs.frozen
class Result:
    """How a part ended.

    Attributes:
        name: Name of the part.
        seconds: How long it took.
        code: Its exit code.
        figures: Its lines of figures.
    """

    name: str
    seconds: float
    code: int
    figures: tuple[str, ...]

    @property
    def has_failed(self) -> bool:
        """True if the part found something or crashed, False also where the machine cannot run it."""
        return self.code not in (0, PARTS[self.name].cannot)

    @property
    def outcome(self) -> str:
        """The exit code in words."""
        if self.has_failed:
            return f"FAILED with {self.code}"
        return "passed" if self.code == 0 else "not run on this machine, or not all of it"


def run(name: str, directory: Path | None) -> Result:
    """Run a part and pass on its output, each line with the name of the part before it."""
    part, began = PARTS[name], time.monotonic()
    tell(f"--- {name}: {part.task}; about {part.minutes:g} minutes alone")
    command = [sys.executable, *part.arguments]
    if directory is not None and part.writes:
        command += ["--directory", str(directory)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    figures = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as process:  # noqa: S603 (fixed words)
        assert process.stdout is not None
        for line in process.stdout:
            tell(f"{name}: {line.rstrip()}")
            if line.startswith(part.figures):
                figures.append(line.rstrip("\n"))
    result = Result(name, time.monotonic() - began, process.returncode, tuple(figures))
    tell(f"--- {name}: {result.outcome} after {result.seconds:.0f} s")
    return result


def table(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of the closing table: a line for each part, and its figures below it."""
    yield f"{'part':20}{'seconds':>8}{'code':>6}  outcome"
    for result in results:
        yield f"{result.name:20}{result.seconds:8.0f}{result.code:6}  {result.outcome}"
        yield from (f"    {line}" for line in result.figures)
    yield f"{'total':20}{sum(result.seconds for result in results):8.0f}"


def tell(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201 (the output of the bench)


def main() -> int:
    """Run the parts, print a table of them, and return 1 if any of them failed."""
    arguments = argparse.ArgumentParser(description="Run the torture bench, all of it or some parts.")
    arguments.add_argument("--only", action="append", choices=PARTS, metavar="PART", help=f"repeatable; {', '.join(PARTS)}")
    arguments.add_argument("--directory", type=Path, help="where to write; a temporary directory by default")
    arguments.add_argument("--jobs", type=int, default=2, help="how many parts run at a time; most of them keep one core busy")
    given = arguments.parse_args()
    with ThreadPoolExecutor(given.jobs) as pool:
        names = [name for name in PARTS if given.only is None or name in given.only]
        results = list(pool.map(partial(run, directory=given.directory), names))
    tell("")
    for line in table(results):
        tell(line)
    return int(any(result.has_failed for result in results))


if __name__ == "__main__":
    sys.exit(main())
