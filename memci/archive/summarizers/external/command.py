"""Summaries by an external program: JSON in, JSON or text out, for so long at most."""

import os
import selectors
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from time import monotonic
from typing import IO, TYPE_CHECKING, Any

from memci.archive.summarizers.summary import GivenPage, Summary
from memci.errors import ArgumentError, SummaryError, SummaryTimeoutError, is_span
from memci.messages import codec
from memci.messages.message import Message

if TYPE_CHECKING:
    import subprocess

_MOST_BYTES = 1_048_576  # of what it writes
_MOST_READ = 65_536  # of it at once
_MOST_SAID = 300  # characters of an error


class CommandSummarizer:
    """Runs a program for each page, and for a continuation.

    Its standard input is a JSON object: ``messages``, those of the page as they came in, and ``max_tokens``. It writes a JSON
    object with ``title`` and, as it likes, ``summary``, ``lines`` (a list) and ``usage`` (an object), or plain text, whose first
    line is the title. For a continuation the object has ``kind`` (``continuation``), ``previous``, ``pages`` (each with
    ``index`` and ``messages``, or ``entry``) and ``max_tokens``. One that takes longer than *timeout_s* is killed with all that
    it began.
    """

    def __init__(self, command: Sequence[str], *, timeout_s: float = 60.0) -> None:
        if not isinstance(command, list | tuple) or not command or not all(isinstance(part, str) and part for part in command):
            raise ArgumentError(argument="command", value=command, wanted="a program and its arguments, as a list of texts")
        if not is_span(timeout_s):
            raise ArgumentError(
                argument="timeout_s", value=timeout_s, wanted="a number of seconds above 0, and at most a million"
            )
        self._command, self._timeout_s = list(command), timeout_s
        self._running = set["subprocess.Popen[bytes]"]()
        self._cancels = 0  # calls of ``cancel`` so far
        self.name = os.path.basename(command[0])  # noqa: PTH119 (a command may be any text)

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> Summary | str:
        """Return what the program writes of a page; ``SummaryError`` where it fails or takes too long."""
        return self._asked({"messages": _values(messages), "max_tokens": max_tokens})

    def continuation(self, previous: str, pages: Sequence[GivenPage], *, max_tokens: int) -> Summary | str:
        """Return what the program writes of a session; see ``Continuer``."""
        given = [
            {"index": page.index} | ({"entry": page.entry} if page.entry else {"messages": _values(page.messages)})
            for page in pages
        ]
        return self._asked({"kind": "continuation", "previous": previous, "pages": given, "max_tokens": max_tokens})

    def _asked(self, given: dict[str, Any]) -> Summary | str:
        with TemporaryFile() as file:
            file.write(codec.encode(given))
            file.seek(0)
            return _read(self._written(file))

    def cancel(self) -> None:
        """Kill the programs that run, with all that they began; whoever waits for one gets ``SummaryError``."""
        self._cancels += 1
        for process in list(self._running):
            _kill(process)

    def _written(self, given: IO[bytes]) -> bytes:
        """Run the program, and return what it writes."""
        import subprocess  # noqa: PLC0415 (for those who use it)

        pipe, until, cancels = subprocess.PIPE, monotonic() + self._timeout_s, self._cancels
        try:
            process = subprocess.Popen(self._command, stdin=given, stdout=pipe, stderr=pipe, start_new_session=True)  # noqa: S603 (the user's own)
        except OSError as error:
            message = f"{self.name} cannot be run: {error}"
            raise SummaryError(message) from error
        self._running.add(process)
        if self._cancels != cancels:  # during the start, when ``cancel`` did not know the process yet
            _kill(process)
        problem = ""
        try:
            written, said = _output(process, until)
            code = process.wait(max(until - monotonic(), 0)) if len(written) <= _MOST_BYTES else 0
            if len(written) > _MOST_BYTES:
                problem = f"wrote more than {_MOST_BYTES} bytes"
            elif code:
                problem = f"ended with {code}: {said.decode('utf-8', 'replace').strip()[-_MOST_SAID:]}"
        except (TimeoutError, subprocess.TimeoutExpired):
            message = f"{self.name} was not done within {self._timeout_s:g} s"
            raise SummaryTimeoutError(message) from None
        finally:
            _kill(process)
            process.wait()
            self._running.discard(process)
        if problem:
            message = f"{self.name} {problem}"
            raise SummaryError(message)
        return bytes(written)


def _values(messages: Sequence[Message]) -> list[Any]:
    return [message.value() for message in messages]


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End a program with all that it began."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _output(process: "subprocess.Popen[bytes]", until: float) -> tuple[bytearray, bytearray]:
    """Return what a program writes to its outputs, of each a byte more than is read at most; ``TimeoutError`` after a time.

    What it began, and is out of reach, may hold them open for longer than it runs.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    written, said = bytearray(), bytearray()
    with process.stdout, process.stderr, selectors.DefaultSelector() as open_ones:
        open_ones.register(process.stdout, selectors.EVENT_READ, written)
        open_ones.register(process.stderr, selectors.EVENT_READ, said)
        while open_ones.get_map() and len(written) <= _MOST_BYTES:
            ready = open_ones.select(max(until - monotonic(), 0))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                some = os.read(key.fd, min(_MOST_READ, _MOST_BYTES + 1 - len(key.data)))
                key.data.extend(some)
                if not some or len(key.data) > _MOST_BYTES:
                    open_ones.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]  # a file: a program that goes on writing is told
    return written, said


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
