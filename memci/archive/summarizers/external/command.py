"""Summaries by an external program: JSON in, JSON or text out, for so long at most."""

import os
import signal
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

from memci.archive.summarizers.summary import Summary
from memci.errors import ArgumentError, SummaryError
from memci.messages import codec
from memci.messages.message import Message

if TYPE_CHECKING:
    import subprocess

_MOST_BYTES = 1_048_576  # of what it writes
_MOST_SAID = 300  # characters of an error


class CommandSummarizer:
    """Runs a program for each page.

    Its standard input is a JSON object: ``messages``, those of the page as they came in, and ``max_tokens``. It writes a JSON
    object with ``title`` and, as it likes, ``summary``, ``lines`` (a list) and ``usage`` (an object), or plain text, whose first
    line is the title. One that takes longer than *timeout_s* is killed with all that it began.
    """

    def __init__(self, command: Sequence[str], *, timeout_s: float = 60.0) -> None:
        if not isinstance(command, list | tuple) or not command or not all(isinstance(part, str) and part for part in command):
            raise ArgumentError(argument="command", value=command, wanted="a program and its arguments, as a list of texts")
        self._command, self._timeout_s = list(command), timeout_s
        self.name = os.path.basename(command[0])  # noqa: PTH119 (a command may be any text)

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> Summary | str:
        """Return what the program writes of a page; ``SummaryError`` where it fails."""
        given = codec.encode({"messages": [message.value() for message in messages], "max_tokens": max_tokens})
        with TemporaryFile() as file:
            file.write(given)
            file.seek(0)
            return _read(self._written(file))

    def _written(self, given: IO[bytes]) -> bytes:
        """Run the program, and return what it writes."""
        import subprocess  # noqa: PLC0415 (for those who use it)

        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(self._command, stdin=given, stdout=pipe, stderr=pipe, start_new_session=True)  # noqa: S603 (the user's own)
        except OSError as error:
            message = f"{self.name} cannot be run: {error}"
            raise SummaryError(message) from error
        late = threading.Timer(self._timeout_s, _kill, [process])
        late.start()
        try:
            with ThreadPoolExecutor(2) as threads:  # more than they read, a program cannot write
                written, said = threads.map(_read_some, (process.stdout, process.stderr))
            code = process.wait() if len(written) <= _MOST_BYTES else 0
        finally:
            in_time = late.is_alive()
            late.cancel()
            _kill(process)
            process.wait()
        problem = ""
        if not in_time:
            problem = f"was not done within {self._timeout_s:g} s"
        elif len(written) > _MOST_BYTES:
            problem = f"wrote more than {_MOST_BYTES} bytes"
        elif code:
            problem = f"ended with {code}: {said.decode('utf-8', 'replace').strip()[-_MOST_SAID:]}"
        if problem:
            message = f"{self.name} {problem}"
            raise SummaryError(message)
        return written


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End a program with all that it began."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _read_some(pipe: IO[bytes] | None) -> bytes:
    assert pipe is not None
    with pipe:
        return pipe.read(_MOST_BYTES + 1)


def _read(written: bytes) -> Summary | str:
    text = written.decode("utf-8", "replace").strip()
    value: Any = None
    with suppress(ValueError):
        value = codec.decode_foreign(written)
    if not isinstance(value, Mapping):
        return value if isinstance(value, str) else text
    title, summary, outcome = (str(value.get(name) or "") for name in ("title", "summary", "outcome"))
    lines, usage = value.get("lines"), value.get("usage")
    several = tuple(map(str, lines)) if isinstance(lines, list) else ()
    return Summary(title=title, summary=summary, outcome=outcome, lines=several, usage=usage if isinstance(usage, dict) else {})
