"""Runs the peers on the same work, each in a process of its own, in turns, and writes what came out as JSON.

python -m benchmarks.peers.runner --turns 1000,10000 --json .benchmarks/peers.json
"""

import argparse
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, Self

import attrs

from benchmarks import history
from benchmarks.peers import work
from benchmarks.peers.catalogue import PEERS, PeerSpec
from benchmarks.peers.peer import WINDOW_MESSAGES, WINDOW_TOKENS
from memci.messages.formats import format as formats
from memci.messages.tokens.counter import get_counter
from memci.quality.prompt_meter import PromptMeter

ENVIRONMENTS = Path(".benchmarks/peers")
COUNTER = "o200k_base"
_MEMORY_DISK = Path("/dev/shm")  # noqa: S108 (a directory of its own is made in it)
_OTHER_TURNS = 100  # length of the histories with tools and with long results
_WRITERS, _WRITTEN, _KILLED_AFTER = 4, 50, 200

Answer = dict[str, Any]


class PeerError(Exception):
    """A peer could not do what it was told."""


class Worker(Protocol):
    """A peer that carries out commands."""

    def ask(self, do: str, **arguments: object) -> Answer:
        """Give a command, and return the answer to it; raises PeerError."""
        ...


class Process:
    """A peer's process.

    Args:
        spec: The peer.
        directory: Its files.
        turns: The file of the work.
        before: What the command begins with, such as ``strace``.
    """

    def __init__(self, spec: PeerSpec, directory: Path, turns: Path, before: Sequence[str] = ()) -> None:
        python = sys.executable if spec.environment is None else ENVIRONMENTS / spec.environment / "bin" / "python"
        module = f"benchmarks.peers.drivers.{spec.module}"
        command = [*before, str(python), "-m", "benchmarks.peers.peer", module, spec.option, str(directory), str(turns)]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(  # noqa: S603 (our own words)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )

    def __enter__(self) -> Self:
        """Return the process."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Kill it."""
        self.kill()

    def ask(self, do: str, **arguments: object) -> Answer:
        """Give a command, and return the answer to it."""
        self.tell(do, **arguments)
        return self.answer()

    def tell(self, do: str, **arguments: object) -> None:
        """Give a command."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PeerError(self._last_words()) from None

    def answer(self) -> Answer:
        """Return the next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise PeerError(self._last_words())
        answer: Answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def kill(self) -> list[str]:
        """Kill the process, unless that is done, and return what it had still said."""
        assert self._process.stdout is not None
        if self._process.stdout.closed:
            return []
        self._process.kill()
        rest = self._process.stdout.readlines()
        self._process.communicate()
        self._errors.close()
        return rest

    def _last_words(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        return (self._errors.read().strip().splitlines() or [f"exit code {self._process.returncode}"])[-1]


@attrs.frozen
class Plan:
    """How much is measured.

    Attributes:
        rounds: How often each peer has its turn at a length.
        round_turns: Turns of a round at most.
        round_s: CPU seconds after which a round ends, at the end of a turn.
        fill_s: CPU seconds that a peer has to reach a length.
        check_s: The same of the turns whose windows are looked at.
        reads: How often an old turn is read.
        searches: Queries.
        reopens: How often the conversation is opened again.
        firsts: How often a new process makes its first request.
        checked_turns: Turns whose windows are looked at, before the rounds.
    """

    rounds: int = 4
    round_turns: int = 60
    round_s: float = 1.0
    fill_s: float = 45.0
    check_s: float = 4.0
    reads: int = 50
    searches: int = 20
    reopens: int = 5
    firsts: int = 3
    checked_turns: int = 40

    @property
    def turns(self) -> int:
        """How many turns follow a history at most."""
        return self.rounds * self.round_turns + self.checked_turns


def measure(workers: Mapping[str, Worker], kind: str, turns: int, plan: Plan) -> list[dict[str, Any]]:
    """Fill all peers to a length, let them take rounds in turns, and return a row for each."""
    rows: dict[str, dict[str, Any]] = {name: {"peer": name, "work": kind, "turns": turns} for name in workers}
    rounds: dict[str, list[Answer]] = {}
    for name, worker in workers.items():
        with _noting(rows[name]):
            rows[name] |= worker.ask("about")
            filled = worker.ask("fill", turns=turns, limit_s=plan.fill_s)
            if filled["turns"] < turns:
                problem = f"{filled['turns']:,} turns after {plan.fill_s:.0f} s of CPU time"
                raise PeerError(problem)
            rows[name] |= {
                "fill_us": 1e6 * filled["cpu"] / turns,
                **_checked(worker.ask("check", turns=plan.checked_turns, limit_s=plan.check_s)),
            }
            rounds[name] = []
    for number in range(plan.rounds):
        for name in _rotated(list(rounds), number):
            with _noting(rows[name]):
                rounds[name].append(workers[name].ask("round", turns=plan.round_turns, limit_s=plan.round_s))
    for name, answers in rounds.items():
        if len(answers) == plan.rounds:
            with _noting(rows[name]):
                rows[name] |= _afterwards(
                    workers[name], answers, plan, keeps=rows[name]["keeps"], searches=rows[name]["searches"]
                )
    return list(rows.values())


@contextmanager
def _noting(row: dict[str, Any]) -> Iterator[None]:
    """Write down why a peer did not do what it was told."""
    try:
        yield
    except PeerError as error:
        row["problem"] = str(error)


def _rotated(names: list[str], number: int) -> list[str]:
    place = number % max(len(names), 1)
    return names[place:] + names[:place]


def _summed(answers: Sequence[Answer], closed: Answer) -> dict[str, Any]:
    """Return what the rounds took, and closing in the sums; times in microseconds."""
    turns = sum(len(answer["cpu"]) for answer in answers)
    return {
        "measured_turns": turns,
        "cpu_us": _spread(answers, "cpu"),
        "wait_us": _spread(answers, "elapsed"),
        "rounds": [
            {"cpu_us": 1e6 * statistics.median(answer["cpu"]), "wait_us": 1e6 * statistics.fmean(answer["elapsed"])}
            for answer in answers
        ],
        "all_cpu_us": 1e6 * sum(answer["all_cpu"] for answer in (*answers, closed)) / turns,
        "bytes": sum(answer["bytes"] for answer in (*answers, closed)) / turns,
    }


def _spread(answers: Iterable[Answer], key: str) -> dict[str, float]:
    """Return median, mean, 99th percentile and maximum of all turns, in microseconds."""
    values = sorted(1e6 * value for answer in answers for value in answer[key])
    return {
        "median": statistics.median(values),
        "mean": statistics.fmean(values),
        "p99": values[min(len(values) - 1, int(0.99 * len(values)))],
        "max": values[-1],
    }


def _checked(answer: Answer) -> dict[str, Any]:
    """Return what is wrong with windows, counted anew."""
    meter = PromptMeter(get_counter(COUNTER), formats.get("openai"), WINDOW_TOKENS)
    sizes = [meter.call(window).tokens for window in answer["windows"]]
    return {
        "windows": len(sizes),
        "over_budget": meter.faults.over_budget,
        "largest_window": max(sizes),
        "broken_pairs": meter.faults.broken_pairs,
    }


def _afterwards(worker: Worker, answers: Sequence[Answer], plan: Plan, *, keeps: bool, searches: bool) -> dict[str, Any]:
    """Return what the rounds took, and what a long conversation takes beside its turns."""
    found = worker.ask("memory")
    if keeps:
        found |= _summed(answers, worker.ask("close")) | {"reopen_us": _medians(worker.ask("reopen", times=plan.reopens))}
    with _noting(found):
        read = worker.ask("read", times=plan.reads)
        found |= {"read_us": _medians(read), "read_right": read["right"]}
    if searches:
        searched = worker.ask("search", queries=history.queries(plan.searches))
        found |= {"search_us": _medians(searched), "hits": searched["hits"]}
    return found if keeps else found | _summed(answers, worker.ask("close"))


def _medians(answer: Answer) -> dict[str, float]:
    return {key: 1e6 * statistics.median(answer[name]) for key, name in (("cpu", "cpu"), ("wait", "elapsed"))}


def first_request(spec: PeerSpec, directory: Path, turns: Path, times: int) -> dict[str, Any]:
    """Return what a new process takes to its first window of a conversation that is there, in microseconds."""
    cpu, wait = [], []
    for _ in range(times):
        begin = perf_counter()
        with Process(spec, directory, turns) as process:
            cpu.append(process.ask("first")["cpu"])
            wait.append(perf_counter() - begin)
    return {"cpu": 1e6 * statistics.median(cpu), "wait": 1e6 * statistics.median(wait)}


def count_syncs(spec: PeerSpec, directory: Path, turns: Path, plan: Plan) -> float | None:
    """Return how many files a turn syncs, as strace sees it; ``None`` where there is none."""
    strace = shutil.which("strace")
    if strace is None:
        return None
    with tempfile.NamedTemporaryFile() as trace:
        seen = Path(trace.name)
        command = (
            strace,
            "-D",
            "-f",
            "-qq",
            "--seccomp-bpf",
            "-e",
            "trace=fsync,fdatasync,sync_file_range,msync",
            "-o",
            trace.name,
        )
        with Process(spec, directory, turns, command) as process:
            process.ask("fill", turns=100, limit_s=plan.fill_s)
            before = _sync_count(seen)
            done = len(process.ask("round", turns=plan.checked_turns, limit_s=plan.fill_s)["cpu"])
            return (_sync_count(seen) - before) / done


def _sync_count(trace: Path) -> int:
    return sum("sync" in line and "resumed" not in line for line in trace.read_text(encoding="utf-8").splitlines())


def lost_by_kill(spec: PeerSpec, directory: Path, turns: Path) -> dict[str, Any]:
    """Kill a peer while it talks, and return how many messages that it had taken in are not there afterwards."""
    with Process(spec, directory, turns) as process:
        process.tell("talk", name="killed", messages=10 * _KILLED_AFTER)
        said = [process.answer()["said"] for _ in range(_KILLED_AFTER)]
        said += [json.loads(line)["said"] for line in process.kill() if line.endswith("\n")]
    return {"killed_said": len(said), "killed_lost": _missing(spec, directory, turns, said)}


def lost_by_writers(spec: PeerSpec, directory: Path, turns: Path) -> dict[str, Any]:
    """Let processes talk in one conversation at once, and return how many of their messages are not there afterwards."""
    with ExitStack() as stack:
        writers = [stack.enter_context(Process(spec, directory, turns)) for _ in range(_WRITERS)]
        writers[0].ask("fill", turns=1, limit_s=60)
        for writer in writers:
            writer.ask("about")  # opens the conversation
        for number, writer in enumerate(writers):
            writer.tell("talk", name=f"writer{number}", messages=_WRITTEN)
        said, refused = [], 0
        for writer in writers:
            while "said" in (answer := writer.answer()):
                said.append(answer["said"])
            refused += answer["refused"]
    return {"writers_said": len(said), "writers_refused": refused, "writers_lost": _missing(spec, directory, turns, said)}


def _missing(spec: PeerSpec, directory: Path, turns: Path, said: Sequence[str]) -> int:
    with Process(spec, directory, turns) as process:
        return len(set(said) - set(process.ask("texts")["texts"]))


def run(
    names: Sequence[str], lengths: Sequence[int], plan: Plan, scratch: Path, told: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Measure peers at all lengths and kinds of work, and what they lose; yield what was found so far after each of them."""
    counter = get_counter(COUNTER)
    rows: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    found = {
        "peers": {name: {"beside": PEERS[name].beside, "note": PEERS[name].note} for name in names},
        "rows": rows,
        "others": others,
    }
    for kind in work.KINDS:
        kind_lengths = lengths if kind == "chat" else (_OTHER_TURNS,)
        turns = work.write(scratch / f"{kind}.jsonl", kind, kind_lengths[-1] + plan.turns, counter)
        message_bytes = work.message_bytes(kind)
        for length in kind_lengths:
            told(f"{kind}, {length:,} turns")
            with ExitStack() as stack:
                workers = {
                    name: stack.enter_context(Process(PEERS[name], scratch / f"{kind}-{length}-{place}", turns))
                    for place, name in enumerate(names)
                }
                rows += [row | {"message_bytes": message_bytes} for row in measure(workers, kind, length, plan)]
            if (kind, length) == ("chat", lengths[0]):
                keeps = {row["peer"]: row.get("keeps", False) for row in rows}
                for place, name in enumerate(names):
                    told(f"{name}: first request, syncs, losses")
                    others.append(_others(name, scratch / f"chat-{length}-{place}", turns, plan, keeps=keeps[name]))
            for place, _ in enumerate(names):
                shutil.rmtree(scratch / f"{kind}-{length}-{place}", ignore_errors=True)
            yield found


def _others(name: str, filled: Path, turns: Path, plan: Plan, *, keeps: bool) -> dict[str, Any]:
    spec = PEERS[name]
    found: dict[str, Any] = {"peer": name}
    with _noting(found), tempfile.TemporaryDirectory(dir=filled.parent) as place:
        new = Path(place)
        found["first_us"] = first_request(spec, filled, turns, plan.firsts)
        if keeps:
            found["syncs"] = count_syncs(spec, new / "syncs", turns, plan)
            found |= lost_by_kill(spec, new / "killed", turns) | lost_by_writers(spec, new / "writers", turns)
    return found


def machine(scratch: Path) -> dict[str, Any]:
    """Return what the figures depend on beside the peers."""
    cpus = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(":")[2].strip() for line in cpus if line.startswith("model name")), platform.machine())
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "memory_disk": _MEMORY_DISK in scratch.parents,
        "day": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def main() -> None:
    """Measure, and write the result."""
    parser = argparse.ArgumentParser(description="Measure memci and its peers on the same work.")
    parser.add_argument("--turns", default="1000,10000", help="lengths of the histories, in turns (1000,10000)")
    parser.add_argument("--peer", action="append", metavar="NAME", help="measure this peer; without it, all that are installed")
    parser.add_argument("--rounds", type=int, default=Plan().rounds, help=f"rounds of each peer at a length ({Plan().rounds})")
    parser.add_argument("--directory", type=Path, help="where files are written; by default in memory where there is such a disk")
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="the result")
    given = parser.parse_args()
    names = given.peer or [
        name for name, spec in PEERS.items() if spec.environment is None or (ENVIRONMENTS / spec.environment).is_dir()
    ]
    lengths = sorted({int(length) for length in given.turns.split(",")})
    begin, plan = perf_counter(), Plan(rounds=given.rounds)
    with tempfile.TemporaryDirectory(dir=given.directory or (_MEMORY_DISK if _MEMORY_DISK.is_dir() else None)) as place:
        about = {
            "machine": machine(Path(place)),
            "plan": attrs.asdict(plan),
            "window": WINDOW_TOKENS,
            "messages": WINDOW_MESSAGES,
            "lengths": lengths,
        }
        for found in run(names, lengths, plan, Path(place), lambda words: print(words, file=sys.stderr, flush=True)):  # noqa: T201
            whole = {**about, **found, "seconds": perf_counter() - begin}
            given.json.write_text(json.dumps(whole, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
