"""How pages are found: their searchable form, what is known of those that may answer a query, and the ranking of these."""

import functools
import math
import re
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import attrs

from memci.archive.catalogue.terms import Sought, root, term_line
from memci.archive.summarizers.words import words

_MONTHS = (  # not from strftime or calendar, which speak the language of the machine
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip

_MARK = "§"  # no part of any word; the database, which cuts texts into terms too, takes it for a letter

# The weights below were chosen together on English and Chinese conversations, with short and with long answers; recall
# within the first five pages moves by less than a point when one of them is changed by a third.
_SATURATION = 1.2  # k1 of BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009)
_LENGTH_SHARE = 0.4  # b of BM25, for one entry
_REST = 1.0 - _LENGTH_SHARE
_BEFORE_DECAY, _AFTER_DECAY = 0.2, 0.4  # what a word counts for the page before its own, and for the page after it
_COVER_WEIGHT = 0.1
_USER_WEIGHTS = (0.2, 2.0)  # of the user's own words in a short page, and in a long one, of which they say what it is about
_SHORT_TERMS, _LONG_TERMS = 150, 500  # of a page for which they weigh the least, and the most; in proportion between
_OWN_SHARE = 0.6  # by which an entry of the user's counts more as the best of a long page: answers repeat what it says
_COSINE_WEIGHT = 0.35
NEIGHBOUR_TERMS = 4  # words of the query that stand beside a page without any of them; fewer would surprise in a short query
UNLIKE_COSINE = 0.2  # what pages have with a query about something else, by the median: 0.14 in English, 0.24 in Chinese
LEAST_COSINE = 0.3  # the least for a page that shares no word with the query; the best page of a query has 0.3 to 0.8
REACH = 2  # how many pages before and after a page count as its neighbours
APART = REACH + 1  # the least between places that are no neighbours
_SHARES = [(step, (_BEFORE_DECAY if step < 0 else _AFTER_DECAY) ** abs(step)) for step in range(-REACH, REACH + 1)]

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


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


class Entry(NamedTuple):
    """An entry of a page as it is searched; where the speaker has a *name*, the text begins with it."""

    position: int
    role: str
    text: str
    at: str
    name: str = ""


@attrs.frozen(kw_only=True)
class ExtraPage:
    """A page to be searched that is not in the index yet, such as the open one."""

    index: str
    turn: int
    entries: Sequence[Entry]


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


def candidates_of_entries(
    lines: Mapping[int, list[Any]], entries: Mapping[int, Sequence[Entry]], names: Collection[str]
) -> dict[int, Candidate]:
    """Return candidates, made of ``PageText.lines`` and of what is said in their pages, with what that holds of some terms.

    As ``hold`` has it, but that a word twice in a row counts twice, and the contents entry is left out. O(the texts).
    """
    times = [_time_words(each.at for each in entries[place]) for place in lines]
    texts = [text for place, time in zip(lines, times, strict=True) for text in (time, *(each.text for each in entries[place]))]
    held = iter(Sought(names).count(texts))
    candidates = {}
    for place in lines:
        days = {day_mark(each.at[:10]) for each in entries[place]}
        candidate = candidates[place] = Candidate.of_lines(place, lines[place])
        dated = dict.fromkeys(next(held), 1.0) | {name: 1.0 for name in names if name in days}
        said = {line: next(held) for line in range(1, len(entries[place]) + 1)}
        candidate.held = {line: found for line, found in ((0, dated), *said.items()) if found}
    return candidates


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


def _length(line: str) -> int:
    return max(0, line.count(" ") - 1)


def _time_words(times: Iterable[str]) -> str:
    """Return the times as people and machines write them: the first in full, of the others those of another day."""
    shown: dict[str, str] = {}
    for at in times:
        date, hour, day = _written(at)
        if day not in shown:
            shown[day] = date if not date or shown else f"{date} {hour}"
    return " ".join(f"{date} {day}".lstrip() for day, date in shown.items())


@functools.lru_cache(maxsize=1_000)
def _written(at: str) -> tuple[str, str, str]:
    """Return date, hour and day of a time; of any other text only that, as the day."""
    try:
        time = datetime.fromisoformat(at)
    except ValueError:
        return "", "", at
    return f"{time.day} {_MONTHS[time.month - 1]} {time.year}", time.time().isoformat("minutes"), time.date().isoformat()


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
    longer = min(1.0, max(0.0, (sum(candidate.sizes) - _SHORT_TERMS) / (_LONG_TERMS - _SHORT_TERMS)))
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
        if (score := score * (1.0 + _OWN_SHARE * longer * is_user)) > highest:
            candidate.best, highest = line, score
    candidate.counts |= {name: count for name, count in counts.items() if count}
    if said:
        sizes = [size + 1 for role, size in zip(candidate.roles, candidate.sizes, strict=True) if role == "user"]
        saturation = _SATURATION * (_REST + _LENGTH_SHARE * (sum(sizes) - 1) / mean)
        least, most = _USER_WEIGHTS
        candidate.user_weight = least + (most - least) * longer
        counted = [(weights[name], said[name]) for name in present if name in said]
        candidate.user = candidate.user_weight * sum([weight * count / (count + saturation) for weight, count in counted])
