"""The whole bench, part after part, with all figures at the end: ``python -m tests.torture.whole``."""

import argparse
import subprocess
import sys
from pathlib import Path

from tests.torture.power_loss import NO_MOUNT
from tests.torture.system_calls import NO_STRACE

ROOT = Path(__file__).parents[2]

PARTS = {
    "crash_states": ["--states", "100000"],
    "bug_table": [],
    "kills": ["--kills", "3000"],
    "damage": ["--cases", "20000"],
    "system_calls": ["--install"],
    "sqlite_syncs": [],
    "soak": ["--turns", "50000"],
    "power_loss": ["--losses", "1000"],
    "writers": ["--processes", "16", "--appends", "20000"],
    "driver": ["--minutes", "10"],
    "trees": ["--sessions", "1000"],
    "permitted": ["--calls", "50000"],
    "users": ["--store", "all"],
    "agents": ["--store", "all", "--steps", "200"],
    "erasers": ["--store", "all", "--seconds", "120"],
    "serving": ["--minutes", "20"],
}
"""With their arguments; those that write take ``--directory`` too."""

NO_DIRECTORY = ("crash_states", "bug_table", "sqlite_syncs", "permitted", "users", "agents", "erasers")


def main() -> int:
    """Run every part, print what they printed, then the figures, and return 1 if any of them found something."""
    arguments = argparse.ArgumentParser(description="Run the whole torture bench.")
    arguments.add_argument("--directory", type=Path, help="where to write; a temporary directory by default")
    given = arguments.parse_args()
    figures, code = [], 0
    for part, options in PARTS.items():
        command = [sys.executable, "-m", f"tests.torture.{part}", *options]
        if given.directory is not None and part not in NO_DIRECTORY:
            command += ["--directory", str(given.directory)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT)  # noqa: S603 (fixed words)
        sys.stdout.write(done.stdout)
        sys.stdout.flush()
        figures += [line for line in done.stdout.splitlines() if not line.startswith(" ") and ": " in line]
        if done.returncode not in (0, NO_STRACE, NO_MOUNT):
            figures.append(f"{part}: FAILED with {done.returncode}")
            code = 1
    sys.stdout.write("\n".join(["", "The figures:", *(line for line in figures if "noticed: " not in line), ""]))
    return code


if __name__ == "__main__":
    sys.exit(main())
