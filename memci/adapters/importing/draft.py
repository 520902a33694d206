"""A conversation while it is read from elsewhere: its messages are checked, paired with their results, and converted."""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeAlias

import attrs

from memci.adapters.importing.imported import Imported
from memci.chapters.dates import utc_text
from memci.errors import InvalidMessageError, shown
from memci.messages import codec
from memci.messages.conversion import convert
from memci.messages.formats import format as formats
from memci.messages.message import Message
from memci.messages.validation import Problem

Value: TypeAlias = dict[str, Any]

_MENDING = "mend it or take it out of the file, and import again"
_OF_TOOLS = frozenset({"tool_use", "tool_result"})


def refuse(place: str, reason: str) -> NoReturn:
    """Raise the error of a source that cannot be read, at a place in it."""
    message = f"{reason}: {_MENDING}"
    raise InvalidMessageError(message, path=place)


def mapping(value: object, place: str) -> Mapping[str, Any]:
    """Return a value that has to be a JSON object."""
    if not isinstance(value, dict):
        refuse(place, f"{shown(value)} stands where a JSON object belongs")
    return value


def listed(value: object, place: str) -> list[Any]:
    """Return a value that has to be a list, or is not there."""
    if not isinstance(value, list | None):
        refuse(place, f"{shown(value)} stands where a list belongs")
    return value or []


def mappings(value: object, place: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield each of a list that has to hold JSON objects, or is not there, with its place."""
    for number, each in enumerate(listed(value, place)):
        at = f"{place}[{number}]"
        yield mapping(each, at), at


def conversations_of(document: object) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the conversations of an export, which is a list of them, or one, each with its place."""
    return mappings(document if isinstance(document, list) else [document], "conversations")


def text(value: object, place: str) -> str:
    """Return a value that has to be text, or is not there."""
    if not isinstance(value, str | None):
        refuse(place, f"{shown(value)} stands where text belongs")
    return value or ""


def time(value: object, place: str) -> str | None:
    """Return a time, as ISO 8601 text or in seconds since 1970, as ISO 8601 in UTC; ``None`` where it is not there."""
    if value is None:
        return None
    try:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return utc_text(datetime.fromtimestamp(value, UTC) if is_number else value)  # type: ignore[arg-type]  # as it is one
    except (InvalidMessageError, OverflowError, OSError, ValueError):
        refuse(place, f"{shown(value)} is no time")


def several(number: int, noun: str) -> str:
    """Return how many there are, in words: ``1 line``, ``2 lines``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def identity(*candidates: object) -> str:
    """Return the first of several that can be a session's id."""
    return next(each for each in candidates if isinstance(each, str) and each)


@attrs.frozen
class _Line:
    value: Value
    at: str | None
    place: str


@attrs.define(eq=False)
class Draft:
    """Messages of one wire format, oldest first, with times and places in the source, and what was lost of them."""

    format: str
    lost: list[Problem] = attrs.field(factory=list)
    _lines: list[_Line] = attrs.field(factory=list)

    def add(self, message: Value, at: str | None, place: str) -> None:
        """Add a message."""
        self._lines.append(_Line(message, at, place))

    def lose(self, place: str, what: str) -> None:
        """Note what does not come through."""
        self.lost.append(Problem(place, what))

    def lose_keys(self, value: Mapping[str, Any], known: Collection[str | None], place: str) -> None:
        """Note the keys that say something and do not come through, as they are none of the *known* ones."""
        keys = sorted(key for key in value if key not in known and value[key])
        if keys:
            self.lose(place, f"the keys {', '.join(keys)}")

    def done(self, session_id: str, to: str | None = None, *, title: str = "") -> Imported:
        """Return the conversation in a wire format, by default its own; ``InvalidMessageError`` where a message is none.

        What the other format has no words for is named by its type in brackets, and listed. Results without a call are listed
        and left out, as no provider takes them.
        """
        wanted = to or self.format
        lines = [*self._paired()]
        if wanted != self.format:
            lines = self._converted(lines, wanted)
        return Imported(
            session_id=session_id,
            title=" ".join(title.split()),
            format=wanted,
            messages=tuple(line.value for line in lines),
            times=tuple(line.at for line in lines),
            lost=tuple(self.lost),
        )

    def _paired(self) -> Iterator[_Line]:
        """Yield the messages, each with results of one other message at most, which comes before it."""
        wire = formats.get(self.format)
        waiting: dict[str, list[int]] = {}  # calls, by their ids: the messages that make them
        for number, line in enumerate(self._lines):
            try:
                message = wire.read(line.value)
            except InvalidMessageError as error:
                raise _placed(error, line.place) from error
            answered = {each: waiting[each].pop() for each in message.answers if waiting.get(each)}
            for each in message.answers:
                if each not in answered:
                    self.lose(line.place, f"the result of {shown(each)}, a call that does not stand before it")
            for value in _parted(message, answered):
                yield attrs.evolve(line, value=value)
            for call in message.calls:
                waiting.setdefault(call.id, []).append(number)

    def _converted(self, lines: list[_Line], to: str) -> list[_Line]:
        sayable = [attrs.evolve(line, value=value) for line in lines for value in self._sayable(line, to)]
        places = [line.place for line in sayable]
        try:
            done = convert([line.value for line in sayable], from_=self.format, to=to)
        except InvalidMessageError as error:
            place, reason = _source_place(error.path, places), str(error).removeprefix(f"{error.path}: ")
            raise InvalidMessageError(reason, path=place) from error
        self.lost += (Problem(_source_place(each.place, places), each.text) for each in done.lost)
        return [attrs.evolve(sayable[origin], value=value) for value, origin in zip(done.messages, done.origins, strict=True)]

    def _sayable(self, line: _Line, to: str) -> Iterator[Value]:
        """Yield a message so that it can be said in the other format, none for a call or result that has no form there."""
        if self._can_say(line.value, to):
            yield line.value
        else:
            value = self._with_arguments(line) if to == "anthropic" else line.value
            for key in ("content", "output"):
                if isinstance(value.get(key), list):
                    parts = [self._part(line, part, _holding(value, key), to) for part in value[key]]
                    value = {**value, key: parts}
            if self._can_say(value, to):
                yield value
            else:
                self.lose(line.place, f"a message of type {value.get('type', value.get('role'))}, which cannot be converted")

    def _can_say(self, value: Value, to: str) -> bool:
        try:
            convert([value], from_=self.format, to=to)
        except InvalidMessageError:
            return False
        return True

    def _part(self, line: _Line, part: Value, said: Callable[[Value], Value], to: str) -> Value:
        """Return a part of a message, or its type in brackets where the other format cannot say it."""
        if part["type"] not in _OF_TOOLS:
            made = {key: item for key, item in said(part).items() if key not in ("tool_calls", "function_call")}
            if self._can_say(made, to):
                return part
            self.lose(line.place, f"a part of type {part['type']}: its type stands in brackets in its place")
            return {"type": "output_text" if part["type"].startswith("output") else self._text_type, "text": f"[{part['type']}]"}
        if not isinstance(part.get("content"), list):
            return part
        held = _holding(part, "content")
        inner = [self._part(line, each, lambda made: said(held(made)), to) for each in part["content"]]
        return {**part, "content": inner}

    @property
    def _text_type(self) -> str:
        return "input_text" if self.format == "responses" else "text"

    def _with_arguments(self, line: _Line) -> Value:
        """Return a message whose calls have JSON objects as arguments: what the model wrote instead stands in one."""
        value = line.value
        if value.get("type") == "function_call" and not _is_object(value["arguments"]):
            self.lose(line.place, "that the arguments of a call are no JSON object: they stand in one now")
            return {**value, "arguments": _object(value["arguments"])}
        calls = value.get("tool_calls")
        if not isinstance(calls, list):
            return value
        made = []
        for call in calls:
            function = call.get("function")
            if isinstance(function, dict) and not _is_object(function.get("arguments")):
                self.lose(line.place, "that the arguments of a call are no JSON object: they stand in one now")
                call = {**call, "function": {**function, "arguments": _object(function.get("arguments"))}}  # noqa: PLW2901
            made.append(call)
        return {**value, "tool_calls": made}


def _parted(message: Message, answered: Mapping[str, int]) -> Iterator[Value]:
    """Yield a message once for each message whose calls it answers, without results that answer none."""
    value = message.value()
    if len(answered) == len(message.answers) and len(set(answered.values())) < 2:  # noqa: PLR2004 (one at most)
        yield value
        return
    if not isinstance(value.get("content"), list) or value.get("role") != "user":
        return  # a result of OpenAI's, which is a message of its own
    calls = sorted(set(answered.values()))
    others = [part for part in value["content"] if part["type"] != "tool_result"]
    results = [part for part in value["content"] if part["type"] == "tool_result"]
    for number in calls:
        own = [part for part in results if answered.get(part["tool_use_id"]) == number]
        yield {**value, "content": own + others if number == calls[-1] else own}
    if others and not calls:
        yield {**value, "content": others}


def _holding(value: Value, key: str) -> Callable[[Value], Value]:
    """Return what makes the same value with one part alone."""
    return lambda part: {**value, key: [part]}


def _is_object(arguments: object) -> bool:
    try:
        return isinstance(codec.decode_foreign(str(arguments or "{}").encode("utf-8", "surrogatepass")), dict)
    except ValueError:
        return False


def _object(arguments: object) -> str:
    return codec.encode({"arguments": arguments}).decode()


def _placed(error: InvalidMessageError, place: str) -> InvalidMessageError:
    reason = str(error).removeprefix(f"{error.path}: ")
    return InvalidMessageError(reason, path=f"{place}.{error.path}" if error.path else place)


def _source_place(place: str, places: list[str]) -> str:
    """Return where in the source something is that conversion names, such as ``messages[3].content[0]``."""
    number, _, rest = place.removeprefix("messages[").partition("]")
    return f"{places[int(number)]}{rest}"
