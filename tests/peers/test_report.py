"""What is told of a run's result."""

import copy
import xml.etree.ElementTree as ET

from memci.quality.reports.peers import TABLES, better, draw, problems, ratios, rows_of, table
from tests.peers.tiny import RESULT, row


def test_figures_of_a_peer_stand_with_its_shortest_chat() -> None:
    """What is measured once a peer is in one row of it."""
    assert [0, 9, None, None] == [row.get("killed_lost") for row in rows_of(RESULT)]


def test_growth_is_that_over_a_tenth_of_the_history() -> None:
    """A row ten times as long as another one has its CPU time as a share of that."""
    lines = table(TABLES["turns, in µs"], rows_of(RESULT)[2:])
    assert ["peer", "turn CPU#", "all CPU#", "mean wait#", "median wait#", "p99 wait#", "longest wait#", "growth#"] == lines[0]
    assert [["ours", "44", "88", "88", "44", "132", "176", "1.10"]] == lines[1:]


def test_figures_that_nobody_has_are_left_out() -> None:
    """A table has the columns that were measured, and there is none without any."""
    rows = rows_of(RESULT)
    assert [["peer", "syncs a turn#"], ["ours", "2.0"], ["theirs", "2.0"]] == table(TABLES["disk and memory"], rows[:2])
    assert [] == table(TABLES["disk and memory"], rows[2:])


def test_all_that_a_peer_does_better_is_told() -> None:
    """Each figure below ours is named with its share of ours; equal ones, and smaller windows, are not."""
    told = list(better(RESULT, rows_of(RESULT)))
    words = "turn CPU 0.5, all CPU 0.5, mean wait 0.5, median wait 0.5, p99 wait 0.5, longest wait 0.5, first request 0.1"
    assert [["chat, 100 turns", "theirs", words]] == told


def test_what_was_not_reached_is_told() -> None:
    """A peer's problem names its work and length."""
    assert ["theirs, chat, 1,000 turns: 400 turns after 60 s"] == list(problems(rows_of(RESULT)))


def test_a_peer_that_lost_less_is_told() -> None:
    """Where memci loses something, so that no share can be said of nothing, the peer that does not is named."""
    result = copy.deepcopy(RESULT)
    result["others"][0]["killed_lost"], result["others"][1]["killed_lost"] = 4, 0
    assert "lost by kill -9 0" in next(better(result, rows_of(result)))[2]


def test_the_picture_has_a_line_for_each_peer() -> None:
    """It is an XML document, with a line for each peer that was measured."""
    drawn = ET.fromstring(draw(rows_of(RESULT)))  # noqa: S314 (our own)
    assert 2 == len(drawn.findall(".//{*}polyline"))


def test_ratios_are_those_of_rounds_side_by_side() -> None:
    """Of turns and waits the median over the rounds is told, so that a round that all were slow in weighs nothing."""
    ours, theirs = (row(peer, 100, 1.0, rounds=[]) for peer in ("memci, flush", "sqlite3, NORMAL"))
    for each, costs in ((ours, (3.0, 60.0, 4.0)), (theirs, (1.0, 20.0, 2.0))):
        each["rounds"] = [{"cpu_us": cost, "wait_us": cost} for cost in costs]
        each |= {"read_us": {"cpu": 2.0}, "reopen_us": {"cpu": 2.0}, "bytes": 300.0, "message_bytes": 100.0}
    found = {heading: ratio for heading, _, ratio in ratios([ours, theirs])}
    assert ("3.00", "3.00") == (found["turn CPU, folds left out"], found["bytes written over the JSON of the messages"])
