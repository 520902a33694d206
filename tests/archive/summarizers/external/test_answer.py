"""What anybody's program wrote of a page, as entries and rows of the contents page take it."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from memci.archive.summarizers.external.answer import as_summary
from memci.archive.summarizers.external.calling import summarize
from memci.archive.summarizers.summary import Summary, name_of
from memci.errors import SummaryError, SummaryTimeoutError
from memci.messages.message import Message


def test_a_text_has_its_title_in_the_first_line() -> None:
    """The other lines are its lines; bullets, blank lines and controls go."""
    summary = as_summary("\n- Refund of $12.50\n\n* order\tcancelled\x07\n")
    assert ("Refund of $12.50", ("order cancelled",)) == (summary.title, summary.lines)
    assert ("", ()) == (as_summary(" \n").title, as_summary("").lines)


def test_its_row_is_made_of_its_words() -> None:
    """Literal values stay whole and are worth most, words that say nothing least; a text without spaces is cut."""
    words = as_summary("Refund of $129.50 on 5 March 2024").words
    assert ["Refund", "of", "$129.50", "on", "5 March 2024"] == [text for text, *_ in words]
    assert words[2][1] > words[0][1] > words[1][1]
    assert "推荐王府井大饭店" == "".join(lead + text for text, _, lead in as_summary("推荐王府井大饭店").words)
    assert 1 < len(as_summary("推荐王府井大饭店").words)


def test_of_a_summary_only_what_is_checked_is_taken() -> None:
    """Its row is made of its texts, whatever words it brings; of its usage numbers are taken that are known and can be."""
    usage: Any = {"prompt_tokens": 7, "price": 0.5, "completion_tokens": float("nan"), "note": 1, "v": "secret"}
    summary = Summary(
        title="a\nb", lines=("", "c"), words=(("REFUND-99999", 9.0, ""),), keywords=("k",), importance=2.0, usage=usage
    )
    shown = as_summary(summary)
    assert ("a b", ("c",), (), 0.0) == (shown.title, shown.lines, shown.keywords, shown.importance)
    assert ["a", "b", "c"] == [text for text, *_ in shown.words]
    assert {"prompt_tokens": 7, "price": 0.5} == shown.usage


WRONG: Any = (
    Summary(title=cast("Any", 5)),
    Summary(title="a", lines=cast("Any", "abc")),
    Summary(title="a", lines=cast("Any", (3,))),
)


@pytest.mark.parametrize("answer", [None, 3, ["text"], b"text", "x" * 20_001, *WRONG])
def test_anything_else_is_none(answer: object) -> None:
    """It says what was to be returned."""
    with pytest.raises(SummaryError, match=r"a Summary or a str|texts, and lines|characters"):
        as_summary(answer)


class Async:
    """A summariser that is awaited."""

    name = "async"

    def __init__(self, pause_s: float) -> None:
        self.pause_s = pause_s

    async def summarize(self, _messages: Sequence[Message], *, max_tokens: int) -> str:
        await asyncio.sleep(self.pause_s)
        return f"room of {max_tokens}"


def test_an_asynchronous_one_is_awaited_and_cancelled() -> None:
    """It is waited for, for so long."""
    assert "room of 24" == summarize(Async(0), (), 24, 60).title
    with pytest.raises(SummaryTimeoutError):
        summarize(Async(600), (), 24, 0.01)


def test_its_own_timeouts_are_not_memcis() -> None:
    """What it raises when a request of its own took too long is raised as it is."""

    class Slow:
        async def summarize(self, _messages: Sequence[Message], *, max_tokens: int) -> str:
            message = f"no room of {max_tokens}"
            raise TimeoutError(message)

    with pytest.raises(TimeoutError, match="no room of 24") as raised:
        summarize(Slow(), (), 24, 60)
    assert not isinstance(raised.value, SummaryTimeoutError)


def test_it_has_a_name() -> None:
    """Its own, or that of its class."""
    assert "async" == name_of(Async(0))

    class Nameless:
        def summarize(self, _messages: Sequence[Message], *, max_tokens: int) -> str:
            return str(max_tokens)

    assert "Nameless" == name_of(Nameless())
