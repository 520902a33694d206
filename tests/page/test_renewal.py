"""What the page shows of a session that goes on: the same as if all was read again, at the cost of what is new."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import memci
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.page.live import LivePage
from tests.engine.core.test_short_ways import called
from tests.page.sessions import SMALL, eventful, say, trip


def shown(live: LivePage, session: Session) -> list[Any]:
    """Return the overview, and what else is told of pages: what was said, what happened to each, and how it begins."""
    journal = live._band(session).journal
    return [live.answer(session, "overview", {}), journal.said, journal.course, journal.histories, journal.lines]


KINDS = {
    *(
        "appended",
        "checkpoint_restored",
        "configured",
        "erased",
        "evicted",
        "faded",
        "fold_undone",
        "folded",
        "pinned",
        "recalled",
    ),
    *("recalled", "restored", "rewound", "settled", "slots_set", "system_set", "usage"),
}
"""Kinds of events that a run holds, so that it looks at what each of them changes."""


class Chance:
    """Operations in an order of chance, by two engines that want different settings."""

    def __init__(self, seed: int) -> None:
        self.chance, store = random.Random(seed), MemoryStore()  # noqa: S311 (chance, not secrets)
        self.engines = [Engine(store, SMALL), Engine(store, {**SMALL, "counter": "o200k_base", "recall": {"turns": 2}})]
        self.handles = [engine.session("trip") for engine in self.engines]
        self.session, self.number = self.handles[0], 0

    def steps(self) -> Iterator[None]:
        """Do each thing some times; what cannot be done then is left."""
        rare = [
            *(self.answer, self.ask, self.checkpoint, self.erase, self.evict, self.fold, self.go_back, self.other_settings),
            *(self.other_handle, self.pin, self.recall, self.set_slot, self.set_system, self.usage),
        ]
        order = [self.turn] * 30 + rare * 3
        self.chance.shuffle(order)
        trip(self.session, 12)
        for operation in order:
            self.number += 1
            self.session.refresh()
            with suppress(memci.MemciError):
                operation()
            yield

    def page(self) -> str:
        return self.chance.choice(self.session.pages()).index

    def turn(self) -> None:
        trip(self.session, 1, first=self.number)

    def ask(self) -> None:
        self.session.append({"role": "user", "content": f"Hotel {self.number}?"})

    def answer(self) -> None:
        self.session.append({"role": "assistant", "content": f"Hotel {self.number}."})

    def checkpoint(self) -> None:
        made = self.session.checkpoint("here")
        self.turn()
        self.session.restore_checkpoint(made.id)

    def erase(self) -> None:
        self.session.erase(self.page())

    def evict(self) -> None:
        index = self.page()
        self.session.evict(index)
        self.session.restore(index)

    def fold(self) -> None:
        self.session.fold("all")
        self.session.undo_fold()

    def go_back(self) -> None:
        self.session.rewind(f"{self.session.pages()[-1].index}/1")

    def other_settings(self) -> None:
        self.session.configure(recall={"turns": self.chance.choice([1, 3])})

    def other_handle(self) -> None:
        self.session = self.chance.choice(self.handles)

    def pin(self) -> None:
        self.session.pin(self.page())

    def recall(self) -> None:
        index = self.page()
        self.session.recall(index)
        self.session.fade(index)

    def set_slot(self) -> None:
        self.session.slots["goal"] = f"book {self.number}"

    def set_system(self) -> None:
        self.session.set_system([{"role": "system", "content": f"You keep book {self.number}."}])

    def usage(self) -> None:
        self.session.report_usage(prompt_tokens=self.session.window().tokens - self.number)


def test_what_goes_on_is_what_is_read_anew() -> None:
    """Whatever two engines with other settings do, all is as it is for whoever comes new; nearly always it went on."""
    driven, live, went_on = Chance(1), LivePage(), Counter[bool]()
    for step, _ in enumerate(driven.steps()):
        driven.session.refresh()
        before, now = live._kept, shown(live, driven.session)
        went_on[live._kept is before] += 1
        if step % 4 == 0:
            assert shown(LivePage(), driven.session) == now
    assert KINDS <= {event.kind for event in driven.session.events()}
    assert went_on[True] > 5 * went_on[False]
    for engine in driven.engines:
        engine.close()


def costs(turns: int) -> Counter[str]:
    """Return what renewals cost in a session of so many turns, over four turns that come to it, in calls by name."""
    live, spent = LivePage(), Counter[str]()
    with Engine("memory:", SMALL) as engine, engine.session("trip") as session:
        trip(session, turns)
        live.answer(session, "overview", {})
        for day in range(turns + 1, turns + 5):
            say(session, f"Day {day}: we paid {day * 7} euros.", f"Noted: day {day}.")
            spent += called(lambda: live.answer(session, "overview", {}))
    return Counter({name: spent[name] for name in ("as_value", "from_record", "rendered", "PromptMeter._sequence")})


def test_the_cost_of_a_renewal_does_not_grow_with_the_history() -> None:
    """A turn more costs as many events read, windows made and messages cut into tokens after 200 turns as after 20."""
    short, long = costs(20), costs(200)
    assert long["rendered"] == short["rendered"] == 8
    for name in short:
        assert 0 < long[name] <= 1.2 * short[name], (name, short, long)


def test_what_was_given_stays() -> None:
    """What a view was given does not change as the session goes on: it is written while others ask."""
    live = LivePage()
    with eventful() as session:
        given = live.answer(session, "overview", {}), live.answer(session, "page", {"index": "usr-3"})
        written = json.dumps(given)
        session.recall("usr-3")
        say(session, "One thing more.", "Gladly.")
        assert json.dumps(given[0]) != json.dumps(live.answer(session, "overview", {}))
        assert written == json.dumps(given)


@pytest.mark.parametrize("days", [2, 40])
def test_another_session_of_the_name_is_read_from_its_beginning(days: int) -> None:
    """Where a session was deleted and one of its name begun, with fewer or with more events, that is what is shown."""
    live = LivePage()
    with Engine("memory:", SMALL) as engine:
        with engine.session("trip") as session:
            trip(session, 20)
            live.answer(session, "overview", {})
        engine.delete("trip")
        with engine.session("trip") as session:
            trip(session, days, first=101)
            assert shown(LivePage(), session) == shown(live, session)
