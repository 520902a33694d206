"""What was measured of detaching and recalling pages, as tables."""

from collections.abc import Iterator, Sequence

from memci.quality.detaching import WAYS, Cost

_VIEWS = next(iter(WAYS))

Cells = list[list[str]]  # the names of columns, and the rows


def tables(costs: Sequence[Cost]) -> Iterator[tuple[str, Cells]]:
    """Yield headings and tables: times by size of the page, what is allocated, and where copying is quicker than views."""
    histories, pages = (sorted({getattr(cost, name) for cost in costs}) for name in ("history", "page"))
    by_place = {(cost.way, cost.history, cost.page): cost for cost in costs}
    for page in pages:
        shown = [history for history in histories if (_VIEWS, history, page) in by_place]
        rows = [[way, *(_times(by_place[way, history, page]) for history in shown)] for way in WAYS]
        heading = f"detach / recall / limit in ns, a page of {page:,}, by the messages of the history"
        yield heading, [["way", *(f"{history:,}#" for history in shown)], *rows]
    longest = histories[-1]
    columns = [f"{page:,}#" for page in pages if (_VIEWS, longest, page) in by_place]
    rows = [
        [way, *(f"{cost.blocks:,} / {cost.peak_bytes:,}" for cost in costs if (cost.way, cost.history) == (way, longest))]
        for way in WAYS
    ]
    yield (
        f"blocks left allocated / bytes at most, a history of {longest:,}, by the messages of the page",
        [["way", *columns], *rows],
    )
    rows = [[way, *(_quicker(way, page, costs) for page in pages)] for way in WAYS if way != _VIEWS]
    yield (
        "longest history in which it is quicker than views, by the messages of the page",
        [
            ["way", *(f"{page:,}#" for page in pages)],
            *rows,
        ],
    )


def _times(cost: Cost) -> str:
    return f"{cost.detach_ns:,.0f} / {cost.recall_ns:,.0f} / {cost.limit_ns:,.0f}"


def _quicker(way: str, page: int, costs: Sequence[Cost]) -> str:
    """Return the longest history in which a way takes less than views for both together."""
    both = {(cost.way, cost.history): cost.detach_ns + cost.recall_ns for cost in costs if cost.page == page}
    won = [history for (name, history), spent in both.items() if name == way and spent < both[_VIEWS, history]]
    return f"{max(won):,}" if won else "none"
