"""The statements of a document, found by their form and bounded before TOML's parser sees them, and what was meant by them.

Strings are skipped whole. What can be read in one way only is mended. Each function is O(length of the text).
"""

import re

import attrs

from memci.errors import AttpSyntaxError

MAX_STATEMENTS = 30
MAX_KEY_PARTS = 8
MAX_KEY_CHARS = 200
MAX_NESTING = 16
MAX_VALUE_TOKENS = 200
MAX_BARE_CHARS = 100
MAX_ESCAPES = 4_000  # backslashes where TOML reads them; each costs as much as a hundred plain characters

# Characters that look like a blank or like nothing, and that TOML does not take for one.
ODD_BLANKS = "\u00a0\u2007\u202f\u3000\u200b\u200c\u200d\u2060\ufeff"

_KEY_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_KEY = rf"{_KEY_PART}(?:[ \t]*+\.[ \t]*+{_KEY_PART})*+"
_LINE_END = re.compile(rf"[ \t{ODD_BLANKS}]*+(?:#[^\n]*+)?(?:\n|\Z)")
_BLANK = re.compile(rf"(?:{_LINE_END.pattern})*+")
_HEADER = re.compile(rf"[ \t]*+\[\[?[ \t]*+(?P<key>{_KEY})[ \t]*+\]\]?[ \t]*+(?:#[^\n]*+)?(?:\n|\Z)")
_ASSIGNMENT = re.compile(rf"(?P<indent>[ \t{ODD_BLANKS}]*+)(?P<key>{_KEY})[ \t{ODD_BLANKS}]*+=[ \t{ODD_BLANKS}]*+")
_PARTS = re.compile(_KEY_PART)
_TOKEN = re.compile(
    r"""(?P<space>[ \t\n,=]++|\#[^\n]*+)|(?P<open>[\[{])|(?P<close>[\]}])"""
    r'''|(?P<string>"""(?:[^"\\]|\\[\s\S]|"(?!""))*+"{3,5}|'{3}(?:[^']|'(?!''))*+'{3,5}|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')'''
    r"""|(?P<bare>[^\s,\[\]{}"'#=]++)"""
)
_STRINGS = {
    '"""': re.compile(r'"{3}(?:[^"\\]++|\\[\s\S]|"(?!""))*+"{3,5}'),
    "'''": re.compile(r"'{3}(?:[^']++|'(?!''))*+'{3,5}"),
    '"': re.compile(r'"(?:[^"\\\n]|\\.)*+"'),
    "'": re.compile(r"'[^'\n]*+'"),
}
_QUOTES = re.compile(r"\"\"\"|'''|\"|'")

CODE = ("tool_call", "code")
_TEXT_FIELDS = {("thought",), ("tool_call", "thought"), ("tool_call", "target"), ("tool_call", "message"), CODE}

# A backslash that begins none of the escapes of TOML 1.1; those of backslashes are out of the way when this is asked for.
_UNKNOWN_ESCAPE = re.compile(r"\\(?![btnfre\"]|[ \t]*\n|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2})")
_PAIR = "\\\\"
_PAIR_MARK = "\0\0"
_PYTHON_TOKEN = re.compile(r"""#[^\n]*+|(?P<text>"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')|(?P<outside>\\[^\n])""")
_NEWLINE_ESCAPE = re.compile(r"(?:[^\\]|\\[^n])*+\\n")
_PLAIN_BLANKS = {ord(char): " " for char in ODD_BLANKS}

_QUOTE_HINT = "put every text in quotes: one line in \"…\", several lines between two lines of '''"


@attrs.frozen(kw_only=True)
class Statement:
    """A header or an assignment, of one or several lines; offsets are those in the text."""

    name: tuple[str, ...]  # the path of what it sets: the table in which it stands, and its key
    key: tuple[str, ...]  # its own, as parts; of a header, the table's
    start: int
    value: int  # where its value begins; of a header, its end
    end: int  # after its line end
    quote: str = ""  # what its string begins and ends with; empty where it holds no string
    close: int = 0  # where the closing quote begins, or the end of a value that is no string; 0 for a header
    block: bool = False  # its string was read as a block, and may hold the quotes that enclose it
    tokens: int = 0  # parts of its value, where that is no string


@attrs.frozen(kw_only=True)
class Span:
    """A run of statements in a text, in order, and its offsets."""

    statements: tuple[Statement, ...]
    start: int
    end: int


def syntax_error(text: str, offset: int, problem: str, hint: str) -> AttpSyntaxError:
    """Return the error for a place in a reply."""
    line_start = text.rfind("\n", 0, offset) + 1
    return AttpSyntaxError(problem, line=text.count("\n", 0, offset) + 1, column=offset - line_start + 1, hint=hint)


def scan(text: str, start: int, *, code_as_block: bool = False) -> Span:
    """Return the statements from *start*, the beginning of a line, to the first line that is none: prose, or a code fence.

    With *code_as_block* the code is read as a block that ends at the one line that holds nothing but its three quotes, whatever
    quotes stand in it. This is also done where the first closing quotes are followed by more on their line. Raises
    ``AttpSyntaxError`` if a statement has no value, does not end, or is larger than any document needs.
    """
    statements: list[Statement] = []
    table: tuple[str, ...] = ()
    escapes = 0
    room = MAX_VALUE_TOKENS
    position = skip_blank(text, start)
    while position < len(text):
        if header := _HEADER.match(text, position):
            table = _parts(text, header.start("key"), header["key"])
            last = Statement(name=table, key=table, start=position, value=header.end(), end=header.end())
        elif assignment := _ASSIGNMENT.match(text, position):
            last = _assignment(text, table, assignment, as_block=code_as_block, room=room)
        else:
            break
        statements.append(last)
        if len(statements) > MAX_STATEMENTS:
            problem, hint = f"more than {MAX_STATEMENTS} lines of keys", "write thought and one [tool_call] only"
            raise syntax_error(text, position, problem, hint)
        room -= last.tokens
        escapes += 0 if last.block or last.quote in {"'", "'''"} else text.count("\\", last.value, last.end)
        if escapes > MAX_ESCAPES:
            problem, hint = f"more than {MAX_ESCAPES} backslashes", "put code between ''', where a backslash is just that"
            raise syntax_error(text, last.start, problem, hint)
        position = skip_blank(text, last.end)
    return Span(statements=tuple(statements), start=start, end=statements[-1].end if statements else start)


def skip_blank(text: str, position: int) -> int:
    """Return the beginning of the first line from *position* that is neither blank nor a comment, or the end of the text."""
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def _parts(text: str, offset: int, key: str) -> tuple[str, ...]:
    if len(key) > MAX_KEY_CHARS or key.count(".") >= MAX_KEY_PARTS:
        hint = "the only keys are thought, status, target, code and message"
        raise syntax_error(text, offset, f"a key of {len(key)} characters", hint)
    return tuple(part.strip("\"'") for part in _PARTS.findall(key))


def _assignment(text: str, table: tuple[str, ...], found: re.Match[str], *, as_block: bool, room: int) -> Statement:
    key = _parts(text, found.start("key"), found["key"])
    value = found.end()
    quoted = _QUOTES.match(text, value)
    quote = quoted[0] if quoted else ""
    end, tokens = (_string_end(text, value, quote), 0) if quote else _plain_end(text, value, room)
    line_end = _LINE_END.match(text, end)
    opens_block = table + key == CODE and len(quote) == 3 and text.startswith("\n", value + 3)  # noqa: PLR2004 (three quotes)
    block = opens_block and (as_block or not line_end)
    if block:
        end = _block_close(text, value, quote, len(found["indent"])) + len(quote)
        line_end = _LINE_END.match(text, end)
    if not line_end:
        raise syntax_error(text, end, *_trailing(text, end, quote))
    places = {"start": found.start("key"), "value": value, "end": line_end.end(), "close": end - len(quote)}
    return Statement(name=table + key, key=key, quote=quote, block=block, tokens=tokens, **places)


def _string_end(text: str, value: int, quote: str) -> int:
    found = _STRINGS[quote].match(text, value)
    if found:
        return found.end()
    if len(quote) == 1:
        raise syntax_error(text, value, f"this string has no closing {quote} on its line", "for several lines use ''' … '''")
    problem, hint = f"the string that begins here has no closing {quote}", f"end it with a line that holds {quote} alone"
    raise syntax_error(text, value, problem, hint)


def _block_close(text: str, value: int, quote: str, indent: int) -> int:
    """Return where a block ends: at the one line that holds nothing but its quotes, no deeper than its key."""
    line = re.compile(rf"^[ \t{ODD_BLANKS}]{{0,{indent}}}({quote})[ \t{ODD_BLANKS}]*$", re.MULTILINE)
    closings = [match.start(1) for match in line.finditer(text, value + len(quote))]
    if len(closings) != 1:
        other = "'''" if quote == '"""' else '"""'
        hint = f"use {other} or # comments inside of it, and end it with a line that holds {quote} alone"
        raise syntax_error(text, value, f"the text holds {quote}, so that its end is not clear", hint)
    return closings[0]


def _trailing(text: str, end: int, quote: str) -> tuple[str, str]:
    rest = text[end : end + 20].split("\n", maxsplit=1)[0].strip()
    if not quote:
        return f"{rest!r} follows the value", _QUOTE_HINT
    single = "enclose a text that holds quotes in three quotes: ''' … '''"
    hint = single if len(quote) == 1 else f"do not write {quote} inside of a text that {quote} encloses"
    return f"{rest!r} follows the closing {quote}", hint


def _plain_end(text: str, value: int, room: int) -> tuple[int, int]:
    """Return where a number, date, boolean, array or inline table ends, and of how many parts it consists."""
    depth = 0
    tokens = 0
    position = value
    while token := _TOKEN.match(text, position):
        tokens += 1
        if tokens > room or (token["bare"] and len(token["bare"]) > MAX_BARE_CHARS):
            raise syntax_error(text, value, "the values are larger than any that are needed here", "leave the key out")
        if depth == 0 and token["space"]:
            break
        depth += bool(token["open"]) - bool(token["close"])
        if depth > MAX_NESTING:
            raise syntax_error(text, value, f"values nested deeper than {MAX_NESTING}", "leave the key out")
        position = token.end()
        if depth <= 0:
            break
    if position == value:
        raise syntax_error(text, value, "there is no value here", _QUOTE_HINT)
    if depth > 0:
        raise syntax_error(text, value, "a bracket that is opened here is not closed", _QUOTE_HINT)
    return position, tokens


def mend(source: str, span: Span) -> tuple[str, str | None]:
    """Return the statements as TOML that keeps every line in its place, and the code where TOML is not to read it."""
    pieces = []
    position = span.start
    code = None
    for statement in span.statements:
        body = source[statement.value + len(statement.quote) : statement.close]
        if statement.name in _TEXT_FIELDS and (statement.block or '"' in statement.quote):
            triple = len(statement.quote) == 3  # noqa: PLR2004 (three quotes)
            if statement.name == CODE and (statement.block or (triple and _is_python(body))):
                code = body.removeprefix("\n")
                body = "\n" * body.count("\n")
            else:
                body = _with_known_escapes(body)
        pieces += [source[position : statement.value].translate(_PLAIN_BLANKS), statement.quote, body]
        position = max(statement.value, statement.close)
    pieces.append(source[position : span.end].translate(_PLAIN_BLANKS))
    return "".join(pieces), code


def _with_known_escapes(body: str) -> str:
    """Return the body of a string, where an escape that TOML does not know, such as a pattern has, is a plain backslash."""
    if "\\" not in body or "\0" in body:  # no TOML string may hold a NUL
        return body
    return _UNKNOWN_ESCAPE.sub(_PAIR_MARK, body.replace(_PAIR, _PAIR_MARK)).replace(_PAIR_MARK, _PAIR)


def _is_python(body: str) -> bool:
    """Tell whether code between three double quotes was written without regard to TOML's escapes.

    It was where it holds an escape that TOML does not know, or one for a newline in a Python string of one line, which a newline
    breaks; unless a backslash stands outside of such strings, which only TOML can have asked for.
    """
    found = _UNKNOWN_ESCAPE.search(body.replace(_PAIR, _PAIR_MARK)) is not None
    for token in _PYTHON_TOKEN.finditer(body):
        if token["outside"]:
            return False
        found = found or (token["text"] is not None and _NEWLINE_ESCAPE.match(token["text"]) is not None)
    return found
