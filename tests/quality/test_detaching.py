"""Ways to take pages out of a history and to bring them back, and the tables of what that costs."""

from pathlib import Path
from typing import Any

import pytest

from memci.quality.detaching import WAYS, Cost, Views, Way, make, measure
from memci.quality.reports.detaching import tables
from tests.python_calls import python_calls

TAKEN = {"detach_ns": 100.0, "recall_ns": 200.0, "limit_ns": 10.0, "blocks": 4, "peak_bytes": 1_000}


def taken_and_brought(way: Way) -> list[list[dict[str, Any]]]:
    """Return the messages before, with all pages taken out, and with all of them back."""
    seen = [list(way.content())]
    for start in reversed(way.starts):
        way.detach(start)
    seen.append(list(way.content()))
    for start in way.starts:
        way.recall(start)
    return [*seen, list(way.content())]


@pytest.mark.parametrize("kind", WAYS.values())
@pytest.mark.parametrize(("history", "page"), [(100, 1), (100, 7), (64, 32), (2_000, 10)])
def test_pages_leave_and_come_back_to_their_places(kind: type[Way], history: int, page: int, tmp_path: Path) -> None:
    """In each way so many messages are gone meanwhile, and all stand in their order afterwards."""
    way = make(kind, history, page, tmp_path)
    before, between, after = taken_and_brought(way)
    assert history - page * len(way.starts) == len(between)
    assert before == after
    assert len({message["id"] for message in before}) == history


def test_views_take_as_many_calls_at_any_size(tmp_path: Path) -> None:
    """A page of a thousand messages in a history of ten thousand is detached and recalled as one of one in a hundred is."""
    counts = []
    for history, page in ((100, 1), (10_000, 1_000)):
        way = make(Views, history, page, tmp_path)
        counts.append(python_calls(lambda way=way: (way.detach(way.starts[0]), way.recall(way.starts[0]))))  # type: ignore[misc]
    assert counts[0] == counts[1]
    assert 0 < sum(counts[0].values()) < 20


def test_what_is_copied_is_told() -> None:
    """A view allocates as much at any size, a list made anew the whole history, a page read again its messages."""
    by_place = {(cost.way, cost.history): cost for cost in measure([200, 2_000], [100], lambda _done, _total: None)}
    assert by_place["views (memci)", 2_000].blocks <= 8
    assert by_place["views (memci)", 2_000].peak_bytes < 1_000
    assert by_place["references, list rebuilt", 2_000].peak_bytes >= 8 * 2_000
    assert by_place["references, list rebuilt", 200].peak_bytes < 8 * 2_000
    assert by_place["read from its file", 200].blocks >= 100


def test_tables_name_where_copying_is_quicker() -> None:
    """The longest history in which a way takes less than views do stands in the last table."""
    spent = {"views (memci)": (300, 300), "dicts copied": (200, 400)}
    costs = [
        Cost(way=way, history=history, page=10, **{**TAKEN, "detach_ns": spent.get(way, (900, 900))[place]})  # type: ignore[arg-type]
        for place, history in enumerate((100, 1_000))
        for way in WAYS
    ]
    *_, (_, rows) = tables(costs)
    assert ["way", "10#"] == rows[0]
    assert {"dicts copied": "100", "references, cut in place": "none"}.items() <= dict(rows[1:]).items()
