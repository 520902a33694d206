"""Measuring sets, and what is kept of it."""

from pathlib import Path

import attrs
import pytest

from memci.engine.settings.config import Active, Config
from memci.messages.tokens.message_tokens import count_message
from memci.quality.catalogue import engines
from memci.quality.conversation import (
    GOES_ON,
    NEEDS_SYSTEM_TOKENS,
    SYSTEM_TOKENS,
    ConversationSet,
    Need,
    content_words,
    joined,
    turns_of,
    with_system,
)
from memci.quality.engines import EngineSpec
from memci.quality.measuring import Cache, Row, code_hash, measure
from memci.quality.played import Asked, Calls, Faults, Needs, Played, Recall
from memci.quality.reports.windows import FIGURES, category_rows, draw, figures
from memci.quality.scoring.evidence import with_foreign
from memci.quality.timestamp import iso_time
from tests.quality.small import COUNTER, MESSAGES, SYSTEM, assistant, conversation, question, user

TALK = conversation(question("What does Tango weigh?", "nine pounds", 1), messages=MESSAGES * 2)
SET = ConversationSet(name="pets", conversations=(TALK,))


def spec(name: str) -> EngineSpec:
    return engines(Config())[name]


@pytest.mark.parametrize("name", ["memci", "leads-appended"])
def test_a_result_is_kept(tmp_path: Path, name: str) -> None:
    """What was measured is read the second time, and is the same."""
    cache = Cache(tmp_path)
    assert cache.find(TALK, spec(name), 2_000) is None
    measured = measure([SET], [spec(name)], [2_000], cache=cache)
    assert measured[0].played == cache.find(TALK, spec(name), 2_000)
    seen: list[tuple[int, int]] = []
    assert measured == measure([SET], [spec(name)], [2_000], cache=cache, advance=lambda *at: seen.append(at))
    assert [] == seen


def test_a_result_depends_on_all_that_decides_it(tmp_path: Path) -> None:
    """Another conversation, budget, engine, setting or code is another result."""
    cache = Cache(tmp_path)
    cache.put(TALK, spec("memci"), 2_000, Played())
    other = engines(Config(active=Active(min_pages=3)))["memci"]
    assert cache.find(attrs.evolve(TALK, lang="de"), spec("memci"), 2_000) is None
    assert cache.find(TALK, spec("memci"), 2_001) is None
    assert cache.find(TALK, spec("whole"), 2_000) is None
    assert cache.find(TALK, other, 2_000) is None
    assert cache.find(TALK, attrs.evolve(spec("memci"), code=("errors.py",)), 2_000) is None
    assert Played() == cache.find(TALK, spec("memci"), 2_000)


def test_a_damaged_result_is_measured_again(tmp_path: Path) -> None:
    """A file that was cut is no result."""
    cache = Cache(tmp_path)
    cache.put(TALK, spec("whole"), 2_000, Played())
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:9])
    assert cache.find(TALK, spec("whole"), 2_000) is None


def test_the_code_is_its_names_and_contents(tmp_path: Path) -> None:
    """The hash changes with a byte and with a name, and not with files that are not asked for."""
    (tmp_path / "one.py").write_text("1", encoding="utf-8")
    hashes = [code_hash(tmp_path, ["*.py"])]
    (tmp_path / "note.md").write_text("2", encoding="utf-8")
    assert hashes == [code_hash(tmp_path, ["*.py"])]
    (tmp_path / "one.py").write_text("2", encoding="utf-8")
    hashes.append(code_hash(tmp_path, ["*.py"]))
    (tmp_path / "one.py").rename(tmp_path / "two.py")
    hashes.append(code_hash(tmp_path, ["*.py"]))
    assert 3 == len(set(hashes))


@pytest.mark.slow
def test_processes_find_the_same() -> None:
    """Several processes measure what one does, and rows stand in the order of sets, budgets and engines."""
    chosen = [spec("sliding-pages"), spec("memci")]
    rows = measure([SET], chosen, [2_000, 3_000], jobs=2)
    assert rows == measure([SET], chosen, [2_000, 3_000])
    expected = [(budget, one.name) for budget in (2_000, 3_000) for one in chosen]
    assert expected == [(row.budget, row.engine) for row in rows]


def test_results_add_up() -> None:
    """Sums of two conversations are sums, and categories of either are there."""
    one = Played(calls=Calls(calls=1, tokens=5), recall={"a": Recall(questions=1, first=0.5)}, faults=Faults(lost=1))
    other = Played(calls=Calls(calls=2, tokens=7), recall={"b": Recall(questions=3, first=1.5)})
    found = Played.of([one, other])
    assert (Calls(calls=3, tokens=12), Faults(lost=1)) == (found.calls, found.faults)
    assert Recall(questions=4, first=2.0) == found.all_recall


def row(played: Played, engine: str = "memci", budget: int = 1_000) -> Row:
    return Row(set="pets", conversations=1, engine=engine, budget=budget, played=played)


def test_cost_is_reads_and_writes() -> None:
    """Of 100 tokens a call, 60 are read from the cache at 0.1 and 40 written at 1.25."""
    played = Played(calls=Calls(calls=2, tokens=200, length=1_000, prefix=600, outgrown=2, verbatim=90, room=200))
    found = figures(row(played))
    assert pytest.approx([100, 0.6, 0.1 * 60 + 1.25 * 40, 45, 0.45]) == [
        found[name] for name in ("tokens_per_call", "prefix_reuse", "cost_per_call", "verbatim_tokens", "verbatim_share")
    ]


def test_nothing_to_measure_is_no_figure() -> None:
    """Without questions, search or calls that outgrew the budget there is no figure, rather than a zero."""
    nothing = {name for name, value in figures(row(Played())).items() if value is None}
    names = {figure.name for figure in FIGURES}
    assert names - {"tokens_per_call", "prefix_reuse", "cost_per_call", *attrs.asdict(Faults())} == nothing
    assert [] == list(category_rows([row(Played())]))


def test_a_picture_has_a_panel_for_each_set() -> None:
    """An engine is a line over its budgets; one that was over a budget is hollow."""
    calls = Calls(calls=1, tokens=100, length=100, prefix=50, outgrown=1, verbatim=60)
    small, large = Played(calls=calls), Played(calls=attrs.evolve(calls, tokens=300), faults=Faults(over_budget=1))
    picture = draw([row(small), row(large, budget=2_000), attrs.evolve(row(small), set="<plants>")])
    assert 1 == picture.count("<polyline")
    assert 1 == picture.count('fill="#ffffff" stroke')
    assert ">&lt;plants&gt;<" in picture


@pytest.mark.parametrize(
    ("played", "axis"),
    [
        (Played(asked=Asked(questions=1), needs={"file": Needs(asked=1)}), "of the answers, in view when asked"),
        (Played(needs={"file": Needs(asked=1)}), "of the files that were needed next, shown"),
        (Played(), "verbatim tokens a call, once outgrown"),
    ],
)
def test_a_panel_shows_the_first_figure_that_there_is(played: Played, axis: str) -> None:
    """Answers in view, else files that are needed, else verbatim tokens."""
    assert axis in draw([row(attrs.evolve(played, calls=Calls(calls=1, tokens=9, length=9, outgrown=1)))])


def test_a_picture_of_nothing_says_so() -> None:
    """A conversation that never outgrew a budget has no point."""
    assert "no conversation outgrew a budget" in draw([row(Played())])


def test_short_system_messages_are_filled_up() -> None:
    """There are 1,000 tokens of system messages, and the evidence moves with its messages."""
    prepared = with_system(TALK, COUNTER)
    system = prepared.messages[:2]
    assert SYSTEM == system[1]
    tokens = sum(COUNTER.count(value["content"]) for value in system)
    assert SYSTEM_TOKENS <= tokens + 8 <= SYSTEM_TOKENS + 40
    assert TALK.messages[1] == prepared.messages[prepared.questions[0].evidence[0]]
    assert prepared == with_system(prepared, COUNTER)


def test_joined_conversations_keep_one_system_part() -> None:
    """The first conversation's system messages are kept, all others are not, and times stay with their messages."""
    first, second = (attrs.evolve(conversation(name=name), times=tuple("abcdefghi")) for name in "xy")
    found = joined([first, second])
    assert (*MESSAGES, *MESSAGES[1:]) == found.messages
    assert (*"abcdefghi", *"bcdefghi") == found.times
    assert "x and 1 more" == found.id


def test_questions_of_joined_conversations_keep_their_evidence() -> None:
    """The evidence moves with its messages, and what stood in system messages that are not kept is none."""
    found = joined([TALK, conversation(question("Which cat?", "Tango", 0, 2))])
    assert [(1,), (len(TALK.messages) + 1,)] == [one.evidence for one in found.questions]
    assert TALK.messages[2] == found.messages[found.questions[1].evidence[0]]


def test_answers_go_to_the_next_conversation() -> None:
    """Each conversation of a set gets what the evidence of another one holds of its answers; a single one gets none."""
    other = conversation(question("Which dog?", "forty of them", 5), messages=MESSAGES)
    assert [(("forty",),), (("nine", "pounds"),)] == [one.foreign for one in with_foreign([TALK, other])]
    assert (TALK,) == with_foreign([TALK])


def test_conversations_with_needs_go_on() -> None:
    """They have 200 tokens of system messages, and a message of the user at the end."""
    prepared = with_system(attrs.evolve(conversation(messages=MESSAGES[1:]), needs=(Need("file", "a.py"),)), COUNTER)
    assert NEEDS_SYSTEM_TOKENS <= count_message(prepared.system[0], COUNTER) < NEEDS_SYSTEM_TOKENS + 40
    assert (*MESSAGES[1:], user(GOES_ON)) == prepared.messages[1:]
    assert len(prepared.messages) == len(prepared.times)


def test_turns_begin_with_a_user_after_an_answer() -> None:
    """System messages are no turn, an answer before all users is one, and a user who writes twice stays in one."""
    said = (SYSTEM, assistant("Hello."), user("a"), user("b"), assistant("c"), user("d"))
    found = turns_of(said)
    assert ([0], [[1], [2, 3, 4], [5]]) == (found.system, found.pages)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2023-04-27", "2023-04-27T00:00:00"),
        ("2023-04-27T08:30:00+00:00", "2023-04-27T08:30:00+00:00"),
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00"),
        ("12:09 am on 13 September, 2023", "2023-09-13T00:09:00"),
        ("some day", None),
        ("1:56 pm on 8 Floreal, 2023", None),
    ],
)
def test_times_are_read(text: str, time: str | None) -> None:
    """ISO 8601 and the spoken form of conversations over months are times; anything else is none."""
    assert time == iso_time(text)


def test_content_words_leave_out_what_says_nothing() -> None:
    """Words are lower-cased, and function words are no answer."""
    assert {"cat", "weighs", "nine"} == content_words("The CAT weighs nine, and it is!")
