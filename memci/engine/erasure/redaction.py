"""What is left of events when a page is erased: the same events, without what the page held. Pure functions on JSON values.

A page's content stands in the event that brought a message in, and in all that was made of it: contents entries, directories
that took words from it, recalled copies, pages that came back into view, states that were kept. ``Redaction.WITHOUT`` has a
method for each kind of event.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

import attrs

from memci.archive.stores.contract import Record
from memci.chapters.address import is_range, last_number, page_number, segment_of
from memci.chapters.page import MessageNode, Opening, Page
from memci.engine.history import blocks, events
from memci.engine.history.page_codec import file_name, page_file, page_from_value
from memci.messages.formats.format import Format
from memci.messages.formats.reading import ERASED
from memci.messages.message import Message

Body: TypeAlias = dict[str, Any]

_HEAD = re.compile(r"\[([a-z][a-z0-9_]*-[0-9]+(?:\.\.[0-9]+)?)\] ")
_LISTS = ("lines", "keywords", "spans", "entities", "state_changes")
_TEXTS = ("summary", "outcome")


_NOTHING_OF_PAGES: tuple[type[events.Event], ...] = (
    events.AnswerNoted,
    events.PagesFaded,
    events.PagesEvicted,
    events.PagePinned,
    events.PageErased,
    events.WindowSettled,
    events.UsageReported,
    events.ForkMade,
    events.Forked,
)


def begins(kind: str, body: Mapping[str, Any], page: str) -> str | None:
    """Return when a message began a page, as an event tells; empty where it began without one, ``None`` for other events."""
    match kind:
        case "appended" if body["page"] == page:
            return str(body["at"])
        case "page_began" if body["page"] == page:
            return ""
        case "system_set" if any(each["index"] == page for each in body["pages"]):
            return str(body["at"])
    return None


@attrs.define
class Redaction:
    """Takes one page out of the events of a session, fed to it from the first to the last.

    It follows what the page holds from event to event, since the SHA-256 of its files follows from that.

    Attributes:
        begun: Sequence number of the first event that tells of the page, 0 before it was met.
        files: Names of the page files that were written of the page so far.
        records: How many events held something of the page, those included that an earlier redaction took it from.
    """

    page: str
    wire: Format
    count: Callable[[Message], int]
    count_text: Callable[[str], int]
    begun: int = 0
    files: set[str] = attrs.field(factory=set)
    records: int = 0
    _turn: int = 0
    _entries: tuple[tuple[str | None, MessageNode], ...] = ()  # why each opened the page, if it did, and what is left of it
    _kept: dict[int, tuple[tuple[str | None, MessageNode], ...]] = attrs.field(factory=dict)  # by checkpoint
    _sha256: dict[str, str] = attrs.field(factory=dict)  # of the page's files as they will be, by what it was
    _record: Record = attrs.field(init=False)
    _held: bool = False

    def event(self, record: Record, body: Body) -> Body:
        """Return what is left of a record's decoded body; equal to it where nothing of the page was in it. O(its size)."""
        self._record, self._held = record, False
        if not self.begun and begins(record.kind, body, self.page) is not None:
            self.begun = record.seq
        left = self._BY_KIND[record.kind](self, body)
        self.records += self._held
        return left

    # One method a kind of event.

    def _unchanged(self, body: Body) -> Body:
        return body

    def _configured(self, body: Body) -> Body:
        counted, sizes = body["counted"], [[node.tokens, 0] for _, node in self._entries]
        if counted is None or len(counted["pages"].get(self.page, ())) != len(sizes) or not sizes:
            return body
        return {**body, "counted": {**counted, "pages": {**counted["pages"], self.page: sizes}}}

    def _appended(self, body: Body) -> Body:
        if body["page"] != self.page:
            return body
        left = {**body, **self._entry(body)}
        if body["opens"] is not None:
            self._turn = body["turn"]
        message, place = self.wire.facts(left["message"]).marked(body.get("attp")), body["position"] - 1
        node = MessageNode(message=message, tokens=left["tokens"], seq=self._record.seq, at=body["at"])
        self._entries = (*self._entries[:place], (body["opens"], node), *self._entries[place:])
        return left

    def _system_set(self, body: Body) -> Body:
        pages = [self._entry(each, stub=False) if each["index"] == self.page else each for each in body["pages"]]
        return {**body, "pages": pages}

    def _page_began(self, body: Body) -> Body:
        if body["page"] != self.page:
            return body
        self._turn = body["turn"]
        return {**body, "name": self._name(body["name"])}

    def _folded(self, body: Body) -> Body:
        for value in body.get("entries", ()):
            if value["index"] == self.page:
                self.files.add(file_name(self.page, value["revision"]))
                self._sha256[value["sha256"]] = self._file_sha256()
        return self._each(body, entries=self._item, directories=self._item)

    def _fold_undone(self, body: Body) -> Body:
        return self._each(body, pages=self._page)

    def _recalled(self, body: Body) -> Body:
        content = body["content"] and self._page(body["content"])
        if content == body["content"]:
            return body
        return {**body, "content": content, "block_tokens": self.count(self._block(content, body))}

    def _restored(self, body: Body) -> Body:
        return {**body, "entry": self._item(body["entry"])}

    def _rewound(self, body: Body) -> Body:
        if body["page"] == self.page:
            self._entries = self._entries[: body["position"] - 1]
        elif segment_of(body["page"]) == segment_of(self.page) and page_number(body["page"]) < page_number(self.page):
            self._entries = ()
        came_back = {key: body[key] and self._page(body[key]) for key in ("content", "opening")}
        return self._each({**body, **came_back}, directories=self._item)

    def _checkpoint_made(self, body: Body) -> Body:
        self._kept[self._record.seq] = self._entries
        return body

    def _checkpoint_restored(self, body: Body) -> Body:
        self._entries = self._kept[body["target"]]
        state, last = body["state"], body["state"]["last_fold"]
        late = {index: [{**each, "page": self._page(each["page"])} for each in some] for index, some in state["late"].items()}
        left = {
            **self._each(state, system=self._page, active=self._page, recalled=self._attachment, entries=self._item),
            "published": state["published"] and self.published(state["published"]),
            "opening": state["opening"] and self._page(state["opening"]),
            "late": late,
            "last_fold": last and self._each(last, entries=self._item),
        }
        return {**body, "state": left}

    # What the values in them are.

    def published(self, value: Body) -> Body:
        """Return the contents page as a window shows it."""
        left = {**self._each(value, directories=self._item), "message": self._written(value["message"])}
        if left["message"] != value["message"]:
            left["tokens"] = self.count(self.wire.facts(left["message"]))
        return left

    def _each(self, value: Body, **lists: Callable[[Body], Body]) -> Body:
        return {**value, **{key: [erase(item) for item in value[key]] for key, erase in lists.items() if key in value}}

    def _entry(self, value: Body, *, stub: bool = True) -> Body:
        """Return an entry of the page with its size."""
        self._held = True
        left = self.wire.erased(self.wire.facts(value["message"]))
        return {**value, "message": left.value(), "tokens": self.count(left), **({"stub_tokens": 0} if stub else {})}

    def _name(self, name: str | None) -> str | None:
        self._held |= bool(name)
        return ERASED if name else name

    def _page(self, value: Body) -> Body:
        if value["page"] != self.page and not self._within(value["page"]):  # a list of pages goes whole: it can be recalled again
            return value
        return {**self._each(value, entries=self._entry), "name": self._name(value["name"])}

    def _attachment(self, value: Body) -> Body:
        page = self._page(value["page"])
        if page == value["page"]:
            return value
        block = self._block(page, value)
        return {**value, "page": page, "block": block.value(), "tokens": self.count(block)}

    def _block(self, page: Body, attached: Body) -> Message:
        return blocks.page_block(page_from_value(page, self.wire.facts), self.wire, media=attached.get("media", False))

    def _file_sha256(self) -> str:
        """Return the SHA-256 of the file that the page has when it is folded now, in hex. O(its size)."""
        opens = min((node.seq, why) for why, node in self._entries)[1] if self._entries else None
        opened_by = Opening.CONTINUATION if opens == Opening.CONTINUATION else Opening.TURN
        page = Page(index=self.page, turn=self._turn, opened_by=opened_by)
        for _, node in self._entries:
            page.add(attrs.evolve(node, previous=None, next=None))
        return page_file(page)[1]

    def _item(self, value: Body) -> Body:
        """Return what is left of an entry or a directory. It is never longer than it was, so that its sizes still hold."""
        if "covers" in value:
            number = page_number(self.page)
            left = [span for span in value["spans"] if span[0] != number]
            covered = any(first <= number <= last for first, last in value["covers"])
            self._held |= left != value["spans"] or (covered and self._record.redacted)
            return {**value, "spans": left}
        if value["index"] != self.page:
            return value
        self._held = True
        title = ERASED if self.count_text(ERASED) <= self.count_text(value["title"]) else ""
        kept: Body = {key: [] if key in _LISTS else "" if key in _TEXTS else item for key, item in value.items()}
        return {**kept, "title": title, "sha256": self._sha256.get(value["sha256"], "")}

    def _written(self, message: Body) -> Body:
        """Return the contents page as a message, without what it says of the page.

        Only how a line begins is read: what follows is anybody's words, with any marks in them, and is known or goes whole.
        """
        lines: list[str] = []
        head = ""
        for line in message["content"].split("\n"):
            found = _HEAD.match(line)
            head = head if found is None else found[1]
            if head == self.page:
                lines += [] if found is None else [f"[{self.page}] {ERASED}"]
            elif found is not None or not (self._within(head) and line.startswith(f"{page_number(self.page)} ")):
                lines.append(line)
        self._held |= lines != message["content"].split("\n") or f"[{self.page}] {ERASED}" in lines
        return {**message, "content": "\n".join(lines)}

    def _within(self, index: str) -> bool:
        """Return whether an index is that of a range with the page in it."""
        same = is_range(index) and segment_of(index) == segment_of(self.page)
        return same and page_number(index) <= page_number(self.page) <= last_number(index)

    WITHOUT: ClassVar[Mapping[type[events.Event], Callable[["Redaction", Body], Body]]] = {
        **dict.fromkeys(_NOTHING_OF_PAGES, _unchanged),
        events.SessionConfigured: _configured,
        events.MessageAppended: _appended,
        events.SystemSet: _system_set,
        events.PageBegan: _page_began,
        events.PagesFolded: _folded,
        events.FoldUndone: _fold_undone,
        events.PageRecalled: _recalled,
        events.PageRestored: _restored,
        events.Rewound: _rewound,
        events.CheckpointMade: _checkpoint_made,
        events.CheckpointRestored: _checkpoint_restored,
    }
    """What makes of an event of each kind what is left of it."""

    _BY_KIND: ClassVar = {kind.kind: without for kind, without in WITHOUT.items()}
