"""Commands that write: into a session, into another one that comes of it, or out of the store."""

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import attrs
import typer

import memci
from memci.archive.stores.url import open_store, place_of
from memci.cli import output
from memci.cli.exit_code import ExitCode, refuse
from memci.cli.looking import page_argument
from memci.cli.opening import IndexArgument, JsonOption, Place, placed
from memci.cli.output import count
from memci.engine.upkeep.copying import Copied, copy_session
from memci.errors import InvalidIdError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memci.engine.erasure.erasing import Receipt

_CHECKPOINT_COLUMNS = ("checkpoint", "event#", "turn#", "kind", "made", "label")


@placed
def recall(place: Place, index: IndexArgument, *, json: JsonOption = False) -> None:
    """Bring a page back into the window (writes).

    The page stays for some turns, as `recall.turns` says, and its recall count goes up. Of a range such as usr-12..40 it is
    the list of its pages. A process that has the session open learns of it by refresh(), and until then gets a ConflictError
    when it writes.
    """
    with place.opened(write=True) as session:
        page = session.recall(page_argument(index))
        answer = session.explain(page.index)
        seq, session_id = session.seq, session.id
    output.tell({"seq": seq, "tokens": page.tokens, **attrs.asdict(answer)}, str(answer), json=json)
    if not json:
        output.note(f"written to session {session_id!r}, now at event {seq}")


@placed
def checkpoints(
    place: Place,
    *,
    add: Annotated[str | None, typer.Option(metavar="LABEL", help="Make one here first (writes).")] = None,
    kind: Annotated[str, typer.Option(help="Of the one to make: manual, milestone, mode_switch, approval, recovery.")] = "manual",
    restore: Annotated[str | None, typer.Option(metavar="ID", help="Go back to this one first (writes).")] = None,
    json: JsonOption = False,
) -> None:
    """List the checkpoints of a session, oldest first.

    With --restore the session goes on from a checkpoint. What came after it stays in the journal, and a checkpoint of the kind
    recovery that is made before leads back.
    """
    if add is not None and restore is not None:
        refuse("give --add or --restore, not both")
    with place.opened(write=add is not None or restore is not None) as session:
        if add is not None:
            session.checkpoint(add, kind=kind)
        if restore is not None:
            try:
                session.restore_checkpoint(restore)
            except InvalidIdError as error:
                refuse(str(error), ExitCode.NOT_FOUND)
        listed = session.checkpoints()
    if json:
        output.document([attrs.asdict(each) for each in listed])
    elif listed:
        rows = ([each.id, count(each.seq), count(each.turn), each.kind, each.at, each.label] for each in listed)
        output.table(_CHECKPOINT_COLUMNS, rows)
    else:
        output.note("there is no checkpoint: --add makes one, and so does the key checkpoints.every_turns of a configuration")


@placed
def fork(
    place: Place,
    new_id: Annotated[str, typer.Argument(metavar="NEW_ID", help="The id of the fork.")],
    *,
    at: Annotated[int | None, typer.Option(metavar="SEQ", help="The last event that it has; now by default.")] = None,
    json: JsonOption = False,
) -> None:
    """Make a session that begins as another one (writes).

    The two are independent of each other from then on. An interrupted fork can be repeated.
    """
    session_id, config = place.known()
    with place.engine(config, write=True) as engine, engine.fork(session_id, new_id, at) as made:
        seq = made.seq
    told = f"{new_id}: a fork of {session_id}, at event {count(seq)}"
    output.tell({"source": session_id, "session": new_id, "seq": seq}, told, json=json)


@placed
def copy(
    place: Place,
    *,
    to_store: Annotated[str, typer.Option("--to-store", metavar="URL", help="Where the copy goes.")],
    to_session: Annotated[str | None, typer.Option("--to-session", metavar="ID", help="Its id; the same by default.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Copy all sessions.")] = False,
    json: JsonOption = False,
) -> None:
    """Copy a session to another store (writes there).

    The session may be in use meanwhile. An interrupted copy goes on where it was when it is repeated. All events are compared
    at the end.
    """
    if every and (place.session is not None or to_session is not None):
        refuse("--all copies each session under its id: leave --session and --to-session out")
    if place_of(to_store) == place_of(place.store):
        refuse("the copy would go where the session is: give another --to-store, or use memci fork")
    chosen = place.sessions() if every else [place.known()[0]]
    done: list[Copied] = []
    with closing(open_store(place.store)) as source, closing(open_store(to_store)) as target:
        for session_id in chosen:
            now = datetime.now(UTC).isoformat()
            with output.progress(session_id) as hear:
                copied = copy_session(
                    source, target, session_id, now=now, tenant=place.tenant, to_session=to_session, progress=hear
                )
            done.append(copied)
            if not json:
                output.text(_told(copied))
    if json:
        output.document([attrs.asdict(copied) for copied in done])


@placed
def repair(
    place: Place,
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; without this, only say what would be done.")] = False,
    json: JsonOption = False,
) -> None:
    """Make good what differs from a session's journal.

    Index, page files and snapshots are made again from the journal. The exit code is 1 where something is wrong: before
    --apply all that was found, after it what is left.
    """
    session_id, config = place.known()
    with place.engine(config, write=apply) as engine:
        done = engine.repair(session_id, apply=apply)
    steps = [f"{'did' if apply else 'would'}: {step}" for step in done.steps] or ["nothing to repair"]
    told = "\n".join([*steps, *(done.report.problems or ["no problem found"])])
    output.tell({"ok": done.report.ok, **attrs.asdict(done)}, told, json=json)
    if done.steps and not (apply or json):
        output.note("nothing was changed: --apply does it")
    if not done.report.ok:
        raise typer.Exit(ExitCode.FAILED)


@placed
def erase(
    place: Place,
    index: IndexArgument,
    *,
    forks: Annotated[bool, typer.Option("--forks", help="In all forks too that took the page over.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="It is meant: nothing brings it back.")] = False,
    json: JsonOption = False,
) -> None:
    """Take what a page holds out of everything that is stored of a session, for good."""
    if not yes:
        refuse(f"what {index} holds would be gone for good: look at it with memci show, and say --yes")
    session_id, config = place.known()
    with place.engine(config, write=True) as engine:
        try:
            receipts = engine.erase(session_id, page_argument(index), forks=forks)
        except memci.ErasureError as error:
            _show(error.receipts, json=json)
            raise
    _show(receipts, json=json)
    if receipts[0].forks and not forks and not json:
        output.note(f"forks that took the page over still hold it: {', '.join(receipts[0].forks)}; --forks erases it there too")


@placed
def delete(
    place: Place, *, yes: Annotated[bool, typer.Option("--yes", help="It is meant: nothing brings it back.")] = False
) -> None:
    """Delete a session with all that is stored of it; its forks and copies stay.

    It need not be one that can be opened: a damaged one goes, too. Its id has to be given.
    """
    if place.session is None:
        refuse("say which one is to be deleted with --session; memci sessions lists them")
    if not yes:
        refuse(f"session {shown(place.session)} would be gone for good: say --yes")
    with place.engine(write=True) as engine:
        if place.session not in set(engine.sessions()):
            output.note(f"there is no session {shown(place.session)}; what may be left of one is removed")
        engine.delete(place.session)


def _told(copied: Copied) -> str:
    there = copied.seq - copied.events
    told = [f"{copied.session}: {count(copied.events)} events and {count(copied.pages)} page files copied"]
    if there:
        told.append(f"{count(there)} events were there")
    if copied.missing:
        told.append(f"{count(len(copied.missing))} page files were not as the journal names them")
    return "; ".join([*told, "all events compared"])


def _show(receipts: "Sequence[Receipt]", *, json: bool) -> None:
    told = (
        f"{receipt.page} of {receipt.session}: {count(receipt.records)} records redacted, "
        f"{count(len(receipt.files))} page files, event {count(receipt.seq)}, {receipt.at}"
        for receipt in receipts
    )
    output.tell([attrs.asdict(receipt) for receipt in receipts], "\n".join(told), json=json)
