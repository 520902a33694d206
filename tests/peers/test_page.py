"""The page on other libraries says what the run found that is kept with the project."""

import json

from benchmarks.peers.page import page
from memci.quality.reports.peers import draw, rows_of
from tests.test_readme import ROOT, text

RESULT = json.loads((ROOT / "benchmarks" / "peers" / "result.json").read_text(encoding="utf-8"))


def test_the_page_is_made_of_the_result() -> None:
    """Each figure on the page is one of the result's."""
    assert "".join(page(RESULT)) == text("docs/benchmarks.md")


def test_the_picture_is_drawn_from_the_result() -> None:
    """The picture is that of the same run."""
    assert draw(rows_of(RESULT)) == text("docs/benchmarks.svg")
