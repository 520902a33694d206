"""A session in which pages are kept and entries have bookmarks, against a model of plain lists, in any order."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from memci.archive.catalogue.page_facts import PageState
from memci.engine.view import planner
from memci.errors import PageEvictedError, PermissionDeniedError
from tests.engine.test_session_machine import SessionMachine

pytestmark = pytest.mark.slow

RULES = {f"keep_{name}": True for name in ("bookmarks", "errors", "first_successes", "decisions")}


class KeepingMachine(SessionMachine):
    """One session and its model, which knows the bookmarks by what they mark."""

    @precondition(lambda self: self.model.pages)
    @rule(data=st.data())
    def keep(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from([page.index for page in self.model.pages]))
        before = self.state_of(index)
        try:
            self.session.keep(index)
        except PageEvictedError:
            assert before is PageState.EVICTED
            return
        except PermissionDeniedError:  # it has no room in the share
            return
        assert self.session.facts(index).kept
        self.archived.discard(index)
        self.attached.pop(index, None)
        if self.last_fold is not None:
            self.last_fold = tuple(each for each in self.last_fold if each != index)

    @precondition(lambda self: self.model.pages)
    @rule(data=st.data())
    def unkeep(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from([page.index for page in self.model.pages]))
        self.session.unkeep(index)
        assert not self.session.facts(index).kept

    @precondition(lambda self: self.model.addresses)
    @rule(data=st.data(), label=st.sampled_from(["the answer", "参见", None]))
    def bookmark(self, data: st.DataObject, label: str | None) -> None:
        self.session.bookmark(data.draw(st.sampled_from(self.model.addresses)), label)

    @rule()
    def keep_by_rules(self) -> None:
        """Have the rules of the settings keep pages, from then on."""
        self.session.configure(active={**RULES, "keep_share": 0.4})

    @precondition(lambda self: self.model.pages)
    @rule(data=st.data())
    def fold_named(self, data: st.DataObject) -> None:
        """Fold a page by its name, which does nothing where it is kept and has room in the share."""
        named = data.draw(st.sampled_from([page.index for page in self.model.pages]))
        held = planner.held(self.core.state, self.core.config)
        assert not set(self.session.fold(named).pages) & set(held)

    @invariant()
    def only_pages_in_view_are_kept(self) -> None:
        in_view = {page.index for page in self.model.pages} - self.archived
        assert in_view >= {facts.index for facts in self.session.pages() if facts.kept} == set(self.core.state.kept)

    @invariant()
    def bookmarks_stand_in_the_conversation(self) -> None:
        said = dict(zip(self.model.addresses, [each for page in self.model.pages for each in page.messages], strict=True))
        marks = self.session.bookmarks()
        assert {mark.address for mark in marks} <= said.keys()
        assert len(marks) == len(self.core.state.bookmarks)


KeepingMachine.TestCase.settings = settings(max_examples=settings().max_examples * 4 // 5, stateful_step_count=40)
TestKeepingMachine = pytest.mark.timeout(12 * settings().max_examples)(KeepingMachine.TestCase)
