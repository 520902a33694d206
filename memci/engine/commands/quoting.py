"""Passages that stand beside a message before it is answered, without being asked for: short quotes of earlier pages."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from memci.chapters.page import MessageNode, Page
from memci.engine.core.core import Core
from memci.engine.core.indexing import entry_text, indexed_text
from memci.engine.core.monitor import Prefetch, PrefetchFailed, logger
from memci.engine.history import blocks
from memci.engine.history.events import PassagesQuoted
from memci.engine.reading import mentions, pages
from memci.engine.reading.searching import Hit, permitted, search
from memci.errors import CorruptError, UnavailableError
from memci.messages.headline import MARK, unheaded

LEAST_SCORE = 0.25
"""How well a page has to match to be quoted, as ``Hit.score`` tells. On real conversations, questions about earlier pages find
most of their evidence above it; what is below is rarely about the same."""

_MOST_HITS = 20
_MOST_HITS_OF_VALUE = 3
_MOST_VALUES = 4  # that passages are looked for beside one result
_MOST_LOOKED_UP = 16  # of values that may be rare
_MOST_READ = 20_000  # characters of a result that are searched for an error
_USER_SHARE = 2 / 3  # of the tokens of a turn's passages, where tools are offered: the rest is for what these name

_SHORT = 40  # characters of a passage that says little without the one before it
_MARK = re.compile("^> ?", re.MULTILINE)

Passage: TypeAlias = dict[str, str]


def quote(core: Core, budget: int, heard: int) -> int:
    """Quote passages beside what the user said, or what tools answered, before the next call; once for each message.

    Of what tools answered, only for rare values that were not in view: see ``_named``. Return the sequence number of the newest
    message for which passages were looked for, which the window notes; *heard* is the last. Costs a search, or one a value.
    """
    page = core.state.active.open_page
    if page is None or page.tail is None or page.tail.seq <= heard:
        return heard  # it has what there was, or had it until something else needed the room
    try:
        if page.only_user:
            query = "\n".join(entry_text(node.message) for node in page.nodes() if node.seq > heard)
            hits = [hit for hit in search(core, query, _MOST_HITS, where=permitted(core)) if hit.score >= LEAST_SCORE]
        elif page.tail.message.speaker == "tool" and not page.open_calls and (named := _named(core, page)):
            where = permitted(core)
            found = [(value, hit) for value in named for hit in search(core, value, _MOST_HITS_OF_VALUE, where=where)]
            hits = [hit for value, hit in found if value in hit.snippet]
        else:
            return heard
        events = _quoted(core, budget, page.tail, [hit for hit in hits if hit.index != page.index])
    except (UnavailableError, CorruptError) as error:
        logger(core.key).warning("session %r: no passages could be quoted: %s", core.session_id, error)
        core.monitor.tell(PrefetchFailed(error=error))
        return heard
    if events:
        core.commit(events)
    if events and (passages := events[-1].passages):
        pages_quoted = tuple(dict.fromkeys(each["page"] for each in passages))
        core.monitor.tell(Prefetch(pages=pages_quoted, tokens=events[-1].tokens))
    return page.tail.seq


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


def _named(core: Core, page: Page) -> list[str]:
    """Return rare values in the arguments of the last calls, and in errors that answer them, that were not in view before.

    Those that pages out of view hold: what was known of a file, or how an error ended. O(window) where there are such values.
    """
    from memci.archive.summarizers.passage import ERROR_LINE  # noqa: PLC0415 (compiles many patterns)

    last: list[MessageNode] = []
    for node in reversed(list(page.nodes())):
        last.append(node)
        if node.message.calls:
            break
    texts = [call.arguments for node in last for call in node.message.calls]
    texts += [
        line[0] for node in last if node.message.answers for line in ERROR_LINE.finditer(entry_text(node.message)[:_MOST_READ])
    ]
    said = dict.fromkeys(value for text in texts for value in mentions.values(text))
    new = {node.message.raw for node in last}
    shown = [message.raw for message in core.lay_out(core.state, core.state.settled).view.messages if message.raw not in new]
    unseen = [value for value in said if not any(value.encode("utf-8", "replace") in raw for raw in shown)]
    return [value for value in unseen[:_MOST_LOOKED_UP] if mentions.is_rare(core, value, hidden=1)][:_MOST_VALUES]


def _quoted(core: Core, budget: int, beside: MessageNode, hits: list[Hit]) -> list[PassagesQuoted]:
    """Return the events that quote the best hits, as far as there is room.

    Others leave when the user speaks again, and when the share is full: that was cheaper than to send them until the next fold.
    """
    state, recall = core.state, core.config.recall
    open_seqs, left = state.open_seqs(), list[int]()
    others = dict(state.recalled.quotes)
    tools = state.settled is not None and state.settled.tools_tokens > 0
    most = recall.passages_tokens * (_USER_SHARE if tools and beside.message.from_user else 1)
    most -= sum(each.tokens for seq, each in others.items() if seq in open_seqs) * state.scale
    room = recall.max_share * budget - sum(each.tokens for each in state.recalled.attachments.values()) * state.scale
    if beside.message.from_user or most + sum(each.tokens for each in others.values()) * state.scale > room:
        left = [seq for seq in others if seq not in open_seqs]
        others = {seq: quotes for seq, quotes in others.items() if seq in open_seqs}
    room -= sum(each.tokens for each in others.values()) * state.scale
    most = math.floor(min(most, room) / state.scale)
    standing = _standing(core, (each for quotes in others.values() for each in quotes.passages)) if hits else ""
    event = PassagesQuoted(beside=beside.seq, passages=[], tokens=0)
    for hit in hits:
        new = _new(_passages(core, hit), standing)
        more = _event(core, beside.seq, [*event.passages, *new])
        if new and more.tokens <= most:
            event = more
            standing = "\n".join([standing, *map(_told, new)])
    return dropped(left) + ([event] if event.passages else [])


def _new(passages: Iterable[Passage], standing: str) -> list[Passage]:
    """Return the passages of a page that do not stand in the window, with short ones beside them, such as an answer."""
    left = [each for each in passages if _told(each) not in standing]
    new = [each for each in left if _words(each["text"]) not in standing]
    return [each for each in left if each in new or len(each["text"]) < _SHORT] if new else []


def _standing(core: Core, quoted: Iterable[Mapping[str, str]]) -> str:
    """Return the words that stand in the window, with those of passages that stay: one of them brings nothing. O(window)."""
    passing = {quotes.block.raw for quotes in core.state.recalled.quotes.values()}
    shown = core.lay_out(core.state, core.state.settled).view.messages
    texts = [_words(indexed_text(message)) for message in shown if message.raw not in passing]
    return "\n".join([*texts, *map(_told, quoted)])


def _told(passage: Mapping[str, str]) -> str:
    return f"{passage['address']} {_words(passage['text'])}"


def _words(text: str) -> str:
    """Return the words of a text between single spaces, without the marks in front of quoted lines."""
    return " ".join(_MARK.sub("", text).split())


def _event(core: Core, beside: int, passages: list[Passage]) -> PassagesQuoted:
    tokens = core.count(blocks.passages_block(passages, core.state.wire)) if passages else 0
    return PassagesQuoted(beside=beside, passages=passages, tokens=tokens)


def _passages(core: Core, hit: Hit) -> Iterator[Passage]:
    """Yield the passages of a hit, one for each entry that its snippet takes lines from; none that the window shows."""
    page, best = pages.load(core, hit.index), int(hit.entry.rpartition("/")[2])
    opening = core.state.opening
    shown = opening.length if opening is not None and opening.index == hit.index else 0
    nodes = dict(enumerate(page.nodes(), start=1))
    near = sorted(nodes, key=lambda position: (abs(position - best), position < best))
    texts = {position: unheaded(nodes[position].message, indexed_text(nodes[position].message)) for position in near}
    whole = {position: {line.strip() for line in text.split("\n")} for position, text in texts.items()}
    places: dict[int, list[str]] = {}
    for line in filter(str.strip, hit.snippet.split("\n")):
        said = [position for position in near if line.strip() in whole[position]]  # a short answer may be a part of any word
        said += [position for position in near if line in texts[position]]
        if said or MARK not in line:  # a headline stands in none of them
            places.setdefault([*said, best][0], []).append(line)
    for place, lines in places.items():
        if place > shown:
            role, at = nodes[place].message.speaker, nodes[place].at
            yield {"page": hit.index, "address": f"{hit.index}/{place}", "role": role, "at": at, "text": "\n".join(lines)}
