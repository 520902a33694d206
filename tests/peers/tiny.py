"""Peers so small that what a run finds of them is known, and a result as a run writes it."""

from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from time import thread_time
from typing import Any

from benchmarks.peers.peer import Desk, Message, Peer
from benchmarks.peers.process import Answer, PeerError

WORK_S = 0.02  # of CPU time


class Whole(Peer):
    """Sends all of it, and finds what holds a word."""

    keeps = False
    searches = True

    def __init__(self, directory: Path, option: str = "") -> None:
        super().__init__(directory, option)
        self.messages: list[Message] = []

    def append(self, message: Message) -> None:
        self.messages.append(message)

    def window(self) -> list[Message]:
        return self.messages

    def read(self, first: int, count: int) -> list[Message]:
        return self.messages[first : first + count]

    def search(self, words: str) -> Sequence[object]:
        return [message for message in self.messages if words.rsplit(maxsplit=1)[-1] in str(message["content"])][:10]

    def texts(self) -> list[str]:
        return [str(message["content"]) for message in self.messages]


class LastThree(Whole):
    """Sends the last three messages, reads one too far, and searches nothing."""

    searches = False

    def window(self) -> list[Message]:
        return self.messages[-3:]

    def read(self, first: int, count: int) -> list[Message]:
        return super().read(first + 1, count)


class Failing(Whole):
    """Refuses the hundredth message."""

    def append(self, message: Message) -> None:
        if len(self.messages) == 99:
            reason = "it is full"
            raise OSError(reason)
        super().append(message)


class Threaded(Whole):
    """Has a thread of its own work for each window, and waits for none of it."""

    def window(self) -> list[Message]:
        Thread(target=_work).start()
        return self.messages


def _work() -> None:
    while thread_time() < WORK_S:
        pass


class Beside:
    """A peer in this process, which notes what it was told."""

    def __init__(self, peer: Peer, work: Path, told: list[tuple[str, str]]) -> None:
        self._desk, self._name, self._told = Desk(lambda: peer, work), type(peer).__name__, told

    def ask(self, do: str, **arguments: object) -> Answer:
        self._told.append((do, self._name))
        self._desk.wake()
        try:
            answer: Answer = getattr(self._desk, do)(**arguments)
        except OSError as error:
            raise PeerError(str(error)) from None
        finally:
            self._desk.rest()
        return answer


def row(peer: str, turns: int, cpu: float, **more: Any) -> dict[str, Any]:  # noqa: ANN401 (any figure)
    spread = {"median": cpu, "mean": 2 * cpu, "p99": 3 * cpu, "max": 4 * cpu}
    return {
        "peer": peer,
        "work": "chat",
        "turns": turns,
        "cpu_us": spread,
        "wait_us": spread,
        "all_cpu_us": 2 * cpu,
        "keeps": True,
        **more,
    }


RESULT: dict[str, Any] = {
    "lengths": [100, 1_000],
    "peers": {"ours": {"beside": "ours", "note": "all"}, "theirs": {"beside": "ours", "note": "half"}},
    "rows": [
        row("ours", 100, 40.0, bytes=40, windows=5, largest_window=7_000, over_budget=0, broken_pairs=0),
        row("theirs", 100, 20.0, bytes=20, windows=5, largest_window=90_000, over_budget=7, broken_pairs=0),
        row("ours", 1_000, 44.0),
        {"peer": "theirs", "work": "chat", "turns": 1_000, "problem": "400 turns after 60 s"},
    ],
    "others": [
        {"peer": "ours", "syncs": 2.0, "killed_lost": 0, "first_us": {"cpu": 150_000.0, "wait": 200_000.0}},
        {"peer": "theirs", "syncs": 2.0, "killed_lost": 9, "first_us": {"cpu": 15_000.0, "wait": 20_000.0}},
    ],
}
