"""What is done by hand: what it would change is told before, and nothing is done by telling it."""

from collections.abc import Iterator

import pytest

import memci
from memci.engine.session import Session
from memci.page.acting import ACTIONS, OF_PAGES, would_change
from memci.page.window import window_value
from tests.page.sessions import eventful


@pytest.fixture
def session() -> Iterator[Session]:
    with eventful() as opened:
        yield opened


@pytest.mark.parametrize(
    ("action", "of", "told"),
    [
        ("fold", "all", "fold of "),
        ("fold", "heavy", "fold of "),
        ("undo", "", "came back"),
        ("recall", "usr-5", "recall of usr-5"),
        ("pin", "usr-5", "usr-5 is pinned"),
        ("unpin", "usr-4", "usr-4 is no longer pinned"),
        ("keep", "usr-5", "usr-5 is kept"),
        ("evict", "usr-5", "usr-5 left the contents page"),
    ],
)
def test_what_would_happen_is_told_and_then_happens(session: Session, action: str, of: str, told: str) -> None:
    """Words, windows and reasons are those of the session once it is done; before, nothing changed."""
    seq, before = session.seq, window_value(session, session.seq)
    would = would_change(session, action, of)
    assert would["changes"]
    assert told in " ".join(would["words"])
    assert (seq, before) == (session.seq, would["before"])
    ACTIONS[action](session, of)
    assert would["after"] == window_value(session, session.seq)
    assert would["reasons"] == (list(session.explain(of).reasons) if action in OF_PAGES else [])


def test_a_checkpoint_is_gone_back_to(session: Session) -> None:
    """Making one changes no window, going back to it brings the window of then."""
    would = would_change(session, "checkpoint", "here")
    assert would["before"]["messages"] == would["after"]["messages"]
    made, then = session.checkpoint("here"), window_value(session, session.seq)
    session.fold("all")
    would = would_change(session, "restore_checkpoint", made.id)
    assert then["messages"] == would["after"]["messages"] != would["before"]["messages"]


def test_what_would_change_nothing_is_told(session: Session) -> None:
    """A fold that has nothing to fold and a pin that is there are told to change nothing; a page is named by its number, too."""
    session.fold("all")
    assert not would_change(session, "fold", "all")["changes"]
    assert not would_change(session, "pin", "4")["changes"]
    assert would_change(session, "pin", "5")["changes"]


def test_what_cannot_be_done_is_the_error_of_doing_it(session: Session) -> None:
    """No such page, checkpoint, size or action: each is told, and nothing was done."""
    for action, of in (
        ("recall", "usr-999"),
        ("restore_checkpoint", "cp-9"),
        ("fold", "tiny"),
        ("checkpoint", ""),
        ("erase", "usr-1"),
    ):
        with pytest.raises(memci.MemciError):
            would_change(session, action, of)
