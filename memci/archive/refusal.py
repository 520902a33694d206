"""The errors that all stores raise alike."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from memci.archive.disk import is_out_of_descriptors
from memci.errors import ConflictError, LockedError, PermissionDeniedError, SessionClosedError, UnavailableError

MORE_DESCRIPTORS = "close sessions, or raise the limit of open files (ulimit -n), then do it again"


def conflict(expected: int, head: int) -> ConflictError:
    """Make the error of a writer that is not where the journal is."""
    text = f"the journal is at {head} and not at {expected}: nothing was written; refresh() and do it again"
    return ConflictError(text, expected=expected, head=head)


def deleted(session: str) -> UnavailableError:
    """Make the error of a writer whose session is gone."""
    return UnavailableError(f"session {session!r} was deleted or replaced while it was open: close it and open it again")


def closed(session: str) -> SessionClosedError:
    """Make the error of one who uses a closed session."""
    return SessionClosedError(f"session {session!r} was closed: open it again")


def read_only(session: str) -> PermissionDeniedError:
    """Make the error of one who writes what was opened to be read."""
    return PermissionDeniedError(f"session {session!r} was opened read-only: open it without read_only to write")


def locked(reason: str, session: str) -> LockedError:
    """Make the error of one who waited too long for others."""
    return LockedError(f"{reason}: do it again, or end the process that holds the lock if it hangs", session=session)


def unavailable(error: OSError, place: str, session: str = "") -> UnavailableError:
    """Make the error of a call to the operating system that failed on *place*, a path relative to the store's root."""
    if isinstance(error, BlockingIOError):
        return locked(f"{place}: {error.strerror}", session)
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            advice = "make room, then do it again"
        case errno.EMFILE | errno.ENFILE:
            advice = MORE_DESCRIPTORS
        case errno.EACCES | errno.EPERM | errno.EROFS:
            advice = "change the rights, or open read-only"
        case errno.ELOOP:
            advice = "a link within a store is not followed: put what it leads to in its place"
        case errno.EISDIR | errno.ENOTDIR | errno.EINVAL | errno.ENXIO:
            advice = "it is not what memci put there: take it away"
        case _:
            advice = "check the disk, then open the session again"
    return UnavailableError(f"{place}: {error.strerror or error}: {advice}")


@contextmanager
def loading(module: str) -> Iterator[None]:
    """Turn the failure to load a module while no further file can be opened into an ``UnavailableError``."""
    try:
        yield
    except (ImportError, OSError) as error:
        if not is_out_of_descriptors():
            raise
        message = f"the module {module} cannot be loaded, as no further file can be opened: {MORE_DESCRIPTORS}"
        raise UnavailableError(message) from error
