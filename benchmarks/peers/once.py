"""What is measured once a peer: its first request, what it writes and syncs, and what it loses."""

import json
import re
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.peers.catalogue import PeerSpec
from benchmarks.peers.process import Process

_WRITERS, _WRITTEN, _KILLED_AFTER = 4, 50, 200
_LIMIT_S = 60.0
_INDEX = "/index.sqlite"  # in which memci's search index and its log lie, and nothing else
_SIZE = re.compile(r"(?: = |, )(\d+)(?:, \d+)?(?: <unfinished \.\.\.>)?$")


def first_request(spec: PeerSpec, directory: Path, turns: Path, times: int) -> dict[str, Any]:
    """Return what a new process takes to its first window of a conversation that is there, in microseconds."""
    cpu, wait = [], []
    for _ in range(times):
        begin = perf_counter()
        with Process(spec, directory, turns) as process:
            cpu.append(process.ask("first")["cpu"])
            wait.append(perf_counter() - begin)
    return {"cpu": 1e6 * statistics.median(cpu), "wait": 1e6 * statistics.median(wait)}


def watched(spec: PeerSpec, directory: Path, turns: Path, count: int) -> dict[str, float]:
    """Return the syncs of a turn and which share of the bytes goes to memci's index, as strace sees it, where there is one."""
    strace = shutil.which("strace")
    if strace is None:
        return {}
    new = not directory.exists()
    with tempfile.NamedTemporaryFile() as trace:
        seen = Path(trace.name)
        calls = "trace=fsync,fdatasync,sync_file_range,msync,write,writev,pwrite64,pwritev"
        command = (strace, "-D", "-f", "-qq", "-y", "-s", "0", "--seccomp-bpf", "-e", calls, "-o", trace.name)
        with Process(spec, directory, turns, command) as process:
            if new:
                process.ask("fill", turns=100, limit_s=_LIMIT_S)
            process.ask("settle")
            before = len(_seen(seen))
            done = len(process.ask("round", turns=count, limit_s=_LIMIT_S)["cpu"])
            between = len(_seen(seen))
            process.ask("close")
            lines = _seen(seen)[before:]
        syncs = sum("sync" in _call(line) for line in lines[: between - before])
        written = [line for line in lines if "write" in _call(line) and str(directory) in line]
        index, whole = (sum(map(_size, some)) for some in ([line for line in written if _INDEX in line], written))
        return {"syncs": syncs / done, **({"index_share": index / whole} if whole else {})}


def _seen(trace: Path) -> list[str]:
    return [line for line in trace.read_text(encoding="utf-8").splitlines() if "resumed" not in line]


def _call(line: str) -> str:
    """Return the name of a call, which stands after the thread's number."""
    return line.split(maxsplit=1)[1].partition("(")[0]


def _size(line: str) -> int:
    """Return how many bytes a call wrote, or, where another thread's call cut the line, was to write."""
    size = _SIZE.search(line)
    return int(size[1]) if size else 0


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
