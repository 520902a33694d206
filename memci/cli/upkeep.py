"""Commands that make a session good, take content out of it, or delete it."""

from typing import TYPE_CHECKING, Annotated

import attrs
import typer

import memci
from memci.cli import output
from memci.cli.exit_code import CommandError, ExitCode
from memci.cli.opening import STORE, TENANT, JsonOption, Place, SessionOption, StoreOption, TenantOption, opened
from memci.cli.reading import IndexArgument, page_argument
from memci.cli.wording import count
from memci.errors import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memci.engine.erasure.erasing import Receipt


def repair(
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; without this, only say what would be done.")] = False,
    store: StoreOption = STORE,
    session: SessionOption = None,
    tenant: TenantOption = TENANT,
    json: JsonOption = False,
) -> None:
    """Make good what differs from a session's journal.

    Index, page files and snapshots are made again from the journal. The exit code is 1 where something is wrong: before
    --apply all that was found, after it what is left.
    """
    with opened(Place(store, tenant, session)) as found:
        session_id, config = found.id, found.config
    with memci.Engine(store, config, tenant, read_only=not apply) as engine:
        done = engine.repair(session_id, apply=apply)
    if json:
        output.document({"ok": done.report.ok, **attrs.asdict(done)})
    else:
        verb = "did" if apply else "would"
        output.text("\n".join(f"{verb}: {step}" for step in done.steps) or "nothing to repair")
        output.text("\n".join(done.report.problems) or "no problem found")
        if done.steps and not apply:
            output.note("nothing was changed: --apply does it")
    if not done.report.ok:
        raise typer.Exit(ExitCode.FAILED)


def erase(  # noqa: PLR0913 (the options of a command)
    index: IndexArgument,
    *,
    forks: Annotated[bool, typer.Option("--forks", help="In all forks too that took the page over.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="It is meant: nothing brings it back.")] = False,
    store: StoreOption = STORE,
    session: SessionOption = None,
    tenant: TenantOption = TENANT,
    json: JsonOption = False,
) -> None:
    """Take what a page holds out of everything that is stored of a session, for good."""
    if not yes:
        message = f"what {index} holds would be gone for good: look at it with memci show, and say --yes"
        raise CommandError(message, ExitCode.USAGE)
    with opened(Place(store, tenant, session)) as found:
        session_id, config = found.id, found.config
    with memci.Engine(store, config, tenant) as engine:
        try:
            receipts = engine.erase(session_id, page_argument(index), forks=forks)
        except memci.ErasureError as error:
            _show(error.receipts, json=json)
            raise
    _show(receipts, json=json)
    if receipts[0].forks and not forks and not json:
        output.note(f"forks that took the page over still hold it: {', '.join(receipts[0].forks)}; --forks erases it there too")


def _show(receipts: "Sequence[Receipt]", *, json: bool) -> None:
    if json:
        output.document([attrs.asdict(receipt) for receipt in receipts])
        return
    for receipt in receipts:
        output.text(
            f"{receipt.page} of {receipt.session}: {count(receipt.records)} records redacted, "
            f"{count(len(receipt.files))} page files, event {count(receipt.seq)}, {receipt.at}"
        )


def delete(
    *,
    yes: Annotated[bool, typer.Option("--yes", help="It is meant: nothing brings it back.")] = False,
    store: StoreOption = STORE,
    session: SessionOption = None,
    tenant: TenantOption = TENANT,
) -> None:
    """Delete a session with all that is stored of it; its forks and copies stay.

    It need not be one that can be opened: a damaged one goes, too. Its id has to be given.
    """
    if session is None:
        message = "say which one is to be deleted with --session; memci sessions lists them"
        raise CommandError(message, ExitCode.USAGE)
    if not yes:
        message = f"session {shown(session)} would be gone for good: say --yes"
        raise CommandError(message, ExitCode.USAGE)
    with memci.Engine(store, tenant=tenant) as engine:
        if session not in set(engine.sessions()):
            output.note(f"there is no session {shown(session)}; what may be left of one is removed")
        engine.delete(session)
