"""A model answers questions from windows and rows: what it is asked, how its answers are scored, and what is kept."""

from pathlib import Path
from typing import Any

import pytest

from memci.engine.settings.config import Budget, Config
from memci.errors import ModelError
from memci.quality.catalogue import memci_spec
from memci.quality.conversation import Conversation, ConversationSet
from memci.quality.scoring.reading import ROW, WINDOW, KeptAnswers, Reading, ReadRow, abstains, read, token_f1
from tests.quality.small import assistant, conversation, question, user

PETS = [(f"pet{number}", f"{number} pounds", f"on street {number}") for number in range(40)]
TALK = [
    value
    for name, weight, place in PETS
    for value in (user(f"My pet {name} weighs {weight} and lives {place}."), assistant(f"Noted, {name}: " + "good to know. " * 8))
]


def asked_talk(**more: Any) -> Conversation:  # noqa: ANN401 (any field)
    """Return a conversation whose first pages have folded at its end, with a question about one of them and others."""
    questions = (
        question("What does pet2 weigh?", "2 pounds", 4),
        question("What does pet39 weigh?", "39 pounds", 78),
        question("What does the parrot eat?", "", 0, category="adversarial"),
    )
    return conversation(*questions, messages=TALK, **more)


def readings(ask: Any, most_questions: int = 40) -> dict[str, Reading]:  # noqa: ANN401 (a function of messages)
    """Return what was read, by source."""
    chosen = ConversationSet(name="pets", conversations=(asked_talk(),))
    spec = memci_spec(Config(budget=Budget()))
    found = read([chosen], [spec], [1_000], ask, most_questions=most_questions)
    assert all(("pets", "memci", 1_000) == (row.set, row.engine, row.budget) for row in found)
    return {row.source: row.reading for row in found}


def test_a_question_comes_after_nothing_but_the_window_or_the_row() -> None:
    """The window is sent as it is, for a cache to hold; the row alone, where all pages of the evidence have folded."""
    requests = list[list[dict[str, Any]]]()

    def ask(messages: list[dict[str, Any]]) -> str:
        requests.append(messages)
        return "unknown"

    found = readings(ask)
    assert (2, 1) == (found[WINDOW].questions, found[ROW].questions)
    windows = [messages for messages in requests if len(messages) > 2]
    row, _ = [messages for messages in requests if len(messages) == 2]  # those of pet2, and of the question without an answer
    assert 3 == len(windows)
    assert all(messages[:-1] == windows[0][:-1] for messages in windows)
    assert all("as few words as possible" in messages[-1]["content"] for messages in requests)
    assert "2 pounds" in row[0]["content"]
    assert "39 pounds" not in row[0]["content"]


def test_answers_are_scored_by_their_tokens() -> None:
    """A false answer to a question without one counts for itself; no answer at all is a failure."""
    answers = {"pet2 ": "2 pounds", "pet39": "about 39 pounds", "parrot": "seeds"}
    found = readings(lambda messages: next(text for key, text in answers.items() if key in messages[-1]["content"]))
    assert pytest.approx((1 + 0.8) / 2) == found[WINDOW].mean
    assert (1, 1) == (found[WINDOW].adversarial, found[WINDOW].false_answers)

    def failing(_: object) -> str:
        message = "no reply"
        raise ModelError(message)

    assert Reading(failed=3) == readings(failing)[WINDOW]


def test_few_questions_are_chosen_evenly() -> None:
    """The first of each part, whatever its category."""
    assert (1, 0) == (readings(lambda _: "", 1)[WINDOW].questions, readings(lambda _: "", 1)[WINDOW].adversarial)
    assert 3 == sum((readings(lambda _: "", 9)[WINDOW].questions, readings(lambda _: "", 9)[WINDOW].adversarial))


@pytest.mark.parametrize(
    ("answer", "expected", "lang", "score"),
    [
        ("The Adoption agencies.", "Adoption agencies", "en", 1.0),
        ("in Sweden", "Sweden", "en", 2 / 3),
        ("unknown", "Sweden", "en", 0.0),
        ("", "Sweden", "en", 0.0),
        ("685元。", "685元", "zh", 1.0),
        ("价格685元", "685元", "zh", 8 / 10),
    ],
)
def test_f1_is_that_of_tokens(answer: str, expected: str, lang: str, score: float) -> None:
    """Words without articles, capitals and punctuation; characters in languages without spaces."""
    assert pytest.approx(score) == token_f1(answer, expected, lang)


@pytest.mark.parametrize(
    "answer", ["unknown", "Unknown.", "It is not mentioned.", "", "不知道", "None", "The conversation doesn't say."]
)
def test_an_answer_that_says_there_is_none(answer: str) -> None:
    """Models say it in many ways."""
    assert abstains(answer)
    assert not abstains("seeds and nuts")


def test_the_interval_narrows_with_questions() -> None:
    """Of the same scores, four times as many have half of it; one question has none."""
    few, many = (Reading(questions=4 * times, f1=2.0 * times, squares=2.0 * times) for times in (25, 100))
    assert few.margin is not None
    assert many.margin is not None
    assert pytest.approx(0.5, abs=0.01) == many.margin / few.margin
    assert (None, None) == (Reading().mean, Reading(questions=1, f1=1.0, squares=1.0).margin)


def test_an_answer_is_kept(tmp_path: Path) -> None:
    """The same messages are not asked again, by another process either; another model is."""
    asked = list[str]()

    def ask(messages: list[dict[str, Any]]) -> str:
        asked.append(messages[0]["content"])
        return f"answer {len(asked)}"

    first, again, other = (KeptAnswers(ask, tmp_path / "answers", model) for model in ("a", "a", "b"))
    assert ["answer 1", "answer 1", "answer 1", "answer 2"] == [each([user("hi")]) for each in (first, first, again, other)]
    for path in (tmp_path / "answers").iterdir():
        path.write_bytes(b"\xff")
    assert "answer 3" == first([user("hi")])
    assert ReadRow(set="s", engine="e", budget=1, source=ROW, reading=Reading()).reading.mean is None
