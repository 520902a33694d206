"""Many users on a few workers and one PostgreSQL: ``python -m tests.torture.users``.

Each request holds the whole list of a user's conversation, as hosts that own it send it, and goes to any worker, which syncs it,
makes a window and syncs the answer. Some requests are sent twice at once, as by a double click; workers are killed, and what they
were at is asked of another one. At the end each session holds each message once and in order, no window held the word of another
tenant, and all connections are given back.
"""

import argparse
import itertools
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from subprocess import PIPE, Popen
from typing import Any

import orjson
import psycopg

from memci.engine.engine import Engine
from memci.errors import MemciError
from tests.archive.stores.sql.postgres_server import running_server

CONFIG = {"counter": "approximate", "budget": {"window": 1_500, "reserve": 0}, "durability": "flush"}
THREADS = 8
TENANTS = 50
WORDS = " and the weather of the day" * 8
_ATTEMPTS = 60

Value = dict[str, Any]


def tenant(user: int) -> str:
    return f"tenant {user % TENANTS}"


def asked(user: int, turn: int) -> Value:
    return {"role": "user", "content": f"canary-{user % TENANTS:02} of user {user} asks {turn}{WORDS}"}


def answered(user: int, turn: int) -> Value:
    return {"role": "assistant", "content": f"user {user} is answered {turn}{WORDS}"}


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
            with engine.session(f"user {user}", tenant=tenant(user)) as session:
                if len(session.sync(mine).appended) and not turn % 3:
                    time.sleep(0.002)  # the model
                window = session.window()
                session.sync([*mine, answered(user, turn)])
            return strangers(user, window.messages)
        except MemciError:  # somebody else answers it just now
            if attempt == _ATTEMPTS:
                raise
            time.sleep(0.01 * random.random())  # noqa: S311 (chance, not secrets)
    raise AssertionError


def work(url: str) -> None:
    """Be a worker: a request a line, answered in any order."""
    lock = threading.Lock()
    with Engine(url, CONFIG) as engine, ThreadPoolExecutor(THREADS) as pool:
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


def run(users: int, turns: int, processes: int, every_s: float, seed: int) -> int:
    """Let the users talk while workers are killed, look at what there is then, print the figures, and return the exit code."""
    with running_server() as server:
        url = server.new_url()
        workers = [Worker(f"{url}&memci_pool=8") for _ in range(processes)]
        load, chance = Load(workers, turns, random.Random(seed)), random.Random(seed)  # noqa: S311 (chance, not secrets)
        is_over, most, kills = threading.Event(), [0], [0]

        def watch() -> None:
            while not is_over.wait(0.2):
                most.append(connections(url))

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
        left = connections(url)
    load.seconds.sort()
    middle, late = (load.seconds[int(share * (len(load.seconds) - 1))] for share in (0.5, 0.99))
    problems = len(load.problems) + lost + doubled + load.strange + (left > 0)
    sys.stdout.write("".join(f"  {problem}\n" for problem in load.problems[:10]))
    sys.stdout.write(
        f"users: {users} of {turns} turns on {processes} workers, {kills[0]} kills, {load.asked_again} requests asked again: "
        f"{lost} messages lost, {doubled} doubled, {load.strange} words of other tenants, {len(load.problems)} errors; at most "
        f"{max(most)} connections, {left} left; {len(load.seconds) / took:.0f} requests a second, {1_000 * middle:.0f} ms in the "
        f"middle, {1_000 * late:.0f} ms of 99%: {problems} problems\n"
    )
    return int(bool(problems))


def counted(url: str, users: int, turns: int) -> tuple[int, int]:
    """Return how many messages are missing, and how many are there that should not be."""
    lost = doubled = 0
    with Engine(f"{url}&memci_pool=2", CONFIG) as engine:
        for user in range(users):
            with engine.session(f"user {user}", tenant=tenant(user)) as session:
                found = list(session.messages())
            wanted = conversation(user, turns)
            lost += sum(each not in found for each in wanted)
            doubled += len(found) - sum(each in found for each in wanted) if found != wanted else 0
    return lost, doubled


def main() -> int:
    """Read the arguments, and be a worker or the whole."""
    arguments = argparse.ArgumentParser(description="Let many users talk to a few workers on one PostgreSQL.")
    arguments.add_argument("--users", type=int, default=1_000)
    arguments.add_argument("--turns", type=int, default=6, help="of each user")
    arguments.add_argument("--processes", type=int, default=4)
    arguments.add_argument("--kill-every", type=float, default=3.0, help="seconds between two kills; 0 for none")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--work", help="be a worker on this database")
    given = arguments.parse_args()
    if given.work:
        work(given.work)
        return 0
    return run(given.users, given.turns, given.processes, given.kill_every, given.seed)


if __name__ == "__main__":
    sys.exit(main())
