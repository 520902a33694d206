"""Processes that do tasks: their results, and their end."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from memci.cli.exit_code import ExitCode
from memci.quality.measuring import done
from tests.cli.processes import environment

READING = """
import sys
from functools import partial
from pathlib import Path
from memci.quality.measuring import done

try:
    list(done({path: partial(Path.read_bytes, Path(path)) for path in sys.argv[1:]}, 2))
except KeyboardInterrupt:
    sys.exit(130)
"""
"""Lets two processes read two files, to their ends."""


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_task_is_done(jobs: int) -> None:
    """Each result comes with the key of its task, whoever did it."""
    assert {number: number**2 for number in range(5)} == dict(
        done({number: partial(pow, number, 2) for number in range(5)}, jobs)
    )


def test_a_task_that_fails_ends_them_all(tmp_path: Path) -> None:
    """The error comes through, and nobody waits for a task that would never end."""
    os.mkfifo(tmp_path / "endless")
    tasks = {"endless": partial(Path.read_bytes, tmp_path / "endless"), "wrong": partial(Path.read_bytes, tmp_path / "none")}
    with pytest.raises(FileNotFoundError), closing(done(tasks, 2)) as results:
        next(results)


@pytest.mark.slow
@pytest.mark.parametrize("whom", [os.killpg, os.kill], ids=["all", "one"])
def test_an_interrupt_ends_the_processes(tmp_path: Path, whom: Callable[[int, int], None]) -> None:
    """Ctrl-C, which reaches all of them or the first one only, ends them within their tasks, and none shows a traceback."""
    files = [tmp_path / "first", tmp_path / "second"]
    for file in files:
        os.mkfifo(file)
    with (
        subprocess.Popen(  # noqa: S603 (fixed words)
            [sys.executable, "-c", READING, *map(str, files)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            start_new_session=True,
        ) as process,
        files[0].open("wb"),  # opens once a process reads it
        files[1].open("wb"),
    ):
        whom(process.pid, signal.SIGINT)
        out, err = process.communicate()  # ends when all have closed them
    assert (ExitCode.INTERRUPTED, b"", b"") == (process.returncode, out, err)
