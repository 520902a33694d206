"""Processes that are forked from one that has no threads, so that only one interpreter has to start."""

import os
import select
import signal
import time
import traceback
from collections.abc import Callable


class Forked:
    """A process that tells numbers, one a line, through a pipe; what it told was told before it died.

    Args:
        work: What it does, given a function that tells a number.
    """

    def __init__(self, work: Callable[[Callable[[int], None]], None]) -> None:
        self._reading, writing = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            code = 1
            try:
                os.close(self._reading)
                work(lambda number: _tell(writing, number))
                code = 0
            except BaseException:  # noqa: BLE001 (the process ends here, and must not go on as its parent)
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(writing)
        self._told = b""

    def told_within(self, seconds: float) -> None:
        """Listen for so long, or until the process ends."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._reading], [], [], left)[0] and not self._listen():
                return

    def told_first(self) -> bool:
        """Listen until it told something, and return whether it did before it ended."""
        while b"\n" not in self._told:
            if not self._listen():
                return False
        return True

    def told_so_far(self) -> list[int]:
        """Return the numbers that it told until now."""
        while select.select([self._reading], [], [], 0)[0] and self._listen():
            pass
        return self._numbers()

    def kill(self) -> tuple[list[int], int]:
        """Kill it; return all numbers that it told, and its exit status, below 0 for a signal."""
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def wait(self) -> tuple[list[int], int]:
        """Wait for its end; return all numbers that it told, and its exit status, below 0 for a signal."""
        while self._listen():
            pass
        os.close(self._reading)
        _, status = os.waitpid(self.pid, 0)
        return self._numbers(), os.waitstatus_to_exitcode(status)

    def _numbers(self) -> list[int]:
        return [int(line) for line in self._told.split(b"\n")[:-1]]

    def _listen(self) -> bool:
        told = os.read(self._reading, 1 << 16)
        self._told += told
        return bool(told)


def _tell(pipe: int, number: int) -> None:
    os.writev(pipe, [b"%d\n" % number])  # no call that the bench lets fail
