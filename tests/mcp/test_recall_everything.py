"""What contents pages show can be recalled and read back in all three ways."""

import json
from pathlib import Path

import pytest

from tests.mcp.recall_everything import recall_everything

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_whatever_is_shown_comes_back(tmp_path: Path) -> None:
    """At each fold of a conversation, every entry, directory and page in a directory is recalled, and read as it was said."""
    conversation = json.loads((EXAMPLES / "support.json").read_text(encoding="utf-8"))
    found = recall_everything(conversation["messages"][:80], tmp_path, budget=1_300)
    assert [] == found.unequal
    assert found.contents_pages >= 2
    assert found.indexes > 20
