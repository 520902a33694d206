"""What the documentation shows as output is what comes out, and the figures that it names are those measured."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import memci
from memci.engine.tools.tree_tools import attp_prompt
from memci.messages.tokens.counter import get_counter
from tests.test_readme import ROOT, code_lines, text


def output(*command: str) -> list[str]:
    """Return the lines that a Python program of the project writes."""
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 (our own words)
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_sample_of_replay_is_what_it_prints() -> None:
    """The numbers of a replay that the page on the command line shows are those of the example, up to the line that cuts them."""
    lines = [line for line in code_lines(text("docs/cli.md").partition("## Replay")[2], "console") if line]
    command, *shown = lines[: lines.index("…")]
    assert command.startswith("$ memci replay ")
    assert shown == output("-m", "memci", *command.split()[2:])[: len(shown)]


@pytest.mark.slow
def test_the_sample_of_a_dry_run_is_what_it_prints(tmp_path: Path) -> None:
    """The window before and after a fold, on the page on the command line, is that of the example, and stays as it is."""
    kept = "--store", f"file:{tmp_path}", "--session", "support"
    output("-m", "memci", "replay", "examples/support.json", "--budget", "2000", *kept)
    shown = [line for line in text("docs/cli.md").partition("## Changing a window")[2].splitlines() if line]
    command, *printed = shown[shown.index("```console") + 1 : shown.index("```")]
    words = command.split()[2:]
    assert printed == output("-m", "memci", *words[: words.index("--session")], *kept)


@pytest.mark.slow
def test_the_sample_of_the_rules_is_what_it_prints(tmp_path: Path) -> None:
    """The rules that the page on the command line shows are those of the example."""
    kept = "--store", f"file:{tmp_path}", "--session", "support"
    output("-m", "memci", "replay", "examples/support.json", "--budget", "2000", *kept)
    command, *printed = [line for line in code_lines(text("docs/cli.md").partition("\n## Rules")[2], "console") if line]
    assert "$ memci rules --session support" == command
    assert printed == output("-m", "memci", "rules", *kept)


@pytest.mark.slow
def test_the_samples_of_the_contents_page_are_what_the_demo_prints(tmp_path: Path) -> None:
    """The contents page that the reference shows, and the row in the concepts, are those of the example, but for what is cut."""
    kept = "--store", f"file:{tmp_path}", "--session", "support"
    output("-m", "memci", "replay", "examples/support.json", "--budget", "2000", *kept)
    printed = output("-m", "memci", "contents", *kept)
    recorded = json.loads(text("examples/support.json"))
    with memci.Engine("memory:") as engine, engine.session("support") as session:
        for message, at in zip(recorded["messages"], recorded["timestamps"], strict=True):
            session.append(message, at=at)
        session.fold(["usr-74"])
        printed += session.contents.render().splitlines()
    sample = text("docs/reference.md").partition("[usr-0] Contents")[2].partition("```")[0].splitlines()
    row = re.search(r"a row in a directory of its neighbours, `(.+?)`", text("docs/concepts.md"))
    assert row is not None
    shown = [f"[usr-0] Contents{sample[0]}", *(re.split(r"(?<=\S) {3,}", line)[0] for line in sample[1:]), row[1]]
    assert [] == [line for line in shown if line not in printed]


def test_the_commands_are_those_that_there_are() -> None:
    """The table of commands lists each command of ``memci --help`` once, and no other."""
    listed = re.findall(r"^\| \[?`(\w+)", text("docs/cli.md").partition("## ")[0], re.MULTILINE)
    there = re.findall(r"^  (\w+)  ", "\n".join(output("-m", "memci", "--help")), re.MULTILINE)
    assert sorted(there) == sorted(listed)


def test_the_window_of_a_talk_is_measured() -> None:
    """The first line that a talk with a model prints tells the true size of the window and of the tools."""
    shown = [line for line in code_lines(text("docs/chat.md"), "console") if line.startswith("window ")]
    said = next(line for line in code_lines(text("docs/chat.md"), "console") if line.startswith("> "))
    with memci.Engine("memory:", {"budget": {"window": 6_000, "reserve": 0}}) as engine, engine.session("trip") as session:
        session.append({"role": "user", "content": said.removeprefix("> ")})
        window = session.window(tools=session.toolbox.openai())
    parts = ", ".join(f"{part} {tokens}" for part, tokens in window.breakdown.items() if tokens)
    assert [f"window {window.tokens} of 6,000 tokens ({parts})"] == shown


def test_the_size_of_the_prompt_of_attp_is_measured() -> None:
    """The page on ATTP tells the size of its prompt to within five in a hundred."""
    told = re.search(r"about ([0-9]+) tokens", text("docs/attp.md"))
    assert told is not None
    assert get_counter("o200k_base").count(attp_prompt()) == pytest.approx(int(told[1]), rel=0.05)


def test_the_size_of_the_tools_over_other_sessions_is_measured() -> None:
    """The page on sharing tells what their schemas take of a window."""
    told = re.search(r"The two schemas take ([0-9]+) tokens", text("docs/sharing.md"))
    assert told is not None
    with memci.Engine("memory:", {"recall": {"search_sessions": True}}) as engine, engine.session("trip") as session:
        box = session.toolbox
        every, others = box.tokens(), box.tokens(*(set(box.tools) - {"search_sessions", "read_session_page"}))
    assert every - others == int(told[1])


@pytest.mark.slow
def test_the_picture_of_a_window_is_drawn_from_a_run() -> None:
    """The picture of a window, and the sizes that are said of it, are those that the example draws."""
    drawn = output("examples/draw_window.py")
    assert text("docs/window.svg").splitlines() == drawn
    sizes = re.findall(r"(?:conversation|window): ([0-9,]+)", "\n".join(drawn))
    assert 2 == len(sizes)
    assert [] == [size for size in sizes if f"{size} tokens" not in text("docs/concepts.md")]


def test_the_readme_says_what_its_code_prints(tmp_path: Path) -> None:
    """The lines that the README shows are the output of its code, in an empty folder."""
    script = tmp_path / "first.py"
    script.write_text("\n".join(code_lines(text("README.md"), "python")), encoding="utf-8")
    done = subprocess.run([sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, check=True)  # noqa: S603 (our own words)
    shown = [line for line in code_lines(text("README.md"), "text") if line]
    assert shown == done.stdout.splitlines()


def test_the_figures_of_the_readme_are_those_of_the_pages_it_links_to() -> None:
    """Each figure in the README's bullets is the one on the page that the bullet links to."""
    bullets = re.findall(r"^\* \*\*.+$", text("README.md"), re.MULTILINE)
    crashes, needs, turns = bullets

    kills = re.search(
        r"^\| `kills` \| ([\d,]+) writers .+, ([\d,]+) messages acknowledged \| (\d+) losses \|",
        text("docs/durability.md"),
        re.MULTILINE,
    )
    assert kills is not None
    assert f"{kills[1]} writers" in crashes
    assert f"Of {kills[2]} acknowledged messages, {kills[3]} were lost" in crashes

    files = dict(re.findall(r"^\| coding \| (\S+) \| ([\d.]+%) \|", text("docs/quality.md"), re.MULTILINE))
    assert f"{files['memci']} of the files" in needs
    assert f"it is {files['sliding-messages']} (" in needs

    ratio = re.search(
        r"^\| CPU time of a turn, the longer over the shorter \| [\d.]+ \| ([\d.]+) \|", text("docs/performance.md"), re.MULTILINE
    )
    assert ratio is not None
    assert f"{ratio[1]} times" in turns


def test_nobody_is_told_to_install_what_is_not_published() -> None:
    """The package is installed from a checkout: neither page nor program names it to a package index."""
    files = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "examples").glob("*"),
        *Path(memci.__file__).parent.rglob("*.py"),
    ]
    told = [
        path.name for path in files if path.is_file() and re.search(r"pip install ['\"]?memci", path.read_text(encoding="utf-8"))
    ]
    assert [] == told


def test_the_comparison_quotes_the_benchmarks() -> None:
    """Each figure of the comparison stands in the row of its library on the page of the benchmarks."""

    def rows(page: str, heading: str) -> dict[str, list[str]]:
        table = text(page).partition(heading)[2].partition("\n|---")[2].partition("\n\n")[0]
        split = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()[1:]]
        return {cells[1]: cells[2:-1] for cells in split}

    turns, promises = rows("docs/benchmarks.md", "## Chat, 10,000 turns"), rows("docs/benchmarks.md", "## Promises")
    quoted = rows("docs/comparison.md", "## What was measured")
    assert len(quoted) > 5
    for name, cells in quoted.items():
        assert cells[:5] == [turns[name][2], turns[name][6], promises[name][2], *promises[name][4:6]], name
