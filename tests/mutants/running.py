"""Runs tests on the source with one mutation, and tells which test noticed it."""

import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

import attrs
import pytest

from tests.mutants.mutation import ROOT, Mutation

HOOK: Final = Path(__file__).parent / "hook"
MUTATION: Final = "MEMCI_MUTATION"  # as in the hook, which imports nothing of the tests

_PLUGINS = ("-p", "no:cacheprovider", "-p", "tests.mutants.choosing")
_OPTIONS = (*_PLUGINS, "-q", "--tb", "no", "-rfE", "--hypothesis-profile", "seeded")
_ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)  # the last one: a module did not load


@attrs.frozen(kw_only=True)
class Outcome:
    """Result of running the tests of a mutation's room: *test* is the one that failed first, empty if all passed."""

    mutation: Mutation
    test: str
    seconds: float


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that loads modules with the hook, as do the processes that it starts."""
    paths = [str(HOOK), *filter(None, [os.environ.get("PYTHONPATH")])]
    # pytest would load plugins, such as memci's report of conformance, in a way of its own for its assertions.
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTEST_ADDOPTS": "--assert=plain", **variables}


def mutated(mutation: Mutation) -> dict[str, str]:
    """Return the environment of a process in which a mutation holds."""
    return environment({MUTATION: json.dumps({key: getattr(mutation, key) for key in ("module", "right", "wrong")})})


def run(mutation: Mutation, files: Sequence[str], *, chosen: Collection[str] | None = None, marks: str = "") -> Outcome:
    """Run tests of some files on the source with a mutation, until the first one fails: all, or those *chosen*.

    *marks* choose among them, as ``pytest -m`` does.
    """
    started = monotonic()
    with TemporaryDirectory() as folder:
        choice = list[str]()
        if chosen is not None:
            path = Path(folder) / "chosen.json"
            path.write_text(json.dumps(sorted(chosen)), encoding="utf-8")
            choice = ["--chosen", str(path)]
        failed = failed_tests(["-x", *choice, *files], mutated(mutation), marks=marks) if files else []
    return Outcome(mutation=mutation, test=failed[0] if failed else "", seconds=monotonic() - started)


def failed_tests(arguments: Sequence[str], env: Mapping[str, str], *, marks: str = "") -> list[str]:
    """Run tests and return those that failed, and the modules that did not load; ``RuntimeError`` where they did not run."""
    command = [sys.executable, "-m", "pytest", *_OPTIONS, *(["-m", marks] if marks else []), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=env)  # noqa: S603 (names of tests)
    lines = [line.split(" ", maxsplit=1) for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    failed = [rest.partition(" - ")[0] for _, rest in lines]
    if done.returncode not in _ENDED or (done.returncode and not failed):
        message = f"pytest ended with {done.returncode}:\n{done.stdout[-2_000:]}\n{done.stderr[-2_000:]}"
        raise RuntimeError(message)
    return failed
