"""Forks: a new session that begins with what another one was at some event, and is independent of it from then on."""

from collections.abc import Iterable
from contextlib import closing

from memci.archive.stores.blobs import with_blobs
from memci.archive.stores.contract import Store
from memci.engine.core.core import Core
from memci.engine.history.events import ForkMade
from memci.engine.reading import pages
from memci.engine.upkeep.copying import Route, former_ids, take_over
from memci.errors import ConfigError, ConflictError, InvalidIdError, shown


def fork(core: Core, store: Store, new_id: str, at: object) -> list[tuple[str, int]]:
    """Make a fork of a session, or go on with one that was interrupted; return which page files it may lack.

    The session notes first that the fork is made, and can be used meanwhile. O(its history up to *at*), in bounded memory.

    Raises:
        InvalidIdError: The session has no events.
        ConfigError: There is no such event, or the new id is one that the session has or had.
        ConflictError: There is a session of the new id.
    """
    with (
        closing(with_blobs(store.open(core.tenant, core.session_id, read_only=True), core.session_id)) as source,
        closing(with_blobs(store.open(core.tenant, new_id), new_id)) as target,
    ):
        with core.lock:
            core.refresh()
            seq = _checked_place(core, at)
        begun = target.journal.head()
        if new_id in former_ids(source.journal, seq):
            message = f"{shown(new_id)} is an id that the session has or had: take another one"
            raise ConfigError(message, path="new_id")
        if not begun:
            with core.lock:
                made = ForkMade(session=new_id, fork_at=seq, at=core.now())
                core.run(lambda core: core.commit([made]), "retry")
        elif new_id in former_ids(target.journal):
            message = f"there is a session {shown(new_id)} already: take another id, or delete it first"
            raise ConflictError(message, expected=0, head=begun)
        copied = take_over(Route(source=source, target=target, session=core.session_id, new_session=new_id), seq, core.now())
        return list(copied.missing)


def mend(core: Core, missing: Iterable[tuple[str, int]]) -> None:
    """Bring a fork that was just made up to date, with the page files that it lacks made from its journal."""
    with core.lock:
        core.refresh()
        for index in dict.fromkeys(index for index, _ in missing):
            pages.mend_file(core, index)


def _checked_place(core: Core, at: object) -> int:
    head = core.state.seq
    if not head:
        message = f"session {shown(core.session_id)} has no events: there is nothing to fork"
        raise InvalidIdError(message, value=core.session_id)
    if at is None:
        return head
    if type(at) is not int or not 1 <= at <= head:
        message = f"there is no event {shown(at)}: the session is at {head}"
        raise ConfigError(message, path="at")
    return at
