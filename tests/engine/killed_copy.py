"""Copies a session, and kills itself once so many records are there; run as a process."""

import os
import signal
import sys

from memci.archive.stores.file.store import FileStore
from memci.engine.upkeep.copying import copy_session


def main(source: str, target: str, to_session: str, die_at: str) -> None:
    """Copy the session ``chat`` and die by SIGKILL at the first look with at least *die_at* records."""

    def hear(done: int, _: int) -> None:
        if done >= int(die_at):
            os.kill(os.getpid(), signal.SIGKILL)

    copy_session(
        FileStore(source, "flush"), FileStore(target, "flush"), "chat", now="2026-01-01T00:00:00+00:00",
        to_session=to_session or None, progress=hear,
    )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
