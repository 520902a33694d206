"""Commands that change what a session's window holds, and where its pages are listed: each can be tried on a copy first."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeAlias

from typer import Argument, Option

import memci
from memci.cli.exit_code import refuse
from memci.cli.output import Answer, Table, count
from memci.cli.place import IndexArgument, Place, command, page_argument
from memci.engine.core.monitor import Fold

DryRunOption: TypeAlias = Annotated[
    bool, Option("--dry-run", help="Only show what comes of it, on a copy in memory of the whole session; nothing is written.")
]
"""Of each command here."""


@command
def fold(
    place: Place,
    indexes: Annotated[
        list[str] | None, Argument(metavar="[INDEX]...", help="Pages such as usr-12, or the numbers alone.", parser=page_argument)
    ] = None,
    *,
    every: Annotated[bool, Option("--all", help="Fold all that is complete.")] = False,
    to: Annotated[str | None, Option(metavar="SIZE", help="light, medium, heavy, or a number of tokens.")] = None,
    dry_run: DryRunOption = False,
) -> Answer:
    """Fold pages out of the window (writes).

    Without pages it folds down to the low mark, as far as complete pages go, or to a size: light, medium and heavy make the
    window smaller by 20, 40 and 60%.
    """
    if indexes and every:
        refuse("give pages, or --all for all of them, not both")
    size: Any = int(to) if to is not None and to.isdecimal() else to  # any other word is refused
    pages = "all" if every else indexes or None
    return _edited(place, lambda session: _told(session, session.fold(pages, to=size)), dry_run=dry_run)


@command
def undo(place: Place, *, dry_run: DryRunOption = False) -> Answer:
    """Bring the pages of the last fold back into view (writes)."""
    return _edited(place, lambda session: _told(session, session.undo_fold()), dry_run=dry_run)


@command
def fade(place: Place, index: IndexArgument, *, dry_run: DryRunOption = False) -> Answer:
    """Let a recalled page leave the window now (writes)."""
    return _edited(place, lambda session: session.fade(index), f"fade {index}", dry_run=dry_run)


@command
def pin(place: Place, index: IndexArgument, *, dry_run: DryRunOption = False) -> Answer:
    """Keep a page's entry in the contents page from being evicted (writes)."""
    return _edited(place, lambda session: session.pin(index), f"pin {index}", dry_run=dry_run)


@command
def unpin(place: Place, index: IndexArgument, *, dry_run: DryRunOption = False) -> Answer:
    """Let a page's entry be evicted again (writes)."""
    return _edited(place, lambda session: session.unpin(index), f"unpin {index}", dry_run=dry_run)


@command
def evict(place: Place, index: IndexArgument, *, dry_run: DryRunOption = False) -> Answer:
    """Take a page's entry out of the contents page (writes).

    The page stays stored and searchable; `memci restore` puts its entry back.
    """
    return _edited(place, lambda session: session.evict(index), f"evict {index}", dry_run=dry_run)


@command
def restore(place: Place, index: IndexArgument, *, dry_run: DryRunOption = False) -> Answer:
    """Put the entry of an evicted page back into the contents page (writes)."""
    return _edited(place, lambda session: session.restore(index), f"restore {index}", dry_run=dry_run)


def _edited(place: Place, edit: Callable[[memci.Session], Iterable[str] | None], step: str = "", *, dry_run: bool) -> Answer:
    """Carry an edit out, or only try it, and answer with the window before and after it.

    What was done is *step*, or the steps that *edit* returns.
    """
    with place.copied() if dry_run else place.opened(write=True) as session:
        seq, before = session.seq, _sizes(session)
        told = edit(session)
        after, changed = _sizes(session), session.seq != seq
        steps = [step] if told is None else list(told)
        value = {"dry_run": dry_run, "seq": session.seq, "steps": steps if changed else [], "before": before, "after": after}
        if not changed:
            return Answer(value, ["nothing to do", _compared(before, after)])
        remark = f"written to session {session.id!r}, now at event {session.seq}"
    done, remark = ("would", "nothing was written: without --dry-run it is done") if dry_run else ("did", remark)
    return Answer(value, [*(f"{done}: {each}" for each in steps), _compared(before, after)], remark)


def _sizes(session: memci.Session) -> dict[str, Any]:
    """Return the tokens of the window as it stands, by part, and of the entries of which the next fold shows the contents."""
    window = session.render(at=session.seq)
    sizes = {"tokens": window.tokens, "budget": window.budget, "breakdown": dict(window.breakdown)}
    return {**sizes, "contents_entries": session.contents.tokens}


def _compared(before: dict[str, Any], after: dict[str, Any]) -> Table:
    was, now = (
        {**sizes["breakdown"], "window": sizes["tokens"], "entries of the contents page": sizes["contents_entries"]}
        for sizes in (before, after)
    )
    rows = ([part, count(was[part]), count(now[part]), _change(now[part] - was[part])] for part in was if was[part] or now[part])
    return Table(("part", "before#", "after#", "change#"), rows)


def _change(tokens: int) -> str:
    return f"{tokens:+,}" if tokens else ""


def _told(session: memci.Session, done: Fold) -> list[str]:
    """Return what a fold, or taking one back, did."""
    pages = ", ".join(done.pages)
    if done.reason == "undo":
        steps = [f"bring back {pages}" if pages else "take the last fold back"]
    elif pages:
        steps = [f"fold {pages}"]
    else:
        is_trim = any(event.kind == "trimmed" for event in session.events(after=done.seq - 1))
        steps = ["trim long results" if is_trim else "show the contents page as it is now"]
    return [*steps, f"evict {', '.join(done.evicted)}"] if done.evicted else steps
