"""What the tests of stores share: servers for a run (for a worker, where there are several), and a quick disk."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.archive.stores.sql.postgres_server import MEMORY_DISK, PostgresServer, running_server
from tests.archive.stores.tier.redis_server import RedisServer, running_redis

if TYPE_CHECKING:
    from tests.archive.stores.objects.s3_server import S3Server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    with running_redis() as server:
        yield server


@pytest.fixture(scope="session")
def s3() -> Iterator["S3Server"]:
    from tests.archive.stores.objects.s3_server import S3Server  # noqa: PLC0415 (slow, and installed for servers only)

    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def quick_path() -> Iterator[Path]:
    """Yield a new directory on a memory disk, if there is one: for many commits whose syncs are not what is tested."""
    place = MEMORY_DISK if os.access(MEMORY_DISK, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="memci-", dir=place) as name:
        yield Path(name)
