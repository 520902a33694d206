"""Change modules as they are loaded, in each Python process that has this folder on its ``PYTHONPATH``.

Python imports this file by its name as it starts. So a mutation holds in the processes that tests start, too, as far as these
inherit the environment. The source stays as it is: the module is compiled from the changed text.

Instead of a mutation, marks can be set: then each process notes which test reaches the place of which mutation.
"""

import ast
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

MUTATION = "MEMCI_MUTATION"
"""The environment variable with the mutation, a JSON object of ``module``, ``right`` and ``wrong``."""

PLACES = "MEMCI_MUTATION_PLACES"
"""The environment variable with the path of a JSON file: by module, the text that each mutation replaces, by its name."""

REACHED = "MEMCI_MUTATION_REACHED"
"""The environment variable with the path of a file for what is reached: a JSON list of mutation, test and phase in each line."""

_MARK = "__reached__"


class _Changing(SourceFileLoader):
    """Compiles a module with a mutation."""

    def __init__(self, name: str, path: str, right: str, wrong: str) -> None:
        super().__init__(name, path)
        self._right, self._wrong = right, wrong

    def get_code(self, fullname: str) -> CodeType:
        text = self.get_source(fullname) or ""
        if text.count(self._right) != 1:
            message = f"{fullname} does not contain the text to change exactly once"
            raise ImportError(message)
        return compile(text.replace(self._right, self._wrong), self.path, "exec")


class _Marking(SourceFileLoader):
    """Compiles a module with a mark at the place of each mutation."""

    def __init__(self, name: str, path: str, places: Mapping[str, str]) -> None:
        super().__init__(name, path)
        self._places = places

    def get_code(self, fullname: str) -> CodeType:
        text = self.get_source(fullname) or ""
        tree = ast.parse(text)
        _mark(tree, {name: _lines(text, right) for name, right in self._places.items()})
        return compile(ast.fix_missing_locations(tree), self.path, "exec")

    def exec_module(self, module: ModuleType) -> None:
        vars(module)[_MARK] = _note
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Finds the modules that are loaded otherwise, with what makes the loader of each."""

    def __init__(self, loaders: Mapping[str, Callable[[str, str], SourceFileLoader]]) -> None:
        self._loaders = loaders

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in self._loaders:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = self._loaders[fullname](fullname, spec.origin)
        return spec


def _lines(text: str, part: str) -> range:
    start = text.index(part)
    first, end = start + len(part) - len(part.lstrip()), start + len(part.rstrip())
    return range(text.count("\n", 0, first) + 1, text.count("\n", 0, end) + 2)


def _mark(tree: ast.Module, places: Mapping[str, range]) -> None:
    """Put a mark in front of each statement to which a place belongs."""
    loaded = set(_loaded(tree))
    for node in list(ast.walk(tree)):
        for field, given in ast.iter_fields(node):
            if isinstance(given, list) and given and isinstance(given[0], ast.stmt):
                statements = list[ast.stmt]()
                for statement in given:
                    own = set(_own_lines(statement))
                    marks = [name for name, lines in places.items() if not own.isdisjoint(lines)]
                    statements += [_mark_of(name, statement, once=statement in loaded) for name in marks]
                    statements.append(statement)
                setattr(node, field, statements)


def _mark_of(name: str, statement: ast.stmt, *, once: bool) -> ast.stmt:
    arguments: list[ast.expr] = [ast.Constant(name), ast.Constant(once)]
    return ast.copy_location(ast.Expr(ast.Call(ast.Name(_MARK, ast.Load()), arguments, [])), statement)


def _loaded(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements that run as a module is loaded: those outside of its functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _loaded(child)


def _own_lines(statement: ast.stmt) -> Iterator[int]:
    """Yield the lines of a statement but for those of the statements in it."""
    first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
    body: list[ast.stmt] = statement.cases[0].body if isinstance(statement, ast.Match) else getattr(statement, "body", [])
    yield from range(first, body[0].lineno if body else (statement.end_lineno or first) + 1)
    for handler in getattr(statement, "handlers", ()):
        yield from range(handler.lineno, handler.body[0].lineno)
    for case in statement.cases if isinstance(statement, ast.Match) else ():
        yield from range(case.pattern.lineno, case.body[0].lineno)


_noted = set[tuple[str, str, str]]()


def _note(name: str, once: bool) -> None:  # noqa: FBT001 (called by the marks)
    """Note that the place of a mutation was reached by the test that runs; by any, if that happens only once."""
    test, _, phase = ("", "", "") if once else os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")
    if (name, test, phase) not in _noted:
        _noted.add((name, test, phase))
        fd = os.open(os.environ[REACHED], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(fd, f"{json.dumps([name, test, phase])}\n".encode())
        os.close(fd)


def _finder() -> _Finder | None:
    if MUTATION in os.environ:
        change = json.loads(os.environ[MUTATION])
        return _Finder({change["module"]: lambda name, path: _Changing(name, path, change["right"], change["wrong"])})
    if PLACES in os.environ:
        places = json.loads(Path(os.environ[PLACES]).read_text(encoding="utf-8"))
        return _Finder(dict.fromkeys(places, lambda name, path: _Marking(name, path, places[name])))
    return None


if found := _finder():
    sys.meta_path.insert(0, found)
