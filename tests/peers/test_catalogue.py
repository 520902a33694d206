"""The peers are there as they are listed."""

from benchmarks.peers.catalogue import PEERS
from tests.test_house import ROOT

PEERS_FOLDER = ROOT / "benchmarks" / "peers"


def test_each_peer_has_a_driver_and_pins() -> None:
    """A peer's module is there, and what its environment is made of, and nothing else."""
    drivers = {path.stem for path in (PEERS_FOLDER / "drivers").glob("*.py")} - {"__init__"}
    pins = {path.stem for path in (PEERS_FOLDER / "pins").glob("*.txt")}
    assert drivers == {spec.module for spec in PEERS.values()}
    assert pins == {spec.environment for spec in PEERS.values()} - {None}


def test_each_peer_is_compared_with_a_memci() -> None:
    """What a peer is set beside is one of ours."""
    assert {True} == {PEERS[spec.beside].module == "memci_session" for spec in PEERS.values()}


def test_every_version_is_pinned() -> None:
    """Each line of an environment names a package and its version."""
    for path in (PEERS_FOLDER / "pins").glob("*.txt"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [2] * len(lines) == [len(line.split("==")) for line in lines]
