"""Arguments that nobody should give: each is a typed error, and the session goes on."""

from collections.abc import Callable
from typing import Any

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.errors import ConfigError, InvalidIdError, InvalidMessageError, MemciError, PermissionDeniedError
from tests.engine.sessions import open_session, talk
from tests.engine.wire import user

HUGE = 10**5_000


@pytest.mark.parametrize(
    "call",
    [
        lambda session: session.search("words", limit=2**62),
        lambda session: session.search("words", limit=HUGE),
        lambda session: session.search(5),
        lambda session: session.search("words", turns=3),
        lambda session: session.search("words", turns=(1, 2, 3)),
        lambda session: session.search("words", roles=5),
        lambda session: session.search("words", roles=[None]),
        lambda session: session.search("words", states="somewhere"),
        lambda session: session.search("words", states=[5]),
        lambda session: session.report_usage(prompt_tokens=10**400),
        lambda session: session.append(user("a"), at="0001-01-01T00:00:00+05:00"),
        lambda session: session.append(user("a"), at=5),
        lambda session: session.append(user("a"), key=""),
        lambda session: session.append(user("a"), on_conflict="shrug"),
        lambda session: session.window(budget=HUGE),
        lambda session: session.window(tools=5),
        lambda session: session.window(tools="abc"),
        lambda session: session.window(tools={"a": 1}),
        lambda session: session.window(tools=[5]),
        lambda session: session.window(tools=[{"a": HUGE}]),
        lambda session: session.page(HUGE),
        lambda session: session.page(-HUGE),
        lambda session: session.page(1.5),
        lambda session: session.render(at=HUGE),
        lambda session: session.fold(1.5),
        lambda session: session.fold(object()),
        lambda session: session.extend(5),
        lambda session: session.extend({"role": "user", "content": "a"}),
        lambda session: session.set_system(None),
        lambda session: session.rewind(7),
        lambda session: session.begin_page(5),
        lambda session: session.observe(5),
        lambda session: session.pages("somewhere"),
    ],
)
def test_wrong_arguments_are_typed_errors(call: Callable[[Any], object]) -> None:
    """Whatever is wrong with an argument, the error is one of memci's, and nothing was written."""
    session = open_session()
    talk(session, 2)
    session.window()
    seq = session.seq
    with pytest.raises(MemciError):
        call(session)
    assert seq == session.seq
    session.append(user("and on"))


@pytest.mark.parametrize("value", [[], None, 5, "", "\ud800"])
def test_ids_are_text(value: Any) -> None:  # noqa: ANN401 (anything)
    """A session id or tenant that is no text of one character or more is refused, wherever it is given."""
    engine = Engine("memory:")
    for call in (engine.session, engine.delete, lambda tenant: Engine("memory:", tenant=tenant)):
        with pytest.raises(InvalidIdError):
            call(value)


@pytest.mark.parametrize("store", [5, "nowhere://x", object()])
def test_a_store_is_a_url_or_a_store(store: Any) -> None:  # noqa: ANN401 (anything)
    """An engine says at once that it was given no store."""
    with pytest.raises(ConfigError):
        Engine(store)


def test_reading_deletes_nothing() -> None:
    """An engine that only reads refuses to delete a session."""
    store = MemoryStore()
    talk(open_session(store), 1)
    with pytest.raises(PermissionDeniedError):
        Engine(store, read_only=True).delete("chat")
    assert ["chat"] == list(Engine(store).sessions())


def test_a_pinned_page_is_not_evicted_by_command() -> None:
    """Evicting a pinned page is refused until it is unpinned."""
    session = open_session()
    talk(session, 3)
    session.fold("all")
    session.pin(1)
    with pytest.raises(PermissionDeniedError):
        session.evict(1)
    session.unpin(1)
    session.evict(1)
    assert "evicted" == session.pages()[0].state


@pytest.mark.parametrize(
    "value",
    [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "1"}] * 2},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, "content": "1"} for i in ("x", "zzz")]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, "content": "1"} for i in ("x", "y")]},
        {"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "1"}]},
        {"role": "system", "content": [{"type": "tool_use", "id": "s", "name": "look", "input": {}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "s", "name": "look", "input": {}}] * 2},
    ],
    ids=["twice", "unknown", "two messages", "assistant answers", "system calls", "call twice"],
)
@pytest.mark.parametrize("archived", [False, True])
def test_results_that_fit_no_call_are_refused(value: dict[str, Any], *, archived: bool) -> None:
    """A message whose calls or results cannot be paired is refused before anything is written, in view or archived."""
    store = MemoryStore()
    session = open_session(store, active={"min_pages": 1})
    session.append(user("go"))
    for call_id in ("x", "y"):
        session.append({"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": "look", "input": {}}]})
    talk(session, 4)
    if archived:
        session.window(200)
    seq = session.seq
    with pytest.raises(InvalidMessageError):
        session.append(value)
    assert seq == session.seq
    session.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": [5, ["a"], "1"]}]})
    session.fold("all")
    assert () == session.verify().problems
    assert session.contents == open_session(store).contents
