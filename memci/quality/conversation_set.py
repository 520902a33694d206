"""Sets of conversations, read from files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from memci.errors import ConfigError, InvalidMessageError
from memci.messages import codec
from memci.messages.formats import openai
from memci.messages.tokens.counter import TokenCounter
from memci.quality.conversation import Conversation, Question, iso_time, joined, with_system


@attrs.frozen(kw_only=True)
class ConversationSet:
    """Conversations that are measured together.

    Attributes:
        name: Of the file or directory.
        conversations: In the order of their files' names.
        files: How many files they were read from.
    """

    name: str
    conversations: tuple[Conversation, ...]
    files: int


def read_set(path: Path, counter: TokenCounter, join: int | None = None) -> ConversationSet:
    """Read a file, or all ``.json`` files of a directory, as one set; each conversation gets 1,000 tokens of system messages.

    The conversations of a directory in which nobody asks a question are short ones of agents and assistants, as they are found;
    they are joined, so that there is something to leave out of a window.

    Args:
        path: A file or a directory.
        counter: Counts the tokens of system messages.
        join: How many conversations are joined to one, where there are no questions; all by default.

    Raises:
        ConfigError: A file cannot be read, or is no conversation.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        message = f"there is no .json file in {path}"
        raise ConfigError(message)
    conversations = [read_conversation(file) for file in files]
    if path.is_dir() and not any(conversation.questions for conversation in conversations):
        step = join or len(conversations)
        conversations = [joined(conversations[start : start + step]) for start in range(0, len(conversations), step)]
    prepared = tuple(with_system(conversation, counter) for conversation in conversations)
    return ConversationSet(name=path.resolve().name if path.is_dir() else path.stem, conversations=prepared, files=len(files))


def read_conversation(path: Path) -> Conversation:
    """Read one conversation: a JSON object with ``messages``, and perhaps ``id``, ``lang``, ``timestamps`` and ``questions``.

    Raises:
        ConfigError: It cannot be read, or is none, or a message in it is not good; ``path`` is the file.
    """
    try:
        value = codec.decode_foreign(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except (OSError, ValueError) as error:
        message = f"cannot be read as JSON: {error}"
        raise ConfigError(message, path=str(path)) from error
    try:
        return _conversation(value, path.stem)
    except (KeyError, TypeError, ValueError) as error:
        shape = '{"messages": […], "timestamps": […], "questions": […]}'
        message = f"it is no conversation ({error}): give {shape}, with a timestamp for each message or none"
        raise ConfigError(message, path=str(path)) from error


def _conversation(value: Any, name: str) -> Conversation:  # noqa: ANN401 (a JSON value)
    messages = tuple(dict(message) for message in value["messages"])
    if not messages or value.get("format", "openai") != "openai":
        reason = "there is no message in it" if not messages else "only messages in OpenAI's chat format are measured"
        raise ValueError(reason)
    _check(messages)
    times = value.get("timestamps") or [None] * len(messages)
    if len(times) != len(messages):
        reason = f"{len(times)} timestamps for {len(messages)} messages"
        raise ValueError(reason)
    return Conversation(
        id=str(value.get("id", name)),
        lang=str(value.get("lang", "en")),
        messages=messages,
        times=tuple(None if at is None else iso_time(str(at)) for at in times),
        questions=tuple(_questions(value.get("questions") or (), len(messages))),
    )


def _check(messages: Sequence[dict[str, Any]]) -> None:
    """Raise for a message that no engine could take in: of a wrong shape, or the result of no call that waits for one."""
    waiting: list[str] = []
    for number, value in enumerate(messages):
        try:
            message = openai.read(value)
        except InvalidMessageError as error:
            reason = f"messages[{number}]: {error}"
            raise ValueError(reason) from error
        waiting += [call.id for call in message.calls]
        for identity in message.answers:
            if identity not in waiting:
                reason = f"messages[{number}]: no call with the id {identity!r} waits for a result"
                raise ValueError(reason)
            waiting.remove(identity)


def _questions(values: Sequence[Any], messages: int) -> Iterator[Question]:
    for value in values:
        evidence = tuple(int(place) for place in value["evidence"])
        if any(not 0 <= place < messages for place in evidence):
            reason = f"the evidence of {value['question']!r} is no message of it"
            raise ValueError(reason)
        yield Question(
            question=str(value["question"]),
            answer=str(value["answer"]),
            category=str(value.get("category", "")),
            evidence=evidence,
        )
