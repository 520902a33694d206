"""How many tokens a provider says that a prompt had, by the references of OpenAI's APIs and Anthropic's Messages API."""

from collections.abc import Mapping

from memci.errors import ConfigError, shown

MOST_TOKENS = 10**12  # more tokens than any prompt has


def prompt_tokens(usage: object, format: str) -> int:  # noqa: A002 (the key of the settings)
    """Return the tokens of the prompt, those from and for the provider's cache among them.

    *usage* is that of an answer, as the provider's SDK gives it, or a dict of it; ConfigError where it is none of these
    providers'. Anthropic, as the *format* of the call, counts cached tokens apart; elsewhere the keys tell.
    """
    whole = _number(usage, "prompt_tokens")
    if whole is not None:
        return whole
    rest = _number(usage, "input_tokens")
    if rest is None:
        message = f"{shown(usage)} is no usage: give that of the provider's answer, with prompt_tokens or input_tokens"
        raise ConfigError(message, path="usage")
    if format != "anthropic" and _value(usage, "input_tokens_details") is not None:
        return rest
    return rest + sum(_number(usage, key) or 0 for key in ("cache_creation_input_tokens", "cache_read_input_tokens"))


def cached_tokens(usage: object) -> int | None:
    """Return how many tokens of the prompt came from the provider's cache; ``None`` where the usage does not say it."""
    for key in ("prompt_tokens_details", "input_tokens_details"):
        if (details := _value(usage, key)) is not None and (cached := _number(details, "cached_tokens")) is not None:
            return cached
    return _number(usage, "cache_read_input_tokens")


def _value(usage: object, key: str) -> object:
    return usage.get(key) if isinstance(usage, Mapping) else getattr(usage, key, None)


def _number(usage: object, key: str) -> int | None:
    value = _value(usage, key)
    if value is not None and (type(value) is not int or not 0 <= value <= MOST_TOKENS):
        message = f"{shown(value)} is not a number of tokens, or too large"
        raise ConfigError(message, path=f"usage.{key}")
    return value
