"""The page on performance says what the run found that is kept with the project."""

import json

import pytest

from benchmarks.performance import TABLES, written
from tests.test_readme import ROOT, text

RESULT = json.loads((ROOT / "benchmarks" / "performance.json").read_text(encoding="utf-8"))
PAGE = "docs/performance.md"


def test_the_page_has_the_tables_of_the_result() -> None:
    """Each figure of the tables is one of the result's."""
    assert written(text(PAGE), RESULT) == text(PAGE)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_without_a_place_is_told(name: str) -> None:
    """No table is left out because the page has no place for it."""
    with pytest.raises(LookupError, match=f"no place for {name}$"):
        written(text(PAGE).replace(f"<!-- {name} -->", ""), RESULT)
