"""``memci serve`` as a process: starting, ending, what it refuses, and tokens."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import httpx2
import pytest

import memci
from tests.cli.processes import environment, ran

pytestmark = pytest.mark.server

SECONDS = 60.0


@attrs.define
class Server:
    """A server that runs: where it is, its process, and, once that ended, what it wrote to standard error."""

    url: str
    process: subprocess.Popen[str]
    err: str = ""
    is_new: bool = False  # it said that there is no session yet

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end, and return its exit code."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=SECONDS)
        self.err += err
        return self.process.returncode


@contextmanager
def server(*arguments: object) -> Iterator[Server]:
    """Start a server on a port that is free, and kill it where the block did not end it."""
    command = [sys.executable, "-m", "memci", "serve", "--port", "0", *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:  # noqa: S603 (fixed words)
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.fullmatch(r"memci serves \S+ at (http://[^\s,]+)(, where tenant '\w+' has no session yet)?\n", line)
            assert found, line
            yield Server(found[1], process, is_new=found[2] is not None)
        finally:
            process.kill()


def say(url: str, text: str, **headers: str) -> httpx2.Response:
    body = {"messages": [{"role": "user", "content": text}]}
    return httpx2.post(f"{url}/v1/sessions/chat/messages", json=body, headers=headers, timeout=SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "is_new"), [(signal.SIGTERM, True), (signal.SIGINT, False)])
def test_it_serves_until_it_is_told_to_end(tmp_path: Path, number: signal.Signals, *, is_new: bool) -> None:
    """It says if no session is there yet; what it answered is, it ends without an error, its log has nothing of what was said."""
    if not is_new:
        with memci.Engine(f"file:{tmp_path}") as engine, engine.session("before") as session:
            session.append({"role": "user", "content": "hello"})
    with server("--store", f"file:{tmp_path}") as running:
        assert is_new is running.is_new
        assert 201 == say(running.url, "where is my order?").status_code
        assert 404 == httpx2.get(f"{running.url}/v1/sessions/other", timeout=SECONDS).status_code
        assert 0 == running.end(number)
        assert "" == running.err
    with memci.Engine(f"file:{tmp_path}", read_only=True) as engine, engine.session("chat") as session:
        assert ["where is my order?"] == [said.text for said in session.transcript()]


@pytest.mark.slow
def test_a_request_under_way_is_answered_before_it_ends(tmp_path: Path) -> None:
    """Whoever is heard when the signal comes gets an answer, and what that says is stored."""
    body = json.dumps({"messages": [{"role": "user", "content": "slowly"}]}).encode()
    lines = ["POST /v1/sessions/chat/messages HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""])
    with server("--store", f"file:{tmp_path}") as running:
        address = httpx2.URL(running.url)
        with socket.create_connection((address.host, address.port or 0), timeout=SECONDS) as connection:
            connection.sendall(head.encode() + body[:10])
            httpx2.get(f"{running.url}/openapi.json", timeout=SECONDS)  # by now it has read the first part
            ended = threading.Thread(target=running.end)
            ended.start()
            connection.sendall(body[10:])
            assert connection.recv(65_536).startswith(b"HTTP/1.1 201")
            ended.join(SECONDS)
        assert 0 == running.process.returncode


@pytest.mark.slow
def test_whoever_listens_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    """A stream of notices ends with the server, and is whole to its end."""
    with server("--store", f"file:{tmp_path}") as running, httpx2.Client(timeout=SECONDS) as client:
        assert 201 == say(running.url, "hello").status_code
        with client.stream("GET", f"{running.url}/v1/sessions/chat/notices") as answer:
            ended = threading.Thread(target=running.end)
            ended.start()
            assert "" == answer.read().decode()
            ended.join(SECONDS)
        assert (0, "") == (running.process.returncode, running.err)


@pytest.mark.slow
@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "memci.example"])  # noqa: S104 (it is refused)
def test_other_machines_need_tokens(host: str) -> None:
    """An address that others reach is refused without them, in one line, before anything listens or is stored."""
    done = ran("serve", "--store", "memory:", "--host", host)
    assert (2, "") == (done.code, done.out)
    assert f"memci: --host {host} can be reached from elsewhere: give --tokens FILE, or listen on 127.0.0.1\n" == done.err


@pytest.mark.slow
def test_tokens_open_it_to_other_machines(tmp_path: Path) -> None:
    """With them it listens everywhere, answers under any name, and refuses whoever has none."""
    tokens = tmp_path / "tokens.yaml"
    token = ran("serve", "--new-token", "--tokens", tokens, "--tenant", "support", "--scope", "write").out.strip()
    with server("--store", f"file:{tmp_path}/chats", "--tokens", tokens, "--host", "0.0.0.0") as running:  # noqa: S104 (meant)
        url = running.url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 (as above)
        assert 401 == say(url, "hello").status_code
        assert 201 == say(url, "hello", Authorization=f"Bearer {token}", Host="chats.example").status_code
        assert 0 == running.end()
        assert token.rpartition("_")[2] not in running.err
    with memci.Engine(f"file:{tmp_path}/chats", tenant="support", read_only=True) as engine:
        assert ["chat"] == list(engine.sessions())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--new-token"], 2, "give --tokens FILE"),
        (["--tokens", "none.yaml"], 2, "none.yaml"),
        (["--store", "nonsense:"], 2, "store"),
        (["--config", "none.yaml"], 2, "none.yaml"),
        (["--host", "127.0.0.1", "--port", "TAKEN"], 2, "cannot listen on 127.0.0.1, port TAKEN"),
        (["--store", "postgresql://127.0.0.1:1/none"], 4, "127.0.0.1"),
    ],
)
def test_what_it_cannot_use_is_one_line(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    """A store, a file or a port that it cannot have ends it with the exit code that such errors have everywhere."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        given = [each.replace("TAKEN", port).replace("none.yaml", f"{tmp_path}/none.yaml") for each in arguments]
        done = ran("serve", *([] if "--port" in given else ["--port", "0"]), *given)
    assert (code, "") == (done.code, done.out)
    *started, last = done.err.splitlines()
    assert words.replace("TAKEN", port) in last
    assert all(line.startswith("memci serves ") for line in started)


@pytest.mark.slow
def test_settings_are_those_of_the_file(tmp_path: Path) -> None:
    """The engine has them, and bodies are as large as the command says."""
    config = tmp_path / "memci.yaml"
    config.write_text("budget: {window: 40, reserve: 0}\n")
    with server("--store", "memory:", "--config", config, "--max-body", "500", "--rate", "1000") as running:
        assert 413 == say(running.url, "x" * 500).status_code
        assert 201 == say(running.url, "x").status_code
        made = httpx2.post(f"{running.url}/v1/sessions/chat/window", timeout=SECONDS).json()
        assert 40 == made["budget"]
