"""Processes that are killed at any moment lose nothing that they acknowledged."""

import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memci.archive.stores.file.store import FileStore
from memci.engine.engine import Engine
from tests.engine.killed_writer import append, open_session
from tests.torture.talker import CONFIG, text_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
KILLS, SHORT = 75, 15


class Nursery:
    """Writers that are killed, from one process that forks them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, *task: object) -> tuple[int, int]:
        """Return how the writer ended, as ``os.waitpid`` has it, and the last number that it told; -1 for none."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(map(str, task)) + "\n")
        self._process.stdin.flush()
        status, told = self._process.stdout.readline().split()
        return int(status), int(told)


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    command = [sys.executable, "-m", "tests.engine.killed_writer"]
    with subprocess.Popen(  # noqa: S603 (fixed words)
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        yield Nursery(process)
        assert process.stdin is not None
        process.stdin.close()


def said_in(root: Path) -> list[str]:
    """Return what is in the session, read as another process does."""
    with Engine(FileStore(root), CONFIG, read_only=True) as engine:
        return [value["content"] for value in engine.session("chat").messages()]


@pytest.mark.timeout(240)
def test_a_killed_writer_loses_nothing_acknowledged(nursery: Nursery, tmp_path: Path) -> None:
    """After each of many kills all acknowledged messages are there, in order, and the next writer goes on from there."""
    chance = random.Random(23)  # noqa: S311 (when to kill)
    number = 0
    for kill in range(KILLS):
        root = tmp_path / str(kill // SHORT)  # reading everything after each kill takes the longer the more there is
        number = 0 if kill % SHORT == 0 else number
        status, told = nursery.run("talk", root, number, chance.randrange(1, 9))
        said = said_in(root)
        assert signal.SIGKILL == status
        assert [text_of(each) for each in range(len(said))] == said
        assert told < len(said) <= told + 2
        number = len(said)
        if (kill + 1) % SHORT == 0:
            with open_session(root) as session:
                assert () == session.verify().problems


@pytest.mark.timeout(240)
def test_a_fold_killed_anywhere_loses_nothing(nursery: Nursery, tmp_path: Path) -> None:
    """A fold that is killed before, in or after any of its calls leaves all messages, and all of its pages folded or none."""
    with open_session(tmp_path / "origin") as session:
        for number in range(12):
            append(session, number)
    said = said_in(tmp_path / "origin")
    outcomes = []
    place, status = 0, -1
    while status:
        root = tmp_path / str(place)
        shutil.copytree(tmp_path / "origin", root)
        status, told = nursery.run("fold", root, place)
        assert (signal.SIGKILL, -1) == (status, told) or (0, place) == (status, told)
        assert said == said_in(root)
        with open_session(root) as session:
            archived = [facts.index for facts in session.pages() if facts.state not in ("open", "active")]
            outcomes.append(len(archived))
            session.fold("all")
            append(session, 12)
            assert () == session.verify().problems
            assert [*said, text_of(12)] == [value["content"] for value in session.messages()]
        assert [] == [path for path in root.rglob("*") if path.name.endswith(".tmp")]
        shutil.rmtree(root)
        place += 1
    assert place > 20
    assert outcomes == sorted(outcomes)
    assert 2 == len(set(outcomes))
