"""``memci serve`` under attack, as a process of its own: ``python -m tests.torture.serving``.

For some minutes requests that are made of the API's description, right and wrong, come with one tenant's token; sixteen clients
write to one session, each message until it is acknowledged; and others send bodies that are broken, cut off or slow. Meanwhile
nothing that another tenant said may come in any answer. At the end each message that was acknowledged is there, once, and in the
order of its writer, and every session is what its journal says.
"""

import argparse
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import attrs
import httpx2
from schemathesis.core.transport import Response

import memci
from memci.client import Client
from memci.http.tokens import Scope, new_token
from tests.cli.processes import environment
from tests.http.attacking import AnyCase, Tally, attack, operations
from tests.http.serving import assistant, user

WRITERS = 16
CANARY = "words-of-the-other-tenant"
SECONDS = 60.0
LOGGED = 5_000  # characters of what the log says of a failure
EXAMPLES = 30  # of each kind for each operation, in one round


@attrs.frozen
class Server:
    """The server that runs, and its tokens by tenant.

    Attributes:
        url: Where it is.
        tokens: By tenant.
        log: The file that has what it writes to standard error.
    """

    url: str
    tokens: dict[str, str]
    log: Path

    @property
    def address(self) -> tuple[str, int]:
        """Where its socket is."""
        found = re.fullmatch(r"http://([\d.]+):(\d+)", self.url)
        assert found, self.url
        return found[1], int(found[2])


@contextmanager
def started(directory: Path) -> Iterator[Server]:
    """Start a server on a file store, and end it; an exit code that is not 0 is an error."""
    path, log = directory / "tokens.yaml", directory / "log"
    tokens = {tenant: new_token(path, tenant, Scope.ADMIN) for tenant in ("attacked", "writers", "other")}
    config = directory / "memci.yaml"
    config.write_text("budget: {window: 2000, reserve: 0}\ncounter: approximate\ndurability: flush\n")
    options = ["--store", f"file:{directory}/chats", "--tokens", str(path), "--config", str(config), "--port", "0"]
    command = [sys.executable, "-m", "memci", "serve", *options, "--max-body", "1000000"]
    with log.open("w") as opened, subprocess.Popen(command, stderr=opened, env=environment()) as process:  # noqa: S603 (fixed)
        try:
            yield Server(_address(log, process), tokens, log)
            process.terminate()
            assert 0 == process.wait(SECONDS), "the server ended with an error"
        finally:
            process.kill()


def _address(log: Path, process: "subprocess.Popen[bytes]") -> str:
    while process.poll() is None:
        if found := re.search(r" at (http://\S+)\n", log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(log.read_text())


def until_done(ask: Callable[[], object]) -> None:
    """Ask again, as clients do, until there is an answer that is no conflict."""
    while True:
        with suppress(memci.ConflictError, memci.UnavailableError):
            ask()
            return
        time.sleep(0.05)


class Attack:
    """Requests made of the description, round after round; every answer is searched for what the other tenant said."""

    def __init__(self, server: Server) -> None:
        self.server, self.tally, self.seen = server, Tally(), 0
        self.client = Client(server.url, token=server.tokens["attacked"])

    def send(self, case: AnyCase) -> Response:
        """Send a request, and look at the answer."""
        answer = case.call(base_url=self.server.url, headers={"Authorization": f"Bearer {self.server.tokens['attacked']}"})
        self.seen += CANARY.encode() in answer.content
        return answer

    def run(self, until: float, number: int) -> None:
        """Attack until a time."""
        with httpx2.Client(timeout=SECONDS) as http:
            description = http.get(f"{self.server.url}/openapi.json").json()
        while time.monotonic() < until:
            for operation in operations(description):
                for session in ("chat", "other"):  # which may have been deleted
                    until_done(partial(self.client.session(session).extend, [user("one"), assistant("two")] * 2))
                attack(operation, self.send, self.tally, EXAMPLES, number)
                if time.monotonic() >= until:
                    return
            number += 1


class Writer:
    """A client that writes to the session of all writers."""

    def __init__(self, server: Server, number: int) -> None:
        self.server, self.number = server, number
        self.said: list[str] = []

    def run(self, until: float) -> None:
        """Say something, wait for the acknowledgement, and go on, until a time; some also ask for windows and fold."""
        with Client(self.server.url, token=self.server.tokens["writers"]) as client:
            session, chance = client.session("shared"), random.Random(self.number)  # noqa: S311 (to repeat it)
            while time.monotonic() < until:
                text = f"writer {self.number} says {len(self.said)}"
                said = {"role": "user" if len(self.said) % 2 else "assistant", "content": text}
                until_done(partial(session.append, said, key=text))
                self.said.append(text)
                if chance.random() < 0.1:
                    until_done(session.window)
                if chance.random() < 0.02:
                    until_done(session.fold)
                time.sleep(chance.random() * 0.2)  # as people take their time, and the journal is read to its end


class Breaker:
    """Sends what is no request, or not all of one, or takes its time."""

    def __init__(self, server: Server) -> None:
        self.server, self.broken, self.failed = server, 0, list[str]()

    def run(self, until: float, number: int) -> None:
        """Send until a time."""
        chance = random.Random(number)  # noqa: S311 (to repeat it)
        while time.monotonic() < until:
            answer = self._sent(chance)
            self.broken += 1
            if answer.startswith(b"HTTP/1.1 5"):
                self.failed.append(answer[:200].decode("latin-1"))

    def _sent(self, chance: random.Random) -> bytes:
        body = json.dumps({"messages": [user("x" * chance.randrange(3_000))]}).encode()
        head = "\r\n".join(
            [
                "POST /v1/sessions/broken/messages HTTP/1.1",
                "Host: memci",
                f"Authorization: Bearer {self.server.tokens['attacked']}",
                "Content-Type: application/json",
            ]
        ).encode()
        length = f"\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        sent = chance.choice(
            [
                head + length + body[: chance.randrange(len(body))],  # cut off
                head + b"\r\nContent-Length: 99999999\r\n\r\n" + body,
                head + b"\r\nContent-Length: -1\r\n\r\n" + body,
                head + b"\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + body,
                head + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + b"%x\r\n" % len(body) + body[:-5],
                head + length + bytes(chance.randrange(256) for _ in range(len(body))),
                bytes(chance.randrange(256) for _ in range(500)),
                head[: chance.randrange(len(head))],
                head + b"\r\nX: " + b"y" * 100_000 + length + body,
            ]
        )
        with suppress(OSError), socket.create_connection(self.server.address, timeout=2) as connection:
            if chance.random() < 0.1:
                for start in range(0, len(sent), 1 + len(sent) // 20):
                    connection.sendall(sent[start : start + 1 + len(sent) // 20])
                    time.sleep(0.05)
            else:
                connection.sendall(sent)
            if chance.random() < 0.5:
                connection.shutdown(socket.SHUT_WR)
                return connection.recv(4_096)
        return b""


def missing(said: list[str], writers: list[Writer]) -> Iterator[str]:
    """Yield what is wrong with what the session of all writers holds."""
    for writer in writers:
        ours = [text for text in said if text.startswith(f"writer {writer.number} says ")]
        if ours != writer.said:
            yield f"writer {writer.number} wrote {len(writer.said)} messages, and {len(ours)} are there, or not in their order"


def problems(server: Server, writers: list[Writer], attack: Attack, breakers: list[Breaker]) -> Iterator[str]:
    """Yield what went wrong."""
    yield from attack.tally.failures
    yield from (failed for breaker in breakers for failed in breaker.failed)
    if attack.seen:
        yield f"{attack.seen} answers had what another tenant said"
    with Client(server.url, token=server.tokens["writers"]) as client:
        yield from missing(_said(client), writers)
    for tenant in server.tokens:
        with Client(server.url, token=server.tokens[tenant]) as client:
            for session in _sessions(client):
                yield from client.session(session).verify().problems
    log = server.log.read_text()
    yield from (log[found.start() :][:LOGGED] for found in re.finditer(r"a request failed with", log))


def _said(client: Client) -> list[str]:
    found, before = list[str](), None
    while part := client.session("shared").transcript(1_000, before):
        found += [each.text for each in part]
        before = part[-1].address
    return found[::-1]


def _sessions(client: Client) -> Iterator[str]:
    after: str | None = None
    while after != "":
        part = client.list_sessions(limit=500, after=after)
        yield from (each.id for each in part.sessions)
        after = part.after


def main() -> int:
    """Attack a server, print a figure and what went wrong, and return 1 if anything did."""
    arguments = argparse.ArgumentParser(description="Attack a server over HTTP.")
    arguments.add_argument("--minutes", type=float, default=20)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--directory", type=Path, help="where to write; a temporary directory by default")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory) as root, started(Path(root)) as server:
        with Client(server.url, token=server.tokens["other"]) as other:
            for session in ("chat", "other", CANARY):
                other.session(session).extend([user(CANARY), assistant(f"{CANARY} it is")])
        until = time.monotonic() + 60 * given.minutes
        attacking = Attack(server)
        writers = [Writer(server, number) for number in range(WRITERS)]
        breakers = [Breaker(server) for _ in range(2)]
        with ThreadPoolExecutor(WRITERS + 3) as pool:
            running: list[Future[None]] = [pool.submit(writer.run, until) for writer in writers]
            running += [pool.submit(breaker.run, until, given.seed + number) for number, breaker in enumerate(breakers)]
            attacking.run(until, given.seed)
            for each in running:
                each.result()
        found = list(problems(server, writers, attacking, breakers))
    answers = attacking.tally.answers
    sys.stdout.write("".join(f"  {problem}\n" for problem in found))
    sys.stdout.write(
        f"serving: {given.minutes:g} minutes, {sum(answers.values())} requests of the description "
        f"({', '.join(f'{status}: {number}' for status, number in sorted(answers.items()))}), "
        f"{sum(len(writer.said) for writer in writers)} messages of {WRITERS} clients in one session, "
        f"{sum(breaker.broken for breaker in breakers)} broken or slow requests: {len(found)} problems\n"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
