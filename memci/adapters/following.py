"""What adapters share: a session follows the list that a framework keeps, gives back its own objects, and answers its tools."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from memci.engine.core.known_messages import sent_digest
from memci.engine.session import Session
from memci.engine.tools.recall_tools import answer, read_arguments
from memci.errors import ArgumentError, ConfigError
from memci.messages.codec import digest
from memci.messages.formats.format import SYSTEM_ROLES, get

_SHARED = 16  # of the newest messages, one of which a list has that goes on from the session
_Own = TypeVar("_Own")

Message = dict[str, Any]


def check_format(session: Session, wanted: str) -> None:
    """Raise ``ConfigError`` where a session's messages are in another wire format."""
    if session.config.format != wanted:
        message = f"the session's messages are in the format {session.config.format}: this adapter needs format: {wanted}"
        raise ConfigError(message, path="format")


def is_system(message: Message) -> bool:
    """Return whether a message is of the system part."""
    return message.get("role") in SYSTEM_ROLES


class Followed:
    """A session that follows the list of messages of one run: the *whole* conversation, or what the run adds to it."""

    def __init__(self, session: Session, *, whole: bool) -> None:
        self._session = session
        self._whole = whole
        self._taken: list[tuple[bytes, str]] = []  # of a list that goes on: the digest of each, and its address
        self._longest = 0

    def take(self, system: Sequence[Message], messages: Sequence[Message]) -> None:
        """Bring the session to what the list says: what is new comes in, and what is another message goes back first.

        A list that got shorter is not taken: a run that broke off may tell less than was known. O(messages).
        """
        if len(messages) < self._longest:
            return
        self._longest = len(messages)
        if self._whole:
            taken_over(self._session, system, messages)
            return
        if system:
            self._session.set_system(system)
        digests = [*map(digest, messages)]
        known = next((place for place, (each, _) in enumerate(self._taken) if each != digests[place]), len(self._taken))
        if known < len(self._taken):
            self._session.rewind(self._taken[known][1])
        entries = self._session.extend(messages[known:])
        self._taken[known:] = [(each, entry.address) for each, entry in zip(digests[known:], entries, strict=True)]


def taken_over(session: Session, system: Sequence[Message], messages: Sequence[Message]) -> None:
    """Bring a session to what a whole list says; of one whose beginning was cut off, what is new comes in. O(messages)."""
    try:
        session.sync([*system, *messages])
    except ArgumentError:
        if (new := newer(session, messages)) is None:
            raise
        if system:
            session.set_system(system)
        session.extend(new)


def newer(session: Session, messages: Sequence[Message]) -> Sequence[Message] | None:
    """Return what a list has that the session does not: all after the newest message that both have; ``None`` for no such one."""
    wire = get(session.config.format)
    given = [sent_digest(wire, message) for message in messages]
    known = [sent_digest(wire, dict(said.message)) for said in session.transcript(_SHARED)]
    for each in known:
        if each in given:
            return messages[len(given) - given[::-1].index(each) :]
    return None if known else messages


def matched(window: Sequence[Message], given: Iterable[tuple[Message, _Own]]) -> list[tuple[Message, _Own | None]]:
    """Return each message of a window with the object that it was made of; ``None`` for what memci wrote, or shows in part.

    *given* are messages of the conversation, each with its object. Of those that say the same, the newest are meant, as a window
    shows the end of a conversation word for word.
    """
    objects = defaultdict[bytes, list[_Own]](list)
    for message, own in given:
        objects[digest(message)].append(own)
    found = [(message, objects[key].pop() if objects.get(key := digest(message)) else None) for message in reversed(window)]
    return found[::-1]


def calibrate(session: Session, usage: object) -> None:
    """Calibrate a session's counter by a provider's usage; one that cannot be the window's is no reason to lose the answer."""
    with suppress(ConfigError):
        session.report_usage(usage)


def offered(session: Session, schemas: Callable[[], list[Message]]) -> list[Message]:
    """Return the schemas of a session's tools; none where its settings say that models recall nothing, or in ATTP."""
    return schemas() if session.config.recall.protocol == "native" else []


def answered(session: Session, name: str, arguments: object) -> tuple[str, list[Message]]:
    """Carry out a call of one of a session's tools; return what the model reads, and the pictures of a page, as content parts.

    *arguments* are a dict, or JSON as the model wrote it.
    """
    text, failed = answer(session.toolbox.call, name, read_arguments(arguments))
    return text, [] if failed else session.toolbox.pictures(name, text)
