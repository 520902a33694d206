"""The files of the page: its markup, its style, and its modules, each as it is, or all in one."""

import re
from importlib.resources import files

_IMPORT = re.compile(r'^import .* from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)


def asset(name: str) -> str:
    """Return a file of the page as text."""
    return files("memci.page").joinpath("static", name).read_text(encoding="utf-8")


MODULES = frozenset({
    *("acting", "asking", "band", "compare", "cost", "difference", "embedded", "list", "messages", "page"),
    *("pages", "parts", "rules", "search", "served", "sessions", "text", "windows"),
})  # fmt: skip
"""Names of the modules: ``embedded`` and ``served`` begin the page, in a file and from a server, ``sessions`` the list."""


def filled(markup: str, head: str, end: str) -> str:
    """Return the markup of the page with something in its head, and at its end."""
    first, _, rest = markup.partition("<!-- head -->")
    body, _, last = rest.partition("<!-- end -->")
    return f"{first}{head}{body}{end}{last}"


def one_script(first: str) -> str:
    """Return a module with all that it imports as one script, each before those that need it, in a scope of its own.

    The modules keep to what that takes: imports on one line from ``./name.js``, and no name twice in all of them.
    """
    told: dict[str, str] = {}

    def take(name: str) -> None:
        if name in told:
            return
        source = asset(f"{name}.js")
        for needed in _IMPORT.findall(source):
            take(needed)
        told[name] = _EXPORT.sub("", _IMPORT.sub("", source))

    take(first)
    return "\n".join(['"use strict";', "{", *told.values(), "}"])
