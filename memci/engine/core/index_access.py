"""The index of page facts as a session uses it: opened when it is asked for, brought to the state's last event, made anew."""

from typing import TYPE_CHECKING

from memci.engine.core.indexing import advance
from memci.engine.core.monitor import logger
from memci.errors import StoreError, UnavailableError

if TYPE_CHECKING:
    from memci.archive.catalogue.page_index import PageIndex
    from memci.engine.core.core import Core


def current(core: "Core") -> "PageIndex":
    """Return the index, brought to the state's last event. O(events since it was asked for last).

    Raises:
        ConflictError: Another process went on, and this one writes.
        CorruptError: It is damaged.
    """
    if core.indexed is None:
        core.indexed = _checked(core)
    index = core.indexed
    while (known := index.seq) != core.state.seq:
        if known > core.state.seq:  # another process went on
            if not core.read_only:
                raise core.conflict()
            core.refresh()
            continue
        advance(index, core.store.journal, core.state)
    return index


def _checked(core: "Core") -> "PageIndex":
    """Return the stored index, emptied where it belongs to another journal; a private copy where nothing may be written."""
    if core.read_only:
        return private(core)
    index = core.store.index
    if not _belongs(core, index):
        index.reset()
    return index


def private(core: "Core") -> "PageIndex":
    """Return a copy of the stored index in memory, or an empty one where it cannot be read."""
    from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (loads SQL)

    try:
        index = core.store.index
        return index.copy_in_memory() if _belongs(core, index) else PageIndex(None)
    except StoreError:
        return PageIndex(None)


def emptied(core: "Core") -> "PageIndex":
    """Return the stored index, emptied; an empty one in memory where nothing may be written, or that cannot be done."""
    from memci.archive.catalogue.page_index import PageIndex  # noqa: PLC0415 (as above)

    if not core.read_only:
        try:
            core.store.index.reset()
        except UnavailableError as error:
            logger().warning("session %r: the index cannot be emptied: %s", core.session_id, error)
        else:
            return core.store.index
    return PageIndex(None)


def _belongs(core: "Core", index: "PageIndex") -> bool:
    """Return whether an index was made from this journal."""
    known = index.seq
    return not known or (core.state.erased_seq <= known <= core.store.journal.head() and index.mark == core.mark_at(known))
