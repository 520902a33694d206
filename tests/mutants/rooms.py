"""Which tests are about which modules: those that have to notice a mutation."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.mutants.mutation import ROOT

_COMMANDS: Final = "tests/engine/commands"
_MACHINES: Final = (
    "tests/engine/test_session_machine.py",
    "tests/engine/test_keeping_machine.py",
    "tests/engine/test_driver.py",
)
_STORES: Final = "tests/archive/stores/test_*.py"  # those of all stores

ROOMS: Final[Mapping[str, tuple[str, ...]]] = {
    "memci.messages": ("tests/messages", "tests/engine/hosting/test_streaming.py", f"{_COMMANDS}/test_headlines.py"),
    "memci.chapters": ("tests/chapters", _COMMANDS),
    "memci.archive.contents": ("tests/archive/contents", "tests/engine/history", "tests/engine/tree", _COMMANDS),
    "memci.archive.catalogue": ("tests/archive/catalogue", "tests/engine/reading", _COMMANDS),
    "memci.archive.summarizers": ("tests/archive/summarizers",),
    "memci.archive.stores": (_STORES, "tests/engine/hosting", "tests/engine/erasure"),
    "memci.archive.stores.file": ("tests/archive/stores/file", _STORES, "tests/torture/test_crash_states.py"),
    "memci.archive.stores.sql": ("tests/archive/stores/sql", _STORES, "tests/torture/test_parts.py"),
    "memci.archive.stores.objects": ("tests/archive/stores/objects", _STORES),
    "memci.archive.stores.tier": ("tests/archive/stores/tier", _STORES),
    "memci.attp": ("tests/attp", "tests/engine/tools"),
    "memci.engine.settings": ("tests/engine/settings", _COMMANDS),
    "memci.engine.history": (
        *("tests/engine/history", "tests/engine/core", _COMMANDS, "tests/engine/tree", "tests/engine/hosting"),
        *("tests/engine/sharing", "tests/engine/erasure", "tests/engine/tools", *_MACHINES),
    ),
    "memci.engine.view": (_COMMANDS, "tests/engine/sharing", *_MACHINES),
    "memci.engine.core": (
        *("tests/engine/core", "tests/engine/history", _COMMANDS, "tests/engine/tree"),
        *("tests/engine/hosting", "tests/engine/erasure"),
    ),
    "memci.engine.reading": ("tests/engine/reading", _COMMANDS, "tests/engine/tree"),
    "memci.engine.summaries": (_COMMANDS, "tests/engine/core", "tests/engine/history", "tests/engine/erasure"),
    "memci.engine.commands": (_COMMANDS, "tests/engine/core", "tests/engine/tree", "tests/engine/hosting"),
    "memci.engine.tree": ("tests/engine/tree", "tests/engine/tools"),
    "memci.engine.tools": ("tests/engine/tools", "tests/engine/tree"),
    "memci.engine.sharing": ("tests/engine/sharing", "tests/engine/hosting", "tests/engine/erasure"),
    "memci.engine.erasure": ("tests/engine/erasure", "tests/engine/sharing", f"{_COMMANDS}/test_blobs.py"),
    "memci.engine.hosting.past": ("tests/page", "tests/engine/hosting"),
    "memci.engine.hosting": ("tests/engine/hosting", "tests/engine/sharing"),
    "memci.engine.upkeep": ("tests/engine/upkeep", "tests/engine/erasure", "tests/engine/hosting"),
    "memci.engine.aio": ("tests/engine/aio",),
    "memci.engine.engine": ("tests/engine/core", "tests/engine/hosting", "tests/engine/upkeep", _STORES),
    "memci.cli": ("tests/cli",),
    "memci.http": ("tests/http", "tests/client"),
    "memci.client": ("tests/client", "tests/http"),
    "memci.mcp": ("tests/mcp",),
    "memci.chat": ("tests/chat",),
    "memci.page": ("tests/page", "tests/http/test_page.py", "tests/http/test_viewing.py"),
    "memci.otel": ("tests/otel",),
    "memci.adapters": ("tests/adapters",),
    "memci.testing": ("tests/testing", _STORES),
    "memci.quality": ("tests/quality",),
}
"""Paths and patterns of tests by the prefix of a module's name; the longest prefix counts."""


def files_of(module: str) -> list[str]:
    """Return the test files of a module's room, those named after the module first."""
    stem = module.rpartition(".")[2]
    files = list(dict.fromkeys(file for path in paths_of(module) for file in _files(path)))
    return sorted(files, key=lambda file: stem not in Path(file).stem)  # the sort keeps the order of the rest


def paths_of(module: str) -> tuple[str, ...]:
    """Return the paths of a module's room; ``LookupError`` if it has none."""
    prefix = max((each for each in ROOMS if f"{module}.".startswith(f"{each}.")), key=len, default="")
    if not prefix:
        message = f"no room of tests for {module}: add its prefix to ROOMS"
        raise LookupError(message)
    return ROOMS[prefix]


def _files(path: str) -> Iterator[str]:
    for found in sorted(ROOT.glob(path)):
        files = sorted(found.rglob("test_*.py")) if found.is_dir() else [found]
        yield from (file.relative_to(ROOT).as_posix() for file in files)
