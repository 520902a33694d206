"""Conversations and stores that the tests of the command look at."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

import memci

CONFIG = {"budget": {"window": 700, "reserve": 0}, "counter": "approximate", "durability": "flush", "snapshot_every": 50}
"""A small window, a counter that loads nothing, and snapshots in short sessions too."""


@attrs.frozen
class Ran:
    """What a command did.

    Attributes:
        code: Its exit code.
        out: What it wrote to standard output.
        err: What it wrote to standard error.
    """

    code: int
    out: str
    err: str

    def json(self) -> Any:  # noqa: ANN401 (a JSON value)
        """Return the one document on standard output."""
        return json.loads(self.out)


Run = Callable[..., Ran]


def chat(turns: int, *, first: int = 1) -> list[dict[str, Any]]:
    """Return a conversation of so many turns, with a system message and a tool call in every fifth turn."""
    said: list[dict[str, Any]] = [{"role": "system", "content": "You are terse."}]
    for turn in range(first, first + turns):
        said.append({"role": "user", "content": f"What does part {turn} of the boiler cost, with a gasket of {turn} mm?"})
        if not turn % 5:
            call = {"id": f"call_{turn}", "type": "function", "function": {"name": "price", "arguments": f'{{"part": {turn}}}'}}
            said.append({"role": "assistant", "content": None, "tool_calls": [call]})
            said.append({"role": "tool", "tool_call_id": f"call_{turn}", "content": f"EUR {turn}.50, in stock: {turn * 3}"})
        said.append({"role": "assistant", "content": f"Part {turn} costs {turn}.50 euros; the gasket is another 2.10 euros."})
    return said


def store_chat(root: Path, session_id: str, messages: Sequence[dict[str, Any]]) -> str:
    """Store a conversation, asking for a window before each answer, and return the URL of the store."""
    with memci.Engine(f"file:{root}", CONFIG) as engine, engine.session(session_id) as session:
        for message in messages:
            if message["role"] == "assistant":
                session.window()
            session.append(message)
    return f"file:{root}"


def files_below(root: Path) -> dict[str, bytes]:
    """Return all files below a directory with their bytes."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
