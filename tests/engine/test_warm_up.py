"""Loading what a first request needs before it comes."""

import subprocess
import sys
from pathlib import Path

import pytest

import memci
from memci.errors import SessionClosedError
from memci.messages.formats import format as formats

FIRST_REQUEST = """
import sys
import memci
engine = memci.Engine({store!r})
engine.warm_up()
before = set(sys.modules)
with engine.session("first") as session:
    session.append({{"role": "system", "content": "You are a helpful assistant."}})
    session.extend([{{"role": role, "content": "Where is my order?"}} for role in ("user", "assistant") * 3])
    session.window()
    session.fold("all")
    session.search("order")
print(*sorted(set(sys.modules) - before))
"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["memory:", "file:{}", "sqlite:///{}/sessions.db"])
def test_a_first_request_loads_nothing_after_it(scheme: str, tmp_path: Path) -> None:
    """After warming up, appending, a window, a fold and a search import nothing more."""
    code = FIRST_REQUEST.format(store=scheme.format(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 (our own Python)
    assert done.stdout == "\n"


@pytest.mark.parametrize("wire", formats.NAMES)
def test_nothing_is_written(wire: str, tmp_path: Path) -> None:
    """Warming up makes no session and no file, in any wire format, and can be repeated."""
    with memci.Engine(f"file:{tmp_path / 'chats'}", {"format": wire}) as engine:
        engine.warm_up()
        engine.warm_up()
        assert list(engine.sessions()) == []
    assert list(tmp_path.iterdir()) == []


def test_a_closed_engine_refuses() -> None:
    """An engine that was closed is not warmed up."""
    engine = memci.Engine("memory:")
    engine.close()
    with pytest.raises(SessionClosedError):
        engine.warm_up()
