"""Anthropic's messages in the form that all formats share, and back."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import attrs

from memci.messages import codec
from memci.messages.conversion.neutral import File, Image, Losses, Piece, Said, Text, ToolCall, ToolResult, plain, unsayable
from memci.messages.formats import anthropic

_NOT_OF_AN_ID = re.compile("[^a-zA-Z0-9_-]")
_PDF = "application/pdf"
_BLOCK_KEYS = ("type", "text", "source", "title", "id", "name", "input", "tool_use_id", "content", "is_error")


def parse(messages: Sequence[dict[str, Any]], losses: Losses) -> Iterator[Said]:
    """Yield what each message says."""
    for number, value in enumerate(messages):
        place = f"messages[{number}]"
        losses.keys(place, value, ("role", "content"))
        yield Said(place, value["role"], tuple(_content(f"{place}.content", value["content"], losses)))


def write(conversation: Iterable[Said], losses: Losses) -> Iterator[dict[str, Any]]:
    """Return the messages that say it, the first one after the system prompt the user's.

    Results that follow each other are one message; empty texts are left out, and white space at the end of the last text where it
    is the assistant's.
    """
    everything = list(conversation)
    messages = list(_messages(everything, losses))
    if messages and (last := anthropic.ended_value(messages[-1])) is not messages[-1]:
        place = next(said.place for said in reversed(everything) if said.role == "assistant")
        losses.add(place, "white space at the end, with which the call would be refused")
        messages[-1] = last
    begin = next((number for number, message in enumerate(messages) if message["role"] != "system"), len(messages))
    opening = anthropic.opening(anthropic.facts(messages[begin])) if begin < len(messages) else None
    return iter(messages if opening is None else [*messages[:begin], opening.value(), *messages[begin:]])


def _messages(conversation: Iterable[Said], losses: Losses) -> Iterator[dict[str, Any]]:
    names = _Names()
    results: list[dict[str, Any]] = []
    for said in conversation:
        blocks = [block for piece in said.pieces for block in _blocks(said, piece, names, losses)]
        results += [block for block in blocks if block["type"] == "tool_result"]
        others = [block for block in blocks if block["type"] != "tool_result"]
        if results and others:
            yield {"role": "user", "content": results}
            results = []
        if others:
            yield {"role": "system" if said.role == "developer" else said.role, "content": _plain(others)}
        elif not blocks:
            losses.add(said.place, "a message without words")
    if results:
        yield {"role": "user", "content": results}


@attrs.define
class _Names:
    """Ids as this format takes them: letters, digits, _ and -, and each for one call."""

    _seen: set[str] = attrs.field(factory=set)
    _given: dict[str, str] = attrs.field(factory=dict)

    def make(self, identity: str) -> str:
        plain = _NOT_OF_AN_ID.sub("_", identity) or "call"
        name = next(each for number in count(1) if (each := plain if number == 1 else f"{plain}-{number}") not in self._seen)
        self._seen.add(name)
        self._given[identity] = name
        return name

    def get(self, identity: str) -> str:
        return self._given.get(identity) or self.make(identity)


def _content(place: str, content: object, losses: Losses) -> Iterator[Piece]:
    if isinstance(content, str):
        yield Text(content)
    for position, part in enumerate(content if isinstance(content, list) else ()):
        yield from _pieces(f"{place}[{position}]", part, losses)


def _pieces(place: str, part: dict[str, Any], losses: Losses) -> Iterator[Piece]:
    kind = part["type"]
    if kind in anthropic.THINKING:
        losses.add(place, "thinking")
        return
    if kind in ("server_tool_use", "mcp_tool_use") or kind.endswith("_tool_result"):
        losses.add(place, f"a block of type {kind}, which belongs to the provider")
        return
    losses.keys(place, part, _BLOCK_KEYS)
    match part:
        case {"type": "text", "text": str(text)}:
            yield Text(text)
        case {"type": "image", "source": {"type": "base64", "media_type": str(media_type), "data": str(data)}}:
            yield Image(media_type=media_type, data=data)
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            yield Image(url=url)
        case {"type": "document"}:
            yield _document(place, part, losses)
        case {"type": "tool_use"}:
            yield ToolCall(part["id"], part["name"], codec.encode(part["input"]).decode())
        case {"type": "tool_result"}:
            found = _content(f"{place}.content", part.get("content"), losses)
            yield ToolResult(part["tool_use_id"], plain(found), failed=bool(part.get("is_error")))
        case _:
            raise unsayable(place, f"a block of type {kind}")


def _document(place: str, part: dict[str, Any], losses: Losses) -> Piece:
    match part:
        case {"source": {"type": "text", "data": str(text)}, **rest}:
            if rest.get("title"):
                losses.add(place, "the title of a text")
            return Text(text)
        case {"source": {"type": "base64", "data": str(data)}, **rest}:
            return File(str(rest.get("title") or "document.pdf"), _PDF, data)
    raise unsayable(place, "a document that is not there itself")


def _blocks(said: Said, piece: Piece, names: _Names, losses: Losses) -> Iterator[dict[str, Any]]:
    if isinstance(piece, Image) and piece.detail:
        losses.add(said.place, f"that the model looks at a picture with the detail {piece.detail}")
    match piece:
        case Text():
            if piece.text.strip():
                yield {"type": "text", "text": piece.text}
        case Image(url=""):
            yield {"type": "image", "source": {"type": "base64", "media_type": piece.media_type, "data": piece.data}}
        case Image():
            yield {"type": "image", "source": {"type": "url", "url": piece.url}}
        case File():
            if piece.media_type != _PDF:
                raise unsayable(said.place, f"a file of type {piece.media_type}")
            source = {"type": "base64", "media_type": _PDF, "data": piece.data}
            yield {"type": "document", "source": source, "title": piece.name}
        case ToolCall():
            yield {"type": "tool_use", "id": names.make(piece.id), "name": piece.name, "input": _input(said.place, piece, losses)}
        case ToolResult():
            inner = [block for each in piece.content for block in _blocks(said, each, names, losses)]
            failed = {"is_error": True} if piece.failed else {}
            yield {"type": "tool_result", "tool_use_id": names.get(piece.id), "content": _plain(inner), **failed}


def _plain(blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if not blocks:
        return ""
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks


def _input(place: str, call: ToolCall, losses: Losses) -> dict[str, Any]:
    if call.free:
        losses.add(place, f"that {call.name} takes free text, which stands under 'input' now")
        return {"input": call.arguments}
    try:
        value = codec.decode_foreign((call.arguments or "{}").encode("utf-8", "surrogatepass"))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise unsayable(place, f"a call of {call.name} whose arguments are no JSON object")
    return value
