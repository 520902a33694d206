"""Many users on a few workers and one store: ``python -m tests.torture.users``, ``--store sqlite``, ``file`` or ``s3``.

Each request holds the whole list of a user's conversation, as hosts that own it send it, and goes to any worker, which takes a
lease, syncs the list, makes a window and streams the answer into the session. Some questions are edited before they are
answered, some streams break off half way and are asked for anew, some requests are sent twice at once, as by a double click;
workers are killed, and what they were at is asked of another one. At the end each session holds each message once and in order,
no window held the word of another tenant, and all connections are given back.
"""

import argparse
import itertools
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import psycopg

from memci.engine.engine import Engine
from memci.errors import MemciError
from tests.archive.stores.objects.s3_server import S3Server
from tests.archive.stores.sql.postgres_server import running_server

CONFIG = {"counter": "approximate", "budget": {"window": 1_500, "reserve": 0}}
SIZES = {"postgres": (1_000, 4), "sqlite": (200, 4), "file": (200, 4), "s3": (40, 2)}  # users and workers that a store is for
THREADS = 8
LEASE_S = 5.0
TENANTS = 50
WORDS = " and the weather of the day" * 8
_ATTEMPTS = 60

Value = dict[str, Any]


def settings(url: str) -> dict[str, Any]:
    return CONFIG if url.startswith("s3:") else {**CONFIG, "durability": "flush"}


def tenant(user: int) -> str:
    return f"tenant {user % TENANTS}"


def asked(user: int, turn: int) -> Value:
    return {"role": "user", "content": f"canary-{user % TENANTS:02} of user {user} asks {turn}{WORDS}"}


def answered(user: int, turn: int) -> Value:
    return {"role": "assistant", "content": f"user {user} is answered {turn}{WORDS}"}


def first_asked(user: int, turn: int) -> Value:
    """Return what was asked before it was edited."""
    return {"role": "user", "content": f"canary-{user % TENANTS:02} of user {user} asks amiss {turn}"}


def chunks(answer: Value) -> list[Value]:
    """Return an answer as a provider streams it."""
    words = answer["content"].split(" ")
    deltas = [words[0], *(f" {word}" for word in words[1:])]
    return [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": delta}}]} for delta in deltas]


def conversation(user: int, turns: int) -> list[Value]:
    return [each for turn in range(turns) for each in (asked(user, turn), answered(user, turn))]


def strangers(user: int, messages: list[Value]) -> int:
    """Return how many words of other tenants messages hold."""
    text, own = orjson.dumps(messages).decode(), f"canary-{user % TENANTS:02}"
    return text.count("canary-") - text.count(own)


def serve(engine: Engine, user: int, turn: int) -> int:
    """Answer a request, as a backend does, and return how many words of others its window held."""
    mine = [*conversation(user, turn), asked(user, turn)]
    for attempt in itertools.count():
        try:
            with engine.session(f"user {user}", tenant=tenant(user)) as session, session.lease(LEASE_S, 4 * LEASE_S):
                if (user + turn) % 5 == 0:
                    session.sync([*mine[:-1], first_asked(user, turn)])
                pieces = chunks(answered(user, turn))
                for read in (pieces[: len(pieces) // 2], pieces) if (user + turn) % 3 == 0 else (pieces,):
                    session.sync(mine)  # takes back what broke off
                    window = session.window()
                    with session.stream() as stream:
                        for piece in read:
                            stream.add(piece)
            return strangers(user, window.messages)
        except MemciError:  # somebody else answers it just now
            if attempt == _ATTEMPTS:
                raise
            time.sleep(0.01 * random.random())  # noqa: S311 (chance, not secrets)
    raise AssertionError


def work(url: str) -> None:
    """Be a worker: a request a line, answered in any order."""
    lock = threading.Lock()
    with Engine(url, settings(url)) as engine, ThreadPoolExecutor(THREADS) as pool:
        engine.warm_up()

        def handle(line: str) -> None:
            number, user, turn = map(int, line.split())
            try:
                told = f"{number} {serve(engine, user, turn)}"
            except Exception as error:  # noqa: BLE001 (whoever asked is told)
                told = f"{number} {type(error).__name__}: {error}"
            with lock:
                sys.stdout.write(told.replace("\n", " ") + "\n")
                sys.stdout.flush()

        for line in sys.stdin:
            pool.submit(handle, line)


class Worker:
    """A process that answers requests, and is killed now and then."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        command = [sys.executable, "-m", "tests.torture.users", "--work", self._url]
        self._process = Popen(command, stdin=PIPE, stdout=PIPE, text=True)  # noqa: S603 (fixed words)
        self._waiting: dict[int, tuple[threading.Event, list[str]]] = {}
        threading.Thread(target=self._listen, args=(self._process, self._waiting), daemon=True).start()

    def _listen(self, process: "Popen[str]", waiting: dict[int, tuple[threading.Event, list[str]]]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            number, _, told = line.strip().partition(" ")
            event, answer = waiting.pop(int(number))
            answer.append(told)
            event.set()
        for event, _ in list(waiting.values()):  # it was killed
            event.set()

    def ask(self, number: int, user: int, turn: int) -> str:
        """Return the answer to a request; empty where the worker was killed meanwhile."""
        event, answer = threading.Event(), list[str]()
        with self._lock:
            self._waiting[number] = event, answer
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(f"{number} {user} {turn}\n")
                self._process.stdin.flush()
            except OSError:
                return ""
            process = self._process
        while not event.wait(0.5):
            if process.poll() is not None:
                return ""
        return answer[0] if answer else ""

    def kill(self) -> None:
        with self._lock:
            self._process.kill()
            self._process.wait()
            self._begin()

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Load:
    """What is asked of the workers, and what came of it."""

    def __init__(self, workers: list[Worker], turns: int, chance: random.Random) -> None:
        self._workers, self._turns, self._chance = workers, turns, chance
        self._numbers = itertools.count()
        self.seconds: list[float] = []
        self.asked_again = 0
        self.strange = 0
        self.problems: list[str] = []

    def user(self, user: int) -> None:
        """Have a whole conversation."""
        for turn in range(self._turns):
            if self._chance.random() < 0.1:
                twin = threading.Thread(target=self._request, args=(user, turn))
                twin.start()
                self._request(user, turn)
                twin.join()
            else:
                self._request(user, turn)

    def _request(self, user: int, turn: int) -> None:
        began = time.monotonic()
        for _ in range(_ATTEMPTS):
            told = self._chance.choice(self._workers).ask(next(self._numbers), user, turn)
            if told:
                break
            self.asked_again += 1
            time.sleep(0.05)
        self.seconds.append(time.monotonic() - began)
        if told.isdigit():
            self.strange += int(told)
        else:
            self.problems.append(told or "no worker answered")


def connections(url: str) -> int:
    """Return how many connections the workers have."""
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'memci'").fetchone()
        return found[0] if found else 0


@contextmanager
def opened(store: str) -> Iterator[tuple[str, Callable[[], int]]]:
    """Yield the URL of a new store, and what counts the connections to it, where it has any."""
    with ExitStack() as stack:
        if store == "postgres":
            url = stack.enter_context(running_server()).new_url()
            yield f"{url}&memci_pool=8", partial(connections, url)
            return
        if store == "s3":
            server = S3Server()
            stack.callback(server.stop)
            yield server.url(server.new_bucket()), int
            return
        folder = stack.enter_context(TemporaryDirectory(prefix="memci-"))
        yield f"sqlite:///{folder}/chats.db" if store == "sqlite" else f"file:{folder}/chats", int


def run(store: str, users: int, processes: int, given: argparse.Namespace) -> int:
    """Let the users talk while workers are killed, look at what there is then, print the figures, and return the exit code."""
    turns, every_s, seed = given.turns, given.kill_every, given.seed
    with opened(store) as (url, connected):
        workers = [Worker(url) for _ in range(processes)]
        load, chance = Load(workers, turns, random.Random(seed)), random.Random(seed)  # noqa: S311 (chance, not secrets)
        is_over, most, kills = threading.Event(), [0], [0]

        def watch() -> None:
            while not is_over.wait(0.2):
                most.append(connected())

        def kill() -> None:
            while not is_over.wait(every_s):
                chance.choice(workers).kill()
                kills[0] += 1

        beside = [threading.Thread(target=each) for each in ((watch, kill) if every_s else (watch,))]
        for thread in beside:
            thread.start()
        began = time.monotonic()
        with ThreadPoolExecutor(processes * THREADS) as pool:
            list(pool.map(load.user, range(users)))
        took = time.monotonic() - began
        is_over.set()
        for thread in beside:
            thread.join()
        for worker in workers:
            worker.end()
        lost, doubled = counted(url, users, turns)
        left = connected()
    load.seconds.sort()
    middle, late = (load.seconds[int(share * (len(load.seconds) - 1))] for share in (0.5, 0.99))
    problems = len(load.problems) + lost + doubled + load.strange + (left > 0)
    sys.stdout.write("".join(f"  {problem}\n" for problem in load.problems[:10]))
    sys.stdout.write(
        f"users, {store}: {users} of {turns} turns on {processes} workers, {kills[0]} kills, {load.asked_again} asked again: "
        f"{lost} messages lost, {doubled} doubled, {load.strange} words of other tenants, {len(load.problems)} errors; at most "
        f"{max(most)} connections, {left} left; {len(load.seconds) / took:.0f} requests a second, {1_000 * middle:.0f} ms in the "
        f"middle, {1_000 * late:.0f} ms of 99%: {problems} problems\n"
    )
    return int(bool(problems))


def counted(url: str, users: int, turns: int) -> tuple[int, int]:
    """Return how many messages are missing, and how many are there that should not be."""
    lost = doubled = 0
    with Engine(url, settings(url)) as engine:
        for user in range(users):
            with engine.session(f"user {user}", tenant=tenant(user)) as session:
                found = list(session.messages())
            wanted = conversation(user, turns)
            lost += sum(each not in found for each in wanted)
            doubled += len(found) - sum(each in found for each in wanted) if found != wanted else 0
    return lost, doubled


def main() -> int:
    """Read the arguments, and be a worker or the whole."""
    arguments = argparse.ArgumentParser(description="Let many users talk to a few workers on one store.")
    arguments.add_argument("--store", choices=(*SIZES, "all"), default="postgres")
    arguments.add_argument("--users", type=int, help="by default as many as the store is for")
    arguments.add_argument("--turns", type=int, default=6, help="of each user")
    arguments.add_argument("--processes", type=int)
    arguments.add_argument("--kill-every", type=float, default=3.0, help="seconds between two kills; 0 for none")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--work", help="be a worker on the store of this URL")
    given = arguments.parse_args()
    if given.work:
        work(given.work)
        return 0
    stores = [*SIZES] if given.store == "all" else [given.store]
    return max(run(store, given.users or SIZES[store][0], given.processes or SIZES[store][1], given) for store in stores)


if __name__ == "__main__":
    sys.exit(main())
