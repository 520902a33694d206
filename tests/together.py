"""Work that tests let run at once with other work: in threads, in forks, and in event loops."""

import asyncio
import functools
import os
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Given = TypeVar("_Given")


def in_threads(work: Callable[[_Given], object], given: Collection[_Given]) -> None:
    """Work on each of what is given in a thread, all at once; what one of them raises is raised here."""
    with ThreadPoolExecutor(len(given)) as pool:
        list(pool.map(work, given))


def started_child(work: Callable[[], object]) -> int:
    """Begin to work in a fork, and return its process."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    """Wait for a fork, and return 0 where it came to its end."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_child(work: Callable[[], object]) -> int:
    """Work in a fork, and return 0 where it came to its end."""
    return ended(started_child(work))


def in_loop(test: Callable[_Arguments, Coroutine[Any, Any, None]]) -> Callable[_Arguments, None]:
    """Run a test in an event loop of its own."""

    @functools.wraps(test)
    def run(*positional: _Arguments.args, **named: _Arguments.kwargs) -> None:
        asyncio.run(test(*positional, **named))

    return run
