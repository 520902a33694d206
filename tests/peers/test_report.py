"""What is told of a run's result."""

import copy
import xml.etree.ElementTree as ET
from typing import Any

from memci.quality.reports.peers import ONCE, TABLES, better, draw, once_of, problems, ratios, rows_of, table
from tests.peers.tiny import RESULT, row


def test_promises_are_those_of_all_works() -> None:
    """A peer has one row of what was measured once, with the windows of all works and the largest of them."""
    result = copy.deepcopy(RESULT)
    result["rows"][2] |= {"windows": 3, "largest_window": 7_900, "over_budget": 1, "broken_pairs": 0}
    rows = table(ONCE, once_of(result))
    assert ["ours", "8", "7,900", "1", "0", "0", "2.0", "150"] == rows[1]
    assert ["theirs", "5", "90,000", "7", "0", "9", "2.0", "15"] == rows[2]


def test_growth_is_that_over_a_tenth_of_the_history() -> None:
    """A row ten times as long as another one has its CPU time as a share of that."""
    lines = table(TABLES["turns, in µs"], rows_of(RESULT)[2:])
    assert ["peer", "turn CPU#", "all CPU#", "mean wait#", "median wait#", "p99 wait#", "longest wait#", "growth#"] == lines[0]
    assert [["ours", "44", "88", "88", "44", "132", "176", "1.10"]] == lines[1:]


def test_figures_that_nobody_has_are_left_out() -> None:
    """A table has the columns that were measured, and there is none without any."""
    rows = rows_of(RESULT)
    assert [["peer", "bytes a turn#"], ["ours", "40"], ["theirs", "20"]] == table(TABLES["disk and memory"], rows[:2])
    assert [] == table(TABLES["disk and memory"], rows[2:])


def test_all_that_a_peer_does_better_is_told() -> None:
    """Each figure below ours is named with its share of ours; equal ones, and smaller windows, are not."""
    told = list(better(RESULT, rows_of(RESULT)))
    words = "turn CPU 0.5, all CPU 0.5, mean wait 0.5, median wait 0.5, p99 wait 0.5, longest wait 0.5, bytes a turn 0.5"
    assert [["theirs", f"{words}, first request, ms 0.1"]] == told


def test_shares_of_all_works_and_variants_are_one_range() -> None:
    """A library has one line: the least and the largest share of each figure in which it is better."""
    result = copy.deepcopy(RESULT)
    result["rows"][3] = row("theirs, faster", 1_000, 4.4)
    result["peers"]["theirs, faster"] = result["peers"]["theirs"]
    ((library, words),) = better(result, rows_of(result))
    assert "theirs" == library
    assert words.startswith("turn CPU 0.1–0.5, all CPU 0.1–0.5,")


def test_what_was_not_reached_is_told() -> None:
    """A peer's problem is told once, with the works in which it stood in the way."""
    result = copy.deepcopy(RESULT)
    result["rows"][1]["problem"] = result["rows"][3]["problem"]
    assert ["theirs, chat, 100 turns; chat, 1,000 turns: 400 turns after 60 s"] == list(problems(rows_of(result)))


def test_a_peer_that_lost_less_is_told() -> None:
    """Where memci loses something, so that no share can be said of nothing, the peer that does not is named."""
    result = copy.deepcopy(RESULT)
    result["others"][0]["killed_lost"], result["others"][1]["killed_lost"] = 4, 0
    assert "lost by kill -9 0" in next(better(result, rows_of(result)))[1]


def test_the_picture_has_a_line_for_each_peer() -> None:
    """It is an XML document, with a line for each peer that was measured."""
    drawn = ET.fromstring(draw(rows_of(RESULT)))  # noqa: S314 (our own)
    assert 2 == len(drawn.findall(".//{*}polyline"))


def told(result: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the ratios of a result, by what is compared."""
    return {heading: tuple(figures) for heading, _, *figures in ratios(result)}


def test_ratios_are_those_of_rounds_side_by_side() -> None:
    """Of turns and waits the median over the rounds is told, so that a round that all were slow in weighs nothing."""
    result = {"rows": (rows := [row(peer, 100, 1.0) for peer in ("memci, flush", "sqlite3, NORMAL")]), "others": []}
    for each, costs in zip(rows, ((3.0, 60.0, 4.0), (1.0, 20.0, 2.0)), strict=True):
        each["rounds"] = [{"cpu_us": cost, "wait_us": cost} for cost in costs]
        each["paused"] = {**each, "all_cpu_us": 2 * costs[0]}
        each |= {"read_us": {"cpu": 2.0}, "bytes": 300.0, "message_bytes": 100.0}
    found = told(result)
    assert ("3.00", "") == found["bytes written over the JSON of the messages"]
    assert ("1.00", "3.00") == found["all CPU"]
    assert ("-", "") == found["reopening, with a window"]


def test_bytes_are_told_without_the_index() -> None:
    """What was seen to go to the search index is left out of the second of the two ratios."""
    ours = row("memci, flush", 100, 1.0, bytes=300.0, message_bytes=100.0)
    found = told({"rows": [ours], "others": [{"peer": "memci, flush", "index_share": 0.5}], "index_share": 0.25})
    assert ("2.25", "") == found["the same, without the search index"]


def test_searches_are_compared_at_each_length() -> None:
    """Each chat in which both search has its ratio."""
    rows = [
        row(peer, turns, 1.0, search_us={"cpu": cost * turns})
        for peer, cost in (("memci, flush", 3.0), ("sqlite3, FTS5", 2.0))
        for turns in (100, 1_000)
    ]
    found = told({"rows": rows, "others": []})
    assert [("1.50", "")] * 2 == [found["search in 1,000 turns"], found["search in 100 turns"]]


def test_windows_of_several_sizes_are_compared() -> None:
    """How long the turn with a fold waits in a large window is told beside a small one."""
    windows = [{"work": "chat", "window": window, "fold_us": float(window)} for window in (8_000, 128_000)]
    found = told({"rows": [], "others": [], "windows": windows})
    assert ("16.00", "") == found["wait at a fold"]
