"""A peer in a process of its own: it does what it is told over pipes, and tells what that took.

``python -m benchmarks.peers.peer MODULE OPTION DIRECTORY WORK`` runs in the peer's environment, so that nothing but the standard
library is imported here. Commands and answers are lines of JSON; what the work is stands in the file that the runner wrote.
"""

import gc
import importlib
import itertools
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time, sleep, thread_time
from typing import IO, Any, TypeVar

WINDOW_TOKENS = 8_000
REPLY_TOKENS = 3  # of a window, those that begin the reply: what peers leave free that know the tokens of each message
WINDOW_MESSAGES = 74  # of chat: what peers are told that count messages instead of tokens
SESSION = "support"
OLD_TURNS = 50  # the first of the history: those that are read again

_WAIT_S, _MOST_WAITS = 0.1, 100  # between two looks at whether threads are still at work, and how many looks at most

Message = dict[str, Any]
T = TypeVar("T")


class Peer(ABC):
    """One conversation of a peer; a driver says how its library does it.

    Args:
        directory: Where it may keep files; what an earlier process kept there is found again.
        option: Which of the driver's variants.

    Attributes:
        distributions: The packages whose versions the result names.
        keeps: Whether another process finds the conversation again.
        searches: Whether it searches what was said.
    """

    distributions: Sequence[str] = ()
    keeps = True
    searches = False

    def __init__(self, directory: Path, option: str) -> None:
        self.directory, self.option = directory, option

    def native(self, message: Message, tokens: int) -> Any:  # noqa: ANN401 (what the library takes)
        """Return a message as the library takes it, untimed; by default as it is, in OpenAI's chat format."""
        del tokens
        return message

    @abstractmethod
    def append(self, message: Any) -> None:  # noqa: ANN401 (a native message)
        """Take a message in."""

    def extend(self, messages: Sequence[Any]) -> None:
        """Take many messages in, as in an import."""
        for message in messages:
            self.append(message)

    @abstractmethod
    def window(self) -> Any:  # noqa: ANN401 (what the library gives)
        """Return what the next call would send."""

    def plain(self, window: Any) -> list[Message]:  # noqa: ANN401 (what the library gives)
        """Return a window in OpenAI's chat format, untimed."""
        return list(window)

    @abstractmethod
    def read(self, first: int, count: int) -> list[Any]:
        """Return native messages again, from a number on, counted from 0."""

    def text(self, message: Any) -> str:  # noqa: ANN401 (a native message)
        """Return the text of a native message, untimed."""
        return str(message["content"])

    def search(self, words: str) -> Sequence[object]:
        """Return the places that the words are found at, best first, as many as ten; none where nothing is searched."""
        del words
        return ()

    @abstractmethod
    def texts(self) -> list[str]:
        """Return the texts of all messages that are kept."""

    def close(self) -> None:  # noqa: B027 (a list in memory has nothing)
        """Let go of files and threads."""


Open = Callable[[], Peer]


class Desk:
    """Carries out commands for one peer.

    Args:
        open_peer: Opens the conversation.
        work: File of the turns, one a line: a list of messages with their tokens.

    Attributes:
        told: Bytes of the answers, which are none of the peer's.
    """

    def __init__(self, open_peer: Open, work: Path) -> None:
        self.told = 0
        self._open, self._work = open_peer, work
        self._peer: Peer | None = None
        self._lines = self._read_lines()
        self._ended, self._idle, self._wrote = process_time(), 0.0, self._written()

    @property
    def peer(self) -> Peer:
        """The conversation, opened when it is first asked for."""
        if self._peer is None:
            self._peer = self._open()
        return self._peer

    def fill(self, turns: int, limit_s: float, batch: int = 500) -> dict[str, Any]:
        """Take in turns as an import does, 1,000 messages of chat at once, until so much CPU time is spent; workers then rest."""
        cpu, done = process_time(), 0
        while done < turns and process_time() - cpu < limit_s:
            several = [message for turn in self._next(min(batch, turns - done)) for message in turn]
            self.peer.extend([native for native, _ in several])
            done += min(batch, turns - done)
        self.settle()
        return {"turns": done, "cpu": process_time() - cpu}

    def check(self, turns: int, limit_s: float) -> dict[str, Any]:
        """Take in turns and return the windows."""
        windows, cpu = [], process_time()
        for turn in self._next(turns):
            for message, role in turn:
                if role == "assistant":
                    windows.append(self.peer.plain(self.peer.window()))
                self.peer.append(message)
            if process_time() - cpu > limit_s:
                break
        return {"windows": windows}

    def settle(self) -> dict[str, Any]:
        """Wait until the peer's own threads have nothing left to do; tell the CPU time and bytes since the round before."""
        begin = before = process_time()
        for _ in range(_MOST_WAITS):
            sleep(_WAIT_S)
            if process_time() - before < _WAIT_S / 20:
                break
            before = process_time()
        spent = {"all_cpu": self._idle + process_time() - begin, "bytes": self._written() - self._wrote}
        self._idle, self._wrote = 0.0, self._written()
        return spent

    def round(self, turns: int, limit_s: float, pause_s: float = 0.0) -> dict[str, Any]:
        """Take in turns as in a chat, with a window before each message of the assistant, until so much CPU time is spent.

        CPU of the calling thread and elapsed time are those of each turn, in seconds. The process's CPU is that since the round
        before ended, so that of workers too, without what reads and converts the messages; so are the bytes. After each window
        the calling thread sleeps for the time that a model would take, which is in no time of a turn; what workers do then is in
        the process's CPU.
        """
        idle, between, self._idle = self._idle, self._written() - self._wrote, 0.0
        cpu: list[float] = []
        elapsed: list[float] = []
        own, whole = thread_time(), process_time()
        peer, taken = self.peer, self._next(turns)
        gc.collect()
        idle += (process_time() - whole) - (thread_time() - own)  # what the peer's threads did meanwhile
        wrote, all_cpu = self._written(), process_time()
        for turn in taken:
            thread, wall = thread_time(), perf_counter()
            for message, role in turn:
                if role == "assistant":
                    peer.window()
                    if pause_s:
                        slept, since = thread_time(), perf_counter()
                        sleep(pause_s)
                        own = thread_time() - slept
                        thread, wall, all_cpu = thread + own, wall + perf_counter() - since, all_cpu + own
                peer.append(message)
            cpu.append(thread_time() - thread)
            elapsed.append(perf_counter() - wall)
            if process_time() - all_cpu > limit_s:
                break
        spent, wrote, self._wrote = process_time() - all_cpu, self._written() - wrote, self._written()
        return {"cpu": cpu, "elapsed": elapsed, "all_cpu": idle + spent, "bytes": between + wrote}

    def read(self, times: int, limit_s: float) -> dict[str, Any]:
        """Read old turns again, until so much CPU time is spent, and compare them with what was taken in."""
        turns = [json.loads(line) for line in itertools.islice(self._read_lines(), OLD_TURNS)]
        firsts = list(itertools.accumulate((len(turn) for turn in turns), initial=0))
        timed, right = _Timed(), True
        for number in _until(range(times), limit_s):
            place = number * 7 % len(turns)
            read = timed(self.peer.read, firsts[place], len(turns[place]))
            right &= [self.peer.text(message) for message in read] == [str(message["content"]) for message, _ in turns[place]]
        return {**timed.found(), "right": right}

    def search(self, queries: Sequence[str], limit_s: float) -> dict[str, Any]:
        """Search for the queries, until so much CPU time is spent."""
        self.peer.search("warm up")
        timed = _Timed()
        hits = [len(timed(self.peer.search, query)) for query in _until(queries, limit_s)]
        return {**timed.found(), "hits": sum(hits)}

    def reopen(self, times: int, limit_s: float) -> dict[str, Any]:
        """Close the conversation, open it again, and ask for a window, until so much CPU time is spent."""
        timed = _Timed()
        for _ in _until(range(times), limit_s):
            self.peer.close()
            self._peer = None
            timed(self._reopen)
        return timed.found()

    def _reopen(self) -> None:
        self.peer.window()

    def first(self) -> dict[str, Any]:
        """Take in one message and ask for a window; tell the CPU time of the process since it began."""
        ((message, _), *_rest), *_ = self._next(1)
        self.peer.append(message)
        self.peer.window()
        return {"cpu": process_time()}

    def about(self) -> dict[str, Any]:
        """Tell which versions run, and what the peer can do."""
        from importlib.metadata import version  # noqa: PLC0415 (not for the first request)

        versions = {name: version(name) for name in self.peer.distributions}
        return {"versions": versions, "keeps": self.peer.keeps, "searches": self.peer.searches}

    def memory(self) -> dict[str, Any]:
        """Tell how much memory the process takes, in bytes."""
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return {"rss": 1_024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))}

    def texts(self) -> dict[str, Any]:
        """Tell all that is kept."""
        return {"texts": self.peer.texts()}

    def close(self) -> dict[str, Any]:
        """Close the conversation, and tell what that took, with what came since the last round."""
        begin = process_time()
        self.peer.close()
        self._peer = None
        self._idle += process_time() - begin
        return self.settle()

    def wake(self) -> None:
        """Begin to carry out a command; what the process did since the last one is the work of the peer's own threads."""
        self._idle += process_time() - self._ended

    def rest(self) -> None:
        """End a command."""
        self._ended = process_time()

    def talk(self, name: str, messages: int, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Append messages that no other writer says, and tell of each once it is taken in; count those that were refused."""
        refused = 0
        for number in range(messages):
            role = "assistant" if number % 2 else "user"
            text = f"{name}.{number} " + " ".join(f"{name}x{number}x{word}" for word in range(20))
            native = self.peer.native({"role": role, "content": text}, 100)
            try:
                if role == "assistant":
                    self.peer.window()
                self.peer.append(native)
            except Exception:  # noqa: BLE001 (whatever it refuses with: nothing was acknowledged)
                refused += 1
            else:
                tell({"said": text})
        return {"refused": refused}

    def _next(self, turns: int) -> list[list[tuple[Any, str]]]:
        """Return the next turns, each message in the library's form and with its role."""
        read = (json.loads(line) for line in itertools.islice(self._lines, turns))
        return [[(self.peer.native(message, tokens), message["role"]) for message, tokens in turn] for turn in read]

    def _written(self) -> int:
        """Return how many bytes the peer gave to the system to write."""
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("wchar:")) - self.told

    def _read_lines(self) -> Iterator[str]:
        with self._work.open(encoding="utf-8") as lines:
            yield from lines


def _until(several: Iterable[T], limit_s: float) -> Iterator[T]:
    """Yield until so much CPU time is spent, and at least once."""
    begin = process_time()
    for each in several:
        yield each
        if process_time() - begin > limit_s:
            return


class _Timed:
    """Calls functions, and keeps the CPU time of the process and the elapsed time of each."""

    def __init__(self) -> None:
        self._cpu: list[float] = []
        self._elapsed: list[float] = []

    def __call__(self, function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 (what the function returns)
        cpu, elapsed = process_time(), perf_counter()
        found = function(*arguments)
        self._cpu.append(process_time() - cpu)
        self._elapsed.append(perf_counter() - elapsed)
        return found

    def found(self) -> dict[str, Any]:
        return {"cpu": self._cpu, "elapsed": self._elapsed}


def serve(desk: Desk, commands: IO[str], answers: IO[str]) -> None:
    """Carry out commands until there are no more."""

    def tell(answer: dict[str, Any]) -> None:
        line = json.dumps(answer) + "\n"
        desk.told += len(line)
        answers.write(line)
        answers.flush()

    for line in commands:
        desk.wake()
        command = json.loads(line)
        action = getattr(desk, command.pop("do"))
        if action == desk.talk:
            command["tell"] = tell
        try:
            tell(action(**command))
        except Exception as error:  # noqa: BLE001 (the runner reports it)
            tell({"error": f"{type(error).__name__}: {error}"})
        desk.rest()


def main(module: str, option: str, directory: str, work: str) -> None:
    """Serve one peer; what its library prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    Path(directory).mkdir(parents=True, exist_ok=True)

    def open_peer() -> Peer:
        kind: Callable[[Path, str], Peer] = importlib.import_module(module).Driver
        return kind(Path(directory), option)

    serve(Desk(open_peer, Path(work)), sys.stdin, answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
