"""An MCP server on standard input and output, the way in which a client starts one for itself."""

import io
import logging
import os
import select
import signal
import sys
from contextlib import closing, suppress
from typing import TYPE_CHECKING, cast

import anyio
from anyio.abc import TaskStatus
from mcp.server.stdio import stdio_server

from memci.mcp.conversation import Conversation
from memci.mcp.request import Requests
from memci.mcp.server import make_server

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Input(io.RawIOBase):
    """A file descriptor that can be ended from this side too: a thread that waits in a plain read cannot be woken.

    Args:
        fd: Is read, and stays open.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._wait, self._wake = os.pipe()
        self._open = [self._wait, self._wake]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "Buffer") -> int:
        readable, _, _ = select.select([self._fd, self._wait], [], [])
        if self._wait in readable:
            return 0
        view = memoryview(buffer)
        piece = os.read(self._fd, len(view))
        view[: len(piece)] = piece
        return len(piece)

    def end(self) -> None:
        """Let whoever reads, or waits for more, find the end."""
        os.write(self._wake, b"\n")

    def close(self) -> None:
        with suppress(IndexError):  # the buffer around it is collected in any thread, and closes it at the same time
            while True:
                os.close(self._open.pop())
        super().close()


def serve(conversation: Conversation) -> signal.Signals | None:
    """Serve one session on standard input and output, close it, and return what ended that.

    Meanwhile nothing but the protocol is written to standard output; logs go to standard error. A call that has begun is
    carried out, however it ends.

    Returns:
        ``None`` at the end of the input, SIGINT or SIGTERM, or SIGPIPE where whoever read the output closed it.
    """
    logging.basicConfig(stream=sys.stderr, format="memci mcp: %(levelname)s: %(name)s: %(message)s")
    with closing(conversation), _Input(sys.stdin.fileno()) as stdin:
        try:
            return anyio.run(_serve, conversation, stdin)
        except* BrokenPipeError:
            ended = signal.SIGPIPE
        return ended


async def _serve(conversation: Conversation, stdin: _Input) -> signal.Signals | None:
    """Serve until the input ends, and return the signal that ended it."""
    received = None

    async def end_at_signal(*, task_status: TaskStatus[None]) -> None:
        nonlocal received
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            task_status.started()
            received = await anext(signals)
        # The next signal finds the system's own handlers again, and ends the process at once.
        stdin.end()

    server = make_server(conversation)
    requests = Requests(anyio.wrap_file(io.TextIOWrapper(io.BufferedReader(stdin), encoding="utf-8", errors="replace")))
    async with anyio.create_task_group() as tasks:
        await tasks.start(end_at_signal)
        # All that the SDK does with its input is to iterate over the lines.
        async with stdio_server(stdin=cast("anyio.AsyncFile[str]", requests)) as (reading, writing):
            requests.connect(writing)
            try:
                await server.run(reading, writing, server.create_initialization_options())
            finally:
                stdin.end()  # where the output failed, a thread still waits for more input
        tasks.cancel_scope.cancel()
    return received
