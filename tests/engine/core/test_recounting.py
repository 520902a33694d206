"""Under another counter everything that a window shows is counted anew."""

from collections.abc import Iterator

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.chapters.page import Page
from memci.engine.core.core import Core
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.messages.tokens.message_tokens import count_message
from tests.engine.sessions import open_session, talk
from tests.engine.wire import assistant, calling, result, user

WORDS = "价格 résumé x9_tmp[0] "
"""Text whose size the counters differ on."""


def begun(store: MemoryStore, counter: str) -> Session:
    """Return a session in which each part of a window has something, and a late result waits for a fold."""
    session = open_session(
        store, counter=counter, budget={"window": 4_000, "reserve": 0}, active={"min_pages": 1, "page_tokens": 600}
    )
    session.append({"role": "system", "content": WORDS * 5})
    session.extend([user(WORDS * 20), calling("late", arguments='{"at": "价格"}'), assistant(WORDS * 150)])
    talk(session, 2, first=2, words=30)
    session.extend([user(WORDS * 20), calling("large"), result("large", WORDS * 300), assistant("so far"), assistant(WORDS * 20)])
    session.window(2_000)
    session.fold("all")
    session.window()
    session.recall(2)
    session.recall(3)
    session.extend([calling("again"), result("again", WORDS * 300), result("late", WORDS * 100)])
    return session


def sizes(core: Core) -> Iterator[tuple[str, int, int]]:
    """Yield what the state shows, its size as the state has it, and as the counter counts it."""
    state = core.state
    opening = Page(index=state.opening.index if state.opening else "", turn=0)
    for chapter in state.verbatim():
        for page in chapter.pages():
            for position, node in enumerate(page.nodes(), start=1):
                yield f"{page.index}/{position}", node.tokens, core.count(node.message)
                yield (
                    f"the stub of {page.index}/{position}",
                    node.stub_tokens,
                    core.count_stub(f"{page.index}/{position}", node.message, node.tokens),
                )
            yield page.index, page.tokens, sum(node.tokens for node in page.nodes())
        yield type(chapter).__name__, chapter.tokens, sum(page.tokens for page in chapter.pages())
    for position, node in enumerate(state.opening.nodes() if state.opening else (), start=1):
        yield f"opening {position}", node.tokens, core.count(node.message)
        yield (
            f"the stub of opening {position}",
            node.stub_tokens,
            core.count_stub(f"{opening.index}/{position}", node.message, node.tokens),
        )
    for index, attachment in state.recalled.attachments.items():
        yield f"the block of {index}", attachment.tokens, core.count(attachment.block)
    for node in state.archive.message_list:
        yield "the contents page", node.tokens, core.count(node.message)


def excerpts(session: Session) -> object:
    settled = session._core.state.settled
    assert settled is not None
    return settled.excerpts


@pytest.mark.parametrize(("before", "after"), [("o200k_base", "approximate"), ("approximate", "cl100k_base")])
def test_all_that_is_shown_is_counted_anew(before: str, after: str) -> None:
    """Entries, stubs, the opening of the turn, recalled blocks and the contents page have the sizes of the new counter."""
    store = MemoryStore()
    session = begun(store, before)
    assert [] == [size for size in sizes(session._core) if size[1] != size[2]]
    shown = {name for name, size, _ in sizes(session._core) if size}
    assert {"opening 1", "the block of usr-2", "the block of usr-3", "the contents page", "sys-1/1"} <= shown
    assert any(name.startswith("the stub of usr") for name in shown)
    again = open_session(
        store, counter=after, budget={"window": 4_000, "reserve": 0}, active={"min_pages": 1, "page_tokens": 600}
    )
    again.checkpoint("under the new counter")
    assert [] == [size for size in sizes(again._core) if size[1] != size[2]]
    assert again.verify().ok


@pytest.mark.parametrize("brought_back", ["rewind", "undo_fold"])
def test_a_late_result_is_counted_anew_when_it_comes_into_view(brought_back: str) -> None:
    """A late result that came under another counter has the new counter's size in a page that comes back into view."""
    store = MemoryStore()
    session = open_session(store, counter="o200k_base", active={"min_pages": 1})
    session.extend([user(WORDS * 20), calling("late"), assistant("going on"), user("more")])
    session.window(70)
    session.append(result("late", WORDS * 200))
    again = open_session(store, counter="approximate", active={"min_pages": 1})
    if brought_back == "rewind":
        again.rewind("usr-1/4")
    else:
        again.undo_fold()
    assert "usr-1" in again._core.state.active
    assert [] == [size for size in sizes(again._core) if size[1] != size[2]]


@pytest.mark.parametrize("value", [{"role": "user", "content": "some words"}, {"type": "new_kind", "content": "some words"}])
def test_a_message_is_counted_anew_as_it_was_when_it_came(value: dict[str, object]) -> None:
    """A message counts the same when it comes in and later; an item that memci does not know is counted as JSON, whole."""
    session = open_session(format="responses")
    node = session.append(value).node
    counter = session._core.counter
    assert node.tokens == session._core.count(node.message) == count_message(dict(value), counter)


def test_what_is_shown_of_a_long_entry_is_measured_anew() -> None:
    """How much of an entry that is too large fits was counted by the former counter: the next window decides it."""
    store = MemoryStore()
    session = open_session(store, counter="o200k_base", budget={"window": 4_000, "reserve": 0})
    session.extend([user("read it"), calling("c"), result("c", WORDS * 900)])
    session.window()
    assert excerpts(session)
    again = open_session(store, counter="approximate", budget={"window": 4_000, "reserve": 0})
    again.checkpoint("under the new counter")
    assert {} == excerpts(again)
    assert [] == [size for size in sizes(again._core) if size[1] != size[2]]


def test_who_follows_a_session_counts_as_it_does() -> None:
    """An engine that keeps settings goes on with the session's, and a message has the size that it had there."""
    store = MemoryStore()
    with Engine(store, {"counter": "approximate"}) as engine:
        engine.session("chat").extend([user(WORDS * 20), assistant(WORDS)])
    with Engine(store, {"counter": "o200k_base"}) as engine:
        engine.session("other").extend([user(WORDS * 20), assistant(WORDS)])
    with Engine(store, keep_settings=True) as follower:
        session = follower.session("chat")
        session.extend([user(WORDS * 20), assistant(WORDS)])
        assert session.facts("usr-1").tokens == session.facts("usr-2").tokens
        assert session.facts("usr-2").tokens != follower.session("other").facts("usr-1").tokens
