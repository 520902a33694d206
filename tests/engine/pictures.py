"""Pictures and files for tests, in the parts of each wire format."""

import base64
import struct
from hashlib import shake_128
from typing import Any

Value = dict[str, Any]


def png(number: int = 0, size: tuple[int, int] = (700, 500), length: int = 3_000) -> str:
    """Return what begins as a PNG of this size, *length* bytes in base64; another one for each number."""
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", *size)
    return base64.b64encode(head + shake_128(bytes([number])).digest(length - len(head))).decode()


def picture(wire: str, data: str) -> Value:
    """Return a picture as a part of a user's message."""
    match wire:
        case "anthropic":
            return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
        case "responses":
            return {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}
        case _:
            return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def shown(wire: str, text: str, *parts: Value) -> Value:
    """Return a message of the user with a text and then parts."""
    return {"role": "user", "content": [{"type": "input_text" if wire == "responses" else "text", "text": text}, *parts]}


def answered(wire: str, text: str, *parts: Value) -> list[Value]:
    """Return a call of a tool, and its result of a text and then parts."""
    call: Value
    match wire:
        case "anthropic":
            call = {"type": "tool_use", "id": "look-1", "name": "look", "input": {}}
            block = {"type": "tool_result", "tool_use_id": "look-1", "content": [{"type": "text", "text": text}, *parts]}
            return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [block]}]
        case "responses":
            call = {"type": "function_call", "call_id": "look-1", "name": "look", "arguments": "{}"}
            output = [{"type": "input_text", "text": text}, *parts]
            return [call, {"type": "function_call_output", "call_id": "look-1", "output": output}]
        case _:
            function = {"name": "look", "arguments": "{}"}
            call = {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "look-1", "type": "function", "function": function}],
            }
            return [call, {"role": "tool", "tool_call_id": "look-1", "content": [{"type": "text", "text": text}, *parts]}]
