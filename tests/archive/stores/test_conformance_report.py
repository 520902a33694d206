"""The report of the conformance suite."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from memci.testing.journal_suite import Suite
from memci.testing.store_suite import StoreSuite

FOREIGN = """
import pytest
from memci.archive.stores.memory import MemoryStore
from memci.testing.store_suite import StoreSuite

class TestGood(StoreSuite):
    store_name = "a good store"
    @pytest.fixture
    def store(self):
        return MemoryStore()

class TestSilent(StoreSuite):
    @pytest.fixture
    def store(self):
        store = MemoryStore()
        store.durability = ""
        return store

class TestBroken(StoreSuite):
    store_name = "not made"
    @pytest.fixture
    def store(self):
        raise OSError("no disk")

def test_something_else():
    pass
"""


def report(folder: Path, *options: str) -> str:
    """Run tests of another project's stores, and return what pytest printed."""
    (folder / "conftest.py").write_text('pytest_plugins = ["memci.testing.conformance"]\n')
    (folder / "test_foreign.py").write_text(FOREIGN)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n")
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout  # noqa: S603 (fixed words)


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["0", "2"])
def test_another_project_gets_the_table(tmp_path: Path, processes: str) -> None:
    """A store of somebody else is reported by capability, from what ran and passed, also where processes share the tests."""
    printed = report(tmp_path, "--conformance", "-n", processes, "-k", "durability or tenants or something_else").splitlines()
    table = printed[next(place for place, line in enumerate(printed) if "conformance" in line) + 1 :]
    rows = {line[:16].strip(): line[16:].split() for line in table}
    assert ["1/1", "1/1", "0/1"] == rows["tenants"]
    assert ["0/1", "1/1", "0/1"] == rows["durability"]
    assert ["-", "-", "-"] == rows["journal"]
    assert ["1/2", "2/2", "0/2"] == rows["all"]
    columns = [line for line in table if line[:3].strip().isdecimal()]
    assert ["  1  TestSilent", "  2  a good store", "  3  not made"] == columns


@pytest.mark.slow
def test_other_runs_end_with_one_line(tmp_path: Path) -> None:
    """Without the option a run says in a line how many passed; a run without the suite says nothing."""
    assert "conformance: 3 stores, 1 of 3 passed" in report(tmp_path, "-k", "durability")
    assert "conformance" not in report(tmp_path, "-k", "something_else")


def test_every_part_of_the_suite_has_a_capability() -> None:
    """No test is missing in the report, and each capability is that of one part, which has tests."""
    parts = {part.capability: part for part in StoreSuite.__bases__ if issubclass(part, Suite)}
    tests = {name for name, _ in inspect.getmembers(StoreSuite, inspect.isfunction) if name.startswith("test_")}
    assert len(StoreSuite.__bases__) == len(parts)
    assert "" not in parts
    assert all(any(name.startswith("test_") for name in vars(part)) for part in parts.values())
    assert tests == {name for part in parts.values() for name in vars(part) if name.startswith("test_")}
