"""The page as one file: what stands in it, and that nothing of a conversation is markup there."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest

import memci
from memci.engine.session import Session
from memci.page.assets import one_script
from memci.page.document import document
from tests.page.sessions import SMALL, eventful, trip


class Elements(HTMLParser):
    """The elements of a document: tag, attributes, text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self._inside = False  # whether nothing came since the last start of an element but text
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))
        self._inside = True

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            tag, attrs, text = self.found[-1]
            self.found[-1] = (tag, attrs, text + data)

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attrs, text) for name, attrs, text in self.found if name == tag]

    def chunk(self, name: str) -> Any:  # noqa: ANN401 (a JSON value)
        (text,) = (text for attrs, text in self.of("script") if attrs.get("id") == name)
        return json.loads(text) if name == "overview" else json.loads(gzip.decompress(base64.b64decode(text)))


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """A session in which much happened. No test writes to it."""
    with eventful() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(session: Session) -> Elements:
    """Its page, with a few windows."""
    return Elements(document(session, most_windows=12, asked=["town 5"], presets=["truncate"]))


def test_the_policy_names_what_may_run(page: Elements) -> None:
    """The page may run its own script and use its own style, by their hashes, and load nothing."""
    policy = next(attrs["content"] for attrs, _ in page.of("meta") if attrs.get("http-equiv") == "Content-Security-Policy") or ""
    assert policy.startswith("default-src 'none'; ")
    for tag, kind in (("script", "script-src"), ("style", "style-src")):
        (text,) = (text for attrs, text in page.of(tag) if attrs.get("type") in ("module", None))
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_policy_comes_before_anything_else(session: Session) -> None:
    """No element that the policy is for stands before it."""
    told = document(session, most_windows=2, presets=[])
    assert told.index("Content-Security-Policy") < min(told.index("<script"), told.index("<style"))


def test_the_page_refers_to_nothing_elsewhere(page: Elements) -> None:
    """No element has an address but those within the page."""
    addresses = [
        value for _, attrs, _ in page.found for name, value in attrs.items() if name in ("src", "href", "action", "data")
    ]
    assert ["#views"] == addresses


def test_windows_stand_in_the_page_as_they_were_sent(session: Session, page: Elements) -> None:
    """Each window of the page has the messages of its event, stored once, and what it leaves out is told."""
    facts = page.chunk("overview")
    windows = page.chunk("windows")
    assert [window["number"] for window in windows] == facts["kept"]
    assert len(windows) <= 12 < len(facts["calls"]["seq"])
    messages = [message for start in facts["starts"] for message in page.chunk(f"messages-{start}")]
    for window in windows:
        sent = session.render(at=window["seq"]).messages
        assert [message["content"] for message in sent] == [messages[number]["text"] for number in window["messages"]]
    assert len({json.dumps(message) for message in messages}) == len(messages)


def test_every_page_stands_in_the_page_with_its_messages(session: Session, page: Elements) -> None:
    """The details of all pages are there, in the order of the table."""
    facts = page.chunk("overview")
    starts = range(0, len(facts["pages"]["index"]), facts["pages_a_chunk"])
    details = [detail for start in starts for detail in page.chunk(f"pages-{start}")]
    assert facts["pages"]["index"] == [detail["index"] for detail in details]
    assert [facts.entries for facts in session.pages()] == [len(detail["entries"]) for detail in details]


def test_searches_and_presets_stand_in_the_page(page: Elements) -> None:
    """What was asked for comes first among the searches; presets stand beside the session's settings."""
    assert "town 5" == page.chunk("searches")[0]["query"]
    assert ["now", "truncate"] == page.chunk("presets")["columns"]


def test_a_page_is_the_same_whenever_it_is_written(session: Session) -> None:
    """The same session gives the same bytes."""
    assert document(session, presets=[]) == document(session, presets=[])


@pytest.mark.slow
def test_what_was_said_is_no_markup() -> None:
    """Text that would end a script, or begin one, changes no element of the page, wherever it stands."""
    bad = "</script><script>alert(1)</script><img src=x onerror=alert(1)><!-- ]]> \u2028 & \x00"

    def written(text: str) -> Elements:
        with memci.Engine("memory:", SMALL) as engine, engine.session("s") as session:
            session.append({"role": "system", "content": text})
            session.append({"role": "user", "content": text, "name": text})
            session.window(extra={"told": text})
            session.append({"role": "assistant", "content": text})
            session.describe(title=text)
            trip(session, 20)
            return Elements(document(session, asked=[text]))

    hostile, plain = written(bad), written("Hello.")
    assert [tag for tag, _, _ in plain.found] == [tag for tag, _, _ in hostile.found]
    assert bad == hostile.chunk("overview")["title"]
    assert bad == hostile.chunk("searches")[0]["query"]


def test_modules_make_one_script() -> None:
    """The one script has each module once, no import or export is left, and no name is declared twice."""
    script = one_script("embedded")
    assert not re.search(r"^(?:import|export)\b", script, re.MULTILINE)
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", script, re.MULTILINE)
    assert len(names) > 40
    assert sorted(set(names)) == sorted(names)
    assert script.index("function visible(") < script.index("function start(")


SINKS = (
    *("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "createContextualFragment"),
    *("eval(", "Function(", "fetch(", "XMLHttpRequest", "WebSocket", "EventSource", "sendBeacon", "import("),
)


@pytest.mark.parametrize("sink", SINKS)
def test_the_script_has_no_sink(sink: str) -> None:
    """Nothing in the script of the file takes text as markup or code, or asks a server."""
    assert sink not in one_script("embedded")
