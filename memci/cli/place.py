"""The session that a command is about, and the options that commands share."""

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import attrs
import typer
from typer import Argument, Option

import memci
from memci.archive.stores.contract import Store
from memci.archive.stores.url import open_store, shown_url
from memci.cli.exit_code import ExitCode, refuse
from memci.cli.output import Answer
from memci.engine.history.state import USER
from memci.engine.settings.encryption import Encryption
from memci.errors import shown

_LISTED_SESSIONS = 10

StoreOption: TypeAlias = Annotated[str, Option(metavar="URL", envvar="MEMCI_STORE", help="Where sessions live.")]
TenantOption: TypeAlias = Annotated[str, Option(metavar="NAME", help="Whose sessions.")]
KeyOption: TypeAlias = Annotated[
    str | None,
    Option("--key", metavar="env:NAME", help="The variable that has the key of encrypted sessions; old ones after commas."),
]
ConfigOption: TypeAlias = Annotated[Path | None, Option(metavar="FILE", help="Settings, as `memci config` prints them.")]

STORE = memci.Config().store
TENANT = "default"


def page_argument(text: str) -> str:
    """Return a page index as the library takes it: a bare number, or two as in ``12..40``, is one of the common segment."""
    bare = re.fullmatch(r"0*([0-9]+(?:\.\.[0-9]+)?)", text)
    return f"{USER}-{bare[1]}" if bare else text


def encryption(key: str | None) -> Encryption:
    """Return the settings that ``--key`` stands for."""
    named, *old = [None] if key is None else [each.strip() for each in key.split(",")]
    return memci.Config.from_mapping({"encryption": {"key": named, "old_keys": old}}).encryption


IndexArgument: TypeAlias = Annotated[
    str, Argument(metavar="INDEX", help="Such as usr-12, or the number alone.", parser=page_argument)
]


@attrs.frozen
class Place:
    """Which session a command is about; the fields are options of each command with a parameter ``place``."""

    store: StoreOption = attrs.field(default=STORE, repr=shown_url)
    session: Annotated[str | None, Option(metavar="ID", help="Which session; not needed where there is only one.")] = None
    tenant: TenantOption = TENANT
    key: KeyOption = None

    def __str__(self) -> str:
        """Return the store and the tenant, as errors show them."""
        return f"the store {shown_url(self.store)} of tenant {shown(self.tenant)}"

    def sessions(self) -> list[str]:
        """Return the ids of all sessions, sorted; raises CommandError if there is none."""
        with self.engine() as engine:
            found = sorted(engine.sessions())
        if not found:
            refuse(f"there is no session in {self}: name the store with --store or MEMCI_STORE", ExitCode.NOT_FOUND)
        return found

    def engine(self, config: memci.Config | None = None, *, write: bool = False) -> memci.Engine:
        """Return an engine on the store."""
        settings = memci.Config() if config is None else config
        return memci.Engine(self.store, attrs.evolve(settings, encryption=encryption(self.key)), self.tenant, read_only=not write)

    def stored(self) -> Store:
        """Return the store."""
        return encryption(self.key).around(open_store(self.store))

    def known(self) -> tuple[str, memci.Config]:
        """Return the session's id and settings; raises CommandError if it is not there, or is one of several and not named."""
        session_id = self.session
        if session_id is None:
            session_id, *others = found = self.sessions()
            if others:
                refuse(f"there are {len(found)} sessions in {self}: name one with --session; {_listed(found)}")
        with self.engine() as engine, engine.session(session_id) as session:
            if not session.seq:
                listed = _listed(sorted(engine.sessions()))
                refuse(f"there is no session {shown(session_id)} in {self}: {listed}", ExitCode.NOT_FOUND)
            return session_id, attrs.evolve(session.config, encryption=encryption(self.key))

    @contextmanager
    def opened(self, *, write: bool = False) -> Iterator[memci.Session]:
        """Open a session that ``known`` finds; without *write* nothing is written: no event, no file, no directory."""
        session_id, config = self.known()
        with self.engine(config, write=write) as engine, engine.session(session_id) as session:
            yield session


def command(function: Callable[..., Answer | None]) -> Callable[..., None]:
    """Return a function as a command: ``place`` stands for the options of ``Place``; its answer is written, as --json says."""
    own = inspect.signature(function)
    places, answers = "place" in own.parameters, own.return_annotation is Answer

    @functools.wraps(function)
    def run(*, json: bool = False, **given: Any) -> None:  # noqa: ANN401 (what the command takes)
        if places:
            given["place"] = Place(**{name: given.pop(name) for name in attrs.fields_dict(Place)})
        answer = function(**given)
        if answer is not None:
            answer.write(json=json)
            if answer.error is not None:
                raise answer.error
            if not answer.ok:
                raise typer.Exit(ExitCode.FAILED)

    options = {name: option for name, option in own.parameters.items() if name != "place"}
    options |= inspect.signature(Place).parameters if places else {}
    options |= inspect.signature(_json).parameters if answers else {}
    keywords = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options.values()]
    run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]  # typer reads it
    return run


def _json(*, json: Annotated[bool, Option("--json", help="Write one JSON document, for machines.")] = False) -> None:
    """Hold the option of commands that give an answer."""


def _listed(sessions: list[str]) -> str:
    if not sessions:
        return "it holds none"
    more = f" and {len(sessions) - _LISTED_SESSIONS} more" if len(sessions) > _LISTED_SESSIONS else ""
    return f"it holds {', '.join(map(repr, sessions[:_LISTED_SESSIONS]))}{more}"
