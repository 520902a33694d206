"""How much memory an open session takes; run as a process of its own: ``python -m benchmarks.memory STORE TURNS [--traced]``."""

import gc
import json
import sys
import tracemalloc
from pathlib import Path

from benchmarks.opened import Opened

TURNS = 100
_STATUS = Path("/proc/self/status")


def main(root: str, turns: str, *options: str) -> None:
    """Open the session, take 100 turns in, search, recall, and print after each step what is taken, in bytes.

    With ``--traced`` what Python allocates is counted, as now and as its peak; else what the system gave the process.
    """
    traced = "--traced" in options
    if traced:
        tracemalloc.start()
    found = {}
    opened = Opened(Path(root), int(turns))
    found["opened"] = _taken(traced=traced)
    opened.take(opened.next_messages(TURNS))
    found["turns"] = _taken(traced=traced)
    opened.session.search("when did we cancel the invoice for Selstein?")
    opened.session.recall(opened.session.contents.entries[-1].index)
    opened.session.window()
    found["search_and_recall"] = _taken(traced=traced)
    if traced:
        found["peak"] = tracemalloc.get_traced_memory()[1]
    opened.close()
    sys.stdout.write(json.dumps(found))


def _taken(*, traced: bool) -> int:
    gc.collect()
    if traced:
        return tracemalloc.get_traced_memory()[0]
    lines = _STATUS.read_text(encoding="ascii").splitlines()
    return 1_024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


if __name__ == "__main__":
    main(*sys.argv[1:])
