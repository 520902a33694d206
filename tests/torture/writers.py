"""Many processes append to one session at once: ``python -m tests.torture.writers``.

Each process appends its share with ``on_conflict="retry"`` while others look how far the session is. All of them note when each
call began and returned, by the one clock of the machine, and the journal must be a history that explains what they saw: each
message once, in the order of its writer, and no call out of its time (linearisability).
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import orjson

from memci.archive.stores.file.store import FileStore
from memci.engine.engine import Engine
from memci.errors import LockedError, MemciError
from tests.torture.forked import Forked
from tests.torture.seeded_bugs import given_to, maker
from tests.torture.store_workload import TENANT, StoreMaker, file_store
from tests.torture.talker import SESSION

CONFIG = {"counter": "approximate", "budget": {"window": 4_000, "reserve": 0}}
LOOKS = 200


class Call(NamedTuple):
    """A call of one process.

    Attributes:
        began: Time before it, in nanoseconds.
        ended: Time after it.
        value: What it saw: of an append the place of the message, from 0, of a look how many messages there were.
    """

    began: int
    ended: int
    value: int


def append_share(make: StoreMaker, root: str, writer: int, appends: int, tell: Callable[[int], None]) -> None:
    """Append as one of the writers; tell when each append began and ended, and last how many were refused before.

    A refused append wrote nothing and is repeated: where many wait for the lock, a wait may be in vain.
    """
    refused = 0
    with Engine(make(root), CONFIG) as engine:
        session = engine.session(SESSION)
        for number in range(appends):
            message = {"role": "assistant" if number % 2 else "user", "content": f"{writer} {number}"}
            is_appended = False
            while not is_appended:
                began = time.monotonic_ns()
                try:
                    session.append(message, on_conflict="retry")
                    is_appended = True
                except LockedError:
                    refused += 1
            tell(began)
            tell(time.monotonic_ns())
    tell(refused)


def keep_looking(make: StoreMaker, root: str, tell: Callable[[int], None]) -> None:
    """Look how far the session is, again and again, and tell when each look began and ended and what it saw."""
    with Engine(make(root), CONFIG, read_only=True) as engine:
        session = engine.session(SESSION)
        for _ in range(LOOKS):
            began = time.monotonic_ns()
            session.refresh()
            seen = session.seq
            for number in (began, time.monotonic_ns(), seen):
                tell(number)
            time.sleep(0.01)


def history_of(root: str) -> list[tuple[int, str]]:
    """Return sequence number and text of each message in the journal."""
    session = FileStore(root).open(TENANT, SESSION, read_only=True)
    found = []
    for record in session.journal.read():
        message = orjson.loads(record.body).get("message")
        if message is not None:
            found.append((record.seq, message["content"]))
    session.close()
    return found


def problems_with(
    history: Sequence[tuple[int, str]], appends: Sequence[Sequence[tuple[int, int]]], looks: Sequence[Call]
) -> list[str]:
    """Say what the history does not explain.

    Args:
        history: Sequence number and text of each message.
        appends: By writer, begin and end of each of its appends, in order.
        looks: Begin, end, and the sequence number that was seen.
    """
    told = {f"{writer} {number}": call for writer, calls in enumerate(appends) for number, call in enumerate(calls)}
    texts = [text for _, text in history]
    found = []
    if len(texts) != len(set(texts)):
        found.append(f"{len(texts) - len(set(texts))} messages are there twice")
    if lost := told.keys() - set(texts):
        found.append(f"{len(lost)} messages are lost, such as {min(lost)!r}")
    if strange := set(texts) - told.keys():
        found.append(f"{len(strange)} messages are there that nobody was told of, such as {min(strange)!r}")
    if found:
        return found
    calls = [Call(*told[text], seq) for seq, text in history]
    return [*_out_of_time(calls, texts), *_wrong_looks(calls, looks)]


def _out_of_time(calls: Sequence[Call], texts: Sequence[str]) -> Iterator[str]:
    latest = 0
    for call, text in zip(calls, texts, strict=True):
        if call.ended < latest:
            yield f"{text!r} was acknowledged before one began that stands before it"
        latest = max(latest, call.began)


def _wrong_looks(calls: Sequence[Call], looks: Sequence[Call]) -> Iterator[str]:
    for look in looks:
        if any(call.ended < look.began and call.value > look.value for call in calls):
            yield f"a look at {look.value} does not see what was acknowledged before it"
        if any(call.began > look.ended and call.value <= look.value for call in calls):
            yield f"a look at {look.value} sees what was appended after it"
    for earlier, later in pairwise(looks):
        if earlier.ended < later.began and earlier.value > later.value:
            yield f"a look at {later.value} comes after one at {earlier.value}"


def run(make: StoreMaker, root: str, processes: int, appends: int) -> tuple[list[str], int]:
    """Let writers append together; return what is wrong with what they wrote, and how many appends were refused."""
    shares = [appends // processes + (writer < appends % processes) for writer in range(processes)]
    writers = [Forked(partial(append_share, make, root, writer, share)) for writer, share in enumerate(shares)]
    readers = [Forked(partial(keep_looking, make, root)) for _ in range(2)]
    made, found, looks, refused = [], [], [], 0
    for writer in writers:
        told, status = writer.wait()
        made.append(list(zip(told[::2], told[1::2], strict=False)))
        refused += told[-1] if not status else 0
        if status:
            found.append(f"a writer ended with {status}")
    for reader in readers:
        told, status = reader.wait()
        looks += [Call(*triple) for triple in zip(told[::3], told[1::3], told[2::3], strict=True)]
        if status:
            found.append(f"a reader ended with {status}")
    try:
        found += problems_with(history_of(root), made, sorted(looks))
        with Engine(make(root), CONFIG) as engine:
            found += engine.session(SESSION).verify().problems
    except MemciError as error:
        found.append(f"{type(error).__name__}: {error}")
    return found, refused


def main() -> int:
    """Run, print the figures, and return the exit code."""
    arguments = argparse.ArgumentParser(description="Let many processes append to one session at once.")
    arguments.add_argument("--processes", type=int, default=16)
    arguments.add_argument("--appends", type=int, default=20_000, help="of all processes together")
    given = given_to(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        problems, refused = run(maker(given.bug, file_store), directory, given.processes, given.appends)
    sys.stdout.write(
        f"writers: {given.processes} processes, {given.appends} appends: {len(problems)} problems, "
        f"{refused} appends refused while others had the lock, {time.monotonic() - began:.0f} s\n"
    )
    sys.stdout.writelines(f"  {problem}\n" for problem in problems[:20])
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
