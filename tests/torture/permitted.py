"""A model that calls tools at random, under each permission: ``python -m tests.torture.permitted --calls 50000``.

A session has a segment of each permission, and ``usr`` has one of them. After each call everything outside what is permitted is
as it was: pages, their order, names, descriptions and places, what the notes hold, what was said, segments, pins, slots and
settings; nothing of a segment that the application manages is opened, closed or told. Whatever a call holds, it gets an answer.
"""

import argparse
import json
import logging
import random
import sys
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from memci.archive.catalogue.page_facts import PageState
from memci.archive.contents.tree import Permission, Tree
from memci.chapters.address import is_root
from memci.engine.session import Session
from memci.errors import MemciError
from tests.engine.sessions import open_session, turn
from tests.engine.wires import WIRES, Wire
from tests.torture.driver import TEXTS

CALLS = 250  # of one session
OPENED = "what stands open of what is managed"
HIDDEN = "zebrafinch"  # in what the application manages, and nowhere else


class Model:
    """One session, and a model without sense."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 (chance, not secrets)
        self.wire: Wire = self.chance.choice(WIRES)
        self.counts: Counter[str] = Counter()
        self.numbers = 0
        self.session = self.begin(Permission(self.chance.choice(list(Permission))))
        self.done: list[str] = []
        self.before: dict[str, object] | None = None  # all that may not change, where nothing happened since

    def begin(self, permission: Permission) -> Session:
        """Return a session with pages, notes and directories in segments of all permissions."""
        session = open_session(
            format=self.wire.name,
            counter="approximate",
            active={"min_pages": 1},
            budget={"window": self.chance.choice([2_000, 6_000]), "reserve": 0},
        )
        session.set_system([self.wire.system("rules of the house " * 20)])
        self.say(session, 10)
        session.fold()
        session.add_segment("usr", permission=permission)
        for each in Permission:
            root = session.add_segment(each.value, permission=each)
            said = HIDDEN if each is Permission.SYSTEM_MANAGED else "otter"
            inner = session.create_contents_page(f"{said} inner", "", root)
            outer = session.create_contents_page(f"{said} outer", said, root, [inner])
            for place in (root, outer, inner):
                session.create_detail_page(f"{said} note", said, f"{said} said", place)
        made = session.create_contents_page("Here", "", "usr-0", [2, 3])
        session.create_contents_page("Deeper", "", made, [4])
        session.slots["goal"] = "order"
        session.pin(5)
        return session

    def say(self, session: Session, turns: int) -> None:
        """Append turns."""
        for _ in range(turns):
            self.numbers += 1
            said, answered = (value["content"] for value in turn(self.numbers))
            session.extend([self.wire.user(said), *self.wire.answer("", answered, ())])

    # What the model calls

    def any_index(self) -> str:
        """Return the index of something that is there, or of nothing."""
        tree = self.session._core.state.tree
        known = [
            [node.index for node in tree],
            [f"{name}-0" for name in tree.segments],
            [facts.index for facts in self.session.pages()],
            ["usr-999", "note-999", "usr-1..4", "nobody-0", "note-0", "sys-0", ""],
        ]
        return self.chance.choice(self.chance.choice(known))

    def free(self, *, directory: bool = False) -> str:
        """Return the index of something that the model may edit, or of a directory or root that is such."""
        tree = self.session._core.state.tree
        nodes = [node for node in tree if tree.segment(node.index).permission is Permission.READ_WRITE and not node.removed]
        known = [node.index for node in nodes if node.is_directory or not directory]
        return self.chance.choice([*known, "read_write-0"] if directory or not known else known)

    def argument(self, name: str, schema: Mapping[str, Any]) -> object:
        """Return what the model gives for an argument: mostly something of the right kind."""
        pick = self.chance.choice
        if self.chance.random() < 0.04:
            return pick([None, 7, -1, True, 2**70, [], ["usr-1"], {"index": "usr-1"}, "", 0.5])
        kind = schema.get("type")
        if kind == "array":
            return list({self.free() if self.chance.random() < 0.8 else self.any_index() for _ in range(pick([0, 1, 1, 2, 3]))})
        if kind == "integer":
            return pick([0, 1, 1, 5, 5, 20, 100])
        if kind == "boolean":
            return pick([True, False])
        if name in ("index", "target", "parent", "source", "page"):
            return self.free(directory=name in ("target", "parent")) if self.chance.random() < 0.5 else self.any_index()
        plain = f"words {self.chance.randrange(99)}"
        return pick([*TEXTS, "otter", "answer3", plain, plain, plain, plain, plain, plain, plain, plain])

    def call(self) -> None:
        """Call a tool, and look what came of it."""
        offered = {tool["function"]["name"]: tool["function"]["parameters"] for tool in self.session.toolbox.openai()}
        every = [*offered, *offered, "remove_page", "move_page", "write_note", "group_pages", "erase", "pin", "rewind"]
        name = self.chance.choice(every)
        schema = offered.get(name, {"properties": {"index": {"type": "string"}}})
        arguments = {
            key: self.argument(key, each)
            for key, each in schema.get("properties", {}).items()
            if self.chance.random() < (0.98 if key in (*schema.get("required", ()), "parent", "description") else 0.3)
        }
        before = locked(self.session) if self.before is None else self.before
        self.done.append(f"{name} {arguments}"[:300])
        answer = self.session.handle_tool_call(self.written(name, arguments))
        assert self.wire.answers(answer) == ["c1"]
        text = json.dumps(answer)
        self.counts["calls"] += 1
        self.counts[f"{name}: {'refused' if 'error' in text[:400] else 'done'}"] += 1
        assert HIDDEN not in text, text
        after = self.before = locked(self.session)
        if name in ("open_page", "recall_page"):  # what is opened takes the room of what was used least, whosever that is
            stood, stands = before.pop(OPENED), after[OPENED]
            assert isinstance(stood, list)
            assert isinstance(stands, list)
            assert set(stood) >= set(stands), f"opened: {set(stands) - set(stood)}"
        for what, was in before.items():
            assert was == after[what], f"{what} changed: {was} {after[what]}"

    def written(self, name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Return a call in the wire's format."""
        if self.wire.name == "anthropic":
            return {"type": "tool_use", "id": "c1", "name": name, "input": arguments}
        text = json.dumps(arguments) if self.chance.random() < 0.99 else '{"index": '
        if self.wire.name == "responses":
            return {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": name, "arguments": text}
        return {"id": "c1", "type": "function", "function": {"name": name, "arguments": text}}

    # What the application does between

    def go_on(self) -> None:
        """Do what an application does between the calls of a model."""
        session, index = self.session, self.any_index()
        match self.chance.randrange(9):
            case 0 | 1:
                self.say(session, 1)
            case 2:
                session.fold(self.chance.choice([None, "all"]))
            case 3:
                session.window(2_000)
            case 4:
                session.add_segment("usr", permission=self.chance.choice(list(Permission)))
            case 5:
                session.restore(index)
            case 6:
                session.expand_details(index)
            case 7:
                (session.pin if self.chance.random() < 0.5 else session.unpin)(index)
            case _:
                target, tree = self.any_index(), session._core.state.tree
                if Permission.SYSTEM_MANAGED not in [
                    tree.segment(each).permission for each in (index, target) if tree.find(each)
                ]:
                    session.move_page(index, target)

    def run(self, calls: int) -> None:
        """Call so many times."""
        for _ in range(calls):
            self.call()
            if self.chance.random() < 0.25:
                self.before = None
                try:
                    self.go_on()
                except MemciError:
                    self.counts["of the application: refused"] += 1
        self.session._core.state._check()
        assert () == self.session.verify().problems


def locked(session: Session) -> dict[str, object]:
    """Return all that the model may not change, by what it is."""
    state = session._core.state
    tree: Tree = state.tree
    closed = {name for name, each in tree.segments.items() if each.permission is not Permission.READ_WRITE}
    managed = {name for name, each in tree.segments.items() if each.permission is Permission.SYSTEM_MANAGED}
    nodes = {node.index: (tree.segment(node.index).name, node) for node in tree}
    there: dict[str, object] = {
        "segments": dict(tree.segments),
        "what was said": [*session.messages()],
        "pins": {facts.index for facts in (*session.pages(), *session.notes()) if facts.pinned},
        "slots": dict(session.slots),
        "settings": state.config,
        "system part": [node.message.raw for node in state.system.message_list],
        OPENED: [index for index in state.recalled.attachments if not is_root(index) and segment(tree, index) in managed],
        "text of notes": {
            index: session.page(index).messages for index, (name, node) in nodes.items() if node.is_note and name in closed
        },
    }
    for name in closed:
        there[f"listed in {name}"] = {
            index: (node.parent, node.name, node.description, node.removed, [*node.children])
            for index, (of, node) in nodes.items()
            if of == name
        }
        there[f"at the root of {name}"] = [node.index for node in tree.children(f"{name}-0")]
    if "usr" in closed:
        there["pages of turns somewhere else"] = {
            index for index, (name, node) in nodes.items() if name != "usr" and not node.is_note and index.startswith("usr-")
        }
        there["evicted"] = [index for index in unlisted(session) if segment(tree, index) in closed]
    return there


def unlisted(session: Session) -> list[str]:
    """Return the pages that were evicted; one that a window shows until the next fold may be opened even so."""
    state = session._core.state
    pages = [facts.index for facts in session.pages() if facts.state in (PageState.EVICTED, PageState.ATTACHED)]
    archive, tree = state.archive, state.tree
    listed = {index for index in pages if archive.find_entry(index) is not None or archive.find_directory(index) is not None}
    return [index for index in pages if index not in listed and (tree.find(index) is None or tree.is_removed(index))]


def segment(tree: Tree, index: str) -> str:
    """Return the name of the segment of a page or a range."""
    return tree.segment(index).name


def drive(seed: int, calls: int) -> Counter[str]:
    """Let a model call so many times, and return what it did."""
    model = Model(seed)
    try:
        model.run(calls)
    except Exception as error:
        error.add_note(f"seed {seed}, format {model.wire.name}; calls:\n  " + "\n  ".join(model.done[-12:]))
        raise
    return model.counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Let models call tools, print the figures, and return the exit code."""
    parser = argparse.ArgumentParser(description="Call tools at random, and look whether anything changes that may not.")
    parser.add_argument("--seed", type=int, default=1, help="of the first session; the next ones have the next seeds")
    parser.add_argument("--calls", type=int, default=CALLS, help="in all, in sessions of 250")
    given = parser.parse_args(arguments)
    logging.getLogger("memci").addHandler(logging.NullHandler())
    counts: Counter[str] = Counter()
    problems, seed = 0, given.seed
    while (seed - given.seed) * CALLS < given.calls:
        try:
            counts += drive(seed, CALLS)
        except Exception:  # noqa: BLE001 (whatever it is, it is a problem, and the next seed may have another one)
            problems += 1
            sys.stdout.write("".join(f"  {line}\n" for line in traceback.format_exc().splitlines()))
            sys.stdout.write(f"  again: python -m tests.torture.permitted --seed {seed}\n")
        seed += 1
    sys.stdout.write("".join(f"  {name}: {count}\n" for name, count in sorted(counts.items())))
    sys.stdout.write(f"permitted: {counts['calls']} calls: {problems} problems\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
