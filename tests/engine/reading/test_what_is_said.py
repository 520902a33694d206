"""Whatever memci writes of the past, in a window, a recap or a handoff, says what was said: in any script, no less of it."""

import random
import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memci.archive.stores.memory import MemoryStore
from memci.archive.summarizers import whole as whole_texts
from memci.engine.engine import Engine
from memci.quality.scoring.truth import cut_numbers, inverted
from tests.archive.summarizers.test_whole import NUMBERS, PLAIN, RULES
from tests.engine.sessions import config_of
from tests.engine.wire import assistant, user

OWN = re.compile(
    r"\[?\b(?:usr|cp|note)-\d+(?:\.\.\d+)?(?:/\d+)?\]?|·[^\n]*|^\d+ |\b(?:turn|event|After event) \d+|\d+ (?:messages|pages|of)\b"
    r"|\d{4}-\d\d-\d\d|^\[rules\].*|(?:Contents|Directory) of [^\n]*"
)
"""Indexes, sizes and dates, which are no words of the conversation."""

CUT = re.compile(r'"[^".!?。！？]*…"')
"""A sentence that is longer than its room: that it is cut can be seen."""

TURN = st.tuples(*[st.lists(st.sampled_from([*RULES, *PLAIN, *NUMBERS]), min_size=1, max_size=4, unique=True)] * 2)


SETTINGS = config_of(
    budget={"window": 900, "reserve": 0},
    active={"min_pages": 1},
    recall={"passages_tokens": 200, "max_share": 0.4},
    summary={"continuation": True},
)


def lines_of(turns: list[tuple[list[str], list[str]]]) -> Iterator[str]:
    """Yield all lines of a session with these turns, of which most folded, and of a handoff, that are no messages of it."""
    with Engine(MemoryStore(), SETTINGS) as engine, engine.session("chat") as session, engine.session("other") as other:
        for asked, answered in turns:
            session.extend([user(". ".join(asked)), assistant(". ".join(answered))])
        session.fold("all")
        session.append(user(turns[0][1][0]))
        said = list(session.messages())
        texts = [value["content"] for value in session.window().messages if value not in said]
        texts += [session.recap().text, session.contents.render()]
        texts += [value["content"] for value in other.page(session.handoff(other)).messages]
    yield from (CUT.sub("", OWN.sub("", line)) for line in "\n".join(texts).splitlines())


def faults_of(turns: list[tuple[list[str], list[str]]]) -> list[str]:
    """Return what these lines say that the turns do not."""
    said = "\n".join(". ".join(part) for turn in turns for part in turn)
    lines = list(lines_of(turns))
    assert len(lines) > 10
    return [fault for line in lines for fault in (*cut_numbers(said, line), *inverted(said, line))]


@settings(max_examples=40)
@given(st.lists(TURN, min_size=4, max_size=8))
def test_no_line_says_what_was_not_said(turns: list[tuple[list[str], list[str]]]) -> None:
    """Rows, entries, working set, continuation, quotations, recap and handoff cut no number, and no clause from its negation."""
    assert [] == faults_of(turns)


def test_the_yardstick_sees_what_it_is_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where clauses and groups of digits are not kept together, as they once were not, both kinds of fault are found."""
    for finder in ("_numbers", "_names", "limited_clauses"):
        monkeypatch.setattr(whole_texts, finder, lambda _: [])
    chance = random.Random(1)  # noqa: S311 (chance, not secrets)
    turns = [[(chance.sample([*RULES, *NUMBERS], 4), chance.sample([*RULES, *NUMBERS], 4)) for _ in range(6)] for _ in range(5)]
    assert all(map(faults_of, turns))
