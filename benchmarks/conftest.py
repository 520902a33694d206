"""Options of the benchmarks, the histories that they share, and the table that they print."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import history
from benchmarks.bench import Bench
from benchmarks.opened import Opened, opened_copy
from benchmarks.report import Report

LENGTHS = "100,1000,10000,100000"
MEMORY_DISK = Path("/dev/shm")  # noqa: S108 (a directory of its own is made in it)
REPORT = pytest.StashKey[Report]()

Open = Callable[[int], AbstractContextManager[Opened]]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("memci")
    group.addoption("--bench-turns", default=LENGTHS, help=f"lengths of the histories in turns ({LENGTHS})")
    group.addoption(
        "--bench-dir",
        type=Path,
        help="where histories are built, and found again by the next run; by default a directory that is removed, in memory "
        "where there is such a disk",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin the report."""
    config.stash[REPORT] = Report()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what takes ``turns`` at each length, and what takes ``pair`` for each length and ten times that."""
    lengths = sorted({int(length) for length in metafunc.config.getoption("--bench-turns").split(",")})
    if "turns" in metafunc.fixturenames:
        metafunc.parametrize("turns", lengths)
    if "pair" in metafunc.fixturenames:
        pairs = [(turns, 10 * turns) for turns in lengths if 10 * turns in lengths]
        metafunc.parametrize("pair", pairs, ids=[f"{small}-{large}" for small, large in pairs])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table."""
    for line in config.stash[REPORT].lines():
        terminalreporter.write_line(line)


def pytest_benchmark_update_json(config: pytest.Config, benchmarks: object, output_json: dict[str, Any]) -> None:
    """Add to the file what is not one operation's time."""
    del benchmarks
    output_json["memci"] = config.stash[REPORT].to_mapping()


@pytest.fixture(scope="session")
def bench_dir(pytestconfig: pytest.Config) -> Iterator[Path]:
    """Return the directory for histories and copies."""
    chosen: Path | None = pytestconfig.getoption("--bench-dir")
    if chosen is not None:
        chosen.mkdir(parents=True, exist_ok=True)
        yield chosen.absolute()
        return
    directory = Path(tempfile.mkdtemp(prefix="memci-bench-", dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def histories(pytestconfig: pytest.Config, bench_dir: Path) -> dict[int, Path]:
    """Return the stores of the histories by length in turns."""
    lengths = [int(length) for length in pytestconfig.getoption("--bench-turns").split(",")]
    start, start_cpu = perf_counter(), process_time()
    found = history.build(bench_dir, lengths)
    spent = {"histories": lengths, "built_in_s": perf_counter() - start, "CPU_s": process_time() - start_cpu}
    pytestconfig.stash[REPORT].growth.append(spent)
    return found


@pytest.fixture
def scratch(bench_dir: Path) -> Iterator[Path]:
    """Return a directory for copies, removed after the test."""
    directory = bench_dir / "scratch"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def open_copy(histories: dict[int, Path], scratch: Path) -> Open:
    """Return what opens a copy of the history of a length."""

    def open_one(turns: int) -> AbstractContextManager[Opened]:
        return opened_copy(histories[turns], scratch / str(turns), turns)

    return open_one


@pytest.fixture
def bench(benchmark: BenchmarkFixture, pytestconfig: pytest.Config) -> Bench:
    """Return what times and counts."""
    return Bench(benchmark, pytestconfig.stash[REPORT])


@pytest.fixture
def report(pytestconfig: pytest.Config) -> Report:
    """Return the report of the run."""
    return pytestconfig.stash[REPORT]
