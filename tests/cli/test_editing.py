"""The commands that change what a window holds, and what they show of it without changing it."""

import re
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

import memci
from memci.cli.exit_code import ExitCode
from tests.cli.stored import CONFIG, Run, chat, files_below, store_chat

EDITS = (
    ("fold",),
    ("fold", "--all"),
    ("fold", "--to", "light"),
    ("fold", "--to", "400"),
    ("fold", "usr-36", "37"),
    ("undo",),
    ("fade", "usr-2"),
    ("evict", "usr-9..20"),
    ("evict", "usr-5"),
    ("evict", "usr-41"),
    ("restore", "usr-6"),
    ("pin", "usr-7"),
    ("unpin", "usr-8"),
    ("keep", "usr-12"),
    ("unkeep", "usr-39"),
    ("move", "usr-10", "usr-41"),
    ("move", "usr-11", "usr-0"),
    ("note", "Tax", "It is 20%."),
    ("note", "Tax", "All prices\ninclude it.", "--description", "What is due", "--parent", "41"),
    ("undo", "--edit"),
)
"""Each of them changes something of the session ``boiler`` as the tests here find it."""

REFUSED = (
    (("fold", "usr-99"), ExitCode.NOT_FOUND),
    (("fold", "--to", "tiny"), ExitCode.USAGE),
    (("fold", "--to", "0"), ExitCode.USAGE),
    (("fold", "usr-36", "--to", "light"), ExitCode.USAGE),
    (("fold", "usr-36", "--all"), ExitCode.USAGE),
    (("fade", "usr-99"), ExitCode.NOT_FOUND),
    (("evict", "usr-40"), ExitCode.NOT_FOUND),
    (("evict", "usr-8"), ExitCode.FAILED),
    (("evict", "usr-0"), ExitCode.FAILED),
    (("evict", "nonsense"), ExitCode.USAGE),
    (("restore", "usr-99"), ExitCode.NOT_FOUND),
    (("pin", "sys-1"), ExitCode.FAILED),
    (("unpin", "usr-99"), ExitCode.NOT_FOUND),
    (("keep", "usr-99"), ExitCode.NOT_FOUND),
    (("unkeep", "sys-1"), ExitCode.FAILED),
    (("move", "usr-99", "usr-41"), ExitCode.NOT_FOUND),
    (("move", "usr-10", "usr-12"), ExitCode.USAGE),
    (("move", "usr-41", "usr-41"), ExitCode.FAILED),
    (("note", "", "x"), ExitCode.USAGE),
    (("note", "Tax\x1b[2J", "x"), ExitCode.USAGE),
    (("note", "Tax", ""), ExitCode.USAGE),
    (("note", "Tax", "x", "--parent", "note-9"), ExitCode.NOT_FOUND),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The directory of a store with a session of 40 turns: pages are attached, evicted, pinned, kept, and in a directory."""
    store_chat(tmp_path, "boiler", chat(40))
    with memci.Engine(f"file:{tmp_path}", CONFIG) as engine, engine.session("boiler") as session:
        session.recall("usr-2")
        session.evict("usr-6")
        session.pin("usr-8")
        session.keep("usr-39")
        session.create_contents_page("Gaskets", children=["usr-11"])
    return tmp_path


def stood(root: Path) -> tuple[int, Any, Any]:
    """Return the last event of the session, the window that the state makes, and its contents page."""
    with memci.Engine(f"file:{root}", CONFIG, read_only=True) as engine, engine.session("boiler") as session:
        return session.seq, session.render(at=session.seq), session.contents.tokens


@pytest.mark.parametrize("command", EDITS, ids=" ".join)
def test_a_dry_run_says_what_is_done_and_writes_nothing(run: Run, root: Path, command: tuple[str, ...]) -> None:
    """A dry run leaves every file as it was, and its answer is that of the command, which writes what it says."""
    files, (seq, window, contents) = files_below(root), stood(root)
    tried = run(*command, "--dry-run", "--json", "--store", f"file:{root}")
    assert (ExitCode.OK, "") == (tried.code, tried.err)
    assert files == files_below(root)
    done = run(*command, "--json", "--store", f"file:{root}")
    assert {**tried.json(), "dry_run": False} == done.json()
    assert done.json()["steps"]
    sizes = {"tokens": window.tokens, "budget": 700, "breakdown": dict(window.breakdown), "contents_entries": contents}
    assert sizes == done.json()["before"]
    now_seq, now, now_contents = stood(root)
    assert seq < now_seq == done.json()["seq"]
    assert (now.tokens, now.breakdown, now_contents) == tuple(
        done.json()["after"][key] for key in ("tokens", "breakdown", "contents_entries")
    )
    assert ExitCode.OK == run("verify", "--store", f"file:{root}").code


@pytest.mark.parametrize(("command", "code"), REFUSED)
def test_a_dry_run_is_refused_as_the_command_is(run: Run, root: Path, command: tuple[str, ...], code: ExitCode) -> None:
    """What cannot be done ends with the same words and exit code, tried or not, and nothing is written."""
    files, (seq, *_) = files_below(root), stood(root)
    tried = run(*command, "--dry-run", "--store", f"file:{root}")
    assert files == files_below(root)
    done = run(*command, "--store", f"file:{root}")
    assert (code, "") == (tried.code, tried.out)
    assert tried == done
    assert seq == stood(root)[0]


def test_what_is_done_is_said(run: Run, root: Path) -> None:
    """The answer for people has what was done, a table of the window's parts, and whether it was written."""
    with memci.Engine(f"file:{root}", CONFIG) as engine, engine.session("boiler") as session:
        session.window()
    tried = run("fold", "37", "--dry-run", "--store", f"file:{root}")
    lines = tried.out.splitlines()
    assert "would: fold usr-37" == lines[0]
    assert ["part", "before", "after", "change"] == lines[1].split()
    assert lines[-2].startswith("window ")
    assert "nothing was written: without --dry-run it is done\n" == tried.err
    done = run("fold", "37", "--store", f"file:{root}")
    assert ["did: fold usr-37", *lines[1:]] == done.out.splitlines()
    assert done.err.startswith("written to session 'boiler', now at event ")
    with memci.Engine(f"file:{root}", CONFIG) as engine, engine.session("boiler") as session:
        session.append({"role": "user", "content": "Which of them fit? " * 400})
    tried = run("unpin", "8", "--dry-run", "--store", f"file:{root}")
    assert tried.err.startswith("nothing was written: without --dry-run it is done; as it stands, the window does not fit 700")


def test_a_fold_that_shows_the_newer_contents_page(run: Run, root: Path) -> None:
    """A fold that takes no page out of the window says what it does then."""
    done = run("fold", "usr-40", "--store", f"file:{root}").out.splitlines()
    assert "did: show the contents page as it is now" == done[0]


@pytest.mark.parametrize("command", [("unpin", "usr-9"), ("pin", "usr-8"), ("fade", "usr-9"), ("restore", "usr-8")], ids=" ".join)
def test_nothing_to_do(run: Run, root: Path, command: tuple[str, ...]) -> None:
    """What is so already is said, and nothing is written."""
    seq, *_ = stood(root)
    done = run(*command, "--store", f"file:{root}")
    assert (ExitCode.OK, "nothing to do", "") == (done.code, done.out.splitlines()[0], done.err)
    assert [] == run(*command, "--json", "--store", f"file:{root}").json()["steps"]
    assert seq == stood(root)[0]


def test_a_note_is_read_from_standard_input(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With - for its text, a note says what standard input holds, whole; what is not UTF-8 is refused."""
    text = "Größe\n\nof part 7: 猫\n"
    for said, code in ((text.encode(), ExitCode.OK), (b"\xff", ExitCode.USAGE)):
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(said), encoding="ascii"))
        assert code == run("note", "Part 7", "-", "--store", f"file:{root}").code
    with memci.Engine(f"file:{root}", CONFIG, read_only=True) as engine, engine.session("boiler") as session:
        assert [text] == [message["content"] for message in session.page("note-1").messages]


def test_undo_without_a_fold(run: Run, tmp_path: Path) -> None:
    """Where no fold can be taken back, that is said, tried or not."""
    store = store_chat(tmp_path, "short", chat(1))
    assert ExitCode.FAILED == run("undo", "--store", store).code
    assert run("undo", "--store", store) == run("undo", "--dry-run", "--store", store)


def test_settings_of_the_session_stay(run: Run, root: Path) -> None:
    """The commands use the settings that are in force, and leave them so."""
    for command in EDITS:
        run(*command, "--store", f"file:{root}")
    with memci.Engine(f"file:{root}", CONFIG, read_only=True) as engine, engine.session("boiler") as session:
        assert 1 == len(list(session.events("configured")))


def test_a_directory_is_evicted_and_restored(run: Run, root: Path) -> None:
    """A directory goes with all that is in it, and comes back with it; so does one by undoing the edit."""
    store = f"file:{root}"
    before = run("tree", "--depth", 9, "--limit", 99, "--store", store).out
    for back in (("restore", "usr-41"), ("undo", "--edit")):
        sizes = run("evict", "usr-41", "--json", "--store", store).json()
        assert sizes["before"]["contents_entries"] > sizes["after"]["contents_entries"]
        assert not re.search(r"usr-(41|11) ", run("tree", "--depth", 9, "--limit", 99, "--store", store).out)
        assert ExitCode.OK == run(*back, "--store", store).code
        assert before == run("tree", "--depth", 9, "--limit", 99, "--store", store).out


@pytest.mark.parametrize("file_format", ["openai", "responses", "anthropic"])
def test_a_dry_run_in_any_format_of_any_session(run: Run, tmp_path: Path, file_format: str) -> None:
    """A dry run tells what comes of it in each wire format, in a fork, and in a session of which a page was erased."""
    store = f"file:{tmp_path}"
    with memci.Engine(store, {**CONFIG, "format": file_format}) as engine:
        with engine.session("source") as session:
            for turn in range(12):
                session.append({"role": "user", "content": f"What does part {turn} of the boiler cost?"})
                session.append({"role": "assistant", "content": f"Part {turn} costs {turn}.50 euros, as every year."})
        engine.fork("source", "chat").close()
        engine.erase("chat", "usr-2")
    files = files_below(tmp_path)
    given = ("--session", "chat", "--json", "--store", store)
    tried = run("fold", "--all", "--dry-run", *given).json()
    assert files == files_below(tmp_path)
    assert {**tried, "dry_run": False} == run("fold", "--all", *given).json()
    assert ExitCode.OK == run("verify", "--session", "chat", "--store", store).code
