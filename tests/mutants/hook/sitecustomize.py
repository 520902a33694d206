"""Change one module as it is loaded, in each Python process that has this folder on its ``PYTHONPATH``.

Python imports this file by its name as it starts. So the mutation holds in the processes that tests start, too, as far as these
inherit the environment. The source stays as it is: the module is compiled from the changed text.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

VARIABLE = "MEMCI_MUTATION"
"""The environment variable with the mutation, a JSON object of ``module``, ``right`` and ``wrong``."""


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, change: Mapping[str, str]) -> None:
        super().__init__(name, path)
        self._change = change

    def get_code(self, fullname: str) -> CodeType:
        text = self.get_source(fullname) or ""
        if text.count(self._change["right"]) != 1:
            message = f"{fullname} does not contain the text to change exactly once"
            raise ImportError(message)
        return compile(text.replace(self._change["right"], self._change["wrong"]), self.path, "exec")


class _Finder(MetaPathFinder):
    def __init__(self, change: Mapping[str, str]) -> None:
        self._change = change

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != self._change["module"]:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin, self._change)
        return spec


if VARIABLE in os.environ:
    sys.meta_path.insert(0, _Finder(json.loads(os.environ[VARIABLE])))
