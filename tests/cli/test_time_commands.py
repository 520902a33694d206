"""The commands that go through time, and that take sessions elsewhere."""

from pathlib import Path

import pytest

import memci
from memci.cli.exit_code import ExitCode
from tests.cli.stored import Run, chat, files_below, store_chat


@pytest.fixture
def written(tmp_path: Path) -> str:
    """URL of a store with the session ``boiler`` of 12 turns."""
    return store_chat(tmp_path / "store", "boiler", chat(12))


def test_no_checkpoint(run: Run, store: str) -> None:
    """Where there is none, the command says how to make one; the document is an empty list."""
    done = run("checkpoints", "--store", store)
    assert (ExitCode.OK, "", True) == (done.code, done.out, "--add" in done.err)
    assert [] == run("checkpoints", "--store", store, "--json").json()


def test_checkpoints_are_made_listed_and_restored(run: Run, written: str) -> None:
    """--add makes one, --restore goes back to one; both list what there is then."""
    made = run("checkpoints", "--store", written, "--add", "twelve turns", "--kind", "milestone").out.splitlines()
    assert ["checkpoint", "event", "turn", "kind", "made", "label"] == made[0].split()
    assert ["cp-1", "12", "milestone", "twelve turns"] == [*(made[1].split()[place] for place in (0, 2, 3)), made[1][-12:]]
    exported = run("export", "--store", written).out
    with memci.Engine(written, {"durability": "flush"}) as engine, engine.session("boiler") as session:
        session.append({"role": "user", "content": "And part 13?"})
    assert exported != run("export", "--store", written).out
    listed = run("checkpoints", "--store", written, "--restore", "cp-1", "--json").json()
    assert [("cp-1", "milestone"), ("cp-2", "recovery")] == [(each["id"], each["kind"]) for each in listed]
    assert exported == run("export", "--store", written).out
    assert ExitCode.OK == run("verify", "--store", written).code


@pytest.mark.parametrize("asked", ["cp-9", ""])
def test_a_checkpoint_that_is_not_there(run: Run, store: str, asked: str) -> None:
    """It is not found, and nothing is written."""
    before = run("export", "--store", store).out
    done = run("checkpoints", "--store", store, "--restore", asked)
    assert (ExitCode.NOT_FOUND, True) == (done.code, f"there is no checkpoint '{asked}'" in done.err)
    assert before == run("export", "--store", store).out


@pytest.mark.parametrize("options", [("--add", ""), ("--add", "x", "--kind", "auto"), ("--add", "x", "--restore", "cp-1")])
def test_wrong_checkpoints(run: Run, store: str, options: tuple[str, ...]) -> None:
    """What is no checkpoint, label or kind is wrong usage, and nothing is written."""
    before = run("checkpoints", "--store", store, "--json").out
    assert ExitCode.USAGE == run("checkpoints", "--store", store, *options).code
    assert before == run("checkpoints", "--store", store, "--json").out


def test_fork(run: Run, written: str) -> None:
    """A fork is a session beside the other, whole, or as it was at an event."""
    told = run("fork", "--store", written, "--session", "boiler", "whole").out
    assert told.startswith("whole: a fork of boiler, at event ")
    assert {"source": "boiler", "session": "early", "seq": 10} == run(
        "fork", "early", "--at", "9", "--session", "boiler", "--store", written, "--json"
    ).json()
    assert ["boiler", "early", "whole"] == run("sessions", "--store", written).out.splitlines()
    exported = [run("export", "--store", written, "--session", name).out for name in ("boiler", "whole", "early")]
    assert exported[0] == exported[1] != exported[2]
    assert ExitCode.OK == run("verify", "--store", written, "--session", "whole").code


def test_forks_that_cannot_be(run: Run, written: str) -> None:
    """An event that is not there, an id that is taken and a session that is not there have their exit codes."""
    assert ExitCode.USAGE == run("fork", "other", "--at", "9999", "--store", written).code
    assert ExitCode.USAGE == run("fork", "boiler", "--store", written).code
    assert ExitCode.NOT_FOUND == run("fork", "other", "--store", written, "--session", "nobody").code
    assert ExitCode.OK == run("fork", "other", "--store", written).code
    assert ExitCode.STORE == run("fork", "other", "--store", written, "--session", "boiler").code


def test_copy(run: Run, written: str, tmp_path: Path) -> None:
    """A session is copied to another store, once; the one that is copied stays as it is."""
    before = files_below(tmp_path / "store")
    target = f"sqlite:///{tmp_path}/chats.db"
    told = run("copy", "--store", written, "--to-store", target)
    assert (ExitCode.OK, "") == (told.code, told.err)
    assert told.out.startswith("boiler: ")
    assert before == files_below(tmp_path / "store")
    assert run("export", "--store", written).out == run("export", "--store", target).out
    assert "0 events and 0 page files copied" in run("copy", "--store", written, "--to-store", target).out
    assert ExitCode.OK == run("verify", "--store", target).code


def test_copy_under_another_id(run: Run, written: str, tmp_path: Path) -> None:
    """--to-session names the copy."""
    target = f"file:{tmp_path}/copies"
    copied = run("copy", "--store", written, "--to-store", target, "--to-session", "stove", "--json").json()
    assert ["stove"] == [each["session"] for each in copied]
    assert ["stove"] == run("sessions", "--store", target).out.splitlines()


def test_copy_all(run: Run, written: str, tmp_path: Path) -> None:
    """--all copies every session of the tenant."""
    store_chat(tmp_path / "store", "second", chat(2))
    target = f"file:{tmp_path}/copies"
    assert 2 == len(run("copy", "--all", "--store", written, "--to-store", target).out.splitlines())
    assert ["boiler", "second"] == run("sessions", "--store", target).out.splitlines()


def test_copies_that_cannot_be(run: Run, written: str, tmp_path: Path) -> None:
    """A copy into the same store, options that do not go together, and a session that is not there are refused."""
    target = f"file:{tmp_path}/copies"
    assert ExitCode.USAGE == run("copy", "--store", written, "--to-store", written).code
    written_otherwise = f"file://{tmp_path}/./store/"
    assert ExitCode.USAGE == run("copy", "--store", written, "--to-store", written_otherwise, "--to-session", "other").code
    assert ExitCode.USAGE == run("copy", "--all", "--session", "boiler", "--store", written, "--to-store", target).code
    assert ExitCode.USAGE == run("copy", "--all", "--to-session", "x", "--store", written, "--to-store", target).code
    assert ExitCode.NOT_FOUND == run("copy", "--session", "nobody", "--store", written, "--to-store", target).code
    assert ExitCode.NOT_FOUND == run("copy", "--store", f"file:{tmp_path}/nothing", "--to-store", target).code
    assert ExitCode.USAGE == run("copy", "--store", written).code
    assert not (tmp_path / "copies").exists()


KEYS = {"FIRST_KEY": "x" * 43 + "=", "SECOND_KEY": "y" * 43 + "="}


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)


@pytest.mark.usefixtures("keys")
def test_an_encrypted_copy(run: Run, written: str, tmp_path: Path) -> None:
    """--to-key encrypts the copy, --key reads it, with old keys after a comma; a copy of the copy has another key, or none."""
    first, second, plain = (f"file:{tmp_path}/{name}" for name in ("first", "second", "plain"))
    exported = run("export", "--store", written).out
    assert ExitCode.OK == run("copy", "--store", written, "--to-store", first, "--to-key", "env:FIRST_KEY").code
    key = ("--key", "env:SECOND_KEY, env:FIRST_KEY")
    assert exported == run("export", "--store", first, *key).out
    assert ExitCode.OK == run("verify", "--all", "--store", first, "--key", "env:FIRST_KEY").code
    assert ExitCode.OK == run("copy", "--store", first, *key, "--to-store", second, "--to-key", "env:SECOND_KEY").code
    assert ExitCode.OK == run("copy", "--store", second, *key, "--to-store", plain).code
    assert exported == run("export", "--store", plain).out
    assert exported == run("export", "--store", second, "--key", "env:SECOND_KEY").out
    for other in ((), ("--key", "env:SECOND_KEY")):
        refused = run("export", "--store", first, *other)
        assert (ExitCode.STORE, True) == (refused.code, "it is encrypted with" in refused.err)
    assert ["boiler"] == run("sessions", "--store", first, "--key", "env:FIRST_KEY", "--json").json()
    assert "boiler" in run("sessions", "--by", "used", "--store", first, "--key", "env:FIRST_KEY").out
    doctor = ("doctor", "--store", first)
    assert [ExitCode.OK, ExitCode.FAILED] == [run(*doctor, "--key", "env:FIRST_KEY").code, run(*doctor).code]
    assert ExitCode.USAGE == run("export", "--store", first, "--key", "FIRST_KEY").code
    assert ExitCode.USAGE == run("export", "--store", first, "--key", "env:NO_KEY").code


def test_a_copy_of_all_goes_on(run: Run, written: str, tmp_path: Path) -> None:
    """One that is damaged is named, and keeps no other from the copy; verify --all finds it, and nothing in the copies."""
    store_chat(tmp_path / "store", "another", chat(2))
    store_chat(tmp_path / "store", "second", chat(2))
    (journal,) = (tmp_path / "store" / "default" / "another").glob("journal.jsonl")
    journal.write_bytes(journal.read_bytes().replace(b"user", b"usxr", 1))
    target = f"file:{tmp_path}/copies"
    copied = run("copy", "--all", "--store", written, "--to-store", target)
    assert ExitCode.FAILED == copied.code
    assert ["another: not copied", "boiler: ", "second: "] == [
        line[:length] for line, length in zip(copied.out.splitlines(), (19, 8, 8), strict=True)
    ]
    again = run("copy", "--all", "--store", written, "--to-store", target, "--json")
    assert [True, False, False] == ["error" in each for each in again.json()]
    verified = run("verify", "--all", "--store", written, "--json")
    assert (ExitCode.FAILED, [False, True, True]) == (verified.code, [each["ok"] for each in verified.json()])
    assert ExitCode.OK == run("verify", "--all", "--store", target).code
    assert ExitCode.USAGE == run("verify", "--all", "--session", "boiler", "--store", target).code
