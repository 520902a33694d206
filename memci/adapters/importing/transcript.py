"""Transcripts that agents write as JSON lines, and messages as `memci export` and others write them.

Three shapes are read. A line per event, as Claude Code writes it: ``type`` (``user``, ``assistant``, ``summary`` and others),
``message`` (``role``, ``content`` with Anthropic's blocks, ``id``), ``timestamp``, ``sessionId``, ``uuid``, ``parentUuid``,
``isSidechain``, ``isMeta``. A line per event, as Codex writes it: ``type`` (``session_meta``, ``response_item`` and others),
``timestamp`` and ``payload``, an item of the Responses API. And messages of any wire format: one a line, a list, or an object
with ``messages`` and perhaps ``timestamps``, ``format``, ``system`` and ``id``. The events are documented by neither; they were
looked up in what others wrote of them, in November 2026.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memci.adapters.importing.draft import Draft, Value, identity, listed, mapping, mappings, refuse, several, text, time
from memci.adapters.importing.imported import Imported
from memci.errors import shown
from memci.messages import codec
from memci.messages.formats import format as formats
from memci.messages.parts import ANSWERS, CALLS

_CODEX = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_ITEMS = frozenset({*CALLS, *ANSWERS, "message", "reasoning"})
_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "image", "document"})
_SIGNATURES = {"thinking": "signature", "redacted_thinking": "data"}
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""The types of lines that name a conversation, each with the key of the name."""


def transcript(data: bytes, name: str, *, to: str | None = None) -> Imported:
    """Return the conversation of a file's bytes, in a wire format: by default the one in which it was written.

    *name* is the session's id where the file has none. Of a transcript, side chains, which are the work of other agents, branches
    that the user left by editing, and lines that are no messages are left out and counted in ``lost``. What a model said in
    several lines of one answer is one message.

    Raises:
        InvalidMessageError: It has another shape, or a line is damaged; ``path`` is the place, such as ``line 12``.
    """
    values = _values(data)
    first = values[0][1] if len(values) == 1 else None
    if isinstance(first, list) or (isinstance(first, dict) and "messages" in first):
        return _document(first if isinstance(first, dict) else {"messages": first}, name, to)
    lines = [(place, mapping(value, place)) for place, value in values]
    if any(_kind(line) in _CODEX and "payload" in line for _, line in lines):
        return _codex(lines, name, to)
    if any(isinstance(line.get("message"), dict) for _, line in lines):
        return _Events(lines).read(name, to)
    return _messages([*lines], [None] * len(lines), _format_of([line for _, line in lines]), name, to)


def _values(data: bytes) -> list[tuple[str, Any]]:
    """Return the JSON values of a file, which is one, or one a line, each with its place."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    lines = [(f"line {number}", line) for number, line in enumerate(data.splitlines(), start=1) if line.strip()]
    if not lines:
        refuse("line 1", "there is no message in the file")
    try:
        return [(place, codec.decode_foreign(line)) for place, line in lines[:1]] + _decoded(lines[1:])
    except ValueError:  # it begins with no line of JSON: it is one value, or none
        pass
    try:
        return [("line 1", codec.decode_foreign(data))]
    except ValueError as error:
        refuse("line 1", f"it is no JSON ({error})")


def _decoded(lines: Sequence[tuple[str, bytes]]) -> list[tuple[str, Any]]:
    decoded = []
    for place, line in lines:
        try:
            decoded.append((place, codec.decode_foreign(line)))
        except ValueError as error:
            refuse(place, f"it is no JSON ({error})")
    return decoded


def _document(document: Mapping[str, Any], name: str, to: str | None) -> Imported:
    messages = listed(document.get("messages"), "messages")
    times = listed(document.get("timestamps"), "timestamps") or [None] * len(messages)
    if len(times) != len(messages):
        refuse("timestamps", f"there are {len(times)} for {len(messages)} messages")
    lines = [(place, value) for value, place in mappings(messages, "messages")]
    wire = document.get("format") or _format_of(messages)
    if wire not in formats.NAMES:
        refuse("format", f"{shown(wire)} is none of {', '.join(formats.NAMES)}")
    if document.get("system"):
        lines, times = [("system", {"role": "system", "content": document["system"]}), *lines], [None, *times]
    return _messages(lines, times, str(wire), identity(document.get("id"), name), to)


def _messages(
    lines: Sequence[tuple[str, Mapping[str, Any]]], times: Sequence[object], wire: str, name: str, to: str | None
) -> Imported:
    draft = Draft(wire)
    for (place, value), at in zip(lines, times, strict=True):
        draft.add(dict(value), time(at, f"{place}: time"), place)
    return draft.done(name, to)


def _format_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the wire format of messages, by the types of items, parts and blocks in them."""
    if any(_kind(message) in _ITEMS for message in messages):
        return "responses"
    contents = (message.get("content") for message in messages if not message.get("tool_calls"))
    kinds = {_kind(part) for content in contents if isinstance(content, list) for part in content}
    if kinds & {"input_text", "output_text"}:
        return "responses"
    return "anthropic" if kinds & _BLOCKS else "openai"


class _Events:
    """Reads a transcript of Claude Code."""

    def __init__(self, lines: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        self._lines = lines
        self._draft = Draft("anthropic")
        self._messages: list[tuple[Value, str | None, str]] = []
        self._answer: tuple[str, Value] = "", {}  # the model's last one that may go on in another line, after its id
        self._left_out: dict[str, str] = {}  # the place of the first line of each kind that is left out
        self._counted: Counter[str] = Counter()

    def read(self, name: str, to: str | None) -> Imported:
        title, session_id = "", name
        left = _left(self._lines)
        for place, line in self._lines:
            kind = _kind(line)
            if kind in _TITLES:
                title = text(line.get(_TITLES[kind]), place) or title
            elif line.get("isSidechain"):
                self._leave_out("of side chains", place)
            elif kind not in ("user", "assistant"):
                self._leave_out(f"of type {shown(kind)}", place)
            elif _link(line, "uuid") in left:
                self._leave_out("of branches that were left", place)
            else:
                session_id = identity(line.get("sessionId"), session_id)
                self._take(line, kind, place)
        for message, at, place in self._messages:
            self._draft.add(message, at, place)
        for what, number in self._counted.items():
            self._draft.lose(self._left_out[what], f"{several(number, 'line')} {what}")
        return self._draft.done(session_id, to, title=title)

    def _take(self, line: Mapping[str, Any], role: str, place: str) -> None:
        message = {"role": role, **mapping(line.get("message"), f"{place}.message")}
        at = time(line.get("timestamp"), f"{place}.timestamp")
        if "toolUseResult" in line:
            self._leave_out("with toolUseResult, which stays out; the result itself is kept", place)
        if role == "assistant" and isinstance(message.get("content"), list):
            content = [*self._signed(message["content"], place)]
            own = text(message.get("id"), f"{place}.message.id")
            if own and own == self._answer[0]:
                self._answer[1]["content"] += content
                return
            message["content"] = content  # which may grow
            self._answer = own, message
        elif not _only_results(message):
            self._answer = "", {}
        self._messages.append((message, at, place))

    def _signed(self, content: Sequence[object], place: str) -> Iterator[object]:
        """Yield blocks without thinking that lost the signature with which alone the provider takes it."""
        for part in content:
            key = _SIGNATURES.get(_kind(part))
            if key is None or (isinstance(part, dict) and isinstance(part.get(key), str) and part[key]):
                yield part
            else:
                self._draft.lose(place, "thinking that has no signature")

    def _leave_out(self, what: str, place: str) -> None:
        self._left_out.setdefault(what, place)
        self._counted[what] += 1


def _kind(value: object) -> str:
    """Return the type that a line, an item or a part names; empty where it names none."""
    kind = value.get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


def _link(line: Mapping[str, Any], key: str) -> str | None:
    """Return an id by which lines follow each other, ``None`` where there is none."""
    return line[key] if isinstance(line.get(key), str) else None


def _only_results(message: Value) -> bool:
    content = message.get("content")
    return isinstance(content, list) and all(_kind(part) == "tool_result" for part in content)


def _left(lines: Sequence[tuple[str, Mapping[str, Any]]]) -> set[str]:
    """Return the ids of lines that were left: where two prompts follow the same line, the first one and all that follows it."""
    prompts: dict[str, str] = {}  # the last one, by the line that it follows
    left: set[str] = set()
    for _, line in lines:
        own, before = _link(line, "uuid"), _link(line, "parentUuid")
        if own and before and _is_prompt(line):
            if before in prompts:
                left.add(prompts[before])
            prompts[before] = own
    for _, line in lines:
        if _link(line, "parentUuid") in left:
            left.add(_link(line, "uuid") or "")
    return left


def _is_prompt(line: Mapping[str, Any]) -> bool:
    """Return whether a line is what a user wrote."""
    is_users = line.get("type") == "user" and not line.get("isMeta") and not line.get("isSidechain")
    message = line.get("message")
    return is_users and isinstance(message, dict) and not _only_results(message)


def _codex(lines: Sequence[tuple[str, Mapping[str, Any]]], name: str, to: str | None) -> Imported:
    """Return a transcript of Codex, whose items are those of the Responses API."""
    draft, session_id, counted = Draft("responses"), name, Counter[str]()
    places: dict[str, str] = {}
    for place, line in lines:
        kind, payload = text(line.get("type"), f"{place}.type"), line.get("payload")
        item = mapping(payload, f"{place}.payload") if kind in ("session_meta", "response_item") else {}
        if kind == "session_meta":
            session_id = identity(item.get("id"), name)
        elif kind == "response_item" and _kind(item) in _ITEMS:
            draft.add(dict(item), time(line.get("timestamp"), f"{place}.timestamp"), f"{place}.payload")
        else:
            what = f"{kind} {_kind(item)}" if kind == "response_item" else kind
            places.setdefault(what, place)
            counted[what] += 1
    for what, number in counted.items():
        draft.lose(places[what], f"{several(number, 'line')} of type {what}")
    return draft.done(session_id, to)
