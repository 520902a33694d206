"""Plugin of pytest: runs the tests that are named in a file, and writes down how long each one took.

It is loaded before the modules of memci, and so imports none.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

_SECONDS = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    parser.addoption("--chosen", type=Path, help="file with a JSON list of the tests to run")
    parser.addoption("--seconds", type=Path, help="file to which the seconds of each test are written, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to add up, where it was asked for."""
    if config.getoption("seconds") is not None:
        config.stash[_SECONDS] = Counter()
        config.pluginmanager.register(_Clock(config.stash[_SECONDS]))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what was not chosen."""
    if (path := config.getoption("chosen")) is not None:
        chosen = set(json.loads(path.read_text(encoding="utf-8")))
        items[:] = [item for item in items if item.nodeid in chosen]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write the sums."""
    if _SECONDS in config.stash:
        config.getoption("seconds").write_text(json.dumps(config.stash[_SECONDS]), encoding="utf-8")


class _Clock:
    def __init__(self, seconds: Counter[str]) -> None:
        self._seconds = seconds

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of a test's phase."""
        self._seconds[report.nodeid] += report.duration  # type: ignore[assignment]
