"""What is left of events when a page is erased: the same events, without what the page held. Pure functions on JSON values.

A page's content stands in the event that brought a message in, and in all that was made of it: contents entries, directories
that took words from it, recalled copies, pages that came back into view, states that were kept.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from memci.archive.contents import shown_words
from memci.archive.eviction import page_number
from memci.archive.stores.contract import Record
from memci.engine import blocks
from memci.engine.listing import shown_title
from memci.engine.page_codec import file_name, page_from_value
from memci.engine.page_trace import PageTrace
from memci.messages.formats.format import Format
from memci.messages.formats.reading import ERASED
from memci.messages.message import Message

_HEAD = re.compile(r"\[([a-z][a-z0-9_]*-[0-9]+)\] ")
_GROUP = re.compile(r"([a-z][a-z0-9_]*)-([0-9]+)\.\.\1-([0-9]+) · [0-9]+ pages · [0-9.]+k? tokens: ")
_NO_TITLES = "…"
_LISTS = ("lines", "keywords", "spans", "entities", "state_changes")
_TEXTS = ("summary", "outcome")


@attrs.define
class Redaction:
    """Takes one page out of the events of a session, fed to it from the first to the last.

    Attributes:
        page: The page's index.
        wire: The session's wire format.
        count: Counts the tokens of a message.
        count_text: Counts the tokens of a text.
        trace: What the page held from event to event.
        directories: Indexes of the directories that were met so far.
        files: Names of the page files that were written of the page so far.
        records: How many events held something of the page, those included that an earlier redaction took it from.
    """

    page: str
    wire: Format
    count: Callable[[Message], int]
    count_text: Callable[[str], int]
    trace: PageTrace = attrs.field(init=False)
    directories: set[str] = attrs.field(factory=set)
    files: set[str] = attrs.field(factory=set)
    records: int = 0
    _titles: set[str] = attrs.field(factory=set)
    _words: set[str] = attrs.field(factory=set)
    _lines: dict[str, str] = attrs.field(factory=dict)  # what is left of the words of a directory's line, by what they were
    _sha256: dict[str, str] = attrs.field(factory=dict)  # of the page's files as they will be, by what it was
    _record: Record = attrs.field(init=False)
    _held: bool = False

    def __attrs_post_init__(self) -> None:
        """Begin before the first event."""
        self.trace = PageTrace(self.page)

    def event(self, record: Record, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is left of a record's decoded body; equal to it where nothing of the page was in it. O(its size)."""
        self._record, self._held = record, False
        left: dict[str, Any] = self._walk(body)
        kind = record.kind
        if kind == "appended" and body["page"] == self.page:
            left |= self._message(body["message"])
            self.trace.join(record.seq, body, self.wire.facts(left["message"]), left["tokens"])
        elif kind == "configured" and body["counted"] is not None:
            self._recount(left["counted"])
        elif kind == "page_began" and body["page"] == self.page and body["name"]:
            self._held = True
            left["name"] = ERASED
        elif kind == "recalled" and left["content"] is not None and left["content"] != body["content"]:
            left["block_tokens"] = self.count(self._block(left["content"]))
        self.trace.follow(record.seq, kind, body)
        self.records += self._held
        return left

    def message(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return what is left of a message of the page."""
        return self.wire.erased(self.wire.facts(value)).value()

    def _message(self, value: dict[str, Any]) -> dict[str, Any]:
        left = self.message(value)
        self._held = True
        return {"message": left, "tokens": self.count(self.wire.facts(left)), "stub_tokens": 0}

    def _recount(self, counted: dict[str, Any]) -> None:
        """Put the sizes of what is left in the place of those that another counter gave."""
        pairs = counted["pages"].get(self.page)
        sizes = self.trace.sizes()
        if pairs is not None and len(pairs) == len(sizes):
            counted["pages"][self.page] = [[size, 0] for size in sizes]

    def _walk(self, value: Any) -> Any:  # noqa: ANN401 (JSON data)
        """Redact what memci wrote; what stands under ``message`` or ``block`` is somebody's text and never looked into."""
        if isinstance(value, list):
            return [self._walk(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        if "entries" in value and "opened_by" in value:
            return self._page(value)
        if value.get("index") == self.page and "lines" in value:
            return self._entry(value)
        left = {key: item if key in ("message", "block") else self._walk(item) for key, item in value.items()}
        if value.get("index") == self.page and "message" in value:  # a page of the system part
            left |= {"message": self.message(value["message"]), "tokens": self._message(value["message"])["tokens"]}
        elif "covers" in value:
            left["keywords"] = self._keywords(value)
        elif "indexes" in value and "message" in value:  # the contents page as a window shows it
            left["message"] = self._written(value["message"])
            if left["message"] != value["message"]:
                left["tokens"] = self.count(self.wire.facts(left["message"]))
        elif "block" in value and left["page"] != value["page"]:  # a recalled page in a kept state
            block = self._block(left["page"])
            left |= {"block": block.value(), "tokens": self.count(block)}
        return left

    def _page(self, value: Mapping[str, Any]) -> dict[str, Any]:
        if value["page"] == self.page:
            entries = [{**entry, **self._message(entry["message"])} for entry in value["entries"]]
            self._held |= bool(value["name"])
            return {**value, "entries": entries, "name": ERASED if value["name"] else value["name"]}
        if value["page"] in self.directories:  # it was opened: a list of pages that memci wrote
            return {**value, "entries": [{**entry, "message": self._written(entry["message"])} for entry in value["entries"]]}
        return dict(value)

    def _block(self, page: Mapping[str, Any]) -> Message:
        return self.wire.block(blocks.page_block(page_from_value(page, self.wire.facts)))

    def _entry(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is left of a contents entry. It is never longer than it was, so that its sizes still hold."""
        self._held = True
        self._words.update(value["keywords"], value.get("spans", ()))
        if value["title"]:
            self._titles.add(shown_title(value["title"]))
        if self._record.kind == "folded":
            self.files.add(file_name(self.page, value["revision"]))
            self._sha256[value["sha256"]] = self.trace.sha256()
        left = {**value, **{key: [] for key in _LISTS}, **dict.fromkeys(_TEXTS, "")}
        shorter = self.count_text(ERASED) <= self.count_text(value["title"])
        left["title"] = ERASED if shorter else ""
        left["sha256"] = self._sha256.get(value["sha256"], "")
        return left

    def _keywords(self, value: Mapping[str, Any]) -> list[str]:
        """Return the words of a directory without those that it took from the page, as far as others did not have them too."""
        self.directories.add(value["index"])
        words = value["keywords"]
        left = [word for word in words if not any(word in known for known in self._words)]
        if left != words:
            self._lines[shown_words(words)] = shown_words(left)
        number = page_number(self.page)
        covered = any(first <= number <= last for first, last in value["covers"])
        self._held |= left != words or (covered and self._record.redacted)
        return left

    def _written(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return a message that memci wrote, the contents page or a directory's list, without what it says of the page.

        Only how a line begins is read: what follows is anybody's words, with any marks in them, and is known or goes whole.
        """
        lines: list[str] = []
        inside = False
        for line in message["content"].split("\n"):
            head, group = _HEAD.match(line), _GROUP.match(line)
            if head is not None or group is not None:
                inside = head is not None and head[1] == self.page
            if group is not None:
                lines.append(self._group(line, group))
            elif not inside:
                lines.append(self._line(line, head))
            elif head is not None:
                self._held = True
                lines.append(f"[{self.page}] {ERASED}")
        return {**message, "content": "\n".join(lines)}

    def _line(self, line: str, head: "re.Match[str] | None") -> str:
        """Return a directory's line of the contents page without the words that it took from the page; any other as it is."""
        if head is None or head[1] not in self.directories:
            return line
        start, colon, words = line.partition(": ")
        self._held |= words in self._lines
        return start + colon + self._lines.get(words, words)

    def _group(self, line: str, group: "re.Match[str]") -> str:
        """Return a line that several pages share without titles, where one of them is the page's."""
        segment, number = self.page.rsplit("-", 1)
        titles = line[group.end() :]
        if group[1] != segment or not int(group[2]) <= int(number) <= int(group[3]):
            return line
        if titles != _NO_TITLES and not any(title in titles for title in self._titles):
            return line
        self._held = True
        return group[0] + _NO_TITLES
