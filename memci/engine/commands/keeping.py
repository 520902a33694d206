"""Pages that stay verbatim through folds, because the application or a rule of the settings keeps them, and bookmarks."""

from collections.abc import Iterator, Sequence

import attrs

from memci.archive.catalogue.page_facts import PageState
from memci.archive.contents.contents_page import one_line
from memci.chapters.address import is_range, page_number, segment_of
from memci.chapters.page import MessageNode, Page
from memci.engine.commands import preparing
from memci.engine.core.core import Core
from memci.engine.history.events import EntryBookmarked, Event, PageKept
from memci.engine.history.page_codec import page_value
from memci.engine.history.state import RULE, USER
from memci.engine.reading import pages
from memci.engine.settings.config import Active
from memci.engine.view import planner
from memci.errors import ArgumentError, PageEvictedError, PageNotFoundError, PermissionDeniedError, is_line
from memci.messages.parts import PartKind, parts

MOST_BOOKMARKS = 1_000
TEXT_CHARACTERS = 120  # of an entry, that a bookmark shows
_LINES_TOKENS = 64  # of the extracts that tell whether a call changed something


@attrs.frozen(kw_only=True)
class Bookmark:
    """A mark of the user's: ``address`` is where its entry stands now, ``text`` how that begins."""

    address: str
    label: str
    text: str


def keep(core: Core, index: str) -> None:
    """Have folds pass a page by; an archived one comes back into view. Nothing happens where the application keeps it."""
    by, state = "application", core.state
    _refuse_others(core, index)
    facts = pages.get_facts(core, index)
    if state.kept.get(index) == by:
        return
    if facts.state is PageState.EVICTED:
        raise PageEvictedError(index)
    page = pages.load(core, index)
    _refuse_beyond_share(core, page, by)
    in_view = page.chapter is state.active
    recalls = None if in_view or facts.last_recall_turn is None else [facts.recall_count, facts.last_recall_turn]
    core.commit([PageKept(page=index, by=by, content=None if in_view else page_value(page), recalls=recalls)])


def unkeep(core: Core, index: str) -> None:
    """Let folds take a page again; nothing happens where nobody keeps it."""
    _refuse_others(core, index)
    pages.get_facts(core, index)
    if index in core.state.kept:
        core.commit([PageKept(page=index, by="")])


def bookmark(core: Core, address: object, label: object) -> None:
    """Give an entry a bookmark, or another label; ``None`` takes it away. With ``keep_bookmarks`` its page in view is kept."""
    if label is not None and not is_line(label):
        raise ArgumentError(argument="label", value=label, wanted="a line of text, or None")
    index, position = pages.entry_address(address)
    _refuse_others(core, index)
    page, state = pages.load(core, index), core.state
    if position > len(page):
        message = f"page {index} has {len(page)} entries, not {position}"
        raise PageNotFoundError(message, index=index)
    seq, said = page.entries[position - 1].node.seq, str(label or "")
    known = state.bookmarks.get(seq)
    if known is None and said and len(state.bookmarks) >= MOST_BOOKMARKS:
        message = f"the session has {MOST_BOOKMARKS} bookmarks, which is the most: take one away with bookmark(address, None)"
        raise PermissionDeniedError(message)
    if said == ("" if known is None else known[1]):
        return
    events: list[Event] = [EntryBookmarked(page=index, entry_seq=seq, label=said, by="application")]
    if said and core.config.active.keep_bookmarks and index in state.active and index not in state.kept:
        events.append(PageKept(page=index, by=RULE))
    core.commit(events)


def bookmarks(core: Core) -> list[Bookmark]:
    """Return the bookmarks in the order of their entries. O(the pages that have one)."""
    marked: dict[str, dict[int, str]] = {}
    for seq, (index, label) in core.state.bookmarks.items():
        marked.setdefault(index, {})[seq] = label
    found = []
    for index in sorted(marked, key=page_number):
        for entry in pages.load(core, index).entries:
            if entry.node.seq in marked[index]:
                text = one_line(entry.text[: 2 * TEXT_CHARACTERS])[:TEXT_CHARACTERS]
                found.append(Bookmark(address=entry.address, label=marked[index][entry.node.seq], text=text))
    return found


def keep_by_rule(core: Core, complete: Sequence[str]) -> None:
    """Keep those of the pages that were complete just now of which the settings ask for it. O(visible) where they do."""
    state, wanted = core.state, core.config.active
    told = [page for page in map(state.active.find_page, complete) if page is not None and page.index not in state.kept]
    events = [PageKept(page=page.index, by=RULE) for page in told if _is_wanted(core, page, wanted)]
    if events:
        core.commit(events)


def _is_wanted(core: Core, page: Page, wanted: Active) -> bool:
    if wanted.keep_bookmarks and any(index == page.index for index, _ in core.state.bookmarks.values()):
        return True
    if wanted.keep_errors and any(failed for _, _, failed in results(page)):
        return True
    if wanted.keep_first_successes and _succeeds_first(core, page):
        return True
    return wanted.keep_decisions and bool(preparing.make_entry(core, page, _LINES_TOKENS).state_changes)


def _succeeds_first(core: Core, page: Page) -> bool:
    """Return whether a tool succeeds in a page whose last result in view before that was an error. O(pages in view up to it)."""
    failing: dict[str, bool] = {}
    for each in core.state.active.pages():
        for _, name, failed in results(each):
            if each is page and failing.get(name) and not failed:
                return True
            failing[name] = failed
        if each is page:
            break
    return False


def results(page: Page) -> Iterator[tuple[MessageNode, str, bool]]:
    """Yield the results in a page, each with the name of its tool, and whether it tells of an error. O(its size)."""
    from memci.archive.summarizers.passage import ERROR_LINE  # noqa: PLC0415 (compiles many patterns)

    names: dict[str, str] = {}
    for node in page.nodes():
        names |= {call.id: call.name for call in node.message.calls}
        if not node.message.answers:
            continue
        for part in parts(node.message.value()):
            if part.kind is PartKind.RESULT:
                flagged = isinstance(part.value, dict) and part.value.get("is_error") is True
                yield node, names.get(part.answers or "", ""), flagged or ERROR_LINE.search(part.text) is not None


def _refuse_others(core: Core, index: str) -> None:
    """Refuse what is no page of the conversation."""
    pages.refuse_root(core, index)
    if is_range(index):
        raise pages.not_found(index)
    if segment_of(index) != USER or core.state.is_made(index):
        message = f"{index} is no page of the conversation: only these fold, and are kept or have bookmarks"
        raise PermissionDeniedError(message)


def _refuse_beyond_share(core: Core, page: Page, by: str) -> None:
    """Refuse a page that has no room in the share of kept pages, beside those that *by* keeps."""
    state, room = core.state, int(planner.keep_tokens(core.state, core.config))
    others = [index for index, keeper in state.kept.items() if keeper == by and index != page.index]
    taken = sum(each.tokens for each in map(state.active.find_page, others) if each is not None)
    if page.tokens + taken > room:
        kept = f"{', '.join(others)} with {taken}" if others else "none"
        message = (
            f"page {page.index} has {page.tokens} tokens; kept pages may have {core.config.active.keep_share:.0%} of the budget, "
            f"{room} tokens, and kept are {kept}: unkeep some, or raise active.keep_share"
        )
        raise PermissionDeniedError(message)
