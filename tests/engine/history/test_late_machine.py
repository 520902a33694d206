"""Results that come late, beside whatever moves their pages, against plain lists of messages."""

import copy
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memci.archive.catalogue.page_facts import PageState
from memci.archive.contents.contents_page import ContentsEntry
from memci.archive.stores.contract import Store
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.chapters.page import Entry
from memci.engine.engine import Engine
from memci.engine.history import state_codec
from memci.engine.settings.config import Config
from memci.errors import BudgetError, InvalidMessageError, PageEvictedError, PermissionDeniedError
from memci.messages import codec
from tests.engine.conversation_model import Model
from tests.engine.sessions import prepare
from tests.engine.whole_state import told
from tests.engine.wire import Value, assert_paired, assistant, calling, result, user

pytestmark = pytest.mark.slow

IDS = ["a", "b", "c"]
call_sets = st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True)
sizes = st.sampled_from([1, 1, 10, 60])


class LateMachine(RuleBasedStateMachine):
    """One session with a small window, and the pages that it must hold; no two messages are equal."""

    def new_store(self) -> Store:
        return MemoryStore()

    @initialize(contents_tokens=st.sampled_from([50, 90, 150]), snapshot_every=st.sampled_from([1, 3, 500]))
    def begin(self, contents_tokens: int, snapshot_every: int) -> None:
        self.store = self.new_store()
        self.given: dict[str, Any] = {
            "budget": {"window": 500, "reserve": 0},
            "active": {"min_pages": 1},
            "contents": {"max_tokens": contents_tokens},
            "recall": {"protocol": "none"},
            "snapshot_every": snapshot_every,
            "durability": "flush",
        }
        self.model = Model()
        self.numbers = count(1)
        self.checkpoints: dict[str, Model] = {}
        self.open()

    def open(self) -> None:
        self.engine = Engine(self.store, Config.from_mapping(self.given))
        self.session = self.engine.session("chat")

    def text(self, size: int) -> str:
        return f"text {next(self.numbers)}" + " word" * size

    # Messages

    def took(self, values: Sequence[Value], entries: Sequence[Entry]) -> None:
        """Tell the model of messages; where the page of one that is no result is new, memci may have cut there."""
        for value, entry in zip(values, entries, strict=True):
            assert value == entry.message
            if value["role"] == "tool":
                page, place = self.model.answer(value["tool_call_id"])
                page.insert(place, value)
                continue
            index = entry.page.index
            is_new = all(index != page.index for page in self.model.pages)
            place = 1 if is_new else len(self.model.find(index).messages) + 1
            self.model.append(value, f"{index}/{place}", is_full=is_new)
        for value, entry in zip(values, entries, strict=True):
            page = self.model.find(entry.page.index)
            assert value == page.messages[entry.position - 1]

    def append(self, value: Value) -> None:
        self.took([value], [self.session.append(value)])

    @rule(speaker=st.sampled_from([user, assistant]), size=sizes)
    def speaks(self, speaker: Callable[[str], Value], size: int) -> None:
        self.append(speaker(self.text(size)))

    @rule(ids=call_sets, answered=st.integers(0, 2), size=sizes, budget=st.sampled_from([0, 150, 150]))
    def model_calls(self, ids: list[str], answered: int, size: int, budget: int) -> None:
        """Parallel calls, most often in a turn after a window without room, which goes on before all of them have a result."""
        if budget:
            self.append(user(self.text(size)))
            self.window(budget)
        self.append(calling(*ids, arguments=f'{{"n": {next(self.numbers)}}}'))
        for call_id in ids[:answered]:
            self.append(result(call_id, self.text(1)))
        self.append(assistant(self.text(size)))

    @precondition(lambda self: self.model.waiting)
    @rule(data=st.data(), size=sizes, then=st.sampled_from(["", "fold", "undo", "fold and undo"]))
    def late_result(self, data: st.DataObject, size: int, then: str) -> None:
        """A result for any call that waits; most often a fold takes it in at once, or a fold is undone, or both."""
        self.append(result(data.draw(st.sampled_from(self.model.waiting)), self.text(size)))
        if "fold" in then:
            self.session.fold("all")
        if "undo" in then:
            self.undo_fold()

    @rule(kinds=st.lists(st.sampled_from(["user", "said", "calls", *IDS, *IDS]), min_size=2, max_size=6), data=st.data())
    def extend(self, kinds: list[str], data: st.DataObject) -> None:
        """Several messages in one command, late results among them: all, or none where there is one that nobody waits for."""
        values = []
        for kind in kinds:
            match kind:
                case "user":
                    values.append(user(self.text(1)))
                case "said":
                    values.append(assistant(self.text(1)))
                case "calls":
                    values.append(calling(*data.draw(call_sets), arguments=f'{{"n": {next(self.numbers)}}}'))
                case _:
                    values.append(result(kind, self.text(1)))
        if self.is_answered(values):
            self.took(values, self.session.extend(values))
            return
        seq = self.session.seq
        try:
            self.session.extend(values)
        except InvalidMessageError:
            assert seq == self.session.seq
            return
        message = f"it was taken: {values}"
        raise AssertionError(message)

    def is_answered(self, values: Sequence[Value]) -> bool:
        """Return whether each result finds a call that waits for it."""
        waiting = [each for page in self.model.pages for ids in page.open_ids for each in ids]
        for value in values:
            if value["role"] != "tool":
                waiting += [call["id"] for call in value.get("tool_calls", ())]
            elif value["tool_call_id"] in waiting:
                waiting.remove(value["tool_call_id"])
            else:
                return False
        return True

    @precondition(lambda self: self.model.addresses)
    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        address = data.draw(st.sampled_from(self.model.addresses[-15:]))
        self.session.rewind(address)
        self.model.rewind(address)

    # Pages

    @rule(budget=st.sampled_from([90, 150, 150, 200, 300]))
    def window(self, budget: int) -> None:
        with suppress(BudgetError):
            assert_paired(self.session.window(budget).messages)

    @rule()
    def prepare(self) -> None:
        prepare(self.session)

    @rule(which=st.sampled_from([None, "all"]))
    def fold(self, which: str | None) -> None:
        self.session.fold(which)

    @rule()
    def undo_fold(self) -> None:
        if self.session._core.state.last_fold is not None:
            self.session.undo_fold()

    @precondition(lambda self: self.model.pages)
    @rule(data=st.data(), command=st.sampled_from(["recall", "recall", "fade", "evict", "restore", "pin", "unpin"]))
    def command(self, data: st.DataObject, command: str) -> None:
        page = data.draw(st.sampled_from(self.model.pages))
        archived = self.session.facts(page.index).state not in (PageState.OPEN, PageState.ACTIVE)
        with suppress(PageEvictedError, PermissionDeniedError):
            if archived or command in ("recall", "pin", "unpin"):
                getattr(self.session, command)(page.index)

    # Time

    @rule(data=st.data())
    def restore_checkpoint(self, data: st.DataObject) -> None:
        """Make a checkpoint where there is none, else go back to one."""
        if not self.checkpoints:
            self.checkpoints[self.session.checkpoint("here").id] = copy.deepcopy(self.model)
            return
        chosen = data.draw(st.sampled_from(sorted(self.checkpoints)))
        before = copy.deepcopy(self.model)
        self.checkpoints[self.session.restore_checkpoint(chosen).id] = before
        self.model = self.checkpoints.pop(chosen)

    @rule(counter=st.sampled_from([None, None, "o200k_base", "approximate"]), other=st.booleans())
    def reopen(self, counter: str | None, other: bool) -> None:  # noqa: FBT001 (a rule's argument)
        """Open the session again, sometimes with another counter, by the same engine or by another one."""
        if counter is not None or other:
            self.engine.close()
            self.given = {**self.given, "counter": counter or self.given.get("counter", "o200k_base")}
            self.open()
        else:
            self.session.close()
            self.session = self.engine.session("chat")

    # What must hold at any time

    @invariant()
    def messages_stand_in_their_order(self) -> None:
        assert self.model.messages == list(self.session.messages())
        for page in self.model.pages:
            assert page.messages == self.session.page(page.index).messages

    @invariant()
    def a_snapshot_holds_all_of_the_state(self) -> None:
        state = self.session._core.state
        state._check()
        if state.configured:
            assert told(state) == told(state_codec.from_mapping(codec.decode(codec.encode(state_codec.to_mapping(state)))))

    @invariant()
    def nothing_is_to_be_made_good(self) -> None:
        assert () == self.session.verify().problems

    @invariant()
    def entries_are_of_the_pages_as_they_are(self) -> None:
        for entry in self.session.contents.entries:
            if isinstance(entry, ContentsEntry):
                facts = self.session.facts(entry.index)
                assert (facts.sha256, facts.revision, facts.entries) == (entry.sha256, entry.revision, entry.entries)

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            self.session.close()
            assert () == self.engine.repair("chat", apply=True).steps
            self.session = self.engine.session("chat")
            self.messages_stand_in_their_order()
            self.engine.close()


class FileLateMachine(LateMachine):
    """The same with files."""

    def new_store(self) -> Store:
        self.root = tempfile.mkdtemp()
        return FileStore(self.root, "flush")

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.root, ignore_errors=True)


# Finding the smallest failure takes its time.
TestLateMachine = pytest.mark.timeout(12 * settings().max_examples)(LateMachine.TestCase)
FileLateMachine.TestCase.settings = settings(max_examples=settings().max_examples // 5)
TestFileLateMachine = pytest.mark.timeout(12 * settings().max_examples)(FileLateMachine.TestCase)
