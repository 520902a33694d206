"""The options that commands share, and opening the session that they name."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, TypeAlias

import attrs
import typer

import memci
from memci.archive.stores.url import shown_url
from memci.cli.exit_code import CommandError, ExitCode
from memci.errors import shown

_LISTED_SESSIONS = 10

StoreOption: TypeAlias = Annotated[str, typer.Option("--store", metavar="URL", envvar="MEMCI_STORE", help="Where sessions live.")]
SessionOption: TypeAlias = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="Which session; not needed where there is only one.")
]
TenantOption: TypeAlias = Annotated[str, typer.Option("--tenant", metavar="NAME", help="Whose sessions.")]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Write one JSON document, for machines.")]

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


@contextmanager
def opened(place: Place, *, write: bool = False) -> Iterator[memci.Session]:
    """Open an existing session with the settings that are in force in it.

    Without *write* nothing is written: no event, no file, no directory.

    Raises:
        CommandError: There is no such session, or there are several and none was named.
    """
    with memci.Engine(place.store, tenant=place.tenant, read_only=True) as engine:
        session_id = _only_session(engine, place) if place.session is None else place.session
        with engine.session(session_id) as session:
            if not session.seq:
                message = f"there is no session {shown(session_id)} in {_where(place)}: {_listed(find_sessions(engine))}"
                raise CommandError(message, ExitCode.NOT_FOUND)
            config = session.config
    with (
        memci.Engine(place.store, config, place.tenant, read_only=not write) as engine,
        engine.session(session_id) as session,
    ):
        yield session


def find_sessions(engine: memci.Engine) -> list[str]:
    """Return the ids of all sessions, sorted."""
    return sorted(engine.sessions())


def get_sessions(engine: memci.Engine, store: str, tenant: str) -> list[str]:
    """Return the ids of all sessions, sorted.

    Raises:
        CommandError: There is none.
    """
    found = find_sessions(engine)
    if not found:
        message = f"there is no session in {_where(Place(store, tenant, None))}: name the store with --store or MEMCI_STORE"
        raise CommandError(message, ExitCode.NOT_FOUND)
    return found


def _only_session(engine: memci.Engine, place: Place) -> str:
    found = get_sessions(engine, place.store, place.tenant)
    if len(found) > 1:
        message = f"there are {len(found)} sessions in {_where(place)}: name one with --session; {_listed(found)}"
        raise CommandError(message, ExitCode.USAGE)
    return found[0]


def _where(place: Place) -> str:
    return f"the store {shown_url(place.store)} of tenant {shown(place.tenant)}"


def _listed(sessions: list[str]) -> str:
    if not sessions:
        return "it holds none"
    more = f" and {len(sessions) - _LISTED_SESSIONS} more" if len(sessions) > _LISTED_SESSIONS else ""
    return f"it holds {', '.join(map(repr, sessions[:_LISTED_SESSIONS]))}{more}"
