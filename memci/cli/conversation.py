"""Reading conversations from files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from memci.cli.exit_code import refuse
from memci.engine.commands.appending import utc_text
from memci.errors import InvalidMessageError, shown
from memci.messages import codec
from memci.messages.formats import format as formats
from memci.quality.timestamp import iso_time

_SYSTEM_ROLES = ("system", "developer")


@attrs.frozen
class Said:
    """One message of a conversation.

    Attributes:
        message: As the file holds it.
        at: When it was said, as ISO 8601 in UTC, ``None`` where the file does not tell.
        place: File and number of the message, for error texts.
    """

    message: dict[str, Any]
    at: str | None
    place: str


@attrs.frozen
class Conversation:
    """The messages of one or more files.

    Attributes:
        said: The messages, in their order.
        format: Their wire format, as the first file tells; ``None`` where it does not.
    """

    said: list[Said]
    format: str | None


def read_conversation(paths: Sequence[Path]) -> Conversation:
    """Return the messages of all files as one conversation; of the system messages only those of the first file.

    A file is a JSON object with ``messages`` and perhaps ``timestamps``, ``format`` and ``system`` (Anthropic's system prompt), a
    JSON list of messages, or a message a line.

    Raises:
        CommandError: A file cannot be read as one of these, there is no message, or a timestamp is no time.
    """
    wire, conversation = _read(paths[0])
    for path in paths[1:]:
        conversation += [said for said in _read(path)[1] if said.message.get("role") not in _SYSTEM_ROLES]
    if not conversation:
        refuse(f"{paths[0]}: there is no message in it")
    return Conversation(conversation, wire)


def _read(path: Path) -> tuple[str | None, list[Said]]:
    wire, messages, times = _parse(path)
    if len(times) != len(messages):
        refuse(f"{path}: {len(times)} timestamps for {len(messages)} messages: give one for each, or none")
    return wire, list(_said(path, messages, times))


def _said(path: Path, messages: list[Any], times: list[Any]) -> Iterator[Said]:
    for number, (value, at) in enumerate(zip(messages, times, strict=True), start=1):
        if not isinstance(value, dict):
            refuse(f"{path}: message {number} is no JSON object, but a {type(value).__name__}")
        place = f"{path}: message {number}"
        yield Said(value, None if at is None else _time(at, place), place)


def _time(at: object, place: str) -> str:
    try:
        return utc_text(iso_time(at))
    except InvalidMessageError:
        refuse(
            f"{place}: the timestamp {shown(at)} is not a time: give ISO 8601 text such as 2026-03-01T12:30:00+00:00, "
            "text such as 1:56 pm on 8 May, 2023, or null where it is not known"
        )


def _parse(path: Path) -> tuple[str | None, list[Any], list[Any]]:
    """Return the format, where the file tells it, messages and times."""
    try:
        data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        refuse(f"{path}: cannot be read: {error.strerror}")
    try:
        value = codec.decode_foreign(data)
    except ValueError:
        value = list(_parse_lines(path, data))
    if isinstance(value, dict) and ("role" in value or "type" in value) and "messages" not in value:
        value = [value]  # a file of one line
    document = value if isinstance(value, dict) else {"messages": value}
    messages, times, wire = document.get("messages"), document.get("timestamps"), document.get("format")
    if wire is not None and wire not in formats.NAMES:
        refuse(f"{path}: there is no wire format {shown(wire)}; there is {', '.join(formats.NAMES)}")
    if not isinstance(messages, list) or not isinstance(times, list | None):
        refuse(f'{path}: it is no conversation: give {{"messages": […]}}, a list of messages, or a message a line')
    times = [None] * len(messages) if times is None else times
    if document.get("system"):
        messages, times = [{"role": "system", "content": document["system"]}, *messages], [None, *times]
    return wire, messages, times


def _parse_lines(path: Path, data: bytes) -> Iterator[Any]:
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            try:
                yield codec.decode_foreign(line)
            except ValueError as error:
                refuse(f"{path}, line {number}: not JSON: {error}")
