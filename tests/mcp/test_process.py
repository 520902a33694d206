"""The command ``memci mcp`` as a process: how it begins, what it writes, how it ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memci.cli.exit_code import ExitCode
from tests.cli.processes import environment, ran
from tests.cli.stored import chat, files_below, store_chat

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a store with the session ``boiler``."""
    return store_chat(tmp_path_factory.mktemp("store"), "boiler", chat(12))


@contextmanager
def started(store: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the server; it is killed where the test leaves it running."""
    with subprocess.Popen(
        [sys.executable, "-m", "memci", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(MEMCI_STORE=store),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def asked(process: "subprocess.Popen[bytes]", method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Send a request and return the result."""
    assert process.stdin is not None
    assert process.stdout is not None
    request = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert method == answer["id"]
    result: dict[str, Any] = answer["result"]
    return result


@pytest.mark.slow
def test_end_of_input_ends_it(store: str) -> None:
    """When the client closes the input, the server ends well; every line that it wrote was the protocol's."""
    with started(store) as process:
        assert "memci" == asked(process, "initialize", HELLO)["serverInfo"]["name"]
        found = asked(process, "tools/call", {"name": "search_pages", "arguments": {"query": "gasket", "limit": 1}})
        assert found["structuredContent"] == json.loads(found["content"][0]["text"])
        assert (b"", b"") == process.communicate()
    assert ExitCode.OK == process.returncode


@pytest.mark.slow
def test_every_request_is_answered(store: str) -> None:
    """A line that is no request gets an error, with its id where that can be read, and the server goes on; also at the end."""
    with started(store) as process:
        asked(process, "initialize", HELLO)
        half = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "read_page \ud800"}})
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{half}\nhello\n".encode())
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert [(5, -32600), (None, -32700)] == [(answer["id"], answer["error"]["code"]) for answer in answers]
        assert {} == asked(process, "ping", {})
        out, err = process.communicate(b'{"id": 6}')
        assert (6, b"") == (json.loads(out)["id"], err)
    assert ExitCode.OK == process.returncode


@pytest.mark.slow
def test_input_may_be_a_file(store: str, tmp_path: Path) -> None:
    """Requests are read from a file as from a pipe, also those of many pieces, and a last line without its end."""
    noise = {"_meta": {"x": "é" * 100_000}}
    lines: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": HELLO},
        {"id": 2, "method": "ping", "params": noise},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1, **noise}},
    ]
    requests = tmp_path / "requests"
    requests.write_text("\r\n".join(json.dumps({"jsonrpc": "2.0", **line}, ensure_ascii=False) for line in lines), "utf-8")
    command = [sys.executable, "-m", "memci", "mcp", "--store", store]
    with requests.open("rb") as given:
        done = subprocess.run(command, stdin=given, capture_output=True, check=False, env=environment())  # noqa: S603 (fixed words)
    assert [1, 2] == [json.loads(line)["id"] for line in done.stdout.splitlines()]
    assert (ExitCode.OK, b"") == (done.returncode, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, ExitCode.OK), (signal.SIGINT, ExitCode.INTERRUPTED)], ids=["term", "int"]
)
def test_signals_end_it(store: str, number: signal.Signals, code: ExitCode) -> None:
    """A signal ends the server quietly, while its input stays open."""
    with started(store) as process:
        asked(process, "initialize", HELLO)
        process.send_signal(number)
        assert code == process.wait()
        assert process.stderr is not None
        assert b"" == process.stderr.read()


@pytest.mark.slow
def test_closed_output_ends_it(store: str) -> None:
    """When the client no longer reads, the server ends without a word, though its input stays open."""
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        with subprocess.Popen(  # noqa: S603 (fixed words)
            [sys.executable, "-m", "memci", "mcp", "--store", store],
            stdin=subprocess.PIPE,
            stdout=theirs,
            stderr=subprocess.PIPE,
            env=environment(),
        ) as process:
            assert process.stdin is not None
            assert process.stderr is not None
            request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            assert (ExitCode.PIPE_CLOSED, b"") == (process.wait(), process.stderr.read())
    finally:
        os.close(theirs)


@pytest.mark.slow
def test_missing_session(tmp_path: Path) -> None:
    """A session that is not there is refused when the server begins, and is not made."""
    store = store_chat(tmp_path, "boiler", chat(2))
    before = files_below(tmp_path)
    done = ran("mcp", "--store", store, "--session", "kettle")
    assert (ExitCode.NOT_FOUND, "") == (done.code, done.out)
    assert "there is no session 'kettle'" in done.err
    assert before == files_below(tmp_path)


@pytest.mark.slow
def test_session_has_to_be_named(tmp_path: Path) -> None:
    """Where there are several sessions, the error lists them."""
    store_chat(tmp_path, "boiler", chat(2))
    done = ran("mcp", "--store", store_chat(tmp_path, "kettle", chat(2)))
    assert ExitCode.USAGE == done.code
    assert "'boiler', 'kettle'" in done.err


def test_missing_extra(store: str) -> None:
    """Without the SDK the error is one line that says how to install it."""
    code = "import sys; sys.modules['mcp'] = None; from memci.cli.app import main; sys.exit(main(sys.argv[1:]))"
    done = ran("mcp", "--store", store, code=code)
    assert ExitCode.USAGE == done.code
    assert "its extra mcp" in done.err
    assert 1 == len(done.err.splitlines())


def test_help_does_not_load_the_sdk() -> None:
    """Only the command itself loads the SDK; asking for its help does not."""
    code = "import sys; from memci.cli.app import main; main(['mcp', '--help']); print({'mcp', 'anyio'} & set(sys.modules))"
    assert "set()" == ran(code=code).out.splitlines()[-1]
