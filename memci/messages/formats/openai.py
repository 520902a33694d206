"""OpenAI chat completions messages, as the reference of the Chat Completions API has its ``messages``."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from memci.errors import shown
from memci.messages import codec
from memci.messages.codec import refuse
from memci.messages.formats import reading
from memci.messages.formats.reading import ATTP_ANSWER, ERASED, TOOL_BLOCKS
from memci.messages.message import Call, Message
from memci.messages.parts import function_id

ANSWER_PATH = "tool_call_id"
ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_SPEAKERS = ("user", "assistant", "system", "developer")
_MEDIA = ("image_url", "input_audio", "file")
# The keys that an answer of the provider, or an object of its SDK, has without a value, and that are then not sent.
_NOT_NULL = frozenset({"name", "tool_call_id", "tool_calls", "function_call", "refusal", "annotations", "audio", "parsed"})

opening, ended, assemble = reading.no_opening, None, None


def is_plain(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value is a dict of a role and a text and nothing else, as nearly all messages are."""
    if type(value) is not dict or len(value) != 2:  # noqa: PLR2004 (role and content)
        return False
    return type(value.get("content")) is str and value.get("role") in _SPEAKERS


def checked(value: object) -> dict[str, Any]:
    """Check one message and return a copy; what it holds beyond the known keys is kept as it is."""
    if is_plain(value):
        return dict(value)
    copy = reading.copied(value)
    role, content = reading.checked_role(copy, ROLES), copy.get("content")
    if content is not None:
        reading.check_parts(content, role)
    elif role != "assistant":
        refuse(f"a {role} message needs a content: text, or a list of parts", "content")
    if not isinstance(copy.get("refusal", ""), str | None):
        refuse("a refusal is text", "refusal")
    _check_calls(copy, role)
    if role == "tool" and not (isinstance(copy.get("tool_call_id"), str) and copy["tool_call_id"]):
        refuse("a tool message names the call it answers: give the id of the assistant's tool call", "tool_call_id")
    if role == "function" and not isinstance(copy.get("name"), str):
        refuse("a function message names the function it answers", "name")
    return copy


def read(value: object) -> Message:
    """Check one message and take it in, as ``checked`` says."""
    return facts(checked(value))


def facts(value: dict[str, Any]) -> Message:
    """Make a ``Message`` of a dict that is known to be good, such as one read back from a store."""
    if is_plain(value):
        spoken = value["role"] == "user" and not value["content"].startswith(ATTP_ANSWER)
        return Message(raw=codec.encode(value), role=value["role"], from_user=spoken)
    return reading.facts(value, value["role"], sent=_assembled)


def block(text: str, *more: str | dict[str, Any]) -> Message:
    """Make a message of role ``user`` that holds what the application did not say: data, in the open; texts, and ``media``."""
    return facts({"role": "user", "content": reading.block_content("text", text, more)})


def media(part: dict[str, Any]) -> dict[str, Any] | None:
    """Return a picture, sound or file as a message of the user carries it; ``None`` for what none can carry."""
    return part if part.get("type") in _MEDIA else None


def result(call: Call, text: str) -> Message:
    """Make a message that answers a call with a text."""
    if call.id == function_id(call.name):
        return facts({"role": "function", "name": call.name, "content": text})
    return facts({"role": "tool", "tool_call_id": call.id, "content": text})


def shortened(message: Message, text: str, results: Mapping[str, str] = reading.NO_TEXTS) -> Message:
    """Make a message that stands where *message* does, makes and answers the same calls, and holds only *text*.

    Blocks of *results*, by the id of their call, hold texts of their own.
    """
    original = message.value()
    value: dict[str, Any] = {"role": message.role, "content": text}
    value |= {key: original[key] for key in ("name", "tool_call_id") if key in original}
    if isinstance(original.get("tool_calls"), list):
        value["tool_calls"] = list(map(_shortened_call, original["tool_calls"]))
    if isinstance(original.get("function_call"), dict):
        value["function_call"] = {"name": original["function_call"].get("name"), "arguments": "{}"}
    blocks = original["content"] if isinstance(original.get("content"), list) else ()
    kept = [_shortened_block(part, results.get(part.get("tool_use_id"), text)) for part in blocks if part["type"] in TOOL_BLOCKS]
    if kept:
        texts = [] if message.role == "user" and not message.from_user else [{"type": "text", "text": text}]
        value["content"] = [*kept, *texts] if message.role == "user" else [*texts, *kept]
    return facts(value)


def erased(message: Message) -> Message:
    """Make what is left of a message when its content is erased: role, and which calls it makes and answers."""
    value = shortened(message, ERASED).value()
    if message.role not in ("tool", "function"):
        value.pop("name", None)
    return facts(value)


def sent(message: Message) -> Message:
    """Return a message without what belongs to the provider's answer only: keys without a value, what the SDK parsed."""
    return message if message.literal else facts(_sent(message.value()))


def assembled(message: Message) -> Message:
    """Return what a call sends: nothing of answers only, what was said aloud by its id, a text where there is nothing."""
    return message if message.literal else facts(_assembled(message.value()))


def _sent(value: dict[str, Any]) -> dict[str, Any]:
    kept = {key: item for key, item in value.items() if key not in _NOT_NULL or item not in (None, [])}
    kept.pop("parsed", None)
    if "tool_calls" in kept:
        kept["tool_calls"] = [
            {**call, "function": {key: item for key, item in call["function"].items() if key != "parsed_arguments"}}
            if isinstance(call.get("function"), dict)
            else call
            for call in kept["tool_calls"]
        ]
    return kept


def _assembled(value: dict[str, Any]) -> dict[str, Any]:
    kept = _sent(value)
    if says_nothing(kept):
        kept["content"] = ""
    audio = kept.get("audio")
    if isinstance(audio, dict) and isinstance(audio.get("id"), str):
        kept["audio"] = {"id": audio["id"]}
    return kept


def says_nothing(value: dict[str, Any]) -> bool:
    """Return whether the assistant neither says nor calls anything, which the provider refuses to be told."""
    told = ("content", "tool_calls", "function_call", "refusal", "audio")
    return value["role"] == "assistant" and value.get("content") != "" and not any(map(value.get, told))


def _check_calls(value: dict[str, Any], role: str) -> None:
    calls = value.get("tool_calls")
    if calls is None:
        return
    if role != "assistant":
        refuse(f"only an assistant message calls tools, not a {role} message", "tool_calls")
    if not isinstance(calls, list):
        refuse(f"tool_calls is a list, not {type(calls).__name__}", "tool_calls")
    seen = set()
    for number, call in enumerate(calls):
        path = f"tool_calls[{number}]"
        if not isinstance(call, dict) or not isinstance(call.get("id"), str) or not call["id"]:
            refuse("a tool call is a dict with an id", path)
        if call["id"] in seen:
            refuse(f"the id {shown(call['id'])} stands twice in one message: give each call its own", f"{path}.id")
        seen.add(call["id"])
        function = call.get("function")
        if call.get("type", "function") == "function":
            if not isinstance(function, dict) or not isinstance(function.get("name"), str):
                refuse("a function call has a function with a name", f"{path}.function")
            if not isinstance(function.get("arguments", ""), str):
                refuse("the arguments are JSON as text: json.dumps them", f"{path}.function.arguments")


def _shortened_call(item: dict[str, Any]) -> dict[str, Any]:
    function, custom = item.get("function"), item.get("custom")
    if "function" not in item and isinstance(custom, dict):
        return {"id": item["id"], "type": item["type"], "custom": {"name": str(custom.get("name", "")), "input": ""}}
    if not isinstance(function, dict):
        return {"id": item["id"], "type": item.get("type", "function")}
    return {"id": item["id"], "type": "function", "function": {"name": function.get("name"), "arguments": "{}"}}


def _shortened_block(part: dict[str, Any], text: str) -> dict[str, Any]:
    if part["type"] == "tool_use":
        return {"type": "tool_use", "id": part["id"], "name": part.get("name"), "input": {}}
    return {"type": "tool_result", "tool_use_id": part["tool_use_id"], "content": text}
