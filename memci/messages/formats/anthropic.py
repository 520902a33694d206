"""Anthropic messages, the system prompt as a message of role ``system``, and what a call takes of a window.

Sources: the Messages API reference, and Anthropic's guides on tool use, extended thinking and prompt caching.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, groupby, repeat
from typing import Any, Final

from memci.errors import shown
from memci.messages import codec
from memci.messages.codec import refuse
from memci.messages.formats import openai, reading
from memci.messages.formats.reading import ERASED, TOOL_BLOCKS
from memci.messages.message import Call, Message

ANSWER_PATH = "content"
ROLES = ("system", "user", "assistant")

ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_KEPT = {
    "tool_use": ("type", "id", "name", "caller", "toolset_name"),
    "tool_result": ("type", "tool_use_id", "is_error", "toolset_name"),
}
THINKING: Final = frozenset({"thinking", "redacted_thinking"})
_BOUND = {**TOOL_BLOCKS, **dict.fromkeys(THINKING, ("assistant", ""))}
MOST_BREAKPOINTS: Final = 4  # blocks with ``cache_control`` that one call may hold, those of its tools among them
_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
# Blocks that get a breakpoint, and what the provider's tools found: the API reference names ``cache_control`` for these.
_MARKED = _SERVER_CALLS | {"text", "image", "document", "search_result", "container_upload", "tool_use", "tool_result"}
# The keys of a message that an answer of the provider has and a call may not have.
OF_ANSWERS: Final = frozenset({"id", "type", "model", "usage", "stop_reason", "stop_sequence", "stop_details"}).union(
    ("container", "context_management", "diagnostics", "input_transformations")
)

Block = dict[str, Any]


def checked(value: object) -> dict[str, Any]:
    """Check one message and return a copy, unknown keys as they are; one of role ``system`` holds text or text blocks."""
    copy = reading.copied(value)
    if copy.get("role") in ("developer", "tool", "function"):
        problem = f"Anthropic's messages have no role {shown(copy['role'])}"
        refuse(f"{problem}: memci.convert turns messages of OpenAI's formats into them", "role")
    role = reading.checked_role(copy, ROLES)
    content = copy.get("content")
    reading.check_parts(content, role, bound=_BOUND)
    for number, block in enumerate(content if isinstance(content, list) else ()):
        _check_block(block, role, f"content[{number}]")
    if role != "assistant" and not said(content):
        refuse(f"a {role} message holds something: text that is more than spaces, or a block", "content")
    return copy


def read(value: object) -> Message:
    """Check one message and take it in, as ``checked`` says."""
    return facts(checked(value))


def facts(value: dict[str, Any]) -> Message:
    """Make a ``Message`` of a dict that is known to be good, such as one read back from a store."""
    if openai.is_plain(value):
        return openai.facts(value)
    content = value["content"]
    is_open = value["role"] == "assistant" and isinstance(content, list) and bool(open_server_calls(content))
    return reading.facts(value, value["role"], partial=is_open, sent=_sent)


def block(text: str, *more: str | dict[str, Any]) -> Message:
    """Make a message of role ``user`` that holds what the application did not say: data, in the open; texts, and ``media``."""
    return facts({"role": "user", "content": reading.block_content("text", text, more)})


def media(part: dict[str, Any]) -> dict[str, Any] | None:
    """Return a picture or file as a message of the user carries it, without marks and words; ``None`` for any other block."""
    match part:
        case {"type": "image"} | {"type": "document", "source": {"type": "base64" | "url" | "file"}}:
            return {key: item for key, item in part.items() if key not in ("cache_control", "title", "context")}
        case _:
            return None


def result(call: Call, text: str) -> Message:
    """Make a message that answers a call with a text."""
    return facts({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": text}]})


def shortened(
    message: Message, text: str, results: Mapping[str, str] = reading.NO_TEXTS, *, keep_thinking: bool = True
) -> Message:
    """Make a message that stands where *message* does, makes and answers the same calls, and holds only *text*.

    Blocks of *results*, by the id of their call, hold texts of their own.
    """
    content = message.value()["content"]
    if isinstance(content, str):
        return facts({"role": message.role, "content": text})
    # Thinking is kept whole, in its place: the provider refuses it when it was changed, and a last assistant turn without it.
    kept: list[Block] = []
    open_calls = open_server_calls(content) if keep_thinking else set()
    for part in content:
        kind = part["type"]
        if (kind in THINKING and keep_thinking) or server_call(part) in open_calls:
            kept.append(part)
        elif kind in TOOL_BLOCKS:
            rest: Block = {"input": {}} if kind == "tool_use" else {"content": results.get(part["tool_use_id"], text)}
            kept.append({**{key: part[key] for key in _KEPT[kind] if key in part}, **rest})
    lead = len(kept)
    if message.role == "assistant":
        lead = next((number for number, part in enumerate(kept) if part["type"] not in THINKING), lead)
    if message.role == "assistant" or message.from_user or not kept:
        kept.insert(lead, {"type": "text", "text": text})
    return facts({"role": message.role, "content": kept})


def erased(message: Message) -> Message:
    """Make what is left of a message when its content is erased: role, and which calls it makes and answers."""
    return shortened(message, ERASED, keep_thinking=False)


def opening(first: Message) -> Message | None:
    """Return what stands before a conversation that does not begin with the user, as the provider wants it to."""
    return None if first.role == "user" else block("[the conversation begins here]")


def sent(message: Message) -> Message:
    """Return a message without what belongs to the provider's answer only, such as its ``usage``."""
    return message if message.literal else facts(_sent(message.value()))


def ended(message: Message) -> Message:
    """Return what a message is sent as at the end of a window: its last text without white space at its end."""
    value = message.value() if message.role == "assistant" else None
    last = value and trimmed(cleaned(value))
    return message if last is None or last is value else facts(last)


assembled = sent


def assemble(
    messages: Sequence[Message], values: Sequence[Block], cached: Collection[int] = ()
) -> tuple[list[Block], list[Message], list[Block]]:
    """Return the system prompt as text blocks, and the messages, of which those that are ``sent`` are taken.

    The system messages at the beginning are the system prompt. Left out are empty texts, messages
    without anything, thinking at the end of a message, white space at the end of a text with which the model goes on, halves of
    the provider's own calls, and all breakpoints but the last four (of those in the system prompt, the last stays), or with
    *cached* all but those after the messages at these places. The results of one turn become one message, before any text. A call
    whose id an earlier one has gets another, and its result too. Any other message is the one that came in, byte for byte.
    """
    texts = {id(value): message for message, value in zip(messages, values, strict=True) if isinstance(value["content"], str)}
    if cached:
        _set_breakpoints(values, cached)
    first = next((number for number, message in enumerate(messages) if message.role != "system"), len(messages))
    system = [part for value in values[:first] for part in _as_blocks(said(value["content"]))]
    others = list(_distinct(joined(values[first:])))
    kept = [value for value in map(cleaned, others, lone_calls(others)) if value["content"]]
    kept[-1:] = map(trimmed, kept[-1:])
    _drop_breakpoints(system, kept)
    return system, [_message(value, texts.get(id(value))) for value in kept], kept


def _message(value: Block, given: Message | None) -> Message:
    """Return a message of which only bytes and role are known; the *given* one where it still is a text."""
    if given is not None and isinstance(value["content"], str):
        return given
    return Message(raw=codec.encode(value), role=value["role"])


def _check_block(part: dict[str, Any], role: str, path: str) -> None:
    kind = part["type"]
    if role == "system" and kind != "text":
        refuse(f"a {kind} block cannot stand in a system message", path)
    if kind in TOOL_BLOCKS and not ID.fullmatch(part[key := TOOL_BLOCKS[kind][1]]):
        problem = f"the id {shown(part[key])} holds more than letters, digits, _ and -: rename it, and in its result too"
        refuse(problem, f"{path}.{key}")
    if kind == "tool_use" and not (isinstance(part.get("name"), str) and isinstance(part.get("input"), dict)):
        refuse("a tool_use block has a name, and its input as an object", path)
    source = part.get("source") if kind == "document" else None
    for holder, place in ((part if kind == "tool_result" else None, path), (source, f"{path}.source")):
        if isinstance(holder, dict) and holder.get("content") is not None:
            reading.check_parts(holder["content"], role, f"{place}.content", bound={})


def _sent(value: Block) -> Block:
    kept = {key: item for key, item in value.items() if key not in OF_ANSWERS}
    if isinstance(value["content"], list):
        kept["content"] = list(map(_sent_block, value["content"]))
    return kept


def _sent_block(part: Block) -> Block:
    """Return a block without the keys that the SDK adds, and those that may be missing and not be null."""
    kept = {key: item for key, item in part.items() if key != "parsed_output" and (key != "caller" or item is not None)}
    if isinstance(part.get("citations"), list):
        kept["citations"] = [
            {key: item for key, item in each.items() if key != "file_id"} if isinstance(each, dict) else each
            for each in part["citations"]
        ]
    return kept


def server_call(part: Block) -> str | None:
    """Return the id of the provider's own call that a block makes or answers; ``None`` for any other block."""
    if part["type"] in _SERVER_CALLS:
        identity = part.get("id")
    elif part["type"].endswith("_tool_result"):
        identity = part.get("tool_use_id")
    else:
        return None
    return identity if isinstance(identity, str) else None


def open_server_calls(content: Sequence[Block]) -> set[str]:
    """Return the ids of the provider's own calls of which only one half, call or result, stands in a content."""
    calls = Counter(identity for part in content if (identity := server_call(part)) is not None)
    return {identity for identity, blocks in calls.items() if blocks % 2}


def said(content: object) -> str | list[Block]:
    """Return a content without what the provider refuses in it: texts that are empty or only spaces, inside results too."""
    if isinstance(content, str):
        return content if content.strip() else ""
    return [
        {**part, "content": [each for each in inside(part) if not is_blank(each)]} if any(map(is_blank, inside(part))) else part
        for part in (content if isinstance(content, list) else ())
        if not is_blank(part)
    ]


def is_blank(part: object) -> bool:
    """Return whether a block is a text that is empty or only spaces."""
    text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
    return isinstance(text, str) and not text.strip()


def inside(part: Block) -> list[object]:
    """Return what stands inside a result; nothing for any other block."""
    inner = part.get("content")
    return inner if part["type"] == "tool_result" and isinstance(inner, list) else []


def has_breakpoint(part: Block) -> bool:
    """Return whether a breakpoint of the provider's cache stands on a block; ``cache_control: null`` is none."""
    return part.get("cache_control") is not None


def _set_breakpoints(values: Sequence[Block], places: Collection[int]) -> None:
    """Set breakpoints after the messages at some places, each on the last block that can have one; others go. Changes them."""
    for value in values:
        for part in holders(value["content"]):
            part.pop("cache_control", None)
    lone = list(lone_calls(values))
    for place in places:
        for number in range(place, -1, -1):
            blocks = _as_blocks(values[number]["content"])
            marked = (part for part in blocks if part["type"] in _MARKED or part["type"].endswith("_tool_result"))
            able = [part for part in marked if not is_blank(part) and server_call(part) not in lone[number]]
            if able:
                _results_first(able)[-1]["cache_control"] = {"type": "ephemeral"}  # in the order in which they are sent
                values[number]["content"] = blocks
                break


def _as_blocks(content: str | list[Block]) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content


def joined(values: Iterable[Block]) -> list[Block]:
    """Join user messages that bring results of the same turn; results come first."""
    joined: list[Block] = []
    follows = False
    for value in values:
        results = any(part["type"] == "tool_result" for part in _as_blocks(value["content"]))
        if results:
            before = joined.pop() if follows else {**value, "content": []}
            joined.append({**before, "content": _results_first([*before["content"], *value["content"]])})
        else:
            joined.append(value)
        follows = results
    return joined


def _results_first(blocks: Iterable[Block]) -> list[Block]:
    return sorted(blocks, key=lambda part: part["type"] != "tool_result")


def _distinct(values: Iterable[Block]) -> Iterator[Block]:
    """Yield the messages with an id of its own for each call: where it was there before, the first number that was not.

    It depends on the messages before only, so that windows begin alike; in no counter a number below 1,000 is longer than an id.
    """
    seen: set[str] = set()
    given: dict[str, str] = {}
    numbers = map(str, count(1))
    for value in values:
        if value["role"] == "assistant":
            given = {}
            for part in _as_blocks(value["content"]):
                identity = part["id"] if part["type"] == "tool_use" else None
                if identity in seen:
                    given[identity] = identity = next(number for number in numbers if number not in seen)
                if identity is not None:
                    seen.add(identity)
        content = value["content"]
        yield {**value, "content": [_with_id(part, given) for part in content]} if given and isinstance(content, list) else value


def _with_id(part: Block, given: Mapping[str, str]) -> Block:
    _, key = TOOL_BLOCKS.get(part["type"], ("", ""))
    return {**part, key: given[part[key]]} if key and part[key] in given else part


def lone_calls(values: Sequence[Block]) -> Iterator[set[str]]:
    """Yield for each message the provider's own calls of which its turn holds one half; the last message keeps its open ones."""
    for role, run in groupby(values, key=lambda value: value["role"]):
        turn = [value["content"] if isinstance(value["content"], list) else [] for value in run]
        lone = open_server_calls([part for content in turn for part in content]) if role == "assistant" and any(turn) else set()
        if lone and turn[-1] is values[-1]["content"]:
            lone -= {server_call(part) for part in turn[-1] if part["type"] in _SERVER_CALLS}
        yield from repeat(lone, len(turn))


def _holding(value: Block, content: str | list[Block]) -> Block:
    """Return a message with a content; the same object where it holds that."""
    return value if content == value["content"] else {**value, "content": content}


def cleaned(value: Block, lone: Collection[str] = ()) -> Block:
    """Return a message without what the provider refuses in it; the same object where that is nothing."""
    content = said(value["content"])
    if isinstance(content, list):
        content = [part for part in content if server_call(part) not in lone]
        while content and content[-1]["type"] in THINKING:
            content.pop()
    return _holding(value, content)


def trimmed(value: Block) -> Block:
    """Return a message without white space at the end of a text with which the model goes on; the same object for no change."""
    content = value["content"]
    if value["role"] == "assistant" and isinstance(content, str):
        content = content.rstrip()
    elif value["role"] == "assistant" and content and content[-1]["type"] == "text":
        content = [*content[:-1], {**content[-1], "text": content[-1]["text"].rstrip()}]
    return _holding(value, content)


def _drop_breakpoints(system: list[Block], values: Sequence[Block]) -> None:
    """Take all breakpoints away but the last four; the last one of the system prompt stays. Changes the blocks."""
    of_system = list(filter(has_breakpoint, system))
    of_messages = [part for value in values for part in holders(value["content"]) if has_breakpoint(part)]
    room = MOST_BREAKPOINTS - bool(of_system)
    too_many = len(of_system) + min(len(of_messages), room) - MOST_BREAKPOINTS
    for part in (*of_system[: max(too_many, 0)], *of_messages[:-room]):
        del part["cache_control"]


def holders(content: str | list[Block]) -> Iterable[Block]:
    """Yield the blocks of a content on which a breakpoint may stand, those inside results too."""
    for part in _as_blocks(content):
        yield from (each for each in inside(part) if isinstance(each, dict))
        yield part
