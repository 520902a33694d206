"""Pages of a session as JSON values: all of them as columns, the tree that lists them, and one with all that is known of it."""

from collections.abc import Iterator, Sequence
from typing import Any

from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.contents.contents_page import Directory, Item, Outlined
from memci.chapters.address import NOTES, is_range, is_root, page_number, segment_of
from memci.engine.session import Session
from memci.messages import codec
from memci.page.journal import Journal
from memci.page.message import Tell, shown

_COLUMNS = ("index", "turn", "tokens", "recall_count", "revision")


def page_table(session: Session, journal: Journal) -> dict[str, list[Any]]:
    """Return the facts of all pages, and after them of notes, oldest first, a list for each fact. O(pages).

    What has no title yet is called by how it begins.
    """
    facts = listed(session)
    table: dict[str, list[Any]] = {name: [getattr(each, name) for each in facts] for name in _COLUMNS}
    table["state"] = [str(each.state) for each in facts]
    table["title"] = [each.title or journal.lines.get(each.index, "") for each in facts]
    table["held"] = [" ".join(word for word, is_so in (("pinned", each.pinned), ("kept", each.kept)) if is_so) for each in facts]
    return table


def listed(session: Session) -> list[PageFacts]:
    """Return the facts of all pages, and of notes. O(pages)."""
    return [*session.pages(), *session.notes()]


def page_tree(session: Session) -> list[dict[str, Any]]:
    """Return the segments, each a branch: ``index``, ``title``, and ``children``, which are branches or indexes of pages.

    What is listed nowhere, as its entry left the contents page, stands in a branch of its own without an index. O(pages).
    """
    grown = [_branch(session, session.get_page(f"{segment.name}-0")) for segment in session.segments()]
    left = [facts.index for facts in session.pages(PageState.EVICTED)]
    return [*grown, *([{"index": "", "title": "Listed nowhere: evicted", "children": left}] if left else [])]


def _branch(session: Session, facts: PageFacts) -> dict[str, Any]:
    children = [_branch(session, each) if _lists(each) else each.index for each in session.get_children(facts.index)]
    return {"index": facts.index, "title": facts.title or segment_of(facts.index), "children": children}


def _lists(facts: PageFacts) -> bool:
    """Return whether it lists others: unlike a page, what was made has no entry of the journal, and notes list nothing."""
    return is_range(facts.index) or is_root(facts.index) or (not facts.first_seq and segment_of(facts.index) != NOTES)


def page_detail(
    session: Session, journal: Journal, index: str, items: Sequence[Item | Outlined] | None = None, tell: Tell = shown
) -> dict[str, Any]:
    """Return what is known of one page; an entry is the number of its event, its time, its tokens, and what *tell* makes of it.

    *items* are those of the contents page, read where they are not given. O(its size).
    """
    explained, entries = session.explain(index), list[list[Any]]()
    for node in session.page(index).nodes():
        said, value = journal.said.get(node.seq), node.message.value()
        entries.append([node.seq, node.at, node.tokens if said is None else said.tokens, tell(codec.encode(value), value)])
    return {
        "index": index,
        "reasons": explained.reasons,
        "facts": explained.facts,
        "in_contents": explained.in_contents,
        "line": _line(session.contents.entries if items is None else items, index),
        "history": [*journal.histories.get(index, ())],
        "entries": entries,
    }


def _line(items: Sequence[Item | Outlined], index: str) -> str:
    """Return what the contents page says of a page: its entry, or the row and the heading of the directory that groups it."""
    for item in items:
        if item.index == index:
            return item.render()
        if isinstance(item, Directory) and segment_of(item.index) == segment_of(index) and item.holds(page_number(index)):
            heading, *rows = item.render().split("\n")
            return "\n".join([heading, *_row(rows, index)])
    return ""


def _row(rows: Sequence[str], index: str) -> Iterator[str]:
    number = str(page_number(index))
    yield from (row for row in rows if row.split(" ", 1)[0] == number)
