"""The page on the architecture speaks of rooms, modules and functions that are there."""

import ast
import re
from pathlib import Path

import memci
from tests.test_readme import text

PACKAGE = Path(memci.__file__).parent
PAGE = "docs/architecture.md"


def test_modules_and_functions_are_there() -> None:
    """Each module that the page names is there, and so is each function or class that it names after one."""
    page = " ".join(text(PAGE).split())
    named = re.findall(r"`((?:\w+/)*\w+\.py)`(?: \|? ?((?:`\w+`(?:, )?)+))?", page)
    assert len(named) > 40
    missing = []
    for path, names in named:
        source = (PACKAGE / path).read_text(encoding="utf-8") if (PACKAGE / path).is_file() else ""
        missing += [path] if not source else []
        missing += [f"{path} {name}" for name in re.findall(r"\w+", names) if not re.search(rf"\b(?:def|class) {name}\b", source)]
    assert [] == missing


def test_every_module_is_named() -> None:
    """Each module of memci stands on the page."""
    modules = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if not path.name.startswith("__")]
    assert [] == [module for module in sorted(modules) if f"`{module}`" not in text(PAGE)]


def test_every_module_says_itself_what_it_holds() -> None:
    """The page has the first sentence of each module as it stands there."""
    for path in PACKAGE.rglob("*.py"):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if said and not path.name.startswith("__"):
            first = said.split("\n\n")[0].replace("\n", " ").rstrip(".")
            assert f"| `{path.relative_to(PACKAGE).as_posix()}` | {first} |" in text(PAGE)


def test_every_room_is_named() -> None:
    """Each folder of memci that holds modules has its line on the page."""
    rooms = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")} - {Path()}
    named = set(re.findall(r"`(\w+)/`", text(PAGE)))
    assert set() == {room.name for room in rooms} - named


def test_no_room_is_crowded() -> None:
    """No folder holds more than 14 modules."""
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [] == [folder.name for folder in folders if len(list(folder.glob("*.py"))) > 14]


def test_rows_have_the_columns_of_their_table() -> None:
    """Each row of a table has as many cells as the rows beside it."""
    columns = 0
    for line in text(PAGE).splitlines():
        cells = line.count("|") - 1 if line.startswith("|") else 0
        assert columns in (0, cells) or not cells, line
        columns = cells
