"""How text is found: terms, the searchable form of a page, the ranking of pages, and the passage by which one is shown."""

import functools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Self

import attrs

from memci.archive.summarizers.whole import stretches
from memci.archive.summarizers.words import ASCII_RUN, STOPWORDS, is_plain, runs, words

_MONTHS = (  # not from strftime or calendar, which speak the language of the machine
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_VOWELS = frozenset("aeiouy")
_ACCENTS = dict.fromkeys(range(0x300, 0x370))

_MARK = "§"  # no part of any word; the database, which cuts texts into terms too, takes it for a letter

# The weights below were chosen together on English and Chinese conversations, with short and with long answers; recall
# within the first five pages moves by less than a point when one of them is changed by a third.
_SATURATION = 1.2  # k1 of BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009)
_LENGTH_SHARE = 0.4  # b of BM25, for one entry
_REST = 1.0 - _LENGTH_SHARE
_BEFORE_DECAY, _AFTER_DECAY = 0.2, 0.4  # what a word counts for the page before its own, and for the page after it
ROOT_LETTERS = 6  # of a long term, by which its other forms are known
_COVER_WEIGHT = 0.1
_USER_WEIGHTS = (0.2, 2.0)  # of the user's own words in a short page, and in a long one, of which they say what it is about
_SHORT_TERMS, _LONG_TERMS = 150, 500  # of a page for which they weigh the least, and the most; in proportion between
_COSINE_WEIGHT = 0.35
NEIGHBOUR_TERMS = 4  # words of the query that stand beside a page without any of them; fewer would surprise in a short query
UNLIKE_COSINE = 0.2  # what pages have with a query about something else, by the median: 0.14 in English, 0.24 in Chinese
LEAST_COSINE = 0.3  # the least for a page that shares no word with the query; the best page of a query has 0.3 to 0.8
REACH = 2  # how many pages before and after a page count as its neighbours
APART = REACH + 1  # the least between places that are no neighbours
_SHARES = [(step, (_BEFORE_DECAY if step < 0 else _AFTER_DECAY) ** abs(step)) for step in range(-REACH, REACH + 1)]

SNIPPET_CHARS = 200
_WHY_CHARS = 60
_QUESTION_CHARS = 120  # of a question whose answer follows
_LEAST_BESIDE = 60  # characters for which it is worth to begin another text
_LEAST_ROOM = 20  # characters for which it is worth to go on
_STARTS = ("\n", ". ", "? ", "! ", "。", "？", "！")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。？！\n]")


@attrs.frozen(kw_only=True)
class Filter:
    """Which pages may answer; all by default."""

    turns: tuple[int, int] | None = None  # only pages opened in these turns, both ends included
    times: tuple[str, str] | None = None  # only pages said between these times, in UTC, as ISO 8601, both ends included
    roles: frozenset[str] | None = None  # only what these roles said: other entries' words, and the contents entry, do not count
    where: Callable[[str], bool] | None = None  # only pages whose index this admits
    exclude: frozenset[str] = frozenset()  # indexes of pages that are not wanted; they still count as neighbours

    @property
    def asks_facts(self) -> bool:
        """Tell whether any page may be refused by more than being excluded."""
        return not (self.turns is None and self.times is None and self.where is None)

    def admits(self, index: str, turn: int, first_at: str, last_at: str) -> bool:
        """Return whether a page may answer, by its facts."""
        if index in self.exclude or (self.turns is not None and not self.turns[0] <= turn <= self.turns[1]):
            return False
        if self.times is not None and not (first_at <= self.times[1] and self.times[0] <= last_at):
            return False
        return self.where is None or self.where(index)


@attrs.frozen(kw_only=True)
class ExtraPage:
    """A page to be searched that is not in the index yet, such as the open one; entries are position, role, text and time."""

    index: str
    turn: int
    entries: Sequence[tuple[int, str, str, str]]


@attrs.frozen
class PageText:
    """The searchable form of a page: terms between single spaces, with a space at both ends of a line."""

    user: str
    page: str  # one line for the time and a mark for each day and each role, then one for each entry, in order
    contents: str
    lines: list[Any] = attrs.field(factory=lambda: [0])  # terms of the first line, then role and terms of each entry


@attrs.define(eq=False)
class Candidate:
    """A page that may be an answer, or that stands beside one: its entries, each a line, and what of the query they hold."""

    place: int  # neighbours differ by one
    roles: list[str]  # who says each entry
    sizes: list[int]  # terms of each entry
    first: int  # terms of the line before them, which has the time
    held: dict[int, dict[str, float]] = attrs.field(factory=dict)  # by line (0 for the time) and term, how often it is there
    contents: Sequence[str] = ()  # terms of the query in the contents entry
    counts: dict[str, float] = attrs.field(factory=dict)  # by term, each entry's count divided by the entry's relative length
    near: dict[str, float] = attrs.field(factory=dict)  # the same for the page with its neighbours, which count less
    best: int = 0  # line of the entry that holds the most, 0 where no entry holds any
    user: float = 0.0  # what the user's own words add to the score
    user_weight: float = 0.0  # the most that they can add

    @property
    def most_score(self) -> float:
        """The score of a page like this that holds the whole query."""
        return 1.0 + _COVER_WEIGHT + self.user_weight

    @classmethod
    def of_lines(cls, place: int, lines: list[Any]) -> Self:
        """Make one of ``PageText.lines``."""
        return cls(place, lines[1::2], lines[2::2], lines[0])

    @classmethod
    def of_text(cls, place: int, text: PageText, names: Iterable[str]) -> Self:
        """Make one of a page that is not in the index, with what it holds of some terms."""
        candidate = cls.of_lines(place, text.lines)
        columns = {"page": text.page.split(), "contents": text.contents.split()}
        for name in names:
            near = root(name)
            places = ((word, place, column, number) for column, said in columns.items() for number, word in enumerate(said))
            found = (each for each in places if each[0] == name or (near and each[0].startswith(near)))
            hold({place: candidate}, name, found)
        return candidate

    @classmethod
    def of_entries(cls, place: int, lines: list[Any], entries: Sequence[tuple[str, str]], names: Mapping[str, float]) -> Self:
        """Make one of ``PageText.lines``, and of its entries' texts and times with what they hold of some terms. O(the texts).

        As ``hold`` has it, but that a word twice in a row counts twice.
        """
        candidate = cls.of_lines(place, lines)
        days = {day_mark(at[:10]) for _, at in entries}
        for line, text in enumerate((_time_words(at for _, at in entries), *(text for text, _ in entries))):
            held = {name: 1.0 for name in names if name in days} if not line else {}
            for start, end, name in _marks(text, names):
                whole = not root(name) or term(text[start:end].lower()) == name
                held[name] = held.get(name, 0.0) + (1.0 if whole else 0.5)
            if held:
                candidate.held[line] = held if line else dict.fromkeys(held, 1.0)
        return candidate

    def speaks(self, roles: frozenset[str] | None) -> bool:
        """Return whether one of some roles says something; ``None`` for any."""
        return roles is None or not roles.isdisjoint(self.roles)

    def first_line(self, roles: frozenset[str] | None) -> int:
        """Return the line of the first entry of one of some roles, else of the first."""
        return next((line for line, role in enumerate(self.roles, 1) if roles is None or role in roles), 1)

    def limit_to(self, roles: Container[str]) -> None:
        """Take out what other roles say, and the contents entry."""
        self.sizes = [size if role in roles else 0 for role, size in zip(self.roles, self.sizes, strict=True)]
        self.held = {line: held for line, held in self.held.items() if not line or self.roles[line - 1] in roles}
        self.contents = ()


class Candidates(dict[int, Candidate]):
    """Candidates by place, each made of its ``PageText.lines`` when it is first asked for."""

    def __init__(self, lines: Mapping[int, list[Any]]) -> None:
        super().__init__()
        self._lines = lines

    def __missing__(self, place: int) -> Candidate:
        """Make a candidate; ``KeyError`` where there are no lines."""
        page = self[place] = Candidate.of_lines(place, self._lines[place])
        return page


def hold(candidates: Mapping[int, Candidate], name: str, found: Iterable[tuple[str, int, str, int]]) -> None:
    """Note where candidates hold a term or another form of it, which counts half: word, place, column and number in that.

    In order of these; the same word twice in a row counts once.
    """
    whole = 0.5 if root(name) else 1.0
    counted = (-1, -1, -1)
    for word, place, column, number in found:
        candidate = candidates[place]
        if column == "user":  # that is in the page too
            continue
        if column == "contents":
            if word == name and name not in candidate.contents:
                candidate.contents = (*candidate.contents, name)
            continue
        line, end = 0, candidate.first
        while end <= number:
            end += candidate.sizes[line]
            line += 1
        share = 1.0 - whole
        if word == name and counted != (place, line, number - 1):
            counted = (place, line, number)
            share = 1.0
        held = candidate.held.setdefault(line, {})
        held[name] = held.get(name, 0.0) + share if line else max(held.get(name, 0.0), share)


@functools.lru_cache(maxsize=20_000)
def term(word: str) -> str:
    """Return a word as it is indexed: without accents and common English endings; ``hiked`` and ``hikes`` give ``hik``."""
    if not word.isascii():
        word = unicodedata.normalize("NFC", unicodedata.normalize("NFD", word).translate(_ACCENTS)) or word
    if not word.isascii():
        return word
    if len(word) < 4 or not word.isalpha():  # noqa: PLR2004 shorter words have no ending to lose
        return word
    stem = _without_verb_ending(_without_plural(word))
    if len(stem) > 3 and stem[-1] == "e":  # noqa: PLR2004
        stem = stem[:-1]
    if stem[-1] == "y" and stem[-2] not in _VOWELS:
        stem = stem[:-1] + "i"
    return stem


def root(name: str) -> str:
    """Return what other forms of a long term begin with, such as ``commun`` for ``community``; empty for a short one."""
    return name[:ROOT_LETTERS] if len(name) >= ROOT_LETTERS and name.isascii() and name.isalpha() else ""


def query_terms(query: str) -> list[str]:
    """Return the distinct terms of a query, in order: those of its content words, or of all words where it has no other."""
    found = words(query)
    content = [word for word in found if word not in STOPWORDS]
    return list(dict.fromkeys(term(word) for word in content or found))


def term_line(text: str) -> str:
    """Return the terms of a text between single spaces, with a space at both ends. O(length of the text)."""
    line = " ".join(map(term, words(text)))
    return f" {line} " if line else " "


def page_text(entries: Iterable[tuple[str, str, str]], contents: str = "") -> PageText:
    """Return the searchable form of a page: of role, text and time of its entries, and the terms of its contents entry."""
    said = [(role, term_line(text), at) for role, text, at in entries]
    days = (day_mark(at[:10]) for _, _, at in said if _DAY.match(at))
    marks = dict.fromkeys((*days, *(role_mark(role) for role, _, _ in said)))
    first = f"{term_line(_time_words(at for _, _, at in said))}{' '.join(marks)} " if marks else " "
    user = "".join(line for role, line, _ in said if role == "user")
    lines = [_length(first), *(each for role, line, _ in said for each in (role, _length(line)))]
    return PageText(user, "\n".join([first, *(line for _, line, _ in said)]), contents, lines)


def day_mark(day: str) -> str:
    """Return the term of a page in which something was said on a day, given as ISO 8601."""
    return _MARK + _MARK.join(day.split("-"))


def role_mark(role: str) -> str:
    """Return the term of a page where a role speaks; no query has it. Roles of the same letters and digits share one."""
    return _MARK + _MARK.join(words(role))


def weigh(pages: int, page_counts: Mapping[str, float]) -> dict[str, float]:
    """Return the weight of each term: its inverse document frequency among *pages* pages, as BM25 has it, never negative."""
    return {name: math.log1p((max(pages, count) - count + 0.5) / (count + 0.5)) for name, count in page_counts.items()}


def rank(
    candidates: Sequence[Candidate],
    weights: Mapping[str, float],
    entry_terms: float,
    cosines: Mapping[int, float] = MappingProxyType({}),
    total: float | None = None,
) -> list[tuple[float, Candidate]]:
    """Score pages by their own words and by their neighbours'; best first, the older first among equals. Fills counts in.

    The score is a weighted sum of three, each as a share of what it can reach: BM25 over the terms of the page and, less with
    each step, of its neighbours; the share of the query that they cover together; BM25 over the user's words. What a cosine has
    above that of unlike texts is added, with a weight. A page with no word of the query is left out, unless its cosine is at
    least 0.3, or its neighbours hold at least four words: the answer to a question often stands beside its words. *weights* are
    by term, *cosines* by place; *entry_terms* is the mean size of an entry; *total* is the weight of the whole query, by default
    the sum of *weights*. O(what the candidates hold).
    """
    places = {candidate.place: candidate for candidate in candidates}
    mean = max(entry_terms, 1.0)
    for candidate in candidates:
        _count(candidate, weights, mean)
        counts = candidate.counts.items()
        for step, share in _SHARES if counts else ():
            if (neighbour := places.get(candidate.place + step)) is not None:
                near = neighbour.near
                for name, count in counts:
                    near[name] = near.get(name, 0.0) + share * count
    most = total or sum(weights.values()) or 1.0
    ranked = []
    for candidate in candidates:
        sums, cosine = candidate.near, cosines.get(candidate.place, 0.0)
        if candidate.counts or len(sums) >= NEIGHBOUR_TERMS or cosine >= LEAST_COSINE:
            said = sum([weights[name] * count / (count + _SATURATION) for name, count in sums.items()])
            cover = sum([weights[name] for name in sums])
            like = _COSINE_WEIGHT * max(0.0, cosine - UNLIKE_COSINE)
            ranked.append(((said + _COVER_WEIGHT * cover + candidate.user) / most + like, candidate))
    ranked.sort(key=lambda pair: (-pair[0], pair[1].place))
    return ranked


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:  # noqa: PLR2004
        return word[:-2]
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1] if word[-1] == "s" and not word.endswith(("ss", "us", "is")) else word


def _without_verb_ending(word: str) -> str:
    for ending in ("ing", "ed"):
        stem = word[: -len(ending)]
        if word.endswith(ending) and not word.endswith("eed") and len(stem) > 2 and not _VOWELS.isdisjoint(stem):  # noqa: PLR2004
            return stem[:-1] if stem[-1] == stem[-2] and stem[-1] not in "lsz" else stem
    return word


def _length(line: str) -> int:
    return max(0, line.count(" ") - 1)


def _time_words(times: Iterable[str]) -> str:
    """Return the times as people and machines write them: the first in full, of the others those of another day."""
    shown: dict[str, str] = {}
    for at in times:
        try:
            time = datetime.fromisoformat(at)
        except ValueError:
            shown.setdefault(at, at)
        else:
            day = time.date().isoformat()
            if day not in shown:
                hour = "" if shown else time.time().isoformat("minutes")
                shown[day] = f"{time.day} {_MONTHS[time.month - 1]} {time.year} {hour} {day}"
    return " ".join(shown.values())


def _count(candidate: Candidate, weights: Mapping[str, float], mean: float) -> None:
    """Fill in what of the query a page holds; *mean* is the mean size of an entry. Runs for each page of a search."""
    held, contents = candidate.held, candidate.contents
    if not held and not contents:
        return
    anywhere = set().union(*held.values())
    present = [name for name in weights if name in anywhere]
    # The contents entry mostly repeats words of the page; only what it adds counts.
    candidate.counts = {name: 1.0 for name in weights if name in contents and name not in anywhere} if contents else {}
    if not present:
        return
    dated = held.pop(0, {})
    counts = {name: 1.0 if dated.get(name) == 1.0 else 0.0 for name in present}
    said: dict[str, float] = {}  # by the user
    highest = 0.0
    for line, found in sorted(held.items()):
        relative = _REST + _LENGTH_SHARE * candidate.sizes[line - 1] / mean
        saturation = _SATURATION * relative
        is_user = candidate.roles[line - 1] == "user"
        score = 0.0
        for name in present:
            if count := found.get(name):
                counts[name] += count / relative
                score += weights[name] * count / (count + saturation)
                if is_user:
                    said[name] = said.get(name, 0.0) + count
        if score > highest:
            candidate.best, highest = line, score
    candidate.counts |= {name: count for name, count in counts.items() if count}
    if said:
        sizes = [size + 1 for role, size in zip(candidate.roles, candidate.sizes, strict=True) if role == "user"]
        saturation = _SATURATION * (_REST + _LENGTH_SHARE * (sum(sizes) - 1) / mean)
        least, most = _USER_WEIGHTS
        longer = (sum(candidate.sizes) - _SHORT_TERMS) / (_LONG_TERMS - _SHORT_TERMS)
        candidate.user_weight = least + (most - least) * min(1.0, max(0.0, longer))
        counted = [(weights[name], said[name]) for name in present if name in said]
        candidate.user = candidate.user_weight * sum([weight * count / (count + saturation) for weight, count in counted])


def why(query: str, held: Mapping[str, float]) -> str:
    """Return what of a query a page holds (by term, with its weight), in the query's words: the rarest first, 60 characters."""
    spans: list[tuple[int, int, float]] = []
    for start, end, name in _marks(query, held):
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

    At most *most* characters, cut between words where it can be. The passage goes on in its own text, then in those after and
    before it, each on its own line; one that ends in a question leaves room for what answers it. O(length of the text).
    """
    following, preceding = ([found for each in texts if (found := each.strip())] for texts in (after, before))
    left, right, asks = _passage(text, weights, most, answered=bool(following))
    if not asks:
        left = _filled_back(text, left, most - (right - left))
    room = most - (right - left) - 1
    ending = []
    for each in following:
        if room >= _LEAST_BESIDE:
            ending.append(each[: _word_end(each, room // 2, min(len(each), room))].strip())
            room -= len(ending[-1]) + 1
    start = _filled_back(text, left, room)
    room -= left - start
    parts = [text[start:right].strip(), *ending]
    for each in reversed(preceding):
        if room >= _LEAST_BESIDE:
            parts.insert(0, each[_filled_back(each, len(each), room) :].strip())
            room -= len(parts[0]) + 1
    return "\n".join(part for part in parts if part)


def _passage(text: str, weights: Mapping[str, float], most: int, *, answered: bool) -> tuple[int, int, bool]:
    """Return start and end of the best passage, begun with its line or sentence, and whether it is an answered question."""
    marks = _marks(text, weights)
    if not marks:
        return 0, _word_end(text, 0, min(len(text), most)), False
    left, right = _densest(text, marks, weights, most)
    end = _SENTENCE_END.search(text, max(right - 1, 0), right + most) if answered else None
    asks = end is not None and end.group() in "?？"
    if end is not None and asks:
        if end.end() - left <= _QUESTION_CHARS:
            return left, end.end(), True
        most = _QUESTION_CHARS
        left, right = _densest(text, marks, weights, most)
    last = min(len(text), left + most)
    return left, min(_word_end(text, right, last), last), asks


def _filled_back(text: str, left: int, room: int) -> int:
    return left if room < _LEAST_ROOM else _word_start(text, max(0, left - room), left)


def _marks(text: str, weights: Mapping[str, float]) -> list[tuple[int, int, str]]:
    """Return start, end and term of each word of *text* that the query holds, in order."""
    roots = {root(name): name for name in weights if root(name)}

    def named(word: str) -> str | None:
        name = term(word)
        return name if name in weights else roots.get(root(name))

    if is_plain(text):
        marks = {}
        plain = text.lower()
        for begin in {_begin(name) for name in weights}:
            start = plain.find(begin)
            while start >= 0:
                end = start + 1
                if not plain[start - 1 : start].isalnum() and (word := ASCII_RUN.match(plain, start)):
                    end = word.end()
                    if name := named(word.group()):
                        marks[start] = (start, end, name)
                start = plain.find(begin, end)
        return [marks[start] for start in sorted(marks)]
    found = []
    for start, end, said in runs(text):
        pairs = len(said) > 1 and len(said) == end - start - 1  # one pair of characters begins at each but the last
        for offset, each in enumerate(said):
            if name := named(each):
                found.append((start + offset, start + offset + 2, name) if pairs else (start, end, name))
    return found


def _begin(name: str) -> str:
    """Return what all words begin with that have this term, or its root: the last letter of a term may be another one."""
    return name if len(name) < 3 else name[: min(len(name), ROOT_LETTERS) - 1]  # noqa: PLR2004 so short ones lost no ending


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
    begun = max(text.rfind(mark, lowest, left) + 1 for mark in _STARTS)
    return begun if begun > lowest or lowest == 0 else _word_start(text, max(lowest, left - room // 2), left), right


def _word_start(text: str, start: int, limit: int) -> int:
    """Move *start* on to where a word begins, not beyond *limit*, and out of what is shown whole or not at all."""
    space = text.find(" ", start, limit)
    begin = start if start == 0 or space < 0 else space + 1
    return next((last for first, last in _whole_around(text, begin) if first < begin < last <= limit), begin)


def _word_end(text: str, least: int, end: int) -> int:
    """Move *end* back to where a word ends, not before *least*, and out of what is shown whole or not at all."""
    space = text.rfind(" ", least, end)
    stop = end if end == len(text) or space < 0 else space
    return next((first for first, last in _whole_around(text, stop) if least <= first < stop < last), stop)


def _whole_around(text: str, place: int) -> list[tuple[int, int]]:
    """Return the stretches near a place that are shown whole or not at all; none at the ends of the text. O(1)."""
    if not 0 < place < len(text):
        return []
    base = max(place - 2 * SNIPPET_CHARS, 0)
    return [(base + start, base + end) for start, end, _ in stretches(text[base : place + SNIPPET_CHARS])]
