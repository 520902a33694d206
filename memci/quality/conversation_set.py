"""Sets of conversations, read from files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import attrs

from memci.errors import ConfigError, InvalidMessageError, shown
from memci.messages import codec, item_parts
from memci.messages.formats import format as formats
from memci.messages.formats import openai
from memci.messages.tokens.counter import TokenCounter
from memci.quality.conversation import Conversation, Question, joined, with_system
from memci.quality.timestamp import iso_time

_QUESTION = '{"question": "…", "answer": "…", "evidence": [numbers of messages]}'

_MARKS = {
    "responses": frozenset({*item_parts.CALLS, *item_parts.ANSWERS, "reasoning", "input_text", "output_text"}),
    "anthropic": frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "image", "document"}),
}
"""The types of items, parts and blocks by which messages of another format are known."""


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
        ConfigError: It cannot be read, or is none, or a message or a question in it is not good, or its messages are in another
            format; ``path`` is the file, and the text names the place in it, counted from 0.
    """
    try:
        value = codec.decode_foreign(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except (OSError, ValueError) as error:
        message = f"cannot be read as JSON: {error}"
        raise ConfigError(message, path=str(path)) from error
    try:
        return _conversation(value, path.stem)
    except (TypeError, ValueError) as error:
        message = f"it is no conversation that can be measured: {error}"
        raise ConfigError(message, path=str(path)) from error


def _conversation(value: object, name: str) -> Conversation:
    if not isinstance(value, dict) or not _is_list(value.get("messages"), dict):
        reason = (
            'give {"messages": […], "timestamps": […], "questions": […]}, of which only the messages, each an object, are needed'
        )
        raise ValueError(reason)
    messages: tuple[dict[str, Any], ...] = tuple(value["messages"])
    if not messages:
        reason = "there is no message in it"
        raise ValueError(reason)
    _check_format(value.get("format", "openai"), messages)
    messages = tuple(_as_sent(messages))
    lang = value.get("lang", "en")
    if not isinstance(lang, str):
        reason = f"lang: {shown(lang)} is no language: give its code as text, such as 'en', or leave it out"
        raise TypeError(reason)
    return Conversation(
        id=str(value.get("id", name)),
        lang=lang,
        messages=messages,
        times=_times(value.get("timestamps"), len(messages)),
        questions=_questions(value.get("questions"), len(messages)),
    )


def _times(values: object, messages: int) -> tuple[str | None, ...]:
    if values is None or values == []:
        return (None,) * messages
    if not isinstance(values, list):
        reason = f"timestamps: give a list with one for each message, or leave it out, not {shown(values)}"
        raise TypeError(reason)
    if len(values) != messages:
        reason = f"{len(values)} timestamps for {messages} messages: give one for each message, null where it is not known"
        raise ValueError(reason)
    return tuple(map(iso_time, values))


def _check_format(declared: object, messages: Sequence[dict[str, Any]]) -> None:
    """Raise where the messages are said to be of another format, or show it."""
    name = declared
    if declared == "openai":
        kinds = {kind for message in messages for kind in _kinds(message)}
        name = next((other for other, marks in _MARKS.items() if kinds & marks), declared)
    if name == "openai":
        return
    reason = f"only messages in OpenAI's chat format are measured, and these are in the format {shown(name)}"
    if name in formats.NAMES:
        reason += f": memci.convert(messages, from_={shown(name)}, to='openai').messages are the same in OpenAI's chat format"
    raise ValueError(reason)


def _kinds(message: dict[str, Any]) -> Iterator[str]:
    """Yield the types of an item, and of the parts of a content."""
    content = message.get("content")
    for part in (message, *(content if isinstance(content, list) else ())):
        if isinstance(part, dict) and isinstance(part.get("type"), str):
            yield part["type"]


def _as_sent(messages: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the messages as windows show them, so that they are found there.

    Raises:
        ValueError: No engine could take one in: it is of a wrong shape, or the result of no call that waits for one.
    """
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
                reason = f"messages[{number}]: no call with the id {shown(identity)} waits for a result"
                raise ValueError(reason)
            waiting.remove(identity)
        yield openai.sent(message).value()


def _questions(values: object, messages: int) -> tuple[Question, ...]:
    if values is None:
        return ()
    if not _is_list(values, dict):
        reason = f"questions: give a list of objects, each {_QUESTION}, or leave it out, not {shown(values)}"
        raise ValueError(reason)
    return tuple(_question(f"questions[{number}]", value, messages) for number, value in enumerate(values))


def _question(place: str, value: dict[str, Any], messages: int) -> Question:
    missing = [key for key in ("question", "answer", "evidence") if key not in value]
    if missing:
        reason = f"{place} has no {' and no '.join(missing)}: give {_QUESTION}"
        raise ValueError(reason)
    asked, answer, category, evidence = value["question"], value["answer"], value.get("category"), value["evidence"]
    if not isinstance(asked, str) or not asked.strip():
        reason = f"{place}.question: {shown(asked)} asks nothing: give it as text"
        raise ValueError(reason)
    if not _is_word(answer):
        reason = f'{place}.answer: {shown(answer)} is neither text nor a number: give "" where there is no answer to look for'
        raise ValueError(reason)
    if category is not None and not _is_word(category):
        reason = f"{place}.category: {shown(category)} is neither text nor a number: give its name, or leave it out"
        raise ValueError(reason)
    if not isinstance(evidence, list) or not all(type(number) is int and 0 <= number < messages for number in evidence):
        reason = (
            f"{place}.evidence: {shown(evidence)} is no list of numbers of messages: they are whole, from 0 to {messages - 1}"
        )
        raise ValueError(reason)
    kind = "" if category is None else str(category)
    return Question(question=asked, answer=str(answer), category=kind, evidence=tuple(evidence))


def _is_word(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_list(value: object, kind: type) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)
