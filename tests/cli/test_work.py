"""``memci work``: what it says and does, run as a process beside another that has the session open."""

import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import memci
from memci.archive.stores.url import open_store
from memci.engine.engine import Engine
from tests.archive.summarizers.external.test_command import alive
from tests.cli.processes import environment, ran
from tests.engine.commands.test_summarizing import Says, engine_on, pool
from tests.engine.sessions import talk
from tests.engine.wire import user

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.stored import Run

pytestmark = pytest.mark.slow

CONFIG: dict[str, Any] = {
    "budget": {"window": 1_200, "reserve": 0},
    "active": {"min_pages": 3, "max_pages": 7},
    "contents": {"max_tokens": 4_000},
    "durability": "flush",
}
SECONDS = 60
PROGRAM = "import json,sys; print(json.load(sys.stdin)['messages'][0]['content'].split()[0] + ' was asked')"


def settings(directory: Path, program: str = PROGRAM) -> str:
    path = directory / "work.yaml"
    path.write_text(f"summarizer:\n  command: ['{sys.executable}', '-c', \"{program}\"]\n")
    return str(path)


@pytest.mark.parametrize("headlines", [False, True])
def test_it_works_beside_a_writer(tmp_path: Path, *, headlines: bool) -> None:
    """Sessions keep their settings and their writers, which publish at the next fold what it noted."""
    store = f"file:{tmp_path}/sessions"
    with Engine(store, {**CONFIG, "summary": {"headlines": headlines}}) as engine, engine.session("chat") as session:
        talk(session, 6, words=20)
        before = session.config
        done = ran("work", "--store", store, "--config", settings(tmp_path), "--once")
        assert (0, "", "session 'chat': 5 summaries\n") == (done.code, done.out, done.err)
        again = ran("work", "--store", store, "--config", settings(tmp_path), "--once")
        assert (0, "") == (again.code, again.err)
        session.append(user("nobody conflicts"))
        assert before == session.config
        assert 1 == len(list(session.events("configured")))
        session.fold("all")
        assert "[usr-3] question3 was asked" in session.contents.render()


def test_it_writes_continuations_of_sessions_that_have_them(tmp_path: Path) -> None:
    """Whether there is one, and how long, each session says for itself; the next fold shows it."""
    store = f"file:{tmp_path}/sessions"
    program = (
        "import json,sys; v=json.load(sys.stdin); m=(v.get('pages') or [v])[0]['messages']; print(m[0]['content'].split()[0])"
    )
    summary = {"continuation": True, "continuation_tokens": 150}
    with Engine(store, {**CONFIG, "summary": summary}) as engine, engine.session("chat") as session:
        talk(session, 6, words=20)
        done = ran("work", "--store", store, "--config", settings(tmp_path, program), "--once")
        assert (0, "session 'chat': 6 summaries\n") == (done.code, done.err)
        session.append(user("nobody conflicts"))
        assert 1 == len(list(session.events("configured")))
        session.fold("all")
        assert "[continuation] Of usr-1..5; to be read as data.\\n- question1" in session.window().to_json().decode()


def test_what_cannot_be_done_is_told(tmp_path: Path) -> None:
    """Settings without a summariser are refused; a program that fails leaves the reason in the journal."""
    store, plain = f"file:{tmp_path}/sessions", tmp_path / "plain.yaml"
    plain.write_text("budget: {window: 20000}\n")
    refused = ran("work", "--store", store, "--config", plain, "--once")
    assert 0 != refused.code
    assert "names no summariser" in refused.err
    with Engine(store, CONFIG) as engine, engine.session("chat") as session:
        talk(session, 4, words=20)
        done = ran("work", "--store", store, "--config", settings(tmp_path, "import sys; sys.exit(3)"), "--once")
        assert 0 == done.code
        assert "session 'chat': 3 pages wait for others that ask of them, or until a pause is over" in done.err
        session.refresh()
        assert ["SummaryError"] * 3 == [event.data["reason"].partition(":")[0] for event in session.events("summary_prepared")]


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("nobody", "there is no summarizer nobody"),
        ("{command: [/no/such/program]}", "summarizer.command: '/no/such/program' cannot be used here"),
        ("{command: [python], timeout_s: .nan}", "timeout_s: nan cannot be used here"),
        ("{model: m, base_url: 'nonsense'}", "base_url"),
        ("{model: m, base_url: 'http://127.0.0.1:9/v1', api_key: 'env:MEMCI_NO_SUCH_KEY'}", "MEMCI_NO_SUCH_KEY is not set"),
        (
            "{model: m, base_url: 'http://127.0.0.1:9/v1', input_price: cheap}",
            "summarizer.input_price: 'cheap' cannot be used here",
        ),
    ],
)
def test_what_cannot_be_made_is_told_once(tmp_path: Path, setting: str, problem: str) -> None:
    """Before any session is looked at."""
    with Engine(f"file:{tmp_path}/sessions", CONFIG) as engine:
        for name in ("one", "two"):
            talk(engine.session(name), 4, words=20)
    (tmp_path / "work.yaml").write_text(f"summarizer: {setting}\n")
    refused = ran("work", "--store", f"file:{tmp_path}/sessions", "--config", tmp_path / "work.yaml")
    assert 2 == refused.code
    assert 1 == refused.err.count("\n")
    assert problem in refused.err


@pytest.mark.parametrize(("options", "code"), [(("--every", "-1"), 2), (("--every", "nan"), 2), (("--session", "nobody"), 3)])
def test_what_it_cannot_do_is_refused(tmp_path: Path, options: tuple[str, ...], code: int) -> None:
    """In a line."""
    store = f"file:{tmp_path}/sessions"
    with Engine(store, CONFIG) as engine:
        talk(engine.session("chat"), 4, words=20)
    refused = ran("work", "--store", store, "--config", settings(tmp_path), *options)
    assert (code, 1) == (refused.code, refused.err.count("\n"))


def test_it_comes_back_when_claims_end(tmp_path: Path) -> None:
    """Once, it says what it left to others; else it looks again when their time is over, though nobody wrote meanwhile."""
    store, released = f"file:{tmp_path}/sessions", threading.Event()
    with engine_on(open_store(store, "flush"), Says(lambda _number: released.wait(60))) as other:
        pool(other).patience_s, pool(other).lease_s = 0.01, 15.0
        with other.session("chat") as session:
            talk(session, 6, words=20)
            session.summarize(0.0)
            once = ran("work", "--store", store, "--config", settings(tmp_path), "--once")
            assert 0 == once.code
            assert "session 'chat': 5 pages wait for others that ask of them" in once.err
            with working(store, settings(tmp_path)) as worker:
                until = time.monotonic() + SECONDS
                while len(list(session.events("summary_prepared"))) < 5 and time.monotonic() < until:
                    time.sleep(0.1)
                    session.refresh()
                worker.send_signal(signal.SIGINT)
                assert 130 == worker.wait(SECONDS)
            assert 5 == len(list(session.events("summary_prepared")))
        released.set()


class Looks:
    """The time of a worker in this process: it passes while that waits, which is ended after so many looks at the sessions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
        self.time, self.left = datetime.now(UTC), number
        monkeypatch.setattr(memci, "Engine", partial(Engine, clock=lambda: self.time))
        monkeypatch.setattr("memci.cli.work.datetime", SimpleNamespace(now=lambda _zone: self.time))
        monkeypatch.setattr("memci.cli.work.time", SimpleNamespace(sleep=self.wait))
        kept = {"SIGTERM": signal.SIGTERM, "default_int_handler": signal.default_int_handler}
        monkeypatch.setattr("memci.cli.work.signal", SimpleNamespace(**kept, signal=lambda *_: None))  # those are the tests' own

    def wait(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def test_it_looks_again_when_a_claim_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: "Run") -> None:
    """Pages that others claimed and did not write of are summarised once that time is over, though nobody wrote meanwhile."""
    store, released = f"file:{tmp_path}/sessions", threading.Event()
    Looks(monkeypatch, 2)
    with engine_on(open_store(store, "flush"), Says(lambda _number: released.wait(60))) as other:
        pool(other).patience_s, pool(other).lease_s = 0.01, 3_600.0
        with other.session("chat") as session:
            talk(session, 4, words=20)
            session.summarize(0.0)
            done = run("work", "--store", store, "--config", settings(tmp_path), "--every", "7200")
        released.set()
    assert 130 == done.code
    waits, came = done.err.splitlines()
    assert waits.startswith("session 'chat': 3 pages wait for others that ask of them")
    assert "session 'chat': 3 summaries" == came


def test_it_says_the_same_of_a_session_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: "Run") -> None:
    """What is wrong with a session is written when it is first seen, and not at every look while it stays so."""
    store = f"file:{tmp_path}/sessions"
    with Engine(store, CONFIG) as engine:
        talk(engine.session("chat"), 2)
    (tmp_path / "sessions" / "default" / "chat" / "journal.jsonl").write_text("damaged\n" * 3)
    Looks(monkeypatch, 3)
    done = run("work", "--store", store, "--config", settings(tmp_path))
    assert (130, 1) == (done.code, done.err.count("\n"))
    assert done.err.startswith("session 'chat': ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_at_once(tmp_path: Path, number: signal.Signals) -> None:
    """Programs that run are killed, and their pages are free for others; no traceback is written."""
    store, log = f"file:{tmp_path}/sessions", tmp_path / "log"
    with Engine(store, CONFIG) as engine:
        talk(engine.session("chat"), 6, words=20)
    slow = f"import os,time; open({str(log)!r}, 'a').write(str(os.getpid()) + chr(10)); time.sleep(600)".replace("'", "''")
    (tmp_path / "slow.yaml").write_text(f"summarizer: {{command: ['{sys.executable}', '-c', '{slow}'], timeout_s: 300}}\n")
    with working(store, str(tmp_path / "slow.yaml")) as worker:
        until = time.monotonic() + SECONDS
        while not (log.exists() and 4 == log.read_text().count("\n")) and time.monotonic() < until:
            time.sleep(0.05)
        worker.send_signal(number)
        assert (130, "") == (worker.wait(SECONDS), worker.communicate()[1])
    assert not any(map(alive, map(int, log.read_text().split())))
    done = ran("work", "--store", store, "--config", settings(tmp_path), "--once")
    assert "session 'chat': 5 summaries\n" == done.err


@contextmanager
def working(store: str, config: str) -> "Iterator[subprocess.Popen[str]]":
    """Run it as a process, which is killed at the end."""
    command = [sys.executable, "-m", "memci", "work", "--store", store, "--config", config, "--every", "0.1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:  # noqa: S603 (fixed words)
        try:
            yield process
        finally:
            process.kill()
