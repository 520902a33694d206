"""The commands that repair a session and erase pages of it."""

from pathlib import Path

import pytest

from memci.cli.exit_code import ExitCode
from tests.cli.stored import Run, chat, store_chat


@pytest.fixture
def store(tmp_path: Path) -> str:
    return store_chat(tmp_path, "chat", chat(60))


def session_files(store: str) -> Path:
    return Path(store.removeprefix("file:")) / "default" / "chat"


def test_nothing_to_repair(run: Run, store: str) -> None:
    """A session that is as its journal says is told so, with exit code 0."""
    done = run("repair", "--store", store)
    assert (ExitCode.OK, "nothing to repair\nno problem found\n") == (done.code, done.out)


def test_repair_says_what_it_would_do_and_does_it(run: Run, store: str) -> None:
    """Without --apply nothing changes; with it page files, snapshots and index are made again, and verify finds nothing."""
    files = session_files(store)
    (damaged, missing, *_) = sorted((files / "pages").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-20])
    missing.unlink()
    for snapshot in (files / "snapshots").iterdir():
        snapshot.write_bytes(snapshot.read_bytes().replace(b"terse", b"verse"))
    before = {path: path.read_bytes() for path in files.rglob("*.json*")}
    told = run("repair", "--store", store)
    assert ExitCode.FAILED == told.code
    assert 3 == sum(line.startswith("would: ") for line in told.out.splitlines())
    assert before == {path: path.read_bytes() for path in files.rglob("*.json*")}
    done = run("repair", "--store", store, "--apply", "--json")
    assert (ExitCode.OK, True, 3) == (done.code, done.json()["ok"], len(done.json()["steps"]))
    assert missing.exists()
    assert ExitCode.OK == run("verify", "--store", store).code


def test_a_damaged_journal_is_beyond_repair(run: Run, store: str) -> None:
    """Damage in the journal itself is reported with its place, and stays: nothing is made up."""
    journal = session_files(store) / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"terse", b"verse", 1))
    done = run("repair", "--store", store, "--apply")
    assert ExitCode.FAILED == done.code
    assert "journal.jsonl, byte" in done.out + done.err


def test_erase(run: Run, store: str) -> None:
    """A page is erased for good, where --yes says that it is meant."""
    journal = session_files(store) / "journal.jsonl"
    shown = run("show", "--store", store, "usr-3").out
    assert ExitCode.USAGE == run("erase", "--store", store, "usr-3").code
    assert shown == run("show", "--store", store, "usr-3").out
    (receipt,) = run("erase", "--store", store, "3", "--yes", "--json").json()
    assert ("usr-3", "chat") == (receipt["page"], receipt["session"])
    assert "[erased]" in run("show", "--store", store, "usr-3").out
    assert ExitCode.OK == run("verify", "--store", store).code
    assert b'"redacted":"' in journal.read_bytes()


def test_erase_in_forks(run: Run, store: str) -> None:
    """Forks that hold the page are named, and with --forks it is erased in them and in their forks."""
    assert ExitCode.OK == run("fork", "--store", store, "--session", "chat", "branch").code
    assert ExitCode.OK == run("fork", "--store", store, "--session", "branch", "twig").code
    told = run("erase", "--store", store, "--session", "chat", "usr-4", "--yes")
    assert (ExitCode.OK, True) == (told.code, "branch; --forks" in told.err)
    assert "[erased]" not in run("show", "--store", store, "--session", "twig", "usr-4").out
    receipts = run("erase", "--store", store, "--session", "chat", "usr-4", "--yes", "--forks", "--json").json()
    assert ["chat", "branch", "twig"] == [receipt["session"] for receipt in receipts]
    for session in ("chat", "branch", "twig"):
        assert "[erased]" in run("show", "--store", store, "--session", session, "usr-4").out
        assert ExitCode.OK == run("verify", "--store", store, "--session", session).code


def test_delete(run: Run, store: str) -> None:
    """A session is deleted when it is named and meant, a damaged one too."""
    assert ExitCode.USAGE == run("delete", "--store", store, "--yes").code
    assert ExitCode.USAGE == run("delete", "--store", store, "--session", "chat").code
    journal = session_files(store) / "journal.jsonl"
    journal.write_bytes(b"x" + journal.read_bytes())
    assert ExitCode.OK == run("delete", "--store", store, "--session", "chat", "--yes").code
    assert not journal.parent.exists()
    again = run("delete", "--store", store, "--session", "chat", "--yes")
    assert (ExitCode.OK, True) == (again.code, "no session 'chat'" in again.err)


def test_a_fork_that_cannot_be_erased(run: Run, store: str) -> None:
    """What was done is said before what could not be; the exit code is that of a damaged store."""
    for fork in ("branch", "twig"):
        assert ExitCode.OK == run("fork", "--store", store, "--session", "chat", fork).code
    journal = session_files(store).parent / "branch" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"terse", b"verse", 1))
    done = run("erase", "--store", store, "--session", "chat", "usr-4", "--yes", "--forks", "--json")
    assert ExitCode.STORE == done.code
    assert ["chat", "twig"] == [receipt["session"] for receipt in done.json()]
    assert "'branch'" in done.err
