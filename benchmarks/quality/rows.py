"""Rows of the contents page beside the pages they tell of, for a reader to judge: ``python -m benchmarks.quality.rows PATH ...``.

Pages and whole windows are chosen at random, the same for the same seed also where another version writes other rows, and printed
in random order, so that the output of two versions can be mixed and judged without knowing which is which.
"""

import argparse
import hashlib
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from memci.engine.settings.config import Config
from memci.messages.tokens.counter import get_counter
from memci.quality.catalogue import memci_spec
from memci.quality.conversation import Conversation, full_text, read_set
from memci.quality.playing import COUNTER
from memci.quality.scoring.contents import ShownContents

_PAGE_CHARACTERS = 6_000  # of a page that are printed


@attrs.frozen
class Shown:
    """What the last window of a conversation shows."""

    window: str
    rows: dict[str, tuple[str, str]]  # by page: what the contents page has of it, and its text


def shown(conversation: Conversation, budget: int) -> Shown:
    """Play a conversation as ``memci bench quality`` does, and return what its last window shows."""
    with memci_spec(Config()).open(budget, conversation) as engine:
        for value, at in zip(conversation.messages, conversation.times, strict=True):
            if value.get("role") == "assistant":
                engine.window()
            engine.add(value, at)
        texts = [f"{value['role']}: {full_text(dict(value))}" for value in engine.window()]
        lines = ShownContents(texts).lines
        pages = {page.page: [conversation.messages[number] for number in page.messages] for page in engine.pages()}
    texts_of = {index: "\n".join(f"{value['role']}: {full_text(dict(value))}" for value in said) for index, said in pages.items()}
    return Shown("\n\n".join(texts), {index: (text, texts_of[index]) for index, text in lines.items()})


def chosen(paths: Sequence[Path], budget: int, rows: int, windows: int, seed: int) -> Iterator[str]:
    """Yield rows, the same number of each set where there are enough, and windows, of different sets, in random order."""
    draw = random.Random(seed)  # noqa: S311 (no secret)
    found: list[str] = []
    for number, path in enumerate(paths):
        conversations = list(read_set(path, get_counter(COUNTER)).conversations)
        draw.shuffle(conversations)
        rows_of: dict[str, tuple[str, str]] = {}
        for place, conversation in enumerate(conversations[:3]):
            seen = shown(conversation, budget)
            rows_of |= {f"{seed} {conversation.id} {index}": row for index, row in seen.rows.items()}
            if place == 0 and number < windows:
                found.append(f"A WINDOW\n\n{seen.window}")
        share = rows // len(paths) + (number < rows % len(paths))
        order = sorted(rows_of, key=lambda key: hashlib.sha256(key.encode()).digest())
        for row, page in map(rows_of.__getitem__, order[:share]):
            found.append(f"A ROW\n{row}\n\nITS PAGE\n{page[:_PAGE_CHARACTERS]}")
    draw.shuffle(found)
    yield from found


def main() -> None:
    """Print them, with a number each."""
    arguments = argparse.ArgumentParser(description="Print rows and windows to be judged.")
    arguments.add_argument("paths", type=Path, nargs="+", metavar="PATH")
    arguments.add_argument("--budget", type=int, default=8_000)
    arguments.add_argument("--rows", type=int, default=40)
    arguments.add_argument("--windows", type=int, default=6)
    arguments.add_argument("--seed", type=int, default=7)
    given = arguments.parse_args()
    for number, text in enumerate(chosen(given.paths, given.budget, given.rows, given.windows, given.seed), start=1):
        sys.stdout.write(f"===== {number} =====\n{text}\n\n")


if __name__ == "__main__":
    main()
