"""Recall and read all that contents pages show, in three ways: ``python -m tests.mcp.recall_everything FILE … --budget 8000``.

Conversations are joined in the order in which they are given, and replayed through a small window. At each fold a copy is
made of the store, and in the copy every index that the window's contents page shows, in an entry, as a directory or within
a directory's ranges, is recalled and read back in ATTP, natively and over MCP.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

import memci
from memci.attp.document import CodeCall
from memci.chapters.address import last_number, page_number, segment_of
from memci.engine.core.monitor import Fold, Notice
from memci.quality.replay import read_conversation
from tests.attp.replies import call_toml
from tests.mcp.serving import served

Answer = Callable[[str, Mapping[str, object]], Any]
"""Calls a tool by name, and returns what it answers."""

_HEAD = re.compile(r"^\[([a-z][a-z0-9_]*-[0-9.]+)\]", re.MULTILINE)


@attrs.define
class Found:
    """What a run has seen.

    Attributes:
        contents_pages: Contents pages that were looked at.
        indexes: Indexes that they showed, each counted once a contents page.
        unequal: What could not be recalled, or was read otherwise than it is: way, index, and what was wrong.
    """

    contents_pages: int = 0
    indexes: int = 0
    unequal: list[str] = attrs.field(factory=list)


def recall_everything(messages: Sequence[Mapping[str, Any]], work: Path, *, budget: int) -> Found:
    """Replay a conversation, and look into a copy of its store at each fold."""
    found = Found()
    config = {"budget": {"window": budget, "reserve": 0}, "durability": "flush"}
    folds: list[Notice] = []
    with memci.Engine(f"file:{work / 'store'}", config) as engine, engine.session("replayed") as session:
        session.observe(lambda notice: folds.append(notice) if isinstance(notice, Fold) else None)
        for message in messages:
            if message["role"] == "assistant":
                session.window()
            session.append(message)
            if folds:
                folds.clear()
                shown = sorted(set(shown_indexes(session)))
                expected = {index: session.toolbox.messages(index) for index in shown}
                found.contents_pages += 1
                found.indexes += len(shown)
                found.unequal += _compare(work, config, expected)
        assert json.dumps(list(messages)) == json.dumps(list(session.messages())), "the replayed messages are not those given"
    return found


def shown_indexes(session: memci.Session) -> Iterator[str]:
    """Yield what a reader finds in the window's contents page: indexes at the beginning of lines, and those in ranges."""
    known = {facts.index for facts in session.pages()}
    for message in session.window().messages:
        text = message.get("content")
        if not isinstance(text, str) or not text.startswith("[usr-0]"):
            continue
        for line in text.splitlines()[1:]:
            head = _HEAD.match(line)
            if head is None:
                continue
            yield head[1]  # of a page, or of a directory, which is the range of its pages
            numbers = range(page_number(head[1]), last_number(head[1]) + 1)
            yield from (index for number in numbers if (index := f"{segment_of(head[1])}-{number}") in known)


def _compare(work: Path, config: Mapping[str, Any], expected: Mapping[str, list[dict[str, Any]]]) -> Iterator[str]:
    for way in ("native", "attp", "mcp"):
        copy = work / way
        shutil.copytree(work / "store", copy)
        if way == "mcp":
            with served(f"file:{copy}", "replayed") as server:
                yield from _differences(way, lambda name, given: server.value(name, **given), expected)
        else:
            with memci.Engine(f"file:{copy}", config) as engine, engine.session("replayed") as session:
                yield from _differences(way, native(session) if way == "native" else attp(session), expected)
        shutil.rmtree(copy)


def native(session: memci.Session) -> Answer:
    """Return how a model with tool calls of its own calls a tool."""

    def answer(name: str, given: Mapping[str, object]) -> Any:  # noqa: ANN401 (what the tool answers)
        function = {"name": name, "arguments": json.dumps(given)}
        return json.loads(session.handle_tool_call({"id": "call", "type": "function", "function": function})["content"])

    return answer


def attp(session: memci.Session) -> Answer:
    """Return how a model that writes text calls a tool."""

    def answer(name: str, given: Mapping[str, object]) -> Any:  # noqa: ANN401 (what the tool answers)
        arguments = ", ".join(f"{key}={value!r}" for key, value in given.items())
        code = f"__result__ = {name}({arguments})\n"
        result = session.attp(call_toml(CodeCall(status="success", target="look", code=code, message="")))
        assert result.error is None, result.error
        return result.value

    return answer


def _differences(way: str, answer: Answer, expected: Mapping[str, list[dict[str, Any]]]) -> Iterator[str]:
    for index, messages in expected.items():
        receipt = answer("recall_page", {"index": index})
        if receipt.get("index") != index:
            yield f"{way} {index}: {receipt}"
            continue
        text, start = "", 0
        while start >= 0:
            reading = answer("read_page", {"index": index, "start": start, "limit": 8_000})
            text, start = text + reading["text"], reading["next"]
        if json.loads(text) != messages:
            yield f"{way} {index}: read otherwise than it is"


def main() -> int:
    """Run it on files, and print what was found; 1 where anything was unequal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="conversations, as memci replay takes them")
    parser.add_argument("--budget", type=int, default=8_000)
    given = parser.parse_args()
    messages = [said.message for said in read_conversation(given.files)[0]]
    with tempfile.TemporaryDirectory() as work:
        found = recall_everything(messages, Path(work), budget=given.budget)
    print(f"{len(messages)} messages, {found.contents_pages} contents pages, {found.indexes} indexes shown in them")  # noqa: T201
    print(f"recalled and read back in three ways; unequal: {len(found.unequal)}")  # noqa: T201
    for line in found.unequal[:20]:
        print(line)  # noqa: T201
    return 1 if found.unequal else 0


if __name__ == "__main__":
    sys.exit(main())
