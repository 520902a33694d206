"""``memci work``: what it says and does, run as a process beside another that has the session open."""

import sys
from pathlib import Path
from typing import Any

from memci.engine.engine import Engine
from tests.cli.processes import ran
from tests.engine.sessions import talk
from tests.engine.wire import user

CONFIG: dict[str, Any] = {
    "budget": {"window": 1_200, "reserve": 0},
    "active": {"min_pages": 3, "max_pages": 7},
    "contents": {"max_tokens": 4_000},
    "durability": "flush",
}
PROGRAM = "import json,sys; print(json.load(sys.stdin)['messages'][0]['content'].split()[0] + ' was asked')"


def settings(directory: Path, program: str = PROGRAM) -> str:
    path = directory / "work.yaml"
    path.write_text(f"summarizer:\n  command: ['{sys.executable}', '-c', \"{program}\"]\n")
    return str(path)


def test_it_works_beside_a_writer(tmp_path: Path) -> None:
    """Sessions keep their settings and their writers, which publish at the next fold what it noted."""
    store = f"file:{tmp_path}/sessions"
    with Engine(store, CONFIG) as engine, engine.session("chat") as session:
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
        assert (0, "") == (done.code, done.err)
        session.refresh()
        assert ["SummaryError"] * 3 == [event.data["reason"].partition(":")[0] for event in session.events("summary_prepared")]
