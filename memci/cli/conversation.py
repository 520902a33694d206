"""Reading conversations from files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from memci.cli.exit_code import CommandError, ExitCode
from memci.messages import codec

_SYSTEM_ROLES = ("system", "developer")


@attrs.frozen
class Said:
    """One message of a conversation.

    Attributes:
        message: As the file holds it.
        at: When it was said, ``None`` where the file does not tell.
        place: File and number of the message, for error texts.
    """

    message: dict[str, Any]
    at: object
    place: str


def read_conversation(paths: Sequence[Path]) -> list[Said]:
    """Return the messages of all files as one conversation; of the system messages only those of the first file.

    A file is a JSON object with ``messages`` and perhaps ``timestamps``, a JSON list of messages, or a message a line.

    Raises:
        CommandError: A file cannot be read as one of these, or there is no message.
    """
    conversation = list(_read(paths[0]))
    for path in paths[1:]:
        conversation += [said for said in _read(path) if said.message.get("role") not in _SYSTEM_ROLES]
    if not conversation:
        message = f"{paths[0]}: there is no message in it"
        raise CommandError(message, ExitCode.USAGE)
    return conversation


def _read(path: Path) -> Iterator[Said]:
    messages, times = _parse(path)
    if len(times) != len(messages):
        message = f"{path}: {len(times)} timestamps for {len(messages)} messages: give one for each, or none"
        raise CommandError(message, ExitCode.USAGE)
    for number, (value, at) in enumerate(zip(messages, times, strict=True), start=1):
        if not isinstance(value, dict):
            message = f"{path}: message {number} is no JSON object, but a {type(value).__name__}"
            raise CommandError(message, ExitCode.USAGE)
        yield Said(value, at, f"{path}: message {number}")


def _parse(path: Path) -> tuple[list[Any], list[Any]]:
    """Return messages and times."""
    try:
        data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror}"
        raise CommandError(message, ExitCode.USAGE) from error
    try:
        value = codec.decode_foreign(data)
    except ValueError:
        value = list(_parse_lines(path, data))
    if isinstance(value, dict) and "role" in value and "messages" not in value:
        value = [value]  # a file of one line
    messages = value.get("messages") if isinstance(value, dict) else value
    times = value.get("timestamps") if isinstance(value, dict) else None
    if not isinstance(messages, list) or not isinstance(times, list | None):
        message = f'{path}: it is no conversation: give {{"messages": […]}}, a list of messages, or a message a line'
        raise CommandError(message, ExitCode.USAGE)
    return messages, [None] * len(messages) if times is None else times


def _parse_lines(path: Path, data: bytes) -> Iterator[Any]:
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            try:
                yield codec.decode_foreign(line)
            except ValueError as error:
                message = f"{path}, line {number}: not JSON: {error}"
                raise CommandError(message, ExitCode.USAGE) from error
