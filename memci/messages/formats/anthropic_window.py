"""What an Anthropic call takes of a window: the system prompt for itself, and messages in the order that the provider wants.

Sources: Anthropic's Messages API reference (``messages``: consecutive turns of one role are combined) and guides: tool use (all
results of a turn in one user message, before any text, directly behind the calls; no id twice), extended thinking (blocks
unchanged, none at the end of a message), prompt caching (at most four breakpoints); its shapes of blocks, ``cache_control``.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, groupby
from typing import Any, Final

from memci.messages.message import Message

THINKING: Final = frozenset({"thinking", "redacted_thinking"})

MOST_BREAKPOINTS: Final = 4
"""Blocks with ``cache_control`` that one call may hold, those of its tools among them."""

_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})

_MARKED = frozenset(
    {
        *("text", "image", "document", "search_result", "container_upload", "tool_use", "tool_result"),
        *_SERVER_CALLS,
        *("web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result"),
        *("text_editor_code_execution_tool_result", "tool_search_tool_result", "mcp_tool_result"),
    }
)
"""Blocks that get a breakpoint: those for which the API reference names ``cache_control``. Thinking has none."""

OF_ANSWERS: Final = frozenset(
    {
        *("id", "type", "model", "usage", "stop_reason", "stop_sequence", "stop_details"),
        *("container", "context_management", "diagnostics", "input_transformations"),
    }
)
"""The keys of a message that an answer of the provider has and a call may not have."""

Block = dict[str, Any]


def sent(value: Block) -> Block:
    """Return a message as the provider takes it, without what belongs to its answers only."""
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
    lone: set[str] = set()
    for part in content:
        identity = server_call(part)
        if identity is not None:
            lone ^= {identity}
    return lone


def said(content: object) -> str | list[Block]:
    """Return a content without what the provider refuses in it: texts that are empty or only spaces, inside results too."""
    if isinstance(content, str):
        return content if content.strip() else ""
    return [_with_texts(part) for part in content if not is_blank(part)] if isinstance(content, list) else []


def is_blank(part: object) -> bool:
    """Return whether a block is a text that is empty or only spaces."""
    match part:
        case {"type": "text", "text": str(text)}:
            return not text.strip()
        case _:
            return False


def _with_texts(part: Block) -> Block:
    inner = part.get("content")
    if part["type"] != "tool_result" or not isinstance(inner, list) or not any(map(is_blank, inner)):
        return part
    return {**part, "content": [each for each in inner if not is_blank(each)]}


def has_breakpoint(part: Block) -> bool:
    """Return whether a breakpoint of the provider's cache stands on a block; ``cache_control: null`` is none."""
    return part.get("cache_control") is not None


def assemble(
    messages: Sequence[Message], facts: Callable[[Block], Message], cached: Collection[int] = ()
) -> tuple[list[Block], list[Message]]:
    """Return the system prompt as text blocks, and the messages.

    The system messages at the beginning are the system prompt; later ones stay where they are. Left out are what belongs to the
    provider's answers only, empty texts, messages without anything, thinking at the end of a message, white space at the end of a
    text with which the model goes on, the halves of the provider's own calls whose other half is not there, and all breakpoints
    but the last four (of those in the system prompt, the last stays). The results of one turn become one message, before any
    text. A call whose id an earlier one has gets another id, and its result too. Any other message is the one that came in, byte
    for byte.

    Where places of messages are given in *cached*, breakpoints stand behind these, and no others.
    """
    values = [message.value() if message.literal else sent(message.value()) for message in messages]
    if cached:
        _set_breakpoints(values, cached)
    first = next((number for number, message in enumerate(messages) if message.role != "system"), len(messages))
    system = [part for value in values[:first] for part in _as_blocks(said(value["content"]))]
    values = _paired(list(_distinct(_joined(values[first:]))))
    kept = [value for value in map(_cleaned, values) if value["content"]]
    kept[-1:] = map(_ended, kept[-1:])
    _drop_breakpoints(system, kept)
    return system, [facts(value) for value in kept]


def _set_breakpoints(values: Sequence[Block], places: Collection[int]) -> None:
    """Set a breakpoint behind the messages at some places, and take away all others. Changes the messages.

    It stands on the last block that can have one and that stays in the window, of that message or of one before it.
    """
    for value in values:
        for part in holders(value["content"]):
            part.pop("cache_control", None)
    lone = _lone(values)
    for place in places:
        for number in range(place, -1, -1):
            blocks = _as_blocks(values[number]["content"])
            last = _last_marked(blocks, lone[number])
            if last is not None:
                last["cache_control"] = {"type": "ephemeral"}
                values[number]["content"] = blocks
                break


def _last_marked(blocks: Sequence[Block], lone: Collection[str]) -> Block | None:
    """Return the last block that gets a breakpoint, in the order in which they are sent: results first."""
    able = [part for part in blocks if part["type"] in _MARKED and not is_blank(part) and server_call(part) not in lone]
    return next(reversed(_results_first(able)), None)


def _as_blocks(content: str | list[Block]) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content


def _joined(values: Iterable[Block]) -> list[Block]:
    """Join user messages that bring results of the same turn; results come first."""
    joined: list[Block] = []
    for value in values:
        last = joined[-1] if joined else None
        if last is not None and _results(value) and _results(last):
            joined[-1] = {**last, "content": _results_first([*last["content"], *value["content"]])}
        elif _results(value):
            joined.append({**value, "content": _results_first(value["content"])})
        else:
            joined.append(value)
    return joined


def _results_first(blocks: Iterable[Block]) -> list[Block]:
    return sorted(blocks, key=lambda part: part["type"] != "tool_result")


def _distinct(values: Iterable[Block]) -> Iterator[Block]:
    """Yield the messages with an id of its own for each call: where it was there before, the first number that was not.

    What a message gets depends on those before it only, so that a longer window begins with the same bytes. In no counter a
    number has more tokens than another id, as long as there are fewer than a thousand.
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
    key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(part["type"])
    return {**part, key: given[part[key]]} if key is not None and part[key] in given else part


def _results(value: Block) -> bool:
    content = value["content"]
    return isinstance(content, list) and any(part["type"] == "tool_result" for part in content)


def _paired(values: Sequence[Block]) -> list[Block]:
    """Leave out halves of the provider's own calls."""
    return [
        {**value, "content": [part for part in value["content"] if server_call(part) not in ids]}
        if ids and isinstance(value["content"], list)
        else value
        for value, ids in zip(values, _lone(values), strict=True)
    ]


def _lone(values: Sequence[Block]) -> list[set[str]]:
    """Return for each message the provider's own calls of which its turn holds only one half, call or result.

    The last message, with which the provider goes on, keeps its open calls.
    """
    found: list[set[str]] = []
    for role, run in groupby(values, key=lambda value: value["role"]):
        turn = list(run)
        contents = [value["content"] for value in turn if isinstance(value["content"], list)]
        lone = open_server_calls([part for content in contents for part in content]) if role == "assistant" else set()
        if lone and turn[-1] is values[-1]:
            last = _as_blocks(turn[-1]["content"])
            lone -= {server_call(part) for part in last if part["type"] in _SERVER_CALLS}
        found += [lone] * len(turn)
    return found


def _cleaned(value: Block) -> Block:
    content = said(value["content"])
    while isinstance(content, list) and content and content[-1]["type"] in THINKING:
        content = content[:-1]
    return value if content == value["content"] else {**value, "content": content}


def ended(value: Block) -> Block:
    """Return a message as it stands at the end of a window; the same object where it is sent as it came."""
    return _ended(_cleaned(value))


def _ended(value: Block) -> Block:
    """Take white space off the end of a text with which the model goes on."""
    content = value["content"]
    if value["role"] != "assistant":
        return value
    if isinstance(content, str):
        return value if content == content.rstrip() else {**value, "content": content.rstrip()}
    last = content[-1] if content else None
    if last is None or last["type"] != "text" or last["text"] == last["text"].rstrip():
        return value
    return {**value, "content": [*content[:-1], {**last, "text": last["text"].rstrip()}]}


def _drop_breakpoints(system: list[Block], values: Sequence[Block]) -> None:
    """Take all breakpoints away but the last four; the last one of the system prompt stays. Changes the blocks."""
    inside = [part for value in values for part in holders(value["content"])]
    of_system, of_messages = [list(filter(has_breakpoint, blocks)) for blocks in (system, inside)]
    kept = of_messages[-(MOST_BREAKPOINTS - bool(of_system)) :]
    kept = [*of_system[len(kept) - MOST_BREAKPOINTS :], *kept] if of_system else kept
    known = set(map(id, kept))
    for part in (*of_system, *of_messages):
        if id(part) not in known:
            del part["cache_control"]


def holders(content: str | list[Block]) -> Iterable[Block]:
    """Yield the blocks of a content on which a breakpoint may stand, those inside results too."""
    for part in _as_blocks(content):
        inner = part.get("content")
        if part["type"] == "tool_result" and isinstance(inner, list):
            yield from (each for each in inner if isinstance(each, dict))
        yield part
