"""Texts that are not TOML, or not the TOML that was meant, and can be read in one way only."""

import re

from memci.attp.statement import CODE, ODD_BLANKS, Span

_TEXT_FIELDS = {("thought",), ("tool_call", "thought"), ("tool_call", "target"), ("tool_call", "message"), CODE}

# A backslash that begins none of the escapes of TOML 1.1; those of backslashes are out of the way when this is asked for.
_UNKNOWN_ESCAPE = re.compile(r"\\(?![btnfre\"]|[ \t]*\n|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2})")
_PAIR = "\\\\"
_PAIR_MARK = "\0\0"
_PYTHON_TOKEN = re.compile(r"""#[^\n]*+|(?P<text>"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')|(?P<outside>\\[^\n])""")
_NEWLINE_ESCAPE = re.compile(r"(?:[^\\]|\\[^n])*+\\n")
_ODD_BLANK = re.compile(f"[{ODD_BLANKS}]")
_PLAIN_BLANKS = {ord(char): " " for char in ODD_BLANKS}


def mend(source: str, span: Span) -> tuple[str, str | None]:
    """Return the statements as TOML that keeps every line in its place, and the code where TOML is not to read it.

    O(length of the span).
    """
    source = _with_plain_blanks(source, span)
    pieces = []
    position = span.start
    code = None
    for statement in span.statements:
        name = statement.table + statement.key
        if name not in _TEXT_FIELDS or not (statement.block or '"' in statement.quote):
            continue
        body = source[statement.value + len(statement.quote) : statement.close]
        if name == CODE and (statement.block or (len(statement.quote) == 3 and _is_python(body))):  # noqa: PLR2004 (three quotes)
            code = body.removeprefix("\n")
            mended = "\n" * body.count("\n")
        else:
            mended = _with_known_escapes(body)
        pieces += [source[position : statement.value], statement.quote, mended]
        position = statement.close
    pieces.append(source[position : span.end])
    return "".join(pieces), code


def _with_plain_blanks(source: str, span: Span) -> str:
    """Return the text, of the same length, with plain blanks for others around the keys and values of a span."""
    if not _ODD_BLANK.search(source, span.start, span.end):
        return source
    pieces = [source[: span.start]]
    position = span.start
    for statement in span.statements:
        value_end = max(statement.value, statement.close + len(statement.quote))
        pieces += [source[position : statement.value].translate(_PLAIN_BLANKS), source[statement.value : value_end]]
        position = value_end
    return "".join([*pieces, source[position : span.end].translate(_PLAIN_BLANKS), source[span.end :]])


def _with_known_escapes(body: str) -> str:
    """Return the body of a string, where an escape that TOML does not know, such as a pattern has, is a plain backslash."""
    if "\\" not in body or "\0" in body:  # no TOML string may hold a NUL
        return body
    return _UNKNOWN_ESCAPE.sub(_PAIR_MARK, body.replace(_PAIR, _PAIR_MARK)).replace(_PAIR_MARK, _PAIR)


def _is_python(body: str) -> bool:
    """Tell whether code between three double quotes was written without regard to TOML's escapes.

    So it is where it holds an escape that TOML does not know, or one for a newline inside of a Python string of one line, which
    the newline would break; unless a backslash stands outside of such strings, which only TOML can have asked for.
    """
    if "\\" not in body:
        return False
    found = _UNKNOWN_ESCAPE.search(body.replace(_PAIR, _PAIR_MARK)) is not None
    for token in _PYTHON_TOKEN.finditer(body):
        if token["outside"]:
            return False
        found = found or (token["text"] is not None and _NEWLINE_ESCAPE.match(token["text"]) is not None)
    return found
