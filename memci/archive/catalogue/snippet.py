"""The passage of a page by which a hit is shown: where it says what was asked for, and what stands beside that."""

import re
from collections.abc import Mapping, Sequence

from memci.archive.catalogue.search import term
from memci.archive.summarizers.words import runs

SNIPPET_CHARS = 200

_QUESTION_CHARS = 120  # of a question whose answer follows
_LEAST_ROOM = 20  # characters for which it is worth to go on
_OPENINGS = ("\n", ". ", "? ", "! ", "。", "？", "！")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。？！\n]")


def snippet(text: str, weights: Mapping[str, float], before: Sequence[str] = (), after: Sequence[str] = ()) -> str:
    """Return the passage of *text* that holds the most of the query (*weights* by term), with room left what stands beside it.

    At most 200 characters, cut between words where it can be. The passage goes on in its own text, and then in the texts around
    it, first in those after it, each on a line of its own. A passage that ends in a question leaves room for what answers it.
    O(length of the text); of the texts around it, 200 characters at the near end are enough.
    """
    following, preceding = ([found for each in texts if (found := each.strip())] for texts in (after, before))
    left, right, asks = _passage(text, weights, answered=bool(following))
    if not asks:
        left = _filled_back(text, left, SNIPPET_CHARS - (right - left))
    room = SNIPPET_CHARS - (right - left) - 1
    ending = []
    for each in following:
        if room >= _LEAST_ROOM:
            ending.append(each[: _word_end(each, room // 2, min(len(each), room))].strip())
            room -= len(ending[-1]) + 1
    start = _filled_back(text, left, room)
    room -= left - start
    parts = [text[start:right].strip(), *ending]
    for each in reversed(preceding):
        if room >= _LEAST_ROOM:
            parts.insert(0, each[_filled_back(each, len(each), room) :].strip())
            room -= len(parts[0]) + 1
    return "\n".join(part for part in parts if part)


def _passage(text: str, weights: Mapping[str, float], *, answered: bool) -> tuple[int, int, bool]:
    """Return start and end of the best passage, begun with its line or sentence, and whether it is an answered question."""
    marks = _marks(text, weights)
    if not marks:
        return 0, _word_end(text, 0, min(len(text), SNIPPET_CHARS)), False
    left, right = _opened(text, *_densest(marks, weights, SNIPPET_CHARS), SNIPPET_CHARS)
    asked, most = 0, SNIPPET_CHARS
    if answered and (asked := _question_end(text, right)):
        if asked - left <= _QUESTION_CHARS:
            return left, asked, True
        left, right = _opened(text, *_densest(marks, weights, _QUESTION_CHARS), _QUESTION_CHARS)
        most = _QUESTION_CHARS
    end = min(len(text), left + most)
    return left, min(_word_end(text, right, end), end), bool(asked)


def _opened(text: str, left: int, right: int, most: int) -> tuple[int, int]:
    """Move the start of a passage back to that of its line or sentence, as far as *most* characters reach."""
    room = most - (right - left)
    if room <= 0:
        return left, right
    first = max(0, left - room)
    opening = max(text.rfind(mark, first, left) + 1 for mark in _OPENINGS)
    return opening if opening > first or first == 0 else _word_start(text, max(first, left - room // 2), left), right


def _question_end(text: str, right: int) -> int:
    end = _SENTENCE_END.search(text, max(right - 1, 0), right + SNIPPET_CHARS)
    return end.end() if end is not None and end.group() in "?？" else 0


def _filled_back(text: str, left: int, room: int) -> int:
    return left if room < _LEAST_ROOM else _word_start(text, max(0, left - room), left)


def _marks(text: str, weights: Mapping[str, float]) -> list[tuple[int, int, str]]:
    """Return start, end and term of each word of *text* that the query holds, in order."""
    marks = []
    for start, end, found in runs(text):
        pairs = len(found) > 1 and len(found) == end - start - 1  # one pair of characters begins at each but the last
        for offset, word in enumerate(found):
            if (name := term(word)) in weights:
                marks.append((start + offset, start + offset + 2, name) if pairs else (start, end, name))
    return marks


def _densest(marks: Sequence[tuple[int, int, str]], weights: Mapping[str, float], most: int) -> tuple[int, int]:
    """Return start and end of the first stretch of at most *most* characters that holds the most of the query."""
    held: dict[str, int] = {}
    best, found = -1.0, (marks[0][0], marks[0][1])
    first = 0
    score = 0.0
    for start, end, name in marks:
        held[name] = held.get(name, 0) + 1
        score += weights[name] if held[name] == 1 else 0.0
        while first < len(marks) and end - marks[first][0] > most and marks[first][0] < start:
            gone = marks[first][2]
            held[gone] -= 1
            score -= 0.0 if held[gone] else weights[gone]
            first += 1
        if score > best + 1e-9:
            best, found = score, (marks[first][0], end)
    return found


def _word_start(text: str, start: int, limit: int) -> int:
    """Move *start* on to where a word begins, not beyond *limit*."""
    space = text.find(" ", start, limit)
    return start if start == 0 or space < 0 else space + 1


def _word_end(text: str, least: int, end: int) -> int:
    """Move *end* back to where a word ends, not before *least*."""
    space = text.rfind(" ", least, end)
    return end if end == len(text) or space < 0 else space
