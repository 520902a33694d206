"""The tools by which a model lists, finds, reads and recalls the pages of its own conversation."""

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypedDict, TypeVar, cast

from memci.archive.catalogue.page_facts import PageFacts
from memci.attp.host_error import safe_message
from memci.attp.toolbox import Toolbox
from memci.chapters.address import is_root, segment_of
from memci.chapters.page import Page
from memci.engine.commands.recalling import folds_next
from memci.engine.core import conflict
from memci.engine.history.state import USER
from memci.engine.reading import pages
from memci.engine.reading.listing import shown_title
from memci.engine.reading.searching import Hit
from memci.engine.settings.config_checks import MOST
from memci.engine.tools.answer_limit import answer_limit
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
    """What the tools ask of a session, each call under its lock."""

    def recall(self, index: str | int, /) -> Page:
        """Bring a page back into view."""

    def facts(self, index: str | int, /) -> PageFacts:
        """Return what is known of a page."""

    def page_range(self, start: int, limit: int, /) -> tuple[list[PageFacts], int]:
        """Return a part of the list of pages, and how many there are."""

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """Return the pages that fit a query, the best first."""

    def _open(self) -> "AbstractContextManager[Core]":
        """Hold the session's lock."""


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
    """The tools of a session, and the pictures that belong to an answer which is a text."""

    def __init__(self, session: Conversation, core: "Core") -> None:
        super().__init__()
        self._session = session
        self._core = core

    @property
    def format(self) -> str:
        """The wire format of the session."""
        return self._core.config.format

    def pictures(self, tool: str, text: str) -> list[dict[str, Any]]:
        """Return the pictures of what ``read_page`` answered, as the session's messages have them; none for any other tool.

        An entry's pictures go with the range in which it ends. Those for which the answer has no room are left out.

        Args:
            tool: Name of the tool.
            text: What it answered, as JSON.
        """
        if tool != "read_page":
            return []
        reading = codec.decode(text.encode())
        begin, end = reading["start"], reading["start"] + len(reading["text"])
        found = []
        entries, alone = _entries(self._session, reading["index"])
        for (_, message), stop in zip(entries, accumulate(map(len, _texts(entries, alone))), strict=False):
            if begin < stop <= end:
                found += [part.value for part in flat(parts(message)) if part.kind is PartKind.IMAGE]
        return answer_limit(self._core).pictures(text, found)


def make_toolbox(session: Conversation, core: "Core") -> RecallToolbox:
    """Return the tools of a session. Each call is one call of the session, under its lock.

    Every answer is bounded, so that the message that holds it is never shown as a stub.
    """
    toolbox = RecallToolbox(session, core)
    functions = (_recall_page(session, core), _read_page(session, core), _list_pages(session, core), _search_pages(session, core))
    for function in functions:
        toolbox.register(_retried(core, function))
    return toolbox


@functools.cache
def attp_prompt() -> str:
    """Return the ATTP prompt with these tools, which are described alike for every session."""
    from memci.attp.prompt import prompt  # noqa: PLC0415 (for those who speak ATTP)

    return prompt(make_toolbox(cast("Conversation", None), cast("Core", None)))  # they are described here, and never called


def _retried(core: "Core", function: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """Return a tool that takes in what other processes wrote, where they wrote meanwhile, and does its work again."""

    @functools.wraps(function)
    def tool(*positional: _Given.args, **named: _Given.kwargs) -> _Answer:
        try:
            with core.lock:
                return conflict.run(core, lambda _: function(*positional, **named), "retry")
        except ConflictError as error:
            message = "others wrote to the conversation each time: send the call again"
            raise UnavailableError(message) from error

    return tool


def handle_tool_call(toolbox: RecallToolbox, call: object) -> dict[str, Any]:
    """Carry out a native tool call, and return the message to append, in the format of the call.

    Pictures of a page that was read are parts of it, where the format can carry them in a result.

    What the model did wrong is in the message, with what to do instead.

    Raises:
        InvalidMessageError: It is no tool call of any format.
    """
    call = codec.dumped(call)
    if not isinstance(call, Mapping):
        message = f"give a tool call as a dict with its id, or as the SDK's object, not a {type(call).__name__}"
        raise InvalidMessageError(message)
    function, identity = call.get("function"), call.get("id")
    if isinstance(function, Mapping) and isinstance(identity, str):
        text, _ = answer(toolbox.call, function.get("name"), _arguments(function.get("arguments")))
        return {"role": "tool", "tool_call_id": identity, "content": text}
    if call.get("type") == "tool_use" and isinstance(identity, str):
        text, failed = answer(toolbox.call, call.get("name"), call.get("input"))
        content = text if failed else _with_pictures(toolbox, str(call.get("name")), text, "anthropic")
        block = {"type": "tool_result", "tool_use_id": identity, "content": content, **({"is_error": True} if failed else {})}
        return {"role": "user", "content": [block]}
    if call.get("type") == "function_call" and isinstance(call.get("call_id"), str):
        text, failed = answer(toolbox.call, call.get("name"), _arguments(call.get("arguments")))
        output = text if failed else _with_pictures(toolbox, str(call.get("name")), text, "responses")
        return {"type": "function_call_output", "call_id": call["call_id"], "output": output}
    message = "give a tool call with its id: one of OpenAI's tool_calls, a function_call item, or a tool_use block"
    raise InvalidMessageError(message)


def _with_pictures(toolbox: RecallToolbox, tool: str, text: str, wire_format: str) -> str | list[dict[str, Any]]:
    """Return the content of a result in a format: the text alone, or with pictures, where the session's messages have it too."""
    if toolbox.format != wire_format:
        return text
    wire = get(wire_format)
    pictures = [picture for picture in map(wire.media, toolbox.pictures(tool, text)) if picture is not None]
    content: str | list[dict[str, Any]] = wire.block(text, *pictures).value()["content"]
    return content


def _arguments(text: object) -> object:
    if not isinstance(text, str):
        return text
    try:
        return codec.decode_foreign((text or "{}").encode("utf-8", "surrogatepass"))
    except ValueError:
        return None


def answer(call: Callable[[Any, Mapping[str, object]], Any], name: object, arguments: object) -> tuple[str, bool]:
    """Run a tool, and return what it answers as JSON, and whether it is an error.

    Args:
        call: The ``call`` of a session's toolbox.
        name: The tool's name, as the model wrote it; anything but text is an error.
        arguments: As the model wrote them; anything but a mapping is an error.
    """
    if not isinstance(arguments, Mapping):
        return _error("ArgumentError", "the arguments are not a JSON object: write them again"), True
    try:
        return codec.encode(call(name, arguments)).decode(), False
    except MemciError as error:
        return _error(type(error).__name__, safe_message(error)), True


def _error(kind: str, message: str) -> str:
    return codec.encode({"error": {"kind": kind, "message": message}}).decode()


def _recall_page(session: Conversation, core: "Core") -> Callable[..., Receipt]:
    def recall_page(index: str) -> Receipt:
        """Bring an earlier page back into view for some turns; of a range such as usr-20..51, the list of its pages.

        Args:
            index: An index as the contents page shows it, such as usr-12.

        Returns:
            A receipt that says where the page stands in the next message list; a page that is too large has to be read in parts.

        Example:
            recall_page("usr-12")
        """
        before, folding = list(core.state.recalled.attachments), folds_next(core)
        page = session.recall(_index(index))
        where = _stands(core, page)
        if gone := [each for each in before if each not in core.state.recalled]:
            where += f"; {', '.join(gone)} left the window for it"
        if gone := [each for each in folds_next(core) if each not in folding]:
            where += f"; {', '.join(gone)} may leave the window for it"
        facts = session.facts(page.index)
        title = shown_title(facts.title, _TITLE_CHARACTERS)
        return Receipt(index=page.index, title=title, tokens=facts.tokens if is_root(page.index) else page.tokens, stands=where)

    return recall_page


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


def read_messages(session: Conversation, index: str) -> list[dict[str, Any]]:
    """Return the messages of a page; of a root or a range of pages, one that lists them. O(its size).

    Raises:
        PageNotFoundError: No page has this index.
    """
    with session._open() as core:  # noqa: SLF001 (what a model reads of a page is the engine's matter)
        return pages.load(core, pages.page_index(index)).messages


def _read_page(session: Conversation, core: "Core") -> Callable[..., Reading]:
    def read_page(index: str, start: int = 0, limit: int = 4000) -> Reading:
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
        text = "".join(_texts(*_entries(session, index)))
        if start < 0 or not 0 < limit <= MOST_CHARACTERS:
            message = f"start is from 0, limit from 1 to {MOST_CHARACTERS}"
            raise ConfigError(message)

        def reading(part: str) -> Reading:
            end = start + len(part)
            return Reading(index=index, text=part, start=start, total=len(text), next=end if end < len(text) else -1)

        return reading(answer_limit(core).part(text[start : start + limit], reading))

    return read_page


def _entries(session: Conversation, index: str) -> tuple[list[tuple[str, dict[str, Any]]], bool]:
    """Return the messages of a page by address, or the one of an address, and whether it is that."""
    name, _, position = _index(index).partition("/")
    entries = [(f"{name}/{place}", message) for place, message in enumerate(read_messages(session, name), start=1)]
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


def _list_pages(session: Conversation, core: "Core") -> Callable[..., PageList]:
    def list_pages(start: int = 0, limit: int = 20) -> PageList:
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
        known, total = session.page_range(start, limit)
        rows = [
            PageRow(
                index=page.index,
                title=shown_title(page.title, _TITLE_CHARACTERS),
                state=str(page.state),
                entries=page.entries,
                tokens=page.tokens,
            )
            for page in known
        ]

        def listing(part: Sequence[PageRow]) -> PageList:
            end = start + len(part)
            return PageList(pages=list(part), total=total, next=end if end < total else -1)

        return listing(answer_limit(core).rows(rows, listing, "title"))

    return list_pages


def _search_pages(session: Conversation, core: "Core") -> Callable[..., list[Found]]:
    def search_pages(query: str, limit: int = 5) -> list[Found]:
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
        found = [
            Found(index=hit.index, entry=hit.entry, snippet=hit.snippet[:_SNIPPET_CHARACTERS], state=str(hit.state))
            for hit in session.search(query, limit=limit)
        ]
        return answer_limit(core).rows(found, list, "snippet")

    return search_pages
