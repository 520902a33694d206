"""A peer's process, as the runner sees it: commands and answers as lines of JSON."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from benchmarks.peers.catalogue import PeerSpec

ENVIRONMENTS = Path(".benchmarks/peers")

Answer = dict[str, Any]


class PeerError(Exception):
    """A peer could not do what it was told."""


class Worker(Protocol):
    """A peer that carries out commands."""

    def ask(self, do: str, **arguments: object) -> Answer:
        """Give a command, and return the answer to it; raises PeerError."""
        ...


class Process:
    """A peer's process.

    Args:
        spec: The peer.
        directory: Its files.
        turns: The file of the work.
        before: What the command begins with, such as ``strace``.
    """

    def __init__(self, spec: PeerSpec, directory: Path, turns: Path, before: Sequence[str] = ()) -> None:
        python = sys.executable if spec.environment is None else ENVIRONMENTS / spec.environment / "bin" / "python"
        module = f"benchmarks.peers.drivers.{spec.module}"
        command = [*before, str(python), "-m", "benchmarks.peers.peer", module, spec.option, str(directory), str(turns)]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(  # noqa: S603 (our own words)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )

    def __enter__(self) -> Self:
        """Return the process."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Kill it."""
        self.kill()

    def ask(self, do: str, **arguments: object) -> Answer:
        """Give a command, and return the answer to it."""
        self.tell(do, **arguments)
        return self.answer()

    def tell(self, do: str, **arguments: object) -> None:
        """Give a command."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PeerError(self._last_words()) from None

    def answer(self) -> Answer:
        """Return the next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(self._last_words())
        answer: Answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def kill(self) -> list[str]:
        """Kill the process, unless that is done, and return what it had still said."""
        assert self._process.stdout is not None
        if self._process.stdout.closed:
            return []
        self._process.kill()
        rest = self._process.stdout.readlines()
        self._process.communicate()
        self._errors.close()
        return rest

    def _last_words(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        return (self._errors.read().strip().splitlines() or [f"exit code {self._process.returncode}"])[-1]
