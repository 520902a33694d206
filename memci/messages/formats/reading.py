"""What the wire formats share when they take a message in."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeGuard

from memci.errors import InvalidMessageError, shown
from memci.messages import codec
from memci.messages.message import Message
from memci.messages.parts import Part, PartKind, parts

ATTP_ANSWER = "[tool_result]\nstatus = "
"""How a user message begins that is an answer of ATTP, which comes from a tool and not from the user."""

_SPEAKERS = ("user", "assistant", "system", "developer")

ERASED = "[erased]"
"""What stands for content that was erased."""


def refuse(text: str, path: str = "") -> NoReturn:
    """Raise the error of a message that the provider would refuse; *path* is the place in it."""
    raise InvalidMessageError(text, path=path)


def as_list(messages: object) -> list[object]:
    """Return several messages as a list; ``InvalidMessageError`` where they are no iterable of messages."""
    if isinstance(messages, Iterable) and not isinstance(messages, str | bytes | bytearray | Mapping):
        return list(messages)
    refuse(f"give a list of messages, not a {type(messages).__name__}")


def read_all(read: Callable[[object], Message], messages: object) -> Iterator[Message | InvalidMessageError]:
    """Yield each of several messages as *read* takes it in, or the error with which it is refused; that names its place."""
    for number, value in enumerate(as_list(messages)):
        try:
            yield read(value)
        except InvalidMessageError as error:
            place = f"messages[{number}]" + (f".{error.path}" if error.path else "")
            yield InvalidMessageError(str(error).removeprefix(f"{error.path}: "), path=place)


def is_plain(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value is a dict of a role and a text and nothing else, as nearly all messages are."""
    two = type(value) is dict and len(value) == 2  # noqa: PLR2004 (role and content)
    return two and type(value.get("content")) is str and value.get("role") in _SPEAKERS  # type: ignore[attr-defined]


def copied(value: object) -> dict[str, Any]:
    """Return a deep copy of one message, which may be an object of a provider's SDK."""
    value = codec.dumped(value)
    if not isinstance(value, Mapping):
        refuse(f"a message is a dict, not a {type(value).__name__} (objects of a provider's SDK are taken as well)")
    copy: dict[str, Any] = codec.checked_copy(dict(value))  # type: ignore[assignment]  # a dict stays a dict
    return copy


def encoded(value: dict[str, Any]) -> bytes:
    """Return a message as JSON; ``InvalidMessageError`` where it cannot be written."""
    try:
        return codec.encode(value)
    except ValueError as error:
        message = f"cannot be written as JSON: {error}"
        raise InvalidMessageError(message) from error


def checked_role(value: Mapping[str, Any], roles: Collection[str]) -> str:
    """Return the role of a message, which has to be one of these."""
    role = value.get("role")
    if not isinstance(role, str) or role not in roles:
        given = "is missing" if role is None else f"is {shown(role)}"
        refuse(f"the role {given}: use one of {', '.join(roles)}", "role")
    return role


def check_parts(content: object, path: str = "content") -> None:
    """Refuse what is no text and no list of typed parts; a part of type ``text`` holds its text."""
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        refuse(f"content is text or a list of parts, not {type(content).__name__}", path)
    for number, part in enumerate(content):
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            refuse("a content part is a dict with a type, such as {'type': 'text', 'text': …}", f"{path}[{number}]")
        if part["type"] in ("text", "input_text", "output_text") and not isinstance(part.get("text"), str):
            refuse(f"a part of type {part['type']} has its text under 'text'", f"{path}[{number}].text")


def check_distinct(content: object) -> None:
    """Refuse a content in which two calls, or two results, have one id."""
    for kind, key in (("tool_use", "id"), ("tool_result", "tool_use_id")):
        seen = set()
        for number, part in enumerate(content if isinstance(content, list) else ()):
            if part["type"] != kind:
                continue
            if part[key] in seen:
                refuse(
                    f"the id {shown(part[key])} stands twice in one message: give each {kind} its own", f"content[{number}].{key}"
                )
            seen.add(part[key])


def is_spoken(found: Iterable[Part]) -> bool:
    """Return whether the parts of a message of role ``user`` are more than what tools answered, ATTP's answers included."""
    found = list(found)
    if found and found[0].kind is PartKind.TEXT and found[0].text.startswith(ATTP_ANSWER):
        return False
    return not found or any(part.kind is not PartKind.RESULT for part in found)


def begins_as_answer(message: Message) -> bool:
    """Return whether a message of role ``user`` begins as an answer of ATTP does. O(its size) where the user does not speak."""
    if message.role != "user" or message.from_user:
        return False
    first = next(parts(message.value()), None)
    return first is not None and first.kind is PartKind.TEXT and first.text.startswith(ATTP_ANSWER)


def block_content(kind: str, text: str, more: Sequence[str | dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return the content of a block: a text alone as it is; with more texts and parts after it, as a list of parts.

    *kind* is the type of a part that is a text.
    """
    if not more:
        return text
    return [{"type": kind, "text": part} if isinstance(part, str) else part for part in (text, *more)]


def facts(value: dict[str, Any], *, partial: bool = False, sent: Callable[[dict[str, Any]], dict[str, Any]]) -> Message:
    """Make a ``Message`` of a dict with a role and a content that is known to be good, such as one read back from a store.

    *sent* gives what is sent of it.
    """
    plain, raw = is_plain(value), encoded(value)
    role: str = value["role"]
    if plain:
        return Message(raw=raw, role=role, from_user=role == "user" and not value["content"].startswith(ATTP_ANSWER))
    literal = sent(value) == value
    if role == "user" and isinstance(value["content"], str):
        return Message(raw=raw, role=role, from_user=not value["content"].startswith(ATTP_ANSWER), literal=literal)
    found = list(parts(value))
    return Message(
        raw=raw,
        role=role,
        calls=tuple(part.call for part in found if part.call is not None),
        answers=tuple(part.answers for part in found if part.answers is not None),
        from_user=role == "user" and is_spoken(found),
        partial=partial,
        literal=literal,
    )


def no_opening(_first: Message) -> None:
    """Return ``None``: a conversation may begin with any message."""
