"""``memci watch``: beside another process that writes, into pipes, on terminals, and what a look costs."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

import memci
from memci.cli.exit_code import ExitCode
from memci.cli.watch import Following, Step
from tests.cli.processes import environment, ran
from tests.cli.stored import CONFIG, chat, files_below, store_chat
from tests.cli.test_bar import STYLE
from tests.engine.commands.test_trimming import SMALL, looked, report
from tests.python_calls import python_calls

ESCAPE = "\x1b]0;owned\x07\x9b2J"


@contextmanager
def watching(store: str, *options: str, **ends: Any) -> Iterator[subprocess.Popen[bytes]]:  # noqa: ANN401 (as Popen has them)
    """Run the command on the session ``boiler`` until it is ended, which is checked for its traces."""
    command = [sys.executable, "-m", "memci", "watch", "--store", store, "--session", "boiler", *options]
    ends = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **ends}
    with subprocess.Popen(  # noqa: S603 (fixed words)
        command,
        env=environment(COLUMNS="100", TERM="xterm-256color"),
        **ends,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def writing(store: str) -> Iterator[memci.Session]:
    with memci.Engine(store, CONFIG) as engine, engine.session("boiler") as session:
        yield session


def read(stream: IO[bytes] | None, lines: int) -> list[str]:
    """Return so many lines, which are waited for."""
    assert stream is not None
    return [stream.readline().decode().rstrip("\n") for _ in range(lines)]


def awake(process: subprocess.Popen[bytes], session: memci.Session) -> None:
    """Describe the session until the command, which is starting, writes of it: all that comes later is its to tell."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    seen, times = b"", 0
    while not seen.endswith(b"\n"):
        times += 1
        session.describe(times=times)
        try:
            process.wait(0.3)
        except subprocess.TimeoutExpired:
            seen += process.stdout.read() or b""
    os.set_blocking(process.stdout.fileno(), True)
    session.describe(times=0)
    while str(session.seq) not in read(process.stdout, 1)[0]:
        pass


@pytest.fixture
def store(tmp_path: Path) -> str:
    return store_chat(tmp_path / "store", "boiler", chat(30))


def do_all(session: memci.Session) -> None:
    """Do each of the things that are watched for; the last line that tells of it is of a fold."""
    session.append({"role": "assistant", "content": f"{ESCAPE} It is a secret."})
    session.recall("usr-2")
    session.fade("usr-2")
    session.fold("all")
    session.undo_fold()
    session.checkpoint(f"before {ESCAPE}")
    session.evict("usr-1..16")
    session.append({"role": "user", "content": "word " * 300})


def until(process: subprocess.Popen[bytes], words: str) -> list[str]:
    """Return the lines up to one with these words, without those of zones, which come after each look."""
    lines = read(process.stdout, 1)
    while words not in lines[-1]:
        lines += read(process.stdout, 1)
    return [line for line in lines if "zone" not in line]


@pytest.mark.slow
def test_each_thing_is_a_line(store: str) -> None:
    """What another process does is told in order, as it happens, without a word of any message; no label controls a terminal."""
    with writing(store) as session, watching(store) as process:
        awake(process, session)
        do_all(session)
        told = [line.partition(" ")[2] for line in until(process, "for marks")]
    assert re.fullmatch(r"append usr-30/5 assistant, \d+ tokens", told[0])
    assert ["recall usr-2, 1×", "fade usr-2, for command"] == told[1:3]
    assert [
        "fold usr-26 to usr-29, 4 pages, for command",
        "undo the last fold: usr-26 to usr-29, 4 pages back",
    ] == told[3:5]
    assert r"checkpoint cp-1, manual: before \x1b]0;owned\x07\x9b2J" == told[5]
    assert "evict usr-1..16" == told[6]
    assert told[7].startswith("append usr-31/1 user, ")
    assert "fold usr-26 to usr-29, 4 pages, for marks" == told[8]


@pytest.mark.slow
def test_machines_get_a_document_a_line(store: str) -> None:
    """With ``--json`` each line is an object that names the step, the event and the pages."""
    with writing(store) as session, watching(store, "--json") as process:
        awake(process, session)
        do_all(session)
        told = [json.loads(line) for line in until(process, '"marks"')]
    steps = ["append", "recall", "fade", "fold", "undo", "checkpoint", "evict", "append", "fold"]
    assert steps == [each["step"] for each in told]
    assert {"step": "recall", "seq": told[1]["seq"], "page": "usr-2", "recall_count": 1} == told[1]
    assert {"step": "evict", "seq": told[6]["seq"], "pages": ["usr-1..16"]} == told[6]
    assert {"role": "user", "page": "usr-31", "position": 1}.items() <= told[7].items()
    assert f"before {ESCAPE}" == told[5]["label"]
    assert sorted(each["seq"] for each in told) == [each["seq"] for each in told]


def test_a_zone_is_told_when_it_is_another_one(store: str) -> None:
    """Once, after what brought it about, with the zone before and the numbers of the window."""
    with writing(store) as session, memci.Engine(store, read_only=True) as engine, engine.session("boiler") as watched:
        following = Following(watched)
        before = watched.render(at=watched.seq).zone
        session.fold("all")
        *_, told = following.look()
        session.append({"role": "assistant", "content": "Short."})
        later = following.look()
        window = session.render(at=session.seq - 1)
    assert ("zone", window.tokens, 700) == (told.step, told.facts["tokens"], told.facts["budget"])
    assert f"zone {before} to {window.zone}: {window.tokens} of 700 tokens" == str(told).partition(" ")[2]
    assert ["append"] == [each.step for each in later]


def test_every_kind_of_thing_has_its_name(store: str) -> None:
    """Rewinds, restored checkpoints, pins and notes are told too, by their kind, and a note by its index alone."""
    with writing(store) as session, memci.Engine(store, read_only=True) as engine, engine.session("boiler") as watched:
        following = Following(watched)
        made = session.checkpoint("here")
        session.pin("usr-26")
        session.create_detail_page("Valves", "", "They are dear.")
        session.rewind("usr-29/1")
        session.restore_checkpoint(made.id)
        steps = following.look()
    assert ["checkpoint", "pinned", "note_written", "rewind", "checkpoint", "restore_checkpoint"] == [
        each.step for each in steps if each.step != "zone"
    ]
    assert [] == [each for each in steps if "dear" in str(each)]


def test_trims_and_evictions_of_folds(tmp_path: Path) -> None:
    """Long results that are trimmed, and entries that leave the contents page with a fold, are things of their own."""
    store, seen = f"file:{tmp_path}", list[Step]()
    with (
        memci.Engine(store, {**CONFIG, **SMALL, "contents": {"max_tokens": 200, "directories": False}}) as engine,
        engine.session("boiler") as session,
        memci.Engine(store, read_only=True) as reading,
        reading.session("boiler") as watched,
    ):
        following = Following(watched)
        for number in range(60):
            session.extend(looked(number, report(number) if number < 7 else "All is well there. " * 20))
            session.window()
            seen += following.look()
    assert {"append", "fold", "trim", "evict", "zone"} <= {each.step for each in seen}


def on_terminal(store: str, do: Callable[[memci.Session], object], until: str) -> str:
    """Return what a terminal is sent while something is done to the session, up to some words."""
    ours, theirs = pty.openpty()
    with watching(store, stdout=theirs) as process, writing(store) as session:
        os.close(theirs)
        written = os.read(ours, 65_536)
        while b"zone" not in written:
            written += os.read(ours, 65_536)
        do(session)
        while until.encode() not in written.partition(b"zone")[2]:
            written += os.read(ours, 65_536)
        process.send_signal(signal.SIGINT)
        assert ExitCode.INTERRUPTED == process.wait()
    os.close(ours)
    return STYLE.sub("", written.decode())


@pytest.mark.slow
def test_a_terminal_has_the_bar(store: str) -> None:
    """On a terminal the bar stands there at once, with its legend, and again below what happened, in a line."""
    written = on_terminal(store, lambda session: session.recall("usr-2"), "zone")
    first, _, later = written.partition("recall usr-2, 1×")
    assert "█ contents " in first
    assert 1 == first.count("zone ")
    bar = later.splitlines()[1]
    assert 100 >= len(bar) > 90
    assert bar.startswith("█")
    assert "tokens" in bar


@pytest.mark.slow
def test_nothing_is_written(tmp_path: Path, store: str) -> None:
    """Files of the store stay as they are, and the directory may be one without write permission."""
    before = files_below(tmp_path)
    with watching(store) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        process.send_signal(signal.SIGINT)
        assert (b"", b"") == process.communicate()
    assert ExitCode.INTERRUPTED == process.returncode
    assert before == files_below(tmp_path)


def test_a_reader_that_goes_ends_it(store: str) -> None:
    """When whoever reads has gone it ends without a word, though nothing happens in the session."""
    with watching(store) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert ExitCode.PIPE_CLOSED == process.wait()
        assert [""] == read(process.stderr, 1)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["file:", "sqlite:///"])
def test_a_session_that_is_not_there_is_waited_for(tmp_path: Path, scheme: str) -> None:
    """It is said that the session is waited for; once it begins all of it is told, and when it is deleted the command ends."""
    store = f"{scheme}{tmp_path}/later"
    with watching(store) as process:
        assert "no session 'boiler'" in (waits := read(process.stderr, 1)[0])
        assert waits.endswith("yet: it is waited for")
        with memci.Engine(store, CONFIG) as engine:
            with engine.session("boiler") as session:
                session.append({"role": "user", "content": "Begin."})
                assert f"{session.seq} append usr-1/1 user," in read(process.stdout, 1)[0]
            engine.delete("boiler")
        assert ExitCode.NOT_FOUND == process.wait()
        assert "memci: session 'boiler' was deleted: nothing more happens in it" == read(process.stderr, 1)[0]


@pytest.mark.slow
def test_one_of_several_has_to_be_named(store: str) -> None:
    """Without a name, several sessions are an error that lists them, and so is a store without any."""
    with memci.Engine(store, CONFIG) as engine, engine.session("other") as session:
        session.append({"role": "user", "content": "Begin."})
    done = ran("watch", "--store", store)
    assert (ExitCode.USAGE, "") == (done.code, done.out)
    assert "'boiler', 'other'" in done.err
    assert ExitCode.NOT_FOUND == ran("watch", "--store", f"{store}/none").code


@pytest.mark.slow
def test_a_look_costs_the_same_whatever_the_history(tmp_path: Path) -> None:
    """After 800 turns a look runs as many functions as after 100, where nothing was written, and where a turn was."""
    idle, busy = list[int](), list[int]()
    for turns in (100, 800):
        store = store_chat(tmp_path / str(turns), "boiler", chat(turns))
        with writing(store) as session, memci.Engine(store, read_only=True) as engine, engine.session("boiler") as watched:
            following = Following(watched)
            session.append({"role": "user", "content": "Begin."})
            following.look()
            idle.append(python_calls(following.look).total())
            session.append({"role": "assistant", "content": "Done."})
            busy.append(python_calls(following.look).total())
    assert idle[0] == idle[1] < 100
    assert busy[1] < 1.25 * busy[0]
