"""Summarisers and planners of entry points: what packages may bring, and what is refused of it."""

import sys
from pathlib import Path

import pytest

from memci.engine.core.named import make_planner, make_summarizer
from memci.engine.engine import Engine
from memci.errors import ConfigError

MODULE = """
class Summarizer:
    def summarize(self, messages, *, max_tokens):
        return "a line"

class Planner:
    def plan(self, state, config):
        raise NotImplementedError

def nothing():
    return None

def kind():
    return Summarizer

def fails():
    return 1 / 0
"""


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with entry points, as far as the import system is concerned."""
    (tmp_path / "brought_parts.py").write_text(MODULE)
    (tmp_path / "broken_parts.py").write_text("raise RuntimeError('no licence')")
    metadata = tmp_path / "brought_parts-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: brought-parts\nVersion: 1.0\n")
    names = ("nothing", "kind", "fails", "Summarizer", "Planner")
    listed = (
        "".join(f"{name} = brought_parts:{name}\n" for name in names) + "broken = broken_parts:x\nmissing = no_such_parts:x\n"
    )
    (metadata / "entry_points.txt").write_text(f"[memci.summarizers]\n{listed}[memci.planners]\n{listed}")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("brought_parts", "broken_parts"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.usefixtures("brought")
def test_a_class_or_a_function_makes_one() -> None:
    """By its name, in an engine's settings too."""
    assert "a line" == getattr(make_summarizer("Summarizer"), "summarize")([], max_tokens=3)  # noqa: B009 (it may be none)
    assert hasattr(make_planner("Planner"), "plan")
    Engine("memory:", {"summarizer": "Summarizer", "planner": "Planner"}).close()


@pytest.mark.usefixtures("brought")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nothing", "nothing makes None"),
        ("kind", "kind makes <class"),
        ("Planner", "that returns an object with summarize"),
        ("fails", "fails cannot be made of nothing: ZeroDivisionError"),
        ("broken", "broken cannot be made of nothing: RuntimeError: no licence"),
        ("missing", "missing cannot be made of nothing: ModuleNotFoundError"),
    ],
)
def test_what_makes_none_is_named(name: str, problem: str) -> None:
    """Before anything is asked of it."""
    with pytest.raises(ConfigError, match=problem):
        make_summarizer(name)
    if name != "Planner":
        with pytest.raises(ConfigError, match=name):
            make_planner(name)
