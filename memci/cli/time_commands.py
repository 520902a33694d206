"""Commands that go through time, and that take sessions elsewhere."""

from contextlib import closing
from datetime import UTC, datetime
from typing import Annotated

import attrs
import typer

import memci
from memci.archive.stores.url import open_store, place_of
from memci.cli import output
from memci.cli.exit_code import CommandError, ExitCode
from memci.cli.opening import STORE, TENANT, JsonOption, Place, SessionOption, StoreOption, TenantOption, get_sessions, opened
from memci.cli.output import Column
from memci.cli.wording import count
from memci.engine.upkeep.copying import Copied, copy_session
from memci.errors import InvalidIdError

_CHECKPOINT_COLUMNS = (
    Column("checkpoint"),
    Column("event", number=True),
    Column("turn", number=True),
    Column("kind"),
    Column("made"),
    Column("label"),
)


def checkpoints(  # noqa: PLR0913 (the options of a command)
    *,
    add: Annotated[str | None, typer.Option(metavar="LABEL", help="Make one here first (writes).")] = None,
    kind: Annotated[str, typer.Option(help="Of the one to make: manual, milestone, mode_switch, approval, recovery.")] = "manual",
    restore: Annotated[str | None, typer.Option(metavar="ID", help="Go back to this one first (writes).")] = None,
    store: StoreOption = STORE,
    session: SessionOption = None,
    tenant: TenantOption = TENANT,
    json: JsonOption = False,
) -> None:
    """List the checkpoints of a session, oldest first.

    With --restore the session goes on from a checkpoint. What came after it stays in the journal, and a checkpoint of the kind
    recovery that is made before leads back.
    """
    if add is not None and restore is not None:
        message = "give --add or --restore, not both"
        raise CommandError(message, ExitCode.USAGE)
    with opened(Place(store, tenant, session), write=add is not None or restore is not None) as found:
        if add is not None:
            found.checkpoint(add, kind=kind)
        if restore is not None:
            try:
                found.restore_checkpoint(restore)
            except InvalidIdError as error:
                raise CommandError(str(error), ExitCode.NOT_FOUND) from error
        listed = found.checkpoints()
    if json:
        output.document([attrs.asdict(each) for each in listed])
    elif listed:
        rows = ([each.id, count(each.seq), count(each.turn), each.kind, each.at, each.label] for each in listed)
        output.table(_CHECKPOINT_COLUMNS, rows)
    else:
        output.note("there is no checkpoint: --add makes one, and so does the key checkpoints.every_turns of a configuration")


def fork(  # noqa: PLR0913 (the options of a command)
    new_id: Annotated[str, typer.Argument(metavar="NEW_ID", help="The id of the fork.")],
    *,
    at: Annotated[int | None, typer.Option(metavar="SEQ", help="The last event that it has; now by default.")] = None,
    store: StoreOption = STORE,
    session: SessionOption = None,
    tenant: TenantOption = TENANT,
    json: JsonOption = False,
) -> None:
    """Make a session that begins as another one (writes).

    The two are independent of each other from then on. An interrupted fork can be repeated.
    """
    with opened(Place(store, tenant, session)) as found:
        session_id, config = found.id, found.config
    with memci.Engine(store, config, tenant) as engine, engine.fork(session_id, new_id, at) as made:
        seq = made.seq
    if json:
        output.document({"source": session_id, "session": new_id, "seq": seq})
    else:
        output.text(f"{new_id}: a fork of {session_id}, at event {count(seq)}")


def copy(  # noqa: PLR0913 (the options of a command)
    *,
    to_store: Annotated[str, typer.Option("--to-store", metavar="URL", help="Where the copy goes.")],
    to_session: Annotated[str | None, typer.Option("--to-session", metavar="ID", help="Its id; the same by default.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Copy all sessions.")] = False,
    store: StoreOption = STORE,
    session: SessionOption = None,
    tenant: TenantOption = TENANT,
    json: JsonOption = False,
) -> None:
    """Copy a session to another store (writes there).

    The session may be in use meanwhile. An interrupted copy goes on where it was when it is repeated. All events are compared
    at the end.
    """
    if every and (session is not None or to_session is not None):
        message = "--all copies each session under its id: leave --session and --to-session out"
        raise CommandError(message, ExitCode.USAGE)
    if place_of(to_store) == place_of(store):
        message = "the copy would go where the session is: give another --to-store, or use memci fork"
        raise CommandError(message, ExitCode.USAGE)
    if every:
        with memci.Engine(store, tenant=tenant, read_only=True) as engine:
            chosen = get_sessions(engine, store, tenant)
    else:
        with opened(Place(store, tenant, session)) as found:
            chosen = [found.id]
    done: list[Copied] = []
    with closing(open_store(store)) as source, closing(open_store(to_store)) as target:
        for session_id in chosen:
            now = datetime.now(UTC).isoformat()
            with output.progress(session_id) as hear:
                copied = copy_session(source, target, session_id, now=now, tenant=tenant, to_session=to_session, progress=hear)
            done.append(copied)
            if not json:
                output.text(_told(copied))
    if json:
        output.document([attrs.asdict(copied) for copied in done])


def _told(copied: Copied) -> str:
    there = copied.seq - copied.events
    told = [f"{copied.session}: {count(copied.events)} events and {count(copied.pages)} page files copied"]
    if there:
        told.append(f"{count(there)} events were there")
    if copied.missing:
        told.append(f"{count(len(copied.missing))} page files were not as the journal names them")
    return "; ".join([*told, "all events compared"])
