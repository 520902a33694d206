"""The suites for summarisers, planners and counters pass on memci's own, and fail on what is wrong."""

from collections.abc import Sequence

import pytest

from memci.archive.summarizers.external.calling import summarize
from memci.archive.summarizers.external.model import ModelSummarizer, Prompt
from memci.archive.summarizers.external.transcript import transcript
from memci.archive.summarizers.summary import Summarizer
from memci.engine.history.state import State
from memci.engine.settings.config import Config
from memci.engine.view import planner as marks
from memci.engine.view.planner import FoldPlan, Planner
from memci.messages.message import Message
from memci.messages.tokens.counter import TokenCounter, get_counter
from memci.testing.counter_suite import CounterSuite
from memci.testing.planner_suite import PlannerSuite
from memci.testing.summarizer_suite import PAGES, SummarizerSuite


class FirstWords:
    """Says the beginning of a page."""

    name = "first words"

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        words = " ".join(text for _, text in transcript(messages)).split()[: max_tokens // 12]
        return " ".join(words)[:max_tokens]


class Marks:
    """Folds as memci does."""

    def plan(self, state: State, config: Config) -> FoldPlan:
        return marks.plan(state, config)


class TestFirstWords(SummarizerSuite):
    @pytest.fixture
    def summarizer(self) -> Summarizer:
        return FirstWords()


class TestModel(SummarizerSuite):
    @pytest.fixture
    def summarizer(self) -> Summarizer:
        async def ask(prompt: Prompt) -> str:
            said: str = prompt[-1]["content"].partition("user: ")[2]
            return " ".join(said.split("\n", maxsplit=1)[0][:60].split()[:5])

        return ModelSummarizer(ask, name="parrot")


class TestMarks(PlannerSuite):
    @pytest.fixture
    def planner(self) -> Planner:
        return Marks()


class TestEncoding(CounterSuite):
    @pytest.fixture(params=["o200k_base", "approximate"])
    def counter(self, request: pytest.FixtureRequest) -> TokenCounter:
        return get_counter(request.param)


def test_the_suites_fail_on_what_is_wrong() -> None:
    """One that lies, one that remembers, one that changes the state and one that counts more each time are found out."""

    class Lies:
        def summarize(self, _messages: Sequence[Message], *, max_tokens: int) -> str:
            return f"It cost {max_tokens + 4_711} euros"

    class Null:
        def summarize(self, _messages: Sequence[Message], *, max_tokens: int) -> str:
            assert max_tokens
            return "null"

    class Remembers:
        asked = 0

        def plan(self, state: State, _config: Config) -> FoldPlan:
            self.asked += 1
            first = next((page.index for page in state.active.pages() if page is not state.active.open_page), None)
            return FoldPlan(pages=(first,) if first and self.asked % 2 else (), reason="marks")

    class Changes:
        def plan(self, state: State, _config: Config) -> FoldPlan:
            state.touch([page.index for page in state.active.pages()], state.turn)
            return FoldPlan(pages=(), reason="marks")

    class Forgets:
        name, exact, margin = "forgets", True, 1.0
        asked = 0

        def count(self, text: str) -> int:
            self.asked += 1
            return len(text) + self.asked

    with pytest.raises(AssertionError):
        SummarizerSuite().test_what_it_writes_is_believed(Lies(), "English")
    with pytest.raises(AssertionError):
        SummarizerSuite().test_what_it_writes_is_believed(Null(), "English")
    with pytest.raises(AssertionError):
        PlannerSuite().test_it_is_pure(Remembers())
    with pytest.raises(AssertionError):
        PlannerSuite().test_it_is_pure(Changes())
    with pytest.raises(AssertionError):
        CounterSuite().test_it_counts_any_text(Forgets(), "text")
    assert summarize(FirstWords(), PAGES["English"], 60, 60).title
