"""What the loop needs of a model."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs


@attrs.frozen(kw_only=True)
class Reply:
    """What a model said in one call.

    Attributes:
        message: The assistant message, as it came.
        finish_reason: Why it ended, in the provider's words: ``stop``, ``tool_calls``, ``length`` or ``content_filter``.
        prompt_tokens: What the provider counted for the window; ``None`` where it does not tell.
    """

    message: Mapping[str, Any]
    finish_reason: str = "stop"
    prompt_tokens: int | None = None


class Model(Protocol):
    """A model: ``memci.chat.Endpoint`` is one, and so is any object with this method."""

    def complete(self, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]], *, may_call: bool) -> Reply:
        """Return the model's reply to a window.

        Args:
            messages: The window's messages, in OpenAI's chat format; the callee may change them.
            tools: Schemas of the tools that it is offered; empty for none.
            may_call: Whether it may call them now; the tools stay offered where it may not, so that the prompt begins alike.

        Raises:
            ModelError: There is no reply.
        """
        ...
