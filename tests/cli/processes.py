"""The command in processes of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping

from tests.cli.stored import Ran

WATCHED = """
import json, os, sys

def watch(event, arguments):
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link", "sqlite3.connect"):
        seen.append([event, *(argument if isinstance(argument, int) else os.fsdecode(argument or "") for argument in arguments)])

root, *arguments = sys.argv[1:]
from memci.cli.app import main
seen = []
sys.addaudithook(watch)
code = main(arguments)
below = [item for item in seen if any(isinstance(part, str) and root in part for part in item[1:])]
print(json.dumps(below), file=sys.stderr)
sys.exit(code)
"""
"""Runs the command, and writes what it asked of the operating system below a directory to standard error."""


def environment(**changes: str) -> dict[str, str]:
    """Return the environment without what changes the command's output, and with these changes."""
    removed = ("MEMCI_STORE", "NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING", "COLUMNS", "TTY_COMPATIBLE")
    return {key: value for key, value in os.environ.items() if key not in removed} | changes


def ran(*arguments: object, env: Mapping[str, str] | None = None, code: str | None = None) -> Ran:
    """Run ``python -m memci``, or *code*, and return what it did."""
    head = [sys.executable, "-m", "memci"] if code is None else [sys.executable, "-c", code]
    done = subprocess.run(  # noqa: S603 (fixed words)
        [*head, *map(str, arguments)], capture_output=True, env=dict(env or environment()), check=False
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def asked(root: object, *arguments: object) -> list[list[object]]:
    """Run the command and return what it asked of the operating system below *root*: events of Python's audit, in order."""
    done = ran(root, *arguments, code=WATCHED)
    if done.code:
        message = f"the command failed with {done.code}: {done.err}"
        raise AssertionError(message)
    events: list[list[object]] = json.loads(done.err.splitlines()[-1])
    return events
