"""Measuring engines on sets of conversations, at several budgets: by several processes, and no figure twice."""

import functools
import hashlib
import itertools
import os
import signal
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import TypeVar

import attrs

from memci.errors import UnavailableError
from memci.messages import codec
from memci.quality.conversation import Conversation, ConversationSet
from memci.quality.engines import EngineSpec
from memci.quality.played import Played
from memci.quality.playing import COUNTER, play
from memci.quality.scoring.evidence import with_foreign

BUDGETS = (4_000, 8_000, 16_000, 32_000)  # those that are measured by default, in tokens

_Name = TypeVar("_Name")
_Result = TypeVar("_Result")
_PACKAGE = Path(__file__).parent.parent


class Cache:
    """Results in files, named by the hash of all that decides them; several processes may share it. What is damaged is none."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def find(self, conversation: Conversation, spec: EngineSpec, budget: int) -> Played | None:
        """Return what was measured, or ``None``. O(size of the conversation)."""
        try:
            return Played.from_mapping(codec.decode(self._path(conversation, spec, budget).read_bytes()))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, conversation: Conversation, spec: EngineSpec, budget: int, played: Played) -> None:
        """Keep what was measured; ``UnavailableError`` where it cannot be written."""
        path = self._path(conversation, spec, budget)
        written = path.with_suffix(f".{os.getpid()}")  # of this process alone; readers see a whole file or none
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            written.write_bytes(codec.encode(attrs.asdict(played)))
            written.replace(path)
        except OSError as error:
            message = f"results cannot be kept in {path.parent} ({error.strerror}): measure with --no-cache"
            raise UnavailableError(message) from error

    def _path(self, conversation: Conversation, spec: EngineSpec, budget: int) -> Path:
        decides = [attrs.asdict(conversation), COUNTER, spec.name, spec.settings, _hash(_PACKAGE, spec.code), budget]
        return self._directory / f"{hashlib.sha256(codec.encode(decides)).hexdigest()}.json"


def code_hash(root: Path, patterns: Iterable[str]) -> str:
    """Return a hash of the names and contents of the files below *root* that match. O(their size)."""
    found = {path.relative_to(root).as_posix(): path for pattern in patterns for path in root.glob(pattern)}
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(f"{name}\n".encode() + hashlib.sha256(found[name].read_bytes()).digest())
    return digest.hexdigest()


_hash = functools.cache(code_hash)


@attrs.frozen(kw_only=True)
class Row:
    """One engine on one set at one budget."""

    set: str  # its name
    conversations: int  # how many were played
    engine: str  # its name
    budget: int  # tokens that a window may hold
    played: Played  # what was measured, over all conversations


def _played(conversation: Conversation, spec: EngineSpec, budget: int) -> Played:
    with spec.open(budget, conversation) as engine:
        return play(engine, conversation, budget)


def measure(  # noqa: PLR0913 (what is measured, and how it is run)
    sets: Sequence[ConversationSet],
    engines: Sequence[EngineSpec],
    budgets: Sequence[int],
    *,
    cache: Cache | None = None,
    jobs: int = 1,
    advance: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Row]:
    """Play every conversation to every engine at every budget in tokens; sets in their order, then budgets, then engines.

    With several processes, the *jobs*, each engine must be one that can be pickled. *advance* is told how many messages were
    played, and of how many.
    """
    sets = [attrs.evolve(chosen, conversations=with_foreign(chosen.conversations)) for chosen in sets]
    rows = list(itertools.product(sets, budgets, engines))
    tasks = {
        (row, number): (conversation, spec, budget)
        for row, (chosen, budget, spec) in enumerate(rows)
        for number, conversation in enumerate(chosen.conversations)
    }
    kept = {} if cache is None else {key: cache.find(*task) for key, task in tasks.items()}
    found = {key: played for key, played in kept.items() if played is not None}
    missing = {key: task for key, task in tasks.items() if key not in found}
    messages, total = 0, sum(len(conversation.messages) for conversation, _, _ in missing.values())
    with closing(done({key: functools.partial(_played, *task) for key, task in missing.items()}, jobs)) as results:
        for key, played in results:
            found[key] = played
            if cache is not None:
                cache.put(*missing[key], played)
            messages += len(missing[key][0].messages)
            advance(messages, total)
    return [
        Row(
            set=chosen.name,
            conversations=len(chosen.conversations),
            engine=spec.name,
            budget=budget,
            played=Played.of(found[row, number] for number in range(len(chosen.conversations))),
        )
        for row, (chosen, budget, spec) in enumerate(rows)
    ]


def done(tasks: Mapping[_Name, Callable[[], _Result]], jobs: int) -> Generator[tuple[_Name, _Result], None, None]:
    """Yield what the tasks return, each with its key, as it comes; one job is done by this process, in order.

    The processes end at once when the iterator is closed, by an interrupt (Ctrl-C) too, of which they do not hear, or killed.
    """
    if min(jobs, len(tasks)) <= 1:
        for key, task in tasks.items():
            yield key, task()
        return
    context = get_context("spawn")  # new interpreters, as a fork of a process with threads may hang
    leash, end = context.Pipe(duplex=False)
    with (
        closing(leash),
        closing(end),
        ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context, initializer=_begin, initargs=(leash,)) as pool,
    ):
        try:
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # an interrupt comes after the block
            try:
                futures = {pool.submit(task): key for key, task in tasks.items()}  # starts the processes, which take this over
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            end.close()  # leaving the pool waits for its processes
            raise


def _begin(leash: Connection) -> None:
    """Let this process end when the other end of the leash is closed."""

    def end() -> None:
        leash.poll(None)
        os._exit(1)  # a task is not left in any other way, and nothing of it is wanted

    Thread(target=end, daemon=True).start()
