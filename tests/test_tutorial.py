"""The tutorial shows the output that its code prints."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_readme import text

END = "\x1e"
"""Printed after each block of the tutorial, to tell their outputs apart."""

Block = tuple[str, str]


def blocks() -> list[Block]:
    """Return language and text of each block of the tutorial."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text("docs/tutorial.md"), re.MULTILINE | re.DOTALL)


def run(folder: Path, *arguments: str) -> str:
    """Return what the interpreter prints in a folder."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)  # noqa: S603 (fixed words)
    return done.stdout


def without_day(output: str) -> str:
    """Return output in which every day, or range of days, is the same."""
    return re.sub(r"\d{4}-\d\d-\d\d(\.\.[\d-]+)?", "2026-01-01", output)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the code of the tutorial into an empty folder, as a reader does."""
    folder = tmp_path_factory.mktemp("tutorial")
    code = [block for language, block in blocks() if language == "python"]
    (folder / "tutorial.py").write_text(f"\nprint({END!r})\n".join([*code, ""]), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def outputs(folder: Path) -> list[str]:
    """Run the tutorial, and return what each of its blocks prints."""
    *printed, rest = run(folder, "tutorial.py").split(f"{END}\n")
    assert "" == rest
    return printed


def test_each_block_prints_the_output_below_it(outputs: list[str]) -> None:
    """Every block of the tutorial prints what is shown below it, but for the day."""
    shown: list[str] = []
    for language, block in blocks():
        if language == "python":
            shown.append("")
        elif language == "text":
            shown[-1] = block
    assert 5 < len(shown)
    assert [without_day(block) for block in shown] == [without_day(output) for output in outputs]


@pytest.mark.usefixtures("outputs")
def test_the_command_prints_the_line_below_it(folder: Path) -> None:
    """``memci html`` writes the page of the tutorial's session, and prints what is shown, but for the number of bytes."""
    size = re.compile(r"[\d,]+ bytes")
    *_, (_, console) = (block for block in blocks() if block[0] == "console")
    command, shown = console.splitlines()
    printed = run(folder, "-m", *command.removeprefix("$ ").split())
    assert size.sub("bytes", f"{shown}\n") == size.sub("bytes", printed)
    assert "</html>" in (folder / "trip.html").read_text(encoding="utf-8")


def test_it_folds_and_recalls(outputs: list[str]) -> None:
    """The tutorial ends with folded pages, and with two recalled ones."""
    states = re.findall(r"^usr-\d+: (\w+)$", outputs[-1], re.MULTILINE)
    assert "hidden" in states
    assert 2 == states.count("attached")
