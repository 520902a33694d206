"""What OpenAI's chat completions refuse in the order of messages.

Source: the ``messages`` parameter of the Chat Completions API reference and the guide on function calling: an assistant message
with ``tool_calls`` is followed by one tool message for each of them, and a tool message answers such a call.
"""

from collections.abc import Iterator, Sequence

from memci.errors import shown
from memci.messages.formats import openai
from memci.messages.message import Message
from memci.messages.rules.problem import Problem


def problems(messages: Sequence[Message]) -> Iterator[Problem]:
    """Yield what is wrong with the order of messages, each of which is good for itself."""
    waiting: list[str] = []
    calling = 0
    for number, message in enumerate(messages):
        for answered in message.answers:
            if answered in waiting:
                waiting.remove(answered)
            else:
                text = "which no call directly before it makes: leave it out, or put it behind its call"
                yield Problem(f"messages[{number}]", f"it answers {shown(answered)}, {text}")
        if not message.answers:
            yield from _unanswered(calling, waiting)
            waiting, calling = [], number
        waiting += [call.id for call in message.calls]
        if b'"tool_calls":[]' in message.raw and message.value().get("tool_calls") == []:
            yield Problem(f"messages[{number}].tool_calls", "a list of calls is not empty: leave it out")
        if openai.says_nothing(message.value()):
            yield Problem(f"messages[{number}]", "an assistant message has a content or calls: leave it out")
    yield from _unanswered(calling, waiting)


def _unanswered(number: int, waiting: Sequence[str]) -> Iterator[Problem]:
    for identity in waiting:
        yield Problem(f"messages[{number}]", f"the call {shown(identity)} has no result behind it: add a tool message for it")
