"""Pages of the system part that stand behind a line until they are asked for."""

from memci.archive.contents.contents_page import one_line
from memci.chapters.page import Page
from memci.engine.core.core import Core
from memci.engine.history.events import PagesFaded
from memci.engine.history.state import line_message
from memci.engine.history.tree_events import SystemHidden, SystemShown
from memci.engine.reading import pages
from memci.engine.tree.segments import By
from memci.errors import PermissionDeniedError
from memci.messages.parts import text_of


def hide(core: Core, index: str, *, by: By) -> None:
    """Put a page of the system part behind its line, as its name is now; one that was opened closes, and stays there."""
    page = core.state.system.find_page(index)
    if page is None:
        raise pages.not_found(index)
    if index in core.state.recalled:
        core.commit([PagesFaded(pages=[index], reason="closed", by=by)])
        return
    if by == "model":
        message = f"page {index} is a part of the system prompt, which only the application hides: leave it as it is"
        raise PermissionDeniedError(message)
    line = line_message(core.state.wire, page, _line(core, page))
    known = core.state.hidden.get(index)
    if known is None or known.message.raw != line.raw:
        core.commit([SystemHidden(page=index, line=_line(core, page), tokens=core.count(line), by=by)])


def show(core: Core, index: str, *, by: By) -> None:
    """Put a page of the system part in its place again; nothing happens to one that is there."""
    if core.state.system.find_page(index) is None:
        raise pages.not_found(index)
    faded = [index] if index in core.state.recalled else []
    if index in core.state.hidden:
        events = [PagesFaded(pages=faded, reason="restored", by=by)] if faded else []
        core.commit([*events, SystemShown(page=index, by=by)])


def _line(core: Core, page: Page) -> str:
    """Return the line of a page: its name, or its first words, its size, how it is shown, and its description."""
    name, description = core.state.system_names.get(page.index, ("", ""))
    said = " ".join(text_of(node.message.value()) for node in page.nodes())
    shows = "" if core.config.recall.protocol == "none" else f": recall_page({page.index!r}) shows it"
    head = f"[{page.index}] {name or pages.shown_title(said)} · {page.tokens:,} tokens · hidden{shows}"
    return f"{head}\n  {one_line(description)}" if description else head
