"""Workers that summarise and processes that write, on one session of files and of PostgreSQL, killed at random."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memci.engine.engine import Engine
from memci.engine.history import state_codec
from memci.engine.history.apply import apply
from memci.engine.history.events import from_record
from memci.engine.history.state import State
from memci.messages import codec

if TYPE_CHECKING:
    from tests.archive.stores.sql.postgres_server import PostgresServer

WORKERS, WRITERS, TURNS, KILLS = 3, 2, 40, 6
CONFIG: dict[str, Any] = {
    "budget": {"window": 2_000, "reserve": 0},
    "active": {"min_pages": 4, "max_pages": 12},
    "durability": "flush",
    "on_conflict": "retry",
}
SUMMARISE = """
import json, os, sys, time
word = json.load(sys.stdin)['messages'][0]['content'].split()[0]
with open(sys.argv[1], 'a') as log:
    log.write(word + chr(10))
time.sleep(0.05)
print(word + ' was asked')
"""
WRITE = """
import json, sys, time
from memci.engine.engine import Engine
store, name, turns, config = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
with Engine(store, config) as engine, engine.session('chat') as session:
    for number in range(turns):
        words = ' '.join(f'{name}x{number}x{place}' for place in range(20))
        asked = {'role': 'user', 'content': f'question{name}{number} {words}'}
        session.extend([asked, {'role': 'assistant', 'content': f'answer {words}'}], key=f'{name}-{number}')
        print(number, flush=True)
        session.refresh()
        session.window()
        time.sleep(0.02)
"""


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return f"file:{tmp_path}/sessions"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_url()


@pytest.mark.slow
def test_each_page_has_one_summary_and_none_is_paid_for_twice(store: str, tmp_path: Path) -> None:
    """Whoever is killed when: every message is there, nobody conflicts, and each page is asked of once."""
    script, log, settings = tmp_path / "summarise.py", tmp_path / "log", tmp_path / "work.yaml"
    script.write_text(SUMMARISE)
    settings.write_text(f"summarizer:\n  command: ['{sys.executable}', '{script}', '{log}']\n")
    chance = random.Random(7)  # noqa: S311 (for kills)

    def worker() -> "subprocess.Popen[str]":
        command = ["work", "--store", store, "--session", "chat", "--config", str(settings), "--every", "0.05"]
        return process("-m", "memci", *command)

    def writer(name: str) -> "subprocess.Popen[str]":
        return process("-c", WRITE, store, name, str(TURNS), codec.encode(CONFIG).decode())

    with Engine(store, CONFIG) as engine, engine.session("chat") as session:
        session.append({"role": "system", "content": "Be brief."})
    workers, writers = [worker() for _ in range(WORKERS)], [writer(f"w{number}") for number in range(WRITERS)]
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.3, 0.8))
        place = chance.randrange(WORKERS)
        os.kill(workers[place].pid, signal.SIGKILL)
        workers[place].communicate()
        workers[place] = worker()
    told = [each.communicate(timeout=120)[0].split() for each in writers]
    time.sleep(0.5)
    for each in workers:
        each.send_signal(signal.SIGKILL)
        each.communicate()
    assert [list(map(str, range(TURNS)))] * WRITERS == told
    with Engine(store, CONFIG) as engine, engine.session("chat") as session:
        assert 1 + 2 * WRITERS * TURNS == len(list(session.messages()))
        assert () == session.verify().problems
        prepared = [event.data for event in session.events("summary_prepared")]
        assert {1} == set(Counter((data["page"], data["sha256"]) for data in prepared).values())
        assert len([data for data in prepared if data["title"]]) > 10
        assert {1} == set(Counter(log.read_text().split()).values())  # claims of those that were killed last longer than this
        replayed = State(session="chat")
        for record in session._core.store.journal.read():
            apply(replayed, from_record(record), record.seq)
        assert state_codec.to_mapping(replayed) == state_codec.to_mapping(session._core.state)


def process(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # noqa: S603 (fixed words)
