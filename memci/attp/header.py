"""Headers of a tool call that are not written as TOML wants them, and could be taken for a part of a plain answer."""

import re

from memci.attp.statement import ODD_BLANKS, syntax_error

_MARKUP = rf"[ \t{ODD_BLANKS}*_~>#-]"
_HEADER = re.compile(
    r"""\\?\[(?:\\?\[)?[ \t]*+["']?tool\\?_call["']?[ \t]*+\\?\](?:\\?\])?"""
    rf"(?P<behind>[ \t{ODD_BLANKS}*_~`:]*+)(?:#[^\n]*+)?\n\s*+(?:(?:```|~~~)(?:toml)?[ \t]*+\n\s*+)?"
    rf"(?={_MARKUP}*+(?:thought|status|target|code|message)[ \t{ODD_BLANKS}*_]*+(?:(?P<text>=[ \t{ODD_BLANKS}]*+[\"'])|[=:]))",
    re.IGNORECASE,
)
_FRONT = re.compile(rf"(?:{_MARKUP}|<\|[^|<>\n]{{1,40}}\|>(?:[^<\n]{{0,60}}(?=<\|))?|</?\w{{1,20}}>)*+")


def with_plain_header(source: str) -> str:
    """Return a reply, of the same length, in which the first header of a tool call is written as TOML wants it.

    Taken for one is ``[tool_call]`` at the end of a line, in any case, with or without backslashes, emphasis, invisible
    characters or a model's special tokens around it, where a key of a call follows on the next line. O(length of the reply).

    Raises:
        AttpSyntaxError: Words stand before it on its line, and a text follows its key: it may be a call or speak of one.
    """
    for found in _HEADER.finditer(source):
        start = source.rfind("\n", 0, found.start()) + 1
        if _FRONT.fullmatch(source, start, found.start()):
            end = found.end("behind")
            header = " " * (found.start() - start) + "[tool_call]"
            return source[:start] + header.ljust(end - start) + source[end:]
        if found["text"]:
            raise syntax_error(
                source, found.start(), "[tool_call] stands behind other words on its line", "write it on a line of its own"
            )
    return source


def find_header(source: str, start: int, end: int) -> int | None:
    """Return where in this part of a reply a header stands that a key of a call follows, however it is written."""
    found = _HEADER.search(source, start, end)
    return found.start() if found else None
