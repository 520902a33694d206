"""memci doctor tells whether all that memci needs is there, and what is wrong where it is not."""

from pathlib import Path
from typing import Any

from memci.cli.exit_code import ExitCode
from tests.cli.stored import Run, chat, store_chat


def by_name(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["check"]: each for each in found}


def test_all_is_well(run: Run, store: str) -> None:
    """Store, disk, vocabulary, sandbox and the sessions used last are checked, and nothing is written."""
    folder = Path(store.removeprefix("file:"))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    ran = run("doctor", "--store", store, "--json")
    found = by_name(ran.json())
    assert ExitCode.OK == ran.code
    assert all(each["ok"] for each in found.values())
    assert "6 * 7 = 42" in found["sandbox"]["told"]
    assert "session boiler" in found
    assert found["sessions"]["told"].startswith("1, ")
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_damaged_session_is_told(run: Run, tmp_path: Path) -> None:
    """A session whose files do not agree with its journal fails, by its name, with exit code 1; the other checks go on."""
    store = store_chat(tmp_path, "boiler", chat(30))
    page = next(path for path in tmp_path.rglob("usr-1.json"))
    page.write_bytes(b"{}")
    ran = run("doctor", "--store", store)
    assert ExitCode.FAILED == ran.code
    assert "session boiler" in ran.out
    assert "memci repair" in ran.out
    assert ExitCode.OK == run("doctor", "--store", store, "--verify", 0).code


def test_a_store_that_does_not_answer_is_told(run: Run) -> None:
    """Where the store cannot be reached, that fails, and what needs no store is checked all the same."""
    ran = run("doctor", "--store", "postgresql://user:secret@127.0.0.1:9/none?connect_timeout=1", "--json")
    found = by_name(ran.json())
    assert ExitCode.FAILED == ran.code
    assert (False, False, True) == (found["store answers"]["ok"], found["sessions"]["ok"], found["vocabulary"]["ok"])
    assert "secret" not in ran.out


def test_sessions_by_what_is_known_of_them(run: Run, tmp_path: Path) -> None:
    """With --by, sessions have their titles, lengths and times, the longest or the latest first."""
    store = store_chat(tmp_path, "long", chat(10))
    store_chat(tmp_path, "short", chat(2))
    assert ["short", "long"] == [each["id"] for each in run("sessions", "--store", store, "--by", "used", "--json").json()]
    assert ["long"] == [each["id"] for each in run("sessions", "--store", store, "--by", "turns", "--limit", 1, "--json").json()]
    assert "10" in run("sessions", "--store", store, "--by", "events").out


def test_a_session_that_cannot_be_read_is_a_failure(run: Run, tmp_path: Path) -> None:
    """Though it is in no list of sessions, the check says how many there are, and the exit code is that of a failure."""
    url = store_chat(tmp_path / "store", "chat", chat(2))
    store_chat(tmp_path / "store", "other", chat(2))
    (journal,) = (tmp_path / "store" / "default" / "other").glob("journal.jsonl")
    journal.write_bytes(journal.read_bytes().replace(b"user", b"usxr", 1))
    ran = run("doctor", "--store", url, "--json")
    assert ExitCode.FAILED == ran.code
    assert ["1 of 2 cannot be read"] == [each["told"].split(": ")[1] for each in ran.json() if not each["ok"]]
