"""One window as a JSON value: its messages with what each is, and what the provider's cache had of it."""

from itertools import takewhile
from typing import Any

from memci.engine.hosting.past import PastWindow, past_windows
from memci.engine.session import Session
from memci.messages import codec
from memci.page.message import Tell, shown


def window_value(session: Session, seq: int, before: int | None = None) -> dict[str, Any]:
    """Return the window after an event; *before* is that of the call before. O(events since a snapshot, and what it shows)."""
    past = list(past_windows(session._open, [seq] if before is None else [before, seq]))  # noqa: SLF001 (what its parts are)
    cached = shared(past[0], past[-1]) if before is not None else 0
    return told(past[-1], cached, shown)


def shared(former: PastWindow, past: PastWindow) -> int:
    """Return how many messages two windows share at their beginning; none after another system prompt that stands apart."""
    if former.window.system != past.window.system:
        return 0
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(former.raws, past.raws, strict=False)))


def told(past: PastWindow, cached: int, tell: Tell) -> dict[str, Any]:
    """Return a window as a JSON value, each message as *tell* makes it of its bytes and itself."""
    window = past.window
    system = None
    if window.system is not None:
        value = {"role": "system", "content": window.system}
        system = tell(codec.encode(value), value)
    return {
        "seq": window.seq,
        "tokens": window.tokens,
        "budget": window.budget,
        "breakdown": {part: tokens for part, tokens in window.breakdown.items() if tokens},
        "cached": cached,
        "system": system,
        "messages": [tell(raw, value) for raw, value in zip(past.raws, window.messages, strict=True)],
        "parts": [source.part for source in past.sources],
        "pages": [source.page for source in past.sources],
    }
