"""What is left of events when a page is erased: the same events, without what the page held. Pure functions on JSON values.

A page's content stands in the event that brought a message in, and in all that was made of it: contents entries, directories
that took words from it, recalled copies, pages that came back into view, states that were kept.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from memci.engine import blocks
from memci.engine.listing import shown_title
from memci.engine.page_codec import page_from_value
from memci.messages.formats.format import Format
from memci.messages.formats.reading import ERASED
from memci.messages.message import Message

_HEAD = re.compile(r"\[([a-z][a-z0-9_]*-[0-9]+)\] ")
_GROUP = re.compile(r"[a-z][a-z0-9_]*-[0-9]+\.\.[a-z][a-z0-9_]*-[0-9]+ · ")
_LISTS = ("lines", "keywords", "entities", "state_changes")
_TEXTS = ("summary", "outcome")


@attrs.define
class Redaction:
    """Takes one page out of the events of a session, fed to it from the first to the last.

    Attributes:
        page: The page's index.
        wire: The session's wire format.
        count: Counts the tokens of a message.
        count_text: Counts the tokens of a text.
        sha256: Of the page's file as it will be.
        revision: Of that file.
        directories: Indexes of the directories that were met so far.
    """

    page: str
    wire: Format
    count: Callable[[Message], int]
    count_text: Callable[[str], int]
    sha256: str
    revision: int
    _words: set[str] = attrs.field(factory=set)
    _titles: set[str] = attrs.field(factory=set)
    directories: set[str] = attrs.field(factory=set)
    _sizes: list[int] = attrs.field(factory=list)  # of the page's messages as they are left, in their order

    def event(self, kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is left of an event's body; equal to it where nothing of the page was in it. O(its size)."""
        left: dict[str, Any] = self._walk(body)
        if kind == "appended" and body["page"] == self.page:
            left |= self._message(body["message"])
            self._sizes.insert(body["position"] - 1, left["tokens"])
        elif kind == "configured" and body["counted"] is not None:
            self._recount(left["counted"])
        elif kind == "rewound" and body["page"] == self.page:
            del self._sizes[body["position"] - 1 :]
        elif kind == "page_began" and body["page"] == self.page and body["name"]:
            left["name"] = ERASED
        elif kind == "recalled" and left["content"] is not None and left["content"] != body["content"]:
            left["block_tokens"] = self.count(self._block(left["content"]))
        return left

    def message(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return what is left of a message of the page."""
        return self.wire.erased(self.wire.facts(value)).value()

    def _message(self, value: dict[str, Any]) -> dict[str, Any]:
        left = self.message(value)
        return {"message": left, "tokens": self.count(self.wire.facts(left)), "stub_tokens": 0}

    def _recount(self, counted: dict[str, Any]) -> None:
        """Put the sizes of what is left in the place of those that another counter gave."""
        pairs = counted["pages"].get(self.page)
        if pairs is not None and len(pairs) == len(self._sizes):
            counted["pages"][self.page] = [[size, 0] for size in self._sizes]

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
            self.directories.add(value["index"])
            left["keywords"] = [word for word in value["keywords"] if word not in self._words]
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
            return {**value, "entries": entries, "name": ERASED if value["name"] else value["name"]}
        if value["page"] in self.directories:  # it was opened: a list of pages that memci wrote
            return {**value, "entries": [{**entry, "message": self._written(entry["message"])} for entry in value["entries"]]}
        return dict(value)

    def _block(self, page: Mapping[str, Any]) -> Message:
        return self.wire.block(blocks.page_block(page_from_value(page, self.wire.facts)))

    def _entry(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is left of a contents entry. It is never longer than it was, so that its sizes still hold."""
        self._words.update(value["keywords"])
        if value["title"]:
            self._titles.add(shown_title(value["title"]))
        left = {**value, **{key: [] for key in _LISTS}, **dict.fromkeys(_TEXTS, "")}
        shorter = self.count_text(ERASED) <= self.count_text(value["title"])
        left["title"] = ERASED if shorter else ""
        left["sha256"] = self.sha256 if value["revision"] == self.revision else ""
        return left

    def _written(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return a message that memci wrote, the contents page or a directory's list, without what it says of the page."""
        lines: list[str] = []
        inside = False
        for line in message["content"].split("\n"):
            head = _HEAD.match(line)
            if head is not None:
                inside = head[1] == self.page
            if not inside:
                lines.append(self._line(line, head))
            elif head is not None:
                lines.append(f"[{self.page}] {ERASED}")
        return {**message, "content": "\n".join(lines)}

    def _line(self, line: str, head: "re.Match[str] | None") -> str:
        """Return a line that is not the page's own without the words and titles that it took from it."""
        if head is not None and head[1] in self.directories:
            gone, separator = self._words, ", "
        elif _GROUP.match(line):
            gone, separator = self._titles, "; "
        else:
            return line
        start, colon, items = line.partition(": ")
        return start + colon + separator.join(item for item in items.split(separator) if item not in gone)
