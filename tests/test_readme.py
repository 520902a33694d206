"""Code, commands, settings and links of README and docs work."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import memci
from memci import Config

ROOT = Path(__file__).parent.parent
PAGES = [
    "README.md",
    "docs/index.md",
    "docs/tutorial.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/tasks").iterdir()),
    *(f"docs/{name}.md" for name in ("attp", "chat", "concepts", "reference", "segments", "formats", "presets")),
    *(f"docs/{name}.md" for name in ("summaries", "time", "tree", "operations", "sharing", "memory")),
]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def code_lines(markdown: str, language: str) -> list[str]:
    """Return the lines with everything blanked that is not in a block of a language, so that line numbers stay true."""
    lines = []
    inside = False
    for line in markdown.splitlines():
        if inside and line.startswith("```"):
            inside = False
        lines.append(line if inside else "")
        if line.strip() == f"```{language}":
            inside = True
    return lines


def anchors(markdown: str) -> set[str]:
    """Return the anchors that a forge gives to the headings."""
    headings = re.findall(r"^#+ (.+)$", markdown, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def local_links(name: str) -> Iterator[tuple[Path, str]]:
    """Yield file and anchor of every link that does not leave the project."""
    for target in re.findall(r"\]\(([^)]+)\)", text(name)):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            yield (ROOT / name).parent / path if path else ROOT / name, anchor


def test_only_the_blocks_of_a_language_are_code() -> None:
    """Text and blocks in other languages are blanked, and no line moves."""
    markdown = "Text\n```python\nx = 1\n```\n```console\n$ memci\n```\n"
    assert ["", "", "x = 1", "", "", "", ""] == code_lines(markdown, "python")
    assert ["", "", "", "", "", "$ memci", ""] == code_lines(markdown, "console")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_python_blocks_run_in_order(name: str, tmp_path: Path) -> None:
    """A page has Python blocks, and run one after the other in an empty folder they succeed without a warning."""
    lines = code_lines(text(name), "python")
    assert any(lines)
    script = tmp_path / "page.py"
    script.write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-W", "error", script.name]
    for _ in range(2):  # what a reader tries twice works twice
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603 (our own words)
        assert (0, "") == (done.returncode, done.stderr)
        if [script] == list(tmp_path.iterdir()):  # it left nothing, and would find what it found
            break


def test_configuration_is_accepted() -> None:
    """The YAML on the page of the configuration holds the defaults that it says it holds."""
    lines = code_lines(text("docs/api/config.md"), "yaml")
    assert any(lines)
    assert Config() == Config.from_mapping(yaml.safe_load("\n".join(lines)))


def test_commands_are_there() -> None:
    """Every ``memci`` command in the console blocks of the page on the command line is listed by ``memci --help``."""
    commands = re.findall(r"^\$ memci (\w+)", "\n".join(code_lines(text("docs/cli.md"), "console")), re.MULTILINE)
    assert 4 <= len(commands)
    command = [sys.executable, "-m", "memci", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 (our own words)
    assert set() == set(commands) - set(re.findall(r"^  (\w+)  ", done.stdout, re.MULTILINE))


@pytest.mark.parametrize(
    "name",
    [
        *sorted(path.name for path in ROOT.glob("*.md")),
        "examples/README.md",
        *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
    ],
)
def test_links_lead_somewhere(name: str) -> None:
    """Every link inside the project names a file that is there, and a heading of it where it names one."""
    links = list(local_links(name))
    assert links or name not in PAGES
    assert [] == [path for path, _ in links if not path.exists()]
    assert [] == [anchor for path, anchor in links if anchor and anchor not in anchors(path.read_text(encoding="utf-8"))]


def test_promises_name_tests_that_are_there() -> None:
    """The promises on durability are numbered without a gap, and each names tests that exist."""
    page = text("docs/durability.md")
    files = [path for folder in (ROOT / "tests", Path(memci.__file__).parent / "testing") for path in folder.rglob("*.py")]
    tests = {name for path in files for name in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))}
    named = set(re.findall(r"`(test_\w+)`", page))
    assert set() == named - tests
    promises = re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |^#|\Z)", page, re.MULTILINE | re.DOTALL)
    assert [str(number) for number in range(1, len(promises) + 1)] == [number for number, _ in promises]
    assert len(promises) > 20
    assert [] == [number for number, promise in promises if not re.search(r"`test_\w+", promise)]
