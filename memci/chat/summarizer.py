"""Summaries by a model behind an endpoint that speaks OpenAI's chat completions."""

import os
from collections.abc import Mapping
from typing import Any

import attrs

from memci.archive.summarizers.external.answer import as_summary
from memci.archive.summarizers.external.model import ModelSummarizer, Prompt
from memci.archive.summarizers.summary import Summary
from memci.chat.endpoint import Endpoint
from memci.errors import ConfigError, SummaryError

_MILLION = 1_000_000
_ENVIRONMENT = "env:"


def endpoint_summarizer(  # noqa: PLR0913 (each is one thing to know of an endpoint)
    model: str,
    base_url: str,
    *,
    api_key: str | None = None,
    timeout_s: float = 60.0,
    input_price: float = 0.0,
    output_price: float = 0.0,
    options: Mapping[str, Any] | None = None,
) -> ModelSummarizer:
    """Return a summariser that asks a model behind an endpoint; see ``Endpoint``.

    An *api_key* ``env:NAME`` is that of the environment variable. The prices are those of a million tokens of the request and of
    the answer, in any currency; with them each summary says what it cost.
    """
    if api_key is not None and api_key.startswith(_ENVIRONMENT):
        name = api_key.removeprefix(_ENVIRONMENT)
        api_key = os.environ.get(name)
        if api_key is None:
            message = f"the environment variable {name} is not set: set it, or give another one"
            raise ConfigError(message, path="summarizer.api_key")
    endpoint = Endpoint(base_url, model, api_key=api_key, timeout_s=timeout_s, max_retries=0, options=options)

    def ask(prompt: Prompt) -> Summary:
        reply = endpoint.complete(prompt, (), may_call=False)
        said = reply.message.get("content")
        if not isinstance(said, str) or not said.strip():
            message = f"{model} gave no text ({reply.finish_reason})"
            raise SummaryError(message)
        usage = {name: reply.usage[name] for name in ("prompt_tokens", "completion_tokens") if name in reply.usage}
        price = (usage.get("prompt_tokens", 0) * input_price + usage.get("completion_tokens", 0) * output_price) / _MILLION
        return attrs.evolve(as_summary(said), usage=usage | ({"price": price} if price else {}))

    return ModelSummarizer(ask, name=model)
