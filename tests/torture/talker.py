"""One long conversation, the same in every process that carries it on, so that what is missing is seen."""

from collections.abc import Callable

from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.settings.config import Config
from tests.torture.store_workload import StoreMaker

SESSION = "chat"
CONFIG = Config.from_mapping(
    {
        "counter": "approximate",
        "budget": {"window": 700, "reserve": 0},
        "active": {"min_pages": 2, "max_pages": 6},
        "contents": {"max_tokens": 200},
        "snapshot_every": 20,
    }
)


def text_of(number: int) -> str:
    """Return the text of a message; no other one has it."""
    return f"{number} " + " ".join(f"w{number}x{word}" for word in range(20))


def opened(make: StoreMaker, root: str, durability: str = "fsync", *, read_only: bool = False) -> Engine:
    """Return an engine on the store."""
    return Engine(make(root, durability=durability), CONFIG, read_only=read_only)


def say(session: Session, number: int) -> None:
    """Say a message; every second one opens a page, so that folds come by themselves."""
    session.append({"role": "assistant" if number % 2 else "user", "content": text_of(number)}, key=str(number))


def talk(session: Session, number: int, acknowledge: Callable[[int], None], until: int | None = None) -> None:
    """Say messages from a number on, to the end of time or *until*, and recall, search and render between them."""
    while until is None or number < until:
        say(session, number)
        acknowledge(number)
        if number % 9 == 4:
            session.window()
        if number % 13 == 6:
            for facts in session.pages("archived")[:1]:
                session.recall(facts.index)
        if number % 17 == 8:
            session.search(f"w{number // 2}x3")
        number += 1


def problem_with(said: list[str], told: int, beyond: int = 2) -> str:
    """Say what is wrong with a conversation of which the message *told* was acknowledged; nothing where all is well.

    Args:
        said: The texts, oldest first.
        told: The last number that was acknowledged, -1 for none.
        beyond: How many messages that were not acknowledged may be there.
    """
    for place, text in enumerate(said):
        if text != text_of(place):
            return f"message {place} is another one: {text[:40]!r}"
    if len(said) <= told:
        return f"message {told} was acknowledged and {len(said)} are there"
    if len(said) > told + 1 + beyond:
        return f"message {told} was acknowledged last, and {len(said)} are there"
    return ""


def read(make: StoreMaker, root: str) -> list[str]:
    """Return what was said, as a process reads it that only reads."""
    with opened(make, root, read_only=True) as engine:
        return [message["content"] for message in engine.session(SESSION).messages()]
