"""Measuring calls."""

from typing import Any

import pytest

from memci.messages.formats import format as formats
from memci.messages.tokens.counter import ApproximateCounter
from memci.messages.tokens.message_tokens import REPLY_TOKENS, count_message
from memci.quality.prompt_meter import PromptMeter
from tests.word_counter import WordCounter

USER = {"role": "user", "content": "one two three"}
ANSWER = {"role": "assistant", "content": "four five"}


def words(text: str) -> list[int]:
    """Cut text at its blanks; the same word is the same token."""
    return [hash(word) for word in text.split()]


def meter() -> PromptMeter:
    return PromptMeter(WordCounter(), formats.get("openai"), 1_000, words)


def calling(*ids: str) -> dict[str, Any]:
    calls = [{"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for call_id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "42"}


def test_tokens_are_the_counters() -> None:
    """A call's size is that of its messages by the counter, and the start of the reply."""
    expected = count_message(USER, WordCounter()) + count_message(ANSWER, WordCounter()) + REPLY_TOKENS
    assert expected == meter().call([USER, ANSWER]).tokens


def test_estimates_keep_their_margin() -> None:
    """A counter that estimates counts with its margin, rounded up."""
    counter = ApproximateCounter()
    counted = (count_message(USER, counter) + REPLY_TOKENS) * counter.margin
    tokens = PromptMeter(counter, formats.get("openai"), 1_000, words).call([USER]).tokens
    assert counted <= tokens < counted + 1


def test_first_call_reuses_nothing() -> None:
    """Before the first call there is nothing to share with."""
    assert 0 == meter().call([USER]).prefix


def test_prefix_of_whole_messages() -> None:
    """Messages that stand first in both calls are shared whole: role and words."""
    measured = meter()
    measured.call([USER])
    assert 4 == measured.call([USER, ANSWER]).prefix


def test_prefix_ends_within_a_message() -> None:
    """A message that only grew at its end is shared as far as it was, and nothing behind it."""
    measured = meter()
    measured.call([{"role": "user", "content": "one two"}, ANSWER])
    prompt = measured.call([{"role": "user", "content": "one two three"}, ANSWER])
    assert (3, 7) == (prompt.prefix, prompt.length)


def test_prefix_is_compared_with_the_call_before() -> None:
    """Only the call before counts: what an older one held was dropped."""
    measured = meter()
    measured.call([USER, ANSWER])
    measured.call([ANSWER])
    assert 0 == measured.call([USER, ANSWER]).prefix


def test_long_text_is_measured() -> None:
    """A text that is longer than what is encoded at once has all its tokens."""
    assert 30_001 == meter().call([{"role": "user", "content": "x " * 30_000}]).length


@pytest.mark.parametrize(
    ("messages", "broken"),
    [
        ([USER, calling("a"), result("a"), ANSWER], 0),
        ([USER, calling("a", "b"), result("b"), result("a")], 0),
        ([calling("a"), result("a"), calling("a"), result("a")], 0),
        ([USER, calling("a")], 1),
        ([calling("a", "b"), result("a"), USER], 1),
        ([calling("a"), USER, result("a")], 2),
        ([result("a")], 1),
        ([calling("a"), result("a"), result("a")], 1),
        ([calling("a"), calling("b"), result("a")], 3),
    ],
)
def test_pairs(messages: list[dict[str, Any]], broken: int) -> None:
    """Each call without a result directly behind it, and each result without a call before it, is a broken pair."""
    assert broken == meter().call(messages).broken_pairs
