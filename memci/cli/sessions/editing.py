"""Commands that change what a session's window holds, and where its pages are listed: each can be tried on a draft first."""

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Annotated, Any, TypeAlias

import attrs
from typer import Argument, Option

import memci
from memci.cli.exit_code import refuse
from memci.cli.output import Answer, Table, count
from memci.cli.place import IndexArgument, Place, command, page_argument
from memci.engine.core.monitor import Fold

DryRunOption: TypeAlias = Annotated[bool, Option("--dry-run", help="Only show what would come of it; nothing is written.")]
"""Of each command here."""


@attrs.frozen
class _Step:
    """What was done, or would be, to some pages."""

    step: str
    pages: Sequence[str] = ()
    to: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.step, ", ".join(self.pages), self.to and f"to {self.to}")))


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
def undo(
    place: Place,
    *,
    edit: Annotated[bool, Option("--edit", help="Take the last edit of the page tree back instead.")] = False,
    dry_run: DryRunOption = False,
) -> Answer:
    """Bring the pages of the last fold back into view (writes)."""
    if edit:
        return _edited(place, lambda session: session.undo_edit(), _Step("take the last edit back"), dry_run=dry_run)
    return _edited(place, lambda session: _told(session, session.undo_fold()), dry_run=dry_run)


@command
def fade(place: Place, index: IndexArgument, *, dry_run: DryRunOption = False) -> Answer:
    """Let a recalled page leave the window now (writes)."""
    return _edited(place, lambda session: session.fade(index), _Step("fade", [index]), dry_run=dry_run)


@command
def keep(place: Place, index: IndexArgument, *, dry_run: DryRunOption = False) -> Answer:
    """Hold a page verbatim through folds (writes)."""
    return _edited(place, lambda session: session.keep(index), _Step("keep", [index]), dry_run=dry_run)


@command
def unkeep(place: Place, index: IndexArgument, *, dry_run: DryRunOption = False) -> Answer:
    """Let folds take a page again (writes)."""
    return _edited(place, lambda session: session.unkeep(index), _Step("unkeep", [index]), dry_run=dry_run)


@command
def pin(place: Place, index: IndexArgument, *, dry_run: DryRunOption = False) -> Answer:
    """Keep a page's entry in the contents page from being evicted (writes)."""
    return _edited(place, lambda session: session.pin(index), _Step("pin", [index]), dry_run=dry_run)


@command
def unpin(place: Place, index: IndexArgument, *, dry_run: DryRunOption = False) -> Answer:
    """Let a page's entry be evicted again (writes)."""
    return _edited(place, lambda session: session.unpin(index), _Step("unpin", [index]), dry_run=dry_run)


@command
def evict(place: Place, index: IndexArgument, *, dry_run: DryRunOption = False) -> Answer:
    """Take a page's entry out of the contents page, or a directory with all that is in it (writes).

    What goes stays stored and searchable; `memci restore` puts it back.
    """
    return _edited(place, lambda session: session.remove_page(index), _Step("evict", [index]), dry_run=dry_run)


@command
def restore(place: Place, index: IndexArgument, *, dry_run: DryRunOption = False) -> Answer:
    """Put what was evicted back into the contents page (writes)."""
    return _edited(place, lambda session: session.restore(index), _Step("restore", [index]), dry_run=dry_run)


@command
def move(
    place: Place,
    source: Annotated[str, Argument(metavar="INDEX", help="A page, a note or a directory.", parser=page_argument)],
    target: Annotated[
        str,
        Argument(metavar="DIRECTORY", help="One that was made, or a root such as usr-0: where it came.", parser=page_argument),
    ],
    *,
    dry_run: DryRunOption = False,
) -> Answer:
    """List a page in another directory, with all that is in it (writes).

    The order of messages stays as it is.
    """
    return _edited(place, lambda session: session.move_page(source, target), _Step("move", [source], target), dry_run=dry_run)


@command
def note(  # noqa: PLR0913 (the options of a command)
    place: Place,
    name: Annotated[str, Argument(metavar="NAME", help="The line that the contents page shows.")],
    text: Annotated[str, Argument(metavar="TEXT", help="What it says; - for all of standard input.")],
    *,
    description: Annotated[str, Option(metavar="TEXT", help="A line below its name.")] = "",
    parent: Annotated[
        str | None, Option(metavar="INDEX", help="The directory that lists it; the root usr-0 by default.", parser=page_argument)
    ] = None,
    dry_run: DryRunOption = False,
) -> Answer:
    """Write a note: a page of its own that no message holds (writes)."""
    detail = _input() if text == "-" else text

    def written(session: memci.Session) -> list[_Step]:
        return [_Step("write", [session.create_detail_page(name, description, detail, parent)])]

    return _edited(place, written, dry_run=dry_run)


def _input() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        refuse("standard input is not UTF-8: give the text of the note in that encoding")


def _edited(
    place: Place, edit: Callable[[memci.Session], Sequence[_Step] | None], step: _Step | None = None, *, dry_run: bool
) -> Answer:
    """Carry an edit out, or only try it, and answer with the window before and after it.

    What was done is *step*, or the steps that *edit* returns.
    """
    with place.opened(write=not dry_run) as opened, opened.draft() if dry_run else nullcontext(opened) as session:
        seq, before = session.seq, _sizes(session)
        done = edit(session)
        after, changed = _sizes(session), session.seq != seq
        steps = [] if not changed else [step] if step is not None else done or []
        value = {"dry_run": dry_run, "seq": session.seq, "steps": steps, "before": before, "after": after}
        remark = f"written to session {session.id!r}, now at event {session.seq}"
    if not changed:
        return Answer(value, ["nothing to do", _compared(before, after)])
    verb, remark = ("would", "nothing was written: without --dry-run it is done") if dry_run else ("did", remark)
    if after["tokens"] > after["budget"]:
        remark += f"; as it stands, the window does not fit {count(after['budget'])} tokens: the next call makes room"
    return Answer(value, [*(f"{verb}: {each}" for each in steps), _compared(before, after)], remark)


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


def _told(session: memci.Session, done: Fold) -> list[_Step]:
    """Return what a fold, or taking one back, did."""
    if done.reason == "undo":
        steps = [_Step("bring back", done.pages) if done.pages else _Step("take the last fold back")]
    elif done.pages:
        steps = [_Step("fold", done.pages)]
    else:
        is_trim = any(event.kind == "trimmed" for event in session.events(after=max(done.seq - 1, 0)))
        steps = [_Step("trim long results" if is_trim else "show the contents page as it is now")]
    return [*steps, _Step("evict", done.evicted)] if done.evicted else steps
