"""Models by name: how large their windows are, what counts their tokens, and what their providers' prompt caches cost.

Windows, largest replies and prices relative to plain input are those of ``model_prices_and_context_window_backup.json`` in the
package litellm 1.110.2 (MIT), read on 2026-11-26: ``max_input_tokens``, ``max_output_tokens``,
``cache_creation_input_token_cost`` (1 where there is none) and ``cache_read_input_token_cost`` over ``input_cost_per_token``.
Counters are ``o200k_base`` where tiktoken names that encoding for the model, else the estimate.
"""

from collections.abc import Mapping
from typing import Any, Final

from memci.engine.settings.setting import matches
from memci.errors import ConfigError, shown

_O200K, _ESTIMATE = "o200k_base", "approximate"
_MOST_RESERVE = 16_000  # tokens that are kept free for a reply, where nothing else is said
_KEYS = ("window", "reserve", "counter", "prices")

_TABLE: Final[Mapping[str, tuple[int, int, str, float, float]]] = {  # window, largest reply, counter, prices of write and read
    "gpt-4o": (128_000, 16_384, _O200K, 1, 0.5),
    "gpt-4o-mini": (128_000, 16_384, _O200K, 1, 0.5),
    "gpt-4.1": (1_047_576, 32_768, _O200K, 1, 0.25),
    "gpt-4.1-mini": (1_047_576, 32_768, _O200K, 1, 0.25),
    "gpt-4.1-nano": (1_047_576, 32_768, _O200K, 1, 0.25),
    "o3": (200_000, 100_000, _O200K, 1, 0.25),
    "o4-mini": (200_000, 100_000, _O200K, 1, 0.25),
    "gpt-5": (272_000, 128_000, _O200K, 1, 0.1),
    "gpt-5-mini": (272_000, 128_000, _O200K, 1, 0.1),
    "gpt-5-nano": (272_000, 128_000, _O200K, 1, 0.1),
    "gpt-5.1": (272_000, 128_000, _O200K, 1, 0.1),
    "gpt-5.2": (272_000, 128_000, _O200K, 1, 0.1),
    "gpt-5.4": (1_050_000, 128_000, _O200K, 1, 0.1),
    "gpt-5.4-mini": (272_000, 128_000, _O200K, 1, 0.1),
    "gpt-5.5": (1_050_000, 128_000, _O200K, 1, 0.1),
    "gpt-5.6": (922_000, 128_000, _O200K, 1.25, 0.1),
    "gpt-6-sol": (922_000, 128_000, _ESTIMATE, 1.25, 0.1),
    "gpt-6-luna": (922_000, 128_000, _ESTIMATE, 1.25, 0.1),
    "claude-haiku-4-5": (200_000, 64_000, _ESTIMATE, 1.25, 0.1),
    "claude-haiku-5-5": (1_000_000, 128_000, _ESTIMATE, 1.25, 0.1),
    "claude-sonnet-4-5": (200_000, 64_000, _ESTIMATE, 1.25, 0.1),
    "claude-sonnet-4-6": (1_000_000, 128_000, _ESTIMATE, 1.25, 0.1),
    "claude-sonnet-5": (1_000_000, 128_000, _ESTIMATE, 1.25, 0.1),
    "claude-sonnet-5-5": (1_000_000, 128_000, _ESTIMATE, 1.25, 0.05),
    "claude-opus-4-5": (200_000, 64_000, _ESTIMATE, 1.25, 0.1),
    "claude-opus-4-6": (1_000_000, 128_000, _ESTIMATE, 1.25, 0.1),
    "claude-opus-4-7": (1_000_000, 128_000, _ESTIMATE, 1.25, 0.1),
    "claude-opus-5": (1_000_000, 128_000, _ESTIMATE, 1.25, 0.1),
    "claude-opus-5-5": (1_000_000, 128_000, _ESTIMATE, 1.25, 0.05),
    "gemini-2.5-pro": (1_048_576, 65_536, _ESTIMATE, 1, 0.1),
    "gemini-2.5-flash": (1_048_576, 65_536, _ESTIMATE, 1, 0.1),
    "gemini-3.1-pro-preview": (1_048_576, 65_536, _ESTIMATE, 1, 0.1),
    "deepseek-chat": (131_072, 8_192, _ESTIMATE, 1, 0.1),
    "deepseek-reasoner": (131_072, 65_536, _ESTIMATE, 1, 0.1),
    "mistral-large-latest": (262_144, 262_144, _ESTIMATE, 1, 0.1),
    "mistral-medium-latest": (262_144, 262_144, _ESTIMATE, 1, 0.1),
    "kimi-k2.5": (262_144, 262_144, _ESTIMATE, 1, 0.1667),
    "glm-4.6": (200_000, 128_000, _ESTIMATE, 1, 0.1833),
}


def names() -> list[str]:
    """Return the names of the models that memci knows, by provider."""
    return list(_TABLE)


def row(name: object, own: object) -> Mapping[str, Any]:
    """Return what is known of a model: some of ``window``, ``reserve``, ``counter`` and ``prices``.

    The application's *own* rows, by name, come before those here. ``ConfigError`` for a model that is in neither.
    """
    known: Any = own if isinstance(own, Mapping) else {}
    if isinstance(name, str) and name in known:
        return _checked(name, known[name])
    if isinstance(name, str) and name in _TABLE:
        window, reply, counter, write, read = _TABLE[name]
        reserve = min(reply, _MOST_RESERVE)
        return {"window": window, "reserve": reserve, "counter": counter, "prices": {"write": write, "read": read}}
    near = matches(name, [*known, *_TABLE]) if isinstance(name, str) else []
    hint = f"; did you mean {near[0]}?" if near else ""
    message = (
        f"{shown(name)} is no model that is known{hint}: give budget.window and budget.reserve, or a row of your own in models"
    )
    raise ConfigError(message, path="budget.model")


def _checked(name: str, given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping) or not set(given) <= set(_KEYS) or not isinstance(given.get("prices", {}), Mapping):
        message = f"a row of a model has some of {', '.join(_KEYS)}, prices with write and read; {shown(given)} has others"
        raise ConfigError(message, path=f"models.{name[:80]}")
    return given


def filled(given: Any, own: object) -> Any:  # noqa: ANN401 (settings, or what is none)
    """Return settings with what is known of their ``budget.model`` filled in where they do not say it themselves."""
    budget = given.get("budget") if isinstance(given, Mapping) else None  # what is none is refused by whoever reads it
    if not isinstance(budget, Mapping) or budget.get("model") is None:
        return given
    known = row(budget["model"], given.get("models", own))
    sizes = {key: known[key] for key in ("window", "reserve") if key in known}
    left = dict(given) | {"budget": {**sizes, **budget}}
    if "counter" in known:
        left.setdefault("counter", known["counter"])
    prices = given.get("prices", {})
    if "prices" in known and isinstance(prices, Mapping):
        left["prices"] = {**known["prices"], **prices}
    return left
