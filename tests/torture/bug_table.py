"""The bench tested by itself: every seeded bug has to be noticed: ``python -m tests.torture.bug_table``.

Each part runs in small on a store that is wrong in one way, and on the one that is right, and prints what it noticed.
"""

import argparse
import logging
import subprocess
import sys
from pathlib import Path

from tests.torture.crash_states import STORE, Bench
from tests.torture.seeded_bugs import BUGS, Bug
from tests.torture.store_workload import file_store

SEED, STATES = 2, 12_000
"""A run of the crash states on which each bug of theirs shows."""

SMALL = {
    "damage": ["--cases", "60"],
    "kills": ["--kills", "20"],
    "writers": ["--processes", "4", "--appends", "100"],
    "soak": ["--turns", "1500"],
}
"""What makes the other parts small; each runs as a process of its own."""

ROOT = Path(__file__).parents[2]


def noticed_in_states(bug: Bug) -> str:
    """Return what the crash states notice first; nothing where they do not."""
    losses = Bench(STORE, bug.make, states=STATES, stop_at_loss=True).run(SEED).losses
    return losses[0].partition(": ")[2] if losses else ""


def noticed_by(part: str, name: str) -> str:
    """Return what another part notices first; nothing where it does not."""
    command = [sys.executable, "-m", f"tests.torture.{part}", *SMALL[part], "--bug", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603 (fixed words)
    told = [line.strip() for line in done.stdout.splitlines() if line.startswith("  ")]
    return told[-1] if done.returncode == 1 and told else ""


def tell(name: str, part: str, told: str) -> None:
    """Print a row."""
    sys.stdout.write(f"{name:32}{part:14}{'noticed: ' + told[:90] if told else 'MISSED'}\n")
    sys.stdout.flush()


def main() -> int:
    """Run, print a table, and return the exit code."""
    argparse.ArgumentParser(description="Let the bench look for bugs that are there.").parse_args()
    logging.getLogger("memci").addHandler(logging.NullHandler())
    missed = 0
    for name, bug in BUGS.items():
        told = noticed_in_states(bug) if bug.part == "crash_states" else noticed_by(bug.part, name)
        missed += not told
        tell(name, bug.part, told)
    seeded = len(BUGS)
    right = Bench(STORE, file_store, states=STATES // 4).run(SEED).losses
    sys.stdout.write(f"seeded bugs: {seeded - missed} of {seeded} noticed; in the store as it is: {len(right)}\n")
    return int(bool(missed or right))


if __name__ == "__main__":
    sys.exit(main())
