"""What calls gave, kept for their retries."""

import hashlib
import threading
from collections.abc import Callable

import attrs

from memci.attp.result import Problem, Result

_OTHER = Problem(
    kind="CallIdReusedError",
    message="another reply ran under the id of this call; nothing was run",
    hint="give each call an id of its own",
)


@attrs.define(eq=False)
class _Kept:
    digest: bytes
    done: threading.Event = attrs.field(factory=threading.Event)
    result: Result | None = None


class Answers:
    """Runs what has an id once, and gives the same answer to each retry.

    Safe to use from many threads: a retry that comes while its call runs waits for it.
    """

    def __init__(self, *, limit: int) -> None:
        """Keep the answers of the last so many calls."""
        self._limit = limit
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.Lock()  # protects the dict, not the runs

    def once(self, call_id: str, text: str, run: Callable[[], Result]) -> tuple[Result, bool]:
        """Return the result of the first call with this id and text, and whether it is that of an earlier run.

        Another text under an id that has run is not run; its result says so. A run that raises is forgotten.
        """
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        while True:
            with self._lock:
                kept = self._kept.get(call_id)
                mine = kept is None
                if kept is None:
                    kept = self._kept[call_id] = _Kept(digest)
                    self._forget_old()
            if kept.digest != digest:
                return Result(error=_OTHER), False
            if mine:
                return self._run(call_id, kept, run), False
            kept.done.wait()
            if kept.result is not None:
                return kept.result, True

    def _run(self, call_id: str, kept: _Kept, run: Callable[[], Result]) -> Result:
        try:
            kept.result = run()
        finally:
            if kept.result is None:
                with self._lock:
                    del self._kept[call_id]
            kept.done.set()
        return kept.result

    def _forget_old(self) -> None:
        """Forget the oldest answers above the limit; runs that are under way stay."""
        too_many = len(self._kept) - self._limit
        if too_many > 0:
            for call_id in [known for known, kept in self._kept.items() if kept.result is not None][:too_many]:
                del self._kept[call_id]
