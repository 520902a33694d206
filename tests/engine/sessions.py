"""Sessions for tests: small settings, and conversations made of turns of a known size."""

from collections.abc import Iterable
from typing import Any

from memci.archive.catalogue.page_facts import PageState
from memci.archive.stores.contract import Store
from memci.archive.stores.memory import MemoryStore
from memci.engine.core.monitor import Fold, Notice
from memci.engine.core.worker import Worker
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.settings.config import Config
from tests.engine.wire import Value, assistant, user

NEVER = {"budget": {"window": 1_000_000, "reserve": 0}}
"""Nothing folds by itself."""


def config_of(**sections: Any) -> Config:  # noqa: ANN401 (any section of the file)
    """Return a config whose budget is taken whole; nothing folds by itself unless the sections say so."""
    return Config.from_mapping({**NEVER, "durability": "flush", **sections})


def open_session(store: Store | None = None, **sections: Any) -> Session:  # noqa: ANN401 (any section of the file)
    """Open the session ``chat`` of a new engine, in memory unless a store is given."""
    return Engine(store or MemoryStore(), config_of(**sections)).session("chat")


def turn(number: int, words: int = 8) -> list[Value]:
    """Return the two messages of a turn, each of about so many words, whose words no other turn has."""
    return [
        user(f"question{number} " + " ".join(f"ask{number}x{word}" for word in range(words))),
        assistant(f"answer{number} " + " ".join(f"say{number}x{word}" for word in range(words))),
    ]


def talk(session: Session, turns: int, *, first: int = 1, words: int = 8, at: str | None = None) -> None:
    """Append turns, said now or *at* a time; turn k becomes page ``usr-k`` in a new session."""
    for number in range(first, first + turns):
        session.extend(turn(number, words), at=at)


def prepare(session: Session) -> None:
    """Let the engine's thread do all that it can do for a session ahead of its next command."""
    offer: Any = session._core.offer
    offer(session._core)
    finish(offer.__self__)


def finish(worker: Worker) -> None:
    """Let an engine's thread do all that waits, without a grace, and return when nothing is left."""
    with worker._changed:
        before, worker.grace_s = worker.grace_s, 0.0
        worker._waiting = sorted((0.0, number, core) for _, number, core in worker._waiting)
        worker._changed.notify_all()
        worker._changed.wait_for(lambda: worker._thread is None or not (worker._waiting or worker._works))
        worker.grace_s = before


def heard(session: Session) -> list[Notice]:
    """Return the list in which all notices from now on appear."""
    notices: list[Notice] = []
    session.observe(notices.append)
    return notices


def states(session: Session) -> dict[str, str]:
    return {facts.index: facts.state.value for facts in session.pages()}


def indexes(session: Session, *wanted: PageState) -> list[str]:
    return [facts.index for facts in session.pages() if facts.state in wanted]


def folded(notices: Iterable[Notice]) -> list[tuple[str, ...]]:
    """Return the pages of each fold."""
    return [notice.pages for notice in notices if isinstance(notice, Fold)]
