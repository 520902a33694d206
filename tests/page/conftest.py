"""A browser, and pages of sessions that are looked at in it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from memci.engine.session import Session
from memci.page.document import document
from tests.page.browser import alone, go, launched, new_page, settle

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

    def settled(self) -> "Page":
        """Return the page once everything in it is drawn. Call this after each action and before reading the page."""
        settle(self.page)
        return self.page

    def turn(self, view: str) -> None:
        """Go to a view, and wait until it is drawn."""
        self.page.get_by_role("tab", name=view).click()
        self.settled()

    def go(self, place: str) -> None:
        """Go to another place of the page, a fragment of its address, and wait until it is drawn."""
        go(self.page, place)

    def texts(self, place: str) -> list[str]:
        """Return the text of each element at a place once everything is drawn."""
        return self.settled().locator(place).all_inner_texts()


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
        scheme = "dark" if dark else "light"
        page = new_page(browser, viewport={"width": wide, "height": high}, color_scheme=scheme, offline=True)
        seen = Seen(page, path.as_uri())
        opened.append(seen)
        seen.page.on("pageerror", lambda error: seen.problems.append(f"error: {error}"))
        seen.page.on("console", lambda message: seen.problems.append(f"console: {message.text}"))
        seen.page.on("dialog", lambda dialog: refuse(seen, dialog))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.goto(f"{seen.url}{place}")
        seen.settled()
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
