"""Trimming: beginning, end and errors of long results stay in view, so that the dialogue around them need not fold yet."""

from collections.abc import Iterable

from memci.engine.core.core import Core
from memci.engine.history import blocks
from memci.engine.history.events import ResultsTrimmed
from memci.engine.view import planner
from memci.messages.message import Message

TRIMMED_BYTES = 600  # what is shown of a result, about
_ERRORS_SHARE = 0.4  # of that, at most: lines that tell an error
_HEAD_SHARE = 0.67  # of the rest: the beginning


def trims(core: Core, indexes: Iterable[str]) -> list[ResultsTrimmed]:
    """Return the event that trims the long results of pages; none where nothing gets shorter. O(their size)."""
    results: dict[str, dict[str, list[int]]] = {}
    for page in filter(None, map(core.state.active.find_page, indexes)):
        for position, node in planner.long_results(core.state, page):
            bounds = _bounds(node.message)
            tokens = core.count_trimmed(f"{page.index}/{position}", node.message, node.tokens, bounds)
            if tokens < node.tokens:
                results.setdefault(page.index, {})[str(node.seq)] = [tokens, *bounds]
    return [ResultsTrimmed(results=results)] if results else []


def _bounds(message: Message) -> list[int]:
    """Return the bounds of what is shown of each text of a message, as if they were one text."""
    bounds, place = list[int](), 0
    for text, _ in blocks.words(message).values():
        bounds += [place + min(bound, len(text)) for bound in stretches(text)]
        place += len(text)
    return bounds


def stretches(text: str) -> list[int]:
    """Return the bounds of what is shown of a text, in pairs: its beginning, the first lines that tell an error, and its end."""
    from memci.archive.summarizers.passage import ERROR_LINE  # noqa: PLC0415 (compiles many patterns)

    room = TRIMMED_BYTES * len(text) // max(len(text.encode("utf-8", "surrogatepass")), 1)  # characters
    left, errors = int(room * _ERRORS_SHARE), list[tuple[int, int]]()
    for line in ERROR_LINE.finditer(text):
        errors.append((line.start(), min(line.end(), line.start() + left)))
        left -= errors[-1][1] - errors[-1][0]
        if left <= 0:
            break
    ends = room - sum(end - start for start, end in errors)
    head = int(ends * _HEAD_SHARE)
    bounds = [0, head]
    for start, end in [*errors, (len(text) - (ends - head), len(text))]:
        if start > bounds[-1]:
            bounds += [start, end]
        else:
            bounds[-1] = max(bounds[-1], end)
    return bounds
