"""Picks the passage of a page that matches a query best, and the words by which the page was found."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

from memci.archive.catalogue.terms import Sought
from memci.archive.summarizers.clauses import SENTENCE_END
from memci.archive.summarizers.whole import stretches

SNIPPET_CHARS = 200
_WHY_CHARS = 60
_QUESTION_CHARS = 120  # of a question whose answer follows
_LEAST_BESIDE = 60  # characters for which it is worth to begin another text
_LEAST_ROOM = 20  # characters for which it is worth to go on
_LOOKED_AROUND = (200, 100)  # characters before and after a place where a sentence is cut


def why(query: str, held: Mapping[str, float]) -> str:
    """Return what of a query a page holds (by term, with its weight), in the query's words: the rarest first, 60 characters."""
    spans: list[tuple[int, int, float]] = []
    for start, end, name in Sought(held).places(query):
        joins = bool(spans) and not query[spans[-1][1] : start].strip()  # pairs of characters overlap
        first, _, weight = spans.pop() if joins else (start, end, 0.0)
        spans.append((first, end, weight + held[name]))
    spans.sort(key=lambda span: -span[2])
    told = list(dict.fromkeys(" ".join(query[start:end].split()) for start, end, _ in spans))
    sizes = accumulate(len(each) + 2 for each in told)
    return ", ".join(
        each for number, (each, size) in enumerate(zip(told, sizes, strict=True)) if not number or size <= _WHY_CHARS
    )


def snippet(
    text: str,
    weights: Mapping[str, float],
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    most: int = SNIPPET_CHARS,
) -> str:
    """Return the passage of *text* that holds the most of the query (*weights* by term), with room left what stands beside it.

    At most *most* characters, each text on its own line; see ``pieces``. O(length of the text).
    """
    return "\n".join(piece for _, piece in pieces(text, weights, before, after, most))


def pieces(
    text: str, weights: Mapping[str, float], before: Sequence[str], after: Sequence[str], most: int
) -> list[tuple[int, str]]:
    """Return what ``snippet`` shows of several texts, in order, with where each stands: 0 for *text*, -1 for the one before it.

    The passage goes on in its own text, then in those after and before it; one that ends in a question leaves room for what
    answers it. It is cut between sentences where little is lost by it, else between words.
    """
    following = [(step, found) for step, each in enumerate(after, start=1) if (found := each.strip())]
    preceding = [(step, found) for step, each in enumerate(before, start=-len(before)) if (found := each.strip())]
    left, right, asks = _passage(text, weights, most, answered=bool(following))
    if not asks:
        left = _filled_back(text, left, most - (right - left))
    room = most - (right - left) - 1
    ending = []
    for step, each in following:
        if room >= _LEAST_BESIDE:
            ending.append((step, each[: _cut_end(each, room // 2, min(len(each), room))].strip()))
            room -= len(ending[-1][1]) + 1
    start = _filled_back(text, left, room)
    room -= left - start
    shown = [(0, text[start:right].strip()), *ending]
    for step, each in reversed(preceding):
        if room >= _LEAST_BESIDE:
            shown.insert(0, (step, each[_filled_back(each, len(each), room) :].strip()))
            room -= len(shown[0][1]) + 1
    return [(step, piece) for step, piece in shown if piece]


def _passage(text: str, weights: Mapping[str, float], most: int, *, answered: bool) -> tuple[int, int, bool]:
    """Return start and end of the best passage, begun with its line or sentence, and whether it is an answered question."""
    marks = Sought(weights).places(text)
    if not marks:
        return 0, _cut_end(text, 0, min(len(text), most)), False
    left, right = _densest(text, marks, weights, most)
    end = SENTENCE_END.search(text, max(right - 1, 0), right + most) if answered else None
    asks = end is not None and end.group() in "?？"
    if end is not None and asks:
        if end.end() - left <= _QUESTION_CHARS:
            return left, end.end(), True
        most = _QUESTION_CHARS
        left, right = _densest(text, marks, weights, most)
    last = min(len(text), left + most)
    return left, min(_cut_end(text, right, last), last), asks


def _filled_back(text: str, left: int, room: int) -> int:
    return left if room < _LEAST_ROOM else _cut_start(text, max(0, left - room), left)


def _densest(text: str, marks: Sequence[tuple[int, int, str]], weights: Mapping[str, float], most: int) -> tuple[int, int]:
    """Return start and end of the first *most* characters that hold the most of the query, begun with a line or sentence."""
    held: Counter[str] = Counter()
    best, left, right = -1.0, *marks[0][:2]
    first = 0
    score = 0.0
    for start, end, name in marks:
        score += 0.0 if held[name] else weights[name]
        held[name] += 1
        while end - marks[first][0] > most and marks[first][0] < start:
            gone = marks[first][2]
            held[gone] -= 1
            score -= 0.0 if held[gone] else weights[gone]
            first += 1
        if score > best + 1e-9:
            best, left, right = score, marks[first][0], end
    room = most - (right - left)
    if room <= 0:
        return left, right
    lowest = max(0, left - room)
    begun = max(_sentence_ends(text, lowest, left), default=0)
    return begun if begun > lowest or lowest == 0 else _cut_start(text, max(lowest, left - room // 2), left), right


def _cut_start(text: str, start: int, limit: int) -> int:
    """Move *start* on to where a sentence begins, in the first half of what is before *limit*, else to where a word does."""
    if start == 0:
        return 0
    if ends := _sentence_ends(text, start, (start + limit) // 2):
        return ends[0]
    space = text.find(" ", start, limit)
    begin = start if space < 0 else space + 1
    return next((last for first, last in _whole_around(text, begin) if first < begin < last <= limit), begin)


def _cut_end(text: str, least: int, end: int) -> int:
    """Move *end* back to where a sentence ends, in the second half of what is after *least*, else to where a word does."""
    if end == len(text):
        return end
    if ends := _sentence_ends(text, (least + end) // 2, end):
        return ends[-1]
    space = text.rfind(" ", least, end)
    stop = end if space < 0 else space
    return next((first for first, last in _whole_around(text, stop) if least <= first < stop < last), stop)


def _sentence_ends(text: str, start: int, end: int) -> list[int]:
    """Return where sentences end between two places."""
    ends = (mark.end() for mark in SENTENCE_END.finditer(text, start, min(end + 1, len(text))))
    return [place for place in ends if place <= end]


def _whole_around(text: str, place: int) -> list[tuple[int, int]]:
    """Return the stretches near a place that are shown whole or not at all. O(1)."""
    before, after = _LOOKED_AROUND
    base = max(place - before, 0)
    return [(base + start, base + stop) for start, stop, _ in stretches(text[base : place + after])]
