"""Models by name: what a row of the table, or of the application's own, stands for."""

import pytest

from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.settings import models
from memci.engine.settings.config import Config
from memci.errors import ConfigError
from memci.messages.tokens.counter import get_counter
from tests.engine.wire import user

OWN = {"small": {"window": 9_000, "reserve": 500, "counter": "approximate", "prices": {"write": 1.0, "read": 0.5}}}


@pytest.mark.parametrize("name", models.names())
def test_every_row_can_be_used(name: str) -> None:
    """Each model of the table is a config: its window is above its reserve, its counter is there, its cache saves."""
    config = Config.from_mapping({"budget": {"model": name}})
    assert config.budget.window > config.budget.reserve > 0
    assert get_counter(config.counter).name
    assert config.prices.read < config.prices.write
    assert config == Config.from_mapping(config.to_mapping())


def test_what_is_given_wins() -> None:
    """A model fills in what the settings do not say themselves."""
    config = Config.from_mapping({"budget": {"model": "claude-sonnet-4-5", "reserve": 8_000}, "prices": {"read": 0.2}})
    assert (200_000, 8_000) == (config.budget.window, config.budget.reserve)
    assert ("approximate", 1.25, 0.2) == (config.counter, config.prices.write, config.prices.read)
    assert "o200k_base" == Config.from_mapping({"budget": {"model": "claude-sonnet-4-5"}, "counter": "o200k_base"}).counter


def test_rows_of_ones_own_come_first() -> None:
    """An application adds models, or says other things of known ones; some keys are enough."""
    config = Config.from_mapping({"models": OWN, "budget": {"model": "small"}})
    assert (9_000, 500, "approximate", 0.5) == (config.budget.window, config.budget.reserve, config.counter, config.prices.read)
    config = Config.from_mapping({"models": {"gpt-5": {"window": 50_000}}, "budget": {"model": "gpt-5"}})
    assert (50_000, 4_000, 0.1) == (config.budget.window, config.budget.reserve, config.prices.read)


@pytest.mark.parametrize(
    ("mapping", "path", "said"),
    [
        ({"budget": {"model": "gpt-5.11"}}, "budget.model", "did you mean gpt-5.1"),
        ({"models": OWN, "budget": {"model": "smal"}}, "budget.model", "did you mean small"),
        ({"models": {"a": 7}}, "models.a", "window, reserve, counter, prices"),
        ({"models": {"a": {"windows": 7}}}, "models.a", "window, reserve, counter, prices"),
        ({"models": {"a": {"window": -7}}, "budget": {"model": "a"}}, "budget.window", "whole number"),
    ],
)
def test_what_is_no_model_is_refused(mapping: dict[str, object], path: str, said: str) -> None:
    """The error names the place and the nearest name."""
    with pytest.raises(ConfigError, match=said) as raised:
        Config.from_mapping(mapping)
    assert path == raised.value.path


def test_the_journal_has_numbers() -> None:
    """A session notes what a model stood for: it opens and renders alike where the model is not known any more."""
    store = MemoryStore()
    session = Engine(store, {"models": OWN, "budget": {"model": "small"}}).session("s")
    session.append(user("Hello."))
    window = session.window()
    assert 8_500 == window.budget
    configured = next(event for event in session.events() if event.kind == "configured")
    assert {"window": 9_000, "reserve": 500} == configured.data["config"]["budget"]
    again = Engine(store, {"budget": {"window": 9_000, "reserve": 500}, "counter": "approximate"}).session("s")
    assert window.to_json() == again.render(window.seq).to_json()


def test_a_session_chooses_a_model() -> None:
    """A session's choice is what the model stands for, in the settings of one opening and as an event; the counter stays."""
    engine = Engine(MemoryStore(), {"models": OWN})
    one = engine.session("one", config={"budget": {"model": "small"}})
    one.append(user("Hello."))
    assert 8_500 == one.window().budget
    two = engine.session("two")
    two.append(user("Hello."))
    two.configure(budget={"model": "small"})
    assert (8_500, "o200k_base") == (two.window().budget, two.config.counter)
    with pytest.raises(ConfigError, match="no model"):
        two.configure(budget={"model": "smaller"})
    assert 8_500 == two.window().budget
