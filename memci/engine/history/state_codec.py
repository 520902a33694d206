"""The state as JSON, for snapshots and restored checkpoints: a state read back equals the one that was written.

Journals hold what this module writes, so that what it wrote once must be read for ever; snapshots of another version are
passed over.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from memci.archive.contents.contents_page import Directory
from memci.chapters.page import Page
from memci.chapters.recalled import Attachment
from memci.engine.history.events import entry_of, settled_of
from memci.engine.history.page_codec import Written, page_from_value, page_value
from memci.engine.history.state import LastFold, LateResult, OpenTurn, State, Traffic
from memci.engine.settings.config import Config
from memci.messages.message import Message

VERSION = 7

_READ = (6, VERSION)

_AS_THEY_ARE = (
    "session",
    "seq",
    "turn",
    "turn_page",
    "scale",
    "erased_seq",
    "instructions",
    "instruction_tokens",
    "next_checkpoint",
)
_OF_ATTACHMENTS = ("anchor", "turn", "tokens", "prefetched", "used_seq", "media")


def to_mapping(state: State, written: Written = Message.value) -> dict[str, Any]:
    """Return the state as a JSON value. O(visible)."""
    archive, last, opening = state.archive, state.last_fold, state.opening
    shown = next(iter(archive.message_list), None)
    return {
        "v": VERSION,
        **{name: getattr(state, name) for name in _AS_THEY_ARE},
        "config": state.configured,
        "next_number": state.next_number,
        "system": [page_value(page, written) for page in state.system.pages()],
        "active": [page_value(page, written) for page in state.active.pages()],
        "recalled": [
            {
                **{name: getattr(attachment, name) for name in _OF_ATTACHMENTS},
                "page": page_value(page, written),
                "block": written(attachment.block),
            }
            for page in state.recalled.pages()
            for attachment in (state.recalled.attachments[page.index],)
        ],
        "entries": [entry.to_mapping() for entry in archive.entries],
        "published": None
        if shown is None
        else {
            "message": written(shown.message),
            "tokens": shown.tokens,
            "indexes": sorted(archive.published),
            "directories": [directory.to_mapping() for directory in archive.shown_directories],
        },
        "opening": None if opening is None else page_value(_page_of(opening), written),
        "pinned": sorted(state.pinned),
        "recalls": {index: list(recalls) for index, recalls in sorted(state.recalls.items())},
        "late": {
            index: [
                {"call_seq": result.call_seq, "page": page_value(_page_of(OpenTurn(index, [result.node])), written)}
                for result in late
            ]
            for index, late in state.late.items()
        },
        "last_fold": None
        if last is None
        else {
            "folded": list(last.folded),
            "entries": [entry.to_mapping() for entry in last.entries],
        },
        "settled": None if state.settled is None else attrs.asdict(state.settled),
        "ratios": list(state.ratios),
        "traffic": attrs.asdict(state.traffic),
        "detours": [list(detour) for detour in state.detours],
        "answers": list(state.answers),
    }


def from_mapping(value: Mapping[str, Any]) -> State:
    """Read a state back. O(its size)."""
    if value["v"] not in _READ:
        message = f"a state of version {value['v']}, not one of {_READ}"
        raise ValueError(message)
    state = State(
        **{name: value[name] for name in _AS_THEY_ARE},
        config=Config.from_stored(value["config"]),
        configured=value["config"],
        next_number=dict(value["next_number"]),
        pinned=set(value["pinned"]),
        recalls={index: (count, turn) for index, (count, turn) in value["recalls"].items()},
        ratios=tuple(value.get("ratios", [value["scale"]] * 2)),
        traffic=Traffic(**value["traffic"]),
        detours=tuple((target, seq) for target, seq in value["detours"]),
        answers=tuple(value.get("answers", ())),
        settled=None if value["settled"] is None else settled_of(value["settled"]),
    )
    facts = state.wire.facts
    for chapter, pages in ((state.system, value["system"]), (state.active, value["active"])):
        for item in pages:
            chapter.add_page(page_from_value(item, facts))
    for item in value["recalled"]:
        attachment = Attachment(**{name: item[name] for name in _OF_ATTACHMENTS if name in item}, block=facts(item["block"]))
        state.recalled.attach(page_from_value(item["page"], facts), attachment)
    state.archive.replace(entry_of(item) for item in value["entries"])
    if (shown := value["published"]) is not None:
        directories = map(Directory.from_mapping, shown["directories"])
        state.archive.publish(facts(shown["message"]), shown["tokens"], shown["indexes"], directories)
    if (opening := value["opening"]) is not None:
        page = page_from_value(opening, facts)
        state.opening = OpenTurn(page.index, list(page.nodes()))
    for index, late in value["late"].items():
        state.late[index] = [LateResult(item["call_seq"], next(page_from_value(item["page"], facts).nodes())) for item in late]
    if (last := value["last_fold"]) is not None:
        state.last_fold = LastFold(tuple(last["folded"]), tuple(entry_of(item) for item in last["entries"]))
    return state


def _page_of(opening: OpenTurn) -> Page:
    page = Page(index=opening.page, turn=0)
    for node in opening.nodes:
        page.add(attrs.evolve(node, previous=None, next=None))
    return page
