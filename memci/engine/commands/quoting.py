"""Evidence: short passages of earlier pages, quoted next to a message before it is answered, without being asked for."""

import math
import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from memci.archive.catalogue.questions import asks
from memci.archive.catalogue.search import Filter
from memci.chapters.address import page_number
from memci.chapters.page import MessageNode, Page
from memci.engine.commands import folding
from memci.engine.core.core import Core
from memci.engine.core.indexing import entry_text
from memci.engine.core.monitor import Prefetch, PrefetchFailed, logger
from memci.engine.history import blocks
from memci.engine.history.events import PassagesQuoted
from memci.engine.history.state import USER
from memci.engine.reading import mentions
from memci.engine.reading.searching import entries_in_part, permitted, visible
from memci.engine.view import planner
from memci.errors import CorruptError, UnavailableError
from memci.messages import codec
from memci.messages.message import Message

if TYPE_CHECKING:
    from memci.archive.catalogue.page_search import IndexHit
    from memci.engine.view.layout import Layout

LEAST_SCORE, LEAST_SCORE_STRICT = 0.16, 0.36
"""Score that a page needs to be quoted: in talk, and where the message is long or the model calls tools: a long message brings
along what it is about, and an agent looks things up itself. With 0.22 in talk, LoCoMo's questions have 4 points less of their
evidence in view; with 0.22 for agents, taubench costs 5% more a call."""

_LEAST_OF_BEST, _MOST_BELOW_BEST = 0.5, 0.2  # share of the best page's score, and how much less
_MOST_PAGES = 5  # that are read for one message
_PASSAGE_CHARACTERS = 280  # of a page; with 220, LoCoMo's questions have 4 points less of their evidence in view
_MOST_TOKENS, _MOST_SHARE = 320, 0.08  # of the passages of one message, where the setting is auto; of the budget
_LEAST_TOKENS, _LEAST_LEFT = 60, 30  # in which nothing useful can be quoted, and nothing more
_LEAST_ROOM = 0.75  # of the tokens of a message's passages: where less is idle, pages fold for them, but for an agent's
_MOST_FOLDED = 0.5  # of the window's tokens, that fold for passages
_LONG = 300  # characters of a long message
_MOST_PAGES_OF_VALUE = 1
_MOST_VALUES = 4  # that passages are looked for next to one result
_MOST_LOOKED_UP = 16  # of values that may be rare
_MOST_READ = 20_000  # characters of a result that are searched for an error
_MOST_ASKED = 1_000  # characters at each end of a long message
_USER_SHARE = 2 / 3  # of the tokens of a turn's passages, where tools are offered: the rest is for what these name

_SHORT = 40  # characters of a passage that says little without the one before it
_NAME_CHARACTERS = 40
_BLANKS, _QUOTE_MARK = re.compile("\\s+"), re.compile("^> ?", re.MULTILINE)

Passage: TypeAlias = dict[str, str]


def quote(core: Core, budget: int) -> int:
    """Quote passages next to what the user said, or what tools answered, before the next call; once for each message.

    What the user says is searched for where it asks something, or names a rare value that is not in view; what tools answered
    only for such values, see ``_unseen_values``. Return the sequence number of the newest message for which the window notes that
    passages were looked for. Where there are none, the process alone knows: it writes nothing. The cost does not depend on the
    length of the history.
    """
    page, settled = core.state.active.open_page, core.state.settled
    noted = settled.passages_seq if settled is not None else 0
    if page is None or page.tail is None or core.read_only:
        return noted
    if page.tail.seq <= max(noted, core.prepared.searched_seq) or not _has_more(core):
        return noted  # it has what there was, or had it until something else needed the room
    most = _most_tokens(core, planner.conversation_budget(core.state, budget))
    if most < _LEAST_TOKENS:
        return noted
    try:
        hits = _hits(core, page, noted)
        if hits:
            layout = core.lay_out(core.state, core.state.settled)
            left = budget - layout.tokens
            if left < _LEAST_ROOM * most and not _calls_tools(core) and _fold_to(core, layout, int(budget - most)):
                hits = _hits(core, page, noted)  # what has folded can be quoted
            elif left < most:
                most = max(left, 0)
        events = _quoted(core, budget, most, page.tail, hits)
    except (UnavailableError, CorruptError) as error:
        logger(core.key).warning("session %r: no passages could be quoted: %s", core.session_id, error)
        core.monitor.tell(PrefetchFailed(error=error))
        return noted
    core.prepared.searched_seq = page.tail.seq
    if not events:
        return noted
    core.commit(events)
    if passages := events[-1].passages:
        pages_quoted = tuple(dict.fromkeys(each["page"] for each in passages))
        core.monitor.tell(Prefetch(pages=pages_quoted, tokens=events[-1].tokens))
    return page.tail.seq


def _has_more(core: Core) -> bool:
    """Return whether the session has more than the window shows: pages out of view, or entries shown in part. O(1)."""
    state = core.state
    has_stubs = state.settled is not None and bool(state.settled.stubs)
    return has_stubs or state.last_fold is not None or len(state.active) < state.next_number[USER] - 1


def _most_tokens(core: Core, budget: int) -> int:
    """Return how many tokens the passages of one message may have."""
    tokens = core.config.recall.passages_tokens
    return tokens if isinstance(tokens, int) else int(min(_MOST_TOKENS, _MOST_SHARE * budget))


def giving_way(core: Core, index: str, room: float) -> list[PassagesQuoted]:
    """Return the events by which a page that comes back whole leaves the passages; all go if the share has less *room*."""
    quotes = core.state.recalled.quotes
    if sum(each.tokens for each in quotes.values()) > room:
        return dropped(quotes)
    left = {seq: [dict(each) for each in known.passages if each["page"] != index] for seq, known in quotes.items()}
    return [_event(core, seq, passages) for seq, passages in left.items() if len(passages) < len(quotes[seq].passages)]


def dropped(seqs: Collection[int]) -> list[PassagesQuoted]:
    """Return the events by which passages beside some messages leave the window."""
    return [PassagesQuoted(beside=seq, passages=[], tokens=0) for seq in seqs]


def _fold_to(core: Core, layout: "Layout", tokens: int) -> bool:
    """Fold until the window has a number of tokens, and return whether any page did: none does where that empties it."""
    plan = planner.plan_budget(core.state, core.config, layout, tokens)
    if sum(map(layout.page, plan.pages)) > _MOST_FOLDED * tokens:
        return False
    return bool(folding.fold(core, plan).seq)


def _hits(core: Core, page: Page, last_seq: int) -> "list[IndexHit]":
    """Return the pages that match what the user said after an event, or what tools answered, best first."""
    assert page.tail is not None
    if page.only_user:
        return _hits_of_user(core, page, last_seq)
    if page.tail.message.speaker == "tool" and not page.open_calls:
        return _hits_of_values(core, page, _texts_of_call(page))
    return []


def _hits_of_user(core: Core, page: Page, last_seq: int) -> "list[IndexHit]":
    """Return the pages that match what the user has just said, best first: the messages that ask, else all of them."""
    texts = [entry_text(node.message) for node in page.nodes() if node.seq > last_seq]
    questions = list(filter(asks, texts))
    if not questions:
        return _hits_of_values(core, page, ["\n".join(texts)])
    least_score = LEAST_SCORE_STRICT if sum(map(len, texts)) > _LONG or _calls_tools(core) else LEAST_SCORE
    for text in dict.fromkeys(("\n".join(questions), "\n".join(texts))):
        query = text if len(text) <= 2 * _MOST_ASKED else f"{text[:_MOST_ASKED]}\n{text[-_MOST_ASKED:]}"
        if hits := _search(core, query, _MOST_PAGES, least_score):
            return hits
    return []


def _calls_tools(core: Core) -> bool:
    """Return whether the model calls tools in the pages in view. O(window)."""
    return any(node.message.calls for page in core.state.active.pages() for node in page.nodes())


def _hits_of_values(core: Core, page: Page, texts: Iterable[str]) -> "list[IndexHit]":
    """Return the pages that hold rare values of some texts which are not in view."""
    values = _unseen_values(core, texts, {node.message.raw for node in page.nodes()})
    hits = (hit for value in values for hit in _search(core, value, _MOST_PAGES_OF_VALUE) if value in hit.snippet)
    return [hit for hit in hits if hit.index != page.index][:_MOST_PAGES]


def _search(core: Core, query: str, limit: int, least_score: float = 0.0) -> "list[IndexHit]":
    """Return pages that are not in view, or only in part, and that the model may read; none much worse than the best."""
    only = Filter(where=permitted(core), exclude=visible(core.state))
    extra = entries_in_part(core)

    def least(best: float) -> float:
        return max(least_score, _LEAST_OF_BEST * best, best - _MOST_BELOW_BEST)

    size = _PASSAGE_CHARACTERS
    return core.ask(lambda index: index.find_passages(query, limit=limit, characters=size, only=only, extra=extra, least=least))


def _texts_of_call(page: Page) -> list[str]:
    """Return the arguments of the last calls, and the errors that answer them."""
    from memci.archive.summarizers.passage import ERROR_LINE  # noqa: PLC0415 (compiles many patterns)

    last: list[MessageNode] = []
    for node in reversed(list(page.nodes())):
        last.append(node)
        if node.message.calls:
            break
    arguments = [call.arguments for node in last for call in node.message.calls]
    results = (entry_text(node.message)[:_MOST_READ] for node in last if node.message.answers)
    return arguments + [line[0] for text in results for line in ERROR_LINE.finditer(text)]


def _unseen_values(core: Core, texts: Iterable[str], own: Collection[bytes]) -> list[str]:
    """Return the rare values of some texts that pages out of view hold, and that no message in view but one's *own* shows.

    Such as what is known of a file, or how an error ended. O(window) where there are values.
    """
    values = list(dict.fromkeys(value for text in texts for value in mentions.values(text)))
    if not values:
        return []
    shown = [message.raw for message in _messages(core) if message.raw not in own]
    unseen = [value for value in values if not _is_in(shown, value)]
    return [value for value in unseen[:_MOST_LOOKED_UP] if mentions.is_rare(core, value, hidden=1)][:_MOST_VALUES]


def _messages(core: Core) -> list[Message]:
    return core.lay_out(core.state, core.state.settled).view.messages


def _messages_but_contents(core: Core) -> list[Message]:
    """Return the messages in view but the contents page, which tells neither who said a phrase nor when."""
    view = core.lay_out(core.state, core.state.settled).view
    first, last = view.ends.get("system", 0), view.ends.get("contents", 0)
    return [*view.messages[:first], *view.messages[max(first, last) :]]


def _is_in(raws: Iterable[bytes], text: str) -> bool:
    """Return whether one of some messages, as JSON, has a text."""
    written = codec.encode(text)[1:-1]
    return any(written in raw for raw in raws)


def _quoted(core: Core, budget: int, most: float, beside: MessageNode, hits: "list[IndexHit]") -> list[PassagesQuoted]:
    """Return the events that quote the best hits, as far as there is room, and by which older passages leave."""
    state = core.state
    open_seqs, others = state.open_seqs(), dict(state.recalled.quotes)
    tools = state.settled is not None and state.settled.tools_tokens > 0
    most *= _USER_SHARE if tools and beside.message.from_user else 1
    most -= sum(each.tokens for seq, each in others.items() if seq in open_seqs) * state.scale
    room = core.config.recall.max_share * budget - sum(each.tokens for each in state.recalled.attachments.values()) * state.scale
    closed = [seq for seq in others if seq not in open_seqs]
    is_full = most + sum(each.tokens for each in others.values()) * state.scale > room
    left = closed if closed and (is_full or _is_cheaper_without(core, closed, budget)) else []
    others = {seq: quotes for seq, quotes in others.items() if seq not in left}
    room -= sum(each.tokens for each in others.values()) * state.scale
    most = math.floor(min(most, room) / state.scale)
    event = PassagesQuoted(beside=beside.seq, passages=[], tokens=0)
    if hits:
        own = _words(entry_text(beside.message))
        passing = {quotes.block.raw for seq, quotes in state.recalled.quotes.items() if seq in left}
        shown = [message.raw for message in _messages_but_contents(core) if message.raw not in passing]
        for hit in hits:
            if most - event.tokens < _LEAST_LEFT:
                break
            new = _new(_passages(core, hit, tools=not beside.message.from_user), shown, own, event.passages)
            best_entry = [each for each in new if each["address"] == f"{hit.index}/{hit.entry.position}"]
            parts = [part for part in (new, best_entry if len(best_entry) < len(new) else []) if part]
            more = (_event(core, beside.seq, [*event.passages, *part]) for part in parts)
            event = next((each for each in more if each.tokens <= most), event)
    return dropped(left) + ([event] if event.passages else [])


def _is_cheaper_without(core: Core, seqs: Collection[int], budget: int) -> bool:
    """Return whether to drop older passages now costs less than to send them until the next fold.

    Without them, the provider writes to its cache again what follows the first of them; with them, it reads them at each call.
    """
    state, prices = core.state, core.config.prices
    tokens = sum(state.recalled.quotes[seq].tokens for seq in seqs)
    first, after = min(seqs), 0
    for page in reversed(list(state.active.pages())):
        nodes = [node for node in page.nodes() if node.seq >= first]
        if not nodes:
            break
        after += sum(node.tokens for node in nodes)
    left = planner.calls_to_fold(state, core.config, budget)
    return (prices.write - prices.read) * after < prices.read * tokens * left


def _new(passages: Iterable[Passage], shown: Collection[bytes], own: str, others: Collection[Passage]) -> list[Passage]:
    """Return the passages of a page that are not in view, with short ones next to them, such as an answer.

    The message that they stand next to may quote one in other lines: *own* has its words.
    """
    texts, passages = {each["text"] for each in others}, list(passages)

    def is_shown(text: str) -> bool:
        return text in texts or _words(text) in own or all(_is_in(shown, line) for line in text.splitlines())

    new = [each for each in passages if not is_shown(each["text"])]
    return [each for each in passages if each in new or len(each["text"]) < _SHORT] if new else []


def _words(text: str) -> str:
    """Return the words of a text between single spaces, without the marks in front of quoted lines."""
    return " ".join(_QUOTE_MARK.sub("", text).split())


def _event(core: Core, beside: int, passages: list[Passage]) -> PassagesQuoted:
    """Return the event that quotes passages, oldest page first: what a line refers to is mostly in the one before it."""
    passages = sorted(passages, key=lambda each: page_number(each["page"]))
    tokens = core.count(blocks.passages_block(passages, core.state.wire)) if passages else 0
    return PassagesQuoted(beside=beside, passages=passages, tokens=tokens)


def _passages(core: Core, hit: "IndexHit", *, tools: bool) -> Iterator[Passage]:
    """Yield the passages of a hit, one for each entry that is shown; none that stands in the window.

    Without *tools*, none of tools: a question's words are all over their results, and pieces of them answer little.
    """
    opening = core.state.opening
    shown = opening.length if opening is not None and opening.index == hit.index else 0
    for piece in hit.pieces:
        entry = piece.entry
        if entry.position > shown and piece.text and (tools or entry.role != "tool"):
            speaker = f"{entry.role} {_BLANKS.sub(' ', entry.name)[:_NAME_CHARACTERS]}".rstrip()
            address = f"{hit.index}/{entry.position}"
            passage = {"page": hit.index, "address": address, "role": speaker, "at": entry.at, "text": piece.text}
            yield passage if piece.is_whole else {**passage, "part": "yes"}
