"""The options that commands share, and opening the session that they name."""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_type_hints

import attrs
import typer

import memci
from memci.archive.stores.url import shown_url
from memci.cli.exit_code import ExitCode, refuse
from memci.errors import shown

_LISTED_SESSIONS = 10

StoreOption: TypeAlias = Annotated[str, typer.Option("--store", metavar="URL", envvar="MEMCI_STORE", help="Where sessions live.")]
TenantOption: TypeAlias = Annotated[str, typer.Option("--tenant", metavar="NAME", help="Whose sessions.")]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Write one JSON document, for machines.")]
ConfigOption: TypeAlias = Annotated[Path | None, typer.Option(metavar="FILE", help="Settings, as `memci config` prints them.")]
IndexArgument: TypeAlias = Annotated[str, typer.Argument(metavar="INDEX", help="Such as usr-12, or the number alone.")]

STORE = memci.Config().store
TENANT = "default"


@attrs.frozen
class Place:
    """Which session a command is about.

    Attributes:
        store: URL of the store.
        tenant: Whose session.
        session: Its id; ``None`` for the only one.
    """

    store: str = attrs.field(repr=shown_url)
    tenant: str
    session: str | None

    def __str__(self) -> str:
        """Return the store and the tenant, as errors show them."""
        return f"the store {shown_url(self.store)} of tenant {shown(self.tenant)}"

    def sessions(self) -> list[str]:
        """Return the ids of all sessions, sorted.

        Raises:
            CommandError: There is none.
        """
        with memci.Engine(self.store, tenant=self.tenant, read_only=True) as engine:
            found = sorted(engine.sessions())
        if not found:
            refuse(f"there is no session in {self}: name the store with --store or MEMCI_STORE", ExitCode.NOT_FOUND)
        return found

    def engine(self, config: memci.Config | None = None, *, write: bool = False) -> memci.Engine:
        """Return an engine on the store."""
        return memci.Engine(self.store, config, self.tenant, read_only=not write)

    def known(self) -> tuple[str, memci.Config]:
        """Return the id of the session and the settings that are in force in it.

        Raises:
            CommandError: There is no such session, or there are several and none was named.
        """
        session_id = self.session
        if session_id is None:
            session_id, *others = found = self.sessions()
            if others:
                refuse(f"there are {len(found)} sessions in {self}: name one with --session; {_listed(found)}")
        with self.engine() as engine, engine.session(session_id) as session:
            if not session.seq:
                listed = _listed(sorted(engine.sessions()))
                refuse(f"there is no session {shown(session_id)} in {self}: {listed}", ExitCode.NOT_FOUND)
            return session_id, session.config

    @contextmanager
    def opened(self, *, write: bool = False) -> Iterator[memci.Session]:
        """Open an existing session with the settings that are in force in it.

        Without *write* nothing is written: no event, no file, no directory.

        Raises:
            CommandError: As for ``known``.
        """
        session_id, config = self.known()
        with self.engine(config, write=write) as engine, engine.session(session_id) as session:
            yield session


def placed(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options --store, --session and --tenant, which its parameter ``place`` gets."""

    @functools.wraps(command)
    def run(*, store: str, session: str | None, tenant: str, **given: Any) -> None:  # noqa: ANN401 (what the command takes)
        command(place=Place(store, tenant, session), **given)

    hints = get_type_hints(_options, include_extras=True) | get_type_hints(command, include_extras=True)
    own = inspect.signature(command).parameters
    parameters = [parameter for parameter in own.values() if parameter.name not in {"place", "json"}]
    parameters += inspect.signature(_options).parameters.values()
    parameters += [own["json"]] if "json" in own else []
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # typer reads it
        [each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    )
    run.__annotations__ = {each.name: hints[each.name] for each in parameters}
    return run


def _options(
    store: StoreOption = STORE,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Which session; not needed where there is only one.")
    ] = None,
    tenant: TenantOption = TENANT,
) -> None:
    """Hold the options of ``placed``."""


def _listed(sessions: list[str]) -> str:
    if not sessions:
        return "it holds none"
    more = f" and {len(sessions) - _LISTED_SESSIONS} more" if len(sessions) > _LISTED_SESSIONS else ""
    return f"it holds {', '.join(map(repr, sessions[:_LISTED_SESSIONS]))}{more}"
