"""A process that holds a conversation whose pages a model sums up; run as ``python -m tests.chat.summarised_talker``.

Its arguments are the URL of a store, settings as JSON, and a number of days. For each number on its standard input it takes a
turn, with a window before the answer, and prints the number; for ``end`` it waits for the summaries that were asked for, prints
how often its thread came to the summariser, and closes. Its clock is those days ahead: claims of who was killed have ended.
"""

import json
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from types import FrameType

from memci.engine.engine import Engine

_SUMMARISERS = ("/memci/chat/", "/memci/archive/summarizers/external/")

PLACES = ("Lyon", "Porto", "Gdansk", "Turku", "Graz")
THINGS = ("bicycle", "violin", "printer", "lantern", "kettle", "carpet", "wardrobe")
PAUSE_S = 0.05
"""After each turn: as long as nobody uses a session, its summaries are asked for."""

EVERY = 5
"""Of so many turns, one has a page that is worth a summary; the others are too small."""


def turn(number: int) -> tuple[str, str]:
    """Return what the user says, and the answer."""
    if number % EVERY:
        return f"And parcel {number}?", f"Parcel {number} is on its way."
    place, thing = PLACES[number % len(PLACES)], THINGS[number % len(THINGS)]
    sent = f"My {thing} was sent to {place} on the {number % 28 + 1}th and has not arrived. Its number is K-{number}."
    found = f"The {thing} with the number K-{number} is in the depot in {place}, as the address lacked the number of the house."
    return f"{sent} Where is it now?", f"{found} It will come to you on Friday, and you need not do anything."


def main(store: str, config: str, days: str) -> None:
    """Do what standard input says."""
    calls = Counter[str]()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and any(part in frame.f_code.co_filename for part in _SUMMARISERS):
            calls[frame.f_code.co_qualname] += 1

    later = datetime.now(UTC) + timedelta(days=int(days))
    settings = json.loads(config)
    with Engine(store, settings, clock=lambda: later) as engine, engine.session("chat") as session:
        sys.setprofile(note)
        for line in sys.stdin:
            if line == "end\n":
                session.summarize()
                break
            question, answer = turn(int(line))
            session.append({"role": "user", "content": question})
            assert session.window().tokens <= engine.config.budget.tokens
            session.append({"role": "assistant", "content": answer})
            sys.stdout.write(line)
            sys.stdout.flush()
            time.sleep(PAUSE_S)
        sys.setprofile(None)
        sys.stdout.write(f"{json.dumps(calls)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
