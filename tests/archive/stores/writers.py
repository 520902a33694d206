"""Many processes append to one session at once, and what became of it is counted.

::

    python -m tests.archive.stores.writers --store sqlite:///chats.db --processes 16 --appends 20000

The store may be any but ``memory:``. Each process appends its share, going on from the head that a conflict names, and keeps
what was acknowledged; then the journal is compared with what all of them kept. A session of that name is deleted first.
"""

import argparse
import json
import os
import sys
from collections import Counter
from time import perf_counter
from typing import Any

import attrs

from memci.archive.stores.contract import NewRecord
from memci.archive.stores.url import open_store
from memci.errors import ConflictError

TENANT = "default"
SESSION = "many writers"


@attrs.frozen
class Tally:
    """What became of the appends.

    Attributes:
        acknowledged: Appends that returned.
        conflicts: Appends that were refused, as another process was faster.
        lost: Acknowledged appends that are not where it was said.
        doubled: Appends that are in the journal more than once, or that nobody was told of.
        reordered: Appends of one process that stand before an earlier one of it.
        gaps: Whether sequence numbers are missing.
        seconds: From the first start to the last end.
    """

    acknowledged: int
    conflicts: int
    lost: int
    doubled: int
    reordered: int
    gaps: bool
    seconds: float

    @property
    def is_whole(self) -> bool:
        """Nothing is lost, doubled or out of order."""
        return not (self.lost or self.doubled or self.reordered or self.gaps)


def append_share(url: str, durability: str, writer: int, appends: int, start: int) -> dict[str, Any]:
    """Append as one of the processes, once the pipe *start* is closed, and return where each append was acknowledged."""
    store = open_store(url, durability)
    journal = store.open(TENANT, SESSION).journal
    told = []
    conflicts = 0
    head = journal.head()
    os.read(start, 1)
    for number in range(appends):
        record = NewRecord("appended", 1, b'{"writer":%d,"number":%d}' % (writer, number))
        while True:
            try:
                head = journal.append(head, [record])
                break
            except ConflictError as conflict:
                conflicts += 1
                head = conflict.head
        told.append(head)
        os.sched_yield()  # so that the others get a turn, and this one a conflict
    store.close()
    return {"writer": writer, "told": told, "conflicts": conflicts}


def start_writer(url: str, durability: str, writer: int, appends: int, start: tuple[int, int]) -> int:
    """Fork a process that appends, and return the pipe through which it answers."""
    reading, writing = os.pipe()
    if not os.fork():
        code = 1
        try:
            os.close(start[1])
            with os.fdopen(writing, "w") as pipe:
                json.dump(append_share(url, durability, writer, appends, start[0]), pipe)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    return reading


def append_at_once(url: str, durability: str, processes: int, appends: int) -> Tally:
    """Let so many processes make so many appends together."""
    store = open_store(url, durability)
    store.delete(TENANT, SESSION)
    store.close()
    start = os.pipe()
    shares = [appends // processes + (writer < appends % processes) for writer in range(processes)]
    pipes = [start_writer(url, durability, writer, share, start) for writer, share in enumerate(shares)]
    begin = perf_counter()
    os.close(start[1])
    answers = []
    for pipe in pipes:
        with os.fdopen(pipe) as answer:
            answers.append(json.load(answer))
        os.wait()
    os.close(start[0])
    seconds = perf_counter() - begin
    written = [json.loads(record.body) for record in store.open(TENANT, SESSION, read_only=True).journal.read()]
    seqs = [record.seq for record in store.open(TENANT, SESSION, read_only=True).journal.read()]
    store.close()
    said = {(answer["writer"], number): seq for answer in answers for number, seq in enumerate(answer["told"])}
    places = [(record["writer"], record["number"]) for record in written]
    times = Counter(places)
    last = dict.fromkeys(range(processes), -1)
    reordered = 0
    for writer, number in places:
        reordered += number <= last[writer]
        last[writer] = number
    return Tally(
        acknowledged=len(said),
        conflicts=sum(answer["conflicts"] for answer in answers),
        lost=sum(seq > len(places) or places[seq - 1] != append for append, seq in said.items()),
        doubled=sum(count > 1 for count in times.values()) + len(times.keys() - said.keys()),
        reordered=reordered,
        gaps=seqs != list(range(1, len(seqs) + 1)),
        seconds=round(seconds, 1),
    )


def main() -> int:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, help="URL of the store")
    parser.add_argument("--durability", default="fsync")
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--appends", type=int, default=20_000, help="of all processes together")
    arguments = parser.parse_args()
    tally = append_at_once(arguments.store, arguments.durability, arguments.processes, arguments.appends)
    print(json.dumps(attrs.asdict(tally)))  # noqa: T201 (what it is run for)
    return 0 if tally.is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
