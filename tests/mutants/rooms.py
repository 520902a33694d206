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

ROOMS: Final[Mapping[str, tuple[str, ...]]] = {
    "memci.messages": ("tests/messages", "tests/engine/hosting/test_streaming.py", _COMMANDS),
    "memci.chapters": ("tests/chapters", _COMMANDS, *_MACHINES),
    "memci.archive.contents": ("tests/archive/contents", "tests/engine/tree", _COMMANDS),
    "memci.archive.catalogue": ("tests/archive/catalogue", "tests/engine/reading", "tests/engine/core", _COMMANDS),
    "memci.archive.summarizers": ("tests/archive/summarizers", _COMMANDS),
    "memci.archive.stores.file": ("tests/archive/stores/file", "tests/archive/stores", "tests/torture/test_crash_states.py"),
    "memci.archive.stores.sql": ("tests/archive/stores/sql", "tests/archive/stores", "tests/torture/test_parts.py"),
    "memci.archive.stores.objects": ("tests/archive/stores/objects", "tests/archive/stores"),
    "memci.archive.stores.tier": ("tests/archive/stores/tier", "tests/archive/stores"),
    "memci.archive.stores": ("tests/archive/stores", "tests/engine/hosting", "tests/engine/erasure"),
    "memci.attp": ("tests/attp", "tests/engine/tools"),
    "memci.engine.settings": ("tests/engine/settings", _COMMANDS),
    "memci.engine.history": (
        *("tests/engine/history", _COMMANDS, "tests/engine/tree", "tests/engine/core"),
        *("tests/engine/sharing", "tests/engine/hosting", "tests/engine/erasure", *_MACHINES),
    ),
    "memci.engine.core": ("tests/engine/core", _COMMANDS, "tests/engine/hosting", "tests/engine/erasure"),
    "memci.engine.view": (_COMMANDS, "tests/engine/core", "tests/engine/sharing", *_MACHINES),
    "memci.engine.reading": ("tests/engine/reading", _COMMANDS, "tests/engine/tree"),
    "memci.engine.commands": (_COMMANDS, "tests/engine/tree", "tests/engine/hosting", *_MACHINES),
    "memci.engine.summaries": (_COMMANDS, "tests/engine/core", "tests/engine/erasure"),
    "memci.engine.tree": ("tests/engine/tree", "tests/engine/tools"),
    "memci.engine.tools": ("tests/engine/tools", "tests/engine/tree"),
    "memci.engine.sharing": ("tests/engine/sharing", "tests/engine/hosting", "tests/engine/erasure"),
    "memci.engine.erasure": ("tests/engine/erasure", "tests/engine/sharing"),
    "memci.engine.hosting": ("tests/engine/hosting", "tests/engine/sharing"),
    "memci.engine.upkeep": ("tests/engine/upkeep", "tests/engine/erasure", "tests/engine/hosting"),
    "memci.engine.aio": ("tests/engine/aio",),
    "memci.engine.engine": ("tests/engine/core", "tests/engine/hosting", "tests/engine/upkeep", "tests/archive/stores"),
    "memci.cli": ("tests/cli",),
    "memci.http": ("tests/http", "tests/client"),
    "memci.client": ("tests/client", "tests/http"),
    "memci.mcp": ("tests/mcp",),
    "memci.chat": ("tests/chat",),
    "memci.page": ("tests/page", "tests/http"),
    "memci.otel": ("tests/otel",),
    "memci.adapters": ("tests/adapters",),
    "memci.testing": ("tests/testing", "tests/archive/stores"),
    "memci.quality": ("tests/quality", "tests/cli"),
}
"""Paths of tests by the prefix of a module's name; the longest prefix counts."""


def files_of(module: str) -> list[str]:
    """Return the test files of a module's room, those named after the module first."""
    stem = module.rpartition(".")[2]
    files = list(dict.fromkeys(file for path in _paths(module) for file in _expanded(ROOT / path)))
    return sorted(files, key=lambda file: stem not in Path(file).stem)  # the sort keeps the order of the rest


def _paths(module: str) -> tuple[str, ...]:
    prefix = max((each for each in ROOMS if f"{module}.".startswith(f"{each}.")), key=len, default="")
    if not prefix:
        message = f"no room of tests for {module}: add its prefix to ROOMS"
        raise LookupError(message)
    return ROOMS[prefix]


def _expanded(path: Path) -> Iterator[str]:
    files = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
    yield from (file.relative_to(ROOT).as_posix() for file in files)
