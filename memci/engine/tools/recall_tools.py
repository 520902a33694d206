"""The tools by which a model lists, finds, reads and recalls the pages of its own conversation, and closes a topic of it."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar

from memci.attp.host_error import safe_message
from memci.attp.toolbox import Toolbox
from memci.chapters.address import is_root, range_index, runs, segment_of
from memci.chapters.dates import dates, moment, span
from memci.chapters.page import MessageNode, Page
from memci.engine.commands.closing import close_topic
from memci.engine.commands.recalling import next_steps, recall
from memci.engine.history.state import USER
from memci.engine.reading import pages
from memci.engine.reading.searching import Hit, permitted, search
from memci.engine.settings.setting import MOST
from memci.engine.tree.segments import permits, refuse
from memci.engine.view.planner import next_budget
from memci.errors import ConfigError, ConflictError, InvalidMessageError, MemciError, PageNotFoundError, UnavailableError
from memci.messages import codec
from memci.messages.base64_runs import described_value
from memci.messages.formats.format import get
from memci.messages.parts import PartKind, flat, parts
from memci.messages.tokens.media import image_tokens

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from memci.engine.core.core import Core

_MOST_CHARACTERS = 8_000  # of the largest range that one reading returns
MOST_ROWS = 50  # of the longest list that one call returns
_BUDGET_SHARE = 0.25  # of the budget that one answer may take, so that the message that holds it stands whole in a window
_LEAST_TOKENS = 256  # what an answer may take in any window, with what frames it
_FRAMING_TOKENS = 64  # the role, the call's id, and the keys around an answer in ATTP
_SLACK = 0.95  # what is cut in proportion often fits at once, though keys stay and text is denser in some places
SNIPPET_CHARACTERS = 300
_TITLE_CHARACTERS = 200

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")
_Part = TypeVar("_Part", str, list[Any])


class Receipt(TypedDict):
    """What ``recall_page`` answers."""

    index: str
    title: str
    tokens: int
    stands: str


class Reading(TypedDict):
    """A range of a page's text; ``at`` is when it was said, in UTC, ``next`` where the rest begins, -1 at the end."""

    index: str
    at: str
    text: str
    start: int
    total: int
    next: int


class PageRow(TypedDict):
    """One page in a list; ``at`` is when it was said, in UTC."""

    index: str
    at: str
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
    """One page that a search found, with the entry and the passage that fit best; ``at`` is when the entry was said, in UTC."""

    index: str
    entry: str
    at: str
    snippet: str
    why: str
    state: str


class Closed(TypedDict):
    """What ``close_topic`` answers: the pages of the topic, as a page or a range of pages."""

    index: str
    title: str


class RecallToolbox(Toolbox):
    """The tools of a session, and the pictures that belong to an answer which is a text.

    Each call holds the session's lock. Every answer is bounded, so that the message that holds it is never shown as a stub.
    """

    def __init__(self, opened: "Callable[[], AbstractContextManager[Core]]", core: "Core", *, read_only: bool = False) -> None:
        """Make the tools of the session of *core*; *opened* holds its lock, while the session is open.

        Where the session is *read_only*, there is no tool that closes a topic.
        """
        super().__init__()
        self._opened = opened
        self._core = core
        writing = () if read_only else (self._close_topic,)
        for function in (self._recall_page, self._read_page, self._list_pages, self._search_pages, *writing):
            self.register(self._tool(function), name=function.__name__[1:])

    def handle(self, call: object) -> dict[str, Any]:
        """Carry out a native tool call, and return the message to append, in the format of the call.

        Pictures of a page that was read are parts of it, where the format can carry them in a result. What the model did wrong is
        in the message, with what to do instead.
        """
        match call := codec.dumped(call):
            case {"id": str(identity), "function": Mapping() as function}:
                text, _ = answer(self.call, function.get("name"), read_arguments(function.get("arguments")))
                return {"role": "tool", "tool_call_id": identity, "content": text}
            case {"id": str(identity), "type": "tool_use", **given}:
                content, failed = self._content(given.get("name"), given.get("input"), "anthropic")
                error = {"is_error": True} if failed else {}
                block = {"type": "tool_result", "tool_use_id": identity, "content": content, **error}
                return {"role": "user", "content": [block]}
            case {"call_id": str(identity), "type": "function_call", **given}:
                output, _ = self._content(given.get("name"), read_arguments(given.get("arguments")), "responses")
                return {"type": "function_call_output", "call_id": identity, "output": output}
        found = "" if isinstance(call, Mapping) else f", not a {type(call).__name__}"
        kinds = "one of OpenAI's tool_calls, a function_call item, or a tool_use block"
        message = f"give a tool call with its id, as a dict or as the SDK's object{found}: {kinds}"
        raise InvalidMessageError(message)

    def pictures(self, tool: str, text: str) -> list[dict[str, Any]]:
        """Return the pictures of what ``read_page`` answered, as the session's messages have them; none for any other tool.

        A picture goes with the range in which ends what stands for it. Those for which the answer has no room are left out.
        """
        if tool != "read_page":
            return []
        reading = codec.decode(text.encode())
        name, _, position = plain_index(reading["index"]).partition("/")
        found, start = [], -reading["start"]
        for number, (node, added) in enumerate(
            self._ask(lambda core: page_entries(core, reading["index"])), start=int(position or 1)
        ):
            stop = 0
            for part in flat(parts(node.message.value())):
                if part.kind is PartKind.IMAGE:
                    stand_in = codec.encode(described_value(part.value, f"{name}/{number}")).decode()
                    place = added.find(stand_in, stop)
                    stop = place + len(stand_in) if place >= 0 else len(added)
                    found += [part.value] if 0 < start + stop <= len(reading["text"]) else []
            start += len(added)
        room = answer_tokens(self._core) - self._core.counter.count(text)
        sizes = accumulate(map(image_tokens, found))
        return [picture for picture, tokens in zip(found, sizes, strict=True) if tokens <= room]

    def messages(self, index: str) -> list[dict[str, Any]]:
        """Return the messages of a page; of a root or a range of pages, one that lists them. O(its size)."""

        def read(core: "Core") -> list[dict[str, Any]]:
            refuse(core, "model", "read", name := pages.page_index(index))
            return pages.load(core, name).messages

        return self._ask(read)

    def may_read(self, index: str) -> bool:
        """Return whether the session permits the model to read a page. O(depth)."""
        return self._ask(lambda core: permits(core, "read", index))

    def _ask(self, question: "Callable[[Core], _Answer]") -> _Answer:
        """Return what a session answers; it takes in what other processes wrote meanwhile, and is asked again."""
        with self._opened() as core:
            return core.run(question, "retry")

    def _tool(self, function: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
        """Return a function as a tool, which is one call of the session."""

        @functools.wraps(function)
        def tool(*positional: _Given.args, **named: _Given.kwargs) -> _Answer:
            try:
                return self._ask(lambda _: function(*positional, **named))
            except ConflictError as error:
                message = "others wrote to the conversation each time: send the call again"
                raise UnavailableError(message) from error

        return tool

    def _content(self, tool: object, arguments: object, wire_format: str) -> tuple[str | list[dict[str, Any]], bool]:
        """Return the content of a result: the text, or with pictures, where the session's messages have the format too."""
        text, failed = answer(self.call, tool, arguments)
        if failed or self._core.config.format != wire_format:
            return text, failed
        wire = get(wire_format)
        pictures = [picture for picture in map(wire.media, self.pictures(str(tool), text)) if picture is not None]
        content: str | list[dict[str, Any]] = wire.block(text, *pictures).value()["content"]
        return content, False

    def _attached(self, attach: Callable[[], Page]) -> Receipt:
        """Attach a page, and return the receipt of it."""
        before = list(self._core.state.recalled.attachments)
        page = attach()
        where = _stands(self._core, page)
        if gone := [each for each in before if each not in self._core.state.recalled]:
            where += f"; {', '.join(gone)} left the window for it"
        if folding := next_steps(self._core)[0]:
            where += f"; {', '.join(runs(folding))} may leave the window with this answer"
        facts = pages.read_facts(self._core, page.index)
        title = pages.shown_title(facts.title, _TITLE_CHARACTERS)
        return Receipt(index=page.index, title=title, tokens=facts.tokens if is_root(page.index) else page.tokens, stands=where)

    # The tools, called under the session's lock. What a model reads of them is made from their signatures and docstrings.

    def _recall_page(self, index: str) -> Receipt:
        """Bring an earlier page back into view for some turns; of a range such as usr-20..51, the list of its pages.

        Args:
            index: An index as the contents page shows it, such as usr-12.

        Returns:
            A receipt that says where the page stands in the next message list; a page that is too large has to be read in parts.

        Example:
            recall_page("usr-12")
        """
        name = pages.page_index(plain_index(index))
        refuse(self._core, "model", "recall", name)
        return self._attached(lambda: pages.read(self._core, name) if is_root(name) else recall(self._core, name))

    def _read_page(self, index: str, start: int = 0, limit: int = 4000) -> Reading:
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
        entries = [(node.at, text) for node, text in page_entries(self._core, index)]
        return read_range(self._core, index, entries, start, limit)

    def _list_pages(self, start: int = 0, limit: int = 20) -> PageList:
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
        known, total = pages.page_range(self._core, start, limit)
        readable = [page for page in known if permits(self._core, "read", page.index)]
        rows = [
            PageRow(
                index=page.index,
                at=dates(page.first_at, page.last_at),
                title=pages.shown_title(page.title, _TITLE_CHARACTERS),
                state=str(page.state),
                entries=page.entries,
                tokens=page.tokens,
            )
            for page in readable
        ]

        def listed(part: list[PageRow]) -> PageList:
            end = start + (known.index(readable[len(part)]) if len(part) < len(rows) else len(known))
            return PageList(pages=part, total=total, next=end if end < total else -1)

        return fitted_rows(self._core, rows, listed, "title")

    def _search_pages(self, query: str, limit: int = 5, since: str = "", until: str = "") -> list[Found]:
        """Search all earlier pages by words, those that are no longer listed too.

        Args:
            query: Words that the page holds.
            limit: How many pages, at most 50, and fewer where these take over a quarter of the window.
            since: The first day, such as 2026-03-01, or time in UTC.
            until: The last.

        Returns:
            The best pages first, each with its best entry and passage, and why it was found.

        Example:
            search_pages("march invoices", limit=3)
        """
        check_rows(limit)
        core = self._core
        hits = search(
            core,
            query,
            limit=limit,
            since=since or None,
            until=until or None,
            where=permitted(core),
            vectors=core.config.search.vectors,
        )
        return fitted_rows(self._core, list(map(shown_hit, hits)), list[Found], "snippet")

    def _close_topic(self, title: str) -> Closed:
        """Close a topic that is done with: all pages but the open one leave the view, listed under a title.

        Args:
            title: What it was about, in one line.

        Returns:
            The index of its pages.

        Example:
            close_topic("Export of the March invoices")
        """
        refuse(self._core, "model", "close", f"{USER}-0")
        before = self._core.state.topic
        close_topic(self._core, title, before)
        first, last = before + 1, self._core.state.topic
        return Closed(index=f"{USER}-{last}" if first == last else range_index(USER, first, last), title=title.strip())


def shown_hit(hit: Hit) -> Found:
    """Return what ``search_pages`` answers for a hit."""
    at, snippet = moment(hit.at or ""), hit.snippet[:SNIPPET_CHARACTERS]
    return Found(index=hit.index, entry=hit.entry, at=at, snippet=snippet, why=hit.why, state=str(hit.state))


def answer(call: Callable[[Any, Mapping[str, object]], Any], name: object, arguments: object) -> tuple[str, bool]:
    """Run a tool by the ``call`` of a toolbox, and return what it answers as JSON, and whether it is an error."""
    kind, message = "ArgumentError", "the arguments are not a JSON object: write them again"
    if isinstance(arguments, Mapping):
        try:
            return codec.encode(call(name, arguments)).decode(), False
        except MemciError as error:
            kind, message = type(error).__name__, safe_message(error)
    return codec.encode({"error": {"kind": kind, "message": message}}).decode(), True


def read_arguments(text: object) -> object:
    """Return the arguments that a model wrote as JSON; ``None`` where it is none, and what is no text as it is."""
    if not isinstance(text, str):
        return text
    try:
        return codec.decode_foreign((text or "{}").encode("utf-8", "surrogatepass"))
    except ValueError:
        return None


def answer_tokens(core: "Core") -> int:
    """Return how much a tool may answer: a quarter of the last window's budget, before the first of the configured one."""
    share = int(_BUDGET_SHARE * next_budget(core.state, core.config) / core.state.scale)
    return max(_LEAST_TOKENS, share) - _FRAMING_TOKENS


def _fitted(core: "Core", found: _Part, made: Callable[[_Part], _Answer]) -> _Answer:
    """Return the answer made of as much of the beginning of a text or a list as there is room for, by a few counts of it."""
    room = answer_tokens(core)
    while len(found) > 1:
        written = codec.encode(made(found)).decode().replace("\x7f", "\\u007f")  # which TOML has to escape, and JSON has not
        if (tokens := core.counter.count(written)) <= room:
            break
        found = found[: max(1, int(_SLACK * len(found) * room / tokens))]
    return made(found)


def check_rows(limit: int) -> None:
    """Raise ``ConfigError`` unless a list may have up to this number of rows."""
    if not 0 < limit <= MOST_ROWS:
        message = f"limit is from 1 to {MOST_ROWS}"
        raise ConfigError(message)


def read_range(core: "Core", index: str, entries: Sequence[tuple[str, str]], start: int, limit: int) -> Reading:
    """Return a range of the text of a page's entries, each given by its time and text, as far as the answer has room for it."""
    if start < 0 or not 0 < limit <= _MOST_CHARACTERS:
        message = f"start is from 0, limit from 1 to {_MOST_CHARACTERS}"
        raise ConfigError(message)
    text = "".join(text for _, text in entries) or "[]"
    first_at, last_at = span(at for at, _ in entries)
    at = dates(first_at, last_at) if entries[1:] else moment(first_at)

    def reading(part: str) -> Reading:
        end = start + len(part)
        return Reading(index=index, at=at, text=part, start=start, total=len(text), next=end if end < len(text) else -1)

    return _fitted(core, text[start : start + limit], reading)


def fitted_rows(core: "Core", found: list[Any], made: Callable[[list[Any]], _Answer], key: str) -> _Answer:
    """Return the answer made of as many of the first rows as there is room for; one at least, if need be cut in *key*."""

    def cut(rows: list[Any]) -> _Answer:
        return made(rows) if len(rows) != 1 else _fitted(core, str(rows[0][key]), lambda text: made([{**rows[0], key: text}]))

    return _fitted(core, found, cut)


def _stands(core: "Core", page: Page) -> str:
    """Return where a page stands in the next window, after it was recalled."""
    if page.index in core.state.recalled:
        return "in a block before the newest page"
    if is_root(page.index) and not pages.read_facts(core, page.index).tokens:
        return "nowhere, as there is nothing in it yet"
    settled, read = core.state.settled, f'read it in parts with read_page("{page.index}", start=0)'
    stubs = settled.stubs if settled is not None else ()
    in_part = any(node.trimmed or node.seq in stubs for node in page.nodes()) or page.index in next_steps(core)[1]
    if page.chapter is not None and in_part:
        return f"where it was said, with a stub for what is too large there: {read}"
    if page.chapter is not None:
        return "in full, where it was said"
    hidden = settled is not None and not settled.contents and segment_of(page.index) == USER
    if is_root(page.index) and not hidden:
        return "at the beginning, as long as there is room for it"
    return f"not in view, as it is too large: {read}"


def plain_index(text: str) -> str:
    """Return an index or address as a model means it: within brackets, in capitals, or as a bare number too."""
    plain = re.sub(r"\s+", "", text).removeprefix("[").replace("]", "", 1).lower()
    return f"{USER}-{plain}" if plain[:1].isdecimal() else plain


def page_entries(core: "Core", index: str) -> list[tuple[MessageNode, str]]:
    """Return the nodes of a page, or the one of an address, each with what it adds to the text that is read."""
    name, _, position = plain_index(index).partition("/")
    refuse(core, "model", "read", page := pages.page_index(name))
    nodes = list(pages.load(core, page).nodes())

    def text(place: int) -> str:
        return codec.encode(described_value(nodes[place].message.value(), f"{name}/{place + 1}")).decode()

    if not position:
        last = len(nodes) - 1
        return [(each, f"{',' if place else '['}{text(place)}{']' * (place == last)}") for place, each in enumerate(nodes)]
    _, number = pages.entry_address(f"{name}/{position}")
    if number > len(nodes):
        message = f"page {name} has {len(nodes)} entries: {name}/1 to {name}/{len(nodes)}"
        raise PageNotFoundError(message, index=name)
    return [(nodes[number - 1], text(number - 1))]
