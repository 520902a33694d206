"""The tools by which a model lists, finds, reads and recalls the pages of its own conversation."""

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypedDict, TypeVar, cast

from memci.attp.host_error import safe_message
from memci.attp.toolbox import Toolbox
from memci.chapters.address import is_root, segment_of
from memci.chapters.page import Page
from memci.engine.commands.recalling import folds_next
from memci.engine.history.state import USER
from memci.engine.reading import listing, pages
from memci.engine.reading.searching import search
from memci.engine.settings.config import MOST
from memci.engine.tools import answer_limit
from memci.errors import ConfigError, ConflictError, InvalidMessageError, MemciError, PageNotFoundError, UnavailableError
from memci.messages import codec
from memci.messages.base64_runs import described_value
from memci.messages.formats.format import get
from memci.messages.parts import PartKind, flat, parts

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from memci.engine.core.core import Core

MOST_CHARACTERS = 8_000
"""The largest range that one reading returns."""

MOST_ROWS = 50
"""The longest list that one call returns."""

_SNIPPET_CHARACTERS = 300
_TITLE_CHARACTERS = 200

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


class Conversation(Protocol):
    """What the tools ask of a session."""

    def recall(self, index: str | int, /) -> Page:
        """Bring a page back into view."""

    def _open(self) -> "AbstractContextManager[Core]":
        """Hold the session's lock, while the session is open."""


class Receipt(TypedDict):
    """What ``recall_page`` answers."""

    index: str
    title: str
    tokens: int
    stands: str


class Reading(TypedDict):
    """A range of a page's text; ``next`` is where the rest begins, -1 at the end."""

    index: str
    text: str
    start: int
    total: int
    next: int


class PageRow(TypedDict):
    """One page in a list."""

    index: str
    title: str
    state: str
    entries: int
    tokens: int


class PageList(TypedDict):
    """A part of the list of pages; ``next`` is where the rest begins, -1 at the end."""

    pages: list[PageRow]
    total: int
    next: int


class Found(TypedDict):
    """One page that a search found, with the entry and the passage that fit best."""

    index: str
    entry: str
    snippet: str
    state: str


class RecallToolbox(Toolbox):
    """The tools of a session, and the pictures that belong to an answer which is a text.

    Each call holds the session's lock. Every answer is bounded, so that the message that holds it is never shown as a stub.
    """

    def __init__(self, session: Conversation, core: "Core") -> None:
        super().__init__()
        self._session = session
        self._core = core
        tools = _Tools(session, core)
        functions: tuple[Callable[..., Any], ...] = (tools.recall_page, tools.read_page, tools.list_pages, tools.search_pages)
        for function in functions:
            self.register(_tool(session, function))

    def handle(self, call: object) -> dict[str, Any]:
        """Carry out a native tool call, and return the message to append, in the format of the call.

        Pictures of a page that was read are parts of it, where the format can carry them in a result. What the model did wrong is
        in the message, with what to do instead.
        """
        match call := codec.dumped(call):
            case {"id": str(identity), "function": Mapping() as function}:
                text, _ = answer(self.call, function.get("name"), _arguments(function.get("arguments")))
                return {"role": "tool", "tool_call_id": identity, "content": text}
            case {"id": str(identity), "type": "tool_use", **given}:
                content, failed = self._content(given.get("name"), given.get("input"), "anthropic")
                error = {"is_error": True} if failed else {}
                block = {"type": "tool_result", "tool_use_id": identity, "content": content, **error}
                return {"role": "user", "content": [block]}
            case {"call_id": str(identity), "type": "function_call", **given}:
                output, _ = self._content(given.get("name"), _arguments(given.get("arguments")), "responses")
                return {"type": "function_call_output", "call_id": identity, "output": output}
        found = "" if isinstance(call, Mapping) else f", not a {type(call).__name__}"
        kinds = "one of OpenAI's tool_calls, a function_call item, or a tool_use block"
        message = f"give a tool call with its id, as a dict or as the SDK's object{found}: {kinds}"
        raise InvalidMessageError(message)

    def pictures(self, tool: str, text: str) -> list[dict[str, Any]]:
        """Return the pictures of what ``read_page`` answered, as the session's messages have them; none for any other tool.

        An entry's pictures go with the range in which it ends. Those for which the answer has no room are left out.
        """
        if tool != "read_page":
            return []
        reading = codec.decode(text.encode())
        begin, end = reading["start"], reading["start"] + len(reading["text"])
        found = []
        entries, alone = _ask(self._session, lambda core: _entries(core, reading["index"]))
        for (_, message), stop in zip(entries, accumulate(map(len, _texts(entries, alone))), strict=False):
            if begin < stop <= end:
                found += [part.value for part in flat(parts(message)) if part.kind is PartKind.IMAGE]
        return answer_limit.pictures(self._core, text, found)

    def _content(self, tool: object, arguments: object, wire_format: str) -> tuple[str | list[dict[str, Any]], bool]:
        """Return the content of a result: the text, or with pictures, where the session's messages have the format too."""
        text, failed = answer(self.call, tool, arguments)
        if failed or self._core.config.format != wire_format:
            return text, failed
        wire = get(wire_format)
        pictures = [picture for picture in map(wire.media, self.pictures(str(tool), text)) if picture is not None]
        content: str | list[dict[str, Any]] = wire.block(text, *pictures).value()["content"]
        return content, False


@functools.cache
def attp_prompt() -> str:
    """Return the ATTP prompt with these tools, which are described alike for every session."""
    from memci.attp.prompt import prompt  # noqa: PLC0415 (for those who speak ATTP)

    return prompt(RecallToolbox(cast("Conversation", None), cast("Core", None)))  # they are described here, and never called


def read_messages(session: Conversation, index: str) -> list[dict[str, Any]]:
    """Return the messages of a page; of a root or a range of pages, one that lists them. O(its size)."""
    return _ask(session, lambda core: pages.load(core, pages.page_index(index)).messages)


def answer(call: Callable[[Any, Mapping[str, object]], Any], name: object, arguments: object) -> tuple[str, bool]:
    """Run a tool by the ``call`` of a toolbox, and return what it answers as JSON, and whether it is an error."""
    if not isinstance(arguments, Mapping):
        return _error("ArgumentError", "the arguments are not a JSON object: write them again"), True
    try:
        return codec.encode(call(name, arguments)).decode(), False
    except MemciError as error:
        return _error(type(error).__name__, safe_message(error)), True


def _error(kind: str, message: str) -> str:
    return codec.encode({"error": {"kind": kind, "message": message}}).decode()


def _arguments(text: object) -> object:
    if not isinstance(text, str):
        return text
    try:
        return codec.decode_foreign((text or "{}").encode("utf-8", "surrogatepass"))
    except ValueError:
        return None


def _ask(session: Conversation, question: "Callable[[Core], _Answer]") -> _Answer:
    """Return what a session answers; it takes in what other processes wrote meanwhile, and is asked again."""
    with session._open() as core:  # noqa: SLF001 (what a model reads of a page is the engine's matter)
        return core.run(question, "retry")


def _tool(session: Conversation, function: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """Return a function as a tool, which is one call of the session."""

    @functools.wraps(function)
    def tool(*positional: _Given.args, **named: _Given.kwargs) -> _Answer:
        try:
            return _ask(session, lambda _: function(*positional, **named))
        except ConflictError as error:
            message = "others wrote to the conversation each time: send the call again"
            raise UnavailableError(message) from error

    return tool


class _Tools:
    """The tools of a session, called under its lock. What a model reads of them is made from their signatures and docstrings."""

    def __init__(self, session: Conversation, core: "Core") -> None:
        self._session = session
        self._core = core

    def recall_page(self, index: str) -> Receipt:
        """Bring an earlier page back into view for some turns; of a range such as usr-20..51, the list of its pages.

        Args:
            index: An index as the contents page shows it, such as usr-12.

        Returns:
            A receipt that says where the page stands in the next message list; a page that is too large has to be read in parts.

        Example:
            recall_page("usr-12")
        """
        before, folding = list(self._core.state.recalled.attachments), folds_next(self._core)
        page = self._session.recall(_index(index))
        where = _stands(self._core, page)
        if gone := [each for each in before if each not in self._core.state.recalled]:
            where += f"; {', '.join(gone)} left the window for it"
        if gone := [each for each in folds_next(self._core) if each not in folding]:
            where += f"; {', '.join(gone)} may leave the window for it"
        facts = pages.read_facts(self._core, page.index)
        title = listing.shown_title(facts.title, _TITLE_CHARACTERS)
        return Receipt(index=page.index, title=title, tokens=facts.tokens if is_root(page.index) else page.tokens, stands=where)

    def read_page(self, index: str, start: int = 0, limit: int = 4000) -> Reading:
        """Read an earlier page, or one entry of it, exactly, without bringing it back into view.

        In the place of a picture's or file's bytes stands what it is.

        Args:
            index: A page such as usr-12, an entry such as usr-12/3, or a range such as usr-20..51.
            start: The character to begin at, from 0.
            limit: How many characters, at most 8000, and fewer where these take over a quarter of the window.

        Returns:
            A range of the text: the messages as JSON. Read on from next, until it is -1: all ranges together are the whole.

        Example:
            read_page("usr-12/3", start=4000)
        """
        text = "".join(_texts(*_entries(self._core, index)))
        if start < 0 or not 0 < limit <= MOST_CHARACTERS:
            message = f"start is from 0, limit from 1 to {MOST_CHARACTERS}"
            raise ConfigError(message)

        def reading(part: str) -> Reading:
            end = start + len(part)
            return Reading(index=index, text=part, start=start, total=len(text), next=end if end < len(text) else -1)

        return reading(answer_limit.part(self._core, text[start : start + limit], reading))

    def list_pages(self, start: int = 0, limit: int = 20) -> PageList:
        """List the pages of this conversation, oldest first.

        Args:
            start: How many pages to pass over.
            limit: How many to list, at most 50, and fewer where these take over a quarter of the window.

        Returns:
            The pages with their titles and sizes in tokens. List on from next, until it is -1.

        Example:
            list_pages(limit=50)
        """
        if not 0 <= start <= MOST or not 0 < limit <= MOST_ROWS:
            message = f"start is from 0, limit from 1 to {MOST_ROWS}"
            raise ConfigError(message)
        known, total = listing.page_range(self._core, start, limit)
        rows = [
            PageRow(
                index=page.index,
                title=listing.shown_title(page.title, _TITLE_CHARACTERS),
                state=str(page.state),
                entries=page.entries,
                tokens=page.tokens,
            )
            for page in known
        ]

        def listed(part: Sequence[PageRow]) -> PageList:
            end = start + len(part)
            return PageList(pages=list(part), total=total, next=end if end < total else -1)

        return listed(answer_limit.rows(self._core, rows, listed, "title"))

    def search_pages(self, query: str, limit: int = 5) -> list[Found]:
        """Search all earlier pages by words, those that are no longer listed too.

        Args:
            query: Words that the page holds.
            limit: How many pages, at most 50, and fewer where these take over a quarter of the window.

        Returns:
            The best pages first, each with its best entry and passage.

        Example:
            search_pages("march invoices", limit=3)
        """
        if not 0 < limit <= MOST_ROWS:
            message = f"limit is from 1 to {MOST_ROWS}"
            raise ConfigError(message)
        hits = search(self._core, query, limit=limit, vectors=self._core.config.search.vectors)
        found = [
            Found(index=hit.index, entry=hit.entry, snippet=hit.snippet[:_SNIPPET_CHARACTERS], state=str(hit.state))
            for hit in hits
        ]
        return answer_limit.rows(self._core, found, list, "snippet")


def _stands(core: "Core", page: Page) -> str:
    """Return where a page stands in the next window, after it was recalled."""
    if page.index in core.state.recalled:
        return "in a block before the newest page"
    if is_root(page.index) and not pages.read_facts(core, page.index).tokens:
        return "nowhere, as there is nothing in it yet"
    settled, read = core.state.settled, f'read it in parts with read_page("{page.index}", start=0)'
    if page.chapter is not None and settled is not None and any(node.seq in settled.stubs for node in page.nodes()):
        return f"where it was said, with a stub for what is too large there: {read}"
    if page.chapter is not None:
        return "in full, where it was said"
    hidden = settled is not None and not settled.contents and segment_of(page.index) == USER
    if is_root(page.index) and not hidden:
        return "at the beginning, as long as there is room for it"
    return f"not in view, as it is too large: {read}"


def _index(text: str) -> str:
    """Return an index or address as a model means it: within brackets, in capitals, or as a bare number too."""
    plain = re.sub(r"\s+", "", text).removeprefix("[").replace("]", "", 1).lower()
    return f"{USER}-{plain}" if plain[:1].isdecimal() else plain


def _entries(core: "Core", index: str) -> tuple[list[tuple[str, dict[str, Any]]], bool]:
    """Return the messages of a page by address, or the one of an address, and whether it is that."""
    name, _, position = _index(index).partition("/")
    messages = pages.load(core, pages.page_index(name)).messages
    entries = [(f"{name}/{place}", message) for place, message in enumerate(messages, start=1)]
    if not position:
        return entries, False
    _, number = pages.entry_address(f"{name}/{position}")
    if number > len(entries):
        message = f"page {name} has {len(entries)} entries: {name}/1 to {name}/{len(entries)}"
        raise PageNotFoundError(message, index=name)
    return [entries[number - 1]], True


def _texts(entries: Sequence[tuple[str, dict[str, Any]]], alone: bool) -> Iterator[str]:  # noqa: FBT001 (what ``_entries`` gives)
    """Yield messages as JSON without the bytes of pictures and files, one after the other, and at last what closes a list."""
    for number, (address, message) in enumerate(entries):
        text = codec.encode(described_value(message, address)).decode()
        yield text if alone else f"{',' if number else '['}{text}"
    if not alone:
        yield "]" if entries else "[]"
