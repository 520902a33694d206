"""A writer that is killed at any moment loses nothing that it acknowledged.

The writer appends commits of one to three records and page files, and tells each acknowledged sequence number through a
pipe with one ``write``, so that what the parent reads was acknowledged before the kill.
"""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memci.archive.stores.url import open_store
from memci.testing.journal_suite import TENANT, new_record, texts_of

ROUNDS = {"file:": 12, "sqlite:///": 6}

WRITER = """
import os
import sys
from memci.archive.stores.contract import NewRecord
from memci.archive.stores.url import open_store

session = open_store(sys.argv[1]).open("default", "session")
head = session.journal.head()
os.write(1, b"%d\\n" % head)
while True:
    count = head % 3 + 1
    texts = [f"{head + number}:" + "x" * 700 for number in range(1, count + 1)]
    head = session.journal.append(head, [NewRecord("appended", 1, b'{"text":"%b"}' % text.encode()) for text in texts])
    os.write(1, b"%d\\n" % head)
    if head % 5 == 0:
        session.pages.put({f"usr-{head}": b"page %d" % head})
        session.snapshots.put(head, b"%d" % head)
"""


def acknowledged_before_kill(url: str, lines: int) -> int:
    """Run a writer, kill it once it has acknowledged so many commits, and return the last sequence number it told."""
    command = [sys.executable, "-c", WRITER, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 (fixed words)
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        told += process.stdout.read().splitlines(keepends=True)
    assert -signal.SIGKILL == process.returncode
    return int([line for line in told if line.endswith(b"\n")][-1])


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ROUNDS)
def test_a_killed_writer_loses_nothing_acknowledged(scheme: str, tmp_path: Path) -> None:
    """After each of many kills every acknowledged record is there in order, and the next writer goes on from there."""
    url = f"{scheme}{tmp_path}/chats"
    store = open_store(url)
    chance = random.Random(17)  # noqa: S311 (where to kill)
    head = 0
    for _ in range(ROUNDS[scheme]):
        acknowledged = acknowledged_before_kill(url, chance.randrange(1, 40))
        assert acknowledged >= head
        session = store.open(TENANT, "session", read_only=True)
        head = session.journal.head()
        assert acknowledged <= head <= acknowledged + 3
        assert [f"{seq}:" + "x" * 700 for seq in range(1, head + 1)] == texts_of(session.journal)
        assert all(session.pages.find(name) == b"page " + name[4:].encode() for name in session.pages.names())
        assert [] == list(session.snapshots.problems())
        session.close()
    session = store.open(TENANT, "session")
    assert head + 1 == session.journal.append(head, [new_record("after the last kill")])
    assert [] == [path for path in tmp_path.rglob("*") if path.name.endswith(".tmp")]
    store.close()
