"""Terms: words as they are indexed, and where texts have some of them."""

import functools
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate

from memci.archive.summarizers.words import ASCII_RUN, STOPWORDS, is_paired, is_plain, normalized, runs, unpaired, words

_VOWELS = frozenset("aeiouy")
_ACCENTS = dict.fromkeys(range(0x300, 0x370))
ROOT_LETTERS = 6  # of a long term, by which its other forms are known
# A stem that keeps its "e", as "care" is no "car": condition *o of Porter, An Algorithm for Suffix Stripping, 1980.
_SHORT_STEM = re.compile("^[^aeiouy]+[aeiouy][^aeiouywx]$")
_SHORT = 2  # letters of a term that has lost no ending


@functools.lru_cache(maxsize=20_000)
def term(word: str) -> str:
    """Return a word as it is indexed: without accents and common English endings; ``hiked`` and ``hiking`` give ``hike``."""
    if not word.isascii():
        word = unicodedata.normalize("NFC", unicodedata.normalize("NFD", word).translate(_ACCENTS)) or word
    if not word.isascii():
        return word
    if len(word) < 4 or not word.isalpha():  # noqa: PLR2004 shorter words have no ending to lose
        return word
    stem = _without_verb_ending(_without_plural(word))
    if len(stem) > 3 and stem[-1] == "e" and not _SHORT_STEM.search(stem[:-1]):  # noqa: PLR2004
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


class Sought:
    """Some terms, made ready to be found in texts."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)
        self._known: dict[str, str | None] = {}
        self._roots = {root(name): name for name in names if root(name)}
        self._paired = [name for name in names if is_paired(name)]
        # What all words begin with that have one of the others, or its root: the last letter of a term may be another one.
        lengths = {name: min(len(name), ROOT_LETTERS) - 1 if len(name) > _SHORT else len(name) for name in names}
        self._begins = {name[:length] for name, length in lengths.items() if name.isascii()}

    def named(self, word: str) -> str | None:
        """Return the term that a word has, in another form too; ``None`` where it has none of them."""
        if word not in self._known:
            name = term(word)
            self._known[word] = name if name in self._names else self._roots.get(root(name))
        return self._known[word]

    def places(self, text: str) -> list[tuple[int, int, str]]:
        """Return start, end and term of each word of a text that has one, in order. O(its length)."""
        if is_plain(text):
            return self._plain_places(text.lower())
        found = []
        for start, end, said in runs(text):
            pairs = len(said) > 1 and len(said) == end - start - 1  # one pair of characters begins at each but the last
            for offset, each in enumerate(said):
                if name := self.named(each):
                    found.append((start + offset, start + offset + 2, name) if pairs else (start, end, name))
        return found

    def count(self, texts: Sequence[str]) -> list[dict[str, float]]:
        """Return how often each of some texts has each term; another form of a long one counts half. O(the texts).

        Words of scripts without spaces are counted wherever their characters stand.
        """
        counts: list[dict[str, float]] = [{} for _ in texts]
        others = [] if is_plain("\n".join(texts)) else [number for number, text in enumerate(texts) if not is_plain(text)]
        plain = list(texts)
        for number in others:
            self._count(texts[number], counts[number])
            plain[number] = ""
        joined = "\n".join(plain).lower()  # in one piece, as most terms are in few of them
        ends = list(accumulate(len(text) + 1 for text in plain))
        for start, end, name in self._plain_places(joined):
            _add(counts[bisect_right(ends, start)], name, joined[start:end])
        return counts

    def _plain_places(self, plain: str) -> list[tuple[int, int, str]]:
        found = {}
        for begin in self._begins:
            start = plain.find(begin)
            while start >= 0:
                end = start + 1
                if not plain[start - 1 : start].isalnum() and (word := ASCII_RUN.match(plain, start)):
                    end = word.end()
                    if name := self.named(word.group()):
                        found[start] = (start, end, name)
                start = plain.find(begin, end)
        return [found[start] for start in sorted(found)]

    def _count(self, text: str, found: dict[str, float]) -> None:
        text = normalized(text)
        for name in self._paired:
            if count := text.count(name):
                found[name] = float(count)
        for word in unpaired(text) if len(self._paired) < len(self._names) else ():
            if term_of_word := self.named(word):
                _add(found, term_of_word, word)


def _add(found: dict[str, float], name: str, word: str) -> None:
    found[name] = found.get(name, 0.0) + (1.0 if not root(name) or term(word) == name else 0.5)


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:  # noqa: PLR2004
        return word[:-2]
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1] if word[-1] == "s" and not word.endswith(("ss", "us", "is")) else word


def _without_verb_ending(word: str) -> str:
    for ending in ("ing", "ed"):
        stem = word[: -len(ending)]
        if word.endswith(ending) and not word.endswith("eed") and len(stem) > 2 and not _VOWELS.isdisjoint(stem):  # noqa: PLR2004
            if stem[-1] == stem[-2] and stem[-1] not in "lsz":
                return stem[:-1] if len(stem) > 3 else stem  # noqa: PLR2004 ("add")
            return stem + "e" if _SHORT_STEM.search(stem) else stem
    return word
