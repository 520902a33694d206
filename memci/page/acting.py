"""What somebody does with a session by hand, and what that would change."""

from collections.abc import Callable, Mapping
from typing import Any

from memci.engine.reading.pages import page_named
from memci.engine.session import Session
from memci.errors import ArgumentError
from memci.page.journal import read_journal
from memci.page.window import window_value


def _fold(session: Session, size: str) -> None:
    if size in ("", "all"):
        session.fold("all" if size else None)
    else:
        session.fold(to=size)  # type: ignore[arg-type]  # which says what it takes


OF_PAGES: Mapping[str, Callable[[Session, Any], object]] = {
    "fold_page": lambda session, index: session.fold([index]),
    "recall": Session.recall,
    "fade": Session.fade,
    "evict": Session.evict,
    "restore": Session.restore,
    "pin": Session.pin,
    "unpin": Session.unpin,
    "keep": Session.keep,
    "unkeep": Session.unkeep,
}
"""What is done with the page of an index, by name."""

ACTIONS: Mapping[str, Callable[[Session, Any], object]] = {
    **OF_PAGES,
    "fold": _fold,
    "undo": lambda session, _nothing: session.undo_fold(),
    "checkpoint": Session.checkpoint,
    "restore_checkpoint": Session.restore_checkpoint,
}
"""All that is done by hand: with a page; with a size, which is ``all``, ``light``, ``medium``, ``heavy``, or empty for that of
the marks; with nothing; with a label; with the id of a checkpoint."""


def would_change(session: Session, action: str, of: str) -> dict[str, Any]:
    """Return whether an action ``changes`` something, ``words`` of events, and ``before`` and ``after``, windows as they stand.

    With a page, ``reasons`` say why it would be where it would be. Raises what the action would. O(events since a snapshot).
    """
    if action not in ACTIONS:
        raise ArgumentError(argument="action", value=action, wanted=", ".join(ACTIONS))
    before, index = session.seq, page_named(of) if action in OF_PAGES else of
    with session.draft() as draft:
        ACTIONS[action](draft, index)
        return {
            "changes": draft.seq > before,
            "words": [mark.words for mark in read_journal(draft, before).marks],
            "before": window_value(session, before),
            "after": window_value(draft, draft.seq),
            "reasons": list(draft.explain(index).reasons) if action in OF_PAGES else [],
        }
