"""A page as plain text: who says what, calls and results included."""

from collections.abc import Sequence

from memci.archive.summarizers.entries import COLOURS, clean_name
from memci.messages.base64_runs import described
from memci.messages.headline import unheaded
from memci.messages.message import Message
from memci.messages.parts import PartKind, parts


def transcript(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return pairs of speaker and text, in order: ``user``, ``assistant → tool_name`` for a call, ``tool`` for a result.

    Files have a mark in place of their bytes, and headlines are left out. O(size of the messages).
    """
    said = []
    for message in messages:
        speaker = clean_name(message.speaker) or "message"
        for part in parts(message.value()):
            text = COLOURS.sub("", described(unheaded(message, part.text))).strip()
            if part.kind is PartKind.CALL and part.call is not None:
                said.append((f"{speaker} → {clean_name(part.call.name) or 'call'}", described(part.call.arguments)))
            elif part.kind is PartKind.RESULT:
                said.append(("tool", text))
            elif part.kind is PartKind.TEXT and text:
                said.append((speaker, text))
    return said
