"""Drafts: a session on which everything can be tried, as nothing of it is written."""

import attrs

from memci.archive.stores.blobs import BlobSession
from memci.archive.stores.draft import DraftSession
from memci.engine.core.core import Core


def draft_of(core: Core) -> Core:
    """Return a core of its own that begins as one is stored, and that nobody hears of. O(events since a snapshot)."""
    stored = core.reopen()
    unlimited = attrs.evolve(core.given.limits, tenant_sessions=None, tenant_bytes=None)
    draft = Core(
        key=core.key,
        given=attrs.evolve(core.given, limits=unlimited),
        store=BlobSession(DraftSession(stored), core.session_id),
        reopen=core.reopen,
        counter=core.counter,
        planner=core.planner,
        pool=None,
        tell=core.tell,
        offer=lambda _core: None,
        forget_erased=lambda _core, _seq: None,
        clock=core.clock,
        quotas=core.quotas,
    )
    try:
        draft.load()
    except BaseException:
        stored.close()
        raise
    return draft
