"""Summaries without a model, in the page's own words."""

import math
import re
from collections.abc import Sequence

from memci.archive.summarizers.entries import Entry, clean_name, read_entries
from memci.archive.summarizers.literals import LiteralKind
from memci.archive.summarizers.passage import Atom
from memci.archive.summarizers.selection import Choice, Passage, choose, shown
from memci.archive.summary import Summary
from memci.messages.message import Call, Message

_ROLE_WORTH = {"user": 1.2, "assistant": 1.0, "call": 0.9, "tool": 0.8}
_OTHER_ROLE_WORTH = 0.5
_REPEATED = 0.25
_TITLED = 0.2
_LONG=40
_LONGP=.25
_EARLY_WORDS = 20
_LATE_POWER = 0.3
_LARGEST_SHARE = 0.9
_TITLE_WORDS = 8
_TITLE_TOKENS = 12.0


class ExtractiveSummarizer:
    """The default summariser: no model, no I/O, the same answer for the same page, any language.

    Worth of a word: rare words and literal values tell most, common words little, a word that was said before in the page a quarter;
    the user's words weigh most, a tool's least, and the first twenty words of an entry more than later ones.
    """

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> Summary:
        entries = read_entries(messages)
        passages = [passage for entry in entries for passage in entry.passages]
        weigh(entries)
        title = make_title(entries)
        total = sum(p.opening_cost + sum(a.cost + a.gap_cost for a in p.atoms) for p in passages)
        room = min(max_tokens, total * _LARGEST_SHARE)
        choices = choose(passages, room)
        lines = [""] * len(entries)
        for p, c in zip(passages, choices, strict=True):
            if c is not None:
                op = p.opening if lines[p.entry] else entries[p.entry].role + ": " if p.opening == " " else p.opening
                lines[p.entry] += op + shown(p, c) + p.closing
        return Summary(title=title, lines=tuple(_clean(line) for line in lines if line))


def _clean(t): return " ".join(t.split())


def weigh(entries):
    said: set[str] = set()
    order = sorted(range(len(entries)), key=lambda n: entries[n].role != "user")
    for n in order:
        e = entries[n]
        for p in e.passages:
            role = p.speaker
            base = _ROLE_WORTH.get(role, _OTHER_ROLE_WORTH)
            if role!='user' and len(p.atoms)>_LONG: base*=(_LONG/len(p.atoms))**_LONGP
            for i, a in enumerate(p.atoms):
                w = 0.0
                for form, worth in a.forms:
                    if form in said:
                        worth *= _REPEATED
                    else:
                        said.add(form)
                    w += worth
                pos = 1.0 if i < _EARLY_WORDS else (_EARLY_WORDS / (i + 1)) ** _LATE_POWER
                a.worth = w * base * pos


def make_title(entries):
    cands = [p for e in entries if e.role == "user" for p in e.passages] or [p for e in entries for p in e.passages]
    best = (0.0, None, 0, 0)
    for p in cands[:3]:
        at = p.atoms[:400]
        for i in range(len(at)):
            cost = words = 0; worth = 0.0
            for j in range(i, len(at)):
                a = at[j]
                if j > i and (a.gap is None or a.opens): break
                cost += a.cost + (a.gap_cost if j > i else 0)
                words += a.words if len(a.forms) == 1 else 1
                if (cost > _TITLE_TOKENS or words > _TITLE_WORDS) and j > i: break
                worth += a.worth
                v = worth - 0.1 * cost
                if v > best[0] + 1e-9: best = (v, p, i, j + 1)
    if best[1] is None: return ""
    _, p, i, j = best
    for a in p.atoms[i:j]: a.worth *= _TITLED
    return _clean(shown(p, Choice(((i, j),), 0, 0)))
