"""The other parts of the torture bench in small: each one runs, finds nothing, and says what it did."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torture.system_calls import NO_STRACE
from tests.torture.writers import Call, problems_with

pytestmark = [pytest.mark.slow, pytest.mark.server]

ROOT = Path(__file__).parents[2]


def run(part: str, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a part as ``make torture`` does, with its files in a directory of the test's own."""
    command = [sys.executable, "-m", f"tests.torture.{part}", *arguments, "--directory", str(directory)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603 (fixed words)


@pytest.mark.parametrize(
    ("part", "arguments", "figure"),
    [
        ("kills", ["--kills", "12"], "12 kills"),
        ("damage", ["--cases", "40"], "40 cases, 80 looks"),
        ("writers", ["--processes", "4", "--appends", "60"], "4 processes, 60 appends: 0 problems"),
        ("driver", ["--seed", "4", "--store", "memory"], "driver: 1 sessions, 120 operations"),
        ("trees", ["--sessions", "2"], "trees: 2 sessions, 100 operations"),
        ("serving", ["--minutes", "0.05"], "broken or slow requests: 0 problems"),
    ],
)
def test_a_part_finds_nothing(part: str, arguments: list[str], figure: str, tmp_path: Path) -> None:
    """A short run of each part prints its figures, and loses nothing."""
    done = run(part, tmp_path, *arguments)
    assert "" == done.stderr
    assert figure in done.stdout
    assert 0 == done.returncode


def test_system_calls_that_fail_lose_nothing(tmp_path: Path) -> None:
    """A few injections lose nothing where there is strace; elsewhere the run says so, with an exit code of its own."""
    done = run("system_calls", tmp_path, "--sample", "8")
    assert (0 if shutil.which("strace") else NO_STRACE) == done.returncode
    assert ("8 injections" if shutil.which("strace") else "apt-get install strace") in done.stdout


def test_sqlite_syncs_as_often_as_the_docs_say() -> None:
    """An append to a store that promises the disk syncs, where there is strace to see it; elsewhere the run says so."""
    command = [sys.executable, "-m", "tests.torture.sqlite_syncs"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603 (fixed words)
    assert (0 if shutil.which("strace") else NO_STRACE) == done.returncode
    assert ("fsync: " if shutil.which("strace") else "apt-get install strace") in done.stdout


def test_a_soak_reads_everything_back(tmp_path: Path) -> None:
    """All messages of a short soak are read back in order; its memory is that of a session which still warms up."""
    done = run("soak", tmp_path, "--turns", "100")
    assert "200 messages read back in order" in done.stdout


@pytest.mark.parametrize("store", ["postgres", "sqlite", "file", "s3"])
def test_users_lose_nothing(store: str) -> None:
    """A few users on two workers, one of which is killed now and then."""
    asked = ["--store", store, "--users", "12", "--turns", "3", "--processes", "2", "--kill-every", "2"]
    command = [sys.executable, "-m", "tests.torture.users", *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603 (fixed words)
    assert "0 messages lost, 0 doubled, 0 words of other tenants, 0 errors" in done.stdout
    assert 0 == done.returncode


def test_agents_go_on() -> None:
    """Three agents with one context, one of which is killed now and then."""
    command = [sys.executable, "-m", "tests.torture.agents", "--store", "sqlite", "--steps", "12"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603 (fixed words)
    assert "7 handoffs" in done.stdout
    assert "0 problems" in done.stdout
    assert 0 == done.returncode


def test_erasers_leave_nothing() -> None:
    """Workers erase while others write, one of which is killed now and then."""
    command = [sys.executable, "-m", "tests.torture.erasers", "--seconds", "8", "--kill-every", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603 (fixed words)
    assert "0 problems" in done.stdout
    assert 0 == done.returncode


@pytest.mark.parametrize(
    ("history", "problem"),
    [
        ([(1, "0 0"), (2, "1 0"), (3, "0 1")], ""),
        ([(1, "0 0"), (2, "0 1")], "lost"),
        ([(1, "0 0"), (2, "0 1"), (3, "1 0"), (4, "1 0")], "twice"),
        ([(1, "0 0"), (2, "0 1"), (3, "1 0"), (4, "9 9")], "nobody"),
        ([(1, "0 1"), (2, "0 0"), (3, "1 0")], "before one began"),
        ([(1, "0 0"), (4, "1 0"), (5, "0 1")], "does not see"),
        ([(0, "0 0"), (1, "1 0"), (2, "0 1")], "sees what was appended after"),
    ],
)
def test_a_history_that_cannot_be_is_told(history: list[tuple[int, str]], problem: str) -> None:
    """The check of concurrent writers tells a history that explains what everybody saw from one that does not."""
    appends = [[(10, 20), (50, 60)], [(30, 40)]]
    looks = [Call(45, 48, 2)]
    told = problems_with(history, appends, looks)
    assert bool(problem) == bool(told)
    assert problem in " ".join(told)
