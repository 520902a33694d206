"""A browser, and pages of sessions that are looked at in it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from memci.engine.session import Session
from memci.page.document import document
from tests.page.browser import alone, launched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page


@attrs.frozen
class Seen:
    """A page in the browser, and what it did that nobody should see: errors, messages of the console, requests."""

    page: "Page"
    url: str
    problems: list[str] = attrs.field(factory=list)
    requests: list[str] = attrs.field(factory=list)

    def check(self) -> None:
        """Assert that it went without an error, and that nothing was asked for but the file itself."""
        assert [] == self.problems
        assert {self.url} == {request.partition("#")[0] for request in self.requests}

    def ready(self) -> float:
        """Wait for the first view, and return when it was drawn and on the screen, in milliseconds by the browser's clock."""
        told: Any = self.page.wait_for_function(
            """() => {
              const [drawn] = performance.getEntriesByName("first-view");
              const [painted] = performance.getEntriesByName("first-contentful-paint");
              return drawn && painted && Math.max(drawn.startTime, painted.startTime);
            }"""
        )
        return float(told.json_value())

    def turn(self, view: str) -> None:
        """Go to a view."""
        self.page.get_by_role("tab", name=view).click()


Look = Callable[..., Seen]


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """One browser for the tests of a module: while it runs, an event loop does, beside which others cannot be run."""
    with launched() as running:
        yield running


@pytest.fixture
def look(browser: "Browser") -> Iterator[Look]:
    """Open a file in a browser that has no network and has never seen it; what it did is checked at the end of the test."""
    opened: list[Seen] = []

    def refuse(seen: Seen, dialog: "Dialog") -> None:
        seen.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def look(path: Path, place: str = "", *, wide: int = 1280, high: int = 900, dark: bool = False) -> Seen:
        context = browser.new_context(
            viewport={"width": wide, "height": high}, color_scheme="dark" if dark else "light", offline=True
        )
        seen = Seen(context.new_page(), path.as_uri())
        opened.append(seen)
        seen.page.on("pageerror", lambda error: seen.problems.append(f"error: {error}"))
        seen.page.on("console", lambda message: seen.problems.append(f"console: {message.text}"))
        seen.page.on("dialog", lambda dialog: refuse(seen, dialog))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.goto(f"{seen.url}{place}")
        seen.ready()
        return seen

    yield look
    for seen in opened:
        seen.page.context.close()
    for seen in opened:
        seen.check()


def once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a file that one of all workers of a run makes."""
    base = tmp_path_factory.getbasetemp()
    path = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with alone(path.with_suffix(".lock")):
        if not path.exists():
            make(path)
    return path


def written(session: Session, path: Path, **more: Any) -> Path:  # noqa: ANN401 (as document takes them)
    """Write the page of a session."""
    path.write_text(document(session, **more), encoding="utf-8")
    return path
