"""The site of the documentation: it builds, stands alone, and tells a newcomer in two clicks how a thing is done."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from mkdocstrings import Inventory

import memci
from memci.engine.settings.config import Config
from tests.test_readme import ROOT, text

pytestmark = pytest.mark.slow

TASKS = {
    "fastapi",
    "streaming",
    "tenants",
    "attachments",
    "transcripts",
    "import",
    "backup",
    "alerts",
    "choose-a-preset",
    "choose-a-store",
}

RESOURCES = {
    ("link", "href"),
    *((tag, "src") for tag in ("script", "img", "source", "iframe", "embed", "audio", "video", "input")),
}
"""What a browser fetches by itself, as it shows a page."""


class Read(HTMLParser):
    """What a built page loads, and where the links of its text and those of its navigation lead."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.page = page
        self.inside: list[str] = []  # the innermost last, as a navigation holds others
        self.resources: list[str] = []
        self.links: dict[str, set[Path]] = {"article": set(), "nav": set()}
        self.styles: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.links:
            self.inside.append(tag)
        for name, value in attrs:
            if (tag, name) in RESOURCES and ("rel", "canonical") not in attrs:
                self.resources.append(value or "")
            elif name in ("srcset", "style"):
                self.styles.append(value or "")
            elif (tag, name) == ("a", "href") and self.inside and "://" not in (value or ""):
                self.links[self.inside[-1]].add((self.page.parent / unquote(urldefrag(value or "").url)).resolve())

    def handle_endtag(self, tag: str) -> None:
        if self.inside and tag == self.inside[-1]:
            self.inside.pop()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, where each warning is an error."""
    folder = tmp_path_factory.mktemp("site").resolve()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 (fixed words)
    assert (0, "") == (done.returncode, done.stderr)
    return folder


def pages(site: Path) -> Iterator[Path]:
    found = sorted(site.rglob("*.html"))
    assert len(found) > 40
    yield from found


@pytest.mark.slow
def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    """No page, and no style sheet, names a picture, script, font or style of another host."""
    for page in pages(site):
        read = Read(page)
        assert any(name.endswith(".css") for name in read.resources)
        assert [] == [name for name in read.resources if re.match(r"(?:\w+:)?//", name)], page
        assert [] == [style for style in read.styles if "//" in style], page
    sheets = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert sheets
    assert [] == [url for sheet in sheets for url in re.findall(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]+)", sheet)]


def test_no_script_has_a_reason_to_ask_another_host(site: Path) -> None:
    """The theme's script would load diagrams, and facts of a repository, from elsewhere: no page has either."""
    for page in pages(site):
        said = page.read_text(encoding="utf-8")
        assert 'class="mermaid"' not in said
        assert 'data-md-component="source"' not in said


def test_every_page_is_in_the_navigation(site: Path) -> None:
    """The navigation of the start page leads to each page of docs."""
    reached = Read(site / "index.html").links["nav"]
    written = {site / path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert set() == written - reached


def test_tasks_are_two_clicks_away(site: Path) -> None:
    """From the text of the start page each of the ten tasks is reached in two clicks, without the navigation."""
    first = Read(site / "index.html").links["article"]
    second = {link for page in first if page.is_file() for link in Read(page).links["article"]}
    assert {site / "tasks" / f"{task}.html" for task in TASKS} <= first | second


@pytest.mark.parametrize("task", sorted(TASKS))
def test_a_task_begins_with_its_code(task: str) -> None:
    """A page on a task has its example at most a few sentences from its top, in 10 to 30 lines, and then says where more is."""
    page = text(f"docs/tasks/{task}.md")
    before, _, rest = page.partition("```python\n")
    code, _, after = rest.partition("```\n")
    assert len(before.split()) < 80
    assert 10 <= len(code.splitlines()) <= 30
    assert "](../" in after


def test_files_outside_have_pages(site: Path) -> None:
    """A link to a file of the project leads to a page with what it holds."""
    page = site / "source/examples/chat_service.py.html"
    assert page in Read(site / "operations.html").links["article"] | Read(site / "tasks/fastapi.html").links["article"]
    assert "AsyncGenerator" in page.read_text(encoding="utf-8")


def test_numbers_of_promises_stay(site: Path) -> None:
    """A numbered list that goes on behind a heading has the numbers that are written."""
    said = (site / "durability.html").read_text(encoding="utf-8")
    firsts = re.findall(r"^## .+\n\n(\d+)\. ", text("docs/durability.md"), re.MULTILINE)
    assert len(firsts) > 5
    assert firsts[1:] == re.findall(r'<ol start="(\d+)">', said)[: len(firsts) - 1]


def test_the_reference_has_what_is_exported(site: Path) -> None:
    """Each name that memci exports has its place in the reference made of docstrings."""
    with (site / "objects.inv").open("rb") as file:
        inventory = Inventory.parse_sphinx(file)
    assert [] == [name for name in memci.__all__ if f"memci.{name}" not in inventory]


def test_the_reference_has_every_call(site: Path) -> None:
    """Each call of a session and of an engine has its place in the reference, and the table of calls names such as there are."""
    with (site / "objects.inv").open("rb") as file:
        inventory = Inventory.parse_sphinx(file)
    for kind in (memci.Session, memci.Engine):
        calls = [name for name in dir(kind) if not name.startswith("_")]
        assert [] == [name for name in calls if f"memci.{kind.__name__}.{name}" not in inventory]
    table = text("docs/api/session.md").partition("|---|---|\n")[2].partition("\n\n")[0]
    assert [] == [name for name in re.findall(r"`(\w+)`", table) if not hasattr(memci.Session, name)]


def test_every_setting_stands_on_its_page(site: Path) -> None:
    """The page on the configuration has each key, as ``memci config`` prints them."""
    said = re.sub(r"<[^>]+>", "", (site / "api/config.html").read_text(encoding="utf-8"))
    assert [] == [key for key in Config().to_mapping() if f"\n{key}:" not in said]
