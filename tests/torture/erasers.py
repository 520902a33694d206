"""Workers erase pages of one session while others write, fold and search, and are killed: ``python -m tests.torture.erasers``.

Each worker is a process; it says what it was told is done. At the end an erasing that was killed is done again. Then each message
of a page that was never erased is there once, none of the others is, the session is as its journal says, and the words that were
erased are in no file or row of the store.
"""

import argparse
import random
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import attrs
import psycopg

from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import ConflictError, PageNotFoundError, UnavailableError
from tests.torture.users import SIZES, opened

WORKERS = 4
_PATIENCE = 6  # times as long as was asked for, it goes on until something was erased
SESSION = "chat"
CONFIG = {"budget": {"window": 1_000, "reserve": 0}, "durability": "flush"}
_TABLES = {"record": "line", "page": "body", "snapshot": "line", "search_block": "body"}


def word(worker: int, run: int, number: int) -> str:
    return f"canary{worker}x{run}x{number}q"


def tell(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def work(url: str, worker: int, run: int) -> None:
    """Be a worker until somebody ends it."""
    chance = random.Random(f"{worker} {run}")  # noqa: S311 (chance, not secrets)
    numbers = count()
    while True:
        with Engine(url, CONFIG, on_conflict="retry") as engine, engine.session(SESSION) as session:
            for _ in range(chance.randrange(1, 40)):
                try:
                    take(session, chance, word(worker, run, next(numbers)))
                except (ConflictError, PageNotFoundError, UnavailableError) as error:  # others were faster, and it says so
                    tell("refused", type(error).__name__)


def take(session: Session, chance: random.Random, canary: str) -> None:
    """Write, fold, search or erase."""
    what = chance.random()
    if what < 0.55:
        asked = {"role": "user", "content": f"harbour{chance.randrange(90)} of {canary}"}
        entries = session.extend([asked, {"role": "assistant", "content": "a fine lighthouse " * chance.randrange(1, 20)}])
        tell("said", entries[0].page.index, canary)
    elif what < 0.6:
        session.window()
    elif what < 0.7:
        session.search(f"harbour{chance.randrange(90)} lighthouse", limit=3)
    elif pages := [facts.index for facts in session.pages() if facts.index.startswith("usr-")][:-1]:
        index = chance.choice(pages)
        tell("erasing", index)
        session.erase(index)
        tell("erased", index)


@attrs.define
class Told:
    """What the workers said."""

    pages: dict[str, str] = attrs.field(factory=dict)  # of each canary that was acknowledged, its page
    begun: dict[str, None] = attrs.field(factory=dict)  # pages whose erasing began
    refused: Counter[str] = attrs.field(factory=Counter)

    def hear(self, lines: str) -> None:
        for line in lines.splitlines():
            match line.split():
                case ["said", page, canary]:
                    self.pages[canary] = page
                case ["erasing", page]:
                    self.begun[page] = None
                case ["refused", error]:
                    self.refused[error] += 1


def stored(url: str) -> Iterator[bytes]:
    """Yield all bytes that a store holds."""
    if url.startswith("postgresql:"):
        with psycopg.connect(url.replace("&memci_pool=8", "")) as connection:
            for table, column in _TABLES.items():
                for (body,) in connection.execute(f"SELECT {column} FROM memci_{table}".encode()):  # noqa: S608 (fixed words)
                    yield zlib.decompress(body) if table == "search_block" else body
        return
    root = Path(url.partition(":")[2].removeprefix("//"))
    for path in root.parent.rglob("*"):
        if path.is_file():
            yield path.read_bytes()


def problems_of(url: str, told: Told) -> Iterator[str]:
    """Yield what is not as it should be once all workers have ended."""
    with Engine(url, CONFIG) as engine, engine.session(SESSION) as session:
        for page in told.begun:  # which a killed worker may not have ended
            session.erase(page)
        yield from session.verify().problems
        there = Counter(text for message in session.messages() for text in str(message["content"]).split() if "canary" in text)
        gone = {canary for canary, page in told.pages.items() if page in told.begun}
        yield from (f"{canary} is there {there[canary]} times" for canary in told.pages.keys() - gone if there[canary] != 1)
        yield from (f"{canary} was erased and is a message" for canary in gone if there[canary])
        yield from (f"{canary} was erased and is found" for canary in gone if session.search(canary, include_visible=True))
    for data in stored(url):
        yield from (f"{canary} was erased and is stored: {data[:40]!r}" for canary in gone if canary.encode() in data)


def run(store: str, seconds: float, every_s: float, seed: int) -> int:
    """Let the workers work while they are killed, look at what there is then, print the figures, and return the exit code."""
    chance, told, problems, runs = random.Random(seed), Told(), list[str](), count()  # noqa: S311 (chance, not secrets)
    with opened(store) as (url, _):

        def begin(worker: int) -> "subprocess.Popen[str]":
            options = ["--work", url, "--worker", str(worker), "--run", str(next(runs))]
            command = [sys.executable, "-m", "tests.torture.erasers", *options]
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603 (fixed words)

        def end(process: "subprocess.Popen[str]") -> None:
            process.kill()
            said, amiss = process.communicate()
            told.hear(said)
            if process.returncode > 0:
                problems.append(f"a worker ended with {process.returncode}: {amiss[-500:]}")

        began, kills = time.monotonic(), 0
        at_work = [begin(worker) for worker in range(WORKERS)]
        while (elapsed := time.monotonic() - began) < seconds or (not told.begun and elapsed < _PATIENCE * seconds):
            time.sleep(every_s * chance.random() * 2)
            worker = chance.randrange(WORKERS)
            end(at_work[worker])
            at_work[worker] = begin(worker)
            kills += 1
        for process in at_work:
            end(process)
        problems += problems_of(url, told) if told.begun else ["nothing was erased, so nothing was seen"]
    sys.stdout.write("".join(f"  {problem}\n" for problem in problems[:10]))
    sys.stdout.write(
        f"erasers, {store}: {WORKERS} workers, {kills} kills, {len(told.pages)} turns, {len(told.begun)} pages erased, "
        f"refused {dict(told.refused)}: {len(problems)} problems\n"
    )
    return int(bool(problems))


def main() -> int:
    """Read the arguments, and be a worker or the whole."""
    arguments = argparse.ArgumentParser(description="Erase pages while others write, and kill who does.")
    arguments.add_argument("--store", choices=("postgres", "sqlite", "file", "all"), default="sqlite")
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--kill-every", type=float, default=2.0, help="seconds between two kills")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--work", help="be a worker on the store of this URL")
    arguments.add_argument("--worker", type=int, default=0)
    arguments.add_argument("--run", type=int, default=0)
    given = arguments.parse_args()
    if given.work:
        work(given.work, given.worker, given.run)
    stores = [store for store in SIZES if store != "s3"] if given.store == "all" else [given.store]
    return max(run(store, given.seconds, given.kill_every, given.seed) for store in stores)


if __name__ == "__main__":
    sys.exit(main())
