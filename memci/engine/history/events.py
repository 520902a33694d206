"""What happened in a session: the events that its journal holds, and nothing else changes its state.

An event of a kind or version that is not known here is refused, never skipped. In all of them ``at`` is when, in UTC, as ISO
8601, ``page`` is the index of a page, ``position`` counts from 1, and lists of pages are oldest first.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, TypeAlias, get_args

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Directory
from memci.archive.stores.contract import NewRecord, Record
from memci.chapters.page import Page
from memci.engine.history.time_events import CheckpointMade, CheckpointRestored, Forked, ForkMade
from memci.errors import StoreError
from memci.messages import codec
from memci.messages.message import Message


@attrs.frozen(kw_only=True)
class SessionConfigured:
    """The session was begun, or goes on with other settings.

    Attributes:
        config: The settings that decide what a window holds.
        instructions: What tells the model how to recall, once there is a contents page; empty for nothing.
        instruction_tokens: Size of the message that tells the model how to recall; 0 where there is none.
        scale: What counts are multiplied by under a new counter: its margin.
        counted: Sizes of all that is visible under a new counter: ``pages`` (index to pairs of tokens and stub tokens),
            ``opening`` (pairs), ``blocks`` (index to tokens) and ``contents``; ``None`` where the counter is the one before.
    """

    kind: ClassVar = "configured"
    version: ClassVar = 1
    memci: str
    session: str
    tenant: str
    config: Mapping[str, Any]
    instructions: str
    instruction_tokens: int
    scale: float
    counted: Mapping[str, Any] | None = None


@attrs.frozen(kw_only=True)
class MessageAppended:
    """A message came in.

    Attributes:
        opens: Why the page is opened with it (``turn``, ``continuation``, ``system``); ``None`` where the page was there.
        tokens: Its size as it is sent.
        stub_tokens: Size of the stub that can stand for it; 0 where it is too small for one.
        answers: For each call that it answers: the id, and the sequence number of the message that made the call.
        attp: Where it begins as an answer of ATTP does: whether it is one; ``None`` elsewhere, and in older journals, where all
            that begins so was taken for one.
        read: The message as this process read it when it came in; no part of the record.
    """

    kind: ClassVar = "appended"
    version: ClassVar = 1
    message: dict[str, Any]
    page: str
    position: int
    opens: str | None
    turn: int
    tokens: int
    stub_tokens: int
    at: str
    answers: list[list[Any]]
    key: str | None = None
    attp: bool | None = None
    read: Message | None = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen(kw_only=True)
class AnswerNoted:
    """ATTP gave an answer: a message that is equal to it is not the user's."""

    kind: ClassVar = "answer_noted"
    version: ClassVar = 1
    sha256: str


@attrs.frozen(kw_only=True)
class SystemSet:
    """The system part was replaced.

    Attributes:
        pages: One ``{"index", "message", "tokens"}`` a message.
    """

    kind: ClassVar = "system_set"
    version: ClassVar = 1
    pages: list[dict[str, Any]]
    at: str


@attrs.frozen(kw_only=True)
class PageBegan:
    """The application opened a page, or named the open one, which has no entries yet."""

    kind: ClassVar = "page_began"
    version: ClassVar = 1
    page: str
    turn: int
    name: str | None


@attrs.frozen(kw_only=True)
class PagesFolded:
    """Pages moved to the archive, or the contents page was brought up to date in the window.

    Attributes:
        reason: ``marks``, ``command``, or ``budget`` (a window had no room).
        entries: The contents entries of the folded pages, and the new ones of archived pages that changed; such a page gets
            an entry in the contents page only if it has one.
        revised: Archived pages that took in a late result, with the size of their block where they are attached.
        details: New detail of entries that were there, by index.
        directories: New or changed directories; pages in their ranges leave the contents page for them.
        contents_tokens: Size of the contents page as the window shows it from then on.
    """

    kind: ClassVar = "folded"
    version: ClassVar = 1
    reason: str
    turn: int
    entries: list[dict[str, Any]]
    folded: list[str]
    revised: dict[str, int]
    details: dict[str, str]
    directories: list[dict[str, Any]]
    evicted: list[list[str]]
    contents_tokens: int


@attrs.frozen(kw_only=True)
class FoldUndone:
    """The pages of the last fold are back in view.

    Attributes:
        pages: The pages with their messages, as ``page_value`` writes them, oldest first.
        contents_tokens: Size of the contents page as the window shows it from then on.
    """

    kind: ClassVar = "fold_undone"
    version: ClassVar = 1
    pages: list[dict[str, Any]]
    contents_tokens: int


@attrs.frozen(kw_only=True)
class PageRecalled:
    """An archived page was attached, or its attachment renewed.

    Attributes:
        recall_count: How often it was recalled, this time included; 0 for what is not counted: a directory, a page that was
            prefetched.
        content: The page with its messages; ``None`` where it was attached already.
        prefetched: Where nobody asked for it, the sequence number of the user's message that it matches, else 0. It then
            counts as no recall, and fades with the next turn.
        media: Whether the block carries pictures, sound and files.
        read: The page and its block as this process made them; no part of the record.
    """

    kind: ClassVar = "recalled"
    version: ClassVar = 1
    page: str
    turn: int
    recall_count: int
    anchor: str
    content: dict[str, Any] | None
    block_tokens: int
    prefetched: int = 0
    media: bool = False
    read: tuple[Page, Message] | None = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen(kw_only=True)
class PagesFaded:
    """Recalled pages left the window again."""

    kind: ClassVar = "faded"
    version: ClassVar = 1
    pages: list[str]
    reason: str


@attrs.frozen(kw_only=True)
class PagesEvicted:
    """Entries left the contents page: pairs of index and what evicted it (a policy's name, or ``command``)."""

    kind: ClassVar = "evicted"
    version: ClassVar = 1
    pages: list[list[str]]


@attrs.frozen(kw_only=True)
class PageRestored:
    """An evicted page, or one in a directory, has its own entry again."""

    kind: ClassVar = "restored"
    version: ClassVar = 1
    page: str
    entry: dict[str, Any]


@attrs.frozen(kw_only=True)
class PagePinned:
    """A page was pinned, or is no longer."""

    kind: ClassVar = "pinned"
    version: ClassVar = 1
    page: str
    pinned: bool


@attrs.frozen(kw_only=True)
class Rewound:
    """The session goes on before an entry; that entry and all that follows it are gone from view.

    Attributes:
        position: The entry's place in it, counted from 1; one after the last where the page comes back whole.
        removed: Whether the page itself is gone, having no entry left.
        content: The page up to the entry, where it was archived.
        opening: The opening user messages of its turn, where the turn's first page is archived.
        opening_page: Index of the first page of the turn that is open from then on; empty for none.
        contents_tokens: Size of the contents page as the window shows it from then on; ``None`` where it does not change.
        directories: What is left of the directories that listed some of what is gone.
        recalls: Recall count of the page and turn of its last recall, where it was archived and recalled.
    """

    kind: ClassVar = "rewound"
    version: ClassVar = 1
    page: str
    position: int
    removed: bool
    content: dict[str, Any] | None
    opening: dict[str, Any] | None
    opening_page: str
    contents_tokens: int | None
    directories: list[dict[str, Any]]
    recalls: list[int] | None = None


@attrs.frozen(kw_only=True)
class PageErased:
    """What a page held was taken out of the records before this one: whoever knew it loads the session again.

    Attributes:
        records: How many records hold something else since.
    """

    kind: ClassVar = "erased"
    version: ClassVar = 1
    page: str
    records: int
    at: str


@attrs.frozen(kw_only=True)
class WindowSettled:
    """What windows are asked for with, from then on, and the steps that the last one needed.

    Attributes:
        tools_sha256: Of the tool schemas, in hex; empty for none.
        stubs: Sequence numbers of the messages that are shown as stubs, in order.
        excerpts: Of stubs that show more than the least: characters of the entry, and tokens of the stub, by sequence number.
        reads: Whether the model is offered the tool that reads what a stub stands for.
        passages_seq: The newest message of the user for which matching pages were looked for; 0 for none.
        scale: What counts are multiplied by where no window fits by the state's scale; ``None`` for that one.
    """

    kind: ClassVar = "settled"
    version: ClassVar = 2
    budget: int
    format: str
    tools_sha256: str
    tools_tokens: int
    renderer: int
    contents: bool = True
    stubs: list[int] = attrs.field(factory=list)
    excerpts: dict[str, list[int]] = attrs.field(factory=dict)
    reads: bool = False
    passages_seq: int = 0
    scale: float | None = None


@attrs.frozen(kw_only=True)
class UsageReported:
    """The provider counted a window.

    Attributes:
        scale: What counts are multiplied by from then on.
        ratio: What this report alone would make it; ``None`` in older journals, where it did.
    """

    kind: ClassVar = "usage"
    version: ClassVar = 1
    prompt_tokens: int
    counted_tokens: int
    scale: float
    ratio: float | None = None


Event: TypeAlias = (
    SessionConfigured
    | MessageAppended
    | AnswerNoted
    | SystemSet
    | PageBegan
    | PagesFolded
    | FoldUndone
    | PageRecalled
    | PagesFaded
    | PagesEvicted
    | PageRestored
    | PagePinned
    | Rewound
    | PageErased
    | WindowSettled
    | UsageReported
    | CheckpointMade
    | CheckpointRestored
    | ForkMade
    | Forked
)

_KINDS: dict[tuple[str, int], type[Event]] = {(kind.kind, kind.version): kind for kind in get_args(Event)}
_KINDS["settled", 1] = WindowSettled


def _stored(kind: type[Event]) -> tuple[Sequence[str], Callable[[Event], Sequence[Any]]]:
    """Return the names of the fields that a record has, and what gives their values: of two fields at least."""
    names = [field.name for field in attrs.fields(kind) if field.name != "read"]
    return names, attrgetter(*names) if len(names) > 1 else lambda event: (getattr(event, names[0]),)


_STORED = {kind: _stored(kind) for kind in get_args(Event)}


def to_record(event: Event) -> NewRecord:
    """Write an event for a journal. O(its size)."""
    names, values = _STORED[type(event)]
    body = dict(zip(names, values(event), strict=True))
    if isinstance(event, MessageAppended) and event.read is not None:
        body["message"] = codec.embedded(event.read.raw)
    return NewRecord(event.kind, event.version, codec.encode(body))


def from_record(record: Record) -> Event:
    """Read an event from a journal. O(its size)."""
    make = _KINDS.get((record.kind, record.version))
    if make is None:
        message = (
            f"record {record.seq} is a {record.kind!r} of version {record.version}, which this memci does not know: upgrade memci"
        )
        raise StoreError(message)
    return make(**_known(make, codec.decode(record.body)))


def settled_of(value: Mapping[str, Any]) -> WindowSettled:
    """Read how windows are asked for from a snapshot, of an older memci too."""
    return WindowSettled(**_known(WindowSettled, value))


def _known(kind: type[Event], value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that an event has; older records hold some that nothing reads any more."""
    return {name: value[name] for name in _STORED[kind][0] if name in value}


def entry_of(value: Mapping[str, Any]) -> ContentsEntry | Directory:
    """Read a contents entry or a directory from an event or a snapshot."""
    return Directory.from_mapping(value) if "covers" in value else ContentsEntry.from_mapping(value)
