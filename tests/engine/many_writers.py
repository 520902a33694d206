"""Writers that give all commands of a session at once, each as a process of its own would; and what must be there then."""

import random
import sys
from collections.abc import Callable

from memci.archive.stores.contract import Store
from memci.archive.stores.url import open_store
from memci.engine.engine import Engine
from memci.engine.history.events import MessageAppended, from_record
from memci.engine.session import Session
from memci.errors import ConflictError, MemciError, PageEvictedError, PageNotFoundError, PermissionDeniedError
from tests.engine.sessions import config_of
from tests.engine.wire import assistant, system, user
from tests.together import in_threads

REFUSALS = (PageNotFoundError, PageEvictedError, PermissionDeniedError)
"""What a command may meet because of what others did before it, such as evicting the page."""


def writer_on(store: Store) -> Session:
    """Open the session ``chat`` as another process does."""
    settings = {"budget": {"window": 2_000, "reserve": 0}, "active": {"min_pages": 1, "max_pages": 6}, "snapshot_every": 20}
    return Engine(store, config_of(**settings), on_conflict="retry").session("chat")


def work(session: Session, name: str, rounds: int) -> list[str]:
    """Give so many commands, chosen at random, and return the texts of the messages that were acknowledged.

    Raises:
        ConflictError: One that makes sense whatever others wrote was refused.
    """
    dice = random.Random(name)  # noqa: S311 (a test)
    said: list[str] = []

    def say() -> None:
        text = f"{name}.{len(said)} " + " ".join(f"{name}{len(said)}x{word}" for word in range(6))
        message = dice.choice([user, assistant])(text)
        entry = session.append(message, key=dice.choice([None, text]))
        assert text == entry.message["content"]
        said.append(text)

    def report() -> None:
        tokens = session.window().tokens
        session.report_usage(prompt_tokens=tokens)

    def page() -> int:
        return dice.randint(1, 1 + len(session.pages()))

    tool = {"id": "c1", "type": "function", "function": {"name": "recall_page", "arguments": '{"index": "usr-1"}'}}
    commands: list[Callable[[], object]] = [
        say,
        say,
        say,
        lambda: session.window(tools=session.toolbox.openai()[: dice.randint(0, 4)]),
        lambda: session.window(budget=dice.choice([1_000, 2_000])),
        lambda: session.recall(page()),
        lambda: session.fade(page()),
        lambda: session.evict(page()),
        lambda: session.restore(page()),
        lambda: session.pin(page()),
        lambda: session.unpin(page()),
        lambda: session.fold("all"),
        lambda: session.begin_page(name),
        lambda: session.checkpoint(name),
        lambda: session.set_system([system(f"be {name}")]),
        report,
        lambda: session.search(name),
        lambda: session.handle_tool_call(tool),
        lambda: _unless_changed(session.undo_fold),
        lambda: _unless_changed(lambda: session.rewind(f"usr-{page()}/1")),
        lambda: session.restore_checkpoint(dice.choice(session.checkpoints()).id) if session.checkpoints() else None,
    ]
    for _ in range(rounds):
        try:
            dice.choice(commands)()
        except REFUSALS:
            continue
    return said


def _unless_changed(command: Callable[[], object]) -> None:
    """Give a command that is refused where others took the sense from it."""
    try:
        command()
    except ConflictError as error:
        assert error.expected == error.head, error  # noqa: PT017 (it says why it was refused)
    except MemciError as error:
        if "no fold to undo" not in str(error) and not isinstance(error, REFUSALS):
            raise


def at_once(store: Store, writers: int, rounds: int) -> None:
    """Let so many threads work at once, and check what is there then."""
    said: list[str] = []
    names = [f"w{number}" for number in range(writers)]
    in_threads(lambda name: said.extend(work(writer_on(store), name, rounds)), names)
    check(store, said)


def check(store: Store, said: list[str]) -> None:
    """Assert that what was acknowledged stands in the journal once, and that all that is made of the journal is sound."""
    with Engine(store, config_of()) as engine, engine.session("chat") as session:
        journal = session._core.store.journal
        events = (from_record(record) for record in journal.read())
        there = [event.message["content"] for event in events if isinstance(event, MessageAppended)]
        assert sorted(said) == sorted(there)
        assert () == session.verify().problems
        session._core.state._check()


if __name__ == "__main__":
    texts = work(writer_on(open_store(sys.argv[1], "flush")), sys.argv[2], int(sys.argv[3]))
    sys.stdout.write("\n".join(texts))
