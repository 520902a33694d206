"""``memci import``: files of conversations become sessions, once, and what was lost is told."""

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memci
from memci.cli.exit_code import ExitCode
from tests.adapters.exports import claude, talked, worked
from tests.cli.stored import Run


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"file:{tmp_path / 'store'}"


def written(path: Path, value: Any) -> Path:  # noqa: ANN401 (a JSON value)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def stored(path: Path) -> Path:
    """Write a file of the Agents SDK with one session."""
    from agents.memory import SQLiteSession  # noqa: PLC0415 (a framework)

    with closing(SQLiteSession("agent", path)) as session:
        asyncio.run(session.add_items([{"role": "user", "content": "Hello."}]))
    return path


def test_an_export_becomes_sessions(run: Run, store: str, tmp_path: Path) -> None:
    """Each conversation is a session; the table tells of its messages, and lines below what was lost and where."""
    other = talked().value | {"conversation_id": "chat-2", "title": ""}
    path = written(tmp_path / "conversations.json", [talked().value, other])
    ran = run("import", path, "--store", store)
    assert ExitCode.OK == ran.code
    assert ["chat-1", "7", "7", "7", "Boiler"] == ran.out.splitlines()[1].split()
    assert "chat-2: lost: 1 message of other branches (conversations[1])\n" in ran.out
    assert ["chat-1", "chat-2"] == run("sessions", "--store", store, "--json").json()
    assert [0, 0] == [each["new"] for each in run("import", path, "--store", store, "--json").json()]


@pytest.mark.frameworks
@pytest.mark.parametrize("given", [("auto", None), ("named", None), ("auto", "openai")])
def test_kinds_of_files(run: Run, store: str, tmp_path: Path, given: tuple[str, str | None]) -> None:
    """A file is told by what it holds, or named by --from; its sessions are in its own format, or that of --format."""
    (tmp_path / "work.jsonl").write_bytes(worked().data())
    files = {
        "chatgpt": (written(tmp_path / "a.json", [talked().value]), "openai"),
        "claude": (written(tmp_path / "b.json", [claude()]), "anthropic"),
        "transcript": (tmp_path / "work.jsonl", "anthropic"),
        "agents-sqlite": (stored(tmp_path / "agents.db"), "responses"),
    }
    how, wanted = given
    for name, (path, own) in files.items():
        options = [*(["--from", name] if how == "named" else []), *(["--format", wanted] if wanted else [])]
        (taken,) = run("import", path, "--store", store, "--json", *options).json()
        assert (wanted or own, taken["messages"]) == (taken["format"], taken["new"])
    with memci.Engine(store) as engine:
        assert {"chat-1", "talk-1", "session-1", "agent"} == set(engine.sessions())
        assert all(engine.session(each).verify().ok for each in engine.sessions())


def test_what_export_writes_is_imported(run: Run, store: str, tmp_path: Path) -> None:
    """An exported session can be imported under another id, with its times; settings come from --config."""
    run("import", written(tmp_path / "b.json", claude()), "--store", store)
    document = run("export", "--format", "json", "--store", store).json()
    config = tmp_path / "memci.yaml"
    config.write_text("format: anthropic\nbudget: {window: 5000, reserve: 100}\n", encoding="utf-8")
    path = written(tmp_path / "c.json", document)
    run("import", path, "--store", store, "--session", "again", "--config", config)
    again = run("export", "--format", "json", "--store", store, "--session", "again").json()
    assert document | {"id": "again"} == again
    with memci.Engine(store) as engine, engine.session("again") as session:
        assert 5_000 == session.config.budget.window


def test_damaged_files_write_nothing(run: Run, store: str, tmp_path: Path) -> None:
    """Where one conversation of a file is damaged, none is stored; the error names the place."""
    path = written(tmp_path / "conversations.json", [talked().value, {"mapping": 5}])
    ran = run("import", path, "--store", store)
    assert (ExitCode.USAGE, "") == (ran.code, ran.out)
    assert "conversations[1].mapping" in ran.err
    path.write_bytes(b'[{"mapping"')
    assert "line 1" in run("import", path, "--store", store).err
    assert "the file: it is no JSON" in run("import", path, "--store", store, "--from", "claude").err
    path.write_bytes(b"PK\3\4 and more")
    assert "unpack it" in run("import", path, "--store", store).err
    assert ExitCode.USAGE == run("import", tmp_path / "gone.json", "--store", store).code
    assert not (tmp_path / "store").exists()


def test_another_session_of_the_name(run: Run, store: str, tmp_path: Path) -> None:
    """A session with another conversation stays; alone it is an error of the store, among others these are taken."""
    with memci.Engine(store) as engine, engine.session("chat-1") as session:
        session.append({"role": "user", "content": "Another one."})
    path = written(tmp_path / "a.json", talked().value)
    assert ExitCode.STORE == run("import", path, "--store", store).code
    written(path, [talked().value, talked().value | {"conversation_id": "chat-2"}])
    ran = run("import", path, "--store", store, "--json")
    assert (ExitCode.FAILED, [0, 7]) == (ran.code, [each["new"] for each in ran.json()])
    assert "does not begin with the messages" in ran.json()[0]["error"]
    assert "chat-1: not imported: " in run("import", path, "--store", store).out
    assert 1 == len(run("export", "--store", store, "--session", "chat-1").out.splitlines())


def test_one_id_for_several(run: Run, store: str, tmp_path: Path) -> None:
    """--session is refused where a file holds several conversations."""
    path = written(tmp_path / "a.json", [talked().value] * 2)
    ran = run("import", path, "--store", store, "--session", "mine")
    assert ExitCode.USAGE == ran.code
    assert "leave --session out" in ran.err
    written(path, talked().value)
    assert ["mine"] == [each["session"] for each in run("import", path, "--store", store, "--session", "mine", "--json").json()]
    written(path, [])
    assert [] == run("import", path, "--store", store, "--from", "chatgpt", "--json").json()
