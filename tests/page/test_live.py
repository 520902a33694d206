"""The page from a server: the same views, of a session that goes on."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import pytest

import memci
from memci.engine.session import Session
from memci.page.assets import MODULES
from memci.page.live import POLICY, LivePage, page_file
from tests.page.browser import busy_after_click, go, new_page, settle
from tests.page.sessions import eventful, say

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

pytestmark = [pytest.mark.browser, pytest.mark.server]


@pytest.fixture
def session() -> Iterator[Session]:
    """A session in which much happened."""
    with eventful() as opened:
        yield opened


@pytest.fixture
def served(session: Session) -> Iterator[str]:
    """The address of a server that gives its page."""
    live, lock = LivePage(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            name = asked.path.rpartition("/")[2]
            found = page_file(name) if asked.path.startswith("/sessions/") else None
            if found is None and "/page/" in asked.path:
                with lock:
                    found = json.dumps(live.answer(session, name, dict(parse_qsl(asked.query)))), "application/json"
            if found is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", found[1])
            self.send_header("Content-Security-Policy", POLICY)
            self.end_headers()
            self.wfile.write(found[0].encode())

        def log_message(self, *_words: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/sessions/chat/"
        server.shutdown()
        thread.join()


def test_the_page_is_served_with_a_strict_policy(browser: "Browser", session: Session, served: str) -> None:
    """From a server the page shows windows, pages and searches of its own, and what was said since it was opened first."""
    page, problems, asked = new_page(browser), list[str](), list[str]()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(served)
    settle(page)
    for view, place in (("window", ".message"), ("compare", ".message"), ("pages", ".row"), ("cost", "table >> text=truncate")):
        go(page, f"#view={view}&call=20")
        assert page.locator(f"#view-{view} {place}").count() > 0
    page.locator("#tab-search").click()
    page.get_by_role("searchbox", name="Search").fill("hotel in town 5")
    page.get_by_role("button", name="Search", exact=True).click()
    page.locator(".hit").first.get_by_role("button").click()
    settle(page)
    assert "usr-5/1" in page.locator(".detail").inner_text()
    say(session, "One thing more.", "Gladly.")
    page.reload()
    settle(page)
    assert f"{session.turn} turns" in page.locator("#about").inner_text()
    page.context.close()
    assert [] == [problem for problem in problems if "404" not in problem]  # a picture of the page, and notices, are not there
    assert {True} == {url.startswith(served.removesuffix("sessions/chat/")) for url in asked}


def test_what_a_server_refuses_is_said(browser: "Browser", served: str) -> None:
    """Where the server has no answer, the page says so in its place for news, and goes on."""
    page = new_page(browser)
    page.goto(served)
    settle(page)
    page.route("**/page?*", lambda route: route.fulfill(status=503))
    page.get_by_role("tab", name="Pages").click()
    page.locator(".row").first.click()
    page.locator("#moment").get_by_text("This cannot be shown: page: 503").wait_for()
    page.get_by_role("tab", name="Window").click()
    settle(page)
    assert page.locator("#view-window .message").count() > 0
    page.context.close()


def test_results_are_busy_until_they_are_drawn(browser: "Browser", served: str) -> None:
    """While the server searches, the place for results is marked as busy for assistive technology, and nothing else is."""
    page = new_page(browser)
    page.goto(f"{served}#view=search")
    settle(page)
    page.get_by_role("searchbox", name="Search").fill("hotel in town 5")
    busy, hits = busy_after_click(page, "#view-search button", ".hit")
    assert [".results"] == busy
    assert hits > 0
    page.context.close()


def test_the_latest_search_is_shown(browser: "Browser", served: str) -> None:
    """An answer that comes after that of a later search is not shown."""
    page, held = new_page(browser), list["Route"]()

    def hold(route: "Route") -> None:
        held.append(route)

    page.route("**/page/search?query=town+5", hold)
    page.goto(f"{served}#view=search")
    settle(page)
    for words in ("town 5", "town 7"):
        page.get_by_role("searchbox", name="Search").fill(words)
        page.get_by_role("button", name="Search", exact=True).click()
    first = page.locator(".hit").first
    first.get_by_text("usr-7").wait_for()
    held[0].continue_()
    settle(page)
    assert "usr-7" in first.inner_text()
    page.context.close()


def test_every_module_of_the_page_is_given() -> None:
    """Each module that a module imports is given by its name; no other file is."""
    for name in MODULES:
        found = page_file(f"{name}.js")
        assert found is not None
        assert "text/javascript; charset=utf-8" == found[1]
    assert page_file("page.css") is not None
    for name in ("../document.py", "index.html", "none.js", "page.css/", ".js"):
        assert page_file(name) is None


@pytest.mark.parametrize(
    ("name", "query", "argument"),
    [
        ("none", {}, "name"),
        ("search", {}, "query"),
        ("page", {}, "index"),
        ("window", {}, "seq"),
        ("window", {"seq": "x"}, "seq"),
        ("window", {"seq": "-1"}, "seq"),
        ("window", {"seq": "3", "before": "²"}, "before"),
    ],
)
def test_what_cannot_be_asked_is_an_error(session: Session, name: str, query: dict[str, str], argument: str) -> None:
    """Another name, a part of the query that is missing, and what is no number are told by name."""
    with pytest.raises(memci.ArgumentError, match=argument):
        LivePage().answer(session, name, query)


def test_an_event_that_is_not_there_is_an_error(session: Session) -> None:
    """A window after an event that there is not is the error of the session."""
    with pytest.raises(memci.ConfigError, match="there is no event"):
        LivePage().answer(session, "window", {"seq": str(session.seq + 1)})
    with pytest.raises(memci.PageNotFoundError):
        LivePage().answer(session, "page", {"index": "usr-999"})
