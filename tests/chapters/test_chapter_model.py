"""Chapters, lists and pages against a model of plain lists."""

import itertools

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from memci.chapters.page import Chapter, MessageNode, Page
from memci.messages.message import Message

MESSAGE = Message(raw=b"{}", role="assistant")


@attrs.define(eq=False)
class Modelled:
    """A page, and the seqs of its nodes as a plain list."""

    page: Page
    seqs: list[int]
    chapter: int | None = None


class ChapterMachine(RuleBasedStateMachine):
    """Pages that grow, are cut, leave and come back, in two chapters."""

    pages = Bundle("pages")

    @initialize()
    def begin(self) -> None:
        self.chapters = (Chapter(), Chapter())
        self.orders: tuple[list[Modelled], list[Modelled]] = ([], [])
        self.known: list[Modelled] = []
        self.numbers = itertools.count(1)
        self.indexes = itertools.count(1)

    def node(self) -> MessageNode:
        number = next(self.numbers)
        return MessageNode(message=MESSAGE, tokens=number % 7, seq=number)

    @rule(target=pages, entries=st.integers(0, 4))
    def make(self, entries: int) -> Modelled:
        modelled = Modelled(Page(index=f"usr-{next(self.indexes)}", turn=1), [])
        self.known.append(modelled)
        for _ in range(entries):
            self.grow(modelled)
        return modelled

    @rule(modelled=pages)
    def grow(self, modelled: Modelled) -> None:
        node = self.node()
        modelled.seqs.append(node.seq)
        assert len(modelled.seqs) == modelled.page.add(node)

    @rule(modelled=pages, place=st.integers(0, 10))
    def insert_late(self, modelled: Modelled, place: int) -> None:
        if modelled.seqs:
            place %= len(modelled.seqs)
            node = self.node()
            after = list(modelled.page.nodes())[place]
            modelled.seqs.insert(place + 1, node.seq)
            assert place + 2 == modelled.page.add(node, after=after)

    @rule(modelled=pages, place=st.integers(0, 10))
    def cut(self, modelled: Modelled, place: int) -> None:
        if modelled.seqs:
            place %= len(modelled.seqs)
            modelled.page.cut(place + 1)
            del modelled.seqs[place:]

    @rule(modelled=pages, chapter=st.integers(0, 1), place=st.integers(0, 10))
    def attach(self, modelled: Modelled, chapter: int, place: int) -> None:
        """Attach at the end or in front of a page; a page that stands somewhere moves, between chapters too."""
        if modelled.chapter is not None:
            self.detach(modelled)
        order = self.orders[chapter]
        place %= len(order) + 1
        before = order[place].page if place < len(order) else None
        self.chapters[chapter].add_page(modelled.page, before=before)
        order.insert(place, modelled)
        modelled.chapter = chapter

    @rule(modelled=pages)
    def detach(self, modelled: Modelled) -> None:
        modelled.page.detach()
        if modelled.chapter is not None:
            self.orders[modelled.chapter].remove(modelled)
        modelled.chapter = None

    @rule(modelled=consumes(pages))
    def forget(self, modelled: Modelled) -> None:
        self.detach(modelled)
        self.known.remove(modelled)

    @precondition(lambda self: any(self.orders))
    @rule(chapter=st.integers(0, 1), stop=st.integers(0, 10))
    def detach_behind_an_iterator(self, chapter: int, stop: int) -> None:
        """Pages that were passed leave while the list is iterated; all nodes still come, once."""
        order = list(self.orders[chapter])
        expected = [seq for modelled in order for seq in modelled.seqs]
        passed: list[int] = []
        for node in self.chapters[chapter].message_list:
            passed.append(node.seq)
            for modelled in order[: stop % 4]:
                if modelled.chapter is not None and modelled.seqs and modelled.seqs[-1] in passed:
                    self.detach(modelled)
        assert expected == passed

    @invariant()
    def chapters_are_their_models(self) -> None:
        for chapter, order in zip(self.chapters, self.orders, strict=True):
            chapter._check()
            seqs = [seq for modelled in order for seq in modelled.seqs]
            assert seqs == [node.seq for node in chapter.message_list]
            assert (len(seqs), sum(seq % 7 for seq in seqs)) == (len(chapter.message_list), chapter.tokens)
            assert [modelled.page.index for modelled in order] == [page.index for page in chapter.pages()]
            assert len(order) == len(chapter)
            assert (order[-1].page if order else None) == chapter.last_page

    @invariant()
    def pages_are_their_models(self) -> None:
        for modelled in self.known:
            page = modelled.page
            assert modelled.seqs == [entry.node.seq for entry in page.entries]
            assert (len(modelled.seqs), sum(seq % 7 for seq in modelled.seqs)) == (len(page), page.tokens)
            if modelled.chapter is None:
                assert (None, None, None) == (page.chapter, page.previous, page.next)
                assert page.head is None or page.head.previous is None
                assert page.tail is None or page.tail.next is None
            else:
                assert page is self.chapters[modelled.chapter].find_page(page.index)


TestChapterMachine = ChapterMachine.TestCase
