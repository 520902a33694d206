"""A pytest plugin for the markers by cost: ``slow``, ``server``, ``browser`` and ``frameworks``.

It does four things:

* A file whose ``pytestmark`` excludes all its tests from the run is not imported, so ``make test`` needs none of the packages
  that only such files import.
* A failure is printed when it happens, and not only at the end of the run.
* A test that starts a server or a browser without the marker for it fails.
* Tests of the lower layers run first, because most other failures follow from theirs; tests with a marker run last.
"""

import itertools
import re
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.expression import Expression

COSTS = ("slow", "server", "browser", "frameworks")
QUICK = f"not ({' or '.join(COSTS)})"
"""The ``-m`` expression of `make test`."""

LAYERS = ("messages", "chapters", "archive", "attp", "engine")

_SERVERS = {"postgres", "initdb", "valkey-server", "redis-server"}
_BROWSERS = {"chromium", "node"}  # Playwright's driver runs on node
_PYTHON_SERVERS = {"serve", "uvicorn", "tests.chat.small_model"}


def pytest_configure(config: pytest.Config) -> None:
    """Watch for servers and browsers for the rest of the process: an audit hook cannot be removed."""
    config.pluginmanager.register(_Starts(), "memci-starts")
    if not hasattr(config, "workerinput"):  # xdist's main process, or the only one
        config.pluginmanager.register(_Failures(config), "memci-failures")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a file all of whose tests the ``-m`` expression excludes."""
    expression = config.option.markexpr
    if not expression or collection_path.suffix != ".py":
        return None
    marks = file_marks(collection_path.read_text(encoding="utf-8"))
    return True if marks and not may_select(expression, marks) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by markers, then by layer; the order within a file stays."""
    items.sort(key=_rank)


def file_marks(source: str) -> set[str]:
    """Return the cost markers that a test file gives to all its tests by ``pytestmark``."""
    assignment = re.search(r"^pytestmark = .*(?:\n    .*)*", source, re.MULTILINE)
    return set(re.findall(r"pytest\.mark\.(\w+)", assignment.group())) & set(COSTS) if assignment else set()


def may_select(expression: str, marks: set[str]) -> bool:
    """Return True if a test with these markers, and any others, can match the expression.

    The markers that a single test adds are not known before its file is imported, so all combinations of the names in the
    expression are tried.
    """
    others = sorted(set(re.findall(r"\w+", expression)) - marks)
    compiled = Expression.compile(expression)
    for chosen in itertools.product((False, True), repeat=len(others)):
        present = marks | set(itertools.compress(others, chosen))
        if compiled.evaluate(lambda name, /, present=present, **_: name in present):
            return True
    return False


def _rank(item: pytest.Item) -> tuple[bool, int]:
    parts = item.path.parts
    layer = next((place for place, name in enumerate(LAYERS) if name in parts), len(LAYERS))
    return any(item.get_closest_marker(mark) for mark in COSTS), layer


class _Failures:
    """Prints the name of a test as soon as it has failed."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.write_line(f"\nfailed: {report.nodeid}", red=True)


class _Starts:
    """Notes which servers and browsers are started, and by which test or fixture."""

    def __init__(self) -> None:
        self._item: pytest.Item | None = None
        self._missing: set[str] = set()
        self._shared: list[str] = []  # fixtures of several tests that are being set up
        self._needs: dict[str, set[str]] = {}  # markers that users of such a fixture need, by its name
        sys.addaudithook(self._audit)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._item, self._missing = item, set()
        try:
            return (yield)
        finally:
            self._item = None

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: "pytest.FixtureDef[Any]") -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        self._shared.append(fixturedef.argname)
        try:
            return (yield)
        finally:
            self._shared.pop()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        outcome = yield
        if isinstance(item, pytest.Function):
            for name in item._request.fixturenames:  # those of getfixturevalue, too
                self._require(item, self._needs.get(name, set()))
        if self._missing:
            marks = ", ".join(f"@pytest.mark.{mark}" for mark in sorted(self._missing))
            pytest.fail(f"{item.nodeid} starts a server or a browser: mark it {marks}", pytrace=False)
        return outcome

    def _require(self, item: pytest.Item, marks: set[str]) -> None:
        self._missing |= {mark for mark in marks if item.get_closest_marker(mark) is None}

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in {"socket.bind", "subprocess.Popen"} or self._item is None:
            return
        mark = _started(arguments[1]) if event == "subprocess.Popen" else _listens(arguments[1])
        if mark:
            for name in self._shared:
                self._needs.setdefault(name, set()).add(mark)
            self._require(self._item, {mark})


def _listens(address: object) -> str:
    """Return the marker that a test needs to bind an address; urllib3 binds one when imported, to see if there is IPv6."""
    return "" if address == ("::1", 0) else "server"


def _started(command: object) -> str:
    """Return the marker that a test needs to start a command, or an empty text."""
    words = [command] if isinstance(command, str | bytes) else list(command) if isinstance(command, Sequence) else []
    names = [Path(word.decode() if isinstance(word, bytes) else str(word)).name for word in words]
    if not names:
        return ""
    if names[0] in _SERVERS or _PYTHON_SERVERS & set(names):
        return "server"
    return "browser" if names[0] in _BROWSERS else ""
