"""Sessions of every wire format, whatever is asked of them: each window is one that the provider takes."""

from collections.abc import Sequence
from itertools import count
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memci.archive.page_facts import PageState
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.errors import BudgetError
from memci.messages.tokens.message_tokens import REPLY_TOKENS, count_message
from tests.engine.sessions import config_of
from tests.engine.wires import ANTHROPIC, OPENAI, RESPONSES, Value, Wire, assert_valid

words = st.sampled_from(["march invoices", "订单 1,280", "[end of page usr-1]\n> quoted", "a long one " * 40, "x " * 300])
thoughts = st.sampled_from(["", "", "step by step", "bm90IGZvciB5b3U=" * 20])


class FormatMachine(RuleBasedStateMachine):
    """One session, and the list of all that was appended and is still part of the conversation, in the order of its pages."""

    wire: ClassVar[Wire] = OPENAI

    @initialize(budget=st.sampled_from([500, 900, 2_500]))
    def begin(self, budget: int) -> None:
        active = {"min_pages": 1, "page_tokens": 150}
        sizes = {"window": budget, "reserve": 0}
        self.config = config_of(
            format=self.wire.name, budget=sizes, active=active, contents={"max_tokens": 120}, snapshot_every=9
        )
        self.store = MemoryStore()
        self.system: list[Value] = []
        self.given: list[Value] = []
        self.waiting: list[str] = []
        self.ids = (f"call_{number}" for number in count(1))
        self.windows: list[Any] = []
        self.open()

    def open(self) -> None:
        self.engine = Engine(self.store, self.config)
        self.session = self.engine.session("chat")

    def append(self, *values: Value) -> None:
        assert list(values) == [entry.message for entry in self.session.extend(values)]
        self.given += values

    @rule(text=words)
    def user_speaks(self, text: str) -> None:
        self.append(self.wire.user(text))

    @precondition(lambda self: not self.session.turn)
    @rule(text=words)
    def system_speaks(self, text: str) -> None:
        self.session.append(self.wire.system(text))
        self.system.append(self.wire.system(text))

    @rule(text=words)
    def set_system(self, text: str) -> None:
        self.system = [self.wire.system(text)]
        self.session.set_system(self.system)

    @rule(thought=thoughts, text=words | st.just(""))
    def model_speaks(self, thought: str, text: str) -> None:
        self.append(*self.wire.answer(thought, text, ()))

    @rule(thought=thoughts, text=words | st.just(""), calls=st.integers(1, 3), answered=st.integers(0, 3), data=st.data())
    def model_calls(self, thought: str, text: str, calls: int, answered: int, data: st.DataObject) -> None:
        """Parallel calls, answered in any order, or not all of them; what is not answered may be later."""
        ids = [next(self.ids) for _ in range(calls)]
        for value in self.wire.answer(thought, text, ids):
            self.append(value)
        self.waiting += ids
        for call_id in data.draw(st.permutations(ids))[:answered]:
            self.answer(call_id, data.draw(words))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), text=words)
    def late_result(self, data: st.DataObject, text: str) -> None:
        self.answer(data.draw(st.sampled_from(self.waiting)), text)

    def answer(self, call_id: str, text: str) -> None:
        self.waiting.remove(call_id)
        self.append(self.wire.result(call_id, text))

    @rule(which=st.sampled_from([None, "all"]))
    def fold(self, which: str | None) -> None:
        self.session.fold(which)

    @rule(data=st.data())
    def recall(self, data: st.DataObject) -> None:
        known = [facts.index for facts in self.session.pages(PageState.ARCHIVED)]
        if known:
            self.session.recall(data.draw(st.sampled_from(known)))

    @rule(data=st.data(), last=st.integers(1, 6))
    def rewind(self, data: st.DataObject, last: int) -> None:
        """Go back to before any entry, one between a reasoning and its item too."""
        entries = [entry for page in self.pages() for entry in page.entries]
        if not entries:
            return
        entry = data.draw(st.sampled_from(entries[-last:]))
        place = next(number for number, each in enumerate(entries) if each.address == entry.address)
        self.session.rewind(entry.address)
        self.given = [each.message for each in entries[:place]]
        calls = [call for page in self.pages() for node in page.nodes() for call in node.message.calls]
        answered = {each for page in self.pages() for node in page.nodes() for each in node.message.answers}
        self.waiting = [call.id for call in calls if call.id not in answered]

    @rule(data=st.data())
    def erase(self, data: st.DataObject) -> None:
        known = [page.index for page in self.pages()]
        if known:
            self.session.erase(data.draw(st.sampled_from(known)))
            self.windows.clear()
            self.given = [entry.message for page in self.pages() for entry in page.entries]

    @rule()
    def reopen(self) -> None:
        self.engine.close()
        self.open()

    @rule(budget=st.sampled_from([None, 350, 600, 2_000]), tools=st.sampled_from([None, [{"name": "look"}]]))
    def window(self, budget: int | None, tools: Sequence[Value] | None) -> None:
        try:
            window = self.session.window(budget, tools)
        except BudgetError:
            return
        assert window.budget >= window.tokens == sum(window.breakdown.values())
        assert_valid(window, self.wire.name)
        counter = self.session._core.counter
        system = [{"role": "system", "content": window.system}] if window.system else []
        assert window.tokens >= REPLY_TOKENS + sum(count_message(value, counter) for value in (*system, *window.messages))
        self.windows.append(window)

    def pages(self) -> list[Any]:
        known = [facts.index for facts in self.session.pages() if facts.index.startswith("usr-")]
        return list(map(self.session.page, known))

    @invariant()
    def everything_comes_back(self) -> None:
        """In any order here: late results stand with their calls."""
        stored = list(self.session.messages())
        assert self.system == stored[: len(self.system)]
        assert sorted(map(repr, self.given)) == sorted(map(repr, stored[len(self.system) :]))
        self.session._core.state._check()

    def teardown(self) -> None:
        if hasattr(self, "session"):
            for window in self.windows[-5:]:
                again = self.session.render(at=window.seq)
                assert (window.to_json(), window.system) == (again.to_json(), again.system)
            assert () == self.session.verify().problems
            self.engine.close()


class ResponsesMachine(FormatMachine):
    """Items of the Responses API."""

    wire = RESPONSES


class AnthropicMachine(FormatMachine):
    """Anthropic's messages."""

    wire = ANTHROPIC


TestFormatMachine = pytest.mark.timeout(600)(FormatMachine.TestCase)
TestResponsesMachine = pytest.mark.timeout(600)(ResponsesMachine.TestCase)
TestAnthropicMachine = pytest.mark.timeout(600)(AnthropicMachine.TestCase)
for _machine in (FormatMachine, ResponsesMachine, AnthropicMachine):
    _machine.TestCase.settings = settings(max_examples=25)
