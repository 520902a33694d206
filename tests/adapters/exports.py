"""Exports and transcripts as others write them, small, and made here."""

import json
from typing import Any

Value = dict[str, Any]

START = 1_767_326_645  # 2026-01-02T04:04:05Z


class ChatGpt:
    """A conversation of a ChatGPT export; each message follows the last one, or *after* another."""

    def __init__(self, name: str = "chat-1", title: str = "Boiler") -> None:
        self.mapping: dict[str, Value] = {"root": {"id": "root", "parent": None, "message": None, "children": []}}
        self.value: Value = {"conversation_id": name, "title": title, "mapping": self.mapping, "current_node": "root"}

    def say(self, role: str, words: str | None = None, *, after: str | None = None, **given: Any) -> str:
        """Add a message, whose keys may be given, and return its id."""
        own = f"n{len(self.mapping)}"
        content = {"content_type": "text", "parts": [words]} if words is not None else {}
        message = {
            "author": {"role": role, "name": given.pop("name", None)},
            "content": {**content, **given.pop("content", {})},
            "create_time": START + len(self.mapping),
            "recipient": "all",
            "metadata": {},
            **given,
        }
        self.mapping[own] = {"id": own, "parent": after or self.value["current_node"], "message": message, "children": []}
        self.value["current_node"] = own
        return own


def talked() -> ChatGpt:
    """Return a conversation with a branch that was left, thinking, a call of a tool and a picture."""
    chat = ChatGpt()
    chat.say("system", "")
    chat.say(
        "user", content={"content_type": "user_editable_context", "user_profile": "I mend boilers.", "user_instructions": ""}
    )
    asked = chat.say("user", "How hot is it?")
    chat.say("assistant", "Very hot.")
    chat.say("assistant", after=asked, content={"content_type": "thoughts", "thoughts": []})
    chat.say("assistant", recipient="python", content={"content_type": "code", "language": "python", "text": "print(90)"})
    chat.say("tool", name="python", content={"content_type": "execution_output", "text": "90"})
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f1"}
    chat.say("tool", name="dalle.text2im", content={"content_type": "multimodal_text", "parts": [picture]})
    chat.say("assistant", "90 degrees.", metadata={"citations": [{"start_ix": 0}], "attachments": [{"name": "plan.pdf"}]})
    return chat


def claude(name: str = "talk-1") -> Value:
    """Return a conversation of a Claude export with a call, thinking, an attachment and a file."""
    call = {"type": "tool_use", "id": None, "name": "look", "input": {"at": "boiler"}, "message": "Looking"}
    result = {
        "type": "tool_result",
        "tool_use_id": None,
        "name": "look",
        "content": [{"type": "text", "text": "90", "uuid": "x"}],
    }
    asked = {
        "uuid": "m1",
        "sender": "human",
        "created_at": "2026-01-02T03:04:05.5Z",
        "text": "How hot is it?",
        "content": [{"type": "text", "text": "How hot is it?", "citations": []}],
        "attachments": [{"file_name": "notes.txt", "file_type": "txt", "extracted_content": "It was 80."}],
        "files": [{"file_name": "boiler.png"}],
    }
    answered = {
        "uuid": "m2",
        "sender": "assistant",
        "created_at": "2026-01-02T03:05:05Z",
        "text": "",
        "content": [
            {"type": "thinking", "thinking": "I look."},
            {"type": "text", "text": "I look."},
            call,
            result,
            {"type": "token_budget"},
            {"type": "text", "text": "90 degrees.", "citations": [{"url": "x"}]},
        ],
    }
    thanks: Value = {"uuid": "m3", "sender": "human", "created_at": None, "text": "Thank you.", "content": []}
    return {"uuid": name, "name": "Boiler", "chat_messages": [asked, answered, thanks]}


class Transcript:
    """A transcript of Claude Code; each line follows the last one, or *after* another."""

    def __init__(self) -> None:
        self.lines: list[Value] = [{"type": "summary", "summary": "Mend the  boiler", "leafUuid": "u9"}]

    def say(self, role: str, content: Any, *, after: str | None = None, answer: str | None = None, **given: Any) -> str:
        """Add a message, one of the model's as a part of an *answer*, and return its id."""
        own = f"u{len(self.lines)}"
        of_answer = {"id": answer, "type": "message", "model": "m", "usage": {"output_tokens": 3}} if answer else {}
        self.lines.append(
            {
                "type": role,
                "uuid": own,
                "parentUuid": after or (self.lines[-1].get("uuid")),
                "sessionId": "session-1",
                "timestamp": f"2026-01-02T03:04:{len(self.lines):02}.000Z",
                "isSidechain": False,
                "message": {"role": role, "content": content, **of_answer},
                **given,
            }
        )
        return own

    def data(self) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def used(number: int) -> Value:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"path": f"{number}.py"}}


def answered(number: int, content: Any = "text") -> Value:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": content}


def worked() -> Transcript:
    """Return a transcript with an answer in three lines, a prompt that was edited, a side chain, and other lines."""
    work = Transcript()
    begun = work.say("user", "Mend the boiler.")
    work.say("user", "First with a hammer.", after=begun)
    work.say("user", "First with a wrench.", after=begun)
    work.say("assistant", [{"type": "thinking", "thinking": "I read.", "signature": "c2ln"}], answer="msg_1")
    work.say("assistant", [used(1)], answer="msg_1")
    work.say("user", [answered(1)], toolUseResult={"file": "1.py"})
    work.say("assistant", [used(2)], answer="msg_1")
    work.say("user", [answered(2, [PICTURE])])
    work.say("user", "Look around.", isSidechain=True)
    work.lines.append({"type": "system", "content": "hook"})
    work.say("assistant", [{"type": "text", "text": "It is mended."}], answer="msg_2")
    return work
