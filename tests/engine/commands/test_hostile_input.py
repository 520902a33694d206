"""Messages that nobody should send: all are stored whole or refused whole."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.stores.memory import MemoryStore
from memci.errors import InvalidMessageError
from memci.messages import codec
from tests.engine.sessions import open_session, talk, turn
from tests.engine.wire import Value, assert_paired, assistant, calling, result, user
from tests.messages.strategies import messages, texts


def deep(levels: int) -> Any:  # noqa: ANN401 (a JSON value)
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        {"role": "user", "content": "a", "x": math.nan},
        {"role": "user", "content": "a", "x": -math.inf},
        {"role": "user", "content": "a", "x": deep(500)},
        {"role": "user", "content": "a", "x": {1: 2}},
        {"role": "user", "content": "a", "x": (1, 2)},
        {"role": "user", "content": b"a"},
        {"role": "user", "content": "a", "x": 10**5_000},
        {},
        None,
    ],
    ids=["nan", "inf", "deep", "key", "tuple", "bytes", "endless", "empty", "none"],
)
def test_what_is_no_message_is_refused(value: Any) -> None:  # noqa: ANN401 (anything)
    """A refused message leaves no trace, and the session goes on."""
    session = open_session()
    talk(session, 1)
    seq = session.seq
    with pytest.raises(InvalidMessageError):
        session.append(value)
    assert (seq, turn(1)) == (session.seq, list(session.messages()))


@pytest.mark.parametrize(
    "value",
    [
        user(""),
        user("\ud800 \udfff"),
        user("\0\x1b[2J\u202e"),
        user("x" * 1_000_000),
        {"role": "user", "content": []},
        {"role": "user", "content": "a", "n": 2**64, "m": -(10**300), "f": 1e308, "z": -0.0},
        {"role": "user", "content": "a", "x": deep(190)},
        {"role": "user", "content": "a", "k" * 10_000: "v"},
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "image_url", "image_url": {"url": "data:,"}}]},
    ],
    ids=["empty", "surrogates", "controls", "megabyte", "no-parts", "numbers", "deep", "long-key", "image"],
)
def test_unusual_messages_survive_everything(value: Value) -> None:
    """A message comes back equal from view, archive, recall, snapshot, replay and search, whatever it holds."""
    store = MemoryStore()
    session = open_session(store, active={"min_pages": 1}, snapshot_every=2)
    session.extend([value, assistant("a"), *turn(2), value, assistant("b"), *turn(4)])
    expected = list(session.messages())
    assert repr(value) == repr(expected[0]) == repr(expected[4])
    session.fold("all")
    assert repr(value) == repr(session.recall(1).messages[0])
    session.window()
    session.search(str(value["content"])[:200])
    session.close()
    session = open_session(store, active={"min_pages": 1}, snapshot_every=2)
    assert repr(expected) == repr(list(session.messages()))
    assert () == session.verify().problems


def test_messages_are_the_sessions_own() -> None:
    """What the caller does to a dict after appending it, or to one that came out, does not reach the session."""
    session = open_session()
    value: Value = {"role": "user", "content": [{"type": "text", "text": "before"}]}
    entry = session.append(value)
    value["content"][0]["text"] = "after"
    entry.message["content"].clear()
    session.page(1).messages[0]["content"].clear()
    for given_out in session.messages():
        given_out.clear()
    assert (
        [{"role": "user", "content": [{"type": "text", "text": "before"}]}]
        == list(session.messages())
        == session.window().messages
    )


@pytest.mark.slow
@given(st.lists(messages, max_size=12), st.sampled_from([500, 2_000, 100_000]))
def test_any_conversation_comes_back(values: list[Value], budget: int) -> None:
    """Whatever messages come in, those that are taken come back equal, in windows that fit and pair calls with results."""
    session = open_session(budget={"window": budget, "reserve": 0}, active={"min_pages": 1, "page_tokens": 100})
    taken = []
    for value in values:
        try:
            session.append(value)
        except InvalidMessageError:
            assert "tool" == value["role"]
            continue
        taken.append(value)
    session.fold("all")
    assert sorted(map(repr, taken)) == sorted(map(repr, session.messages()))
    assert_paired(session.window(1_000_000).messages)
    assert () == session.verify().problems


@given(texts.filter(bool), texts, texts)
def test_any_call_id_is_one(call_id: str, arguments: str, text: str) -> None:
    """A call is answered by its id, whatever text that is, also after the user went on."""
    session = open_session(active={"min_pages": 1})
    session.extend([user("a"), calling(call_id, arguments=arguments), user("b")])
    session.append(result(call_id, text))
    assert_paired(session.window().messages)
    assert [result(call_id, text)] == [value for value in session.messages() if value["role"] == "tool"]
    with pytest.raises(InvalidMessageError):
        session.append(result(call_id, text))


@pytest.mark.parametrize("padding", ["x", "é", "\ud800"], ids=["ascii", "utf-8", "surrogate"])
def test_a_message_has_a_largest_size(padding: str) -> None:
    """A message of the largest size is taken, and one byte more is refused wherever one is given; nothing is written of it."""
    value = {"role": "system", "content": padding * 50}
    store = MemoryStore()
    most = len(codec.encode(value))
    open_session(store, limits={"message_bytes": most}).set_system([value])
    session = open_session(store, limits={"message_bytes": most - 1})
    seq = session.seq
    for call in (
        lambda: session.append(value),
        lambda: session.extend([user("a"), value]),
        lambda: session.set_system([value]),
    ):
        with pytest.raises(InvalidMessageError, match=f"{most} bytes"):
            call()
    assert seq == session.seq
    assert value == next(session.messages())
    session.append(user("and on"))


def test_a_largest_size_of_its_own_leaves_a_session_as_it_is() -> None:
    """What a process refuses for its size is no setting of the session: its journal does not speak of it."""
    store = MemoryStore()
    talk(open_session(store), 1)
    session = open_session(store, limits={"message_bytes": 100})
    seq = session.seq
    session.append(user("and on"))
    assert seq + 1 == session.seq
