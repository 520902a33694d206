"""Sessions for the tests of the page: the demonstrations of examples/, and one in memory that folds, recalls and goes back."""

from pathlib import Path
from typing import Any

import memci
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.quality.replay import read_conversation

EXAMPLES = Path(__file__).parents[2] / "examples"

SMALL = {"budget": {"window": 700, "reserve": 0}, "counter": "approximate", "durability": "flush", "active": {"min_pages": 2}}
"""A small window, and a counter that loads nothing."""


def say(session: Session, user: str, answer: str) -> None:
    """Append a turn, with a window before its answer."""
    session.append({"role": "user", "content": user})
    session.window()
    session.append({"role": "assistant", "content": answer})


def trip(session: Session, days: int, *, first: int = 1) -> None:
    """Talk of a trip, so that pages fold."""
    for day in range(first, first + days):
        say(
            session,
            f"Day {day}: we paid {day * 7} euros for the hotel in town {day}.",
            f"Noted: day {day}, {day * 7} euros, hotel.",
        )


def eventful(store: str = "memory:") -> Session:
    """Return a session that folded, recalled a page, went back, and pinned one."""
    session = Engine(store, SMALL).session("trip")
    session.append({"role": "system", "content": "You keep the books of a trip."})
    trip(session, 30)
    session.recall("usr-3")
    trip(session, 2, first=31)
    session.rewind("usr-31/1")
    session.pin("usr-4")
    trip(session, 15, first=31)
    return session


def replayed(store: str, name: str, budget: int, **more: Any) -> None:  # noqa: ANN401 (sections of a config)
    """Store a conversation of examples/ as the session of its name, with a window before each answer."""
    said, _ = read_conversation([EXAMPLES / f"{name}.json"])
    settings = {"budget": {"window": budget, "reserve": 0}, "recall": {"passages_tokens": 0}, "durability": "flush"}
    config = {**settings, **more}  # what is shown of one are its pages, not what is quoted of them
    with memci.Engine(store, config) as engine, engine.session(name) as session:
        for each in said:
            if each.message["role"] == "assistant":
                session.window()
            session.append(each.message, at=each.at)
