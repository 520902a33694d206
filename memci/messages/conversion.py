"""Messages of one wire format in another, by way of the pieces that all formats can say."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, groupby
from typing import Any, TypeAlias

import attrs

from memci.errors import InvalidMessageError
from memci.messages import codec
from memci.messages.formats import anthropic
from memci.messages.formats import format as formats
from memci.messages.formats.reading import read_all
from memci.messages.parts import ANSWERS, CALLS
from memci.messages.validation import Problem

_NOT_OF_AN_ID = re.compile("[^a-zA-Z0-9_-]")
_PDF = "application/pdf"

Value: TypeAlias = dict[str, Any]


@attrs.frozen
class Text:
    """Words."""

    text: str


@attrs.frozen
class Image:
    """A picture: its web address or ``data:`` URL, and the detail to look at it in, in OpenAI's words, where that is said."""

    url: str
    detail: str = ""


@attrs.frozen
class File:
    """A document: its name and ``data:`` URL."""

    name: str
    url: str


@attrs.frozen
class ToolCall:
    """A call; ``free`` where its arguments are any text, not JSON."""

    id: str
    name: str
    arguments: str
    free: bool = False


@attrs.frozen
class ToolResult:
    """A result; ``free`` where its call is, as far as the message tells."""

    id: str
    content: tuple[Text | Image | File, ...]
    failed: bool = False
    free: bool = False


Piece: TypeAlias = Text | Image | File | ToolCall | ToolResult


@attrs.frozen
class Said:
    """What one message says, and where it stood, such as ``messages[3]``."""

    place: str
    role: str
    pieces: tuple[Piece, ...]


class Losses(list[Problem]):
    """What does not come through."""

    def add(self, place: str, what: str) -> None:
        """Note one; the place begins with that of the message."""
        self.append(Problem(place, what))

    def keys(self, place: str, rest: Mapping[Any, Any]) -> None:
        """Note the keys of a message or part that are left when it was read, but for those without a value."""
        names = [key for key, item in rest.items() if item not in (None, [], {})]
        if names:
            self.add(place, f"the keys {', '.join(names)}")

    def in_order(self) -> tuple[Problem, ...]:
        """Return all in the order of the messages."""
        return tuple(sorted(self, key=lambda lost: int(lost.place.partition("]")[0].removeprefix("messages["))))


@attrs.frozen(kw_only=True)
class Conversion:
    """What a conversion made.

    Attributes:
        messages: The messages in the other format, the system prompt among them as messages of role ``system``; a session of
            that format takes them.
        lost: What did not come through, in the order of the messages; empty where nothing was lost.
    """

    messages: list[Value]
    lost: tuple[Problem, ...]


def convert(messages: Iterable[Any], *, from_: str, to: str) -> Conversion:
    """Return messages in another wire format; where it is the same, as they are, copied. O(their size).

    What both formats can say comes through: roles, texts, pictures, PDF files, calls and their results. What only one provider
    understands does not, and is listed in ``lost``: thinking and reasoning, tools that the provider runs itself, citations,
    breakpoints, ids of items, whether a result is an error, and other keys. Keys of a provider's answer, such as Anthropic's
    ``usage``, are no part of what was said: they are left out and not listed. A result that came late stands directly after its
    call. In Anthropic's format ids of calls that it would refuse get others, a message without words is left out, and so is white
    space at the end of a last text of the assistant; where the conversation would begin with the assistant, a short message of
    the user stands before it.

    *messages* are such as ``session.messages()``, or the messages of a call; Anthropic's system prompt as messages of role
    ``system``. The formats are ``openai``, ``responses`` and ``anthropic``; ConfigError for any other. InvalidMessageError where
    the messages are no list, or one is none of its format, or says what the other cannot, such as sound in Anthropic's; ``path``
    is the place.
    """
    wire, _ = formats.get(from_), formats.get(to)
    read = []
    for found in read_all(wire.read, messages):
        if isinstance(found, InvalidMessageError):
            raise found
        read.append(found)
    if from_ == to:
        return Conversion(messages=[message.value() for message in read], lost=())
    parse = {"openai": _of_messages, "responses": _of_items, "anthropic": _of_messages}[from_]
    write = {"openai": _to_chat, "responses": _to_items, "anthropic": _to_anthropic}[to]
    losses = Losses()
    places = [(f"messages[{number}]", wire.sent(message).value()) for number, message in enumerate(read)]
    written = list(write(_answered(parse(places, losses), to), losses))
    return Conversion(messages=written, lost=losses.in_order())


def _answered(conversation: Iterable[Said], to: str) -> list[Said]:
    """Return what was said with each result directly after the message that makes its call, as providers want them. O(its size).

    A result answers the newest call of its id that has none, as in a session. Results of one message's calls keep their order;
    what stands beside a result, and a result without a call, stay where they are. Where calls of one message have one id, as
    items of an answer can, the later ones get others, and their results too; in Anthropic's format, all calls get ids of their
    own, of the characters that it takes.
    """
    turns: list[list[Said]] = []  # what a message says, and the results of its calls
    waiting: dict[str, list[tuple[ToolCall, list[Said]]]] = {}
    seen: set[str] = set()
    for said in conversation:
        turn: list[Said] = []
        kept: list[Piece] = []
        seen = seen if to == "anthropic" else set()
        for piece in said.pieces:
            if isinstance(piece, ToolCall):
                name = _plain_id(piece.id) if to == "anthropic" else piece.id
                names = (name if number == 1 else f"{name}-{number}" for number in count(1))
                call = attrs.evolve(piece, id=next(name for name in names if name not in seen))
                seen.add(call.id)
                waiting.setdefault(piece.id, []).append((call, turn))
                kept.append(call)
            elif isinstance(piece, ToolResult) and waiting.get(piece.id):
                call, of_call = waiting[piece.id].pop()
                of_call.append(Said(said.place, said.role, (attrs.evolve(piece, id=call.id, free=call.free),)))
            else:
                kept.append(piece)
        if kept or not said.pieces:
            turn.append(attrs.evolve(said, pieces=tuple(kept)))
        turns.append(turn)
    return [said for turn in turns for said in turn]


def _of_messages(messages: Iterable[tuple[str, Value]], losses: Losses) -> Iterator[Said]:
    """Yield what each message of OpenAI's chat says, or of Anthropic, whose messages have fewer keys."""
    for place, rest in messages:
        role = rest.pop("role")
        content = tuple(_content(f"{place}.content", rest.pop("content", None), losses))
        if role in ("tool", "function"):
            identity = rest.pop("tool_call_id") if role == "tool" else f"function_{rest.pop('name')}"
            yield Said(place, "user", (ToolResult(identity, _in_result(content)),))
        else:
            refusal = rest.pop("refusal", None)
            yield Said(place, role, (*content, *([Text(refusal)] if refusal else ()), *_calls(place, rest, losses)))
        losses.keys(place, rest)


def _calls(place: str, rest: Value, losses: Losses) -> Iterator[ToolCall]:
    """Yield the calls of a chat message, and take them out of it."""
    for position, call in enumerate(rest.pop("tool_calls", None) or ()):
        at = f"{place}.tool_calls[{position}]"
        match call:
            case {"id": str(identity), "function": dict(given), **others}:
                yield ToolCall(identity, given["name"], given.get("arguments") or "{}")
            case {"id": str(identity), "custom": dict(given), **others}:
                yield ToolCall(identity, str(given.get("name")), str(given.get("input", "")), free=True)
            case _:
                raise _unsayable(at, f"a call of type {call.get('type')}")
        others.pop("type", None)
        losses.keys(at, others)
    legacy = rest.pop("function_call", None)
    if isinstance(legacy, dict):
        yield ToolCall(f"function_{legacy.get('name')}", str(legacy.get("name")), str(legacy.get("arguments") or "{}"))


def _of_items(items: Iterable[tuple[str, Value]], losses: Losses) -> Iterator[Said]:
    """Yield what is said in items: the model's that follow each other as one message."""
    every = (said for place, value in items for said in _of_item(place, value, losses))
    for role, group in groupby(every, key=lambda said: said.role):
        found = list(group)
        if role == "assistant":
            yield Said(found[0].place, role, tuple(piece for said in found for piece in said.pieces))
        else:
            yield from found


def _of_item(place: str, value: Value, losses: Losses) -> Iterator[Said]:
    kind = value.pop("type", "message")
    free = kind.startswith("custom")
    match kind:
        case "message":
            yield Said(place, value.pop("role"), tuple(_content(f"{place}.content", value.pop("content"), losses)))
        case "function_call" | "custom_tool_call":
            arguments = value.pop("input" if free else "arguments")
            yield Said(place, "assistant", (ToolCall(value.pop("call_id"), value.pop("name"), arguments, free=free),))
        case "function_call_output" | "custom_tool_call_output":
            found = _in_result(_content(f"{place}.output", value.pop("output"), losses))
            yield Said(place, "user", (ToolResult(value.pop("call_id"), found, free=free),))
        case _ if kind in (*CALLS, *ANSWERS) and value.get("execution") != "server":
            raise _unsayable(place, f"an item of type {kind}")
        case _:
            losses.add(place, "reasoning" if kind == "reasoning" else f"an item of type {kind}, which belongs to the provider")
            return
    value.pop("status", None)
    losses.keys(place, value)


def _content(place: str, content: object, losses: Losses) -> Iterator[Piece]:
    """Yield what a content says, in whatever format."""
    if isinstance(content, str):
        yield Text(content)
    for position, part in enumerate(content if isinstance(content, list) else ()):
        at, kind = f"{place}[{position}]", part["type"]
        if kind in anthropic.THINKING or kind == "reasoning":
            losses.add(at, "thinking")
        elif anthropic.server_call(part):
            losses.add(at, f"a block of type {kind}, which belongs to the provider")
        else:
            yield _piece(at, part, losses)


def _piece(place: str, part: Value, losses: Losses) -> Piece:
    piece: Piece
    rest: Value
    match part:
        case {"type": "tool_use", "id": identity, "name": str(name), "input": given, **rest}:
            piece = ToolCall(identity, name, codec.encode(given).decode())
        case {"type": "tool_result", "tool_use_id": identity, **rest}:
            found = _content(f"{place}.content", rest.pop("content", None), losses)
            piece = ToolResult(identity, _in_result(found), failed=bool(rest.pop("is_error", False)))
        case {"image_url": dict(held), **others} | {"file": dict(held), **others}:
            piece, rest = _spoken(place, {**held, **others})
        case _:
            piece, rest = _spoken(place, part)
    losses.keys(place, rest)
    return piece


def _spoken(place: str, part: Value) -> tuple[Text | Image | File, Value]:
    """Return a text, picture or file, and the keys of its part that were not read."""
    match part:
        case {"type": "text" | "input_text" | "output_text", "text": str(text), **rest} | {
            "type": "refusal",
            "refusal": str(text),
            **rest,
        }:
            return Text(text), rest
        case {"type": "document", "source": {"type": "text", "data": str(text)}, **rest}:
            return Text(text), rest
        case {"type": "image", "source": {"type": "base64", "media_type": str(media_type), "data": str(data)}, **rest}:
            return Image(_data_url(media_type, data)), rest
        case (
            {"type": "image", "source": {"type": "url", "url": str(url)}, **rest}
            | {"type": "image_url", "url": str(url), **rest}
            | {"type": "input_image", "image_url": str(url), **rest}
        ):
            detail = rest.pop("detail", "auto")
            return Image(url, detail if isinstance(detail, str) and detail != "auto" else ""), rest
        case {"type": "document", "source": {"type": "base64", "data": str(data)}, **rest} | {
            "type": "file" | "input_file",
            "file_data": str(data),
            **rest,
        }:
            name = rest.pop("title" if part["type"] == "document" else "filename", None)
            return File(str(name or "document.pdf"), data if "," in data else _data_url(_PDF, data)), rest
    raise _unsayable(place, f"a part of type {part['type']}")


def _to_chat(conversation: Iterable[Said], losses: Losses) -> Iterator[Value]:
    """Yield the chat messages that say it; results come as messages of their own, before the rest."""
    for said in conversation:
        content: list[Value] = []
        calls: list[Value] = []
        for piece in said.pieces:
            match piece:
                case ToolResult():
                    words = _words(said.place, piece, losses)
                    if words is None:
                        raise _unsayable(said.place, "a picture or file in a result")
                    yield {"role": "tool", "tool_call_id": piece.id, "content": words}
                case ToolCall(free=True):
                    calls.append({"id": piece.id, "type": "custom", "custom": {"name": piece.name, "input": piece.arguments}})
                case ToolCall():
                    function = {"name": piece.name, "arguments": piece.arguments}
                    calls.append({"id": piece.id, "type": "function", "function": function})
                case _:
                    content.append(_chat_part(piece))
        if content or calls:
            yield {"role": said.role, "content": _short(content) or None, **({"tool_calls": calls} if calls else {})}


def _chat_part(piece: Text | Image | File) -> Value:
    match piece:
        case Text():
            return {"type": "text", "text": piece.text}
        case Image():
            return {"type": "image_url", "image_url": {"url": piece.url, **({"detail": piece.detail} if piece.detail else {})}}
        case File():
            return {"type": "file", "file": {"filename": piece.name, "file_data": piece.url}}


def _to_items(conversation: Iterable[Said], losses: Losses) -> Iterator[Value]:
    for said in conversation:
        spoken: list[Value] = []
        for piece in said.pieces:
            kind, given = ("custom_tool_call", "input") if getattr(piece, "free", False) else ("function_call", "arguments")
            match piece:
                case ToolResult():
                    output = _words(said.place, piece, losses)
                    parts = list(map(_input_part, piece.content))
                    yield {"type": f"{kind}_output", "call_id": piece.id, "output": parts if output is None else output}
                case ToolCall():
                    yield {"type": kind, "call_id": piece.id, "name": piece.name, given: piece.arguments}
                case Text() if said.role == "assistant":
                    yield {"type": "message", "role": "assistant", "content": piece.text}
                case _ if said.role == "assistant":
                    raise _unsayable(said.place, "a picture or file of the assistant")
                case _:
                    spoken.append(_input_part(piece))
        if spoken:
            yield {"type": "message", "role": said.role, "content": _short(spoken)}


def _input_part(piece: Text | Image | File) -> Value:
    match piece:
        case Text():
            return {"type": "input_text", "text": piece.text}
        case Image():
            return {"type": "input_image", "image_url": piece.url, "detail": piece.detail or "auto"}
        case File():
            return {"type": "input_file", "filename": piece.name, "file_data": piece.url}


def _to_anthropic(conversation: Sequence[Said], losses: Losses) -> list[Value]:
    """Return the messages that say it, the first one after the system prompt the user's."""
    messages = list(_joined(conversation, losses))
    if messages and (last := anthropic.ended_value(messages[-1])) is not messages[-1]:
        place = next(said.place for said in reversed(conversation) if said.role == "assistant")
        losses.add(place, "white space at the end, with which the call would be refused")
        messages[-1] = last
    begin = next((number for number, message in enumerate(messages) if message["role"] != "system"), len(messages))
    opening = anthropic.opening(anthropic.facts(messages[begin])) if begin < len(messages) else None
    return messages if opening is None else [*messages[:begin], opening.value(), *messages[begin:]]


def _joined(conversation: Iterable[Said], losses: Losses) -> Iterator[Value]:
    results: list[Value] = []
    for said in conversation:
        blocks = [block for piece in said.pieces for block in _blocks(said.place, piece, losses)]
        results += [block for block in blocks if block["type"] == "tool_result"]
        others = [block for block in blocks if block["type"] != "tool_result"]
        if results and others:
            yield {"role": "user", "content": results}
            results = []
        if others:
            yield {"role": "system" if said.role == "developer" else said.role, "content": _short(others)}
        elif not blocks:
            losses.add(said.place, "a message without words")
    if results:
        yield {"role": "user", "content": results}


def _blocks(place: str, piece: Piece, losses: Losses) -> Iterator[Value]:
    """Yield the block that says a piece, which is none for an empty text."""
    match piece:
        case Text():
            if piece.text.strip():
                yield {"type": "text", "text": piece.text}
        case Image():
            if piece.detail:
                losses.add(place, f"that the model looks at a picture with the detail {piece.detail}")
            yield {"type": "image", "source": _base64(piece.url) or {"type": "url", "url": piece.url}}
        case File():
            source = _base64(piece.url) or {"media_type": "unknown"}
            if source["media_type"] != _PDF:
                raise _unsayable(place, f"a file of type {source['media_type']}")
            yield {"type": "document", "source": source, "title": piece.name}
        case ToolCall():
            yield {"type": "tool_use", "id": piece.id, "name": piece.name, "input": _input(place, piece, losses)}
        case ToolResult():
            inner = [block for each in piece.content for block in _blocks(place, each, losses)]
            failed = {"is_error": True} if piece.failed else {}
            yield {"type": "tool_result", "tool_use_id": _plain_id(piece.id), "content": _short(inner), **failed}


def _input(place: str, call: ToolCall, losses: Losses) -> Value:
    if call.free:
        losses.add(place, f"that {call.name} takes free text, which stands under 'input' now")
        return {"input": call.arguments}
    try:
        value = codec.decode_foreign((call.arguments or "{}").encode("utf-8", "surrogatepass"))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise _unsayable(place, f"a call of {call.name} whose arguments are no JSON object")
    return value


def _short(parts: list[Value]) -> str | list[Value]:
    """Return the content that these parts are: the text of one that stands alone, and no text for none."""
    return parts[0].get("text", parts) if len(parts) == 1 else parts or ""


def _words(place: str, result: ToolResult, losses: Losses) -> str | None:
    """Return a result as a text, as OpenAI takes it; ``None`` where there is more in it."""
    if result.failed:
        losses.add(place, "that the result is an error")
    words = [piece.text for piece in result.content if isinstance(piece, Text)]
    return "\n".join(words) if len(words) == len(result.content) else None


def _in_result(pieces: Iterable[Piece]) -> tuple[Text | Image | File, ...]:
    return tuple(piece for piece in pieces if isinstance(piece, Text | Image | File))


def _plain_id(identity: str) -> str:
    """Return an id of the characters that Anthropic takes: letters, digits, _ and -."""
    return _NOT_OF_AN_ID.sub("_", identity) or "call"


def _data_url(media_type: str, data: str) -> str:
    return f"data:{media_type};base64,{data}"


def _base64(url: str) -> Value | None:
    """Return a ``data:`` URL as a source of Anthropic's blocks; ``None`` for any other address."""
    head, _, data = url.partition(",")
    if not (head.startswith("data:") and head.endswith(";base64")):
        return None
    return {"type": "base64", "media_type": head.removeprefix("data:").removesuffix(";base64"), "data": data}


def _unsayable(place: str, what: str) -> InvalidMessageError:
    message = f"{what} cannot be said in the other format: leave it out, or put it in words, before converting"
    return InvalidMessageError(message, path=place)
