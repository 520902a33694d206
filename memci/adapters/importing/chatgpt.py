"""Conversations of a ChatGPT data export: the branch that was read last, with calls of tools and their results.

The shape that is read, of ``conversations.json``: a list of objects, or one, with ``conversation_id`` or ``id``, ``title``,
``current_node`` and ``mapping``: nodes by id, each with ``parent`` and ``message``: ``author`` (``role``, ``name``),
``recipient``, ``create_time`` in seconds, ``content`` (``content_type``, and ``parts``, ``text``, ``result`` or ``content``) and
``metadata``. OpenAI does not document it; it was looked up in what others wrote of it, in November 2026.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from memci.adapters.importing.draft import Draft, Value, conversations_of, identity, listed, mapping, refuse, several, text, time
from memci.adapters.importing.imported import Imported

_NOT_OF_A_NAME = re.compile("[^a-zA-Z0-9_-]")
_HIDDEN = {"thoughts": "thinking", "reasoning_recap": "how long the model thought"}
_WITH_TEXT = ("text", "result", "content")
_OF_CONTENTS = frozenset({"content_type", "language", "response_format_name"})
_INSTRUCTIONS = ("user_profile", "user_instructions", "model_set_context")
_ROLES = ("system", "user", "assistant", "tool")


def conversations(document: object, *, to: str = "openai") -> Iterator[Imported]:
    """Yield the conversations of an export, in a wire format.

    Of branches, which editing and asking anew leave, the one of ``current_node`` is taken; how many messages stand in others is
    listed in ``lost``, and so are thinking, citations, and pictures and files, whose bytes are not in the document: a text such
    as ``[image file-service://…]`` stands in their place. A message to a tool is a call that takes free text. Custom
    instructions are a message of role ``system``. Messages without words are left out, and of other keys nothing is kept.

    Raises:
        InvalidMessageError: The document has another shape; ``path`` is the place.
    """
    for value, place in conversations_of(document):
        yield _Reader(place).read(value, to)


class _Reader:
    """Reads one conversation."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._draft = Draft("openai")
        self._call: str | None = None  # the one that waits for its result

    def read(self, value: Mapping[str, Any], to: str) -> Imported:
        nodes = mapping(value.get("mapping"), f"{self._place}.mapping")
        branch = [*self._branch(nodes, value.get("current_node"))]
        for node_id, node in branch:
            if node.get("message") is not None:
                place = f"{self._place}.mapping.{node_id}"
                self._take(node_id, mapping(node["message"], f"{place}.message"), f"{place}.message")
        spoken = sum(self._is_spoken(node) for node in nodes.values()) - sum(self._is_spoken(node) for _, node in branch)
        if spoken:
            self._draft.lose(self._place, f"{several(spoken, 'message')} of other branches")
        session_id = identity(value.get("conversation_id"), value.get("id"), self._place)
        return self._draft.done(session_id, to, title=text(value.get("title"), f"{self._place}.title"))

    def _branch(self, nodes: Mapping[str, Any], last: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the nodes from the first one to the last, each with its id."""
        found: dict[str, Mapping[str, Any]] = {}
        while last is not None:
            if not isinstance(last, str) or last not in nodes or last in found:
                refuse(f"{self._place}.mapping", f"the way from current_node to the first message ends at {last!r:.80}")
            found[last] = mapping(nodes[last], f"{self._place}.mapping.{last}")
            last = found[last].get("parent")
        if nodes and not found:
            refuse(f"{self._place}.current_node", "it is missing, and tells which branch was read last")
        yield from reversed(found.items())

    def _is_spoken(self, node: object) -> bool:
        message = node.get("message") if isinstance(node, dict) else None
        author = message.get("author") if isinstance(message, dict) else None
        return isinstance(author, dict) and author.get("role") in ("user", "assistant")

    def _take(self, node_id: str, message: Mapping[str, Any], place: str) -> None:
        author = mapping(message.get("author"), f"{place}.author")
        role, at = author.get("role"), time(message.get("create_time"), f"{place}.create_time")
        if role not in _ROLES:
            refuse(f"{place}.author.role", f"{role!r:.80} is none of {', '.join(_ROLES)}")
        content = mapping(message.get("content"), f"{place}.content")
        kind = text(content.get("content_type"), f"{place}.content.content_type")
        if kind in _HIDDEN:
            self._draft.lose(place, _HIDDEN[kind])
            return
        self._note_metadata(mapping(message.get("metadata") or {}, f"{place}.metadata"), place)
        spoken = self._spoken(kind, content, f"{place}.content")
        recipient = text(message.get("recipient"), f"{place}.recipient") or "all"
        if role == "tool":
            self._take_result(node_id, text(author.get("name"), f"{place}.author.name"), spoken, _At(at, place))
        elif role == "assistant" and recipient != "all":
            self._take_call(node_id, recipient, spoken, _At(at, place))
        elif spoken:
            self._call = self._call if role == "system" else None
            shown_as = "system" if kind.endswith("_editable_context") else role
            self._draft.add({"role": shown_as, "content": spoken}, at, place)

    def _take_call(self, node_id: str, tool: str, spoken: str, where: "_At") -> None:
        name = _NOT_OF_A_NAME.sub("_", tool)
        if name != tool:
            self._draft.lose(where.place, f"the name of the tool {tool}, which is {name} now")
        call: Value = {"id": node_id, "type": "custom", "custom": {"name": name, "input": spoken}}
        self._draft.add({"role": "assistant", "content": None, "tool_calls": [call]}, where.at, where.place)
        self._call = node_id

    def _take_result(self, node_id: str, tool: str, spoken: str, where: "_At") -> None:
        """Add a result; the export tells of no call where the tool answers once more, or by itself, and one is made."""
        if self._call is None:
            if not spoken:
                return
            self._take_call(f"{node_id}-call", tool or "tool", "", where)
            self._draft.lose(where.place, "with what the tool was called, which the export does not have")
        self._draft.add({"role": "tool", "tool_call_id": self._call, "content": spoken}, where.at, where.place)
        self._call = None

    def _note_metadata(self, metadata: Mapping[str, Any], place: str) -> None:
        if metadata.get("citations") or metadata.get("content_references"):
            self._draft.lose(place, "citations")
        for each in listed(metadata.get("attachments"), f"{place}.metadata.attachments"):
            name = each.get("name") if isinstance(each, dict) else each
            self._draft.lose(place, f"the file {name!r:.80}, of which the export has the name only")

    def _spoken(self, kind: str, content: Mapping[str, Any], place: str) -> str:
        """Return the words of a content."""
        if "parts" in content:
            parts = enumerate(listed(content["parts"], f"{place}.parts"))
            return "\n".join(filter(None, (self._part(part, f"{place}.parts[{number}]") for number, part in parts)))
        if kind.endswith("_editable_context"):
            return "\n\n".join(filter(None, (text(content.get(key), f"{place}.{key}") for key in _INSTRUCTIONS)))
        found = next((key for key in _WITH_TEXT if content.get(key)), None)
        if found is None and kind not in ("text", "code", "execution_output"):
            self._draft.lose(place, f"content of type {kind}, which holds no text")
        self._draft.lose_keys(content, {*_OF_CONTENTS, found}, place)
        return "" if found is None else text(content[found], f"{place}.{found}")

    def _part(self, part: object, place: str) -> str:
        if isinstance(part, str):
            return part
        value = mapping(part, place)
        kind = text(value.get("content_type"), f"{place}.content_type")
        if isinstance(value.get("text"), str):  # what was said aloud
            return str(value["text"])
        name = kind.partition("_")[0] or "part"
        pointer = value.get("asset_pointer") or value.get("audio_asset_pointer", {})
        pointer = pointer.get("asset_pointer", "") if isinstance(pointer, dict) else pointer
        self._draft.lose(place, f"the bytes of a part of type {kind}: its name stands in its place")
        return f"[{name} {pointer}]".replace(" ]", "]")


@attrs.frozen
class _At:
    """When a message was said, and where it stands."""

    at: str | None
    place: str
