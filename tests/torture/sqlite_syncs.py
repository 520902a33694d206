"""Count how often SQLite syncs for an append: ``python -m tests.torture.sqlite_syncs``. Needs strace."""

import subprocess
import sys
import tempfile
from pathlib import Path

from memci.archive.stores.contract import NewRecord
from memci.archive.stores.sql.sqlite import SqliteStore
from tests.torture.programs import has_program
from tests.torture.system_calls import NO_STRACE

APPENDS = 10
EXPECTED = {("wal", "fsync"): 1, ("wal", "flush"): 0, ("truncate", "fsync"): 5, ("truncate", "flush"): 3}
"""Syncs an append, by journal mode and durability, as docs/stores.md tells them."""


def append(path: str, durability: str) -> None:
    """Append some records, with a mark for the trace before and after."""
    journal = SqliteStore(path, "fsync" if durability == "fsync" else "flush").open("default", "session").journal
    journal.append(0, [NewRecord("appended", 1, b"{}")])
    print("begin", flush=True)  # noqa: T201 (seen in the trace)
    for head in range(1, APPENDS + 1):
        journal.append(head, [NewRecord("appended", 1, b"{}")])
    print("end", flush=True)  # noqa: T201 (the same)


def syncs(durability: str) -> float:
    """Return how many syncs an append costs."""
    with tempfile.TemporaryDirectory() as work:
        trace = Path(work) / "calls"
        tracer = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync,write", "-o", str(trace)]
        command = [*tracer, sys.executable, "-m", "tests.torture.sqlite_syncs", str(Path(work) / "chats.db"), durability]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 (our own words)
        calls = trace.read_text().splitlines()
    begin, end = (next(place for place, call in enumerate(calls) if f'"{word}' in call) for word in ("begin", "end"))
    return sum("sync(" in call for call in calls[begin:end]) / APPENDS


def main() -> int:
    """Print the figures; 1 where they are not those of the docs."""
    if len(sys.argv) > 1:
        append(*sys.argv[1:])
        return 0
    if not has_program("strace", "strace", install=False):
        print("sqlite: not run, there is no strace: apt-get install strace")  # noqa: T201 (as the figures are)
        return NO_STRACE
    with tempfile.TemporaryDirectory() as work:
        mode = SqliteStore(Path(work) / "none.db").journal_mode
    found = {(mode, durability): syncs(durability) for durability in ("fsync", "flush")}
    for (_, durability), count in found.items():
        print(f"sqlite, journal mode {mode}, {durability}: {count} syncs an append")  # noqa: T201 (the figures)
    return 0 if all(EXPECTED[case] == count for case, count in found.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
