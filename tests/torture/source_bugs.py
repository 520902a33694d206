"""memci with a piece of its source replaced by a wrong one, to see what notices: ``python -m tests.torture.source_bugs NAME``.

Nothing is written: the module is compiled from the changed text as the process loads it, and the tests that are to notice run
there.
"""

import importlib.abc
import importlib.machinery
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import attrs
import pytest

ROOT = Path(__file__).parents[2]
MACHINE = "tests/engine/test_session_machine.py"
LADDER = "tests/engine/commands/test_ladder.py"

# Of the plugins that are installed, those that these tests need: to load all takes longer than to run the tests.
_PLUGINS = ["--disable-plugin-autoload", "-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin"]


@attrs.frozen
class SourceBug:
    """One wrong piece of source.

    Attributes:
        what: In a few words.
        module: Where it stands.
        right: The text that is replaced, which stands there once.
        wrong: What is put in its place.
        tests: Files of tests, or single ones, any of which is to notice.
    """

    what: str
    module: str
    right: str
    wrong: str
    tests: Sequence[str]


BUGS: dict[str, SourceBug] = {
    "scale-not-saved": SourceBug(
        "snapshots forget the scale", "memci.engine.history.state_codec", '"turn", "scale", ', '"turn", ', [MACHINE]
    ),
    "anchor-not-saved": SourceBug(
        "snapshots forget where a recalled page stands",
        "memci.engine.history.state_codec",
        '{**kept, "page"',
        '{**kept, "anchor": "", "page"',
        ["tests/engine/history/test_state_codec.py"],
    ),
    "recalls-not-read": SourceBug(
        "how often active pages were recalled is not read back",
        "memci.engine.history.state_codec",
        'recalls={index: (count, turn) for index, (count, turn) in value["recalls"].items()}',
        "recalls={}",
        ["tests/engine/history/test_state_codec.py"],
    ),
    "cut-without-scale": SourceBug(
        "the open page is cut by what the counter says, whatever the provider counted",
        "memci.engine.commands.appending",
        "page.tokens * core.state.scale >= planner",
        "page.tokens >= planner",
        ["tests/engine/commands/test_appending.py"],
    ),
    "recalled-blocks-not-recounted": SourceBug(
        "another counter leaves recalled blocks their old sizes",
        "memci.engine.history.recounting",
        '"blocks": {index: count(attachment.block)',
        '"blocks": {index: attachment.tokens',
        ["tests/engine/core/test_recounting.py"],
    ),
    "rewind-keeps-late-results": SourceBug(
        "a rewind keeps results that came late for pages that it takes back",
        "memci.engine.history.apply",
        "for index, late in state.late.items() if page_number(index) < number}",
        "for index, late in state.late.items()}",
        ["tests/engine/commands/test_rewinding.py"],
    ),
    "folds-before-excess-fades": SourceBug(
        "pages fold before what is recalled beyond its share fades",
        "memci.engine.commands.window",
        "(_fade_excess, _fold, ",
        "(_fold, _fade_excess, ",
        [f"{LADDER}::test_what_is_recalled_beyond_its_share_goes_before_pages_fold"],
    ),
    "fades-before-folds": SourceBug(
        "what is recalled fades before pages fold",
        "memci.engine.commands.window",
        "(_fade_excess, _fold, ",
        "(_fade, _fold, ",
        [f"{LADDER}::test_pages_fold_before_recalled_ones_fade"],
    ),
    "contents-before-folds": SourceBug(
        "the contents page shrinks before pages fold",
        "memci.engine.commands.window",
        "(_fade_excess, _fold, ",
        "(_fade_excess, _shorten_contents, _fold, ",
        [f"{LADDER}::test_pages_fold_before_the_contents_page_shrinks"],
    ),
    "fades-before-contents": SourceBug(
        "what is recalled fades before the contents page shrinks",
        "memci.engine.commands.window",
        "_drop_passages, _shorten_contents)",
        "_drop_passages, _fade, _shorten_contents)",
        [f"{LADDER}::test_the_contents_page_shrinks_before_recalled_pages_fade"],
    ),
    "stubs-before-fades": SourceBug(
        "what is being said is a stub before what is recalled fades",
        "memci.engine.commands.window",
        "_climbed(core, wanted, (_fade, _shorten_contents))",
        "lay_out(core.state, wanted)",
        [f"{LADDER}::test_a_page_recalled_in_its_turn_fades_before_what_is_being_said_is_a_stub"],
    ),
    "newest-fades-first": SourceBug(
        "of recalled pages the newest fades first",
        "memci.engine.commands.window",
        "in core.state.recalled.least_used():",
        "in reversed(list(core.state.recalled.least_used())):",
        [f"{LADDER}::test_the_least_recently_used_page_fades_first_for_want_of_room"],
    ),
    "sqlite-not-synced": SourceBug(
        "SQLite does not sync its commits",
        "memci.archive.stores.sql.sqlite",
        "'EXTRA' if self._synced else 'NORMAL'",
        "'NORMAL'",
        ["tests/archive/stores/sql/test_sqlite.py", "tests/torture/test_parts.py"],
    ),
}
"""By name."""


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, bug: SourceBug) -> None:
        super().__init__(name, path)
        self._bug = bug

    def get_code(self, fullname: str) -> CodeType:
        text = self.get_source(fullname) or ""
        if text.count(self._bug.right) != 1:
            message = f"{self._bug.right!r} does not stand once in {fullname}"
            raise ImportError(message)
        return compile(text.replace(self._bug.right, self._bug.wrong), self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, bug: SourceBug) -> None:
        self._bug = bug

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != self._bug.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin, self._bug)
        return spec


def noticed(name: str) -> str:
    """Return what the tests notice of a bug, with the seeds of every run; nothing where they pass."""
    command = [sys.executable, "-m", "tests.torture.source_bugs", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603 (fixed words)
    told = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return told[0] if done.returncode == pytest.ExitCode.TESTS_FAILED and told else ""


def main() -> int:
    """Put the bug in, run the tests that are to notice it, and return their exit code."""
    bug = BUGS[sys.argv[1]]
    sys.meta_path.insert(0, _Finder(bug))
    options = ["-q", "-x", "-p", "no:cacheprovider", "--tb", "no", "--hypothesis-profile", "seeded"]
    return pytest.main([*_PLUGINS, *options, *bug.tests])


if __name__ == "__main__":
    sys.exit(main())
