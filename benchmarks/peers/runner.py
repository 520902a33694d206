"""Runs the peers on the same work, each in a process of its own, in turns, and writes what came out as JSON.

python -m benchmarks.peers.runner --turns 1000,10000 --json .benchmarks/peers.json
"""

import argparse
import os
import platform
import shutil
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import attrs

from benchmarks import history
from benchmarks.peers import work
from benchmarks.peers.catalogue import PEERS
from benchmarks.peers.once import first_request, lost_by_kill, lost_by_writers, watched
from benchmarks.peers.peer import WINDOW_MESSAGES, WINDOW_TOKENS
from benchmarks.peers.process import ENVIRONMENTS, Answer, PeerError, Process, Worker
from benchmarks.result import keep
from memci.messages.formats import format as formats
from memci.messages.tokens.counter import get_counter
from memci.quality.prompt_meter import PromptMeter

COUNTER = "o200k_base"
_MEMORY_DISK = Path("/dev/shm")  # noqa: S108 (a directory of its own is made in it)
_OTHER_TURNS = 100  # length of the histories with tools and with long results
_WIDE = "memci, flush"  # whose turns are measured with other windows, too
_WINDOWS = (("chat", WINDOW_TOKENS), ("chat", 28_000), ("results", 28_000), ("chat", 128_000))


@attrs.frozen
class Plan:
    """How much is measured.

    Attributes:
        rounds: How often each peer has its turn at a length.
        round_turns: Turns of a round at most.
        round_s: CPU seconds after which a round ends, at the end of a turn.
        pause_turns: Turns of a round at most, where a model takes its time after each window.
        pause_s: That time, in seconds.
        fill_s: CPU seconds that a peer has to reach a length.
        check_s: The same of the turns whose windows are looked at.
        other_s: The same after which no more of another operation begin.
        reads: How often an old turn is read.
        searches: Queries.
        reopens: How often the conversation is opened again.
        firsts: How often a new process makes its first request.
        checked_turns: Turns whose windows are looked at, before the rounds.
    """

    rounds: int = 4
    round_turns: int = 60
    round_s: float = 1.0
    pause_turns: int = 20
    pause_s: float = 0.05
    fill_s: float = 45.0
    check_s: float = 4.0
    other_s: float = 2.0
    reads: int = 50
    searches: int = 20
    reopens: int = 5
    firsts: int = 3
    checked_turns: int = 40

    @property
    def turns(self) -> int:
        """How many turns follow a history at most."""
        return self.rounds * (self.round_turns + self.pause_turns) + self.checked_turns


def measure(workers: Mapping[str, Worker], kind: str, turns: int, plan: Plan) -> list[dict[str, Any]]:
    """Fill all peers to a length, let them take rounds in turns, and return a row for each."""
    rows: dict[str, dict[str, Any]] = {name: {"peer": name, "work": kind, "turns": turns} for name in workers}
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
            worker.ask("settle")  # what the filling left to threads is not of the rounds
    if kind == "chat":
        pause = {"turns": plan.pause_turns, "limit_s": plan.round_s, "pause_s": plan.pause_s}
        for name, answers in _alternating(workers, rows, plan.rounds, pause).items():
            with _noting(rows[name]):
                rows[name]["paused"] = _summed(answers, workers[name].ask("settle"))
    for name, answers in _alternating(workers, rows, plan.rounds, {"turns": plan.round_turns, "limit_s": plan.round_s}).items():
        with _noting(rows[name]):
            rows[name] |= _afterwards(workers[name], answers, plan, keeps=rows[name]["keeps"], searches=rows[name]["searches"])
    return list(rows.values())


def _alternating(
    workers: Mapping[str, Worker], rows: Mapping[str, dict[str, Any]], rounds: int, arguments: Mapping[str, object]
) -> dict[str, list[Answer]]:
    """Let all peers without a problem take rounds in turns, and return the answers of those that took them all."""
    answers: dict[str, list[Answer]] = {name: [] for name, row in rows.items() if "problem" not in row}
    for number in range(rounds):
        for name in _rotated(list(answers), number):
            with _noting(rows[name]):
                answers[name].append(workers[name].ask("round", **arguments))
    return {name: each for name, each in answers.items() if len(each) == rounds}


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


def _summed(answers: Sequence[Answer], after: Answer) -> dict[str, Any]:
    """Return what the rounds took, and in the sums what came *after* them; times in microseconds."""
    turns = sum(len(answer["cpu"]) for answer in answers)
    return {
        "measured_turns": turns,
        "cpu_us": _spread(answers, "cpu"),
        "wait_us": _spread(answers, "elapsed"),
        "rounds": [
            {"cpu_us": 1e6 * statistics.median(answer["cpu"]), "wait_us": 1e6 * statistics.fmean(answer["elapsed"])}
            for answer in answers
        ],
        "all_cpu_us": 1e6 * sum(answer["all_cpu"] for answer in (*answers, after)) / turns,
        "bytes": sum(answer["bytes"] for answer in (*answers, after)) / turns,
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
        found |= _summed(answers, worker.ask("close"))
        found["reopen_us"] = _medians(worker.ask("reopen", times=plan.reopens, limit_s=plan.other_s))
    with _noting(found):
        read = worker.ask("read", times=plan.reads, limit_s=plan.other_s)
        found |= {"read_us": _medians(read), "read_right": read["right"]}
    if searches:
        searched = worker.ask("search", queries=history.queries(plan.searches), limit_s=plan.other_s)
        found |= {"search_us": _medians(searched), "hits": searched["hits"]}
    return found if keeps else found | _summed(answers, worker.ask("close"))


def _medians(answer: Answer) -> dict[str, float]:
    return {key: 1e6 * statistics.median(answer[name]) for key, name in (("cpu", "cpu"), ("wait", "elapsed"))}


def run(
    names: Sequence[str], lengths: Sequence[int], plan: Plan, scratch: Path, told: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Measure peers at all lengths and kinds of work, and what they lose; yield what was found so far after each of them."""
    counter = get_counter(COUNTER)
    rows: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    found: dict[str, Any] = {
        "peers": {name: {"beside": PEERS[name].beside, "note": PEERS[name].note} for name in names},
        "rows": rows,
        "others": others,
    }

    def write(kind: str, count: int) -> Path:
        return work.write(scratch / f"{kind}.jsonl", kind, count, counter)

    if _WIDE in names:
        told("other windows")
        found["windows"] = list(in_windows(scratch, write))
    for kind in work.KINDS:
        kind_lengths = lengths if kind == "chat" else (_OTHER_TURNS,)
        turns = write(kind, kind_lengths[-1] + plan.turns)
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
            if (kind, length, _WIDE in names) == ("chat", lengths[-1], True):
                found |= watched(
                    PEERS[_WIDE], scratch / f"chat-{length}-{names.index(_WIDE)}", turns, plan.rounds * plan.round_turns
                )
            for place, _ in enumerate(names):
                shutil.rmtree(scratch / f"{kind}-{length}-{place}", ignore_errors=True)
            yield found


def in_windows(scratch: Path, turns: Callable[[str, int], Path]) -> Iterator[dict[str, Any]]:
    """Measure turns of memci with windows of several sizes, in rounds so long that each holds a fold."""
    for kind, window in _WINDOWS:
        round_turns = max(25, window // 200)
        filled = 2 * round_turns
        work_file = turns(kind, filled + 4 * round_turns)
        spec = attrs.evolve(PEERS[_WIDE], option=f"{PEERS[_WIDE].option} {window}")
        with Process(spec, scratch / f"{kind}-window-{window}", work_file) as process:
            process.ask("fill", turns=filled, limit_s=600)
            process.ask("settle")
            answers = [process.ask("round", turns=round_turns, limit_s=600) for _ in range(4)]
            found = _summed(answers, process.ask("close"))
        fold_us = 1e6 * statistics.median(max(answer["elapsed"]) for answer in answers)
        yield {"work": kind, "window": window, "fold_us": fold_us, "cpu_us": found["cpu_us"], "all_cpu_us": found["all_cpu_us"]}


def _others(name: str, filled: Path, turns: Path, plan: Plan, *, keeps: bool) -> dict[str, Any]:
    spec = PEERS[name]
    found: dict[str, Any] = {"peer": name}
    with _noting(found), tempfile.TemporaryDirectory(dir=filled.parent) as place:
        new = Path(place)
        found["first_us"] = first_request(spec, filled, turns, plan.firsts)
        if keeps:
            found |= watched(spec, new / "watched", turns, plan.checked_turns)
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
            keep(given.json, {**about, **found, "seconds": perf_counter() - begin})


if __name__ == "__main__":
    main()
