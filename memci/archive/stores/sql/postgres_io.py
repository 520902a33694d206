"""Every call that the PostgreSQL store makes to the server, counted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memci.errors import ConfigError

if TYPE_CHECKING:
    import psycopg

_DEFAULTS = {
    "application_name": "memci",
    "connect_timeout": 10,  # seconds
    # A peer that is gone without a word is noticed after a minute.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


class PostgresIo:
    """The server as the store uses it. Calls raise ``psycopg.Error``.

    One object may serve many stores and threads; the counts are then approximate. A subclass can make calls fail.

    Attributes:
        connections: Connections that were opened.
        round_trips: Statements that were sent and answered; all but the first of a connection stand for themselves, and each is a
            transaction of its own unless it stands between BEGIN and COMMIT, which count too.
        wait_s: How long a call waits for a free connection of the pool.
        lock_s: How long a statement may wait for a lock, where the server or the URL say nothing.
        statement_s: How long the server may work on a statement, likewise.
    """

    wait_s = 30.0
    lock_s = 10
    statement_s = 60

    def __init__(self) -> None:
        self.connections = 0
        self.round_trips = 0

    def connect(self, url: str) -> "psycopg.Connection":
        """Open a connection on which every statement is a transaction, unless it is said otherwise.

        Raises:
            ConfigError: The driver is not installed, or cannot read the URL.
        """
        try:
            import psycopg  # noqa: PLC0415 loads only when a store connects
            from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 as above
        except ImportError as error:
            message = f"PostgreSQL needs the driver psycopg ({error}): install memci with its extra postgres"
            raise ConfigError(message, path="store") from error
        try:
            known = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            # The driver's text may quote the password.
            message = "the URL cannot be read: give postgresql://user:password@host:5432/database, percent-encoded where need be"
            raise ConfigError(message, path="store") from None
        self.connections += 1
        return psycopg.connect(**{**_DEFAULTS, **known}, autocommit=True)  # type: ignore[arg-type] # the parameters are libpq's

    def execute(self, connection: "psycopg.Connection", sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Send a statement, wait for its answer and return its rows."""
        self.round_trips += 1
        cursor = connection.cursor(binary=True)
        cursor.execute(sql, values or None)
        return cursor.fetchall() if cursor.description else []
