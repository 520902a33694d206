"""A pooler as PgBouncer is in transaction mode: each transaction of a client goes to another connection to the server.

It passes messages on and looks at their types only (https://www.postgresql.org/docs/current/protocol-flow.html).
"""

import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Queue

_SSL, _GSS = 80_877_103, 80_877_104  # requests that may come before the startup message
_BEGINS_NOTHING = b"X"


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (more := connection.recv(size - len(data))):
            raise EOFError
        data += more
    return data


def _message(connection: socket.socket) -> bytes:
    head = _read(connection, 5)
    return head + _read(connection, struct.unpack("!i", head[1:])[0] - 4)


class TransactionPooler:
    """Listens on a socket in *directory* for clients of the server at *server*, with so many connections to it.

    Attributes:
        transactions: How many were passed on to each of these.
    """

    def __init__(self, server: Path, directory: Path, schema: str, connections: int) -> None:
        self.transactions = [0] * connections
        self._free: Queue[int] = Queue()
        self._greeting = b""
        self._servers = [self._connect(server, schema) for _ in range(connections)]
        for number in range(connections):
            self._free.put(number)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(directory / ".s.PGSQL.5432"))
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for connection in (self._listening, *self._servers):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _connect(self, server: Path, schema: str) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(server / ".s.PGSQL.5432"))
        said = f"user\0memci\0database\0postgres\0options\0-csearch_path={schema}\0\0".encode()
        connection.sendall(struct.pack("!ii", len(said) + 8, 196_608) + said)
        self._greeting = b""
        while (message := _message(connection))[:1] != b"Z":
            self._greeting += message if message[:1] in b"RS" else b""
        return connection

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(EOFError, OSError), client:
            while True:
                size, code = struct.unpack("!ii", _read(client, 8))
                _read(client, size - 8)
                if code not in (_SSL, _GSS):
                    break
                client.sendall(b"N")
            process = b"K" + struct.pack("!iii", 12, 1, 1)  # a number that is no process of the server
            client.sendall(self._greeting + process + b"Z" + struct.pack("!i", 5) + b"I")
            while (message := _message(client))[:1] != _BEGINS_NOTHING:
                number = self._free.get()
                try:
                    self._transact(client, self._servers[number], message)
                finally:
                    self.transactions[number] += 1
                    self._free.put(number)

    def _transact(self, client: socket.socket, server: socket.socket, message: bytes) -> None:
        """Pass on what belongs to one transaction."""
        answers = 0  # that end with the state of the transaction
        while True:
            server.sendall(message)
            answers += message[:1] in b"QS"
            while not select.select([client], [], [], 0)[0]:
                if select.select([client, server], [], [])[0][0] is not server:
                    break
                answer = _message(server)
                client.sendall(answer)
                answers -= answer[:1] == b"Z"
                if not answers and answer[:1] == b"Z" and answer[5:] == b"I":
                    return
            message = _message(client)


@contextmanager
def transaction_pooler(server: Path, directory: Path, schema: str, connections: int = 3) -> Iterator[TransactionPooler]:
    """Run one as long as the block."""
    pooler = TransactionPooler(server, directory, schema, connections)
    try:
        yield pooler
    finally:
        pooler.close()
