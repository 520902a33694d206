import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

import memci
from memci.cli.app import main
from memci.cli.exit_code import ExitCode
from tests.chat.model_server import Hold, Http, Message, ModelServer, calling, said, serving
from tests.chat.test_long import FACT, QUESTION, line, native
from tests.cli.processes import environment
from tests.cli.stored import Ran

pytestmark = pytest.mark.server

Chatted = Callable[..., Ran]


@pytest.fixture
def chatted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Chatted:
    """Run ``memci chat`` in this process with lines on its standard input."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-env")
    monkeypatch.setenv("OTHER_KEY", "sk-other")

    def run(server: ModelServer, store: Path, lines: list[str], *options: str) -> Ran:
        text = "".join(f"{line}\n" for line in lines)
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(text.encode())))
        capsys.readouterr()
        code = main(["chat", *arguments(server, store, *options)])
        written = capsys.readouterr()
        return Ran(int(code), written.out, written.err)

    return run


def arguments(server: ModelServer, store: Path, *options: str) -> list[str]:
    """Return the arguments of a command on a scripted model and a store."""
    where = ["--base-url", server.url, "--model", "scripted", "--store", f"file:{store}", "--retries", "0"]
    return [*where, *options]


def command(server: ModelServer, store: Path, *options: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "memci", "chat", *arguments(server, store, *options)]


def stored(store: Path, session: str = "chat") -> list[dict[str, Any]]:
    with memci.Engine(f"file:{store}", read_only=True) as engine, engine.session(session) as found:
        return list(found.messages())


def echo(messages: list[Message]) -> Message:
    return said(f"You said {messages[-1]['content']!r}.")


@pytest.mark.slow
def test_conversation_is_driven_from_a_pipe(tmp_path: Path) -> None:
    """Each line is answered on standard output; folds, calls, recalls and fades stand on standard error."""
    settings = tmp_path / "memci.yaml"
    settings.write_text("counter: approximate\nrecall: {turns: 2}\nactive: {min_pages: 3}\n", encoding="utf-8")
    lines = [line(turn) for turn in range(1, 41)] + [QUESTION] + [line(turn) for turn in range(41, 44)]
    with serving(native) as server:
        done = subprocess.run(  # noqa: S603 (fixed words)
            command(server, tmp_path / "store", "--config", str(settings), "--budget", "2600"),
            input="".join(f"{text}\n" for text in lines),
            capture_output=True,
            encoding="utf-8",
            env=environment(OPENAI_API_KEY="sk-from-env"),
            check=False,
        )
        assert [] == server.refused
        assert {"Bearer sk-from-env"} == set(server.keys)
    replies = done.stdout.splitlines()
    assert (0, len(lines)) == (done.returncode, len(replies))
    assert f"It hangs {FACT}." == replies[40]
    marks = [text.split()[0] for text in done.stderr.splitlines()]
    assert len(lines) + 2 == marks.count("window")
    assert 2 <= marks.count("fold")
    assert [2, 2, 1, 1] == [marks.count(mark) for mark in ("call", "result", "recall", "fade")]
    assert lines == [message["content"] for message in stored(tmp_path / "store") if message["role"] == "user"]


def test_session_continues(chatted: Chatted, tmp_path: Path) -> None:
    """Started again, the command goes on with the session, in the protocol that is in force, and blank lines say nothing."""
    with serving(echo) as server:
        chatted(server, tmp_path, ["One"], "--protocol", "attp", "--system", "Be brief.")
        done = chatted(server, tmp_path, ["", "Two", "  "], "--quiet", "--system", "Be brief.")
        assert Ran(0, "You said 'Two'.\n", "") == done
        assert ["system", "user", "assistant", "user"] == [message["role"] for message in server.requests[-1]["messages"]]
        assert "tools" not in server.requests[-1]
        done = chatted(server, tmp_path, ["Three"], "--protocol", "native", "--system", "Be polite.")
        assert "Be polite." == server.requests[-1]["messages"][0]["content"]
        assert server.requests[-1]["tools"]


def test_system_prompt_may_be_a_file(chatted: Chatted, tmp_path: Path) -> None:
    """The system prompt is the text of the file that has the given name."""
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Be as brief as a file.", encoding="utf-8")
    with serving(echo) as server:
        chatted(server, tmp_path / "store", ["One"], "--system", str(prompt))
        chatted(server, tmp_path / "store", ["Two"], "--system", "Be as brief as " + "words " * 100)
        sent = [request["messages"][0]["content"] for request in server.requests]
    assert ["Be as brief as a file.", "Be as brief as " + "words " * 100] == sent


def test_options_reach_the_endpoint(chatted: Chatted, tmp_path: Path) -> None:
    """The key's variable and further keys of the request are the caller's; values are JSON, or text."""
    with serving(echo) as server:
        more = ["--option", "temperature=0.25", "--option", "user=ada=1", "--api-key-env", "OTHER_KEY"]
        assert 0 == chatted(server, tmp_path, ["One"], *more).code
        assert (0.25, "ada=1") == (server.requests[0]["temperature"], server.requests[0]["user"])
        assert ["Bearer sk-other"] == server.keys


def test_json_lines(chatted: Chatted, tmp_path: Path) -> None:
    """With ``--json`` every step is a document on a line of standard output, and standard error is empty."""

    def script(messages: list[Message]) -> Message:
        return said("There.") if messages[-1]["role"] == "tool" else calling(("c1", "list_pages", "{}"))

    with serving(script) as server:
        done = chatted(server, tmp_path, ["Where?"], "--json")
    steps = [json.loads(text) for text in done.out.splitlines()]
    assert ["zone", "window", "tool", "window", "answer"] == [step["step"] for step in steps]
    assert {"step": "answer", "text": "There.", "ending": "answered", "calls": 2} == steps[-1]
    assert ("list_pages", "{}") == (steps[2]["name"], steps[2]["arguments"])
    assert (0, "") == (done.code, done.err)


def test_failure_ends_a_pipe(chatted: Chatted, tmp_path: Path) -> None:
    """A request that fails ends the command with one line and exit code 1, and started again it answers what waits first."""
    with serving(lambda _: Http(500)) as server:
        done = chatted(server, tmp_path, ["One", "Two"], "--quiet")
        assert (ExitCode.FAILED, "", 1) == (done.code, done.out, done.err.count("\n"))
        assert "status 500" in done.err
        assert "sk-from-env" not in done.err
        server.script = echo
        done = chatted(server, tmp_path, ["Two"], "--quiet")
        assert "You said 'One'.\nYou said 'Two'.\n" == done.out
    assert ["One", "Two"] == [message["content"] for message in stored(tmp_path) if message["role"] == "user"]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, ExitCode.INTERRUPTED)])
def test_ended_process_is_gone_on_with(chatted: Chatted, number: int, code: int, tmp_path: Path) -> None:
    """A process that is ended while the model thinks loses nothing, and the next one answers without doubling the message."""
    asked = threading.Event()

    def script(_: list[Message]) -> Hold:
        asked.set()
        return Hold()

    with serving(script) as server:
        process = subprocess.Popen(  # noqa: S603 (fixed words)
            command(server, tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        )
        with process:
            assert process.stdin is not None
            process.stdin.write(b"One\n")
            process.stdin.flush()
            assert asked.wait(60)
            process.send_signal(number)
            out, err = process.communicate()
    assert (code, b"", 1) == (process.returncode, out, err.count(b"\n"))
    with serving(echo) as server:
        assert "You said 'One'.\n" == chatted(server, tmp_path, []).out
        assert "" == chatted(server, tmp_path, []).out
    assert ["One", "You said 'One'."] == [message["content"] for message in stored(tmp_path)]


def test_endings_are_told(chatted: Chatted, tmp_path: Path) -> None:
    """A reply that is no plain answer is remarked on."""
    with serving(lambda _: said("", refusal="I will not.")) as server:
        done = chatted(server, tmp_path, ["Do it"])
    assert "I will not.\n" == done.out
    assert "refused" in done.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--option", "temperature"], "NAME=VALUE"),
        (["--option", "stream=true"], "options.stream"),
        (["--base-url", "localhost"], "base_url"),
        (["--timeout", "0"], "timeout_s"),
        (["--budget", "0"], "budget.window"),
    ],
)
def test_wrong_usage(chatted: Chatted, options: list[str], words: str, tmp_path: Path) -> None:
    """Options that cannot be used are refused, and no session is made."""
    with serving(echo) as server:
        done = chatted(server, tmp_path / "store", ["One"], *options)
    assert ExitCode.USAGE == done.code
    assert words in done.err
    assert not (tmp_path / "store").exists()


@pytest.mark.slow
def test_conversation_on_a_terminal(tmp_path: Path) -> None:
    """On a terminal the command asks for each line, an empty one tries again after a failure, and the end of input ends it."""
    answers: list[Http | Message] = [Http(500), said("One, then."), said("And two.")]
    master, slave = pty.openpty()
    seen = b""

    def wait_for(words: bytes) -> None:
        nonlocal seen
        while words not in seen:
            seen += os.read(master, 1_024)
        seen = seen.partition(words)[2]

    with serving(lambda _: answers.pop(0)) as server:
        ends = {"stdin": slave, "stdout": slave, "stderr": slave}
        with subprocess.Popen(command(server, tmp_path), env=environment(), **ends) as process:  # type: ignore[call-overload]  # noqa: S603 (fixed words)
            wait_for(b"> ")
            os.write(master, b"One\n")
            wait_for(b"an empty line tries again")
            wait_for(b"> ")
            os.write(master, b"\n")
            wait_for(b"One, then.")
            wait_for(b"> ")
            os.write(master, b"Two\n")
            wait_for(b"And two.")
            wait_for(b"> ")
            os.write(master, b"\x04")
            assert 0 == process.wait()
    os.close(slave)
    os.close(master)
    assert ["One", "One, then.", "Two", "And two."] == [message["content"] for message in stored(tmp_path)]
