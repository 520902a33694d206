"""The README's Python is run as it stands."""

import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def python_lines(markdown: str) -> list[str]:
    """Return the lines with everything blanked that is not in a ``python`` block, so that line numbers stay true."""
    lines = []
    inside = False
    for line in markdown.splitlines():
        if inside and line.startswith("```"):
            inside = False
        lines.append(line if inside else "")
        if line.strip() == "```python":
            inside = True
    return lines


def test_only_python_blocks_are_code() -> None:
    """Text and blocks in other languages are blanked, and no line moves."""
    markdown = "Text\n```python\nx = 1\n```\n```console\n$ memci\n```\n"
    assert ["", "", "x = 1", "", "", "", ""] == python_lines(markdown)


def test_blocks_run_in_order(tmp_path: Path) -> None:
    """The README has Python blocks, and run one after the other in an empty folder they succeed without a warning."""
    lines = python_lines(README.read_text(encoding="utf-8"))
    assert any(lines)
    script = tmp_path / "README.py"
    script.write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-W", "error", script.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603 (our own words)
    assert (0, "") == (done.returncode, done.stderr)
