"""A conversation from elsewhere, and taking it into a session of its own."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import attrs

from memci.adapters.following import check_format
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import ConflictError, shown
from memci.messages.codec import digest
from memci.messages.validation import Problem

_MOST_TITLE = 500  # characters that are kept of a title


@attrs.frozen(kw_only=True)
class Imported:
    """A conversation as a source has it, in the wire format that was asked for.

    ``times`` has one for each message, in ISO 8601, ``None`` where the source does not tell. ``lost`` names what did not come
    through, each with its place in the source, such as ``line 12`` or ``conversations[3]``; it is empty where nothing was lost.
    """

    session_id: str  # as the source calls it
    title: str = ""
    format: str
    messages: tuple[dict[str, Any], ...]
    times: tuple[str | None, ...]
    lost: tuple[Problem, ...] = ()


def import_into(engine: Engine, imported: Imported, *, tenant: str | None = None) -> int:
    """Take a conversation into the session of its id, in one commit, and return how many messages were new. O(messages).

    Either all of them are stored, or none. Repeated, it adds nothing; where the source went on since, it adds what came. A
    message without a time has that of the one before it, or after it where none is before; where no time is known, it is now.
    The title becomes the ``title`` of the session's metadata, unless it has one. Without messages, no session is made.

    Raises:
        ConflictError: A session of this id holds another conversation; nothing was written.
        ConfigError: The session is in another wire format.
        InvalidMessageError: A message is too large for ``limits.message_bytes``; nothing was written.
    """
    if not imported.messages:
        return 0
    with engine.session(imported.session_id, tenant=tenant) as session:
        check_format(session, imported.format)
        digests = [*map(digest, imported.messages)]
        known = _known(session)
        if any(each != other for each, other in zip(known, digests, strict=False)):
            message = (
                f"there is a session {shown(session.id)} already, and it does not begin with the messages that are imported: "
                "give another id, or delete it first"
            )
            raise ConflictError(message, expected=0, head=session.seq)
        new = imported.messages[len(known) :]
        if new:
            key = f"import-{len(known)}-{sha256(b''.join(digests)).hexdigest()}"
            session.extend(new, at=_dated(imported.times)[len(known) :], key=key)
        if imported.title and "title" not in session.metadata:
            session.describe(title=imported.title[:_MOST_TITLE])
        return len(new)


def _known(session: Session) -> list[bytes]:
    """Return the digests of a session's messages in the order in which they came. O(history)."""
    if not session.seq:
        return []
    nodes = [node for facts in session.pages() for node in session.page(facts.index).nodes()]
    return [digest(node.message.value()) for node in sorted(nodes, key=lambda node: node.seq)]


def _dated(times: Sequence[str | None]) -> list[str | None]:
    return [*_filled(times, next(filter(None, times), None))]


def _filled(times: Sequence[str | None], last: str | None) -> Iterator[str | None]:
    for at in times:
        last = at or last
        yield last
