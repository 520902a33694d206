"""What is told of each kind of event between calls, and to which pages."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import attrs
import pytest

from memci.engine.reading.journal import SessionEvent
from memci.engine.settings.config import Config
from memci.page.journal import Journal, read_journal

if TYPE_CHECKING:
    from memci.engine.session import Session


@attrs.frozen
class Told:
    """A session of which nothing is known but its journal."""

    journal: tuple[SessionEvent, ...]
    config: Config = attrs.field(factory=Config)

    def events(self, *, after: int = 0) -> Iterator[SessionEvent]:
        """Yield its events after one."""
        return (event for event in self.journal if event.seq > after)


def read(*events: tuple[str, dict[str, Any]]) -> Journal:
    """Return what a journal tells whose events begin with number 2."""
    journal = tuple(SessionEvent(seq=seq, kind=kind, data=data) for seq, (kind, data) in enumerate(events, start=2))
    return read_journal(cast("Session", Told(journal)))


FOLD: dict[str, Any] = {"reason": "marks", "folded": [], "revised": {}, "details": {}, "directories": [], "evicted": []}


@pytest.mark.parametrize(
    ("kind", "data", "words", "pages"),
    [
        ("configured", {}, "other settings", []),
        ("system_set", {"pages": [{"message": {}}]}, "another system part", []),
        (
            "folded",
            {**FOLD, "folded": ["usr-1", "usr-2"]},
            "fold of usr-1..2, as the window was over its marks",
            ["usr-1", "usr-2"],
        ),
        ("folded", {**FOLD, "evicted": [["usr-3", "stale"]]}, "usr-3 left the contents page", ["usr-3"]),
        ("trimmed", {"results": {"usr-4": {}}}, "long results of usr-4 were trimmed", ["usr-4"]),
        ("fold_undone", {"pages": [{"page": "usr-1"}, {"page": "usr-2"}]}, "fold undone: usr-1..2 came back", ["usr-1", "usr-2"]),
        ("recalled", {"page": "usr-1..9"}, "recall of usr-1..9", ["usr-1..9"]),
        ("faded", {"pages": ["usr-1"], "reason": "turns"}, "usr-1 faded, as its turns were over", ["usr-1"]),
        ("faded", {"pages": ["usr-1"], "reason": "listed anew"}, "usr-1 faded, listed anew", ["usr-1"]),
        ("quoted", {"passages": [{"page": "usr-1"}, {"page": "usr-1"}]}, "passages of usr-1 were quoted", ["usr-1"]),
        ("quoted", {"passages": []}, "passages left", []),
        (
            "evicted",
            {"pages": [["usr-1", "command"], ["usr-5", "command"]]},
            "usr-1, usr-5 left the contents page",
            ["usr-1", "usr-5"],
        ),
        ("restored", {"page": "usr-1"}, "usr-1 came back to the contents page", ["usr-1"]),
        ("pinned", {"page": "usr-1", "pinned": False}, "usr-1 is no longer pinned", ["usr-1"]),
        ("kept", {"page": "usr-1", "by": "rule"}, "usr-1 is kept", ["usr-1"]),
        ("rewound", {"page": "usr-4", "position": 2}, "the session went back to before usr-4/2", ["usr-4"]),
        ("checkpoint_restored", {"checkpoint": "cp-3", "target": 9}, "checkpoint cp-3 was restored", []),
        ("erased", {"page": "usr-4"}, "usr-4 was erased", ["usr-4"]),
        ("slots_set", {"slots": {"a": "{pages}"}}, "slots changed", []),
    ],
)
def test_each_kind_is_told(kind: str, data: dict[str, Any], words: str, pages: list[str]) -> None:
    """What changed the window is told in words, and becomes a part of the history of each page that it is about."""
    journal = read((kind, data))
    assert [words] == [mark.words for mark in journal.marks]
    assert pages == list(journal.histories)


@pytest.mark.parametrize("kind", ["usage", "described", "leased", "bookmarked", "mentioned", "settled"])
def test_what_changes_no_window_is_no_mark(kind: str) -> None:
    """Events that nobody sees in a window are not told."""
    assert [] == read((kind, {"pages": []})).marks


def test_a_fold_tells_what_it_did_to_earlier_pages() -> None:
    """Revisions, shorter entries and directories stand in the histories of the pages that they are of."""
    changes = {"revised": {"usr-1": 9}, "details": {"usr-2": "title"}, "directories": [{"index": "usr-1..2"}]}
    journal = read(("folded", {**FOLD, **changes, "folded": ["usr-3"]}))
    told = {page: [words for _, words in history] for page, history in journal.histories.items()}
    assert {
        "usr-1": ["a late result came in: a new revision"],
        "usr-2": ["its entry became title"],
        "usr-3": ["folded"],
        "usr-1..2": ["the directory was made, or changed"],
    } == told
