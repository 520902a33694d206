"""A state that is written and read back is the same state, in every field."""

from collections.abc import Iterator
from typing import Any

import attrs

from memci.archive.contents.base_path import Base
from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory
from memci.archive.contents.tree import Node, Origin, Segment, Tree
from memci.archive.contents.working_set import Continuation, Kind, Note, WorkingSet
from memci.archive.facts.table import Fact, FactTable
from memci.archive.rules.listing import Rule
from memci.chapters.page import MessageNode, Opening, Page
from memci.chapters.recalled import Attachment, Quotes
from memci.engine.history import state_codec
from memci.engine.history.blocks import passages_block, slots_block
from memci.engine.history.directives import Directive
from memci.engine.history.events import SummaryPrepared, WindowSettled
from memci.engine.history.state import HiddenPage, LastFold, LateResult, Mount, Slots, Spent, State, Traffic, line_message
from memci.engine.settings.config import Config
from memci.messages import codec
from memci.messages.formats import responses
from memci.messages.formats.reading import ATTP_ANSWER
from memci.messages.message import Message
from tests.engine.sessions import config_of
from tests.engine.whole_state import objects, told
from tests.engine.wires import RESPONSES, Value

CALLED = RESPONSES.answer("", "", ["a"])[0]
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes", "parsed": {"n": 1}}]}
DECIDED = {"type": "mcp_approval_request", "id": "b", "name": "look", "arguments": "{}", "server_label": "tools"}

LINKS = {"previous", "next", "chapter", "pages", "stub", "brings"}
"""What is no part of a value: where a node or a page stands, what only roots and ranges list, and what was made of it."""


def node(value: Value, seq: int) -> MessageNode:
    return MessageNode(
        message=responses.facts(value),
        tokens=400 + seq,
        seq=seq,
        stub_tokens=40,
        trimmed=(90, 0, 120, 300, 400),
        at=f"2026-03-0{seq}T00:00:00+00:00",
    )


def page(index: str, *values: Value) -> Page:
    made = Page(index=index, turn=3, opened_by=Opening.CONTINUATION, name=f"the name of {index}")
    for seq, value in enumerate(values, start=1):
        made.add(node(value, seq))
        for call_id in responses.facts(value).answers:
            made.answer(call_id)
    return made


def entry(number: int) -> ContentsEntry:
    return ContentsEntry(
        index=f"usr-{number}",
        title=f"page {number}",
        summary="what it is about",
        lines=("user: one",),
        outcome="done",
        keywords=("rare",),
        words=(("a word", 1.5, " → "),),
        entities=("42 km",),
        state_changes=("wrote a file",),
        importance=0.5,
        entries=4,
        tokens=100,
        turn=2,
        archived_turn=3,
        recall_count=2,
        last_recall_turn=4,
        pinned=True,
        revision=1,
        sha256="ab" * 32,
        by="a model",
        first_seq=3,
        last_seq=9,
        first_at="2023-05-08T13:56:00+00:00",
        last_at="2023-05-09T00:00:00+00:00",
        detail=Detail.BRIEF,
        shown_tokens={Detail.FULL: 30, Detail.BRIEF: 20},
    )


def directory(first: int, last: int) -> Directory:
    return Directory(
        index=f"usr-{first}..{last}",
        spans=((first, "a word", 1.5, " → "),),
        price=0.2,
        unlisted=True,
        titles=("first", "second"),
        base=Base("/srv/app/", (first, last)),
        covers=((first, last),),
        pages=last - first + 1,
        archived_turn=4,
        last_recall_turn=5,
        first_at="2023-05-08T13:56:00+00:00",
        last_at="2023-05-09T00:00:00+00:00",
        shown_tokens=12,
    )


def working(clock: int) -> WorkingSet:
    notes = (Note(Kind.NAME, "read_it", "usr-3", 4, 1.5), Note(Kind.RULE, "always", "usr-2", clock, 2.0))
    made = Continuation(lines=("Goal: it",), by="a model", pages=("usr-1..3",), made=2, notes=notes[1:], tokens=40)
    facts = FactTable((Fact(3, "R1", "status", "open", "usr-2", 1),), clock, ((3,),), 20)
    return WorkingSet(clock, notes, notes[:1], 30, continues=True, continuation=made, by_page=True, facts=facts)


def summary(index: str) -> SummaryPrepared:
    return SummaryPrepared(
        page=index,
        revision=1,
        sha256="ab" * 32,
        by="a model",
        at="2023-05-09T00:00:00+00:00",
        room=96,
        reason="too long",
        title="what it is of",
        summary="in short",
        lines=["a line"],
        outcome="done",
        words=[["a word", 1.5, " → "]],
        lacks=["42 km"],
        usage={"tokens": 40},
        asked="window",
        tries=2,
        again="2026-01-01T00:10:00+00:00",
        pages=["usr-1..3"],
        given=["usr-3"],
        made=2,
        dropped=["'42'"],
    )


def tree() -> Tree:
    """Return a tree with a note in a directory that was removed."""
    tree = Tree([Segment("lessons", "memory", "read_write", 400), Segment("sys"), Segment("usr")])
    tree.add(Node("usr-3", "usr-0", "Invoices", "What is to be paid", turn=2, by="model", is_directory=True))
    origin = Origin(session="other", pages=("usr-1", "usr-4..6"), seq=7, revision=1, checkpoint="cp-1", key="task")
    tree.add(Node("note-4", "usr-3", "Limit", "How many rows", tokens=12, turn=3, by="application", origin=origin))
    tree.place("usr-2", "usr-3", "note-4", "model")
    tree.remove("usr-3")
    tree.last_edit = (("return", "usr-3", "usr-0", ""),)
    tree.left_open = {"usr-3": ("note-4",)}
    tree.outline_tokens, tree.shortened = 30, {"lessons": (4, 2)}
    return tree


def full_state() -> State:
    """Return a state of which no field has its default."""
    configured = config_of(format="responses", recall={"turns": 3}).policy_mapping()
    rule = Directive(address="usr-2/3", node=node(RESPONSES.system("answer in French"), 4), last_seq=9, repeated=True)
    former = Directive(address="usr-1/2", node=node(RESPONSES.system("answer in verse"), 2), last_seq=2)
    state = State(
        session="chat",
        seq=30,
        turn=7,
        config=Config.from_mapping(configured),
        next_number={"sys": 2, "usr": 12},
        turn_page="usr-9",
        opening=page("usr-9", RESPONSES.user("what was asked")),
        pinned={"usr-10", "usr-11"},
        kept={"usr-11": "rule", "usr-10": "application"},
        lease=(40, "2026-03-01T00:00:00+00:00"),
        described={"title": "About boats", "stars": 5},
        bookmarks={7: ("usr-10", "the answer")},
        recalls={"usr-11": (2, 5), "usr-10": (1, None)},
        late={
            "usr-6": [LateResult(8, node(RESPONSES.result("a", "late"), 9))],
            "usr-5": [LateResult(5, node(RESPONSES.result(each, "later"), 6)) for each in ("b", "c")],
        },
        working=working(12),
        claims={"usr-11": ("0123abcd", "2023-05-09T00:00:00+00:00")},
        summaries={"usr-10": summary("usr-10"), "usr-8": summary("usr-8")},
        topic=8,
        last_fold=LastFold(
            folded=("usr-7", "usr-8"),
            entries=(directory(1, 5), entry(6)),
            working=working(9),
            summaries={"usr-8": summary("usr-8")},
            topic=5,
            titles={"usr-8": "its title"},
            revised=("usr-6",),
            kept={"usr-7": "application"},
            directives=(former, attrs.evolve(rule, last_seq=4)),
        ),
        directives=(rule,),
        system_seq=1,
        rules=(
            Rule(
                text="Never push.",
                address="usr-2/1#2",
                at="2026-02-01",
                speaker="Ann",
                kind="prohibition",
                superseded_by="usr-3/1",
                seq=7,
                tokens=12,
            ),
        ),
        removed_rules=(Rule(text="Call me Ann.", address="usr-2/1", at="2026-02-01", kind="identity", seq=4, tokens=9),),
        rules_tokens=33,
        next_rule=3,
        folded_turn=6,
        touched={"usr-8": 5, "usr-3": 6},
        carried=((3, 40), (4, 72)),
        settled=WindowSettled(
            extra={"date": "Monday"},
            extra_tokens=12,
            mounts=False,
            directives=False,
            explains=False,
            budget=900,
            format="responses",
            tools_sha256="cd" * 32,
            tools_tokens=60,
            renderer=1,
            contents=False,
            excerpts={"9": [4_000, 900]},
            sizes={"3": [60, 47]},
            stubs=[3, 2],
            reads=True,
            passages_seq=12,
            scale=1.15,
        ),
        scale=1.25,
        ratios=(1.1, 1.3),
        traffic=Traffic(tokens=4_000, calls=12),
        spent=Spent(said_tokens=4_100, calls=11, sent_tokens=90_000, reports=3, reported_tokens=30_000, cached_tokens=20_000),
        erased_seq=20,
        answers=("ef" * 32, "01" * 32),
        instructions="how to recall",
        instruction_tokens=15,
        headlines="how to end",
        headlines_tokens=9,
        configured=configured,
        chosen={"recall": {"turns": 3}},
        renderer=3,
        next_checkpoint=4,
        detours=((3, 9), (10, 14)),
    )
    state.tree = tree()
    state.system.add_page(page("sys-1", RESPONSES.system("be brief")))
    state.hidden["sys-1"] = HiddenPage(line_message(state.wire, page("sys-1", RESPONSES.system("be brief")), "[sys-1] brief"), 7)
    state.system_names["sys-1"] = ("Manners", "how to speak")
    state.measure_hidden()
    looked = page("usr-10", RESPONSES.user("look there"), CALLED, DECIDED, RESPONSES.result("a", "found"))
    answer = node(RESPONSES.user(ATTP_ANSWER), 9)
    answer.message = answer.message.marked(attp=True)
    looked.add(answer)
    state.active.add_page(looked)
    state.active.add_page(page("usr-11", RESPONSES.user("and there"), SAID, CALLED))
    for index, prefetched in (("usr-7", 0), ("usr-6", 12)):
        block = responses.block(f"[recalled {index}]")
        attachment = Attachment(anchor="usr-10", turn=6, block=block, tokens=50, prefetched=prefetched, used_seq=17)
        attachment = attrs.evolve(attachment, media=True, dated=True, lasting=True)
        state.recalled.attach(page(index, RESPONSES.user(f"of {index}"), CALLED), attachment)
    quoted = {"page": "usr-2", "address": "usr-2/1", "role": "user", "at": "2026-03-01", "text": "of then"}
    state.recalled.quotes[9] = Quotes(passages=[quoted], block=passages_block([quoted], state.wire), tokens=40)
    texts = {"goal": "ship it", "files": "a.py\nb.py"}
    state.promoted["usr-7"] = ("note-3", 2)
    state.mounts["project"] = Mount(
        session="Project 7",
        permission="read_only",
        capacity_tokens=500,
        only="facts",
        seq=12,
        text="[contents of project]",
        tokens=9,
        noted=11,
    )
    state.slots = Slots(texts=texts, block=slots_block(texts, state.wire), tokens=31)
    state.archive.replace([directory(1, 6), entry(7), attrs.evolve(entry(8), detail=Detail.BARE)])
    state.archive.publish(responses.block("[usr-0] Contents"), 80, ["usr-1..5", "usr-7"], [directory(1, 5)])
    return state


def untouched(value: object) -> Iterator[tuple[type, str]]:
    """Yield the class and name of each field that has its default in all objects of its class that a state refers to."""
    defaults, changed = set(), set()
    for each in objects(value):
        kind: Any = type(each)
        if not attrs.has(kind) or kind.__module__.startswith(Config.__module__.rpartition(".")[0]):
            continue  # settings are written as the mapping that they were made from
        for field in attrs.fields(kind):
            if field.default is attrs.NOTHING or field.name in LINKS:
                continue
            default = field.default.factory() if hasattr(field.default, "factory") else field.default
            defaults.add((kind, field.name))
            if told(getattr(each, field.name)) != told(default):
                changed.add((kind, field.name))
    yield from sorted(defaults - changed, key=str)


def test_a_state_read_back_is_the_one_that_was_written() -> None:
    """Every field of a state, of what it refers to, and every link and order in it, comes back from the JSON of a snapshot."""
    state = full_state()
    state._check()
    again = state_codec.from_mapping(codec.decode(codec.encode(state_codec.to_mapping(state))))
    again._check()
    assert told(state) == told(again)


def test_what_is_still_listed_is_written_once() -> None:
    """Of what the window shows, and of what the last fold found, the index of an equal entry is written, and one object read."""
    state = full_state()
    state.last_fold = LastFold(("usr-8",), (directory(1, 6), entry(7), entry(8)))
    shown = state.archive.message_list.head
    assert shown is not None
    state.archive.publish(shown.message, 80, ["usr-1..6"], [directory(1, 6)])
    value = codec.decode(codec.encode(state_codec.to_mapping(state)))
    entries = value["last_fold"]["entries"]
    assert [{"listed": "usr-1..6"}, {"listed": "usr-7"}, entry(8).to_mapping()["index"]] == [*entries[:2], entries[2]["index"]]
    assert entries[:1] == value["published"]["directories"]
    again = state_codec.from_mapping(value)
    assert told(state) == told(again)
    assert again.last_fold is not None
    assert again.archive.entries[:1] == again.archive.shown_directories
    assert again.archive.entries[0] is again.last_fold.entries[0] is again.archive.shown_directories[0]


def test_states_of_older_versions_are_read() -> None:
    """Version 9 wrote all of them in full, wherever they stand; restored checkpoints of older journals hold such states."""
    state = full_state()
    value = state_codec.to_mapping(state)
    assert state.last_fold is not None
    value["last_fold"]["entries"] = [each.to_mapping() for each in state.last_fold.entries]
    value["published"]["directories"] = [each.to_mapping() for each in state.archive.shown_directories]
    assert told(state) == told(state_codec.from_mapping(codec.decode(codec.encode({**value, "v": 9}))))


def test_every_field_of_a_state_is_tried() -> None:
    """No field, in no class that a state is made of, has its default in the state that is written and read back."""
    assert [] == list(untouched(full_state()))
    assert {MessageNode, Page, Message, Attachment, ContentsEntry, Directory, LateResult, LastFold, Traffic} <= {
        type(each) for each in objects(full_state())
    }
