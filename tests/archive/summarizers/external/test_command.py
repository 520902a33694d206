"""Summaries by an external program: what it is told, what of its output is read, and how it ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memci.archive.summarizers.external.calling import continuation, summarize
from memci.archive.summarizers.external.command import CommandSummarizer
from memci.archive.summarizers.summary import GivenPage, Summary
from memci.errors import ArgumentError, SummaryError, SummaryTimeoutError
from memci.messages.formats import format as formats

PAGE = [
    formats.get("openai").facts(value)
    for value in ({"role": "user", "content": "\ud800 hi"}, {"role": "assistant", "content": "hello"})
]
SECONDS = 60


def said(code: str, timeout_s: float = SECONDS) -> Summary:
    return summarize(CommandSummarizer([sys.executable, "-c", code], timeout_s=timeout_s), PAGE, 24, SECONDS)


def test_it_is_told_of_the_page() -> None:
    """It reads the messages as they came in, and the room that there is; text that it writes has its title in the first line."""
    code = (
        "import json,sys; v=json.load(sys.stdin); print(len(v['messages']), v['messages'][1]['content']); print(v['max_tokens'])"
    )
    assert ("2 hello", ("24",)) == (said(code).title, said(code).lines)


def test_of_a_session_it_is_told_what_was_written_before_and_the_pages() -> None:
    """It reads which kind is asked for, the text before, and of each page its messages or its entry."""
    code = "import json,sys; v=json.load(sys.stdin); print(v['kind'], v['max_tokens']); print(v['previous']); print(v['pages'])"
    pages = [GivenPage(index="usr-1..2", entry="two pages"), GivenPage(index="usr-3", messages=tuple(PAGE[1:]))]
    summary = continuation(CommandSummarizer([sys.executable, "-c", code]), "Goal: it", pages, 300, SECONDS)
    given = [{"index": "usr-1..2", "entry": "two pages"}, {"index": "usr-3", "messages": [PAGE[1].value()]}]
    assert ("continuation 300", ("Goal: it", str(given))) == (summary.title, summary.lines)


def test_json_may_say_more() -> None:
    """An object has title, lines and what it cost; what it says wrong is passed over."""
    summary = said("""print('{"title": "a", "lines": ["b", 3], "usage": {"price": 0.5}, "other": 1}')""")
    assert ("a", ("b", "3"), {"price": 0.5}) == (summary.title, summary.lines, summary.usage)
    assert ("", ()) == (said('print(\'{"title": null, "lines": "b", "usage": 3}\')').title, said("print('{\"lines\": 7}')").lines)
    assert "text" == said("print('\"text\"')").title


def test_one_that_fails_says_why() -> None:
    """The end of what it wrote to standard error is told; a program that is not there, too."""
    with pytest.raises(SummaryError, match="ended with 3: no model"):
        said("import sys; print('no model', file=sys.stderr); sys.exit(3)")
    with pytest.raises(SummaryError, match="cannot be run"):
        summarize(CommandSummarizer(["/no/such/program"]), PAGE, 24, SECONDS)


def test_one_that_writes_without_end_is_ended() -> None:
    """No more than a bounded part is read of what it writes, to either output."""
    with pytest.raises(SummaryError, match="wrote more than 1048576 bytes"):
        said("while True: print('kettle ' * 1000)")
    with pytest.raises(SummaryError, match="ended with"):
        said("import sys\nwhile True: sys.stderr.write('kettle ' * 1000)")


@pytest.mark.slow
def test_one_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    """Nothing of it is left, whatever it began."""
    note = tmp_path / "child"
    code = (
        "import subprocess,sys,time; "
        "child=subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
        f"open({str(note)!r},'w').write(str(child.pid)); "
        "time.sleep(600)"
    )
    with pytest.raises(SummaryError, match="was not done within"):
        said(code, 3.0)
    child = int(note.read_text())
    until = time.monotonic() + SECONDS
    while alive(child) and time.monotonic() < until:
        time.sleep(0.01)
    assert not alive(child)


def alive(process: int) -> bool:
    """Return whether a process runs: one that nobody waited for does not."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.parametrize("command", ["python", [], [3], [""], None])
def test_no_command_is_refused(command: object) -> None:
    """A program and its arguments are a list of texts."""
    with pytest.raises(ArgumentError):
        CommandSummarizer(command)  # type: ignore[arg-type]


@pytest.mark.slow
def test_what_it_leaves_behind_holds_nobody_up(tmp_path: Path) -> None:
    """A process that left its session, and keeps the output open, is waited for no longer than the program may take."""
    note = tmp_path / "child"
    code = (
        "import subprocess,sys; "
        "child=subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True); "
        f"open({str(note)!r},'w').write(str(child.pid)); print('a', flush=True)"
    )
    before = set(threading.enumerate())
    with pytest.raises(SummaryTimeoutError, match="was not done within"):
        said(code, 3.0)
    assert before == set(threading.enumerate())
    os.kill(int(note.read_text()), signal.SIGKILL)


def test_what_runs_can_be_cancelled(tmp_path: Path) -> None:
    """Whoever waits for it is told, and nothing that it began is left; later calls are answered."""
    note = tmp_path / "begun"
    code = f"import os,time; open({str(note)!r},'w').write(str(os.getpid())); time.sleep(600)"
    summarizer = CommandSummarizer([sys.executable, "-c", code], timeout_s=SECONDS)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(summarizer.summarize, PAGE, max_tokens=24)
        until = time.monotonic() + SECONDS
        while not (note.exists() and note.read_text()) and time.monotonic() < until:
            time.sleep(0.01)
        summarizer.cancel()
        with pytest.raises(SummaryError, match="ended with -9"):
            waiting.result(SECONDS)
    assert not alive(int(note.read_text()))
    summarizer.cancel()


def test_a_program_that_is_just_started_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancellation that comes while the program starts is not lost."""
    summarizer = CommandSummarizer([sys.executable, "-c", "import time; time.sleep(600)"], timeout_s=SECONDS)
    start = subprocess.Popen

    def started(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 (those of Popen)
        process = start(*arguments, **options)
        summarizer.cancel()
        return process

    monkeypatch.setattr(subprocess, "Popen", started)
    with pytest.raises(SummaryError, match="ended with -9"):
        summarizer.summarize(PAGE, max_tokens=24)
