"""Sixteen processes on one session of each store; ``tests.archive.stores.writers`` does the same at length."""

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.archive.stores.sql.postgres_server import PostgresServer

APPENDS = 400


@pytest.mark.parametrize("scheme", ["file", "sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def test_many_processes_lose_and_double_nothing(request: pytest.FixtureRequest, quick_path: Path, scheme: str) -> None:
    """Each acknowledged append of sixteen processes is in the journal once, where it was said, in the order of its process."""
    if scheme == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = f"{server.new_url()}&memci_pool=1"
    else:
        url = {"file": f"file:{quick_path}/chats", "sqlite": f"sqlite:///{quick_path}/chats.db"}[scheme]
    command = [sys.executable, "-m", "tests.archive.stores.writers", "--store", url, "--durability", "flush"]
    done = subprocess.run([*command, "--processes", "16", "--appends", str(APPENDS)], stdout=subprocess.PIPE, check=True)  # noqa: S603
    tally = json.loads(done.stdout)
    assert APPENDS == tally["acknowledged"]
    assert (0, 0, 0, False) == (tally["lost"], tally["doubled"], tally["reordered"], tally["gaps"])
