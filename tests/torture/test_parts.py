"""The other parts of the torture bench in small: each one runs, finds nothing, and says what it did."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torture import exploring, whole
from tests.torture.power_loss import NO_MOUNT
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
        (
            "driver",
            ["--seed", "40", "--store", "file"],
            "driver: 1 sessions, 120 operations",
        ),  # tools of a window that folds for them
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


def test_the_whole_runs_a_part_alone() -> None:
    """``--only`` runs one part, with a line at its start and at its end and a table of its figures."""
    command = [sys.executable, "-m", "tests.torture.whole", "--only", "sqlite_syncs"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603 (fixed words)
    lines = done.stdout.splitlines()
    outcome = "passed" if shutil.which("strace") else "not run on this machine, or not all of it"
    assert lines[0].startswith("--- sqlite_syncs: count how often SQLite syncs; about ")
    assert any(line.startswith(f"--- sqlite_syncs: {outcome} after ") for line in lines)
    table = lines[lines.index("") + 1 :]
    assert table[0].split() == ["part", "seconds", "code", "outcome"]
    assert table[1].startswith("sqlite_syncs ")
    assert table[1].endswith(outcome)
    assert all(line.startswith("    sqlite") for line in table[2:-1])
    assert "total" == table[-1].split()[0]
    assert 0 == done.returncode


def test_a_part_that_fails_fails_the_whole() -> None:
    """Any exit code but 0 and that of a machine which cannot run the part is a failure."""
    assert not whole.Result("power_loss", 1.0, NO_MOUNT, ()).has_failed
    assert whole.Result("earlier_releases", 1.0, NO_MOUNT, ()).has_failed
    assert "FAILED with 1" == whole.Result("kills", 1.0, 1, ()).outcome


def test_exploring_says_how_to_repeat_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A property that does not hold is a failure, with the command that repeats it and what the test reported."""
    module = tmp_path / "test_small.py"
    module.write_text(
        '"""A property that does not hold."""\n'
        "from hypothesis import given, strategies\n"
        "@given(strategies.integers())\n"
        "def test_numbers_are_small(number):\n"
        "    assert number < 1000\n"
        "def test_of_no_property():\n"
        "    raise AssertionError\n"
    )
    exploring.report(exploring.explore(str(module), 7), 7)
    printed = capsys.readouterr().out
    assert f"  {module}: seed 7, 0 passed, 1 failed, " in printed
    assert "assert 1000 < 1000" in printed
    assert "test_small.py::test_numbers_are_small' --hypothesis-seed=7\n" in printed
