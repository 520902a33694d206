"""The page of a session of 1,500 pages: the first view needs the beginning of the file, and no list is drawn whole."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest

import memci
from tests.page.browser import new_page, settle
from tests.page.conftest import Look, once, written

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.server, pytest.mark.slow]

PAGES = 1_500
"""More than the band has columns, more messages than presets are compared for, and more windows than a file holds."""

CONFIG = {"budget": {"window": 1_500, "reserve": 0}, "counter": "approximate", "durability": "flush"}

COUNT_BARS = """(() => {
  window.bars = 0;
  const kept = OffscreenCanvasRenderingContext2D.prototype.fillRect;
  OffscreenCanvasRenderingContext2D.prototype.fillRect = function (...all) { window.bars += 1; return kept.apply(this, all); };
})()"""
"""Counts the bars that are painted in the picture of the band."""


def write(path: Path) -> None:
    """Write the page of a session of 1,500 turns."""
    with memci.Engine("memory:", CONFIG) as engine, engine.session("long") as session:
        for first in range(1, PAGES + 1, 10):
            several = range(first, first + 10)
            asked = [
                {"role": "user", "content": f"What did part {number} of machine {number % 97} cost in March?"}
                for number in several
            ]
            told = [
                {"role": "assistant", "content": f"Part {number} cost {number * 7} euros, order NL-{number}."}
                for number in several
            ]
            session.extend([message for turn in zip(asked, told, strict=True) for message in turn])
            session.window()
        written(session, path)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That page, which one worker writes."""
    return once(tmp_path_factory, "long.html", write)


@attrs.frozen
class SlowFile:
    """A file on a server that sends its beginning, and the rest when `rest` is set."""

    url: str
    beginning: bytes
    rest: threading.Event


@pytest.fixture
def slow_file(long: Path) -> Iterator[SlowFile]:
    """The page of the long session, whose beginning ends with its script."""
    data, end = long.read_bytes(), b"</script>"
    length = data.index(end, data.index(b"<script>")) + len(end)
    rest = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/long.html":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[:length])
            rest.wait()
            self.wfile.write(data[length:])

        def log_message(self, *_words: object) -> None:
            """Write no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield SlowFile(f"http://127.0.0.1:{server.server_port}/long.html", data[:length], rest)
        rest.set()
        server.shutdown()
        thread.join()


def test_the_first_view_needs_the_beginning_of_the_file(browser: "Browser", slow_file: SlowFile) -> None:
    """The figures and the band over all calls are drawn, with few elements, before the browser has a page or a message."""
    page = new_page(browser)
    page.add_init_script(COUNT_BARS)
    page.goto(slow_file.url, wait_until="commit")
    page.locator("main:not([aria-busy])").wait_for()
    assert f"{PAGES:,}" in page.locator("#figures").inner_text()
    assert PAGES / 2 < page.evaluate("bars") < 10 * PAGES
    assert page.locator("*").count() < 300
    assert len(slow_file.beginning) < 250 * PAGES
    assert "true" == page.locator("#view-window").get_attribute("aria-busy")
    slow_file.rest.set()
    settle(page)
    assert page.locator("#view-window .message").count() > 0
    page.context.close()


def test_lists_draw_what_is_in_sight(look: Look, long: Path) -> None:
    """Of 1,500 rows at most 60 are drawn, wherever the list is scrolled to, and a key goes to the last one."""
    seen = look(long, "#view=pages")
    rows = seen.page.locator(".row")
    assert 10 < rows.count() < 60
    listed = seen.page.get_by_role("listbox")
    listed.focus()
    listed.press("End")
    last = seen.settled().get_by_role("listbox").locator("[aria-selected=true]")
    assert f"usr-{PAGES}" in last.inner_text()
    assert (str(PAGES), str(PAGES)) == (last.get_attribute("aria-setsize"), last.get_attribute("aria-posinset"))
    assert 10 < rows.count() < 60
    assert f"usr-{PAGES}/2" in seen.page.locator(".detail").inner_text()


def test_what_is_left_out_is_said(look: Look, long: Path) -> None:
    """The file holds some of the windows and says so; presets are left out, and how to have them is said."""
    seen = look(long, "#view=cost")
    assert "memci html --preset NAME" in seen.page.locator("#view-cost").inner_text()
    facts = seen.page.evaluate("JSON.parse(document.getElementById('overview').textContent)")
    assert 300 < len(facts["kept"]) <= 400
    assert PAGES + 1 == len(facts["calls"]["seq"])
    left_out = next(number for number in range(PAGES // 2, PAGES) if number not in set(facts["kept"]))
    seen.go(f"#view=window&call={left_out + 1}")
    assert f"of {PAGES + 1:,} windows" in seen.page.locator("#view-window .notice").inner_text()


def test_a_step_paints_no_bar(look: Look, long: Path) -> None:
    """A step of the slider draws the band from a picture that is kept; other colours paint its bars again."""
    seen = look(long)
    seen.page.evaluate(COUNT_BARS)
    for _ in range(5):
        seen.page.locator("#call-before").click()
    assert 0 == seen.settled().evaluate("bars")
    seen.page.emulate_media(color_scheme="dark")
    seen.page.wait_for_function("() => window.bars > 0")
