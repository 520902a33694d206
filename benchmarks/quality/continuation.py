"""What agents need next, with a continuation in the window and without: made of extracts, and by a summariser that has one ready.

python -m benchmarks.quality.continuation DIRECTORY [--budget 8000] [--half 1]

Conversations are files with ``needs``, and with a ``summary`` that a model wrote of them. Whenever a continuation is asked for,
that is given, from its beginning and as far as there is room in 1,500 tokens, and checked as any other.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

import attrs

from memci.archive.summarizers.summary import GivenPage
from memci.engine.engine import Engine
from memci.engine.settings.config import Budget, Config, Recall, Summary
from memci.messages.message import Message
from memci.messages.tokens.counter import get_counter
from memci.quality.catalogue import MemciEngine
from memci.quality.conversation import read_conversation, with_system
from memci.quality.played import Needs
from memci.quality.playing import COUNTER
from memci.quality.scoring.evidence import find_needs

_PATIENCE_S = 60.0
_BEGINNING = "\nSummary:\n"  # what a model wrote before it is notes of its own
MOST_TOKENS = 1_500
OFF, TWIN = Summary(), Summary(continuation=True)
VIEWS = {
    "the working set": (OFF, False),
    "extracts, 400 tokens": (TWIN, False),
    "extracts, 1,500 tokens": (attrs.evolve(TWIN, continuation_tokens=MOST_TOKENS), False),
    "a summariser, 1,500 tokens": (attrs.evolve(TWIN, continuation_tokens=MOST_TOKENS), True),
}


class Ready:
    """Gives what is ready of a conversation, as much as there is room for; of pages it has nothing to say."""

    name = "ready"

    def __init__(self, summary: str) -> None:
        self._summary = summary.partition(_BEGINNING)[2] or summary
        self.gave = 0  # lines, the last time

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        """Return nothing: the page keeps its extracts."""
        del messages, max_tokens
        return ""

    def continuation(self, previous: str, pages: Sequence[GivenPage], *, max_tokens: int) -> str:
        """Return the first lines of the summary."""
        del previous, pages
        room, lines, count = int(1.2 * max_tokens), list[str](), get_counter(COUNTER).count
        for line in filter(str.strip, self._summary.splitlines()):
            room -= count(line) + 2
            if room < 0:
                break
            lines.append(line)
        self.gave = sum(any(map(str.isalnum, line)) for line in lines)
        return "\n".join(lines)


@attrs.frozen(kw_only=True)
class Seen:
    """What the last window of a conversation shows."""

    needs: dict[str, Needs]
    tokens: int  # of the window
    shown: int  # tokens of the working set, or of the continuation
    written: int = 0  # continuations, by a summariser
    lines: int = 0  # of the last of them, those that were believed
    dropped: int = 0  # and the others


def play(path: Path, budget: int, view: str) -> Seen:
    """Return what the last window shows; a continuation has come before each answer of the assistant."""
    summary, ready = VIEWS[view]
    conversation = with_system(read_conversation(path), get_counter(COUNTER))
    told: dict[str, Any] = json.loads(path.read_bytes())
    config = Config(budget=Budget(window=budget, reserve=0), recall=Recall(protocol="none"), summary=summary)
    summarizer = Ready(told["summary"]) if ready else None
    with Engine("memory:", config, summarizer=summarizer) as engine, engine.session("conversation") as session:
        played = MemciEngine(session)
        for value, at in zip(conversation.messages, conversation.times, strict=True):
            if value["role"] == "assistant":
                session.summarize(_PATIENCE_S)
                session.window()
            played.add(value, at)
        window = session.window()
        written = [event.data for event in session.events("summary_prepared") if event.data["page"] == "usr-0"]
        lines = sum(len(each["lines"]) for each in written[-1:])
        return Seen(
            needs=find_needs(conversation, window.messages),
            tokens=window.tokens,
            shown=window.breakdown["work"],
            written=len(written),
            lines=lines,
            dropped=summarizer.gave - lines if summarizer is not None else 0,
        )


def main() -> None:
    """Print for each view the needs that the last window meets, by kind, and its sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--budget", type=int, default=8_000)
    parser.add_argument("--half", type=int, choices=(0, 1), help="every other file: 0 begins with the first; all if left out")
    given = parser.parse_args()
    paths = sorted(given.directory.glob("*.json"))[given.half :: 1 if given.half is None else 2]
    with ProcessPoolExecutor(2) as processes:
        for view in VIEWS:
            seen = list(processes.map(play, paths, repeat(given.budget), repeat(view)))
            sys.stdout.write(f"{view}: {_told(seen)}\n")


def _told(seen: Sequence[Seen]) -> str:
    kinds = sorted({kind for each in seen for kind in each.needs})
    totals = {kind: sum((each.needs.get(kind, Needs()) for each in seen), Needs()) for kind in kinds}
    met = ", ".join(f"{kind} {each.met}/{each.asked} ({each.met / each.asked:.0%})" for kind, each in totals.items())
    sizes = ", ".join(f"{name} {sum(getattr(each, name) for each in seen) / len(seen):.0f}" for name in ("tokens", "shown"))
    written = [each for each in seen if each.written]
    kept, dropped = sum(each.lines for each in written), sum(each.dropped for each in written)
    checked = (
        f"; in {len(written)} of {len(seen)} one was written, of the last {kept} lines kept, {dropped} dropped" if written else ""
    )
    return f"{met}; {sizes}{checked}"


if __name__ == "__main__":
    main()
