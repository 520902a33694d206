"""Drafts: a session on which everything can be tried, as nothing of it is written."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import attrs

from memci.archive.stores.blobs import BlobSession
from memci.archive.stores.draft import DraftSession
from memci.archive.stores.names import SessionKey
from memci.engine.core.core import Core

_Session = TypeVar("_Session")
_Nothing = Callable[..., None]


def open_draft(
    make: Callable[[Core, _Nothing, _Nothing, Callable[[SessionKey], _Session]], _Session],
    core: Core,
    sibling: Callable[[SessionKey], AbstractContextManager[Any]],
) -> _Session:
    """Return a session on a draft of a core; the *sibling* sessions that it comes to are drafts, which are closed with it."""
    drafts = {core.key: _draft_of(core)}

    def opened(key: SessionKey) -> _Session:
        if key not in drafts:
            with sibling(key) as handle:
                drafts[key] = _draft_of(handle._core)  # noqa: SLF001 (as a session is made)
        return make(drafts[key], _nothing, _nothing, opened)

    def close(*_handle: object) -> None:
        for each in drafts.values():
            each.store.close()

    return make(drafts[core.key], close, _nothing, opened)


def _nothing(*_given: object) -> None:
    """Tell nobody."""


def _draft_of(core: Core) -> Core:
    """Return a core of its own that begins as one is stored, and that nobody hears of. O(events since a snapshot)."""
    unlimited = attrs.evolve(core.given.limits, tenant_sessions=None, tenant_bytes=None)
    stored = DraftSession(core.reopen(read_only=True))
    draft = Core(
        key=core.key,
        given=attrs.evolve(core.given, limits=unlimited),
        store=BlobSession(stored, core.session_id),
        reopen=lambda **_read_only: BlobSession(DraftSession(core.reopen(read_only=True), stored), core.session_id),
        counter=core.counter,
        planner=core.planner,
        pool=None,
        tell=core.tell,
        offer=_nothing,
        forget_erased=_nothing,
        clock=core.clock,
        quotas=core.quotas,
    )
    try:
        draft.load()
    except BaseException:
        stored.close()
        raise
    return draft
