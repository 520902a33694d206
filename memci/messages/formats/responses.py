"""Items of OpenAI's Responses API: one message of a session is one item.

Sources: ``ResponseInputItemParam`` of the openai package, OpenAI's guides on function calling, reasoning and conversation state.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

from memci.messages.codec import refuse
from memci.messages.formats import reading
from memci.messages.formats.reading import ERASED
from memci.messages.message import Call, Message
from memci.messages.parts import ANSWERS, CALLS, id_key, is_item, joining_id

ANSWER_PATH = "call_id"
ROLES = ("system", "developer", "user", "assistant")

opening, ended = reading.no_opening, None

_PIXEL: Final = (  # the smallest picture: a computer call can be answered by a screenshot only
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
# The keys that an object of the SDK has without a value, and that are then not sent.
_NOT_NULL = frozenset({"id", "status", "phase", "namespace", "caller", "async", "content", "encrypted_content"}).union(
    ("action", "actions", "error", "svg_usage")
)
_OF_ANSWERS = frozenset({"created_by", "parsed_arguments", "async_"})  # keys of an answer's items that a call may not have
# Given with a status and refused with one (source: ``ResponseInputItemParam``; for reasoning, the errors of the API).
_WITHOUT_STATUS = ("reasoning", "custom_tool_call_output")
_KEPT = ("type", "id", "call_id", "name", "namespace", "status", "caller")
_WITH_TEXT_OUTPUT = ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "apply_patch_call_output")


def checked(value: object) -> dict[str, Any]:
    """Check one item and return a copy; unknown keys, and items of unknown types, are kept as they are."""
    copy = reading.copied(value)
    kind = copy.get("type", "message" if "role" in copy else None)
    if not isinstance(kind, str) or not kind:
        refuse("an item has a type, or is a message with a role", "type")
    if kind == "message":
        if copy.get("role") in ("tool", "function") or "tool_calls" in copy:
            refuse(
                "in the Responses format calls and results are items of their own, function_call and function_call_output: "
                "memci.convert turns messages of OpenAI's chat format into them",
                "role",
            )
        reading.check_parts(copy.get("content"), reading.checked_role(copy, ROLES), bound={})
    else:
        _check_item(copy, kind)
    return copy


def read(value: object) -> Message:
    """Check one item and take it in, as ``checked`` says."""
    return facts(checked(value))


def facts(value: dict[str, Any]) -> Message:
    """Make a ``Message`` of a dict that is known to be good, such as one read back from a store."""
    role = "tool" if value.get("type") in ANSWERS else str(value.get("role", "assistant"))
    return reading.facts(value, role, partial=role == "assistant", sent=_sent)


def block(text: str, *more: str | dict[str, Any]) -> Message:
    """Make a message of role ``user`` that holds what the application did not say: data, in the open; texts, and ``media``."""
    return facts({"type": "message", "role": "user", "content": reading.block_content("input_text", text, more)})


def media(part: dict[str, Any]) -> dict[str, Any] | None:
    """Return a picture or file as a message of the user carries it; ``None`` for what none can carry."""
    match part:
        case {"type": "computer_screenshot", **source}:
            return media({"type": "input_image", **source})
        case {"type": "input_image", "image_url": str()} | {"type": "input_image", "file_id": str()} | {"type": "input_file"}:
            return part
        case _:
            return None


def result(call: Call, text: str) -> Message:
    """Make an item that answers a call with a text, or in the way in which calls of this kind are declined."""
    held: dict[str, dict[str, Any]] = {
        "mcp_approval_request": {"approval_request_id": call.id, "approve": False, "reason": text},
        "local_shell_call": {"id": call.id, "output": text},
        "shell_call": {"call_id": call.id, "output": [_shell_output(text)]},
        "apply_patch_call": {"call_id": call.id, "status": "failed", "output": text},
        "computer_call": {"call_id": call.id, "output": {"type": "computer_screenshot", "image_url": _PIXEL}},
        "tool_search_call": {"call_id": call.id, "execution": "client", "tools": []},
    }
    return facts({"type": CALLS[call.kind], **held.get(call.kind, {"call_id": call.id, "output": text})})


def shortened(message: Message, text: str, _results: Mapping[str, str] = reading.NO_TEXTS) -> Message:
    """Make an item for *message* with the same calls and answers and only *text*; one that no text stands for is given back."""
    value = message.value()
    if not is_item(value):
        own = message.role == "assistant" and isinstance(value["content"], list)
        content = [{"type": "output_text", "text": text, "annotations": []}] if own else text
        own_keys = ("type", "id", "role", "status", "phase")
        return facts({**{key: item for key, item in value.items() if key in own_keys}, "content": content})
    held: dict[str, Any] | None = {
        "function_call": {"arguments": "{}"},
        "custom_tool_call": {"input": ""},
        "mcp_call": {"server_label": value.get("server_label", ""), "arguments": "{}", "output": text},
        "shell_call_output": {"output": [_shell_output(text)]},
        **{kind: {"output": text} for kind in _WITH_TEXT_OUTPUT},
    }.get(value["type"])
    kept = {key: value[key] for key in _KEPT if key in value}
    return message if held is None else facts({**kept, **held})


def erased(message: Message) -> Message:
    """Make what is left of an item when its content is erased: role, and which call it makes or answers.

    It is a function call, a result or a message: legal without what is gone, and without the ids that belong to reasoning.
    """
    if message.calls:
        call = message.calls[0]
        return facts({"type": "function_call", "call_id": call.id, "name": call.kind, "arguments": "{}"})
    if message.answers:
        return facts({"type": "function_call_output", "call_id": message.answers[0], "output": ERASED})
    role = "assistant" if message.role == "tool" else message.role
    return facts({"type": "message", "role": role, "content": ERASED})


def sent(message: Message) -> Message:
    """Return an item without what belongs to the provider's answer only: keys without a value, what the SDK parsed."""
    return message if message.literal else facts(_sent(message.value()))


def _sent(value: dict[str, Any]) -> dict[str, Any]:
    kept = {key: item for key, item in value.items() if key not in _OF_ANSWERS and (item is not None or key not in _NOT_NULL)}
    if value.get("type") in _WITHOUT_STATUS:
        kept.pop("status", None)
    if isinstance(kept.get("content"), list):
        kept["content"] = [
            {key: item for key, item in part.items() if key != "parsed" and (key != "logprobs" or item is not None)}
            if isinstance(part, dict)
            else part
            for part in kept["content"]
        ]
    return kept


assembled = sent


def assemble(
    messages: Sequence[Message], values: Sequence[dict[str, Any]], _cached: Collection[int] = ()
) -> tuple[None, list[Message], list[dict[str, Any]]]:
    """Return what a call sends of items that are ``sent``: without reasoning whose next item is not there.

    The provider knows by its id which item a reasoning belongs to, and refuses one without the other. A call whose id stands open
    already gets another id, and its result too. System and developer messages stand among the items.
    """
    kept: list[Message] = []
    following: Message | None = None
    for message in reversed(list(_distinct(messages))):
        if not is_reasoning(message):
            following = message
        elif following is None or not following.partial or parted(message, following):
            continue
        kept.append(message)
    known = {id(message): value for message, value in zip(messages, values, strict=True)}
    kept.reverse()
    return None, kept, [known.pop(id(message), {}) or message.value() for message in kept]


def _distinct(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the items with an id of its own for each call that stands open: where another has it, the first number that is free.

    A result answers the newest open call of its id, as in a session. Else as in Anthropic's format.
    """
    seen: set[str] = set()
    waiting: dict[str, list[str]] = {}
    numbers = map(str, count(1))
    for message in messages:
        for call in message.calls:
            name = call.id
            if any(call.id in names for names in waiting.values()):
                name = next(number for number in numbers if number not in seen)
                message = _renamed(message, name)  # noqa: PLW2901 (an item makes one call)
            seen.add(name)
            waiting.setdefault(call.id, []).append(name)
        for answered in message.answers:
            name = waiting[answered].pop() if waiting.get(answered) else answered
            if name != answered:
                message = _renamed(message, name)  # noqa: PLW2901 (and answers one)
        yield message


def _renamed(message: Message, name: str) -> Message:
    value = message.value()
    return facts({**value, id_key(value): name})


def is_reasoning(message: Message) -> bool:
    """Return whether a message is a reasoning item."""
    return message.partial and not message.calls and b'"reasoning"' in message.raw and message.value().get("type") == "reasoning"


def parted(reasoning: Message, following: Message) -> bool:
    """Return whether the item after a reasoning, or after several, has lost the id by which it belongs to it."""
    return "id" in reasoning.value() and "id" not in following.value()


def _shell_output(text: str) -> dict[str, Any]:
    return {"stdout": "", "stderr": text, "outcome": {"type": "exit", "exit_code": 1}}


def _check_item(value: dict[str, Any], kind: str) -> None:
    if not is_item(value):
        refuse(f"an item of type {kind} has no role; a message has the type 'message'", "role")
    if (key := id_key(value)) and not joining_id(value):
        refuse(
            "a call carries the id that its output names" if kind in CALLS else "an output names the call that it answers", key
        )
    if kind in ("function_call", "custom_tool_call") and not isinstance(value.get("name"), str):
        refuse(f"a {kind} names its tool", "name")
    said = {"function_call": "arguments", "custom_tool_call": "input"}.get(kind)
    if said is not None and not isinstance(value.get(said), str):
        refuse(f"the {said} are text" + (": json.dumps them" if said == "arguments" else ""), said)
    if kind in ("function_call_output", "custom_tool_call_output"):
        reading.check_parts(value.get("output"), "tool", "output", bound={})
