"""A session that is driven: its workers, its model of plain lists, and what must hold of both at any time."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs

from memci.archive.catalogue.page_facts import PageState
from memci.archive.stores.memory import MemoryStore
from memci.chapters.address import page_number
from memci.engine.commands.window import Window
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.settings.config import Config
from memci.errors import BudgetError, ConflictError
from memci.messages.tokens.message_tokens import count_message
from memci.page.live import LivePage
from tests.engine.conversation_model import Model
from tests.engine.wires import ANTHROPIC, WIRES, Value, Wire, assert_valid
from tests.torture.window_count import said, window_tokens

STORES = ("memory", "file", "sqlite")
BUDGETS = (500, 700, 1_000, 1_500, 2_500, 4_000, 8_000)
STUB_TOKENS = 450
"""At most what an entry takes as a stub; smaller ones are never stubs."""

_Answer = TypeVar("_Answer")


@attrs.define(eq=False)
class Worker:
    """An engine and its handles on the session."""

    engine: Engine
    handles: list[Session]


class Driven:
    """One session.

    Args:
        seed: Decides everything.
        store: Where the session is kept, one of ``STORES``.
        directory: For its files.
        wire: Its format; the seed decides by default.

    Attributes:
        done: The operations so far, as words.
        counts: What was done and looked at.
    """

    def __init__(self, seed: int, store: str, directory: Path, wire: Wire | None = None) -> None:
        self.chance = random.Random(seed)  # noqa: S311 (chance, not secrets)
        self.wire = self.chance.choice(WIRES) if wire is None else wire
        self.store = MemoryStore() if store == "memory" else f"{store}:{'///' * (store == 'sqlite')}{directory}/{seed}"
        self.given = self.settings()
        self.model = Model(self.wire)
        self.checkpoints: dict[str, Model] = {}
        self.windows: list[Window] = []
        self.stubs: set[str] = set()
        self.live = LivePage()
        self.earlier: set[int] = set()  # what was a stub before the window at hand, in one that nobody looked at
        self.pictures: dict[str, int] = {}
        self.numbers = 0
        self.last_tokens = 0
        self.done: list[str] = []
        self.counts: Counter[str] = Counter()
        self.workers = [self.open(handles=2), self.open(handles=1)]
        self.session = self.workers[0].handles[0]

    def settings(self) -> dict[str, Any]:
        pick = self.chance.choice
        least = pick([1, 1, 2, 3])
        return {
            "format": self.wire.name,
            "counter": pick(["o200k_base", "o200k_base", "cl100k_base", "approximate"]),
            "budget": {"window": pick(BUDGETS), "reserve": 0},
            "active": {
                "min_pages": least,
                "max_pages": pick([None, None, least, least + 2]),
                "max_messages": pick([None, None, None, 9]),
                "every_turns": pick([None, None, None, 5]),
                "high_water": pick([1.0, 1.0, 0.8]),
                "low_water": pick(["auto", "auto", 0.4]),
                "page_tokens": pick([90, 200, 1_000, 8_000]),
            },
            "contents": {"max_tokens": pick(["auto", 60, 160, 400]), "directories": pick([True, True, False])},
            "levels": pick([{}, {}, {"trimmed": 2, "lines": 4, "directory": 6, "gone": 9}]),
            "eviction": {"zero_recall_turns": pick([None, 6]), "stale_turns": pick([None, 9])},
            "recall": {
                "turns": pick([1, 3, 6]),
                "protocol": pick(["none", "native", "attp"]),
                "passages_tokens": pick([0, 0, 300, 2_000]),
            },
            "summary": {"continuation": least == 1, "continuation_tokens": 120},
            "checkpoints": {"every_turns": pick([None, 4])},
            "cache_breakpoints": self.wire is ANTHROPIC and pick([True, False]),
            "snapshot_every": pick([1, 4, 20, 500]),
            "durability": "flush",
        }

    def open(self, handles: int) -> Worker:
        engine = Engine(self.store, Config.from_mapping(self.given))
        return Worker(engine, [engine.session("chat") for _ in range(handles)])

    @property
    def worker(self) -> Worker:
        return next(worker for worker in self.workers if self.session in worker.handles)

    def close(self) -> None:
        for worker in self.workers:
            worker.engine.close()

    def act(self, command: Callable[[], _Answer]) -> _Answer:
        """Carry a command out; where the other engine wrote meanwhile, refresh and do it again."""
        try:
            return command()
        except ConflictError:
            self.counts["conflicts"] += 1
            self.session.refresh()
            return command()

    def said(self, *words: object) -> None:
        self.done[-1] += " " + " ".join(str(word)[:60] for word in words)

    # What must hold at any time

    def look(self, step: int) -> None:
        self.session.refresh()
        self.session._core.state._check()
        self.look_at_pages()
        if step % 4 == 0:
            self.look_at_messages()
        if step % 10 == 0 and self.windows:
            self.look_again(self.chance.choice(self.windows))
        if step % 20 == 0:
            assert () == self.session.verify().problems
            assert LivePage().answer(self.session, "overview", {}) == self.live.answer(self.session, "overview", {})

    def look_at_messages(self) -> None:
        stored = list(self.session.messages())
        if self.model.messages != stored:
            raise AssertionError(difference(self.model.messages, stored))

    def look_at_pages(self) -> None:
        """Every page is where the model has it, and every archived one is listed, or was evicted."""
        facts = [facts for facts in self.session.pages() if facts.index.startswith("usr-")]
        assert [page.index for page in self.model.pages] == [each.index for each in facts]
        entries = self.session.contents.entries
        for each in facts:
            if each.state is PageState.ARCHIVED:
                assert any(entry.index == each.index for entry in entries), each
            elif each.state is PageState.HIDDEN:
                number = page_number(each.index)
                assert any(hasattr(entry, "holds") and entry.holds(number) for entry in entries), each

    def look_at(self, window: Window, limit: int, tools: Sequence[Value] | None) -> None:
        assert limit == window.budget >= window.tokens == sum(window.breakdown.values())
        assert window.seq == self.session.seq
        assert_valid(window, self.wire.name)
        counter = self.session.config.counter
        if counter != "approximate":
            counted = window_tokens(window.messages, window.system, tools, counter, self.pictures)
            assert window.tokens >= counted, f"{counted} tokens were counted, and the window says {window.tokens}"
        self.look_for_stubs(window)

    def look_for_stubs(self, window: Window) -> None:
        """Nothing is hidden while there is room; what was hidden once, or trimmed, may stay so until its page folds."""
        shown = "\0".join(text for value in (*(window.system or ()), *window.messages) for text in said_by(value))
        state = self.session._core.state
        hidden: dict[str, float] = {}
        visible = set()
        for page in state.active.pages():
            for node, value in zip(page.nodes(), self.model.find(page.index).messages, strict=True):
                for text in map(str.strip, said_by(value)):
                    visible.add(text)
                    if text not in shown and node.seq not in self.earlier and not node.trimmed:
                        hidden[text] = state.scale * count_message(value, self.session._core.counter)
        assert window.tokens + 10 + sum(hidden.values()) > window.budget or not hidden.keys() - self.stubs, (
            f"{len(hidden)} entries are hidden in a window of {window.tokens} tokens with room for {window.budget}, "
            f"of {sum(hidden.values()):.0f} tokens: {[text[:40] for text in hidden]}"
        )
        self.stubs = (self.stubs & visible) | set(hidden)

    def look_at_refusal(self, error: BudgetError, limit: int) -> None:
        """A window is refused only where system part, tools and what the turn has to show are too large by themselves."""
        assert limit == error.budget < error.tokens == sum(error.breakdown.values())
        core = self.session._core

        def least(values: Sequence[Value]) -> int:
            return sum(min(count_message(value, core.counter), STUB_TOKENS) for value in values)

        newest = self.model.pages[-1] if self.model.pages else None
        first_page = [page for page in self.model.pages[:-1] if page.index == core.state.turn_page]
        opening = [value for page in first_page for value in page.messages if self.wire.speaks_as(value) == "user"]
        system = sum(count_message(value, core.counter) for value in self.model.system)
        waiting = sum(len(ids) for ids in newest.open_ids) if newest else 0
        first = 40 * (self.wire is ANTHROPIC)  # what stands before a conversation that the assistant begins
        needed = system + first + least(newest.messages if newest else []) + least(opening) + 3 + 300 * waiting
        tokens = core.state.scale * needed + error.breakdown["tools"]
        rounded = len(error.breakdown)  # each part is rounded up
        assert tokens + rounded > error.budget, (
            f"{tokens:.0f} tokens are all that a window of {error.budget} must hold, and it is refused: {error}"
        )

    def look_again(self, window: Window) -> None:
        """Render an earlier window."""
        self.session.refresh()
        again = self.session.render(at=window.seq)
        assert (window.to_json(), window.system, window.breakdown) == (again.to_json(), again.system, again.breakdown)


def said_by(value: Value) -> Iterator[str]:
    """Yield the texts of a message that a window shows word for word."""
    yield from said(value.get("content", value.get("output", value if "text" in value else "")))


def difference(expected: Sequence[Value], stored: Sequence[Value]) -> str:
    """Return where a session is not what the model is."""
    for place, (wanted, found) in enumerate(zip(expected, stored, strict=False)):
        if wanted != found:
            return f"message {place} is {str(found)[:120]}, not {str(wanted)[:120]}"
    return f"{len(stored)} messages are there, not {len(expected)}"
