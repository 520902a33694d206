"""The state of a session: what is visible or attached, as its events made it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

import attrs

from memci.archive.catalogue.page_facts import PageState
from memci.archive.contents.archive_chapter import ArchiveChapter
from memci.archive.contents.contents_page import ContentsEntry, ContentsPage, Item
from memci.archive.contents.outline import outline
from memci.archive.contents.tree import Node, Tree
from memci.archive.contents.working_set import WorkingSet
from memci.archive.rules.listing import Rule, fitting
from memci.chapters.address import is_root
from memci.chapters.page import ActiveChapter, Chapter, MessageNode, Page, SystemChapter
from memci.chapters.recalled import RecallChapter
from memci.engine.history.blocks import OLDEST_RENDERER
from memci.engine.history.directives import Directive, marked
from memci.engine.history.events import SummaryPrepared, WindowSettled
from memci.engine.settings.config import Config
from memci.messages.formats import format as formats
from memci.messages.formats.format import Format
from memci.messages.message import Message

SYSTEM, USER = "sys", "usr"
SLOTS = "slots"  # stands for all slots where an erasure names a page

RULE = "rule"  # what keeps a page that the settings ask for

MOST_ANSWERS = 64  # how many answers of ATTP a session knows again, the latest
MOST_LEFT_OPEN = 64  # of how many pages a closed directory knows that they stood open in it, those opened last
MOST_TOUCHED = 256  # of how many pages it knows when they were touched again, those touched last


@attrs.frozen
class LateResult:
    """A result for a call of an archived page, to be taken into the page at the next fold."""

    call_seq: int
    node: MessageNode


@attrs.frozen
class HiddenPage:
    """What stands in the place of a page of the system part: a message that holds a line."""

    message: Message
    tokens: int


def line_message(wire: Format, page: Page, line: str) -> Message:
    """Return the message that holds the line of a page of the system part, in that page's role."""
    role = "system" if page.head is None else page.head.message.role
    return wire.facts({"role": role, "content": line})


@attrs.frozen
class LastFold:
    """What undoing the last fold needs."""

    folded: tuple[str, ...]
    entries: tuple[Item, ...]  # the contents page before it, but for the late results that it put into pages: those stay there
    working: WorkingSet = attrs.field(factory=WorkingSet)  # before it
    summaries: Mapping[str, SummaryPrepared] = attrs.field(factory=dict)  # that it published, and those that failed
    topic: int = 0  # as the state had it before
    titles: Mapping[str, str] = attrs.field(factory=dict)  # what pages were called that it gave the title of a topic, by index
    revised: tuple[str, ...] = ()  # archived pages that took late results in with it
    kept: Mapping[str, str] = attrs.field(factory=dict)  # of those that folded, as the state had them before
    directives: tuple[Directive, ...] = ()  # before it


@attrs.frozen(kw_only=True)
class Slots:
    """Texts that the application refreshes, by name, and the *block* that shows them near the end of the window."""

    texts: Mapping[str, str]
    block: Message
    tokens: int


@attrs.frozen(kw_only=True)
class Mount:
    """Another session of the tenant whose contents page is shown here, as of one of its events; see ``SessionMounted``."""

    session: str
    permission: str
    capacity_tokens: int
    only: str
    seq: int
    text: str
    tokens: int
    noted: int = 0


@attrs.define
class Traffic:
    """How the session was used so far."""

    tokens: int = 0
    calls: int = 0  # assistant messages, those that are parts of one answer taken as one: each was a call of the model

    @property
    def tokens_per_call(self) -> float:
        """New tokens between two calls, on average."""
        return self.tokens / self.calls if self.calls else float(self.tokens)


@attrs.define
class Spent:
    """What was said and sent in all: it only goes forward, wherever the session goes back to, and a fork has sent nothing yet.

    What the window of a call took is worked out as it is answered, by the sums that the state has: results that are shown in part
    count whole, as far as the window's budget goes.
    """

    said_tokens: int = 0  # of all messages that came in
    calls: int = 0  # of the model, once a window was asked for
    sent_tokens: int = 0  # that the windows of these calls took, about
    reports: int = 0  # of the provider's usage
    reported_tokens: int = 0  # of prompts, as the provider counted them
    cached_tokens: int = 0  # of these, what its cache had


def opening_of(page: Page) -> Page:
    """Return a detached page with copies of the user messages that a page begins with. O(those)."""
    opening = Page(index=page.index, turn=0)
    for node in takewhile(lambda node: node.message.from_user, page.nodes()):
        opening.add(attrs.evolve(node, previous=None, next=None))
    return opening


@attrs.define(eq=False)
class State:
    """What is visible or attached in one session."""

    session: str = ""
    seq: int = 0
    turn: int = 0
    config: Config = attrs.field(factory=Config)
    next_number: dict[str, int] = attrs.field(factory=lambda: {SYSTEM: 1, USER: 1})
    system: SystemChapter = attrs.field(factory=SystemChapter)
    hidden: dict[str, HiddenPage] = attrs.field(factory=dict)  # pages of the system part that stand behind a line, by index
    hidden_tokens: int = 0  # what the system part takes more for that; mostly below 0
    system_names: dict[str, tuple[str, str]] = attrs.field(factory=dict)  # what its pages are called: name, description
    archive: ArchiveChapter = attrs.field(factory=lambda: ArchiveChapter(f"{USER}-0"))
    working: WorkingSet = attrs.field(factory=WorkingSet)
    tree: Tree = attrs.field(factory=Tree)
    recalled: RecallChapter = attrs.field(factory=RecallChapter)
    active: ActiveChapter = attrs.field(factory=ActiveChapter)
    slots: Slots | None = None  # None where there is none
    mounts: dict[str, Mount] = attrs.field(factory=dict)  # by the name that it has here, in the order in which they came
    promoted: dict[str, tuple[str, int]] = attrs.field(factory=dict)  # by page: the note of it in long-term memory, of a revision
    turn_page: str = ""  # the first page of the open turn; empty before the first
    opening: Page | None = None  # what the user opened the turn with, from its first page's archiving to the fold after the turn
    directives: tuple[Directive, ...] = ()  # the oldest first, by when they were said last
    rules: tuple[Rule, ...] = ()  # that the user set in the whole session, oldest first
    removed_rules: tuple[Rule, ...] = ()  # that the application took out, oldest first
    rules_tokens: int = 0  # of the message that shows them, without any
    next_rule: int = 1  # the number of the next one that the application adds
    system_seq: int = 0  # of the event that replaced the system part last; 0 for none
    pinned: set[str] = attrs.field(factory=set)
    kept: dict[str, str] = attrs.field(factory=dict)  # pages in view that folds pass by, and who keeps each
    lease: tuple[int, str] = (0, "")  # the event of the last one, and until when it is; 0 for none
    described: dict[str, Any] = attrs.field(factory=dict)  # what is known of the session itself, which only goes forward
    bookmarks: dict[int, tuple[str, str]] = attrs.field(factory=dict)  # by seq of the entry: its page, and the label
    recalls: dict[str, tuple[int, int | None]] = attrs.field(factory=dict)  # of active pages that were archived: count, last turn
    summaries: dict[str, SummaryPrepared] = attrs.field(factory=dict)  # by page, for the next fold; those that failed, too
    claims: dict[str, tuple[str, str]] = attrs.field(factory=dict)  # by page that is summarised: who asks, until when
    topic: int = 0  # the number of the last page of the last topic that was closed; 0 for none
    late: dict[str, list[LateResult]] = attrs.field(factory=dict)  # by archived page
    last_fold: LastFold | None = None  # None when there is none to undo
    folded_turn: int = 0  # the turn in which pages folded last, or came back from that; 0 before the first fold
    settled: WindowSettled | None = None  # None before the first window
    carried: tuple[tuple[int, int], ...] = ()  # of recent settings: calls of the model before, tokens of tools and extra texts
    scale: float = 1.0  # what token counts are multiplied by, as the provider's usage tells
    ratios: tuple[float, float] = (1.0, 1.0)  # the scale by each of the last two reports alone; before them the counter's margin
    traffic: Traffic = attrs.field(factory=Traffic)
    spent: Spent = attrs.field(factory=Spent)
    erased_seq: int = 0  # of the last event that took content out of those before it; 0 for none
    instructions: str = ""  # what tells the model how to recall, once there is a contents page
    instruction_tokens: int = 0
    headlines: str = ""  # what asks the model to end each turn with its title
    headlines_tokens: int = 0
    configured: Mapping[str, Any] = attrs.field(factory=dict)  # by the last configuration event; empty without records
    chosen: Mapping[str, Any] = attrs.field(factory=dict)  # of these, what the session itself chose
    renderer: int = OLDEST_RENDERER  # by the last configuration event
    next_checkpoint: int = 1
    detours: tuple[tuple[int, int], ...] = ()  # (checkpoint, restoring]: seqs of events not in the history, oldest first
    touched: dict[str, int] = attrs.field(factory=dict)  # by page that was touched again, when last; that one last
    answers: tuple[str, ...] = ()  # SHA-256 of the texts of the latest answers of ATTP, oldest first
    wire: Format = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Find the wire format."""
        self.wire = formats.get(self.config.format)

    def page_state(self, index: str) -> PageState:
        """Return where a page is; an index of no page is taken for that of an evicted one. O(directories)."""
        if index in self.hidden:
            return PageState.ATTACHED if index in self.recalled else PageState.HIDDEN
        if self.active.find_page(index) or self.system.find_page(index):
            is_open = self.active.open_page is not None and self.active.open_page.index == index
            return PageState.OPEN if is_open else PageState.ACTIVE
        if index in self.recalled:
            return PageState.ATTACHED
        if (node := self.tree.find(index)) is not None:
            return self._node_state(node)
        if self.archive.find_entry(index) is not None:
            return PageState.ARCHIVED
        return PageState.EVICTED if self.archive.find_directory(index) is None else PageState.HIDDEN

    @property
    def contents(self) -> ContentsPage:
        """The contents page as it is now, with what was made. O(entries)."""
        return self.archive.preview(self.archive.entries, outline(self.tree) if self.tree else ())

    def _node_state(self, node: Node) -> PageState:
        """Return where a page of the tree is: listed at a root or in an open directory, or hidden in a closed one. O(depth)."""
        if self.tree.is_removed(node.index):
            return PageState.EVICTED
        is_listed = is_root(node.parent) or node.parent in self.recalled
        return PageState.ARCHIVED if is_listed else PageState.HIDDEN

    def is_made(self, index: str) -> bool:
        """Return whether an index is that of a note or a directory, whose number tells nothing of its place. O(1)."""
        node = self.tree.find(index)
        return node is not None and bool(node.name)

    def placement(self, index: str) -> Node | None:
        """Return where a page of the conversation is placed in the tree, ``None`` where nobody placed it. O(1)."""
        return self.tree.find(index) if self.tree else None

    def touch(self, pages: Iterable[str], turn: int) -> None:
        """Count the distance of pages from a turn. O(pages)."""
        for index in pages:
            self.touched.pop(index, None)
            self.touched[index] = turn
        for index in list(self.touched)[:-MOST_TOUCHED]:
            del self.touched[index]

    def near_turn(self, page: Page | ContentsEntry) -> int:
        """Return the turn that a page's distance is counted from: when it was opened, or touched, recalled or back last. O(1)."""
        return max(page.turn, self.touched.get(page.index, 0))

    def measure_hidden(self) -> None:
        """Note what the system part takes for the pages that stand behind a line. O(those)."""
        pages = ((self.system.find_page(index), each) for index, each in self.hidden.items())
        self.hidden_tokens = sum(each.tokens - page.tokens for page, each in pages if page is not None)

    def find_summary(self, index: str) -> SummaryPrepared | None:
        """Return what a summariser wrote of a page as it is, for the next fold or the last one, or why it did not. O(1)."""
        published = self.last_fold.summaries if self.last_fold is not None and index not in self.late else {}
        return self.summaries.get(index) or published.get(index)

    def known_summaries(self) -> Iterator[SummaryPrepared]:
        """Yield what summarisers wrote, for the next fold and the last one. O(those)."""
        yield from self.summaries.values()
        yield from self.last_fold.summaries.values() if self.last_fold is not None else ()

    def explains(self, settled: WindowSettled | None) -> bool:
        """Return whether a window has the instructions: where the tools are offered that they name, or all is said in ATTP."""
        return self.config.recall.protocol == "attp" if settled is None else settled.explains

    @property
    def mount_tokens(self) -> int:
        """What is shown of mounted sessions takes so much. O(mounts)."""
        return sum(mount.tokens for mount in self.mounts.values())

    def carry(self, tokens: int) -> None:
        """Note what requests carry from now on. O(1)."""
        calls = self.spent.calls
        earlier = [(begin, carried) for begin, carried in self._recently_carried() if begin != calls]
        self.carried = (*earlier, (calls, tokens))

    def carried_tokens(self) -> int:
        """Return the most that the window of one of the last three calls carried in tools and extra texts. O(1).

        That of a call without an answer yet does not count, so that the same window is found when it is asked for again.
        """
        if len(self.carried) < 2:  # noqa: PLR2004 (one setting for all windows, or none: as usual)
            return self.carried[0][1] if self.carried and self.carried[0][0] < self.spent.calls else 0
        return max([tokens for begin, tokens in self._recently_carried() if begin < self.spent.calls], default=0)

    def _recently_carried(self) -> list[tuple[int, int]]:
        """Return what the windows of the last two calls carried, and those asked for since. O(1)."""
        ends = [begin for begin, _ in self.carried[1:]]
        older = [each for each, end in zip(self.carried, ends, strict=False) if end >= self.spent.calls - 1]
        return [*older, *self.carried[-1:]]

    def keep_directives(self, is_kept: Callable[[Directive], bool]) -> None:
        """Drop the other directives, and note which of those kept are in the active part. O(visible)."""
        kept = [directive for directive in self.directives if is_kept(directive) and directive.page not in self.active]
        self.directives = marked(kept, self.active.message_list)
        if self.last_fold is not None and self.last_fold.directives:
            self.last_fold = attrs.evolve(self.last_fold, directives=tuple(filter(is_kept, self.last_fold.directives)))

    def all_directives(self) -> list[Directive]:
        """Return the directives of now, and those that undoing the last fold would bring back. O(those)."""
        return [*self.directives, *(self.last_fold.directives if self.last_fold is not None else ())]

    @property
    def directive_tokens(self) -> int:
        """Tokens of the directives that windows show, where there is room for all. O(directives)."""
        return sum(directive.node.tokens for directive in self.directives if not directive.repeated)

    def rules_beside(self, settled: WindowSettled | None) -> Iterator[Rule]:
        """Yield the rules that hold and whose messages a window does not show word for word, newest first."""
        stubs = settled.stubs if settled is not None else ()
        opening = self.opening.index if self.opening is not None else ""
        for rule in reversed(self.rules):
            if rule.superseded_by is None and (
                not rule.seq or rule.seq in stubs or (rule.page not in self.active and rule.page != opening)
            ):
                yield rule

    def listed_rules(self, settled: WindowSettled | None) -> list[Rule]:
        """Return the rules that a window lists, oldest first: the newest that fit their share of the conversation. O(those)."""
        if settled is None:
            left, scale = float(self.config.budget.tokens), self.scale
        elif settled.contents:
            scale = settled.scale or self.scale
            left = settled.budget - (settled.tools_tokens + settled.extra_tokens) * scale
        else:
            return []
        return fitting(self.rules_beside(settled), self.config.rules.max_share * left / scale - self.rules_tokens)

    @property
    def rule_tokens(self) -> int:
        """Tokens of the message that lists rules. O(rules listed)."""
        listed = self.listed_rules(self.settled)
        return self.rules_tokens + sum(rule.tokens for rule in listed) if listed else 0

    def rules_in_reach(self) -> list[str]:
        """Return the addresses of the rules that hold and that the window lists, or has with their messages. O(visible)."""
        head = self.active.message_list.head
        said = takewhile(lambda rule: not rule.seq or (head is not None and rule.seq >= head.seq), reversed(self.rules))
        in_view = [rule for rule in said if rule.seq and rule.superseded_by is None]
        return [rule.address for rule in (*self.listed_rules(self.settled), *reversed(in_view))]

    def open_seqs(self) -> set[int]:
        """Return the sequence numbers of what is being said, and of what opened its turn where that stands apart. O(those)."""
        apart = self.opening if self.opening is not None and self.opening.index == self.turn_page else None
        return {node.seq for page in (apart, self.active.open_page) if page is not None for node in page.nodes()}

    def verbatim(self) -> tuple[Chapter, ...]:
        """Return the chapters whose messages this state holds."""
        return (self.system, self.active, self.recalled)

    def _check(self) -> None:
        """Assert the invariants of all chapters and between them. O(visible)."""
        for chapter in (*self.verbatim(), self.archive):
            chapter._check()  # noqa: SLF001 (their own invariants)
        shown = {page.index for page in self.active.pages()}
        self.tree._check()  # noqa: SLF001 (as above)
        assert all(index in self.system for index in (*self.hidden, *self.system_names))
        archived = {entry.index for entry in self.archive.entries}
        assert not archived & {node.index for node in self.tree}
        assert not shown & archived, (shown, archived)
        assert not shown & set(self.late), (shown, set(self.late))
        assert shown.issuperset(self.kept), (shown, self.kept)
        assert not shown & {directive.page for directive in self.directives}
        assert not shown & {page.index for page in self.recalled.pages()}
        assert set(self.recalled.attachments) == {page.index for page in self.recalled.pages()}
        assert all(page.head is not None for page in self.active.pages() if page is not self.active.open_page)
