"""What the wire formats share when they take a message in."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from memci.errors import InvalidMessageError, shown
from memci.messages import codec
from memci.messages.codec import refuse
from memci.messages.message import Message
from memci.messages.parts import Part, PartKind, parts

Value: TypeAlias = dict[str, Any]

ATTP_ANSWER = "[tool_result]\nstatus = "  # how a user message begins that is an answer of ATTP: of a tool, not of the user
NO_TEXTS: Mapping[str, str] = {}
ERASED = "[erased]"  # what stands for content that was erased
# The blocks of calls and results: the role in whose messages they stand, and the key of the call's id.
TOOL_BLOCKS: Mapping[str, tuple[str, str]] = {"tool_use": ("assistant", "id"), "tool_result": ("user", "tool_use_id")}


def read_all(read: Callable[[object], Message], messages: object) -> Iterator[Message | InvalidMessageError]:
    """Yield each of several messages as *read* takes it in, or the error with which it is refused; that names its place."""
    for number, value in enumerate(codec.as_list(messages)):
        try:
            yield read(value)
        except InvalidMessageError as error:
            place = f"messages[{number}]" + (f".{error.path}" if error.path else "")
            yield InvalidMessageError(str(error).removeprefix(f"{error.path}: "), path=place)


def copied(value: object) -> dict[str, Any]:
    """Return a deep copy of one message, which may be an object of a provider's SDK."""
    value = codec.dumped(value)
    if not isinstance(value, Mapping):
        refuse(f"a message is a dict, not a {type(value).__name__} (objects of a provider's SDK are taken as well)")
    copy: dict[str, Any] = codec.checked_copy(dict(value))  # type: ignore[assignment]  # a dict stays a dict
    return copy


def checked_role(value: Mapping[str, Any], roles: Collection[str]) -> str:
    """Return the role of a message, which has to be one of these."""
    role = value.get("role")
    if not isinstance(role, str) or role not in roles:
        given = "is missing" if role is None else f"is {shown(role)}"
        refuse(f"the role {given}: use one of {', '.join(roles)}", "role")
    return role


def check_parts(content: object, role: str, path: str = "content", *, bound: Mapping[str, tuple[str, str]] = TOOL_BLOCKS) -> None:
    """Refuse what is no text and no list of typed parts, a part in the wrong role's message, and calls or results of one id.

    *bound* are the types of parts that stand in messages of one role only, with the key of the id that they carry, if any.
    """
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        refuse(f"content is text or a list of parts, not {type(content).__name__}", path)
    seen = set()
    for number, part in enumerate(content):
        at = f"{path}[{number}]"
        if not isinstance(part, dict) or not isinstance(kind := part.get("type"), str):
            refuse("a content part is a dict with a type, such as {'type': 'text', 'text': …}", at)
        if kind in ("text", "input_text", "output_text") and not isinstance(part.get("text"), str):
            refuse(f"a part of type {kind} has its text under 'text'", f"{at}.text")
        allowed, key = bound.get(kind, (role, ""))
        if role != allowed:
            refuse(f"a {kind} block stands in {allowed} messages, not in a {role} message", at)
        if not key:
            continue
        identity = part.get(key)
        if not isinstance(identity, str) or not identity:
            refuse(f"a {kind} block carries the id of its call", f"{at}.{key}")
        if (kind, identity) in seen:
            refuse(f"the id {shown(identity)} stands twice in one message: give each {kind} its own", f"{at}.{key}")
        seen.add((kind, identity))


def begins_as_answer(message: Message) -> bool:
    """Return whether a message begins as an answer of ATTP does. O(its size)."""
    return _is_attp(list(parts(message.value())))


def _is_attp(found: Sequence[Part]) -> bool:
    return bool(found) and found[0].kind is PartKind.TEXT and found[0].text.startswith(ATTP_ANSWER)


def block_content(kind: str, text: str, more: Sequence[str | dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return the content of a block: a text alone as it is; else a list of parts, where *kind* is the type of texts."""
    if not more:
        return text
    return [{"type": kind, "text": part} if isinstance(part, str) else part for part in (text, *more)]


def facts(value: Value, role: str, *, partial: bool = False, sent: Callable[[Value], Value]) -> Message:
    """Make a ``Message`` of a dict that is known to be good; *sent* gives what is sent of it."""
    found = list(parts(value))
    return Message(
        raw=codec.encode(value),
        role=role,
        calls=tuple(part.call for part in found if part.call is not None),
        answers=tuple(part.answers for part in found if part.answers is not None),
        from_user=role == "user" and not _is_attp(found) and not (found and all(part.answers is not None for part in found)),
        partial=partial,
        literal=sent(value) == value,
    )


def no_opening(_first: Message) -> None:
    """Return ``None``: a conversation may begin with any message."""
