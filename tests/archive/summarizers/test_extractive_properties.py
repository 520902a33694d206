"""Tests of what the extractive summariser promises for any page."""

import json
import unicodedata
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.summarizers import passage
from memci.archive.summarizers.entries import flat
from memci.archive.summarizers.extractive import ExtractiveSummarizer
from memci.archive.summarizers.literals import LiteralKind
from memci.archive.summarizers.passage import Atoms
from memci.archive.summarizers.selection import JOIN
from memci.archive.summarizers.summary import Summary
from memci.archive.summarizers.words import estimate, words
from memci.messages.formats.openai import facts

ENGLISH = (
    "I moved from Sweden four years ago, and my grandmother's necklace came with me. The adoption agency on Harrow Road called on"
    " May 20th about case HX-2210; they want $250 before Friday. Melanie suggested the pottery class, because clay calms her. "
)
CHINESE = (
    "推荐您去北京天伦王朝酒店，评分4.5分，地址是北京东城区王府井大街50号，电话010-66550888。附近有护国寺小吃店和姚记炒肝店。"
)
CODE = "def charge(user: str) -> Decimal:\n    total = amounts[user]\n    return total * RATE  # see billing.py:77\n"
TEXTS = st.one_of(
    st.text(max_size=120),
    st.text(alphabet=st.sampled_from('a1 \n\u2028\x85\x00\x1b\u202e\ufeff\ud800[]{}":,usr-好。元'), max_size=60),
    st.lists(st.sampled_from([ENGLISH, CHINESE, CODE, '{"id": "SI5UKW", "price": 12.50}', "ok", "\r\n"]), max_size=4).map(
        "".join
    ),
)


def messages(parts: list[tuple[str, str]]) -> list[dict[str, Any]]:
    page: list[dict[str, Any]] = []
    for number, (role, text) in enumerate(parts):
        if role == "tool":
            call = {"id": f"c{number}", "type": "function", "function": {"name": f"tool{text[:4]}", "arguments": text}}
            page.append({"role": "assistant", "content": None, "tool_calls": [call]})
            page.append({"role": "tool", "tool_call_id": f"c{number}", "content": text})
        else:
            page.append({"role": role, "content": text})
    return page


PAGES = st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool", "system"]), TEXTS), max_size=6).map(messages)


def summarize(page: list[dict[str, Any]], max_tokens: int) -> Summary:
    return ExtractiveSummarizer().summarize([facts(message) for message in page], max_tokens=max_tokens)


def spans(text: str, units: tuple[tuple[int, int, LiteralKind], ...] = ()) -> list[tuple[int, int]]:
    """Return start and end of the atoms of a text, in order and apart: what is cut is all of the text, and nothing twice."""
    pieces = Atoms().cut(text, 0, len(text), units, "")
    assert text == "".join(pieces)
    bounds = list(accumulate(map(len, pieces), initial=0))
    return list(zip(bounds[1:-1:2], bounds[2::2], strict=True))


def texts_of(summary: Summary) -> Iterator[str]:
    yield from (summary.title, summary.summary, summary.outcome)
    yield from (*summary.lines, *summary.keywords, *summary.entities, *summary.state_changes)


@given(PAGES, st.integers(16, 200))
def test_every_text_is_one_plain_line(page: list[dict[str, Any]], max_tokens: int) -> None:
    """No text of a summary holds a line break, a control character, half a character or a mark that hides or reorders."""
    for text in texts_of(summarize(page, max_tokens)):
        assert 1 >= len(text.splitlines())
        assert not any(
            unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in "\u202e\ufeff" for character in text
        )


@given(PAGES, st.integers(16, 200))
def test_every_line_begins_with_its_role(page: list[dict[str, Any]], max_tokens: int) -> None:
    """A line begins with a role, so that nothing in it can pass for the index of a page."""
    roles = ("user: ", "assistant: ", "assistant → ", "tool: ", "tool ", "system: ")
    assert all(line.startswith(roles) for line in summarize(page, max_tokens).lines)


@given(PAGES, st.integers(16, 200))
def test_lines_keep_to_their_room(page: list[dict[str, Any]], max_tokens: int) -> None:
    """By the summariser's own estimate, the lines with their breaks are at most 15% over their room."""
    lines = summarize(page, max_tokens).lines
    assert 1.15 * max_tokens + 3 >= sum(estimate(line.replace("…", "")) + line.count("…") + 1 for line in lines)


@given(PAGES, st.integers(16, 200))
def test_the_same_page_gives_the_same_summary(page: list[dict[str, Any]], max_tokens: int) -> None:
    """Two summarisers agree on a page to the last character."""
    assert summarize(page, max_tokens) == summarize(page, max_tokens)


@pytest.mark.parametrize("text", [ENGLISH * 6, CHINESE * 6, CODE * 12])
@pytest.mark.parametrize("max_tokens", [16, 24, 48, 96, 400])
def test_large_pages_use_their_room(text: str, max_tokens: int) -> None:
    """A page with more to say than its room fills at least half of it, and no more than all."""
    distinct = "".join(f"{text} Nummer{number} " for number in range(4))
    lines = summarize([{"role": "user", "content": distinct}, {"role": "assistant", "content": distinct[::-1]}], max_tokens).lines
    used = sum(estimate(line.replace("…", "")) + line.count("…") + 1 for line in lines)
    assert 0.5 * max_tokens <= used <= 1.15 * max_tokens


@pytest.mark.parametrize("text", [ENGLISH, CHINESE, CODE])
@pytest.mark.parametrize("max_tokens", [16, 32, 64])
def test_lines_are_runs_of_the_source(text: str, max_tokens: int) -> None:
    """Every word of a line is a word of the source, in its order within each run, and most stand in runs of two and more."""
    source = words(text)
    pairs = set(pairwise(source))
    in_runs = alone = 0
    for line in summarize([{"role": "user", "content": text}], max_tokens).lines:
        for run in line.removeprefix("user: ").split(JOIN):
            said = words(run)
            assert set(said) <= set(source)
            assert all(pair in pairs for pair in pairwise(said))
            in_runs, alone = (in_runs + len(said), alone) if len(said) > 1 else (in_runs, alone + len(said))
    assert in_runs >= alone


@given(st.lists(st.tuples(st.text(max_size=8), st.one_of(st.text(max_size=12), st.integers())), max_size=6))
def test_pairs_of_structured_data_stay_whole(items: list[tuple[str, str | int]]) -> None:
    """No atom of a JSON object reaches over the end of a key with its value, and none begins before one."""
    written = flat(json.dumps(dict(items), ensure_ascii=False))
    found = spans(written.text, written.units)
    for start, end, _ in written.units:
        inside = [(first, last) for first, last in found if first < end and start < last]
        assert inside in ([], [(start, end)])


@pytest.mark.parametrize("text", [ENGLISH, CHINESE, CODE])
def test_a_page_that_fits_its_room_says_all_its_words(text: str) -> None:
    """Where the room is larger than the page, the lines hold every word of it."""
    assert set(words(text)) == set(words(" ".join(summarize([{"role": "system", "content": text}], 400).lines))) - {"system"}


@given(TEXTS)
def test_atoms_are_in_order_and_do_not_overlap(text: str) -> None:
    """The atoms of a text are stretches of it, in order and apart from each other."""
    assert all(start < end for start, end in spans(text))


def test_a_huge_text_is_read_at_both_ends_only() -> None:
    """Beyond a bound, a text ten times as long gives no more atoms to weigh."""
    text = ENGLISH * 300
    assert 1.1 * len(Atoms().add(text)) >= len(Atoms().add(text * 10))
    assert 2 * passage.READ_CHARACTERS < len(text)


@pytest.mark.parametrize("unit", [ENGLISH, CHINESE, CODE, '{"id": 1},', "a", "一", '"', "((", "1-", "《", "a_b "])
def test_atoms_grow_no_faster_than_the_text(unit: str) -> None:
    """Whatever the text repeats, ten times as much of it gives at most ten times as many atoms, and a few."""
    assert 10 * len(Atoms().add(unit * 30)) + 10 >= len(Atoms().add(unit * 300))
