"""The tools by which a model works in the page tree, where segments permit it: to note, group, move, remove, open and close."""

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypedDict

from memci.archive.contents.tree import Segment, Tree
from memci.attp.toolbox import Tool, Toolbox
from memci.chapters.address import is_range, last_number, page_number, segment_of
from memci.engine.history.state import USER
from memci.engine.reading import pages
from memci.engine.tools.recall_tools import MOST_ROWS, RecallToolbox, Receipt, answer_tokens, plain_index
from memci.engine.tools.session_tools import SESSION_TOOLS, OtherSessions, SessionTools
from memci.engine.tree import making, notes, opening
from memci.engine.tree.segments import allows
from memci.errors import ArgumentError, ToolNotFoundError
from memci.messages.tokens.message_tokens import count_tools

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from memci.engine.core.core import Core

DESCRIPTION_CHARACTERS = 400  # of what a model says of a note or a directory, at most
_TOKEN_CHARACTERS = 32  # more than a token has in any text that says something

_OPENING: Final = ("open_page", "close_page")
EDITING: Final = ("write_note", "group_pages", "move_page", "remove_page")
_LEFT_OUT: Final = ("recall_page", "list_pages", "close_topic")  # in a small window, of which the schemas take a large part
_UNCHANGED: Final = Tree().segments


class Edited(TypedDict):
    """What an edit answers: the page, the directory that lists it then, and when that shows."""

    index: str
    parent: str
    shows: str


def permitted(segments: Mapping[str, Segment]) -> tuple[str, ...]:
    """Return the tools of the page tree that some segment permits."""
    opens = any(allows(segment, "open") for segment in segments.values())
    edits = any(allows(segment, "write") for segment in segments.values())
    return (*(EDITING if edits else ()), *(_OPENING if opens else ()))


def offered(segments: Mapping[str, Segment]) -> tuple[str, ...]:
    """Return the tools of the page tree that are offered unasked: what is permitted, once the application set a segment."""
    return () if segments == _UNCHANGED else permitted(segments)


class TreeToolbox(RecallToolbox):
    """All tools of a session: those that find and recall pages, and those of the page tree that its segments permit.

    Which there are depends on the segments alone, not on what is in the tree, so that the beginning of a prompt stays as it is.
    """

    def __init__(
        self,
        opened: "Callable[[], AbstractContextManager[Core]]",
        core: "Core",
        *,
        read_only: bool = False,
        others: OtherSessions | None = None,
    ) -> None:
        """Make the tools of the session of *core*, as ``RecallToolbox`` does; where it is *read_only*, none that edits.

        *others* are the sessions that it may search where ``recall.search_sessions`` is set; ``None`` for none.
        """
        self._tree = Toolbox()
        self._sessions = SessionTools(self._ask, others).toolbox
        self._is_read_only = read_only
        self._chosen: frozenset[str] | None = None
        super().__init__(opened, core, read_only=read_only)
        for function in (
            self._write_note,
            self._group_pages,
            self._move_page,
            self._remove_page,
            self._open_page,
            self._close_page,
        ):
            self._tree.register(self._tool(function), name=function.__name__[1:])

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools offered now, by name: those that recall, the application's, those of the page tree and of other sessions."""
        chosen = self._chosen
        is_described = self._core is None  # by the prompt of no session
        names = () if is_described else self._conditional(asked=chosen is not None)
        tools = {name: tool for name, tool in self.known.items() if name in self._tools or name in names}
        return MappingProxyType({name: tool for name, tool in tools.items() if chosen is None or name in chosen})

    def _conditional(self, *, asked: bool) -> tuple[str, ...]:
        """Return the tools that segments and settings permit now."""
        edits = () if self._is_read_only else self._permitted(asked=asked)
        return (*edits, *SESSION_TOOLS) if self._core.config.recall.search_sessions else edits

    def _permitted(self, *, asked: bool) -> tuple[str, ...]:
        """Return the tools of the page tree that may be had, or those that are offered unasked."""
        segments = dict(self._core.state.tree.segments)
        return permitted(segments) if asked else offered(segments)

    @property
    def known(self) -> Mapping[str, Tool]:
        """All tools by name, whether they are offered or not; a tool that the application registered comes before another."""
        others = {**self._tree.tools, **self._sessions.tools}
        return {**self._tools, **{name: tool for name, tool in others.items() if name not in self._tools}}

    def offer(self, names: Collection[str] | None = None) -> None:
        """Offer these tools from now on and no others, as far as segments permit them; ``None`` for all that are offered unasked.

        What is not offered is in no schema and no prompt of this toolbox, and cannot be called by it: it is for one handle on the
        session, and not kept. ``open_page`` and ``close_page`` can be had so where nothing was set; ``search_sessions`` and
        ``read_session_page`` only where ``recall.search_sessions`` is. ``ToolNotFoundError`` for the name of no tool,
        ``ArgumentError`` for a single text.
        """
        if names is not None and (isinstance(names, str) or not isinstance(names, Collection)):
            raise ArgumentError(argument="names", value=names, wanted="a list of the names of tools, or None")
        for name in names or ():
            if name not in self.known:
                from difflib import get_close_matches  # noqa: PLC0415 (needed for this error alone)

                raise ToolNotFoundError(name, nearest=get_close_matches(str(name), self.known))
        self._chosen = None if names is None else frozenset(names)

    @functools.cached_property
    def _has_few(self) -> bool:
        """Whether few are declared, for as long as this handle is there: their schemas begin a prompt."""
        return self._core.config.has_few_tools

    def _declared(self, schema: str) -> list[dict[str, Any]]:
        """Return each tool with its schema. In a small window native ones are two, and the others work where they are called."""
        declared = super()._declared(schema)
        is_small = self._has_few and self._chosen is None and schema != "inputSchema"
        return [tool for tool in declared if not is_small or tool["name"] not in _LEFT_OUT]

    def tokens(self, *names: str) -> int:
        """Return what the schemas of these tools take of a window, or of all that are offered, by the session's counter.

        ``ToolNotFoundError`` for a tool that is not offered.
        """
        wanted = {self.get(name).name for name in names} or set(self.tools)
        declared: list[dict[str, Any]] = getattr(self, self._core.config.format)()
        return count_tools([tool for tool in declared if tool.get("function", tool)["name"] in wanted], self._core.counter)

    # The tools, called under the session's lock. What a model reads of them is made from their signatures and docstrings.

    def _write_note(self, name: str, description: str, detail: str, parent: str = "") -> Edited:
        """Write a note that is kept: a lesson, a decision, a fact to remember.

        Args:
            name: What it is called, in one line of at most 120 characters.
            description: What it is about, in at most 400 characters: the contents page shows this much of it.
            detail: The note itself.
            parent: The directory to list it in, such as usr-17; where you may write, if it is left out.

        Returns:
            A receipt with its index, by which open_page and read_page show all of it.

        Example:
            write_note("Releases", "How releases are made", "Run the tests, then tag. Never on a Friday.")
        """
        core = self._core
        room = answer_tokens(core)
        if len(detail) > _TOKEN_CHARACTERS * room or core.counter.count(detail) > room:
            wanted = f"a text of at most {room} tokens, or write several notes"
            raise ArgumentError(argument="detail", value=detail, wanted=wanted)
        index = notes.write_note(core, name, _checked(description), detail, self._parent(parent), by="model")
        return self._edited(index)

    def _group_pages(self, name: str, description: str, pages: list[str], parent: str = "") -> Edited:
        """Make a directory of pages, which stands in the contents page in their place.

        Args:
            name: What it is called, in one line of at most 120 characters.
            description: What its pages have in common, in at most 400 characters.
            pages: The indexes of pages, notes and directories, at most 50.
            parent: The directory to list it in; if it is left out, the root of the first page.

        Returns:
            A receipt with its index, by which open_page and read_page list what is in it.

        Example:
            group_pages("March invoices", "Export and corrections", ["usr-12", "usr-14", "note-2"])
        """
        children = self._pages(pages)
        under = self._parent(parent, children[:1])
        return self._edited(making.make_directory(self._core, name, _checked(description), under, children, by="model"))

    def _move_page(self, index: str, target: str) -> Edited:
        """List a page, a note or a directory in another directory, with all that is in it.

        Args:
            index: What is moved, such as usr-12.
            target: A directory such as usr-17, or a root such as usr-0.

        Returns:
            A receipt.

        Example:
            move_page("usr-12", "usr-17")
        """
        moved = _page(index)
        making.move(self._core, moved, _page(target), by="model")
        return self._edited(moved)

    def _remove_page(self, index: str) -> Edited:
        """Take a page, a note or a directory out of the contents page, with all that is in it; search_pages still finds it.

        Args:
            index: What is removed, such as usr-12.

        Returns:
            A receipt.

        Example:
            remove_page("usr-12")
        """
        opening.remove(self._core, removed := _page(index), by="model")
        return Edited(index=removed, parent="", shows=_with_next_fold("its line leaves the contents page"))

    def _open_page(self, index: str) -> Receipt:
        """Open a page or a note in full, or the list of what a directory holds: it stays in view until you close it.

        Args:
            index: An index as the contents page shows it, such as note-3 or usr-17.

        Returns:
            A receipt that says where it stands in the next message list.

        Example:
            open_page("note-3")
        """
        return self._attached(lambda: opening.expand(self._core, _page(index), by="model"))

    def _close_page(self, index: str) -> Edited:
        """Close what open_page opened or recall_page brought back, so that there is room for other things.

        Args:
            index: What is closed, such as note-3.

        Returns:
            A receipt.

        Example:
            close_page("note-3")
        """
        opening.hide(self._core, closed := _page(index), by="model")
        return self._edited(closed, "it is not in view in the next message list; open_page brings it back")

    def _edited(self, index: str, shows: str = "") -> Edited:
        found = making.parent(self._core, index)
        told = shows or _with_next_fold("the contents page shows it there")
        return Edited(index=index, parent="" if found is None else found.index, shows=told)

    def _parent(self, given: str, children: Iterable[str] = ()) -> str:
        """Return where something new is listed: as a model says, or at the root of its first page, or where it may write."""
        if given.strip():
            return _page(given)
        tree = self._core.state.tree
        first = next((tree.segment(each).name for each in children if tree.find(each) or segment_of(each) in tree.segments), "")
        roots = [segment.name for segment in tree.segments.values() if allows(segment, "write")]
        return f"{first or (USER if USER in roots else next(iter(roots), USER))}-0"

    def _pages(self, given: list[str]) -> list[str]:
        """Return the pages that a model names, those of ranges one by one."""
        found: list[str] = []
        for index in given[: MOST_ROWS + 1]:
            name = _page(index)
            if last_number(name) - page_number(name) > 2 * MOST_ROWS:  # more than one can be asked to look through
                found += [name] * (MOST_ROWS + 1)
            else:
                found += [facts.index for facts in pages.read(self._core, name).pages] if is_range(name) else [name]
        if not 0 < len(found) <= MOST_ROWS:
            raise ArgumentError(argument="pages", value=given, wanted=f"1 to {MOST_ROWS} pages, or name a directory of them")
        return list(dict.fromkeys(found))


@functools.cache
def _attp_prompt(names: Collection[str]) -> str:
    from memci.attp.prompt import prompt  # noqa: PLC0415 (for those who speak ATTP)

    nobody: Any = None
    toolbox, described = TreeToolbox(nobody, nobody), Toolbox()
    for tool in toolbox.known.values():
        if tool.name in toolbox.tools or tool.name in names:
            described.register(tool.function, name=tool.name)  # they are described here, and never called
    return prompt(described)


def attp_prompt(segments: Mapping[str, Segment] = _UNCHANGED, *, other_sessions: bool = False) -> str:
    """Return the ATTP prompt with the tools offered for these segments, and those over *other_sessions* where these are set."""
    return _attp_prompt((*offered(segments), *(SESSION_TOOLS if other_sessions else ())))


def _page(index: str) -> str:
    return pages.page_index(plain_index(index))


def _with_next_fold(told: str) -> str:
    return f"{told} from the next fold on; until then it stays as it is"


def _checked(description: str) -> str:
    if len(description) > DESCRIPTION_CHARACTERS:
        wanted = f"at most {DESCRIPTION_CHARACTERS} characters, and the rest as a note"
        raise ArgumentError(argument="description", value=description, wanted=wanted)
    return description
