"""Conversations of a Claude data export: texts, calls and their results, and the texts of attachments.

The shape that is read, of ``conversations.json``: a list of objects, or one, with ``uuid``, ``name`` and ``chat_messages``, each
with ``uuid``, ``sender`` (``human`` or ``assistant``), ``created_at``, ``content``, a list of blocks (``text``, ``tool_use``,
``tool_result``, ``thinking`` and others), or else ``text``; ``attachments`` with ``file_name`` and ``extracted_content``;
``files`` with ``file_name``; and, in newer ones, ``parent_message_uuid``. Anthropic does not document it; it was looked up in
what others wrote of it, in November 2026.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from memci.adapters.importing.draft import (
    Draft,
    Value,
    conversations_of,
    identity,
    mappings,
    refuse,
    several,
    text,
    time,
)
from memci.adapters.importing.imported import Imported
from memci.messages import codec

_ROLES = {"human": "user", "assistant": "assistant"}
_OF_BLOCKS = frozenset({"type", "id", "name", "input", "tool_use_id", "content", "is_error"}).union(
    ("start_timestamp", "stop_timestamp", "flags")  # of the answer, not of what was said
)
_HIDDEN = ("token_budget", "flag")  # what the application notes for itself


def conversations(document: object, *, to: str = "anthropic") -> Iterator[Imported]:
    """Yield the conversations of an export, in a wire format.

    Results, which the export has in the assistant's messages, are messages of the user, as Anthropic's interface takes them.
    Texts of attachments are documents. Thinking, which the export has without its signature, citations, files of which it has
    the name only, and messages of branches that were left are listed in ``lost``. Messages without words are left out.

    Raises:
        InvalidMessageError: The document has another shape; ``path`` is the place.
    """
    for value, place in conversations_of(document):
        yield _Reader(place).read(value, to)


class _Reader:
    """Reads one conversation."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._draft = Draft("anthropic")
        self._calls: list[str] = []  # those that wait for their results

    def read(self, value: Mapping[str, Any], to: str) -> Imported:
        messages = [*mappings(value.get("chat_messages"), f"{self._place}.chat_messages")]
        branch = _branch([message for message, _ in messages])
        if len(branch) < len(messages):
            self._draft.lose(self._place, f"{several(len(messages) - len(branch), 'message')} of other branches")
        for number in branch:
            self._take(*messages[number])
        title = text(value.get("name"), f"{self._place}.name")
        return self._draft.done(identity(value.get("uuid"), self._place), to, title=title)

    def _take(self, message: Mapping[str, Any], place: str) -> None:
        sender = message.get("sender")
        if not isinstance(sender, str) or sender not in _ROLES:
            refuse(f"{place}.sender", f"{sender!r:.80} is neither human nor assistant")
        at = time(message.get("created_at"), f"{place}.created_at")
        own = identity(message.get("uuid"), place)
        blocks = [*self._attached(message, place)]
        for number, (block, at_block) in enumerate(mappings(message.get("content"), f"{place}.content")):
            blocks += self._block(block, f"{own}-{number}", at_block)
        if not message.get("content") and (words := text(message.get("text"), f"{place}.text")):
            blocks.append({"type": "text", "text": words})
        for role, run in _runs(_ROLES[sender], blocks):
            short = run[0]["text"] if len(run) == 1 and run[0]["type"] == "text" else run
            self._draft.add({"role": role, "content": short}, at, place)

    def _attached(self, message: Mapping[str, Any], place: str) -> Iterator[Value]:
        """Yield the texts of attachments as documents, and what stands for files."""
        for value, at in mappings(message.get("attachments"), f"{place}.attachments"):
            words, name = text(value.get("extracted_content"), at), text(value.get("file_name"), at)
            if words.strip():
                named = {"title": name} if name else {}
                source = {"type": "text", "media_type": "text/plain", "data": words}
                yield {"type": "document", "source": source, **named}
            else:
                yield self._named(name, at)
        for value, at in mappings(message.get("files"), f"{place}.files"):
            yield self._named(text(value.get("file_name"), at), at)

    def _named(self, name: str, place: str) -> Value:
        self._draft.lose(place, "a file, of which the export has the name only: it stands in its place")
        return {"type": "text", "text": f"[file {name}]" if name else "[file]"}

    def _block(self, block: Mapping[str, Any], own: str, place: str) -> Iterator[Value]:
        kind = text(block.get("type"), f"{place}.type")
        match kind:
            case "text" | "voice_note":
                if block.get("citations"):
                    self._draft.lose(place, "citations")
                if (words := text(block.get("text"), f"{place}.text")).strip():
                    yield {"type": "text", "text": words}
            case "tool_use":
                self._draft.lose_keys(block, _OF_BLOCKS, place)
                call = identity(block.get("id"), own)
                self._calls.append(call)
                name, given = text(block.get("name"), f"{place}.name"), block.get("input")
                yield {"type": kind, "id": call, "name": name, "input": given if isinstance(given, dict) else {"input": given}}
            case "tool_result":
                self._draft.lose_keys(block, _OF_BLOCKS, place)
                waiting = text(block.get("tool_use_id"), f"{place}.tool_use_id") or (self._calls[-1] if self._calls else own)
                self._calls = [each for each in self._calls if each != waiting]
                failed = {"is_error": True} if block.get("is_error") else {}
                yield {"type": kind, "tool_use_id": waiting, "content": self._result(block.get("content"), place), **failed}
            case "thinking" | "redacted_thinking":
                self._draft.lose(place, "thinking, of which the export has no signature")
            case _ if kind not in _HIDDEN:
                self._draft.lose(place, f"a block of type {kind}")

    def _result(self, content: object, place: str) -> str | list[Value]:
        if isinstance(content, str | None):
            return content or ""
        return [_said(part) for part, _ in mappings(content, f"{place}.content")]


def _said(value: Mapping[str, Any]) -> Value:
    match value:
        case {"type": "text", "text": str(words)}:
            return {"type": "text", "text": words}
        case {"type": "image", "source": {"type": "base64" | "url", **source}}:
            return {"type": "image", "source": {"type": value["source"]["type"], **source}}
        case _:  # its words are in it
            return {"type": "text", "text": codec.encode(dict(value)).decode()}


def _branch(messages: list[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of the messages that lead to the last one; all where they do not tell what they follow."""
    numbers = {message["uuid"]: number for number, message in enumerate(messages) if isinstance(message.get("uuid"), str)}
    before = [numbers.get(str(message.get("parent_message_uuid"))) for message in messages]
    if not any(number is not None for number in before):
        return [*range(len(messages))]
    found: dict[int, None] = {}
    number: int | None = len(messages) - 1
    while number is not None and number not in found:
        found[number] = None
        number = before[number]
    return [*found][::-1]


def _runs(role: str, blocks: list[Value]) -> Iterator[tuple[str, list[Value]]]:
    """Yield the messages that blocks of one make: results are the user's, and what comes after them is another message."""
    run: list[Value] = []
    for block in blocks:
        of_user = block["type"] == "tool_result"
        if run and of_user != (run[-1]["type"] == "tool_result"):
            yield ("user" if not of_user else role), run
            run = []
        run.append(block)
    if run:
        yield ("user" if run[-1]["type"] == "tool_result" else role), run
