"""What a run finds of peers, in this process and in others."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from benchmarks.peers import work
from benchmarks.peers.catalogue import PeerSpec
from benchmarks.peers.once import first_request, lost_by_kill, lost_by_writers, watched
from benchmarks.peers.peer import Peer
from benchmarks.peers.runner import Plan, measure
from memci.messages.tokens.counter import get_counter
from tests.peers.tiny import WORK_S, Beside, Failing, LastThree, Threaded, Whole

pytestmark = pytest.mark.slow

PLAN = Plan(rounds=2, round_turns=5, round_s=60.0, reads=8, searches=2, checked_turns=10)
SQLITE = PeerSpec("sqlite_table", "NORMAL", None, "", "")

Run = Callable[..., dict[str, dict[str, Any]]]


@pytest.fixture
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def run(tmp_path: Path, told: list[tuple[str, str]]) -> Run:
    def run(kinds: Sequence[type[Peer]], kind: str = "chat", turns: int = 60, plan: Plan = PLAN) -> dict[str, dict[str, Any]]:
        file = work.write(tmp_path / kind, kind, turns + plan.turns, get_counter("approximate"))
        peers = {each.__name__: Beside(each(tmp_path, ""), file, told) for each in kinds}
        return {row["peer"]: row for row in measure(peers, kind, turns, plan)}

    return run


def roles(kind: str) -> Iterator[str]:
    for turn in work.turns(kind, 2):
        yield " ".join(message["role"] for message in turn)


def test_each_kind_of_work_has_its_turns() -> None:
    """A turn of chat is a question and an answer, with results of a tool between them where the kind says so."""
    assert ["user assistant"] * 2 == list(roles("chat"))
    assert ["user assistant tool assistant", "user assistant tool assistant tool assistant"] == list(roles("tools"))
    assert [20_000] * 2 == [len(turn[2]["content"]) for turn in work.turns("results", 2)]


def test_all_turns_of_all_rounds_are_measured(run: Run) -> None:
    """Each peer has a row with the figures of every turn that its rounds took."""
    rows = run([Whole, LastThree])
    assert [10, 10] == [row["measured_turns"] for row in rows.values()]
    assert all(row["cpu_us"]["median"] <= row["cpu_us"]["p99"] <= row["cpu_us"]["max"] for row in rows.values())


def test_peers_take_rounds_in_turns(run: Run, told: list[tuple[str, str]]) -> None:
    """Rounds alternate, and another peer begins each time; those with pauses come first."""
    run([Whole, LastThree])
    assert ["Whole", "LastThree", "LastThree", "Whole"] * 2 == [name for do, name in told if do == "round"]


def test_pauses_are_in_no_wait_and_the_work_of_threads_is_in_all_cpu(run: Run) -> None:
    """While a model takes its time a peer's threads may work: nobody waits for that, and the process's CPU time has it."""
    paused = run([Threaded], plan=attrs.evolve(PLAN, pause_turns=3, pause_s=0.05))["Threaded"]["paused"]
    assert 6 == paused["measured_turns"]
    assert paused["wait_us"]["median"] < 1e6 * 0.05
    assert paused["cpu_us"]["median"] < 1e6 * WORK_S <= paused["all_cpu_us"]


def test_windows_are_counted_anew(run: Run) -> None:
    """What is over the budget is told, whatever the peer thinks of it, with the size of the largest window."""
    rows = run([Whole, LastThree])
    assert (10, 10, 0) == (rows["Whole"]["windows"], rows["Whole"]["over_budget"], rows["LastThree"]["over_budget"])
    assert rows["LastThree"]["largest_window"] < 500
    assert rows["Whole"]["largest_window"] > 8_000


def test_calls_without_results_are_counted(run: Run) -> None:
    """A window that cuts a call from its result has a broken pair."""
    rows = run([Whole, LastThree], "tools")
    assert 0 == rows["Whole"]["broken_pairs"]
    assert rows["LastThree"]["broken_pairs"] > 0


def test_what_is_read_again_is_compared(run: Run) -> None:
    """A peer that gives back other messages than it took in is told."""
    rows = run([Whole, LastThree], "tools")
    assert (True, False) == (rows["Whole"]["read_right"], rows["LastThree"]["read_right"])


def test_only_peers_that_search_are_searched(run: Run) -> None:
    """One without a search has no figure for it."""
    rows = run([Whole, LastThree])
    assert "search_us" in rows["Whole"]
    assert "search_us" not in rows["LastThree"]


def test_a_failing_peer_stops_nobody(run: Run) -> None:
    """Its row says what was wrong, and the others are measured to the end."""
    rows = run([Failing, Whole])
    assert "it is full" == rows["Failing"]["problem"]
    assert 10 == rows["Whole"]["measured_turns"]


def test_a_slow_peer_is_told_as_such(run: Run) -> None:
    """Which length was reached in the time is the answer then."""
    rows = run([Whole], plan=Plan(fill_s=0.0))
    assert "0 turns after 0 s of CPU time" == rows["Whole"]["problem"]


@pytest.fixture
def turns(tmp_path: Path) -> Path:
    return work.write(tmp_path / "turns", "chat", 3, get_counter("approximate"))


def test_what_a_killed_process_lost_is_counted(tmp_path: Path, turns: Path) -> None:
    """A table of SQLite loses nothing that was taken in, a list all of it."""
    for spec, share in ((SQLITE, 0), (PeerSpec("plain_list", "characters", None, "", ""), 1)):
        found = lost_by_kill(spec, tmp_path / spec.module, turns)
        assert found["killed_said"] >= 200
        assert share * found["killed_said"] == found["killed_lost"]


def test_what_writers_lost_is_counted(tmp_path: Path, turns: Path) -> None:
    """Four processes say fifty messages each, and SQLite has all of them."""
    found = lost_by_writers(SQLITE, tmp_path / "files", turns)
    assert {"writers_said": 200, "writers_refused": 0, "writers_lost": 0} == found


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_syncs_and_bytes_are_seen_by_strace(tmp_path: Path) -> None:
    """A table synced at each transaction has two syncs a turn and no index; memci's search index has a share of the bytes."""
    turns = work.write(tmp_path / "turns", "chat", 110, get_counter("approximate"))
    full, flush = (
        watched(PeerSpec(module, option, None, "", ""), tmp_path / module, turns, 10)
        for module, option in (("sqlite_table", "FULL"), ("memci_session", "flush 1000"))
    )
    assert {"syncs": 2.0, "index_share": 0.0} == full
    assert (0.0, True) == (flush["syncs"], 0 < flush["index_share"] < 1)


def test_a_first_request_is_that_of_a_new_process(tmp_path: Path, turns: Path) -> None:
    """Its CPU time holds the interpreter's start."""
    found = first_request(SQLITE, tmp_path / "files", turns, 1)
    assert 1_000 < found["cpu"] < found["wait"] * 4
