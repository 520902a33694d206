import gc
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memci.attp.sandbox import Limits, Sandbox
from memci.errors import LimitExceededError, SandboxError
from tests.attp.escapes import ESCAPES
from tests.attp.test_sandbox_processes import workers

LIMITS = Limits(time_s=0.2, memory_bytes=16 * 1024 * 1024)
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox(LIMITS)
    yield made
    made.close()


def find(query: object) -> list[object]:
    return [query]


def broken() -> None:
    message = "no"
    raise RuntimeError(message)


def attempt(sandbox: Sandbox, name: str) -> str:
    """Return what ended an attempt: the kind of an error, or the name of a limit."""
    try:
        outcome = sandbox.run(ESCAPES[name].program, {"find": find, "broken": broken})
    except SandboxError as error:
        return error.kind
    except LimitExceededError as error:
        return error.limit
    return f"came out: {outcome}"


def resident_bytes() -> int:
    """Return how much memory this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_there_are_enough() -> None:
    """The collection holds far more than sixty attempts, each another."""
    assert len({escape.code for escape in ESCAPES.values()}) == len(ESCAPES) >= 150


@pytest.mark.parametrize("name", ESCAPES)
def test_an_escape_ends_as_a_typed_error(name: str, sandbox: Sandbox) -> None:
    """Each attempt ends as the error or at the limit that is meant for it, soon, and the next run works."""
    start = time.monotonic()
    assert attempt(sandbox, name) in ESCAPES[name].ends
    assert time.monotonic() - start < LIMITS.time_s + 5  # generous, for a machine under load; what hangs takes for ever
    assert [1] == sandbox.run("__result__ = find(1)", {"find": find}).value


@pytest.mark.slow
def test_the_process_is_as_before(sandbox: Sandbox) -> None:
    """All attempts leave this process with as many descriptors and threads as before, and with no more memory than some pages."""

    def attempt_all() -> tuple[int, int, int]:
        for name, escape in ESCAPES.items():
            assert attempt(sandbox, name) in escape.ends
        gc.collect()
        return open_files(), threading.active_count(), resident_bytes()

    files, threads, memory = attempt_all()
    files_after, threads_after, memory_after = attempt_all()
    assert (files, threads) == (files_after, threads_after)
    assert memory_after - memory < 8 * MIB


@pytest.mark.slow
def test_the_workers_end_with_the_sandbox(sandbox: Sandbox) -> None:
    """A closed sandbox leaves no process and no descriptor behind."""
    sandbox.close()
    before = open_files(), workers()
    for name in ("time: loop", "time: text of an endless value", "memory: list grown", "output: printing"):
        attempt(sandbox, name)
    assert workers() - before[1]
    sandbox.close()
    gc.collect()
    assert before == (open_files(), workers())
