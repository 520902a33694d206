"""The input of the server on standard input."""

import os
from threading import Barrier, Thread

from memci.mcp.stdio import _Input


def test_several_may_close_the_input_at_once() -> None:
    """Its descriptors are closed once, whoever closes it and how often, and no other's with them."""
    problems: list[OSError] = []
    for _ in range(200):
        source, sink = os.pipe()
        given = _Input(source)
        barrier = Barrier(4)

        def close(given: _Input = given, barrier: Barrier = barrier) -> None:
            barrier.wait()
            try:
                given.close()
            except OSError as error:
                problems.append(error)

        threads = [Thread(target=close) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert given.closed
        os.close(source)
        os.close(sink)
    assert [] == problems
