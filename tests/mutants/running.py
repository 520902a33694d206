"""Runs tests on the source with one mutation, and tells which test noticed it."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Final

import attrs
import pytest

from tests.mutants.mutation import ROOT, Mutation

HOOK: Final = Path(__file__).parent / "hook"
VARIABLE: Final = "MEMCI_MUTATION"  # as in the hook, which imports nothing of the tests
FAST: Final = "not slow and not server and not browser and not frameworks"

# Of the installed plugins those that the tests need: loading all takes longer than running the tests.
_PLUGINS = ("--disable-plugin-autoload", "-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin", "-p", "no:cacheprovider")
_OPTIONS = ("-q", "--tb", "no", "-rfE", "--hypothesis-profile", "seeded")
_ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)  # the last one: a module did not load


@attrs.frozen(kw_only=True)
class Outcome:
    """Result of running the tests of a mutation's room: *test* is the one that failed first, empty if all passed."""

    mutation: Mutation
    test: str
    seconds: float


def environment(mutation: Mutation | None) -> dict[str, str]:
    """Return the environment of a process in which a mutation holds, also for the processes that it starts."""
    if mutation is None:
        return {name: value for name, value in os.environ.items() if name != VARIABLE}
    paths = [str(HOOK), *filter(None, [os.environ.get("PYTHONPATH")])]
    change = {"module": mutation.module, "right": mutation.right, "wrong": mutation.wrong}
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), VARIABLE: json.dumps(change)}


def run(mutation: Mutation, tests: Sequence[str], *, marks: str = "") -> Outcome:
    """Run tests on the source with a mutation, until the first one fails; *marks* choose among them, as ``pytest -m`` does."""
    started = monotonic()
    failed = _failed(mutation, ["-x", *tests], marks)
    return Outcome(mutation=mutation, test=failed[0] if failed else "", seconds=monotonic() - started)


def failing_unchanged(tests: Sequence[str]) -> list[str]:
    """Return those of some tests that fail on the source as it is, and so notice nothing."""
    return _failed(None, tests, "") if tests else []


def _failed(mutation: Mutation | None, arguments: Sequence[str], marks: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", *_PLUGINS, *_OPTIONS, *(["-m", marks] if marks else []), *arguments]
    done = subprocess.run(  # noqa: S603 (fixed words and names of tests)
        command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment(mutation)
    )
    lines = [line.split(" ", maxsplit=1) for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    failed = [rest.partition(" - ")[0] for _, rest in lines]
    if done.returncode not in _ENDED or (done.returncode and not failed):
        message = f"pytest ended with {done.returncode}:\n{done.stdout[-2_000:]}\n{done.stderr[-2_000:]}"
        raise RuntimeError(message)
    return failed
