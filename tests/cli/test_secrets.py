"""What the command shows of a store's URL."""

from pathlib import Path

import pytest

from memci.cli.exit_code import ExitCode
from memci.cli.place import Place
from tests.cli.stored import Run

URLS = [
    *("postgresql:bob:secret@host/db", "sqlite://bob:secret@h/db", "file://bob:secret@h/db", "bob:secret@h/db"),
    *("https:bob:secret@h", "host=localhost password=secret dbname=x", "postgresql://bob:s3@secret@127.0.0.1/db"),
    *("postgresql://host/db?memci_pool=secret", "s3://key:secret@bucket"),
]


@pytest.mark.parametrize("url", URLS)
def test_a_url_that_is_no_store(run: Run, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """It is wrong usage that shows no password, whether an option or the environment names it."""
    named = [run("sessions", "--store", url), run("verify", "--store", url, "--session", "x"), run("copy", "--to-store", url)]
    monkeypatch.setenv("MEMCI_STORE", url)
    ran = [*named[:2], run("sessions"), run("pages", "--json"), run("copy", "--to-store", "memory:")]
    assert {ExitCode.USAGE} == {done.code for done in ran}
    assert not [done for done in [*named, *ran] if "secret" in done.out + done.err]


def test_a_replay_that_is_kept(run: Run, tmp_path: Path) -> None:
    """Where a replay was kept is shown without what may be a password, in words and as a document."""
    file = tmp_path / "talk.jsonl"
    file.write_text('{"role": "user", "content": "Hello."}\n', encoding="utf-8")
    url = f"file:{tmp_path}/store?key=secret"
    told = run("replay", file, "--store", url, "--session", "a")
    assert (ExitCode.OK, True) == (told.code, "kept in file:…" in told.err)
    assert "file:…" == run("replay", file, "--store", url, "--session", "b", "--json").json()["store"]


def test_a_place_has_no_secret_in_its_repr() -> None:
    """What is shown of a command's place names the store without its password."""
    assert "store=postgresql://…@host/chats" in repr(Place("postgresql://user:secret@host/chats"))
