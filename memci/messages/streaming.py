"""Answers that come in pieces: each provider's events put together to the messages that the whole answer would have been.

Shapes are those of the providers' streams, as dicts or as the objects of their SDKs: OpenAI's ``chat.completion.chunk``
(https://platform.openai.com/docs/api-reference/chat-streaming), events of its Responses API
(https://platform.openai.com/docs/api-reference/responses-streaming), and Anthropic's message stream
(https://docs.anthropic.com/en/docs/build-with-claude/streaming). Pure: nothing is stored here.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from memci.messages import codec

_JOINED = ("content", "refusal", "reasoning", "reasoning_content", "transcript", "data", "arguments")  # come in parts


class Assembler(Protocol):
    """Takes the pieces of one answer, in their order."""

    complete: bool  # whether the provider said that it is whole

    @property
    def usage(self) -> Any:  # noqa: ANN401 (as the provider says it)
        """What the provider counted; ``None`` where it did not say."""

    def add(self, piece: Mapping[str, Any]) -> str:
        """Take a piece in, and return what it adds to the text that a user reads; one of an unknown kind adds nothing."""

    def messages(self) -> list[dict[str, Any]]:
        """Return what came so far as messages that can be sent again, none where there is nothing.

        Of an answer that is not complete, calls and thoughts that are in parts are left out: nobody could answer, or send, those.
        """


def assembler(wire_format: str) -> Assembler:
    """Return what puts together the answers of a provider."""
    kinds: dict[str, Callable[[], Assembler]] = {"openai": _Chat, "responses": _Responses, "anthropic": _Anthropic}
    return kinds[wire_format]()


def piece(value: object) -> Mapping[str, Any]:
    """Return a piece of an answer as a mapping; ``InvalidMessageError`` for what is none."""
    given = codec.dumped(value)
    if not isinstance(given, Mapping):
        codec.refuse(f"a piece of an answer is a dict or an SDK's object, as the provider sends it, not a {type(given).__name__}")
    return given


def _is_json(text: str) -> bool:
    try:
        codec.decode_foreign(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return False
    return True


class _Chat:
    """OpenAI's chat completions: deltas of the first choice."""

    def __init__(self) -> None:
        self.complete = False
        self.usage: Any = None
        self._message: dict[str, Any] = {"role": "assistant"}
        self._calls: dict[int, dict[str, Any]] = {}
        self._places: dict[int, int] = {}  # of the last call of an index, where it has others

    def add(self, piece: Mapping[str, Any]) -> str:
        self.usage = piece.get("usage") or self.usage
        said = ""
        for choice in piece.get("choices") or ():
            if choice.get("index", 0):
                continue
            delta = choice.get("delta") or {}
            said += next((text for text in (delta.get("content"), delta.get("refusal")) if text and isinstance(text, str)), "")
            for key, value in delta.items():
                if key == "tool_calls":
                    for call in value or ():
                        self._add_call(call)
                elif value is not None:
                    _merge(self._message, {key: value})
            self.complete |= choice.get("finish_reason") is not None
        return said

    def _add_call(self, call: Mapping[str, Any]) -> None:
        """Add a delta to the call of its index; another id there begins another call, as some providers number none."""
        index = len(self._calls) if call.get("index") is None else call["index"]
        place = self._places.get(index, index)
        if call.get("id") and self._calls.get(place, {}).get("id") not in (None, "", call["id"]):
            place = self._places[index] = max(self._calls) + 1
        _merge(self._calls.setdefault(place, {}), call)

    def messages(self) -> list[dict[str, Any]]:
        calls = [
            {key: value for key, value in call.items() if key != "index"}
            for _, call in sorted(self._calls.items())
            if call.get("id") and (self.complete or _is_json(call.get("function", {}).get("arguments", "")))
        ]
        message = {**self._message, **({"tool_calls": calls} if calls else {})}
        message = {key: value for key, value in message.items() if key != "function_call" or self.complete}
        if not any(value for key, value in message.items() if key != "role"):
            return [{"role": message["role"], "content": ""}] if self.complete else []
        return [message if "content" in message else {"role": message.pop("role"), "content": None, **message}]


def _merge(known: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Add a delta to what is known: texts that come in parts are joined, mappings merged, all else is the latest that is said."""
    for key, value in given.items():
        before = known.get(key)
        if isinstance(value, Mapping):
            known[key] = before if isinstance(before, dict) else {}
            _merge(known[key], value)
        elif key in _JOINED and isinstance(value, str) and isinstance(before, str):
            known[key] = before + value
        elif value is not None and (value != "" or before is None):  # some providers repeat an id or a role as an empty text
            known[key] = value


class _Responses:
    """Items of OpenAI's Responses API."""

    def __init__(self) -> None:
        self.complete = False
        self.usage: Any = None
        self._items: dict[int, dict[str, Any]] = {}  # those that are done
        self._texts: dict[int, dict[int, str]] = {}  # of messages that are not: by output and part

    def add(self, piece: Mapping[str, Any]) -> str:
        place = piece.get("output_index", 0)
        match piece.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                parts = self._texts.setdefault(place, {})
                part = piece.get("content_index", 0)
                parts[part] = parts.get(part, "") + piece["delta"]
                return str(piece["delta"])
            case "response.output_item.done":
                self._items[place] = dict(piece["item"])
                self._texts.pop(place, None)
            case "response.completed" | "response.incomplete":
                response = piece["response"]
                self.complete, self.usage = True, response.get("usage")
                if response.get("output"):
                    self._items, self._texts = dict(enumerate(map(dict, response["output"]))), {}
        return ""

    def messages(self) -> list[dict[str, Any]]:
        items = dict(self._items)
        for place, parts in self._texts.items():
            content = [{"type": "output_text", "text": text} for _, text in sorted(parts.items()) if text]
            if content:
                items[place] = {"type": "message", "role": "assistant", "content": content}
        found = [item for _, item in sorted(items.items())]
        if not self.complete:  # a thought without what it led to is refused by the provider
            while found and found[-1].get("type") == "reasoning":
                found.pop()
        return found


class _Anthropic:
    """Blocks of an Anthropic message."""

    def __init__(self) -> None:
        self.complete = False
        self._message: dict[str, Any] = {"role": "assistant"}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}  # of calls, as JSON in parts
        self._open: set[int] = set()

    @property
    def usage(self) -> Any:  # noqa: ANN401 (as the provider says it)
        return self._message.get("usage")

    def add(self, piece: Mapping[str, Any]) -> str:
        place = piece.get("index", 0)
        match piece.get("type"):
            case "message_start":
                self._message = dict(piece["message"])
            case "content_block_start":
                self._blocks[place] = dict(piece["content_block"])
                self._open.add(place)
            case "content_block_delta":
                return self._delta(place, piece["delta"])
            case "content_block_stop":
                self._open.discard(place)
            case "message_delta":
                self._message |= piece.get("delta") or {}
                if given := piece.get("usage"):
                    known = {key: value for key, value in given.items() if value is not None}
                    self._message["usage"] = {**(self._message.get("usage") or {}), **known}
            case "message_stop":
                self.complete = True
        return ""

    def _delta(self, place: int, delta: Mapping[str, Any]) -> str:
        block = self._blocks.setdefault(place, {"type": "text", "text": ""})
        match delta.get("type"):
            case "text_delta":
                block["text"] = block.get("text", "") + delta["text"]
                return str(delta["text"])
            case "input_json_delta":
                self._inputs[place] = self._inputs.get(place, "") + delta["partial_json"]
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta["thinking"]
            case "signature_delta":
                block["signature"] = block.get("signature", "") + delta["signature"]
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        return ""

    def messages(self) -> list[dict[str, Any]]:
        content = []
        for place, block in sorted(self._blocks.items()):
            written = self._inputs.get(place)
            if written is not None and _is_json(written):
                content.append({**block, "input": codec.decode_foreign(written.encode("utf-8", "surrogatepass"))})
            elif block.get("type") == "text" or (written is None and place not in self._open):
                content += [block] if block.get("text", "x") else []
        if not self.complete:  # a thought without what it led to says nothing to anybody
            while content and content[-1].get("type") in ("thinking", "redacted_thinking"):
                content.pop()
        return [{**self._message, "content": content}] if content else []
