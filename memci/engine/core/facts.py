"""The facts of a page as the state has them now: what only it knows is said of pages that the index found."""

import attrs

from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.contents.contents_page import Directory
from memci.archive.contents.tree import Node
from memci.chapters.page import Page
from memci.engine.history.state import SYSTEM, State


def facts_of(state: State, page: Page, title: str = "") -> PageFacts:
    """Return the facts of a page that stands in the window for itself. O(its entries)."""
    head, tail = page.head, page.tail
    first_at, last_at = page.times
    recall_count, last_recall_turn = state.recalls.get(page.index, (0, None))
    return PageFacts(
        index=page.index,
        state=state.page_state(page.index),
        turn=page.turn,
        entries=len(page),
        tokens=page.tokens,
        title=page.name or title or state.system_names.get(page.index, ("",))[0],
        recall_count=recall_count,
        last_recall_turn=last_recall_turn,
        pinned=page.index in state.pinned,
        parent=_parent(state, page),
        first_seq=head.seq if head else state.seq,
        last_seq=tail.seq if tail else state.seq,
        first_at=first_at,
        last_at=last_at,
        kept=page.index in state.kept,
    )


def placed(state: State, facts: PageFacts) -> PageFacts:
    """Return an archived page's facts with where the page is now. O(directories)."""
    where = state.page_state(facts.index)
    entry = state.archive.find_entry(facts.index)
    directory = None if entry is not None else state.archive.find_directory(facts.index)
    parent = directory.index if isinstance(directory, Directory) else state.archive.root
    pinned = entry is not None and entry.pinned
    if entry is None and state.tree and (node := state.tree.find(facts.index)) is not None:
        parent, pinned = node.parent, facts.index in state.pinned
        facts = attrs.evolve(facts, title=node.name or facts.title)
    return attrs.evolve(facts, state=where, parent=None if where is PageState.EVICTED else parent, pinned=pinned)


def _parent(state: State, page: Page) -> str:
    if state.tree and (node := state.tree.find(page.index)) is not None:
        return node.parent
    return f"{SYSTEM}-0" if page.chapter is state.system else state.archive.root


def made_facts(state: State, node: Node) -> PageFacts:
    """Return the facts of a directory that was made: its name is its title, its children are its entries."""
    where = state.page_state(node.index)
    return PageFacts(
        index=node.index,
        state=where,
        turn=node.turn,
        entries=len(node.children),
        tokens=0,
        title=node.name,
        pinned=node.index in state.pinned,
        parent=None if where is PageState.EVICTED else node.parent,
    )
