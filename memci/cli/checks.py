"""Commands that answer why, and whether all is well."""

import attrs
import typer

from memci.cli import output
from memci.cli.exit_code import ExitCode
from memci.cli.opening import STORE, TENANT, JsonOption, Place, SessionOption, StoreOption, TenantOption, opened
from memci.cli.reading import IndexArgument, page_argument
from memci.cli.wording import count
from memci.engine.settings.config import Config, config_file_text


def explain(
    index: IndexArgument,
    *,
    store: StoreOption = STORE,
    session: SessionOption = None,
    tenant: TenantOption = TENANT,
    json: JsonOption = False,
) -> None:
    """Say why a page is where it is."""
    with opened(Place(store, tenant, session)) as found:
        answer = found.explain(page_argument(index))
    if json:
        output.document(attrs.asdict(answer))
    else:
        output.text(str(answer))


def verify(
    *, store: StoreOption = STORE, session: SessionOption = None, tenant: TenantOption = TENANT, json: JsonOption = False
) -> None:
    """Compare a session with its journal.

    Page files, snapshots and index are compared; the exit code is 1 where one of them is not what the journal makes.
    """
    with opened(Place(store, tenant, session)) as found:
        report = found.verify()
    if json:
        output.document({"ok": report.ok, **attrs.asdict(report)})
    else:
        output.text(
            f"{report.session}: {count(report.events)} events, {count(report.pages)} page files, "
            f"{count(report.snapshots)} snapshots compared"
        )
        output.text("\n".join(report.problems) or "no problem found")
    if not report.ok:
        raise typer.Exit(ExitCode.FAILED)


def config(*, json: JsonOption = False) -> None:
    """Print a configuration file.

    It holds every key with its default and what it means.
    """
    if json:
        output.document(Config().to_mapping())
    else:
        output.text(config_file_text().rstrip("\n"))
