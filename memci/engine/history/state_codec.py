"""The state as JSON, for snapshots and restored checkpoints: a state read back equals the one that was written.

Journals hold it, so that what this wrote once must be read for ever; snapshots of another version are passed over.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Directory, Item
from memci.archive.contents.tree import Tree
from memci.archive.contents.working_set import WorkingSet, as_values, continuation_from, continuation_value, from_values
from memci.archive.facts.table import table_from, table_value
from memci.archive.rules import listing
from memci.chapters.page import Page
from memci.chapters.recalled import Attachment, Quotes
from memci.engine.history import directives
from memci.engine.history.blocks import OLDEST_RENDERER, passages_block, slots_block
from memci.engine.history.events import SummaryPrepared, WindowSettled, known_fields
from memci.engine.history.page_codec import Written, page_from_value, page_value
from memci.engine.history.state import HiddenPage, LastFold, LateResult, Mount, Slots, Spent, State, Traffic
from memci.engine.settings.config import Config
from memci.messages.formats.format import Format
from memci.messages.formats.reading import ERASED
from memci.messages.message import Message

VERSION = 17

_READ = (6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, VERSION)

_NUMBERS = ("seq", "turn", "scale", "erased_seq", "instruction_tokens", "next_checkpoint")
_AS_THEY_ARE = ("session", "turn_page", "instructions", *_NUMBERS)
_LATER = (
    "system_seq",
    "folded_turn",
    "topic",
    "headlines",
    "headlines_tokens",
    "rules_tokens",
    "next_rule",
)  # which older states do not have
_RULES = ("rules", "removed_rules")
_COPIED = ("next_number", "ratios", "detours", "answers")
_OF_ATTACHMENTS = ("anchor", "turn", "tokens", "prefetched", "used_seq", "media", "dated", "lasting")


def to_mapping(state: State, written: Written = Message.value) -> dict[str, Any]:
    """Return the state as a value that JSON can hold. O(visible)."""
    archive, page = state.archive, partial(page_value, written=written)
    directive = partial(directives.to_value, page_value=page)
    listed = {entry.index: entry for entry in archive.entries}

    def known(item: Item) -> dict[str, Any]:
        """Return what was listed before, or is shown: mostly what is listed now, which its index names."""
        return {"listed": item.index} if listed.get(item.index) == item else item.to_mapping()

    def attached(given: Page) -> dict[str, Any]:
        attachment = state.recalled.attachments[given.index]
        kept = {name: getattr(attachment, name) for name in _OF_ATTACHMENTS}
        return {**kept, "page": page(given), "block": written(attachment.block)}

    def late(index: str, result: LateResult) -> dict[str, Any]:
        alone = Page(index=index, turn=0)
        alone.add(attrs.evolve(result.node, previous=None, next=None))
        return {"call_seq": result.call_seq, "page": page(alone)}

    shown = [
        {
            "message": written(node.message),
            "tokens": node.tokens,
            "indexes": sorted(archive.published),
            "directories": list(map(known, archive.shown_directories)),
        }
        for node in archive.message_list
    ]
    return {
        "v": VERSION,
        **{name: getattr(state, name) for name in (*_AS_THEY_ARE, *_COPIED, "renderer", *_LATER, "touched")},
        "config": state.configured,
        "chosen": state.chosen,
        "system": [page(each) for each in state.system.pages()],
        "active": [page(each) for each in state.active.pages()],
        "recalled": [attached(each) for each in state.recalled.pages()],
        "quotes": [
            {"beside": seq, "passages": list(each.passages), "tokens": each.tokens} for seq, each in state.recalled.quotes.items()
        ],
        "entries": [entry.to_mapping() for entry in archive.entries],
        "published": shown[0] if shown else None,
        "opening": state.opening and page(state.opening),
        "pinned": sorted(state.pinned),
        "recalls": dict(sorted(state.recalls.items())),
        "summaries": _summary_values(state.summaries),
        "claims": state.claims,
        "late": {index: [late(index, each) for each in results] for index, results in state.late.items()},
        "working": _working_value(state.working),
        "last_fold": (last := state.last_fold)
        and {
            "folded": last.folded,
            "entries": list(map(known, last.entries)),
            "working": _working_value(last.working),
            "summaries": _summary_values(last.summaries),
            "topic": last.topic,
            "titles": last.titles,
            "revised": last.revised,
            **({"kept": last.kept} if last.kept else {}),
            **({"directives": list(map(directive, last.directives))} if last.directives else {}),
        },
        **({"directives": list(map(directive, state.directives))} if state.directives else {}),
        **{name: list(map(listing.to_value, rules)) for name in _RULES if (rules := getattr(state, name))},
        **_hidden_value(state, written),
        **({"slots": {"texts": state.slots.texts, "tokens": state.slots.tokens}} if state.slots is not None else {}),
        **({"tree": state.tree.to_mapping()} if state.tree != Tree() else {}),
        **({"kept": state.kept} if state.kept else {}),
        **({"mounts": {name: attrs.asdict(mount) for name, mount in state.mounts.items()}} if state.mounts else {}),
        **({"promoted": {page: list(each) for page, each in state.promoted.items()}} if state.promoted else {}),
        **({"lease": list(state.lease)} if state.lease[0] else {}),
        **({"described": state.described} if state.described else {}),
        **({"bookmarks": _bookmark_values(state)} if state.bookmarks else {}),
        "settled": state.settled and attrs.asdict(state.settled),
        "carried": state.carried,
        "traffic": attrs.asdict(state.traffic),
        "spent": attrs.asdict(state.spent),
    }


def _rules(values: Iterable[Mapping[str, Any]]) -> tuple[listing.Rule, ...]:
    """Return the rules that a state holds, without those of erased pages."""
    return tuple(listing.Rule(**each) for each in values if each["text"] != ERASED)


def _carried(value: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    """Return what requests carried; older states know it of the last window only."""
    if "carried" in value:
        return tuple((calls, tokens) for calls, tokens in value["carried"])
    settled = value["settled"]
    return ((0, settled["tools_tokens"] + settled.get("extra_tokens", 0)),) if settled else ()


def from_mapping(value: Mapping[str, Any]) -> State:
    """Read a state back. O(its size)."""
    if value["v"] not in _READ:
        message = f"a state of version {value['v']}, not one of {_READ}"
        raise ValueError(message)
    state = State(
        **{name: value[name] for name in _AS_THEY_ARE},
        config=Config.from_stored(value["config"]),
        configured=value["config"],
        chosen=value.get("chosen", {}),
        renderer=value.get("renderer", OLDEST_RENDERER),
        **{name: value[name] for name in _LATER if name in value},
        touched=dict(value.get("touched", {})),
        next_number=dict(value["next_number"]),
        pinned=set(value["pinned"]),
        recalls={index: (count, turn) for index, (count, turn) in value["recalls"].items()},
        ratios=tuple(value.get("ratios", [value["scale"]] * 2)),
        traffic=Traffic(**value["traffic"]),
        spent=Spent(**value.get("spent", {})),
        detours=tuple((target, seq) for target, seq in value["detours"]),
        answers=tuple(value.get("answers", ())),
        tree=Tree.from_mapping(value["tree"]) if "tree" in value else Tree(),
        kept=dict(value.get("kept", {})),
        described=dict(value.get("described", {})),
        mounts={name: Mount(**each) for name, each in value.get("mounts", {}).items()},
        promoted={page: (note, revision) for page, (note, revision) in value.get("promoted", {}).items()},
        carried=_carried(value),
        lease=tuple(value.get("lease", (0, ""))),
        bookmarks={each["entry_seq"]: (each["page"], each["label"]) for each in value.get("bookmarks", ()) if each["label"]},
        working=_working_set(value.get("working")),
        settled=value["settled"] and WindowSettled(**known_fields(WindowSettled, value["settled"])),
    )
    facts = state.wire.facts
    page = partial(page_from_value, facts=facts)
    state.directives = tuple(directives.from_value(each, page) for each in value.get("directives", ()))
    state.rules, state.removed_rules = (_rules(value.get(name, ())) for name in _RULES)
    for chapter, pages in ((state.system, value["system"]), (state.active, value["active"])):
        for each in pages:
            chapter.add_page(page(each))
    _read_hidden(state, value)
    for item in value["recalled"]:
        attachment = Attachment(**{name: item[name] for name in _OF_ATTACHMENTS if name in item}, block=facts(item["block"]))
        state.recalled.attach(page(item["page"]), attachment)
    for item in value.get("quotes", ()):
        passages = item["passages"]
        quotes = Quotes(passages=passages, block=passages_block(passages, state.wire), tokens=item["tokens"])
        state.recalled.quotes[item["beside"]] = quotes
    state.slots = _slots(value.get("slots"), state.wire)
    state.archive.replace(map(_item, value["entries"]))
    listed = {entry.index: entry for entry in state.archive.entries}

    def known(item: Mapping[str, Any]) -> Item:
        return listed[item["listed"]] if "listed" in item else _item(item)

    if (last := value["last_fold"]) is not None:
        entries = tuple(map(known, last["entries"]))
        state.last_fold = LastFold(
            folded=tuple(last["folded"]),
            entries=entries,
            working=_working_set(last.get("working")),
            summaries=_summaries(last),
            topic=last.get("topic", 0),
            titles=last.get("titles", {}),
            revised=tuple(last.get("revised", ())),
            kept=last.get("kept", {}),
            directives=tuple(directives.from_value(each, page, state.directives) for each in last.get("directives", ())),
        )
    if (shown := value["published"]) is not None:
        directories = [each for item in shown["directories"] if isinstance(each := known(item), Directory)]
        state.archive.publish(facts(shown["message"]), shown["tokens"], shown["indexes"], directories)
    state.summaries = _summaries(value)
    state.claims = {index: (by, until) for index, (by, until) in value.get("claims", {}).items()}
    state.opening = value["opening"] and page(value["opening"])
    for index, late in value["late"].items():
        state.late[index] = [LateResult(item["call_seq"], next(page(item["page"]).nodes())) for item in late]
    return state


def _hidden_value(state: State, written: Written) -> dict[str, Any]:
    """Return which pages of the system part stand behind a line, and how they are called; nothing where none is either."""
    hidden = {index: {"message": written(each.message), "tokens": each.tokens} for index, each in state.hidden.items()}
    return {**({"hidden": hidden} if hidden else {}), **({"system_names": state.system_names} if state.system_names else {})}


def _read_hidden(state: State, value: Mapping[str, Any]) -> None:
    for index, item in value.get("hidden", {}).items():
        state.hidden[index] = HiddenPage(state.wire.facts(item["message"]), item["tokens"])
    state.measure_hidden()
    state.system_names = {index: (name, told) for index, (name, told) in value.get("system_names", {}).items()}


def _bookmark_values(state: State) -> list[dict[str, Any]]:
    return [{"entry_seq": seq, "page": page, "label": label} for seq, (page, label) in state.bookmarks.items()]


def _slots(value: Mapping[str, Any] | None, wire: Format) -> Slots | None:
    return None if value is None else Slots(**value, block=slots_block(value["texts"], wire))


def _summary_values(summaries: Mapping[str, SummaryPrepared]) -> list[dict[str, Any]]:
    return list(map(attrs.asdict, summaries.values()))


def _summaries(value: Mapping[str, Any]) -> dict[str, SummaryPrepared]:
    """Read summaries back; older states have none."""
    found = (SummaryPrepared(**known_fields(SummaryPrepared, each)) for each in value.get("summaries", ()))
    return {each.page: each for each in found}


def _working_value(working: WorkingSet) -> dict[str, Any]:
    notes, shown = as_values(working.notes), as_values(working.shown)
    value = {"clock": working.clock, "notes": notes, "shown": shown, "tokens": working.tokens, "continues": working.continues}
    value |= {"continuation": continuation_value(working.continuation), "by_page": working.by_page}
    return value | ({"facts": table_value(working.facts)} if working.facts.clock else {})


def _working_set(value: Mapping[str, Any] | None) -> WorkingSet:
    """Read a working set back; states that were written without one give one with nothing in it."""
    if value is None:
        return WorkingSet()
    notes, shown = from_values(value["notes"]), from_values(value["shown"])
    made = continuation_from(value.get("continuation"))
    return WorkingSet(
        value["clock"],
        notes,
        shown,
        value["tokens"],
        value.get("continues", False),
        made,
        value.get("by_page", False),
        table_from(value.get("facts")),
    )


def _item(value: Mapping[str, Any]) -> Item:
    return Directory.from_mapping(value) if "covers" in value else ContentsEntry.from_mapping(value)
