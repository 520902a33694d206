"""Processes that do tasks, and end with whoever started them."""

import os
import signal
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import TypeVar

_Key = TypeVar("_Key")
_Result = TypeVar("_Result")


def done(tasks: Mapping[_Key, Callable[[], _Result]], jobs: int) -> Generator[tuple[_Key, _Result], None, None]:
    """Yield what the tasks return, each with its key, as it comes; by one process in their order.

    When the iterator is closed, an interrupt (Ctrl-C) included, the processes end at once, whatever they do. They hear of no
    interrupt themselves, and end too when this process is killed.

    Args:
        tasks: What is to be done; with several processes, each must be one that can be pickled.
        jobs: How many processes do it; with one of them, or one task, it is this one.
    """
    if min(jobs, len(tasks)) <= 1:
        for key, task in tasks.items():
            yield key, task()
        return
    context = get_context("spawn")  # new interpreters, as a fork of a process with threads may hang
    leash, end = context.Pipe(duplex=False)
    with closing(leash), closing(end):
        pool = ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context, initializer=_begin, initargs=(leash,))
        with pool:
            try:
                with _no_interrupts():  # submitting starts the processes, which take this over
                    futures = {pool.submit(task): key for key, task in tasks.items()}
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BaseException:
                end.close()  # leaving the pool waits for its processes
                raise


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Hold interrupts back while the block runs; one that came meanwhile comes behind it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(leash: Connection) -> None:
    """Let this process end when the other end of the leash is closed."""
    Thread(target=_end_with, args=(leash,), daemon=True).start()


def _end_with(leash: Connection) -> None:
    leash.poll(None)
    os._exit(1)  # a task is not left in any other way, and nothing of it is wanted
