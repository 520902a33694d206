"""Paths below one directory, their base: rows of the contents page show them without it, and the heading above says it."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

_MARK = "…"  # before the "/" or "\" that follows the base
_ABSOLUTE = re.compile(r"""(?<![\w./\\~:…-])(?:~?/|[A-Za-z]:\\)[^\s"'`(),;:|<>*?\[\]{}]+""")
_SEPARATOR = re.compile(r"[/\\]")
_MARKED = re.compile(r"…[/\\]")
_SAID = re.compile(r" · (…[/\\]) is .*$")
_ROW = re.compile("[0-9]+ ")
_FRAME = 8  # characters of a heading around a base
_FEWEST_PAGES = 2  # that name something in it, so that a heading says nothing that one page alone said


class Base(NamedTuple):
    """A directory as paths begin with it, with the separator at its end; empty for none."""

    path: str = ""
    pages: tuple[int, ...] = ()  # that name something in it, by number

    def shorten(self, text: str) -> str:
        """Return a text with a mark instead of the base, in all paths that begin with it."""
        return _ABSOLUTE.sub(lambda found: self._below(found[0]), text) if self.path and self.path in text else text

    def _below(self, path: str) -> str:
        return _MARK + path[len(self.path) - 1 :] if path.startswith(self.path) else path

    def heading(self) -> str:
        """Return what a heading says of the mark."""
        return f" · {_MARK}{self.path[-1]} is {self.path}"


NO_BASE = Base()


def find_base(words: Iterable[Sequence[Any]]) -> Base:
    """Return the directory that saves most characters, of words, each after the number of its page. O(the words).

    There is none where it saves nothing, where one page alone names it, and where a word has its mark already.
    """
    pages_of: defaultdict[str, list[int]] = defaultdict(list)
    for number, text in [word[:2] for word in words if "/" in word[1] or "\\" in word[1]]:
        if _MARKED.search(text):
            return NO_BASE
        for path in _ABSOLUTE.findall(text):
            for separator in _SEPARATOR.finditer(path):
                pages_of[path[: separator.end()]].append(number)
    savings = {path: len(pages) * (len(path) - 2) - len(path) - _FRAME for path, pages in pages_of.items()}
    useful = [path for path, size in savings.items() if size > 0 and len(set(pages_of[path])) >= _FEWEST_PAGES]
    best = max(useful, key=savings.__getitem__, default="")
    return Base(best, tuple(sorted(set(pages_of[best])))) if best else NO_BASE


def without_unused(lines: Iterable[str]) -> list[str]:
    """Return lines of a contents page where no heading says a base that none of its rows has a path below."""
    left = list[str]()
    place, mark = -1, ""  # of the last heading that says a base
    for line in [*lines, ""]:
        if mark and not _ROW.match(line):
            left[place] = _SAID.sub("", left[place])
            mark = ""
        elif mark and mark in line:
            mark = ""
        if said := _SAID.search(line) if line.startswith("[") else None:
            place, mark = len(left), said[1]
        left.append(line)
    return left[:-1]
