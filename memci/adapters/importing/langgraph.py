"""Histories of LangGraph: the messages of each thread's newest checkpoint, from any checkpointer."""

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from memci.adapters.extra import brought_by
from memci.adapters.importing.draft import Draft, refuse, several, time
from memci.adapters.importing.imported import Imported
from memci.errors import shown

with brought_by("langchain"):
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.messages.utils import convert_to_openai_messages
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

_SAID = frozenset({"content", "type", "name", "tool_calls", "tool_call_id", "role"})  # what chat messages have, too
_OF_CALLS = frozenset({"tool_calls", "function_call"})  # which stand among additional_kwargs a second time
_THINKING = frozenset({"thinking", "redacted_thinking", "reasoning"})
_OF_TEXTS = frozenset({"type", "text", "index"})
_PLAIN = {"status": "success", "example": False}  # what tells nothing, where it is this


@attrs.define(eq=False)
class _Thread:
    newest: CheckpointTuple
    times: dict[str, str] = attrs.field(factory=dict)  # when a checkpoint first held a message, by its id
    subgraphs: set[str] = attrs.field(factory=set)


def threads(saver: BaseCheckpointSaver[Any], *, to: str = "openai", key: str = "messages") -> Iterator[Imported]:
    """Yield the conversation of each thread of a checkpointer, by their ids, in a wire format; *key* is that of the messages.

    A message has the time of the first checkpoint that holds it. What chat messages have no keys for, such as ids, usage and
    artifacts, is listed in ``lost``, and so are thinking, messages of subgraphs, and writes of a run that was interrupted.
    Threads without messages are left out. O(checkpoints), which are read one at a time.

    Raises:
        InvalidMessageError: What stands under *key* are no messages of LangChain, or one cannot be converted.
    """
    found: dict[str, _Thread] = {}
    for checkpoint in saver.list(None):
        configured = checkpoint.config["configurable"]
        _note(found, str(configured["thread_id"]), str(configured.get("checkpoint_ns") or ""), checkpoint, key)
    for thread_id in sorted(found):
        thread = found[thread_id]
        messages = thread.newest.checkpoint["channel_values"].get(key)
        if messages:
            yield _read(thread_id, thread, messages, to, key)


def _note(found: dict[str, _Thread], thread_id: str, subgraph: str, checkpoint: CheckpointTuple, key: str) -> None:
    messages = checkpoint.checkpoint["channel_values"].get(key)
    if subgraph:
        if messages and thread_id in found:
            found[thread_id].subgraphs.add(subgraph.partition(":")[0])
        return
    thread = found.setdefault(thread_id, _Thread(checkpoint))
    if checkpoint.checkpoint["id"] > thread.newest.checkpoint["id"]:  # ids of checkpoints are in the order of their times
        thread.newest = checkpoint
    at = checkpoint.checkpoint["ts"]
    for message in messages if isinstance(messages, list) else ():
        own = getattr(message, "id", None)
        if own is not None:
            thread.times[own] = min(at, thread.times.get(own, at))


def _read(thread_id: str, thread: _Thread, messages: object, to: str, key: str) -> Imported:
    draft, place = Draft("openai"), f"{thread_id}.{key}"
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        refuse(place, f"{shown(messages)} is no list of messages: name their key with key=")
    for number, message in enumerate(messages):
        at = f"{place}[{number}]"
        if not isinstance(message, BaseMessage):
            refuse(at, f"a {type(message).__name__} is no message of LangChain")
        _take(draft, message, thread.times.get(message.id or ""), at)
    for subgraph in sorted(thread.subgraphs):
        draft.lose(thread_id, f"messages of the subgraph {subgraph}")
    if pending := sum(channel == key for _, channel, _ in thread.newest.pending_writes or ()):
        draft.lose(thread_id, f"{several(pending, 'write')} of a run that did not come to an end")
    return draft.done(thread_id, to)


def _take(draft: Draft, message: BaseMessage, at: str | None, place: str) -> None:
    lost = [key for key, value in message.model_dump().items() if key not in _SAID and value and value != _PLAIN.get(key)]
    if not set(message.additional_kwargs) - _OF_CALLS and "additional_kwargs" in lost:
        lost.remove("additional_kwargs")
    if lost:
        draft.lose(place, f"the keys {', '.join(lost)}")
    if isinstance(message.content, list):
        kept = [part for part in message.content if isinstance(part, str) or part.get("type") not in _THINKING]
        if len(kept) < len(message.content):
            draft.lose(place, "thinking")
        keys = sorted({key for part in kept if isinstance(part, dict) and part.get("type") == "text" for key in part} - _OF_TEXTS)
        if keys:
            draft.lose(place, f"the keys {', '.join(keys)} of texts")
        message = message.model_copy(update={"content": kept})
    try:
        made = convert_to_openai_messages([message])
    except (ValueError, TypeError) as error:
        refuse(place, f"LangChain cannot write it as a message of OpenAI's chat ({error})")
    for value in made:
        if isinstance(message, AIMessage) and value.get("tool_calls") and not value.get("content"):
            value["content"] = None
        draft.add(value, time(at, place), place)
