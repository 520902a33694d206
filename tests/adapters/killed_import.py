"""Importers that are killed, each two places after the last one; run as ``python -m tests.adapters.killed_import FOLDER``.

Each works in a folder that is named by the number of its place; that of the first one that got through is printed.
"""

import os
import sys
from itertools import count
from pathlib import Path

from memci.adapters.importing.chatgpt import conversations
from memci.adapters.importing.imported import Imported, import_into
from memci.archive.stores.file.store import FileStore
from memci.engine.engine import Engine
from tests.adapters.exports import talked
from tests.engine.killed_writer import KillingIo


def found() -> list[Imported]:
    """Return what is imported: two conversations."""
    other = talked().value | {"conversation_id": "chat-2"}
    return [*conversations([talked().value, other])]


def main() -> None:
    """Fork importers until one gets through."""
    root = Path(sys.argv[1])
    for left in count(step=2):
        pid = os.fork()
        if not pid:
            io = KillingIo()
            with Engine(FileStore(root / str(left), io=io)) as engine:
                io.left = left
                for each in found():
                    import_into(engine, each)
            os._exit(0)
        if not os.waitpid(pid, 0)[1]:
            sys.stdout.write(str(left))
            return


if __name__ == "__main__":
    main()
