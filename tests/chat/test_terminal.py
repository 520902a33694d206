"""``memci chat`` where replies are streamed: in pipes, on terminals, interrupted and hostile."""

import json
import os
import pty
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import memci
from memci.cli.exit_code import ExitCode
from tests.chat.model_server import Message, ModelServer, Pieces, calling, chunk, said, serving
from tests.chat.test_command import command, stored
from tests.cli.processes import environment
from tests.cli.test_bar import STYLE

pytestmark = [pytest.mark.server, pytest.mark.slow]

TWICE = 2


@contextmanager
def piped(server: ModelServer, store: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command with pipes at its ends."""
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 (fixed words)
        command(server, store, *options),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env=environment(),
    ) as process:
        yield process


def ended(process: subprocess.Popen[bytes], words: str = "") -> tuple[int, str, str]:
    """Say some words, close its input, and return exit code, output and errors."""
    out, err = process.communicate(words.encode())
    return process.returncode, out.decode(), err.decode()


class Terminal:
    """A terminal with the command on it."""

    def __init__(self, server: ModelServer, store: Path, *options: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(  # noqa: S603 (fixed words)
            command(server, store, *options),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(COLUMNS="100", TERM="xterm-256color"),
        )
        os.close(theirs)
        self.seen = b""

    def wait_for(self, words: str) -> str:
        """Return what came up to some words, with them, styles left out."""
        while words.encode() not in self.seen:
            self.seen += os.read(self._ours, 1_024)
        before, found, self.seen = self.seen.partition(words.encode())
        return STYLE.sub("", (before + found).decode())

    def say(self, line: str) -> None:
        os.write(self._ours, f"{line}\n".encode())
        self.wait_for(f"{line}\r\n")  # the terminal's echo

    def end(self) -> int:
        self.wait_for("> ")
        os.write(self._ours, b"\x04")
        return self.process.wait()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@contextmanager
def terminal(server: ModelServer, store: Path, *options: str) -> Iterator[Terminal]:
    made = Terminal(server, store, *options)
    try:
        yield made
    finally:
        made.close()


def interrupted(process: subprocess.Popen[bytes]) -> int:
    """Interrupt the command, and return its exit code; a signal that comes just before it begins to wait is noticed later."""
    while True:
        process.send_signal(signal.SIGINT)
        try:
            return process.wait(20)  # longer than it takes to end, on a busy machine too
        except subprocess.TimeoutExpired:
            continue


def read(process: subprocess.Popen[bytes], words: str) -> None:
    """Read the output up to some words."""
    assert process.stdout is not None
    seen = b""
    while not seen.endswith(words.encode()):
        seen += os.read(process.stdout.fileno(), 1)


def test_a_pipe_has_the_answer_as_it_comes(tmp_path: Path) -> None:
    """What came of a reply is written while the endpoint holds the rest back, and the whole line is that of the reply."""
    held = threading.Event()
    pieces = Pieces(
        [chunk(content="Good "), chunk(content="morn"), held, chunk(content="ing.\n\nAll "), chunk("stop", content="of you.")]
    )
    with serving(lambda _: pieces) as server, piped(server, tmp_path, "--quiet") as process:
        assert process.stdin is not None
        process.stdin.write(b"Hello\n")
        process.stdin.flush()
        read(process, "Good morn")
        held.set()
        assert (0, "ing.\n\nAll of you.\n", "") == ended(process)


@pytest.mark.parametrize(
    "pieces",
    [("\x1b", "]0;owned\x07 red"), ("\x1b]0;ow", "ned\x07 red"), ("\x1b]0;owned", "\x07 red")],
    ids=["after escape", "within", "before its end"],
)
def test_no_sequence_reaches_a_terminal(pieces: tuple[str, str], tmp_path: Path) -> None:
    """Control characters of a reply are written out, also where a sequence comes in two pieces; on terminals and in pipes."""
    script = Pieces([*(chunk(content=piece) for piece in pieces), chunk("stop", content=" \x9b2J\r\u202egone")])
    shown = r"\x1b]0;owned\x07 red \x9b2J\x0d\u202egone"
    with serving(lambda _: script) as server:
        with piped(server, tmp_path, "--quiet") as process:
            assert (0, f"{shown}\n", "") == ended(process, "Hello\n")
        with terminal(server, tmp_path, "--quiet") as screen:
            screen.wait_for("> ")
            screen.say("Again")
            assert f"{shown}\r\n> " == screen.wait_for("> ")
    assert TWICE == sum(message.get("content") == "".join(pieces) + " \x9b2J\r\u202egone" for message in stored(tmp_path))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGKILL, -signal.SIGKILL)])
def test_an_answer_that_is_interrupted_is_kept_once(number: int, code: int, tmp_path: Path) -> None:
    """Ctrl-C keeps what came, a kill nothing; started again the command goes on after the one and answers after the other."""
    pieces = Pieces([chunk(content="Half of the "), chunk(content="answer ")], end="held")
    with serving(lambda _: pieces) as server, piped(server, tmp_path, "--quiet") as process:
        assert process.stdin is not None
        process.stdin.write(b"Hello\n")
        process.stdin.flush()
        read(process, "answer")
        process.send_signal(number) if number == signal.SIGKILL else interrupted(process)
        assert (code, "\n" if number == signal.SIGINT else "") == ended(process)[:2]
    with serving(lambda _: said("Whole."), streams=True) as server, piped(server, tmp_path, "--quiet") as process:
        resumed = "" if number == signal.SIGINT else "Whole.\n"
        assert (0, f"{resumed}Whole.\n", "") == ended(process, "Again\n")
    first = "Half of the answer " if number == signal.SIGINT else "Whole."
    assert ["Hello", first, "Again", "Whole."] == [message["content"] for message in stored(tmp_path)]


def test_an_answer_that_breaks_off_ends_a_pipe(tmp_path: Path) -> None:
    """The error says that it broke off and what is kept, after the line that came; the exit code is 1."""
    with (
        serving(lambda _: Pieces([chunk(content="Half of it")], end="lost")) as server,
        piped(server, tmp_path, "--quiet") as process,
    ):
        code, out, err = ended(process, "Hello\nMore\n")
    assert (ExitCode.FAILED, "Half of it\n", 1) == (code, out, err.count("\n"))
    assert "broke off its answer: " in err
    assert "what came of it is kept" in err
    assert ["Hello", "Half of it"] == [message["content"] for message in stored(tmp_path)]


def test_a_reader_that_goes_ends_it(tmp_path: Path) -> None:
    """Where whoever reads the output has gone, the command ends without a word, and what came is kept."""
    with (
        serving(lambda _: said("Good morning to all of you."), streams=True) as server,
        piped(server, tmp_path, "--quiet") as process,
    ):
        assert process.stdout is not None
        process.stdout.close()
        assert process.stdin is not None
        process.stdin.write(b"Hello\n")
        process.stdin.close()
        assert process.stderr is not None
        assert (b"", ExitCode.PIPE_CLOSED) == (process.stderr.read(), process.wait())
    assert ["Hello", "Good "] == [message["content"] for message in stored(tmp_path)]


def test_json_has_the_pieces_and_the_answer(tmp_path: Path) -> None:
    """With ``--json`` each piece is a document, and the answer comes whole after them."""
    replies = [calling(("c1", "list_pages", "{}"), content="Wait."), said("There.")]
    with serving(lambda _: replies.pop(0), streams=True) as server, piped(server, tmp_path, "--json") as process:
        code, out, err = ended(process, "Where?\n")
    steps = [json.loads(line) for line in out.splitlines()]
    assert (0, "") == (code, err)
    assert ["zone", "window", "text", "tool", "window", "text", "text", "answer"] == [step["step"] for step in steps]
    assert ["Wait.", "There", "."] == [step["text"] for step in steps if step["step"] == "text"]
    assert "There." == steps[-1]["text"]


def test_text_beside_calls_has_its_line(tmp_path: Path) -> None:
    """What a reply says before its calls is a line of its own; what is called is told after it."""
    replies = [calling(("c1", "list_pages", "{}"), content="Let me look."), said("There.")]
    with serving(lambda _: replies.pop(0), streams=True) as server, terminal(server, tmp_path) as screen:
        screen.wait_for("> ")
        screen.say("Where?")
        lines = screen.wait_for("\n> ").split("\r\n")
        assert 0 == (screen.seen.startswith(b"> ")) or screen.process.poll() is None
    assert "Let me look." == lines[1]
    assert ["call", "result", "window"] == [line.split()[0] for line in lines[2:5]]
    assert ["There.", "> "] == lines[5:]


def test_ctrl_c_stops_an_answer_on_a_terminal(tmp_path: Path) -> None:
    """What came is kept, the conversation goes on, and Ctrl-C at the prompt ends it."""
    script: list[Pieces | Message] = [Pieces([chunk(content="Half of it")], end="held"), said("Whole.")]
    with serving(lambda _: script.pop(0), streams=True) as server, terminal(server, tmp_path, "--quiet") as screen:
        screen.wait_for("> ")
        screen.say("Hello")
        screen.wait_for("Half of it")
        screen.process.send_signal(signal.SIGINT)
        assert screen.wait_for("> ").startswith("\r\nstopped: what came of the answer is kept")
        screen.say("Again")
        screen.wait_for("Whole.\r\n> ")
        assert ExitCode.INTERRUPTED == interrupted(screen.process)
    assert ["Hello", "Half of it", "Again", "Whole."] == [message["content"] for message in stored(tmp_path)]


def test_the_window_can_be_looked_at(tmp_path: Path) -> None:
    """``/pages``, ``/why`` and ``/undo`` answer on a terminal, are no messages, and what cannot be done is told."""
    with (
        memci.Engine(f"file:{tmp_path}", {"counter": "approximate", "active": {"min_pages": 1}}) as engine,
        engine.session("chat") as session,
    ):
        for turn in range(30):
            session.extend([{"role": "user", "content": f"Question {turn}"}, {"role": "assistant", "content": f"Answer {turn}"}])
        session.fold([1, 2, 3])
    with serving(lambda _: said("Whole."), streams=True) as server, terminal(server, tmp_path, "--quiet") as screen:
        screen.wait_for("> ")
        screen.say("/pages")
        pages = screen.wait_for("\n> ")
        assert "10 older ones are left out" in pages
        assert "usr-11 " in pages
        assert "usr-10 " not in pages
        screen.say("/why 2")
        assert "usr-2 is archived." in screen.wait_for("\n> ")
        screen.say("/why")
        told = screen.wait_for("\n> ")
        assert "turn 30" in told
        assert "█" in told
        screen.say("/undo")
        assert "in view again: usr-1, usr-2, usr-3\r\n> " == screen.wait_for("\n> ")
        screen.say("/undo")
        assert "there is no fold to undo" in screen.wait_for("\n> ")
        screen.say("/why usr-99")
        assert "memci: " in screen.wait_for("\n> ")
        screen.say("/page")
        assert "/page is no command, and was not sent" in screen.wait_for("\n> ")
        screen.say("/etc/hosts is empty")
        assert "Whole.\r\n> " == screen.wait_for("\n> ")
        os.write(screen._ours, b"\x04")
        assert 0 == screen.process.wait()
    assert ["/etc/hosts is empty", "Whole."] == [message["content"] for message in stored(tmp_path)][60:]


def test_a_pipe_has_no_commands(tmp_path: Path) -> None:
    """Where no terminal is, each line is a message, whatever it begins with."""
    with serving(lambda sent: said(sent[-1]["content"])) as server, piped(server, tmp_path, "--quiet") as process:
        assert (0, "/pages\n", "") == ended(process, "/pages\n")
