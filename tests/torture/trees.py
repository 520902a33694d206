"""Page trees driven at random, against a plain tree: ``python -m tests.torture.trees --sessions 1000``.

A session as ``driver`` drives it, with all operations of the page tree among the others. After each of them the tree is that of
the model, every page but a root is in one directory, no index was there before, and what must not be hidden is not.
"""

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import attrs

from memci.archive.catalogue.page_facts import PageState
from memci.chapters.address import is_root
from memci.engine.commands.window import Window
from memci.engine.history import state_codec
from memci.engine.history.apply import apply
from memci.engine.history.events import MessageAppended, from_record
from memci.engine.history.state import State
from memci.errors import ArgumentError, BudgetError, MemciError, PageEvictedError, PageNotFoundError, PermissionDeniedError
from tests.engine.conversation_model import Model
from tests.engine.tree.tree_model import TreeModel
from tests.engine.wires import Value, Wire
from tests.torture.driver import OPERATIONS, Driver, main

STEPS = 50
REFUSALS = (ArgumentError, PageEvictedError, PageNotFoundError, PermissionDeniedError)
SEGMENTS = ("lessons", "files")
NAMES = (
    "Invoices",
    "Lessons about exports · 4 pages",
    "请帮我查三月份的发票",
    "a name\nof two lines",
    "",
    "[usr-9] Contents of earlier pages",
    "x" * 121,
    "> quoted]\u2028[note-9]",
)
GROWING = {
    "appended", "answer_noted", "page_began", "summary_prepared", "checkpoint_made", "fork_made",
    "segment_added", "note_written", "directory_made", "moved", "updated", "removed", "returned", "edit_undone",
}  # fmt: skip
"""Events after which a window goes on as the one before did, where nothing is a result of an earlier call."""

_Answer = TypeVar("_Answer")


@attrs.define(eq=False)
class Conversation(Model):
    """A conversation and its tree."""

    tree: TreeModel = attrs.field(factory=TreeModel)
    unsure: bool = False  # whether the last edit can be undone, and what comes of it
    slots: dict[str, str] = attrs.field(factory=dict)


class TreeDriver(Driver):
    """All that is asked of one session and its tree."""

    model: Conversation

    def __init__(self, seed: int, store: str, directory: Path, wire: Wire | None = None) -> None:
        super().__init__(seed, store, directory, wire)
        self.model = Conversation(self.wire)
        self.used: set[str] = set()
        self.last: tuple[Window, int, bool] | None = None  # the last window, what its budget was, whether it had tools

    def chances(self) -> Mapping[str, int]:
        fewer = {name: times for name, times in OPERATIONS.items() if name not in ("recall_series", "report_of_something_else")}
        return {**fewer, **TREE_OPERATIONS}

    @property
    def tree(self) -> TreeModel:
        return self.model.tree

    # What is edited, and of which pages

    def any_index(self) -> str:
        """Return the index of a page, a note, a directory, a root, or of none of them."""
        pick = self.chance.choice
        kinds = [
            [*self.tree.made],
            [*self.tree.made],
            [page.index for page in self.model.pages],
            [page.index for page in self.model.pages[:-1]],
            self.tree.directories,
            [facts.index for facts in self.session.pages() if facts.index.startswith("sys-")],
            ["usr-999", "note-999", "usr-1..3", "sys-0"],
        ]
        return pick(pick([kind for kind in kinds if kind]))

    def movable(self) -> str:
        """Return the index of something that can be moved, mostly."""
        known = [index for index in (*self.tree.made, *(page.index for page in self.model.pages)) if self.is_movable(index)]
        return self.chance.choice(known) if known and self.chance.random() < 0.85 else self.any_index()

    def name(self) -> str:
        """Return a name that is one, mostly."""
        return self.chance.choice(NAMES if self.chance.random() < 0.15 else NAMES[:3])

    def directory(self) -> str:
        """Return the index of a directory, mostly."""
        return self.any_index() if self.chance.random() < 0.15 else self.chance.choice(self.tree.directories)

    def state_of(self, index: str) -> PageState | None:
        """Return the state of a page of a turn, ``None`` where there is no such page."""
        known = any(page.index == index for page in self.model.pages)
        return self.session.facts(index).state if known else None

    def is_movable(self, index: str) -> bool:
        """Whether a page can be listed elsewhere: one that is made, or of a turn, and neither removed nor evicted."""
        if index in self.tree.parents and self.tree.is_removed(index):
            return False
        return index in self.tree.names or self.state_of(index) not in (None, PageState.EVICTED)

    def edit(self, command: Callable[[], _Answer], expected: bool | None, *words: object) -> _Answer | None:  # noqa: FBT001
        """Carry out an edit that is to be taken, or to be refused; ``None``: either. A refused one writes nothing."""
        self.said(*words, expected)
        before, refused, answer = self.session.seq, None, None
        try:
            answer = self.act(command)
        except REFUSALS as error:
            refused = error
            self.said(type(error).__name__)
        if refused is not None:
            assert expected is not True, f"refused: {refused}"
            assert before == self.session.seq
            return None
        assert expected is not False, "it was to be refused"
        self.counts["edits"] += 1
        return answer

    def does(self, command: Callable[[], object], expected: bool | None, *words: object) -> bool:  # noqa: FBT001
        """Carry out an edit that returns nothing, and return whether it was taken."""

        def run() -> bool:
            command()
            return True

        return bool(self.edit(run, expected, *words))

    def is_new(self, index: str) -> None:
        assert index not in self.used | {page.index for page in self.model.pages}, f"{index} was used before"
        self.used.add(index)

    # Edits

    def make_directory(self) -> None:
        self.session.refresh()
        name, parent = self.name(), self.directory()
        children = [self.movable() for _ in range(self.chance.choice([0, 1, 2, 3]))]
        inside = [each for child in children for each in self.tree.inside(child)]
        moved = all(map(self.is_movable, children)) and len(set(inside)) == len(inside)
        legal = name in NAMES[:3] and parent in self.tree.directories and parent not in inside and moved
        expected = legal if name in NAMES[:3] else None if legal else False
        if name not in NAMES[:3]:
            expected = None
        expected = None if expected and "sys-0" in (parent, *self.tree.path(parent)) else expected
        index = self.edit(
            lambda: self.session.create_contents_page(name, self.text()[:200], parent, children), expected, parent, children
        )
        if index is not None:
            self.is_new(index)
            self.tree.make(index, " ".join(name.split()), "", parent, children)
            self.model.unsure = False

    def write_note(self) -> None:
        self.session.refresh()
        name, parent, detail = self.name(), self.directory(), self.text()
        expected = parent in self.tree.directories if name in NAMES[:3] else None
        expected = None if expected and "sys-0" in (parent, *self.tree.path(parent)) else expected
        index = self.edit(lambda: self.session.create_detail_page(name, self.text()[:200], detail, parent), expected, parent)
        if index is not None:
            self.is_new(index)
            self.tree.write(index, " ".join(name.split()), "", detail, parent)
            self.model.unsure = False

    def move_page(self) -> None:
        self.session.refresh()
        source, target = self.movable(), self.directory()
        legal = self.is_movable(source) and target in self.tree.directories and target not in self.tree.inside(source)
        segments = {self.tree.path(each)[-1] if self.tree.path(each) else each for each in (source, target)}
        expected = None if legal and ("sys-0" in segments or is_root(target)) else legal
        before = self.session.seq
        done = self.does(lambda: self.session.move_page(source, target), expected, source, target)
        if not done or before == self.session.seq:  # it is there already
            return
        self.tree.move(source, target)
        if is_root(target):
            self.tree.take(self.session._core.state.tree, source)
        self.model.unsure = False

    def update_page(self) -> None:
        self.session.refresh()
        index, name = self.any_index(), self.chance.choice([None, self.name()])
        known = index in self.tree.names and not self.tree.is_removed(index)
        expected = None if name not in (None, *NAMES[:3]) or known else False
        expected = True if known and name in (None, *NAMES[:3]) else None if index.startswith("sys-") else expected
        expected = None if index in self.tree.parents and self.tree.is_removed(index) else expected
        before = self.session.seq
        done = self.does(lambda: self.session.update_page(index, name=name, description=self.text()[:90]), expected, index)
        if done and before != self.session.seq and index in self.tree.names:
            self.tree.update(index, None if name is None else " ".join(name.split()), None)
            self.model.unsure = False
        elif done:
            self.model.unsure = True

    def remove_page(self) -> None:
        self.session.refresh()
        index = self.any_index()
        listed = list(self.tree.inside(index)) if index in self.tree.parents else [index]
        pinned = self.session._core.state.pinned
        state = self.state_of(index)
        if is_root(index) or state in (PageState.OPEN, PageState.ACTIVE) or any(each in pinned for each in listed):
            expected: bool | None = False
        elif index in self.tree.parents and self.tree.is_removed(index):
            expected = None
        else:
            active = any(self.state_of(each) in (PageState.OPEN, PageState.ACTIVE) for each in listed)
            expected = True if index in self.tree.names and not active else None
        before = self.session.seq
        if self.does(lambda: self.session.remove_page(index), expected, index) and before != self.session.seq:
            if index in self.tree.parents and index not in self.tree.removed:
                self.tree.remove(index)
                self.model.unsure = False
            for each in self.tree.inside(index):
                assert self.session._core.state.page_state(each) is PageState.EVICTED, each

    def restore_page(self) -> None:
        self.session.refresh()
        gone = [each for each in self.tree.parents if self.tree.is_removed(each)]
        index = self.chance.choice(gone) if gone and self.chance.random() < 0.8 else self.any_index()
        before = self.session.seq
        if not self.does(lambda: self.session.restore(index), True if index in self.tree.removed else None, index):
            return
        if before == self.session.seq:
            return
        tree = self.session._core.state.tree
        self.tree.remember()
        self.model.unsure = index not in self.tree.parents or index not in self.tree.removed
        self.tree.take(tree, index)
        if tree.find(index) is not None:
            assert not tree.is_removed(index)

    def undo_edit(self) -> None:
        self.session.refresh()
        before = self.session.seq
        with suppress(MemciError):
            self.session.undo_edit()
        if before == self.session.seq:
            self.said("nothing to undo")
            assert self.model.unsure or self.tree.before is None, "there was an edit to undo"
            return
        if self.model.unsure:
            self.take_all()
        else:
            assert self.tree.before is not None, "there was nothing to undo"
            self.tree.undo()
            for index in [each for each in self.tree.parents if each not in self.tree.names]:
                if index not in [page.index for page in self.model.pages]:
                    self.tree.forget(index)
        self.tree.before = None
        self.counts["edits"] += 1

    def take_all(self) -> None:
        """Take over what the session says, where more than one answer is right."""
        tree = self.session._core.state.tree
        self.tree.removed = {node.index for node in tree if node.removed}
        self.tree.parents = {node.index: node.parent for node in tree}
        self.tree.names = {node.index: (node.name, "") for node in tree if node.is_directory or node.is_note}
        roots = [f"{name}-0" for name in tree.segments]
        made = [*roots, *(node.index for node in tree if node.is_directory)]
        self.tree.children = {index: [child.index for child in tree.children(index)] for index in made}

    def add_segment(self) -> None:
        self.session.refresh()
        name = self.chance.choice([*SEGMENTS, "usr"])
        permission = self.chance.choice(["read_only", "read_write", "system_managed"])
        capacity = self.chance.choice([None, None, 40, 300])
        root = self.edit(
            lambda: self.session.add_segment(name, permission=permission, capacity_tokens=capacity), None, name, permission
        )
        assert f"{name}-0" == root
        self.tree.children.setdefault(root, [])

    # What stands open, is kept, or stands at the end

    def open_page(self) -> None:
        self.session.refresh()
        index = self.any_index()
        gone = index in self.tree.parents and self.tree.is_removed(index)
        done = self.edit(lambda: (self.session.expand_details(index),), False if gone or "999" in index else None, index)
        if done is not None and index in self.tree.details and self.tree.details[index]:
            assert [self.wire.user(self.tree.details[index])] == done[0].messages

    def close_page(self) -> None:
        self.session.refresh()
        index = self.any_index()
        never = is_root(index) or self.state_of(index) is PageState.OPEN or "999" in index
        if self.does(lambda: self.session.hide_details(index), False if never else None, index):
            for each in self.tree.inside(index) if index in self.tree.names else [index]:
                assert each not in self.session._core.state.recalled, each

    def keep(self) -> None:
        self.session.refresh()
        index = self.any_index()
        self.edit(lambda: ((self.session.keep if self.chance.random() < 0.7 else self.session.unkeep)(index),), None, index)

    def slots(self) -> None:
        self.session.refresh()
        name = self.chance.choice(["files", "goal", "now"])
        if self.chance.random() < 0.3:
            self.act(lambda: self.session.slots.pop(name, None))
            self.model.slots.pop(name, None)
        else:
            text = self.text()[:400]
            self.act(lambda: self.session.slots.update({name: text}))
            self.model.slots[name] = text

    # What else changes the tree

    def rewind(self) -> None:
        before = self.session.seq
        super().rewind()
        if before != self.session.seq:
            self.drop_what_is_gone()

    def drop_what_is_gone(self) -> None:
        pages = {page.index for page in self.model.pages}
        back = {page.index for page in self.model.pages[-1:] if self.tree.is_removed(page.index)}  # shown where it came again
        for index in [each for each in self.tree.parents if each not in self.tree.names and each not in pages - back]:
            self.tree.forget(index)
        self.model.unsure = True

    def undo_fold(self) -> None:
        """As ever, but that removed pages which are live again are where they came."""
        super().undo_fold()
        self.session.refresh()
        gone = [page.index for page in self.model.pages if page.index in self.tree.parents and self.tree.is_removed(page.index)]
        for index in gone:
            if self.state_of(index) in (PageState.OPEN, PageState.ACTIVE):
                self.tree.forget(index)
                self.model.unsure = True

    def pages_of_the_contents(self) -> None:
        """As ever, but that evicting a page of the tree removes it, and restoring one brings it back."""
        before = {index: self.tree.is_removed(index) for index in self.tree.parents}
        last = self.session._core.state.tree.last_edit
        super().pages_of_the_contents()
        self.settle(before, last)

    def settle(self, before: Mapping[str, bool], last: object) -> None:
        tree = self.session._core.state.tree
        if last == tree.last_edit and before == {node.index: tree.is_removed(node.index) for node in tree}:
            return
        for index in [*self.tree.parents]:
            node = tree.find(index)
            if node is None or (node.removed is not (index in self.tree.removed)) or node.parent != self.tree.parents[index]:
                self.tree.take(tree, index)
        for node in tree:
            if node.index not in self.tree.parents:
                self.tree.take(tree, node.index)
        self.model.unsure = True

    def erase(self) -> None:
        self.session.refresh()
        if self.tree.made and self.chance.random() < 0.4:
            index = self.chance.choice(self.tree.made)
            self.said(index)
            with suppress(*REFUSALS):
                self.act(lambda: self.session.erase(index))
                self.windows.clear()
                self.last = None
                for model in (self.model, *self.checkpoints.values()):
                    assert isinstance(model, Conversation)
                    each: TreeModel | None = model.tree
                    while each is not None:
                        if index in each.names:
                            each.names[index] = "", ""
                        if index in each.details:
                            each.details[index] = ""
                        each = each.before
                return
        self.last = None
        super().erase()

    def grow(self) -> None:
        """Ask for a window, edit the tree, go on, and ask again: the window begins as it did."""
        self.session.refresh()
        for operations in ((), (self.make_directory, self.write_note, self.move_page, self.update_page, self.undo_edit)):
            for operation in self.chance.sample(operations, min(len(operations), 3)):
                operation()
            if operations:
                self.append(*self.wire.answer("", self.text()[:90], ()), self.wire.user(self.text()[:90]))
            self.session.refresh()
            with suppress(BudgetError):
                window = self.session.window()
                self.look_at(window, window.budget, None)
                self.last_tokens = window.tokens

    def fork(self) -> None:
        """A fork has the tree that its source had."""
        self.session.refresh()
        self.numbers += 1
        engine, name = self.worker.engine, f"fork-{self.numbers}"
        at = self.chance.choice([None, self.chance.randint(1, max(1, self.session.seq))]) if self.session.seq else None
        if not self.session.seq:
            return
        with engine.fork("chat", name, at) as twin:
            wanted = self.session._core.state_at(at)
            assert wanted.tree.to_mapping() == twin._core.state.tree.to_mapping()
            for page in twin.notes():
                assert twin.page(page.index).messages == self.session.page(page.index).messages
            assert () == twin.verify().problems
        engine.delete(name)
        self.session.refresh()

    def search(self) -> None:
        """A word that one note holds finds it, removed or not."""
        super().search()
        known = [index for index, detail in self.tree.details.items() if detail]
        if known:
            index = self.chance.choice(known)
            word = self.tree.details[index].split()[0]
            hits = self.session.search(word, include_visible=True)
            assert index in [hit.index for hit in hits], (word, index, hits)

    # What must hold at any time

    def look(self, step: int) -> None:
        super().look(step)
        state = self.session._core.state
        self.tree.check(state.tree)
        assert [*self.tree.details] == [facts.index for facts in self.session.notes()]
        assert "sys-0" not in state.tree.left_open
        self.look_at_relations()
        assert self.model.slots == dict(self.session.slots)
        if step % 25 == 24:
            self.look_at_replay()

    def look_at_relations(self) -> None:
        """What is asked of a few pages is what the model says of them."""
        for index in self.chance.sample([*self.tree.parents], min(3, len(self.tree.parents))):
            if self.tree.is_removed(index):
                continue
            parent = self.session.get_parent(index)
            assert parent is not None
            assert self.tree.parents[index] == parent.index
            assert self.tree.path(index) == [facts.index for facts in self.session.get_ancestors(index)]
            assert index == self.session.get_page(index).index
            if not is_root(index):
                children = [facts.index for facts in self.session.get_children(index)]
                assert self.tree.children.get(index, []) == children
            if self.tree.details.get(index):
                assert [self.wire.user(self.tree.details[index])] == self.session.page(index).messages

    def look_at_pages(self) -> None:
        """Pages of turns are where the model has them; those that somebody placed are listed by the tree alone."""
        facts = [facts for facts in self.session.pages() if facts.index.startswith("usr-")]
        assert [page.index for page in self.model.pages] == [each.index for each in facts]
        assert all(each.state is PageState.OPEN for each in facts[-1:])
        archive = self.session._core.state.archive
        for each in facts:
            if each.index in self.tree.parents:
                assert archive.find_entry(each.index) is None, each
                gone = self.tree.is_removed(each.index) and each.state not in (PageState.OPEN, PageState.ACTIVE)
                assert (each.state is PageState.EVICTED) is gone, each
            elif each.state is PageState.ARCHIVED:
                assert archive.find_entry(each.index) is not None, each
            elif each.state is PageState.HIDDEN:
                assert archive.find_directory(each.index) is not None, each

    def look_at_replay(self) -> None:
        """The journal, read from its beginning, gives the same state."""
        live = state_codec.to_mapping(self.session._core.state)
        replayed = State(session="chat")
        for record in self.session._core.store.journal.read():
            apply(replayed, from_record(record), record.seq)
        assert live == state_codec.to_mapping(replayed)
        assert live == state_codec.to_mapping(state_codec.from_mapping(copy.deepcopy(live))) or not live["seq"]

    def look_at(self, window: Window, limit: int, tools: Sequence[Value] | None) -> None:
        super().look_at(window, limit, tools)
        self.look_at_growth(window, limit, tools)
        self.last = window, limit, tools is not None

    def look_at_growth(self, window: Window, limit: int, tools: Sequence[Value] | None) -> None:
        """Where nothing but messages and edits of the tree came, the window begins as the last one did."""
        if self.last is None or (limit, tools is not None) != self.last[1:] or self.given.get("cache_breakpoints"):
            return
        last = self.last[0]
        records = [*self.session._core.store.journal.read(last.seq, window.seq)]
        events = [from_record(record) for record in records]
        late = any(isinstance(event, MessageAppended) and event.answers for event in events)
        if {record.kind for record in records} <= GROWING and not late:
            # What is said last may go on in one message, and slots stand near the end.
            slots = (place for place, value in enumerate(last.messages) if "[slots of the application" in str(value))
            kept = last.messages[: next(slots, len(last.messages) - 1)]
            assert kept == window.messages[: len(kept)], "the window does not begin as the last one did"
            self.counts["grown"] += 1

    def look_at_refusal(self, error: BudgetError, limit: int) -> None:
        if self.model.slots:
            assert limit == error.budget < error.tokens == sum(error.breakdown.values())
        else:
            super().look_at_refusal(error, limit)


TREE_OPERATIONS = {
    "make_directory": 18,
    "write_note": 14,
    "move_page": 18,
    "update_page": 6,
    "remove_page": 10,
    "restore_page": 10,
    "undo_edit": 8,
    "add_segment": 3,
    "open_page": 18,
    "close_page": 10,
    "keep": 6,
    "slots": 6,
    "grow": 10,
    "fork": 2,
}
"""The operations of the tree, and how often each is chosen."""


if __name__ == "__main__":
    sys.exit(main("trees", TreeDriver, STEPS))
