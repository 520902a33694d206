"""What happened in a session: the events that its journal holds, and nothing else changes its state.

An event of a kind or version that is not known here is refused, never skipped. In all of them ``at`` is when, in UTC, as ISO
8601, ``page`` is the index of a page, ``position`` counts from 1, and lists of pages are oldest first. A record leaves out what
has its default. Nobody compares or prints events, and a process makes their classes in half the time where they cannot be.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, get_args

import attrs

from memci.archive.contents.contents_page import Directory
from memci.archive.rules.listing import Rule, rules_of
from memci.archive.stores.contract import NewRecord, Record
from memci.chapters.page import Page
from memci.engine.history.blocks import OLDEST_RENDERER
from memci.engine.history.kind import Kind
from memci.engine.history.shared_events import HandedOver, MountNoted, PagePromoted, SharedEvent
from memci.engine.history.tree_events import TreeEvent
from memci.errors import StoreError
from memci.messages import codec
from memci.messages.message import Message


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SessionConfigured(Kind, kind="configured"):
    """The session was begun, or goes on with other settings.

    ``counted`` has the sizes of all that is visible under a new counter or renderer: ``pages`` (index to pairs of tokens and stub
    tokens), ``opening`` (pairs), ``blocks`` (index to tokens) and ``contents``.
    """

    memci: str
    session: str
    tenant: str
    config: Mapping[str, Any]  # the settings that decide what a window holds
    chosen: Mapping[str, Any] = attrs.field(factory=dict)  # of these, what the session itself chose, whatever its engines say
    instructions: str  # what tells the model how to recall, once there is a contents page; empty for nothing
    instruction_tokens: int  # of the message that holds them; 0 where there is none
    scale: float  # what counts are multiplied by where they are made anew: under a new counter its margin
    counted: Mapping[str, Any] | None = None  # None where the counter and the renderer are those before
    renderer: int = OLDEST_RENDERER  # of windows from then on: older journals do not say it
    headlines: str = ""  # what asks the model to end each turn with its title; empty for nothing
    headlines_tokens: int = 0  # of the message that holds that; 0 where there is none
    rules_tokens: int = 0  # of the message that shows rules, without any; 0 in older journals


@attrs.frozen(kw_only=True, eq=False, repr=False)
class MessageAppended(Kind, kind="appended", version=2):
    """A message came in."""

    message: dict[str, Any]
    page: str
    position: int
    opens: str | None = None  # why the page is opened with it: turn, continuation or system; None where the page was there
    turn: int
    tokens: int  # as it is sent
    stub_tokens: int = 0  # of the stub that can stand for it; 0 where it is too small for one
    at: str
    # For each call that it answers: the id, and the seq of the message that made the call.
    answers: list[list[Any]] = attrs.field(factory=list)
    key: str | None = None
    # Where it begins as an answer of ATTP does: whether it is one. None in older journals too, where all of these were.
    attp: bool | None = None
    read: Message | None = attrs.field(default=None, eq=False, repr=False)  # as this process read it; no part of the record


@attrs.frozen(kw_only=True, eq=False, repr=False)
class AnswerNoted(Kind, kind="answer_noted"):
    """ATTP gave an answer: a message that is equal to it is not the user's."""

    sha256: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RulesSet(Kind, kind="rules_set"):
    """The user set rules with a message, or took some back; or the application added one, which has no message."""

    address: str  # of the message, or the rule's own
    entry_seq: int = 0  # of the event that brought the message; 0 for none
    at: str
    speaker: str = ""  # the name of who said it, where the message has one
    rules: list[list[Any]] = attrs.field(factory=list)  # of each: text, kind, tokens of the line that shows it
    superseded: dict[str, str] = attrs.field(factory=dict)  # addresses of rules that hold no more, with what replaced each
    key: str | None = None  # of the application's command, by which a repeated one is known

    def made(self) -> list[Rule]:
        """Return the rules that it brings."""
        return rules_of(self.address, self.rules, at=self.at, speaker=self.speaker, seq=self.entry_seq)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RuleRemoved(Kind, kind="rule_removed"):
    """The application took a rule out."""

    address: str
    at: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SystemSet(Kind, kind="system_set"):
    """The system part was replaced."""

    pages: list[dict[str, Any]]  # {"index", "message", "tokens"}, one a message
    at: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PageBegan(Kind, kind="page_began"):
    """The application opened a page, or named the open one, which has no entries yet."""

    page: str
    turn: int
    name: str | None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PagesFolded(Kind, kind="folded", version=2):
    """Pages moved to the archive, or the contents page was brought up to date in the window."""

    reason: str  # marks, levels, command, topic, edits (what was made shows), or budget (a window had no room)
    turn: int
    entries: list[dict[str, Any]]  # of the folded pages, and of archived ones that changed, which are shown only if they were
    folded: list[str]
    # Archived pages that took in a late result, with the size of their block where they are attached.
    revised: dict[str, int] = attrs.field(factory=dict)
    details: dict[str, str] = attrs.field(factory=dict)  # new detail of entries that were there, by index
    # New or changed ones, by what the contents page said before; pages in their ranges leave it for them.
    directories: list[dict[str, Any]] = attrs.field(factory=list)
    evicted: list[list[str]] = attrs.field(factory=list)
    contents_tokens: int  # of the contents page as the window shows it from then on
    # Of a topic that was closed: ``title``, number of its ``first`` and ``last`` page; what one page ``was`` called, by index.
    topic: Mapping[str, Any] | None = None
    # Where pages fold, what the working set takes from them (``clock``, ``notes``) and then shows (``shown``, of ``tokens``);
    # as a continuation where it ``continues``, and with a summariser's ``continuation`` in its place.
    working: Mapping[str, Any] | None = None
    # Where it changes: how the outline of what was made is ``shortened``, by segment, and its size (``tokens``).
    outline: Mapping[str, Any] | None = None
    # Of the directives that the window keeps from then on: seq, and that of the latest equal message; None for those before.
    directives: list[list[int]] | None = None
    read: Sequence[Directory] | None = attrs.field(default=None, eq=False, repr=False)  # of this process; not in the record


@attrs.frozen(kw_only=True)
class SummaryPrepared(Kind, kind="summary_prepared"):
    """A summariser wrote of a page what the next fold publishes; or what it wrote is dropped, or nothing came, for a *reason*.

    Of the root it is a continuation, in ``lines``.
    """

    page: str
    revision: int  # of the page
    sha256: str  # of the page's messages, which it was written of
    by: str  # the name of the summariser
    at: str
    room: int = 0  # tokens that it was given; 0 in older journals
    reason: str = ""  # why there is nothing to publish; empty where there is
    title: str = ""
    summary: str = ""
    lines: list[str] = attrs.field(factory=list)
    outcome: str = ""
    words: list[list[Any]] = attrs.field(factory=list)  # for the page's row in a directory
    lacks: list[str] = attrs.field(factory=list)  # literal values of the page that it does not hold
    # Of the requests, as far as the summariser tells: tokens, price; empty where none was made, as the same was known.
    usage: dict[str, Any] = attrs.field(factory=dict)
    # Where pages are wanted together after the last window: ``window``, or why it was asked for on its own.
    asked: str = ""
    # Where nothing came, as calls failed: in how many rounds so far, and from when on it is asked for again; empty for never.
    tries: int = 0
    again: str = ""
    # Of a continuation: the pages that it stands on, and those of them that it was given whole, neighbours as ranges; how many
    # were made since one that was made from pages alone; and why lines of it are left out.
    pages: list[str] = attrs.field(factory=list)
    given: list[str] = attrs.field(factory=list)
    made: int = 0
    dropped: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SummariesClaimed(Kind, kind="summaries_claimed"):
    """A summariser is asked of pages, and nobody else asks one of them until a time."""

    pages: list[str]
    by: str = ""  # tells the engine that asks from all others; empty where the pages are free again
    until: str = ""  # in UTC, as ISO 8601


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ResultsTrimmed(Kind, kind="trimmed"):
    """Of long results of tools, only stretches of the text are shown until their pages fold."""

    results: dict[str, dict[str, list[int]]]  # by page and seq: tokens of what is shown, and the bounds of each stretch


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FoldUndone(Kind, kind="fold_undone"):
    """The pages of the last fold are back in view."""

    pages: list[dict[str, Any]]  # as page_value writes them
    contents_tokens: int  # as in PagesFolded
    recalls: dict[str, list[int]] = attrs.field(factory=dict)  # by page, if any: how often, and in which turn last
    titles: dict[str, str] = attrs.field(factory=dict)  # by page: what it is called again, without the title of a topic


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PageRecalled(Kind, kind="recalled"):
    """An archived page was attached, or its attachment renewed."""

    page: str
    turn: int
    recall_count: int  # this time included; 0 for what is not counted, such as a directory
    anchor: str
    content: dict[str, Any] | None  # as page_value writes it; None where it was attached already
    block_tokens: int
    prefetched: int = 0  # in older journals: seq of the user's message that it matched, where nobody asked for it
    media: bool = False  # whether the block carries pictures, sound and files
    dated: int = 0  # whether the block says when the page was said, see ``blocks.DATED``
    lasting: bool = False  # whether it was opened: no turn lets it fade
    by: str = ""  # who opened it: application or model
    read: tuple[Page, Message] | None = attrs.field(default=None, eq=False, repr=False)  # page and block; not in the record


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PassagesQuoted(Kind, kind="quoted"):
    """Passages of earlier pages stand beside a message, in the place of those that stood there; with none, these left.

    The block is in front of what the user said, and after what a tool answered.
    """

    beside: int  # seq of the message
    passages: list[dict[str, str]]  # {"page", "address", "role", "at", "text"}, the best first; "part" in one that is a part
    tokens: int  # of the block


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SlotsSet(Kind, kind="slots_set"):
    """The application gave slots other texts, or took some away."""

    slots: Mapping[str, str | None]  # those that changed, by name; None for one that is gone
    tokens: int  # of the block that shows all of them from then on; 0 for none


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PagesMentioned(Kind, kind="mentioned"):
    """What was said names recalled pages: they stay as long as if they came in this turn."""

    pages: list[str]
    turn: int


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PagesTouched(Kind, kind="touched"):
    """What came in names a file or an identifier of these pages: their distance is counted from this turn."""

    pages: list[str]
    turn: int


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PagesFaded(Kind, kind="faded"):
    """Recalled pages left the window again."""

    pages: list[str]
    reason: str
    closed: str = ""  # the directory that somebody closed; what was opened of the others stood open in it
    by: str = ""  # who closed it, or the page: application or model


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PagesEvicted(Kind, kind="evicted", version=2):
    """Pages and directories left the contents page: pairs of index and what evicted it (a policy's name, or ``command``).

    Since version 2 a page may leave the directory that groups it.
    """

    pages: list[list[str]]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PageRestored(Kind, kind="restored", version=2):
    """An evicted page, or one in a directory, has its own entry again."""

    page: str
    entry: dict[str, Any]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PagePinned(Kind, kind="pinned"):
    """A page was pinned, or is no longer."""

    page: str
    pinned: bool


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PageKept(Kind, kind="kept"):
    """Folds pass a page by from then on, or take it again; an archived one came back into view for that."""

    page: str
    by: str  # who keeps it: application, or the rule that the config has; empty where nobody does any more
    content: dict[str, Any] | None = None  # as page_value writes it, of one that came back
    recalls: list[int] | None = None  # as in Rewound, of one that came back


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EntryBookmarked(Kind, kind="bookmarked"):
    """An entry has a bookmark, or has none any more."""

    page: str
    entry_seq: int  # of the message
    label: str = ""  # empty for none
    by: str


@attrs.frozen(kw_only=True, repr=False)
class SessionDescribed(Kind, kind="described"):
    """What is known of the session itself has other values, or lost some; no window shows it."""

    values: Mapping[str, Any]  # those that changed, JSON values by name; None for one that is gone
    at: str


@attrs.frozen(kw_only=True, repr=False)
class MessageAnnotated(Kind, kind="annotated"):
    """What is known of a message, beside what it says, has other values, or lost some; no window shows it."""

    page: str
    entry_seq: int  # of the message
    values: Mapping[str, str | None]  # those that changed, as JSON by name; None for one that is gone


@attrs.frozen(kw_only=True, repr=False)
class Leased(Kind, kind="leased"):
    """A request has the session for itself until a time; the lease has the number of this event."""

    until: str  # in UTC, as ISO 8601


@attrs.frozen(kw_only=True, repr=False)
class LeaseEnded(Kind, kind="lease_ended"):
    """A lease was given back."""

    lease: int


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Rewound(Kind, kind="rewound", version=2):
    """The session goes on before an entry; that entry and all that follows it are gone from view."""

    page: str
    position: int  # of the entry; one after the last where the page comes back whole
    removed: bool  # whether the page itself is gone, having no entry left
    content: dict[str, Any] | None  # the page up to the entry, where it was archived
    opening: dict[str, Any] | None  # the opening user messages of its turn, where the turn's first page is archived
    opening_page: str  # the first page of the turn that is open from then on; empty for none
    contents_tokens: int | None  # as in PagesFolded; None where the contents page does not change
    directories: list[dict[str, Any]]  # what is left of those that listed some of what is gone
    recalls: list[int] | None = None  # recall count and turn of the last recall, where the page was archived and recalled


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PageErased(Kind, kind="erased"):
    """What a page held was taken out of the records before this one: whoever knew it loads the session again."""

    page: str
    records: int  # how many hold something else since
    at: str


@attrs.frozen(kw_only=True, repr=False)
class WindowSettled(Kind, kind="settled", version=2):
    """What windows are asked for with, from then on, and the steps that the last one needed."""

    budget: int
    format: str
    tools_sha256: str  # of the tool schemas, in hex; empty for none
    tools_tokens: int
    renderer: int
    contents: bool = True
    stubs: list[int] = attrs.field(factory=list)  # seqs of the messages that are shown as stubs, in order
    # Of stubs that show more than the least: characters of the entry, and tokens of the stub, by seq.
    excerpts: dict[str, list[int]] = attrs.field(factory=dict)
    # Of what is shown of entries in part: the most tokens that it may take, and those it has, by seq. None in older journals.
    sizes: dict[str, list[int]] = attrs.field(factory=dict)
    reads: bool = False  # whether the model is offered the tool that reads what a stub stands for
    explains: bool = True  # whether the system part says how pages are recalled; in older journals always
    passages_seq: int = 0  # of the newest message of the user for which matching pages were looked for; 0 for none
    scale: float | None = None  # of counts, where no window fits by the state's scale
    extra: dict[str, str] = attrs.field(factory=dict)  # what the application says beside this call alone, by name
    extra_tokens: int = 0  # of the block that shows it
    mounts: bool = True  # whether contents of mounted sessions are shown, as far as there is room; false in older journals alone
    directives: bool = True  # whether directives are shown, as far as their share has room for them


@attrs.frozen(kw_only=True, eq=False, repr=False)
class UsageReported(Kind, kind="usage"):
    """The provider counted a window."""

    prompt_tokens: int
    counted_tokens: int
    scale: float  # what counts are multiplied by from then on
    ratio: float | None = None  # what this report alone would make it; None in older journals, where it did
    cached_tokens: int = 0  # of the prompt, as far as the provider tells of its cache


@attrs.frozen(kw_only=True, eq=False, repr=False)
class CheckpointMade(Kind, kind="checkpoint_made"):
    """The session can come back to here."""

    number: int  # from 1, never used again; the id of number 3 is cp-3
    label: str
    checkpoint_kind: str  # why it was made: the value of a CheckpointKind
    turn: int
    at: str
    keep: int | None = None  # how many ``auto`` ones are listed from then on, the newest; None for all
    ttl_turns: int | None = None  # turns after which it is no more listed; None for never
    variables: Mapping[str, Any] = attrs.field(factory=dict)  # of the application


@attrs.frozen(kw_only=True, eq=False, repr=False)
class CheckpointRestored(Kind, kind="checkpoint_restored"):
    """The session goes on from a checkpoint; what came after it is gone from view."""

    checkpoint: str
    target: int
    state: Mapping[str, Any]  # as it was there, as state_codec writes it
    at: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ForkMade(Kind, kind="fork_made"):
    """A fork of this session was begun. Nothing changes; whoever erases content learns where copies of it may be."""

    session: str
    fork_at: int  # seq of the last event that it takes over
    at: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Forked(Kind, kind="forked"):
    """All before this event was taken over from another session, which it is independent of."""

    source: str
    fork_at: int  # seq of the last event that was taken over
    session: str
    at: str


AT_THE_END = (
    *(MessageAppended, AnswerNoted, PagesMentioned, PagesTouched, WindowSettled, UsageReported, SlotsSet),
    *(PagesEvicted, PageBegan, CheckpointMade, ForkMade, SummariesClaimed, SummaryPrepared, EntryBookmarked, SessionDescribed),
    *(HandedOver, MountNoted, PagePromoted, MessageAnnotated, Leased, LeaseEnded, RulesSet, RuleRemoved),
)
"""The events that leave alone what a window shows, or add to its end; which rules it shows, a window compares."""

Event: TypeAlias = (
    SessionConfigured
    | MessageAppended
    | AnswerNoted
    | RulesSet
    | RuleRemoved
    | SystemSet
    | PageBegan
    | PagesFolded
    | SummariesClaimed
    | SummaryPrepared
    | ResultsTrimmed
    | FoldUndone
    | PageRecalled
    | PassagesQuoted
    | SlotsSet
    | PagesMentioned
    | PagesTouched
    | PagesFaded
    | PagesEvicted
    | PageRestored
    | PagePinned
    | PageKept
    | EntryBookmarked
    | SessionDescribed
    | MessageAnnotated
    | Leased
    | LeaseEnded
    | Rewound
    | PageErased
    | WindowSettled
    | UsageReported
    | CheckpointMade
    | CheckpointRestored
    | ForkMade
    | Forked
    | SharedEvent
    | TreeEvent
)

_KINDS: dict[tuple[str, int], type[Event]] = {
    (each.kind, version): each for each in get_args(Event) for version in range(1, each.version + 1)
}
KINDS = tuple(each.kind for each in get_args(Event))
_FIELDS = {kind: codec.defaults(kind) for kind in get_args(Event)}
for _fields in _FIELDS.values():
    _fields.pop("read", None)


def to_record(event: Event) -> NewRecord:
    """Write an event for a journal, without the fields that have their default. O(its size)."""
    body = codec.told(event, _FIELDS[type(event)])
    if isinstance(event, MessageAppended) and event.read is not None:
        body["message"] = codec.embedded(event.read.raw)
    return NewRecord(event.kind, event.version, codec.encode(body))


def as_value(event: Event) -> dict[str, Any]:
    """Return the fields of an event, those included that have their default. O(its size)."""
    return {name: getattr(event, name) for name in _FIELDS[type(event)]}


def from_record(record: Record) -> Event:
    """Read an event from a journal. O(its size)."""
    make = _KINDS.get((record.kind, record.version))
    if make is None:
        message = f"record {record.seq} is a {record.kind!r} of version {record.version}, unknown to this memci: upgrade memci"
        raise StoreError(message)
    return make(**known_fields(make, codec.decode(record.body)))


def only_summaries(records: Iterable[Record]) -> bool:
    """Return whether all that others wrote is of summaries, which change nothing until a fold publishes them."""
    return all(record.kind in (SummariesClaimed.kind, SummaryPrepared.kind) for record in records)


def known_fields(kind: type[Event], value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that an event has; older records and snapshots hold some that nothing reads any more."""
    return {name: value[name] for name in _FIELDS[kind] if name in value}
