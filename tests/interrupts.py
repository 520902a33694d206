"""Exceptions out of signal handlers: at each place where one may come."""

import sys
from collections.abc import Callable, Iterator
from itertools import count
from types import FrameType


class Interrupted(BaseException):
    """What the handler raises."""


def interruptions(work: Callable[[], object], *, times: int = 1) -> Iterator[Interrupted]:
    """Do some work again and again, interrupted at its first place, its second, until it gets through; yield each error.

    A handler runs where a function begins and after a call of one in C. The next *times* - 1 such places are interrupted as well.
    """
    for place in count():
        left, to_raise, error = place, times, Interrupted()

        def handle(frame: FrameType, event: str, _: object) -> None:
            nonlocal left, to_raise
            if event not in {"call", "c_return"} or frame.f_code.co_name in {"_remove", "__del__", "gc_callback"} or not to_raise:
                return
            left -= 1
            if left < 0:
                to_raise -= 1
                raise Interrupted

        sys.setprofile(handle)
        try:
            work()
        except Interrupted as interrupted:
            error = interrupted
        finally:
            sys.setprofile(None)
        if to_raise == times:
            return
        yield error
