"""``memci rules`` lists the rules of a session, adds one, and takes one out."""

import subprocess
import sys
from pathlib import Path

import pytest

import memci
from memci.cli.exit_code import ExitCode
from tests.cli.processes import environment
from tests.cli.stored import CONFIG, Run, files_below

RULE = "Never push to main without asking me."
NAME, OTHER_NAME = "Call me Dr. Weber.", "Call me Anna."

LOADED = """
import sys
from memci.cli.app import main

main(sys.argv[1:])
print(*sys.modules)
"""
"""Runs a command, and writes the names of all modules that were loaded."""


@pytest.fixture
def ruled(tmp_path: Path) -> str:
    """URL of a store with a session of three rules, of which the second was replaced by the third."""
    with memci.Engine(f"file:{tmp_path}/store", CONFIG) as engine, engine.session("boiler") as session:
        said = {"role": "user", "content": f"{RULE} {NAME}", "name": "Ann"}
        session.extend([said, {"role": "assistant", "content": "Good."}], at="2026-03-01T10:00:00+00:00")
        session.append({"role": "user", "content": OTHER_NAME, "name": "Ann"}, at="2026-03-02T10:00:00+00:00")
    return f"file:{tmp_path}/store"


def test_rules_in_force_are_listed(run: Run, ruled: str) -> None:
    """Each has its address, kind, time, speaker and words; how many are not shown is said on standard error."""
    done = run("rules", "--store", ruled)
    heading, *rows = done.out.splitlines()
    assert ["rule", "kind", "said", "speaker", "text"] == heading.split()
    assert ["usr-1/1", "prohibition", "2026-03-01", "10:00", "Ann", *RULE.split()] == rows[0].split()
    assert ["usr-2/1", "identity", "2026-03-02", "10:00", "Ann", *OTHER_NAME.split()] == rows[1].split()
    assert (ExitCode.OK, 2) == (done.code, len(rows))
    assert "1 more was replaced or taken back: --all lists them\n" == done.err


def test_superseded_rules_are_listed_when_asked_for(run: Run, ruled: str) -> None:
    """With --all they stand in their place, with the address of what replaced them."""
    done = run("rules", "--all", "--store", ruled)
    assert ["superseded", "by"] == done.out.splitlines()[0].split()[4:6]
    former = done.out.splitlines()[2]
    assert ["usr-1/1#2", "identity", "2026-03-01", "10:00", "Ann", "usr-2/1", *NAME.split()] == former.split()
    assert "" == done.err


def test_the_document_has_all_fields(run: Run, ruled: str) -> None:
    """--json writes the same rules as objects, with --all the others too."""
    listed, every = (run("rules", "--store", ruled, "--json", *more).json() for more in ((), ("--all",)))
    assert [RULE, OTHER_NAME] == [each["text"] for each in listed]
    assert [None, "usr-2/1", None] == [each["superseded_by"] for each in every]
    assert ("usr-1/1#2", "2026-03-01T10:00:00+00:00", "Ann", "identity") == tuple(
        every[1][name] for name in ("address", "at", "speaker", "kind")
    )


def test_a_rule_is_added(run: Run, ruled: str) -> None:
    """The list has it then, and so has the session."""
    done = run("rules", "--add", "Quote  prices with VAT.", "--store", ruled)
    assert ["rule-1", "added"] == done.out.splitlines()[-1].split()[:2]
    assert done.out.endswith("  Quote prices with VAT.\n")
    assert "Quote prices with VAT." == run("rules", "--store", ruled, "--json").json()[-1]["text"]
    assert ExitCode.OK == run("verify", "--store", ruled).code


def test_a_rule_is_taken_out(run: Run, ruled: str) -> None:
    """No list has it then, and the explanation of its page says that it was removed."""
    assert RULE not in run("rules", "--remove", "usr-1/1", "--store", ruled).out
    assert RULE not in run("rules", "--all", "--store", ruled).out
    assert f'"{RULE}" (usr-1/1), which the application removed.' in run("explain", "usr-1", "--store", ruled).out


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--remove", "usr-9/1"), ExitCode.NOT_FOUND),
        (("--remove", ""), ExitCode.NOT_FOUND),
        (("--add", ""), ExitCode.USAGE),
        (("--add", "x" * 2_001), ExitCode.USAGE),
        (("--add", "x", "--remove", "usr-1/1"), ExitCode.USAGE),
        (("--session", "nobody", "--add", "x"), ExitCode.NOT_FOUND),
        (("--tenant", "other"), ExitCode.NOT_FOUND),
    ],
)
def test_what_cannot_be_done_is_refused(run: Run, ruled: str, options: tuple[str, ...], code: ExitCode) -> None:
    """An address that no rule has, no text, both at once, and no such session have their exit codes; nothing is written."""
    before = files_below(Path(ruled.removeprefix("file:")))
    done = run("rules", *options, "--store", ruled)
    assert (code, "", True) == (done.code, done.out, done.err.startswith("memci: "))
    assert before == files_below(Path(ruled.removeprefix("file:")))


def test_there_may_be_no_rule(run: Run, store: str) -> None:
    """Then the command says how to add one; the document is an empty list."""
    done = run("rules", "--store", store)
    assert (ExitCode.OK, "", True) == (done.code, done.out, "--add" in done.err)
    assert [] == run("rules", "--store", store, "--json").json()


def test_rules_cannot_control_the_terminal(run: Run, tmp_path: Path) -> None:
    """Characters that turn the direction of a line are written out."""
    with memci.Engine(f"file:{tmp_path}/store", CONFIG) as engine, engine.session("boiler") as session:
        session.append({"role": "user", "content": "Never push to \u202e main without asking me."})
    assert "push to \\u202e main" in run("rules", "--store", f"file:{tmp_path}/store").out


@pytest.mark.parametrize("options", [(), ("--add", "Quote prices with VAT."), ("--remove", "usr-1/1")])
def test_detection_is_not_loaded(ruled: str, options: tuple[str, ...]) -> None:
    """Listing, adding and taking out load none of the patterns that find rules."""
    command = [sys.executable, "-c", LOADED, "rules", "--store", ruled, *options]
    checkout = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(), cwd=checkout)  # noqa: S603 (our own words)
    loaded = done.stdout.split()
    assert "memci.archive.rules.listing" in loaded
    assert {"memci.archive.rules.cues", "memci.archive.rules.detection"}.isdisjoint(loaded)
