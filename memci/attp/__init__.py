from memci.attp.document import CodeCall, Reply, parse
from memci.attp.runtime import AnswerRepeated, CallFinished, CodeStarted, Event, ReplyParsed, Result, Runtime, ToolCalled
from memci.attp.sandbox import Limits
from memci.attp.toolbox import Tool, Toolbox

__all__ = [
    "AnswerRepeated",
    "CallFinished",
    "CodeCall",
    "CodeStarted",
    "Event",
    "Limits",
    "Reply",
    "ReplyParsed",
    "Result",
    "Runtime",
    "Tool",
    "ToolCalled",
    "Toolbox",
    "parse",
]

if __name__ != "memci.attp":  # by the link at the top of a checkout, its classes would be others than memci's
    message = "this is a part of memci: import memci.attp"
    raise ImportError(message)
