from memci.chat.endpoint import Endpoint
from memci.chat.loop import (
    Answer,
    Chat,
    CodeAnswered,
    Ending,
    Faded,
    Model,
    Reply,
    Step,
    StreamingModel,
    TextStreamed,
    ToolAnswered,
    WindowSent,
)

__all__ = [
    "Answer",
    "Chat",
    "CodeAnswered",
    "Ending",
    "Endpoint",
    "Faded",
    "Model",
    "Reply",
    "Step",
    "StreamingModel",
    "TextStreamed",
    "ToolAnswered",
    "WindowSent",
]
