"""Messages of one wire format in another, by way of parts and items as OpenAI's Responses API has them."""

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
_PLACE = "place"  # a key that no message has

Value: TypeAlias = dict[str, Any]


@attrs.frozen
class Said:
    """What one message says, and where it stood, such as ``messages[3]``.

    ``pieces`` are parts of type ``input_text``, ``input_image`` (``image_url``, web or ``data:``; ``detail``) and ``input_file``
    (``filename``, ``file_data``, a ``data:`` URL), and calls and their outputs as items; a call of a tool that takes free text is
    custom. An output is a list of parts; ``failed`` is set where the tool failed.
    """

    place: str
    role: str
    pieces: Sequence[Value]


@attrs.frozen(kw_only=True)
class Conversion:
    """What a conversion made; a session of the other format takes the messages, the system prompt as those of role ``system``."""

    messages: list[Value]
    lost: tuple[Problem, ...]  # what did not come through, in the order of the messages; empty where nothing was lost
    origins: tuple[int, ...]  # of each message, the number of the one that it was made of, the first one where there are several


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
        return Conversion(messages=[message.value() for message in read], lost=(), origins=tuple(range(len(read))))
    parse = {"openai": _of_messages, "responses": _of_items, "anthropic": _of_messages}[from_]
    write = {"openai": _to_chat, "responses": _to_items, "anthropic": _to_anthropic}[to]
    losses: list[Problem] = []
    values = [(f"messages[{number}]", wire.sent(message).value()) for number, message in enumerate(read)]
    written = list(write(_answered(parse(values, losses), to), losses))
    losses.sort(key=lambda lost: _number(lost.place))
    origins = tuple(_number(place) for place, _ in written)
    return Conversion(messages=[message for _, message in written], lost=tuple(losses), origins=origins)


def _number(place: str) -> int:
    return int(place.partition("]")[0].removeprefix("messages["))


def _answered(conversation: Iterable[Said], to: str) -> list[Said]:
    """Return what was said with each result directly after its call's message; one without a call stays. O(its size).

    Where calls of one message have one id, as items of an answer can, the later ones get others, and their results too; in
    Anthropic's format, all calls get ids of their own, of the characters that it takes.
    """
    turns: list[list[Said]] = []  # what a message says, and the results of its calls
    waiting: dict[str, list[tuple[Value, list[Said]]]] = {}
    seen: set[str] = set()
    for said in conversation:
        turn: list[Said] = []
        kept: list[Value] = []
        seen = seen if to == "anthropic" else set()
        for piece in said.pieces:
            if piece["type"] in CALLS:
                name = _plain_id(piece["call_id"]) if to == "anthropic" else piece["call_id"]
                names = (name if number == 1 else f"{name}-{number}" for number in count(1))
                call = {**piece, "call_id": next(name for name in names if name not in seen)}
                seen.add(call["call_id"])
                waiting.setdefault(piece["call_id"], []).append((call, turn))
                kept.append(call)
            elif piece["type"] in ANSWERS and waiting.get(piece["call_id"]):
                call, of_call = waiting[piece["call_id"]].pop()
                answer = {**piece, "type": CALLS[call["type"]], "call_id": call["call_id"]}
                of_call.append(Said(said.place, said.role, [answer]))
            else:
                kept.append(piece)
        if kept or not said.pieces:
            turn.append(attrs.evolve(said, pieces=kept))
        turns.append(turn)
    return [said for turn in turns for said in turn]


def _of_messages(messages: Iterable[tuple[str, Value]], losses: list[Problem]) -> Iterator[Said]:
    """Yield what each message of OpenAI's chat says, or of Anthropic, whose messages have fewer keys."""
    for place, rest in messages:
        role = rest.pop("role")
        content = list(_content(f"{place}.content", rest.pop("content", None), losses))
        if role in ("tool", "function"):
            identity = rest.pop("tool_call_id") if role == "tool" else f"function_{rest.pop('name')}"
            yield Said(place, "user", [_output(identity, content)])
        else:
            refusal = rest.pop("refusal", None)
            spoken = [*content, {"type": "input_text", "text": refusal}] if refusal else content
            yield Said(place, role, [*spoken, *_calls(place, rest, losses)])
        _note_keys(place, rest, losses)


def _calls(place: str, rest: Value, losses: list[Problem]) -> Iterator[Value]:
    """Yield the calls of a chat message, and take them out of it."""
    for position, call in enumerate(rest.pop("tool_calls", None) or ()):
        at = f"{place}.tool_calls[{position}]"
        match call:
            case {"id": str(identity), "function": dict(given), **others}:
                yield _call(identity, given["name"], given.get("arguments"))
            case {"id": str(identity), "custom": dict(given), **others}:
                name, words = str(given.get("name")), str(given.get("input", ""))
                yield {"type": "custom_tool_call", "call_id": identity, "name": name, "input": words}
            case _:
                raise _unsayable(at, f"a call of type {call.get('type')}")
        others.pop("type", None)
        _note_keys(at, others, losses)
    legacy = rest.pop("function_call", None)
    if isinstance(legacy, dict):
        yield _call(f"function_{legacy.get('name')}", str(legacy.get("name")), legacy.get("arguments"))


def _call(identity: str, name: str, arguments: str | None) -> Value:
    return {"type": "function_call", "call_id": identity, "name": name, "arguments": arguments or "{}"}


def _output(identity: str, pieces: Iterable[Value], *, failed: bool = False) -> Value:
    spoken = [piece for piece in pieces if piece["type"].startswith("input_")]
    return {"type": "function_call_output", "call_id": identity, "output": spoken, "failed": failed}


def _of_items(items: Iterable[tuple[str, Value]], losses: list[Problem]) -> Iterator[Said]:
    """Yield what is said in items: the model's that follow each other as one message."""
    every = (said for place, value in items for said in _of_item(place, value, losses))
    for role, group in groupby(every, key=lambda said: said.role):
        found = list(group)
        if role == "assistant":
            yield Said(found[0].place, role, [piece for said in found for piece in said.pieces])
        else:
            yield from found


def _of_item(place: str, value: Value, losses: list[Problem]) -> Iterator[Said]:
    kind = value.pop("type", "message")
    match kind:
        case "message":
            yield Said(place, value.pop("role"), list(_content(f"{place}.content", value.pop("content"), losses)))
        case "function_call" | "custom_tool_call":
            call = {key: value.pop(key) for key in ("call_id", "name", "input" if kind.startswith("custom") else "arguments")}
            yield Said(place, "assistant", [{"type": kind, **call}])
        case "function_call_output" | "custom_tool_call_output":
            found = _content(f"{place}.output", value.pop("output"), losses)
            yield Said(place, "user", [{**_output(value.pop("call_id"), found), "type": kind}])
        case _ if kind in (*CALLS, *ANSWERS) and value.get("execution") != "server":
            raise _unsayable(place, f"an item of type {kind}")
        case _:
            losses.append(
                Problem(place, "reasoning" if kind == "reasoning" else f"an item of type {kind}, which belongs to the provider")
            )
            return
    value.pop("status", None)
    _note_keys(place, value, losses)


def _content(place: str, content: object, losses: list[Problem]) -> Iterator[Value]:
    """Yield what a content says, in whatever format."""
    if isinstance(content, str):
        yield {"type": "input_text", "text": content}
    for position, part in enumerate(content if isinstance(content, list) else ()):
        at, kind = f"{place}[{position}]", part["type"]
        if kind in anthropic.THINKING or kind == "reasoning":
            losses.append(Problem(at, "thinking"))
        elif anthropic.server_call(part):
            losses.append(Problem(at, f"a block of type {kind}, which belongs to the provider"))
        else:
            yield _piece(at, part, losses)


def _piece(place: str, part: Value, losses: list[Problem]) -> Value:
    rest: Value
    match part:
        case {"type": "tool_use", "id": identity, "name": str(name), "input": given, **rest}:
            piece = _call(identity, name, codec.encode(given).decode())
        case {"type": "tool_result", "tool_use_id": identity, **rest}:
            found = _content(f"{place}.content", rest.pop("content", None), losses)
            piece = _output(identity, found, failed=bool(rest.pop("is_error", False)))
        case {"image_url": dict(held), **others} | {"file": dict(held), **others}:
            piece, rest = _spoken(place, {**held, **others})
        case _:
            piece, rest = _spoken(place, part)
    _note_keys(place, rest, losses)
    return piece


def _note_keys(place: str, rest: Mapping[Any, Any], losses: list[Problem]) -> None:
    """Note the keys of a message or part that are left when it was read, but for those without a value."""
    names = [key for key, item in rest.items() if item not in (None, [], {})]
    if names:
        losses.append(Problem(place, f"the keys {', '.join(names)}"))


def _spoken(place: str, part: Value) -> tuple[Value, Value]:
    """Return a text, picture or file, and the keys of its part that were not read."""
    match part:
        case (
            {"type": "text" | "input_text" | "output_text", "text": str(text), **rest}
            | {"type": "refusal", "refusal": str(text), **rest}
            | {"type": "document", "source": {"type": "text", "data": str(text)}, **rest}
        ):
            return {"type": "input_text", "text": text}, rest
        case {"type": "image", "source": {"type": "base64", "media_type": str(media_type), "data": str(data)}, **rest}:
            return {"type": "input_image", "image_url": f"data:{media_type};base64,{data}", "detail": "auto"}, rest
        case (
            {"type": "image", "source": {"type": "url", "url": str(url)}, **rest}
            | {"type": "image_url", "url": str(url), **rest}
            | {"type": "input_image", "image_url": str(url), **rest}
        ):
            return {"type": "input_image", "image_url": url, "detail": rest.pop("detail", None) or "auto"}, rest
        case {"type": "document", "source": {"type": "base64", "data": str(data)}, **rest} | {
            "type": "file" | "input_file",
            "file_data": str(data),
            **rest,
        }:
            name = rest.pop("title" if part["type"] == "document" else "filename", None)
            url = data if "," in data else f"data:{_PDF};base64,{data}"
            return {"type": "input_file", "filename": str(name or "document.pdf"), "file_data": url}, rest
    raise _unsayable(place, f"a part of type {part['type']}")


def _to_chat(conversation: Iterable[Said], losses: list[Problem]) -> Iterator[tuple[str, Value]]:
    """Yield the chat messages that say it, each with its place; results come as messages of their own, before the rest."""
    for said in conversation:
        content: list[Value] = []
        calls: list[Value] = []
        for piece in said.pieces:
            match piece:
                case {"output": _, "call_id": identity}:
                    words = _words(said.place, piece, losses)
                    if not isinstance(words, str):
                        raise _unsayable(said.place, "a picture or file in a result")
                    yield said.place, {"role": "tool", "tool_call_id": identity, "content": words}
                case {"call_id": identity, "type": kind, **function}:
                    kind = "custom" if kind.startswith("custom") else "function"
                    calls.append({"id": identity, "type": kind, kind: function})
                case {"text": text}:
                    content.append({"type": "text", "text": text})
                case {"image_url": url, "detail": detail}:
                    image = {"url": url, "detail": detail} if detail != "auto" else {"url": url}
                    content.append({"type": "image_url", "image_url": image})
                case {"filename": name, "file_data": url}:
                    content.append({"type": "file", "file": {"filename": name, "file_data": url}})
        if content or calls:
            made = {"tool_calls": calls} if calls else {}
            yield said.place, {"role": said.role, "content": _short(content) if content else None, **made}


def _to_items(conversation: Iterable[Said], losses: list[Problem]) -> Iterator[tuple[str, Value]]:
    for said in conversation:
        spoken: list[Value] = []
        for piece in said.pieces:
            if "output" in piece:
                words = _words(said.place, piece, losses)
                yield said.place, {"type": piece["type"], "call_id": piece["call_id"], "output": words}
            elif piece["type"] in CALLS:
                yield said.place, piece
            elif said.role != "assistant":
                spoken.append(piece)
            elif piece["type"] == "input_text":
                yield said.place, {"type": "message", "role": "assistant", "content": piece["text"]}
            else:
                raise _unsayable(said.place, "a picture or file of the assistant")
        if spoken:
            yield said.place, {"type": "message", "role": said.role, "content": _short(spoken)}


def _to_anthropic(conversation: Sequence[Said], losses: list[Problem]) -> list[tuple[str, Value]]:
    """Return the messages that say it, each with its place, the first one after the system prompt the user's."""
    messages = anthropic.joined(_written(conversation, losses))
    places: list[str] = [message.pop(_PLACE) for message in messages]
    if messages and (last := anthropic.trimmed(anthropic.cleaned(messages[-1]))) is not messages[-1]:
        place = next(said.place for said in reversed(conversation) if said.role == "assistant")
        losses.append(Problem(place, "white space at the end, with which the call would be refused"))
        messages[-1] = last
    begin = next((number for number, message in enumerate(messages) if message["role"] != "system"), len(messages))
    opening = anthropic.opening(anthropic.facts(messages[begin])) if begin < len(messages) else None
    written = list(zip(places, messages, strict=True))
    return written if opening is None else [*written[:begin], (places[begin], opening.value()), *written[begin:]]


def _written(conversation: Iterable[Said], losses: list[Problem]) -> Iterator[Value]:
    """Yield the messages, each with its place under a key of its own, which stays where several are joined."""
    for said in conversation:
        blocks = [block for piece in said.pieces for block in _blocks(said.place, piece, losses)]
        if blocks:
            role = "system" if said.role == "developer" else said.role
            yield {"role": role, "content": _short(blocks), _PLACE: said.place}
        else:
            losses.append(Problem(said.place, "a message without words"))


def _blocks(place: str, piece: Value, losses: list[Problem]) -> Iterator[Value]:
    """Yield the block that says a piece, which is none for an empty text."""
    match piece:
        case {"text": text}:
            if text.strip():
                yield {"type": "text", "text": text}
        case {"image_url": url, "detail": detail}:
            if detail != "auto":
                losses.append(Problem(place, f"that the model looks at a picture with the detail {detail}"))
            yield {"type": "image", "source": _base64(url) or {"type": "url", "url": url}}
        case {"filename": name, "file_data": url}:
            source = _base64(url) or {"media_type": "unknown"}
            if source["media_type"] != _PDF:
                raise _unsayable(place, f"a file of type {source['media_type']}")
            yield {"type": "document", "source": source, "title": name}
        case {"call_id": identity, "output": output}:
            inner = [block for each in output for block in _blocks(place, each, losses)]
            failed = {"is_error": True} if piece["failed"] else {}
            yield {"type": "tool_result", "tool_use_id": _plain_id(identity), "content": _short(inner), **failed}
        case {"call_id": identity, "name": name, "input": given}:
            losses.append(Problem(place, f"that {name} takes free text, which stands under 'input' now"))
            yield {"type": "tool_use", "id": identity, "name": name, "input": {"input": given}}
        case {"call_id": identity, "name": name, "arguments": given}:
            yield {"type": "tool_use", "id": identity, "name": name, "input": _input(place, name, given)}


def _input(place: str, name: str, arguments: str) -> Value:
    try:
        value = codec.decode_foreign((arguments or "{}").encode("utf-8", "surrogatepass"))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise _unsayable(place, f"a call of {name} whose arguments are no JSON object")
    return value


def _short(parts: list[Value]) -> str | list[Value]:
    """Return the content that these parts are: the text of one that stands alone, and no text for none."""
    return parts[0].get("text", parts) if len(parts) == 1 else parts or ""


def _words(place: str, result: Value, losses: list[Problem]) -> str | list[Value]:
    """Return the output of a result as OpenAI takes it: as a text, or the parts where there is more in it."""
    if result["failed"]:
        losses.append(Problem(place, "that the result is an error"))
    words = [piece["text"] for piece in result["output"] if piece["type"] == "input_text"]
    return "\n".join(words) if len(words) == len(result["output"]) else result["output"]


def _plain_id(identity: str) -> str:
    """Return an id of the characters that Anthropic takes: letters, digits, _ and -."""
    return _NOT_OF_AN_ID.sub("_", identity) or "call"


def _base64(url: str) -> Value | None:
    """Return a ``data:`` URL as a source of Anthropic's blocks; ``None`` for any other address."""
    head, _, data = url.partition(",")
    if not (head.startswith("data:") and head.endswith(";base64")):
        return None
    return {"type": "base64", "media_type": head.removeprefix("data:").removesuffix(";base64"), "data": data}


def _unsayable(place: str, what: str) -> InvalidMessageError:
    message = f"{what} cannot be said in the other format: leave it out, or put it in words, before converting"
    return InvalidMessageError(message, path=place)
