"""``memci bench detach``: what it costs to take pages out and to bring them back."""

from pathlib import Path

from memci.quality.detaching import WAYS
from tests.cli.stored import Run


def test_the_command_writes_tables_and_figures(run: Run, tmp_path: Path) -> None:
    """``memci bench detach`` shows a table a size, and writes each figure as JSON."""
    ran = run("bench", "detach", "--history", 100, "--page", 5, "--json", tmp_path / "costs.json")
    assert ran.out.startswith("detach / recall / limit in ns, a page of 5, by the messages of the history\n")
    assert (tmp_path / "costs.json").read_text(encoding="utf-8").count('"detach_ns"') == len(WAYS)


def test_a_page_too_large_is_refused(run: Run) -> None:
    """A history that has no room for a second page cannot be measured."""
    assert "no history holds two pages" in run("bench", "detach", "--history", 100, "--page", 60).err
