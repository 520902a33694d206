"""Docstrings in Google's style, as far as tools need them: summary, and the sections by name.

https://google.github.io/styleguide/pyguide.html#383-functions-and-methods
"""

import inspect
import re
from collections.abc import Mapping

import attrs

_SECTION = re.compile(r"(Args|Arguments|Attributes|Example|Examples|Note|Notes|Raises|Returns|Yields):[ \t]*")
_ENTRY = re.compile(r"\*{0,2}(?P<name>[A-Za-z_][\w.]*)(?:[ \t]*\([^)\n]*\))?:[ \t]*(?P<text>.*)")


@attrs.frozen(kw_only=True)
class Docstring:
    """A docstring in parts.

    Attributes:
        text: All of it, without the indentation of its function.
        summary: Its first paragraph, on one line.
        sections: By name, what stands below the heading, without its indentation; in order.
    """

    text: str
    summary: str
    sections: Mapping[str, str]

    def entries(self, *names: str) -> dict[str, str]:
        """Return what sections say of each name, such as a parameter's; on one line each. Names that are listed come first."""
        found: dict[str, str] = {}
        for name in names:
            last = ""
            for line in self.sections.get(name, "").split("\n"):
                entry = None if line.startswith((" ", "\t")) else _ENTRY.match(line)
                if entry:
                    last = entry["name"]
                    found[last] = entry["text"].strip()
                elif last and line.strip():
                    found[last] = f"{found[last]} {line.strip()}".strip()
        return found


def read_docstring(text: str | None) -> Docstring:
    """Return the parts of a docstring. O(its length)."""
    clean = inspect.cleandoc(text or "")
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    opening = current
    for line in clean.split("\n"):
        heading = _SECTION.fullmatch(line)
        if heading:
            current = sections.setdefault(heading[1], [])
        elif line and not line.startswith((" ", "\t")) and current is not opening:
            current = [line]  # a paragraph behind the sections belongs to none of them
        else:
            current.append(line)
    bodies = {name: inspect.cleandoc("\n" + "\n".join(lines)) for name, lines in sections.items()}
    return Docstring(text=clean, summary=_first_paragraph(opening), sections=bodies)


def _first_paragraph(lines: list[str]) -> str:
    paragraph = "\n".join(lines).strip().split("\n\n", maxsplit=1)[0]
    return " ".join(paragraph.split())
