"""How much of a working set's files is used afterwards: ``python -m benchmarks.quality.working_set coding``.

A conversation is played as ``memci bench quality`` does. Whenever the files that the window lists change, each of them counts as
used when a later call's arguments hold it, within the next messages or until the end.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from memci.engine.settings.config import Config
from memci.messages.parts import PartKind, parts
from memci.messages.tokens.counter import get_counter
from memci.quality.catalogue import memci_spec
from memci.quality.conversation import Conversation, full_text, read_set
from memci.quality.playing import COUNTER

_FILES = re.compile(r"^\s*files(?: below …/)?: (.+)$", re.MULTILINE)


def listed_files(window: Iterable[Mapping[str, Any]], conversation: Conversation) -> tuple[str, ...]:
    """Return the files that a window lists, in messages that are none of the conversation's."""
    blocks = (full_text(dict(value)) for value in window if value not in conversation.messages)
    lists = (line.split(", ") for block in blocks for line in _FILES.findall(block))
    return tuple(name for files in lists for name in files)


def used_files(conversation: Conversation, budget: int, near: int) -> list[tuple[bool, bool]]:
    """Return of each file, at each change of the list, whether a call used it within *near* messages, and until the end."""
    found: list[tuple[bool, bool]] = []
    before: tuple[str, ...] = ()
    called = ["\n".join(part.text for part in parts(value) if part.kind is PartKind.CALL) for value in conversation.messages]
    with memci_spec(Config()).open(budget, conversation) as engine:
        for number, (value, at) in enumerate(zip(conversation.messages, conversation.times, strict=True)):
            if value.get("role") == "assistant":
                files = listed_files(engine.window(), conversation)
                if files != before:
                    soon, later = "\n".join(called[number : number + near]), "\n".join(called[number:])
                    found += [(name in soon, name in later) for name in files]
                before = files
            engine.add(value, at)
    return found


def main() -> None:
    """Print both shares, by set and budget."""
    arguments = argparse.ArgumentParser(description="Measure how much of a working set's files is used afterwards.")
    arguments.add_argument("paths", type=Path, nargs="+", metavar="PATH")
    arguments.add_argument("--budgets", default="4000,8000")
    arguments.add_argument("--near", type=int, default=40, help="messages")
    given = arguments.parse_args()
    for path in given.paths:
        conversations = read_set(path, get_counter(COUNTER), join=1).conversations
        for budget in map(int, given.budgets.split(",")):
            found = [each for conversation in conversations for each in used_files(conversation, budget, given.near)]
            soon, later = (sum(each[place] for each in found) / max(len(found), 1) for place in (0, 1))
            sys.stdout.write(
                f"{path.name}, window of {budget}: {len(found)} listed files, {soon:.0%} of them used in the next "
                f"{given.near} messages, {later:.0%} until the end\n"
            )


if __name__ == "__main__":
    main()
