"""Where the package of a framework is missing, an adapter says how to get it."""

import importlib
import sys
from types import ModuleType

import pytest

ADAPTERS = [
    ("agent_framework", "agent_framework", "agent-framework"),
    ("anthropic", "anthropic", "anthropic"),
    ("langchain", "langchain", "langchain"),
    ("importing.langgraph", "langgraph", "langchain"),
    ("openai_agents", "agents", "openai-agents"),
    ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
]


@pytest.mark.parametrize("found", [None, ModuleType("other")], ids=["missing", "other"])
@pytest.mark.parametrize(("adapter", "package", "extra"), ADAPTERS, ids=[adapter for adapter, *_ in ADAPTERS])
def test_the_package_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, adapter: str, package: str, extra: str, found: ModuleType | None
) -> None:
    """Where a framework is missing, or another package of that name is there, the error says which extra to install."""
    for name in [each for each in sys.modules if each.split(".")[0] == package or each.startswith(f"memci.adapters.{adapter}")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, found)  # None stands for one that is not there
    with pytest.raises(ImportError) as raised:
        importlib.import_module(f"memci.adapters.{adapter}")
    assert [f"memci.adapters needs more here: install memci with its extra {extra}"] == raised.value.__notes__
