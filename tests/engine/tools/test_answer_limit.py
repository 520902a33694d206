"""Answers of the model's tools stay whole in the window, whatever the pages hold."""

import base64
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memci.engine.session import Session
from memci.messages.tokens.counter import get_counter
from tests.engine.sessions import open_session, talk
from tests.engine.wire import assistant, calling, user

COUNTER = get_counter("o200k_base")
CALL_ID = "call_0123456789abcdefghijklmn"

DENSE = {
    "Chinese": "北京西站附近的酒店价格从二百到八百元不等，距离天安门大约五公里。" * 300,
    "emoji": "🦄🧬🪐🥑🏳🧜🛸🪗🫠🫀" * 900,
    "newlines": "\n" * 9_000,
    "escapes": '"\\"\\\\\r\n' * 1_500,
    "base64": base64.b64encode(bytes(number * number % 251 for number in range(6_600))).decode(),
    "lone surrogates": "北京\ud83d西站" * 1_800,
    "delete characters": "\x7f" * 9_000,
    "one word": "no" * 4_500,
}
"""Texts of about 9,000 characters."""


def answered(session: Session, name: str, **arguments: object) -> dict[str, Any]:
    """Return the message that answers a native call."""
    call = {"id": CALL_ID, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return session.handle_tool_call(call)


def ranges(session: Session, address: str, limit: int = 8_000) -> list[str]:
    found, start = [], 0
    while start >= 0:
        reading = json.loads(answered(session, "read_page", index=address, start=start, limit=limit)["content"])
        found.append(reading["text"])
        start = reading["next"]
    return found


@pytest.mark.parametrize("text", DENSE.values(), ids=DENSE.keys())
@pytest.mark.parametrize("limit", [4_000, 8_000])
def test_each_range_reaches_the_model(text: str, limit: int) -> None:
    """Every range that is read stands word for word in the next window, at a budget of 4,000; together they are the text."""
    session = open_session(budget={"window": 4_000, "reserve": 0})
    session.extend([user("hi"), assistant("hello"), user(text), assistant("noted"), user("read it again")])
    session.fold("all")
    whole, start = "", 0
    while start >= 0:
        answer = answered(session, "read_page", index="usr-2/1", start=start, limit=limit)
        session.extend([calling(CALL_ID), answer])
        assert answer in session.window().messages
        reading = json.loads(answer["content"])
        whole, start = whole + reading["text"], reading["next"]
    assert text == json.loads(whole)["content"]


@pytest.mark.parametrize("text", DENSE.values(), ids=DENSE.keys())
def test_an_answer_has_its_share_in_every_form(text: str) -> None:
    """A range takes at most a quarter of the budget, as a tool message and as a document of ATTP."""
    session = open_session(budget={"window": 8_000, "reserve": 0})
    session.append(user(text))
    entry = session.extend([calling(CALL_ID), answered(session, "read_page", index="usr-1/1", limit=8_000)])[1]
    result = session.attp("[tool_call]\ncode = '''\n__result__ = read_page(\"usr-1/1\", limit=8000)\n'''")
    assert result.error is None
    assert COUNTER.count(result.to_toml()) < 2_000
    assert entry.node.tokens < 2_000
    session.close()


@pytest.mark.slow
@given(st.text(max_size=60), st.integers(min_value=1, max_value=4_000))
@example("\ud83d\ude00🦄", 300)
def test_ranges_are_exact(piece: str, times: int) -> None:
    """Whatever a page holds, its ranges are the page, and each has one character at least."""
    session = open_session(budget={"window": 800, "reserve": 0})
    session.append(user((piece * times)[:6_000]))
    found = ranges(session, "usr-1")
    assert session.page(1).messages == json.loads("".join(found))
    assert all(found)


def test_plain_text_is_read_in_ranges_as_long_as_asked_for() -> None:
    """Where the window has room, the limit in characters decides."""
    session = open_session()
    session.append(user("the quick brown fox " * 500))
    assert [4_000, 4_000] == [len(part) for part in ranges(session, "usr-1/1", limit=4_000)[:2]]


def test_an_answer_follows_the_last_window() -> None:
    """A window of another budget than the configured one sets how much the next answer may take: a quarter."""
    session = open_session()
    session.append(user(DENSE["Chinese"]))
    before = ranges(session, "usr-1/1")
    session.window(budget=2_000)
    after = ranges(session, "usr-1/1")
    assert "".join(before) == "".join(after)
    assert max(map(COUNTER.count, after)) <= 500 < max(map(COUNTER.count, before))


def test_calibrated_counts_leave_less_room() -> None:
    """Where the provider counts twice as much, an answer holds half."""
    session = open_session(budget={"window": 4_000, "reserve": 0})
    session.append(user(DENSE["Chinese"]))
    before = max(map(COUNTER.count, ranges(session, "usr-1/1")))
    session.report_usage(prompt_tokens=2 * session.window().tokens)
    assert before / 2 > max(map(COUNTER.count, ranges(session, "usr-1/1")))


def test_a_long_list_is_read_in_parts() -> None:
    """A part of the list stays within a quarter of the budget, and the parts are the list."""
    session = open_session(budget={"window": 2_000, "reserve": 0})
    talk(session, 60)
    rows: list[str] = []
    start = 0
    while start >= 0:
        message = answered(session, "list_pages", start=start, limit=50)
        assert COUNTER.count(message["content"]) <= 500
        part = json.loads(message["content"])
        rows, start = rows + [row["index"] for row in part["pages"]], part["next"]
    assert [facts.index for facts in session.pages()] == rows


def test_a_search_returns_the_best_that_fit() -> None:
    """Of fifty hits in Chinese as many of the first come as fit a quarter of the budget."""
    session = open_session(budget={"window": 4_000, "reserve": 0}, active={"min_pages": 1})
    for number in range(60):
        session.extend([user(f"北京酒店 {number}"), assistant(f"{number} " + "北京的酒店价格二百元，距离天安门五公里。" * 12)])
    session.fold("all")
    message = answered(session, "search_pages", query="北京酒店价格", limit=50)
    assert COUNTER.count(message["content"]) <= 1_000
    found = [hit["index"] for hit in json.loads(message["content"])]
    assert len(found) > 1
    assert [hit.index for hit in session.search("北京酒店价格", limit=50)][: len(found)] == found


def test_a_row_that_is_too_large_alone_is_cut() -> None:
    """In a tiny window one row comes nevertheless, with the beginning of its text."""
    session = open_session(budget={"window": 800, "reserve": 0})
    name = "🦄🧬🪐🥑🏳🧜🛸🪗" * 30
    session.begin_page(name)
    session.append(user("hi"))
    message = answered(session, "list_pages")
    (row,) = json.loads(message["content"])["pages"]
    assert name.startswith(row["title"])
    assert 0 < COUNTER.count(row["title"]) < COUNTER.count(message["content"]) <= 256
