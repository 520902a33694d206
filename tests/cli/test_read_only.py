"""Commands that look, or only try, write nothing, read little, and work beside a process that writes."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memci.cli.exit_code import ExitCode
from tests.cli.processes import asked, environment
from tests.cli.stored import Run, chat, files_below, store_chat

LOOKING = (
    ("sessions",),
    ("pages",),
    ("tree",),
    ("contents",),
    ("show", "usr-2"),
    ("search", "gasket"),
    ("window",),
    ("window", "--budget", "200"),
    ("render", "--at", "9"),
    ("explain", "usr-2"),
    ("html", "--out", os.devnull),
    ("verify",),
    ("rules", "--all"),
    ("export",),
    ("simulate", "--preset", "truncate"),
    ("fold", "--dry-run"),
    ("undo", "--dry-run"),
    ("evict", "usr-1..4", "--dry-run"),
    ("pin", "usr-2", "--dry-run"),
)

WRITER = """
import sys
import memci
from tests.cli.stored import CONFIG

with memci.Engine(f"file:{sys.argv[1]}", CONFIG) as engine, engine.session("boiler") as session:
    print("open", flush=True)
    for line in sys.stdin:
        session.append({"role": "user", "content": line})
        session.window()
        session.append({"role": "assistant", "content": f"That was {line}"})
        print("done", flush=True)
"""
"""Opens a session and appends a turn for each line that it is told."""

Writer = Callable[[str], None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The directory of a store of which 30 turns were written."""
    store_chat(tmp_path / "store", "boiler", chat(30))
    return tmp_path / "store"


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, for tests that only look."""
    root = tmp_path_factory.mktemp("still")
    store_chat(root, "boiler", chat(30))
    return root


@pytest.fixture
def write(root: Path) -> Iterator[Writer]:
    """Another process that has the session open, and appends a turn when it is told to."""
    command = [sys.executable, "-c", WRITER, str(root)]
    checkout = Path(__file__).parents[2]  # where the process finds the package tests
    with subprocess.Popen(  # noqa: S603 (fixed words)
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(), cwd=checkout
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        told, answered = process.stdin, process.stdout
        assert "open\n" == answered.readline()

        def write(text: str) -> None:
            told.write(text + "\n")
            told.flush()
            assert "done\n" == answered.readline()

        yield write
        told.close()


@pytest.mark.slow
@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_nothing_is_written(still: Path, command: tuple[str, ...]) -> None:
    """A command that looks opens files to read them only, makes and removes nothing, and takes no lock."""
    before = files_below(still)
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
    events = asked(still, *command, "--store", f"file:{still}")
    assert events
    assert {"open", "sqlite3.connect"} >= {event[0] for event in events}
    assert [] == [event for event in events if event[0] == "open" and isinstance(event[3], int) and event[3] & writing]
    assert all("mode=ro" in str(event[1]) or "immutable=1" in str(event[1]) for event in events if event[0] == "sqlite3.connect")
    assert before == files_below(still)


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_directory_without_write_permission(run: Run, still: Path, command: tuple[str, ...]) -> None:
    """A store in which nothing may be made can be looked at."""
    directories = [still, *(path for path in still.rglob("*") if path.is_dir())]
    for directory in directories:
        directory.chmod(0o555)
    try:
        assert ExitCode.OK == run(*command, "--store", f"file:{still}").code
    finally:
        for directory in directories:
            directory.chmod(0o755)


@pytest.mark.slow
def test_beside_a_writer(run: Run, root: Path, write: Writer) -> None:
    """While another process has the session open and writes, every command answers, again and again."""
    for turn, command in enumerate([*LOOKING, *LOOKING]):
        write(f"And the valve of boiler {turn}?")
        assert ExitCode.OK == run(*command, "--store", f"file:{root}").code


def test_what_another_process_wrote_is_seen(run: Run, root: Path, write: Writer) -> None:
    """A page that another process wrote a moment ago is listed, shown, and found once it left the window."""
    before = run("pages", "--store", f"file:{root}", "--json").json()
    write("Is the zeppelin inflated?")
    page = run("pages", "--store", f"file:{root}", "--json").json()[-1]["index"]
    assert page not in {found["index"] for found in before}
    assert "Is the zeppelin inflated?" in run("show", page, "--store", f"file:{root}").out
    for turn in range(12):
        write(f"What else is there to know of the pump in house number {turn}, and whom do I ask for it?")
    hits = run("search", "zeppelin", "--store", f"file:{root}", "--json").json()
    assert [page] == [hit["index"] for hit in hits]
    assert run("verify", "--store", f"file:{root}", "--json").json()["ok"]


def test_recall_beside_a_writer(run: Run, root: Path, write: Writer) -> None:
    """A recall gets in beside a process that has the session open, and stands in the window then."""
    write("And the valve?")
    assert ExitCode.OK == run("recall", "usr-2", "--store", f"file:{root}").code
    assert run("window", "--store", f"file:{root}", "--json").json()["breakdown"]["recalled"] > 0


def test_edits_beside_a_writer(run: Run, root: Path, write: Writer) -> None:
    """A fold, a pin and a note get in beside a process that has the session open, which a dry run does not disturb."""
    write("And the valve?")
    for command in (("fold", "--all"), ("pin", "usr-2"), ("note", "Valves", "They are dear.")):
        tried = run(*command, "--dry-run", "--json", "--store", f"file:{root}").json()
        assert {**tried, "dry_run": False} == run(*command, "--json", "--store", f"file:{root}").json()


@pytest.mark.slow
@pytest.mark.parametrize("command", [("contents",), ("show", "usr-2")], ids=" ".join)
def test_reading_does_not_grow_with_the_history(tmp_path: Path, command: tuple[str, ...]) -> None:
    """The contents page, and one raw page, cost as many opened files after 800 turns as after 400."""
    opened = []
    for turns in (400, 800):
        store = store_chat(tmp_path / str(turns), "boiler", chat(turns))
        opened.append(len(asked(tmp_path, *command, "--store", store)))
    assert opened[0] == opened[1] < 30
