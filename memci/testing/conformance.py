"""A pytest plugin that reports what ran of the conformance suite, by store and capability.

docs/stores.md says how to name it, which is before anything of memci is imported. A store's column has the ``store_name`` of its
test class, or the name of the class.
"""

from collections import Counter

import attrs
import pytest

_PROPERTY = "memci_conformance"
_CELL = 9


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that asks for the table."""
    parser.getgroup("memci").addoption(
        "--conformance", action="store_true", help="end with a table of what each store passed of the conformance suite"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin a report."""
    config.pluginmanager.register(ConformanceReport(table=bool(config.getoption("conformance"))), "memci-conformance-report")


@attrs.define(eq=False)
class ConformanceReport:
    """Listens to a run and counts."""

    table: bool  # print the whole table, and not just a line
    ran: Counter[tuple[str, str]] = attrs.field(factory=Counter)  # how many tests ran, by store and capability
    passed: Counter[tuple[str, str]] = attrs.field(factory=Counter)  # how many of them passed, their fixtures included
    _called: set[str] = attrs.field(factory=set)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Note store and capability where the reports of a test carry them, also from another process."""
        owner, name = getattr(item, "cls", None), getattr(item, "originalname", "")
        part = next((each for each in getattr(owner, "__mro__", ()) if name in vars(each)), None)
        if owner is not None and (capability := getattr(part, "capability", "")):
            item.user_properties.append((_PROPERTY, [owner.store_name or owner.__name__, capability]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test when its last phase is over."""
        found = dict(report.user_properties).get(_PROPERTY)
        if not isinstance(found, list):
            return
        if report.when == "call" and report.passed:
            self._called.add(report.nodeid)
        if report.when == "teardown":
            store, capability = found
            self.ran[store, capability] += 1
            self.passed[store, capability] += report.passed and report.nodeid in self._called

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what was counted."""
        if not self.ran:
            return
        if self.table:
            terminalreporter.section("conformance: tests passed / run")
            for line in self.lines():
                terminalreporter.line(line)
            return
        stores, passed, ran = len({store for store, _ in self.ran}), self.passed.total(), self.ran.total()
        terminalreporter.line(f"conformance: {stores} stores, {passed} of {ran} passed (--conformance has the table)")

    def lines(self) -> list[str]:
        """Return the table: a row for each capability, a column for each store, and whose columns they are."""
        from memci.testing.journal_suite import Suite  # noqa: PLC0415 (as a plugin, this is loaded before what is measured)
        from memci.testing.store_suite import StoreSuite  # noqa: PLC0415 (as above)

        stores = sorted({store for store, _ in self.ran})
        capabilities = [part.capability for part in StoreSuite.__bases__ if issubclass(part, Suite)]
        wide = max(map(len, capabilities)) + 1
        lines = [" " * wide + "".join(f"{number:>{_CELL}}" for number in range(1, len(stores) + 1))]
        for row, summed in [*((each, [each]) for each in capabilities), ("all", capabilities)]:
            sums = [
                [sum(counted[store, capability] for capability in summed) for counted in (self.passed, self.ran)]
                for store in stores
            ]
            cells = (f"{passed}/{ran}" if ran else "-" for passed, ran in sums)
            lines.append(f"{row:<{wide}}" + "".join(f"{cell:>{_CELL}}" for cell in cells))
        return [*lines, "", *(f"{number:>3}  {store}" for number, store in enumerate(stores, start=1))]
