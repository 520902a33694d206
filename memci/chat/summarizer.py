"""Summaries by a model behind an endpoint that speaks OpenAI's chat completions."""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import attrs

from memci.archive.summarizers.external.answer import as_summary
from memci.archive.summarizers.external.extension import Extension
from memci.archive.summarizers.external.model import ModelSummarizer, Prompt
from memci.archive.summarizers.summary import Summary
from memci.chat.endpoint import Endpoint
from memci.engine.settings.setting import refusal
from memci.errors import ConfigError, SummaryError, shown

_MILLION = 1_000_000
_ENVIRONMENT = "env:"
_USAGE = ("prompt_tokens", "completion_tokens", "cached_tokens")

Asked = Literal["page", "window"]


def endpoint_summarizer(  # noqa: PLR0913 (each is one thing to know of an endpoint)
    model: str,
    base_url: str,
    *,
    api_key: str | None = None,
    timeout_s: float = 60.0,
    input_price: float = 0.0,
    output_price: float = 0.0,
    cached_price: float | None = None,
    request: Asked = "page",
    options: Mapping[str, Any] | None = None,
) -> ModelSummarizer:
    """Return a summariser that asks a model behind an endpoint; see ``Endpoint``.

    An *api_key* ``env:NAME`` is that of the environment variable. The prices are those of a million tokens of the request, of
    the answer, and of the request where the endpoint had them in its cache (*input_price* by default), in any currency; with them
    each summary says what it cost. With the *request* ``window``, pages that the last window shows are asked for together, after
    that window, where it costs less: for the model that answers these windows, as its cache holds them, in OpenAI's chat format.
    """
    if request not in get_args(Asked):
        message = f"{shown(request)} is none of {', '.join(get_args(Asked))}"
        raise ConfigError(message, path="summarizer.request")
    prices = {
        "input_price": input_price,
        "output_price": output_price,
        "cached_price": 0.0 if cached_price is None else cached_price,
    }
    if wrong := [name for name, price in prices.items() if not (type(price) in (int, float) and 0 <= price < math.inf)]:
        path = f"summarizer.{wrong[0]}"
        raise refusal(path=path, value=prices[wrong[0]], allowed="the price of a million tokens, a number from 0")
    if isinstance(api_key, str) and api_key.startswith(_ENVIRONMENT):
        name = api_key.removeprefix(_ENVIRONMENT)
        api_key = os.environ.get(name)
        if api_key is None:
            message = f"the environment variable {name} is not set: set it, or give another one"
            raise ConfigError(message, path="summarizer.api_key")
    endpoint = Endpoint(base_url, model, api_key=api_key, timeout_s=timeout_s, max_retries=0, options=options)

    def ask(prompt: Prompt, tools: Sequence[Mapping[str, Any]] = ()) -> Summary:
        reply = endpoint.complete(prompt, tools, may_call=bool(tools))  # as windows are asked for: else the cache holds another
        usage: dict[str, float] = {name: reply.usage[name] for name in _USAGE if name in reply.usage}
        whole, answered, cached = (usage.get(name, 0) for name in _USAGE)
        paid = (whole - cached) * input_price + cached * (input_price if cached_price is None else cached_price)
        price = (paid + answered * output_price) / _MILLION
        usage |= {"price": price} if price else {}
        said = reply.message.get("content")
        if not isinstance(said, str) or not said.strip():
            message = f"{model} gave no text ({reply.finish_reason})"
            raise SummaryError(message, usage=usage)
        return attrs.evolve(as_summary(said), usage=usage)

    def extend(window: Extension) -> Summary:
        if window.format != "openai":
            message = f"the window is one of {window.format}, and the endpoint speaks OpenAI's chat completions"
            raise SummaryError(message)
        return ask(window.messages, window.tools)

    return ModelSummarizer(ask, name=model, extend=extend if request == "window" else None)
