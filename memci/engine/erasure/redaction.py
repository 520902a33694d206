"""What is left of events when a page is erased: the same events, without what the page held. Pure functions on JSON values.

Its content stands where a message came in, and in all that was made of it: contents entries, directories that took words from it,
recalled copies, pages that came back into view, states that were kept.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar, TypeAlias

import attrs

from memci.archive.contents.base_path import without_unused
from memci.archive.facts.table import as_values, from_values
from memci.archive.stores.contract import Record
from memci.chapters.address import among, is_foreign, is_range, last_number, page_number, segment_of
from memci.chapters.page import MessageNode, Opening, Page
from memci.engine.history import blocks
from memci.engine.history.events import Forked, ForkMade, from_record
from memci.engine.history.page_codec import file_name, page_file, page_from_value
from memci.engine.history.shared_events import HandedOver, MountNoted, PagePromoted
from memci.engine.history.state import SLOTS, USER
from memci.messages import codec
from memci.messages.formats.format import Format
from memci.messages.formats.reading import ERASED
from memci.messages.message import Message

Body: TypeAlias = dict[str, Any]
Without: TypeAlias = Callable[[Any, Body], Body]

_HEAD = re.compile(r"\[([a-z][a-z0-9_]*-[0-9]+(?:\.\.[0-9]+)?)\] ")
_LISTS = ("lines", "keywords", "words", "spans", "entities", "state_changes")
_TEXTS = ("summary", "outcome")

_NOTHING_OF_PAGES = (
    *("answer_noted", "checkpoint_made", "mentioned", "touched", "trimmed", "faded", "evicted", "pinned", "erased"),
    *("settled", "usage", "fork_made", "forked", "summaries_claimed", "described", "handed_over", "leased", "lease_ended"),
    *(
        "mounted",
        "unmounted",
        "mounted_by",
        "promoted",
        "segment_added",
        "removed",
        "returned",
        "slots_set",
        "system_shown",
        "rule_removed",
    ),
)


def begins(kind: str, body: Mapping[str, Any], page: str) -> str | None:
    """Return when a message began a page, as an event tells; empty where it began without one, ``None`` for other events."""
    if page == SLOTS:
        begun = kind == "slots_set" or (kind == "settled" and bool(body.get("extra")))
    elif is_foreign(page):
        begun = (kind == "mounted" and body["name"] == page.partition("/")[0]) or (kind == "recalled" and body["page"] == page)
    elif kind == "system_set":
        begun = any(each["index"] == page for each in body["pages"])
    else:
        begun = kind in ("appended", "page_began", "note_written", "directory_made") and body["page"] == page
    return str(body.get("at", "")) if begun else None


def _of(**parts: Without) -> Without:
    """Return what takes a page out of the parts of a value that it has: out of each in a list, or of a single one."""

    def without(redaction: "Redaction", value: Body) -> Body:
        left = dict(value)
        for key, erase in parts.items():
            if isinstance(part := value.get(key), list):
                left[key] = [erase(redaction, each) for each in part]
            elif part:
                left[key] = erase(redaction, part)
        return left

    return without


@attrs.define
class Redaction:
    """Takes one page out of the events of a session, fed to it from the first to the last.

    It follows what the page holds from event to event, since the SHA-256 of its files follows from that.
    """

    page: str
    wire: Format
    count: Callable[[Message], int]
    count_text: Callable[[str], int]
    begun: int = 0  # sequence number of the first event that tells of the page; 0 before it was met
    seq: int = 0  # of the last record that was read
    bodies: dict[int, bytes] = attrs.field(factory=dict)  # what is left of records, until somebody takes it
    former: dict[int, str] = attrs.field(factory=dict)  # SHA-256 of what these records were
    files: set[str] = attrs.field(factory=set)  # names of the page files that were written of the page
    forks: dict[str, None] = attrs.field(factory=dict)  # that the session made with the page in it, in order
    shared_with: dict[str, None] = attrs.field(factory=dict)  # sessions that may have copies, in order
    records: int = 0  # that held something of the page, those included that an earlier redaction took it from
    _turn: int = 0
    _opened_by: Opening = Opening.TURN
    _entries: tuple[MessageNode, ...] = ()  # what is left of them
    _past: list[tuple[int, tuple[MessageNode, ...]]] = attrs.field(
        factory=lambda: [(0, ())]
    )  # what they were, from which event on
    _sha256: dict[str, str] = attrs.field(factory=dict)  # of the page's files as they will be, by what it was
    _record: Record = attrs.field(init=False)
    _held: bool = False
    _made: set[str] = attrs.field(factory=set)  # directories
    _topics: set[str] = attrs.field(factory=set)  # titles of topics that the page was a part of

    def read(self, records: Iterable[Record]) -> None:
        """Read on: *bodies* then have what is left of these records too."""
        for record in records:
            event = from_record(record)  # refuses a kind that is not known: nobody could tell what is in it
            body = codec.decode(record.body)
            left = self.event(record, body)
            if left != body:
                self.bodies[record.seq] = codec.encode(left)
                self.former[record.seq] = sha256(record.body).hexdigest()
            if isinstance(event, Forked):  # the forks so far are those of the session that this one is a fork of
                self.forks.clear()
            elif isinstance(event, ForkMade) and 0 < self.begun <= event.fork_at:
                self.forks[event.session] = None
            elif isinstance(event, MountNoted | HandedOver) or (isinstance(event, PagePromoted) and event.page == self.page):
                self.shared_with[event.session] = None
            self.seq = record.seq

    def event(self, record: Record, body: Body) -> Body:
        """Return what is left of a record's decoded body; equal to it where nothing of the page was in it. O(its size)."""
        self._record, self._held = record, False
        if not self.begun and begins(record.kind, body, self.page) is not None:
            self.begun = record.seq
        left = self.WITHOUT[record.kind](self, body)
        if self._entries is not self._past[-1][1]:
            self._past.append((record.seq, self._entries))
        self.records += self._held
        return left

    def _entry(self, value: Body) -> Body:
        self._held = True
        left = self.wire.erased(self.wire.facts(value["message"]))
        stub = {"stub_tokens": 0} if "stub_tokens" in value else {}
        return {**value, "message": left.value(), "tokens": self.count(left), **stub}

    def _named(self, value: Body) -> Body:
        self._held |= bool(value["name"])
        return {**value, "name": value["name"] and ERASED}

    def _within(self, index: str) -> bool:
        is_of_segment = is_range(index) and segment_of(index) == segment_of(self.page)
        return is_of_segment and page_number(index) <= page_number(self.page) <= last_number(index)

    _entries_of = _of(entries=_entry)

    def _page(self, value: Body) -> Body:
        if value["page"] in self._made and value["page"] != self.page:
            return _of(entries=Redaction._listing)(self, value)
        if value["page"] != self.page and not self._within(value["page"]):  # a list of pages goes whole: it can be recalled again
            return value
        return self._named(self._entries_of(value))

    def _attached(self, value: Body) -> Body:
        content, tokens = ("content", "block_tokens") if "content" in value else ("page", "tokens")
        page = value[content] and self._page(value[content])
        if page == value[content]:
            return value
        shows = {name: value.get(name, False) for name in ("media", "dated")}
        block = blocks.page_block(page_from_value(page, self.wire.facts), self.wire, **shows)
        shown = {"block": block.value()} if "block" in value else {}
        return {**value, content: page, tokens: self.count(block), **shown}

    def _quoted(self, value: Body) -> Body:
        left = [each for each in value["passages"] if each["page"] != self.page]
        if left == value["passages"]:
            return value
        self._held = True
        return {**value, "passages": left, "tokens": self.count(blocks.passages_block(left, self.wire))}

    def _item(self, value: Body) -> Body:
        """Return what is left of an entry or a directory. It is never longer than it was, so that its sizes still hold."""
        if "listed" in value:  # it names one that is among the entries
            return value
        if "covers" in value:
            number = page_number(self.page)
            left = [self._untitled(span) for span in value["spans"] if span[0] != number]
            covered = any(first <= number <= last for first, last in value["covers"])
            self._held |= left != value["spans"] or (covered and self._record.redacted)
            titles = list(filter(None, self._untitled(value.get("titles", ()))))
            kept: Body = {**value, "spans": left, **({"titles": titles} if "titles" in value else {})}
            if "base" in value:
                path, *pages = value["base"]
                others = [each for each in pages if each != number]
                kept["base"] = [path, *others] if others else [""]
            return kept
        if value["index"] != self.page:
            titled = {"title": self._untitled([value["title"]])[0]} if "title" in value else {}
            words = {"words": list(map(self._untitled, value["words"]))} if "words" in value else {}
            return {**value, **titled, **words}
        self._held = True
        title = self._left(value["title"])
        kept = {key: [] if key in _LISTS else "" if key in _TEXTS else item for key, item in value.items()}
        return {**kept, "title": title, "sha256": self._sha256.get(value.get("sha256", ""), "")}

    _items = _of(entries=_item, directories=_item)

    def _listing(self, value: Body) -> Body:
        """Return what is left of the list that an open directory shows."""
        lines, head = list[str](), ""
        for line in (written := value["message"]["content"].split("\n")):
            found = _HEAD.match(line)
            head = head if found is None else found[1]
            if head != self.page:
                lines.append(line)
            elif found is not None:
                lines.append(f"[{self.page}] {ERASED}")
        if lines == written:
            return value
        self._held = True
        message = {**value["message"], "content": "\n".join(lines)}
        return {**value, "message": message, "tokens": self.count(self.wire.facts(message))}

    def published(self, value: Body) -> Body:
        """Return the contents page as a window shows it, and the message that it is there.

        Only how a line begins is read: what follows is anybody's words, with any marks in them, and is known or goes whole.
        """
        left, lines, head = self._items(value), list[str](), ""
        for line in (written := value["message"]["content"].split("\n")):
            found = _HEAD.match(line)
            head = head if found is None else found[1]
            for title in self._topics:
                line = line.replace(title, self._left(title))  # noqa: PLW2901 (what is left of it)
            if head == self.page:
                lines += [] if found is None else [f"[{self.page}] {ERASED}"]
            elif found is not None or not (self._within(head) and line.startswith(f"{page_number(self.page)} ")):
                lines.append(line)
        lines = without_unused(lines)
        self._held |= lines != written or f"[{self.page}] {ERASED}" in lines
        if lines == written:
            return left
        message = {**value["message"], "content": "\n".join(lines)}
        return {**left, "message": message, "tokens": self.count(self.wire.facts(message))}

    def _left(self, title: str) -> str:
        """Return what stands in the place of a title, and is no longer."""
        return ERASED if self.count_text(ERASED) <= self.count_text(title) else ""

    def _name(self, name: str) -> str:
        """Return what stands in the place of a name, which is never empty."""
        return self._left(name) or "-"

    def _untitled(self, said: Sequence[Any]) -> list[Any]:
        """Return what an entry or a directory says without the titles of topics that the page was a part of."""
        left = [self._left(each) if isinstance(each, str) and each in self._topics else each for each in said]
        self._held |= left != list(said)
        return left

    def _topic(self, value: Body) -> Body:
        """Return what is left of a topic that was closed: nobody knows what of its title came from which of its pages."""
        is_part = segment_of(self.page) == USER and value["first"] <= page_number(self.page) <= value["last"]
        if not is_part and value["title"] not in self._topics:
            return value
        self._held = True
        self._topics.add(value["title"])
        return {**value, "title": ERASED, **({"was": self._called(value["was"])} if "was" in value else {})}

    def _called(self, titles: Body) -> Body:
        """Return what pages were called, by index, without the page."""
        self._held |= self.page in titles
        return {**titles, self.page: ERASED} if self.page in titles else titles

    def _summary(self, value: Body) -> Body:
        if value["page"] != self.page and not among(self.page, value.get("pages", ())):
            return value
        self._held = True
        kept = ("page", "revision", "by", "at", "room", "usage")
        return {**{name: value[name] for name in kept if name in value}, "sha256": "", "reason": ERASED}

    def _working(self, value: Body) -> Body:
        """Return what is left of a working set. It is never longer than it was, so that its size still holds.

        A continuation that stands on the page goes whole, and what the window showed without one takes its place.
        """
        left: Body = {name: [note for note in value[name] if note[2] != self.page] for name in ("notes", "shown")}
        made = value.get("continuation")
        if made is not None:
            notes = [note for note in made["notes"] if note[2] != self.page]
            left["continuation"] = None if among(self.page, made["pages"]) else {**made, "notes": notes}
        if "facts" in value:
            left["facts"] = self._facts(value["facts"])
        self._held |= any(left[name] != value[name] for name in left)
        return {**value, **left}

    def _facts(self, value: Body) -> Body:
        """Return what is left of the facts of an event, or of a state's table."""
        name = "found" if "found" in value else "facts"
        left = [fact for fact in from_values(value[name]) if fact.page != self.page]
        return {**value, name: as_values(left)}

    def _late(self, value: Body) -> Body:
        return {index: [{**each, "page": self._page(each["page"])} for each in results] for index, results in value.items()}

    def _unchanged(self, body: Body) -> Body:
        return body

    def _configured(self, body: Body) -> Body:
        counted, sizes = body.get("counted"), [[node.tokens, 0] for node in self._entries]
        if counted is None or len(counted["pages"].get(self.page, ())) != len(sizes) or not sizes:
            return body
        return {**body, "counted": {**counted, "pages": {**counted["pages"], self.page: sizes}}}

    def _appended(self, body: Body) -> Body:
        if body["page"] != self.page:
            return body
        left = self._entry(body)
        if (opens := body.get("opens")) is not None:
            self._turn = body["turn"]
            self._opened_by = Opening.CONTINUATION if opens == Opening.CONTINUATION else Opening.TURN
        message, place = self.wire.facts(left["message"]).marked(body.get("attp")), body["position"] - 1
        node = MessageNode(message=message, tokens=left["tokens"], seq=self._record.seq, at=body["at"])
        self._entries = (*self._entries[:place], node, *self._entries[place:])
        return left

    def _system_set(self, body: Body) -> Body:
        return {**body, "pages": [self._entry(each) if each["index"] == self.page else each for each in body["pages"]]}

    def _page_began(self, body: Body) -> Body:
        if body["page"] != self.page:
            return body
        self._turn, self._opened_by = body["turn"], Opening.TURN
        return self._named(body)

    def _rules_set(self, body: Body) -> Body:
        """Return nothing of the rules that a message of the page set."""
        if body["address"].partition("/")[0] != self.page:
            return body
        self._held |= bool(body.get("rules"))
        return {**body, "rules": [], "superseded": {}, "speaker": ""}

    def _rule(self, value: Body) -> Body:
        """Return what is left of a rule, as a state holds it."""
        if value["address"].partition("/")[0] != self.page:
            return value
        self._held = True
        return {**value, "text": ERASED, "speaker": ""}

    _folded_parts = _of(topic=_topic, entries=_item, directories=_item, working=_working)
    _directive = _of(page=_page)
    _last_fold = _of(entries=_item, working=_working, summaries=_summary, titles=_called, directives=_directive)

    def _folded(self, body: Body) -> Body:
        for value in body.get("entries", ()):
            if value["index"] == self.page:
                self._file(value.get("sha256", ""), value.get("revision", 0))
        return self._folded_parts(body)

    def _file(self, sha256: str, revision: int) -> str:
        """Note a file of the page, and return the SHA-256 that it has then."""
        page = Page(index=self.page, turn=self._turn, opened_by=self._opened_by)
        for node in self._entries:
            page.add(attrs.evolve(node, previous=None, next=None))
        self.files.add(file_name(self.page, revision))
        self._sha256[sha256] = page_file(page)[1]
        return self._sha256[sha256]

    _rewound_parts = _of(content=_page, opening=_page, directories=_item)

    def _rewound(self, body: Body) -> Body:
        if body["page"] == self.page:
            self._entries = self._entries[: body["position"] - 1]
        elif segment_of(body["page"]) == segment_of(self.page) and page_number(body["page"]) < page_number(self.page):
            self._entries = ()
        return self._rewound_parts(body)

    def _line(self, value: Body) -> Body:
        """Return what is left of the line behind which a page of the system part stands, as its event tells of it."""
        if value["page"] != self.page:
            return value
        self._held = True
        line = self.wire.facts({"role": "system", "content": ERASED})
        return {**value, "line": ERASED, "tokens": self.count(line)}

    def _lines(self, value: Body) -> Body:
        """Return what is left of these lines, as a state holds them."""
        return {**value, self.page: self._entry(value[self.page])} if self.page in value else value

    def _names(self, value: Body) -> Body:
        self._held |= self.page in value
        return {**value, self.page: [ERASED, ""]} if self.page in value else value

    def _node(self, value: Body) -> Body:
        """Return what is left of a note or a directory, as an event or a tree tells of it."""
        if value.get("page", value.get("index")) != self.page:
            return value
        self._held = True
        left = {key: item for key, item in value.items() if key != "description"}
        if left.get("name"):
            left["name"] = self._name(left["name"])
        if left.get("origin"):  # whoever hands over again with its key makes another one
            left["origin"] = {name: item for name, item in left["origin"].items() if name != "key"}
        if "tokens" in left and self._entries:
            left["tokens"] = self._entries[0].tokens
        return left

    def _written(self, body: Body) -> Body:
        """Return what is left of the event that wrote a note, and follow what is in its file."""
        if body["page"] != self.page:
            return body
        left = self._entry(body)
        node = MessageNode(message=self.wire.facts(left["message"]), tokens=left["tokens"], seq=self._record.seq, at=body["at"])
        self._turn, self._entries = body["turn"], (node,)
        return self._node({**left, "sha256": self._file(body["sha256"], 0)})

    def _directory(self, body: Body) -> Body:
        self._made.add(body["page"])
        return self._node(body)

    def _undone(self, body: Body) -> Body:
        left = _of(entries=Redaction._item)(self, body)
        if self.page not in body.get("updated", {}):
            return left
        self._held = True
        return {**left, "updated": {**body["updated"], self.page: [self._name(body["updated"][self.page][0]), ""]}}

    def _bookmarked(self, value: Body) -> Body:
        """Return a bookmark without its label: that of the page is none any more."""
        if value["page"] != self.page or not value.get("label"):
            return value
        self._held = True
        return {**value, "label": ""}

    def _annotated(self, value: Body) -> Body:
        """Return nothing of what was said of a message of the page but the names."""
        if value["page"] != self.page:
            return value
        self._held |= any(value["values"].values())
        return {**value, "values": dict.fromkeys(value["values"])}

    def _tree(self, value: Body) -> Body:
        edits = [
            [*edit[:2], edit[2] and self._name(edit[2]), ""] if edit[:2] == ["update", self.page] else edit
            for edit in value["last_edit"]
        ]
        return {**value, "nodes": list(map(self._node, value["nodes"])), "last_edit": edits}

    _state = _of(
        state=_of(
            system=_page,
            active=_page,
            recalled=_attached,
            quotes=_quoted,
            entries=_item,
            published=published,
            opening=_page,
            directives=_directive,
            rules=_rule,
            removed_rules=_rule,
            late=_late,
            summaries=_summary,
            working=_working,
            last_fold=_last_fold,
            tree=_tree,
            hidden=_lines,
            system_names=_names,
            bookmarks=_bookmarked,
        )
    )

    def _checkpoint_restored(self, body: Body) -> Body:
        self._entries = next(entries for seq, entries in reversed(self._past) if seq <= body["target"])
        return self._state(body)

    WITHOUT: ClassVar[Mapping[str, Without]] = {
        **dict.fromkeys(_NOTHING_OF_PAGES, _unchanged),
        "configured": _configured,
        "appended": _appended,
        "rules_set": _rules_set,
        "system_set": _system_set,
        "page_began": _page_began,
        "folded": _folded,
        "summary_prepared": _summary,
        "fold_undone": _of(pages=_page, titles=_called),
        "recalled": _attached,
        "quoted": _quoted,
        "restored": _of(entry=_item),
        "kept": _of(content=_page),
        "bookmarked": _bookmarked,
        "annotated": _annotated,
        "rewound": _rewound,
        "note_written": _written,
        "directory_made": _directory,
        "updated": _node,
        "system_hidden": _line,
        "moved": _of(entry=_item),
        "edit_undone": _undone,
        "checkpoint_restored": _checkpoint_restored,
    }
