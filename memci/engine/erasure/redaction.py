"""What is left of events when a page is erased: the same events, without what the page held. Pure functions on JSON values.

A page's content stands in the event that brought a message in, and in all that was made of it: contents entries, directories
that took words from it, recalled copies, pages that came back into view, states that were kept.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from memci.archive.stores.contract import Record
from memci.chapters.address import is_range, last_number, page_number, segment_of
from memci.engine.erasure.page_trace import PageTrace
from memci.engine.history import blocks
from memci.engine.history.page_codec import file_name, page_from_value
from memci.engine.reading.listing import shown_title
from memci.messages.formats.format import Format
from memci.messages.formats.reading import ERASED
from memci.messages.message import Message

_HEAD = re.compile(r"\[([a-z][a-z0-9_]*-[0-9]+(?:\.\.[0-9]+)?)\] ")
_GROUP = re.compile(r"\[([a-z][a-z0-9_]*-[0-9]+\.\.[0-9]+)\] [0-9]+ pages · [0-9.]+k? tokens: ")
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
        files: Names of the page files that were written of the page so far.
        records: How many events held something of the page, those included that an earlier redaction took it from.
    """

    page: str
    wire: Format
    count: Callable[[Message], int]
    count_text: Callable[[str], int]
    trace: PageTrace = attrs.field(init=False)
    files: set[str] = attrs.field(factory=set)
    records: int = 0
    _titles: set[str] = attrs.field(factory=set)
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
            message = self.wire.facts(left["message"]).marked(body.get("attp"))
            self.trace.join(record.seq, body, message, left["tokens"])
        elif kind == "configured" and body["counted"] is not None:
            self._recount(left["counted"])
        elif kind == "page_began" and body["page"] == self.page and body["name"]:
            self._held = True
            left["name"] = ERASED
        elif kind == "recalled" and left["content"] is not None and left["content"] != body["content"]:
            left["block_tokens"] = self.count(self._block(left["content"], left))
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
            left["spans"] = self._spans(value)
        elif "indexes" in value and "message" in value:  # the contents page as a window shows it
            left["message"] = self._written(value["message"])
            if left["message"] != value["message"]:
                left["tokens"] = self.count(self.wire.facts(left["message"]))
        elif "block" in value and left["page"] != value["page"]:  # a recalled page in a kept state
            block = self._block(left["page"], value)
            left |= {"block": block.value(), "tokens": self.count(block)}
        return left

    def _page(self, value: Mapping[str, Any]) -> dict[str, Any]:
        if value["page"] == self.page:
            entries = [{**entry, **self._message(entry["message"])} for entry in value["entries"]]
            self._held |= bool(value["name"])
            return {**value, "entries": entries, "name": ERASED if value["name"] else value["name"]}
        if is_range(value["page"]):  # it was opened: a list of pages that memci wrote
            return {**value, "entries": [{**entry, "message": self._written(entry["message"])} for entry in value["entries"]]}
        return dict(value)

    def _block(self, page: Mapping[str, Any], attached: Mapping[str, Any]) -> Message:
        return blocks.page_block(page_from_value(page, self.wire.facts), self.wire, media=attached.get("media", False))

    def _entry(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is left of a contents entry. It is never longer than it was, so that its sizes still hold."""
        self._held = True
        if title := shown_title(value["title"]):
            self._titles.add(title)
        if self._record.kind == "folded":
            self.files.add(file_name(self.page, value["revision"]))
            self._sha256[value["sha256"]] = self.trace.sha256()
        left = {**value, **{key: [] for key in _LISTS}, **dict.fromkeys(_TEXTS, "")}
        shorter = self.count_text(ERASED) <= self.count_text(value["title"])
        left["title"] = ERASED if shorter else ""
        left["sha256"] = self._sha256.get(value["sha256"], "")
        return left

    def _spans(self, value: Mapping[str, Any]) -> list[Any]:
        """Return the stretches of a directory without those of the page."""
        number = page_number(self.page)
        left = [span for span in value["spans"] if span[0] != number]
        covered = any(first <= number <= last for first, last in value["covers"])
        self._held |= left != value["spans"] or (covered and self._record.redacted)
        return left

    def _written(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return a message that memci wrote, the contents page or the list of a range, without what it says of the page.

        Only how a line begins is read: what follows is anybody's words, with any marks in them, and is known or goes whole.
        """
        lines: list[str] = []
        head = ""
        for line in message["content"].split("\n"):
            found = _HEAD.match(line)
            head = head if found is None else found[1]
            if found is None:
                if head != self.page and not (self._within(head) and line.startswith(f"{page_number(self.page)} ")):
                    lines.append(line)
                    continue
            elif head != self.page:
                lines.append(self._group(line))
                continue
            else:
                lines.append(f"[{self.page}] {ERASED}")
            self._held = True
        return {**message, "content": "\n".join(lines)}

    def _within(self, index: str) -> bool:
        """Return whether an index is that of a range with the page in it."""
        number = page_number(self.page)
        same = is_range(index) and segment_of(index) == segment_of(self.page)
        return same and page_number(index) <= number <= last_number(index)

    def _group(self, line: str) -> str:
        """Return the line of an opened range that several pages share without titles, where one of them is the page's."""
        group = _GROUP.match(line)
        if group is None or not self._within(group[1]):
            return line
        titles = line[group.end() :]
        if titles != _NO_TITLES and not any(title in titles for title in self._titles):
            return line
        self._held = True
        return group[0] + _NO_TITLES
