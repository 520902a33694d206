"""Why a page is where it is."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from memci.archive.catalogue.page_facts import PageFacts, PageState
from memci.archive.contents.contents_page import pages_text, tokens_text
from memci.archive.contents.tree import Node
from memci.archive.summarizers.summary import has_given_title
from memci.chapters.address import among, is_root, segment_of
from memci.engine.core.core import Core
from memci.engine.history.state import RULE, SYSTEM, State
from memci.engine.reading import pages
from memci.engine.view import planner
from memci.engine.view.rule_facts import RuleFacts, RuleState, count_states, rule_facts
from memci.messages.formats.reading import ERASED

_OF_FACTS = ("turn", "tokens", "archived_turn", "recall_count", "last_recall_turn", "pinned", "kept")
_SHOWN = (PageState.OPEN, PageState.ACTIVE, PageState.ATTACHED)
_RULE_PLACES = {
    RuleState.VERBATIM: "which is in view word for word",
    RuleState.LISTED: "which the window lists",
    RuleState.NO_ROOM: "which has no room in the window (rules.max_share)",
    RuleState.SUPERSEDED: "which {superseded_by} replaced or took back",
    RuleState.REMOVED: "which the application removed",
}
_RULE_COUNTS = {
    RuleState.VERBATIM: "in view word for word",
    RuleState.LISTED: "listed in the window",
    RuleState.NO_ROOM: "without room",
    RuleState.SUPERSEDED: "replaced or taken back",
    RuleState.REMOVED: "removed",
}
_Numbers: TypeAlias = dict[str, float | int | str | bool | None]


@attrs.frozen(kw_only=True)
class Explanation:
    """Why a page is where it is: ``reasons`` are the rules that put it there, a sentence each, ``facts`` their numbers by name.

    ``in_window`` tells whether its messages stand in the window, verbatim or as a recalled block, and ``in_contents`` whether the
    contents page that the window shows lists it, for itself or in a directory. ``rules`` are the rules that its messages set.
    """

    index: str
    state: PageState
    in_window: bool
    in_contents: bool
    reasons: tuple[str, ...]
    facts: _Numbers
    rules: tuple[RuleFacts, ...] = ()

    def __str__(self) -> str:
        """Return the explanation as text."""
        return "\n".join([f"{self.index} is {self.state}.", *(f"- {reason}" for reason in self.reasons)])


def explain(core: Core, index: str) -> Explanation:
    """Say why a page, a root or a range of pages is where it is."""
    facts, archive, rules = pages.read_facts(core, index), core.state.archive, tuple[RuleFacts, ...]()
    is_shown = core.state.config.contents.listed
    if pages.is_list(index):
        listed, shown = pages.read(core, index).pages, facts.state is not PageState.ARCHIVED
        if is_root(index):
            shown = bool(listed) if segment_of(index) == SYSTEM else is_shown and bool(archive.message_list)
        numbers: _Numbers = {"turn": facts.turn, "now_turn": core.state.turn, "tokens": facts.tokens, "pages": len(listed)}
        reasons, in_contents = _of_list(core, facts, listed, shown=shown), index in archive.published
        if index == archive.root and (counts := count_states(rule_facts(core.state))):
            numbers |= {f"{state}_rules": count for state, count in counts.items()}
            reasons = itertools.chain(reasons, [_counted_rules(counts)])
    elif (node := core.state.tree.find(index)) is not None and (node.name or is_root(index)):
        shown, in_contents = facts.state in _SHOWN, index in archive.published
        numbers = {"turn": facts.turn, "now_turn": core.state.turn, "tokens": facts.tokens, "pages": node.pages}
        reasons = _of_made(core, node, facts)
    else:
        shown, in_contents = facts.state in _SHOWN, archive.shows(index)
        numbers = _numbers(core, facts)
        rules = tuple(rule for rule in rule_facts(core.state) if rule.page == index)
        reasons = itertools.chain(_reasons(core, index, facts.state, numbers), map(_rule_reason, rules))
    if not is_shown and (facts.state not in _SHOWN or index == archive.root):
        reasons = itertools.chain(reasons, ["No window shows the contents page, as contents.listed is false."])
    return Explanation(
        index=index,
        state=facts.state,
        in_window=shown,
        in_contents=is_shown and in_contents,
        reasons=tuple(reasons),
        facts=numbers,
        rules=rules,
    )


def _numbers(core: Core, facts: PageFacts) -> _Numbers:
    state, config = core.state, core.config
    now = core.lay_out(state, state.settled)
    return {
        **{name: getattr(facts, name) for name in _OF_FACTS},
        "now_turn": state.turn,
        "distance": state.turn - max(facts.turn, state.touched.get(facts.index, 0)),
        "window_tokens": now.tokens,
        "budget_tokens": config.budget.tokens,
        "high_tokens": round(planner.high_mark(state, config, config.budget.tokens)),
        "low_tokens": round(planner.low_mark(state, config, now, config.budget.tokens)),
        "min_pages": config.active.min_pages,
        "max_pages": config.active.max_pages,
        "active_pages": len(state.active),
        "listed_as": str(entry.detail) if (entry := state.archive.find_entry(facts.index)) is not None else None,
    }


def _of_list(core: Core, facts: PageFacts, listed: Sequence[PageFacts], *, shown: bool) -> Iterator[str]:
    states = Counter(str(each.state) for each in listed)
    told = ", ".join(f"{count} {state}" for state, count in states.items()) or "none"
    yield f"It stands for {len(listed)} pages: {told}."
    if not is_root(facts.index):
        if facts.index in core.state.archive.published:
            yield "The contents page that the window shows lists it as a directory."
        directory = core.state.archive.find_directory(facts.index)
        if directory is not None and directory.index == facts.index and directory.titles:
            yield f"It was closed as a topic: {'; '.join(directory.titles)}."
        if facts.state is PageState.ATTACHED:
            yield _attached(core, facts.index)
        return
    if segment_of(facts.index) != SYSTEM:
        yield from _continued(core.state)
    if not shown and core.state.config.contents.listed:
        yield "The window does not show it: nothing is there to be shown yet."
    elif shown and segment_of(facts.index) == SYSTEM:
        yield "It is the system part, which never folds."
    elif shown:
        yield "It is the contents page, and always stands open."


def _of_made(core: Core, node: Node, facts: PageFacts) -> Iterator[str]:
    state = core.state
    if is_root(node.index):
        yield f"It is the root of the segment {segment_of(node.index)}, which the application added, and always stands open."
        return
    by = _who(node.by)
    if node.is_directory:
        yield f"It is a directory that {by} made in turn {node.turn}, with {pages_text(node.pages)} in it."
    else:
        yield f"It is a note that {by} wrote in turn {node.turn}, of {tokens_text(node.tokens)}."
    if (origin := node.origin) is not None:
        back = f", to which checkpoint {origin.checkpoint} goes back" if origin.checkpoint else ""
        what = ", ".join(origin.pages) or "what somebody wrote there"
        yield f"It says what session {origin.session!r} held as of its event {origin.seq}{back}: {what}."
    yield from _placed(state, node)
    if facts.state is PageState.ATTACHED:
        yield _attached(core, node.index)
    if is_root(node.parent) and not node.removed:
        listed = node.index in state.archive.published
        yield f"The contents page that the window shows {'lists it' if listed else 'gets it with the next fold, if it has room'}."
    if facts.pinned:
        yield "It is pinned: it is never removed."


def _placed(state: State, node: Node) -> Iterator[str]:
    """Say where a node of the tree is listed, and who put it there."""
    parent, moved = state.tree.get(node.parent), f", where {_who(node.placed_by)} put it" if node.placed_by else ""
    if state.tree.is_removed(node.index):
        yield "It was removed, itself or a directory that it is in: nothing lists it; search finds it, restore puts it back."
    else:
        yield f"It is listed in {parent.index}{f' ({parent.name})' if parent.name else ''}{moved}."


def _who(by: str) -> str:
    return "the model" if by == "model" else "the application"


def _reasons(core: Core, index: str, where: PageState, numbers: _Numbers) -> Iterator[str]:
    state = core.state
    if where is PageState.OPEN:
        yield "It is the page that the next message joins; the open page never folds."
    elif index in state.hidden:
        yield "It is a part of the system prompt that stands behind its line; restore puts it in its place again."
        if where is PageState.ATTACHED:
            yield _attached(core, index)
    elif index in state.system:
        yield "It is a part of the system prompt, which never folds."
    elif where is PageState.ACTIVE:
        yield from _of_active(core, index, numbers)
    else:
        yield from _of_archived(core, index, where, numbers)
    if where in _SHOWN and (node := state.placement(index)) is not None:
        yield from _placed(state, node)
    yield from _quoted(state, index)
    yield from _summarized(state, index)
    levels = [f"{name} above {turns}" for name, turns in attrs.asdict(core.config.levels).items() if turns is not None]
    if levels and index not in state.system:
        yield f"It is {numbers['distance']} turns away, counted from its last touch; levels of detail: {', '.join(levels)}."
    if numbers["pinned"]:
        yield "It is pinned: its entry is never evicted."


def _of_archived(core: Core, index: str, where: PageState, numbers: _Numbers) -> Iterator[str]:
    archive = core.state.archive
    yield f"It was folded in turn {numbers['archived_turn']}, or restored then; it is turn {numbers['now_turn']} now."
    if where is PageState.ATTACHED:
        yield _attached(core, index)
    elif where is PageState.ARCHIVED and core.state.placement(index) is None:
        yield f"The contents page lists it ({numbers['listed_as']})."
        if (listed := archive.find_entry(index)) is not None and has_given_title(listed.words):
            yield f"It is listed under a title that it was given: {listed.title}."
    elif (node := core.state.placement(index)) is not None:
        yield from _placed(core.state, node)
    elif (directory := archive.find_directory(index)) is not None:
        topic = f", the topic {'; '.join(directory.titles)}" if directory.titles else ""
        yield f"The contents page groups it with its neighbours in {directory.index}{topic}."
    else:
        yield "Its entry left the contents page; search finds it, restore puts it back."
        if archive.shows(index):
            entry = "its entry" if index in archive.published else "its entry in a directory"
            yield f"The window still shows {entry}, until the next fold."
    count, last = numbers["recall_count"], numbers["last_recall_turn"]
    yield f"It was recalled {count}×, last in turn {last}." if count else "It was never recalled."


def _summarized(state: State, index: str) -> Iterator[str]:
    entry, event, made = state.archive.find_entry(index), state.find_summary(index), state.working.continuation
    if made is not None and among(index, made.pages):
        yield f"The continuation in the window, which {made.by} wrote, stands on it."
    if entry is not None and entry.by:
        yield f"Its line was written by {entry.by}."
    elif event is not None and not event.reason and (directory := state.archive.find_directory(index)) is not None:
        when = ", from the next fold on" if index in state.summaries else ""
        yield f"What the row of {directory.index} says of it was written by {event.by}{when}."
    elif event is not None and event.reason and event.reason != ERASED:
        yield f"{event.by} gave no summary of it that holds: {event.reason}. Its line is made of extracts."
        if event.again:
            yield f"It is asked for again from {event.again} on."
    elif event is not None and index in state.summaries:
        yield f"{event.by} wrote its line, which the next fold shows."
    if event is not None and event.lacks:
        yield f"That does not tell of {', '.join(event.lacks)}."


def _continued(state: State) -> Iterator[str]:
    made, event = state.working.continuation, state.summaries.get(state.archive.root)
    if made is not None:
        yield f"The continuation in the window was written by {made.by}, of {', '.join(made.pages)}."
    elif state.working.continues and state.working.shown:
        yield "The continuation in the window is made of extracts."
    if event is not None and event.reason:
        yield f"{event.by} gave no continuation that holds: {event.reason}."
    elif event is not None:
        yield f"{event.by} wrote one of {', '.join(event.pages)}, which the next fold shows."
    if event is not None and event.dropped:
        yield f"Lines of it are left out, as they say what those pages do not: {', '.join(event.dropped)}."


def _of_active(core: Core, index: str, numbers: _Numbers) -> Iterator[str]:
    yield (
        f"The window holds {numbers['window_tokens']} tokens; pages fold above {numbers['high_tokens']}, oldest first, "
        f"down to {numbers['low_tokens']}, and the last {numbers['min_pages']} pages only when a window has no room."
    )
    active = core.config.active
    marks = {"pages": active.max_pages, "messages": active.max_messages, "calls of tools": active.max_calls}
    also = [f"above {most} {name} in view" for name, most in marks.items() if most is not None]
    if active.every_turns is not None:
        also.append(f"{active.every_turns} turns after turn {core.state.folded_turn}")
    if also:
        least = "" if active.least_tokens is None else f", in a window of {active.least_tokens} tokens or more"
        yield f"They also fold {', or '.join(also)}{least}."
    page = core.state.active.find_page(index)
    if by := core.state.kept.get(index):
        share = f"{int(planner.keep_tokens(core.state, core.config))} tokens"
        is_held = index in planner.held(core.state, core.config)
        rule = "folds pass it by, and it goes last" if is_held else "it has no room there, and folds as any other"
        yield f"It is kept by {'a rule of the config' if by == RULE else 'the application'}, in the share of {share}: {rule}."
    if page is not None and page.open_calls:
        yield "A call in it waits for its result: it folds only when a window has no room."
    trimmed = sum(bool(node.trimmed) for node in page.nodes()) if page is not None else 0
    if trimmed:
        yield f"Of {trimmed} long results in it only beginning, end and errors are shown, until it folds."


def _rule_reason(rule: RuleFacts) -> str:
    place = _RULE_PLACES[rule.state].format(superseded_by=rule.superseded_by)
    return f'It set the rule "{rule.text}" ({rule.address}), {place}.'


def _counted_rules(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    told = ", ".join(f"{count} {_RULE_COUNTS[RuleState(state)]}" for state, count in counts.items())
    return f"The session has {total} {'rule' if total == 1 else 'rules'}: {told}."


def _attached(core: Core, index: str) -> str:
    attachment = core.state.recalled.attachments[index]
    if attachment.lasting:
        return f"It was opened, or used last, in turn {attachment.turn}; it is open until it is closed, or others need the room."
    fades = attachment.turn + core.config.recall.turns
    return f"It was recalled, or mentioned last, in turn {attachment.turn} and fades in turn {fades} without another mention."


def _quoted(state: State, index: str) -> Iterator[str]:
    passages = [each for quotes in state.recalled.quotes.values() for each in quotes.passages]
    if addresses := [each["address"] for each in passages if each["page"] == index]:
        yield f"The window quotes {', '.join(addresses)} unasked, beside what they match."
