"""The usage of each provider, as its SDK gives it or as a dict, says how many tokens the prompt had."""

from types import SimpleNamespace
from typing import Any

import pytest
from openai.types import CompletionUsage
from openai.types.responses import ResponseUsage

from memci.errors import ConfigError
from memci.messages.usage import prompt_tokens

CHAT = {"prompt_tokens": 900, "completion_tokens": 9, "total_tokens": 909, "prompt_tokens_details": {"cached_tokens": 800}}
RESPONSES = {"input_tokens": 900, "input_tokens_details": {"cached_tokens": 800}, "output_tokens": 9, "total_tokens": 909}
CACHED = {"input_tokens": 50, "cache_creation_input_tokens": 150, "cache_read_input_tokens": 700, "output_tokens": 9}
PLAIN = {"input_tokens": 900, "cache_creation_input_tokens": None, "output_tokens": 9}


@pytest.mark.parametrize("name", ["openai", "responses", "anthropic"])
@pytest.mark.parametrize("usage", [CHAT, CACHED, PLAIN, {**CHAT, "input_tokens": 900}])
def test_the_keys_tell_whose_usage_it_is(usage: dict[str, Any], name: str) -> None:
    """Cached tokens are part of OpenAI's count, and stand beside Anthropic's; a dict and an object say the same."""
    assert 900 == prompt_tokens(usage, name) == prompt_tokens(SimpleNamespace(**usage), name)


@pytest.mark.parametrize("name", ["openai", "responses"])
def test_items_have_cached_tokens_among_the_others(name: str) -> None:
    """The Responses API has the keys of Anthropic's count and counts as OpenAI's chat does."""
    assert 900 == prompt_tokens({**RESPONSES, "cache_read_input_tokens": 800}, name)


def test_the_format_tells_where_the_keys_do_not() -> None:
    """Anthropic's usage may get more keys: in its format cached tokens are apart."""
    assert 900 == prompt_tokens({**CACHED, "input_tokens_details": {}}, "anthropic")


def test_the_objects_of_the_openai_package() -> None:
    """``completion.usage`` and ``response.usage`` are taken as they are."""
    assert 900 == prompt_tokens(CompletionUsage.model_validate(CHAT), "openai")
    details = {"input_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 0}}
    usage = {**RESPONSES, **details, "output_tokens_details": {"reasoning_tokens": 0}}
    assert 900 == prompt_tokens(ResponseUsage.model_validate(usage), "responses")


def test_usage_of_nothing_is_none_of_a_prompt() -> None:
    """Zeros, as servers send them that do not count, are a usage."""
    assert 0 == prompt_tokens({"prompt_tokens": 0}, "openai") == prompt_tokens({"input_tokens": 0}, "anthropic")


@pytest.mark.parametrize(
    "usage",
    [
        {},
        {"output_tokens": 9},
        5,
        "900",
        {"prompt_tokens": "900"},
        {"prompt_tokens": -1},
        {"prompt_tokens": True},
        {"prompt_tokens": 10**400},
        {"input_tokens": 9, "cache_read_input_tokens": 1.5},
    ],
)
def test_what_is_no_usage_is_an_error(usage: object) -> None:
    """What holds no number of tokens of a prompt is refused."""
    with pytest.raises(ConfigError, match=r"no usage|not a number"):
        prompt_tokens(usage, "anthropic")
