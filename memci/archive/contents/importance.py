"""How important a page is among those that the contents page lists, by what its entry tells."""

import re

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Item

HALF_LIFE = 32  # turns in which recency halves

_ERROR = re.compile(r"error|exception|traceback|\b(?:fail(?:ed|ure|s)?|fatal|panic|denied|not found)\b", re.IGNORECASE)
_QUESTIONS = ("?", "？", "؟")


@attrs.frozen(kw_only=True)
class Weights:
    """What each mark of importance counts for, in numbers from 0.

    Attributes:
        recency: One for a page that was archived or recalled in this turn, half for one 32 turns ago.
        recalls: One less a share that halves at the first recall, is a third after two, and so on.
        values: How much the page holds that cannot be said again, as its summary tells.
        errors: Whether an error is told of.
        changes: Whether a call changed something.
        questions: Whether the user asks something.
    """

    recency: float
    recalls: float
    values: float
    errors: float
    changes: float
    questions: float


def importance(entry: Item, turn: int, weights: Weights) -> float:
    """Return how important a page is in a turn; of a directory, by recency and recalls alone. O(size of the entry)."""
    last = entry.archived_turn if entry.last_recall_turn is None else entry.last_recall_turn
    found: float = weights.recency * 2.0 ** ((last - turn) / HALF_LIFE)
    if not isinstance(entry, ContentsEntry):
        return found + (0.0 if entry.last_recall_turn is None else weights.recalls / 2)
    said = (entry.title, entry.summary, entry.outcome, *entry.lines)
    asked = (entry.title, entry.summary, *(line for line in entry.lines if line.startswith("user")))
    found += weights.recalls * (1 - 1 / (1 + entry.recall_count)) + weights.values * entry.importance
    found += weights.errors * any(map(_ERROR.search, said)) + weights.changes * bool(entry.state_changes)
    return found + weights.questions * any(mark in text for text in asked for mark in _QUESTIONS)
