"""What a model writes: a reply with a thought and a tool call in TOML, or a plain answer.

A reply in a code fence or between prose, with a header or quotes that are not quite TOML's, is read where there is one way to
read it. What stands where, and what is mended in it, is found by looking; only then TOML's parser reads it.
"""

import re
import textwrap
from collections.abc import Mapping
from typing import Any, Literal, NoReturn

import attrs

from memci.attp.host_error import SURROGATE
from memci.attp.statement import CODE, ODD_BLANKS, Span, mend, scan, skip_blank, syntax_error
from memci.errors import ArgumentError, AttpSyntaxError, LimitExceededError, missing_extra

MAX_REPLY_BYTES = 65_536  # how large a reply with a tool call may be, in bytes of UTF-8. A plain answer may be of any size

_MAX_BEGINNINGS = 20
_MOST_SHOWN = 40  # characters of a line that is to blame
_FIELDS = {"status", "target", "code", "message"}

_CALL = r"""\[\[?[ \t]*(?:tool_call|"tool_call"|'tool_call')[ \t]*\]|(?:tool_call|"tool_call"|'tool_call')[ \t]*[.=]"""
_MARKER = re.compile(rf"^[ \t]*+(?:{_CALL})", re.MULTILINE)
_BEGINNING = re.compile(rf"^[ \t]*+(?:thought[ \t]*=|{_CALL})", re.MULTILINE)
_RESULT = re.compile(r"^[ \t]*+\[\[?[ \t]*tool_result[ \t]*\]", re.MULTILINE)
_REASONING = re.compile(r"\s*+<(think|thinking|reasoning)>")
_BARE_KEYS = re.compile(
    r"\s*+(?P<fence>(?:```|~~~)[ \t]*+(?:(?:toml|TOML)[ \t]*+)?\n\s*+)?"
    r"(?=(?P<key>thought|status|target|code|message)[ \t]*=[ \t]*[\"'])"
)
_FENCE_LINE = re.compile(r"\A\s*(?:```|~~~)[^\n]*(?:\n|\Z)")
_NOT_NEWLINE = re.compile(r"[^\n]")

# A header in which a call is meant, as a key of a call follows it: as TOML wants it or not.
_MARKUP = rf"[ \t{ODD_BLANKS}*_~>#-]"
_HEADER = re.compile(
    r"""\\?\[(?:\\?\[)?[ \t]*+["']?tool\\?_call["']?[ \t]*+\\?\](?:\\?\])?"""
    rf"(?P<rest>[ \t{ODD_BLANKS}*_~`:]*+)(?:#[^\n]*+)?\n\s*+(?:(?:```|~~~)(?:toml)?[ \t]*+\n\s*+)?"
    rf"(?={_MARKUP}*+(?:thought|status|target|code|message)[ \t{ODD_BLANKS}*_]*+(?:(?P<text>=[ \t{ODD_BLANKS}]*+[\"'])|[=:]))",
    re.IGNORECASE,
)
_FRONT = re.compile(rf"(?:{_MARKUP}|<\|[^|<>\n]{{1,40}}\|>(?:[^<\n]{{0,60}}(?=<\|))?|</?\w{{1,20}}>)*+")

_FENCE_END = re.compile(r"(?:```|~~~)[ \t]*$", re.MULTILINE)
_LEAD_IN = re.compile(
    r"(?P<line>[ \t*_]*+(?!(?:thought|status|target|code|message)[ \t]*:[ \t]*\S)[^\W\d_][^=(){}\[\]`\n]*+"
    r"|(?:```|~~~)(?:toml)?[ \t]*+)\n\s*+"
    r"(?=(?:status|target|message)[ \t]*=[ \t]*[\"']|code[ \t]*=[ \t]*(?:'{3}|\"{3}))",
    re.IGNORECASE,
)
_MEANT = re.compile(rf"[ \t{ODD_BLANKS}*_`>\"'+-]*+(?P<key>target|message|thought)\b", re.IGNORECASE)

_FORM = "write thought = \"…\", then a line [tool_call], then status = \"success\", target = \"…\" and code = '''…'''"
_SUCCESS = "status = \"success\" and code = '''…'''"
_ONE_CALL = "write one [tool_call] in a reply; its code may call several tools"

# By a word of the parser's problem, the first that is in it.
_PARSER_HINTS = {
    "invalid character": 'leave control characters out, or write them as \\u0000 between "…"',
    "Illegal character": 'leave control characters out, or write them as \\u0000 between "…"',
    "Cannot declare": _ONE_CALL,
    "Cannot overwrite": "write each key once",
    "": _FORM,
}


@attrs.frozen(kw_only=True)
class CodeCall:
    """A tool call: code that calls tools (``success``), or the model's word that no tool can do it (``fail``).

    The *target*, in the model's words, is what the call is for; it may be empty. The *code* is Python as it was written; there is
    none where the status is ``fail``. The *message* says what is missing, and what to do instead; else it may be empty.
    """

    status: Literal["success", "fail"]
    target: str = ""
    code: str = ""
    message: str = ""

    @property
    def program(self) -> str:
        """The code without a code fence around it and without the indentation that all its lines share. O(its length)."""
        lines = self.code.strip().split("\n")
        if lines[0].startswith(("```", "~~~")) and lines[-1].strip() == lines[0][:3]:
            return textwrap.dedent("\n".join(lines[1:-1]) + "\n")
        return textwrap.dedent(self.code)


@attrs.frozen(kw_only=True)
class Reply:
    """A model's reply, read: its thought, which may be empty, and a tool call or else, stripped of blanks, a plain answer."""

    thought: str = ""
    call: CodeCall | None = None
    answer: str = ""


def text_of(content: object) -> str:
    """Return a message's content as text, empty for ``None``. Raises ``ArgumentError`` if it is something else."""
    if content is None or isinstance(content, str):
        return content or ""
    raise ArgumentError(argument="text", value=content, wanted="the reply's text, or None where the message has none")


def parse(text: str | None) -> Reply:
    """Read a model's reply; ``None`` is an empty plain answer. O(its length).

    A reply in which no line opens the table ``tool_call`` is a plain answer, whatever else it holds. A line that would, but for
    its case, markup or invisible characters, opens it where a key of a call follows. Raises ``ArgumentError`` if it is no text,
    ``LimitExceededError`` if it has a tool call and is larger than 64 KiB, and ``AttpSyntaxError`` if it tries to call a tool and
    cannot be read, or in more than one way; lines and columns are those of the reply, without a byte order mark.
    """
    source = _normalised(text_of(text))
    if not _MARKER.search(source):
        source = _with_plain_header(source)
    if not _MARKER.search(source):
        return _plain(source)
    if len(source) > MAX_REPLY_BYTES or len(source.encode("utf-8", "surrogatepass")) > MAX_REPLY_BYTES:
        message = f"a reply with a tool call holds at most {MAX_REPLY_BYTES} bytes: write shorter code"
        raise LimitExceededError(message, limit="reply_bytes", value=MAX_REPLY_BYTES)
    source, span = _find(source)
    thought, call = _read(source, span)
    return Reply(thought=thought, call=call)


def _normalised(text: str) -> str:
    """Return the text with line feeds alone, without a byte order mark, and with blanks for what a model reasoned aloud."""
    source = text.replace("\r\n", "\n")
    if source.lstrip().startswith("\ufeff"):
        source = source.replace("\ufeff", "", 1)
    reasoning = _REASONING.match(source)
    closing = source.find(f"</{reasoning[1]}>", reasoning.end()) if reasoning else -1
    if closing > 0 and _call_at(source, closing) is not None:
        source = _NOT_NEWLINE.sub(" ", source[:closing]) + source[closing:]
    return source


def _call_at(source: str, start: int, end: int | None = None) -> int | None:
    """Return where a call begins in this part of a reply, however its header is written."""
    end = len(source) if end is None else end
    found = _MARKER.search(source, start, end) or _HEADER.search(source, start, end)
    return found.start() if found else None


def _plain(source: str) -> Reply:
    """Read a reply in which no line opens the table ``tool_call``."""
    answer = source.strip()
    beginning = _BARE_KEYS.match(source)
    if not beginning or len(source) > MAX_REPLY_BYTES:
        return Reply(answer=answer)
    try:
        span = scan(source, beginning.end())
    except AttpSyntaxError:
        if beginning["key"] == "thought":
            raise
        return Reply(answer=answer)
    keys = [statement.key[0] for statement in span.statements]
    first = span.statements[0]
    if ("thought" in keys and not _FIELDS.isdisjoint(keys)) or ("status" in keys and not {"code", "message"}.isdisjoint(keys)):
        raise syntax_error(source, first.start, "the keys of a tool call stand here, and no line [tool_call] above them", _FORM)
    if keys[0] != "thought":
        return Reply(answer=answer)
    answer = source[first.end :]
    answer = (_FENCE_LINE.sub("", answer) if beginning["fence"] else answer).strip()
    if not answer:
        raise syntax_error(source, first.start, "this is a thought, with neither a tool call nor an answer", _FORM)
    thought, _ = _read(source, Span(statements=(first,), start=first.start, end=first.end))
    return Reply(thought=thought, answer=answer)


def _with_plain_header(source: str) -> str:
    """Return a reply, of the same length, in which the first header of a tool call is written as TOML wants it.

    Taken for one is ``[tool_call]`` at the end of a line, in any case, with or without backslashes, emphasis, invisible
    characters or special tokens around it, where a key of a call follows on the next line. Raises ``AttpSyntaxError`` where
    words stand before it and a text follows its key: it may be a call or speak of one.
    """
    for found in _HEADER.finditer(source):
        start = source.rfind("\n", 0, found.start()) + 1
        if _FRONT.fullmatch(source, start, found.start()):
            end = found.end("rest")
            header = " " * (found.start() - start) + "[tool_call]"
            return source[:start] + header.ljust(end - start) + source[end:]
        if found["text"]:
            problem, hint = "[tool_call] follows other words on its line", "write it on a line of its own"
            raise syntax_error(source, found.start(), problem, hint)
    return source


def _find(source: str) -> tuple[str, Span]:
    """Return the reply, perhaps with a line blanked, and the statements of its one document with a tool call."""
    position = 0
    for _ in range(_MAX_BEGINNINGS):
        beginning = _BEGINNING.search(source, position)
        if not beginning:
            break
        span = scan(source, beginning.start())
        if any(statement.key[0] == "tool_call" for statement in span.statements):
            other = _call_at(source, position, beginning.start())
            if other is not None:
                raise syntax_error(source, other, "this is a tool call, and so is what follows", _ONE_CALL)
            source, span = _with_all_keys(source, span)
            return source, _checked(source, span)
        position = max(span.end, beginning.end())
    raise syntax_error(source, 0, "no tool call can be told from the text around it", f"{_FORM}, and nothing else")


def _with_all_keys(source: str, span: Span) -> tuple[str, Span]:
    """Return the text and its statements; where words or a fence stand before the code, with a blank line in their place."""
    start = skip_blank(source, span.end)
    lead_in = None if start == len(source) or _is_complete(span) else _LEAD_IN.match(source, start)
    if lead_in:
        end = lead_in.end("line")
        source = source[:start] + " " * (end - start) + source[end:]
        span = scan(source, span.start)
        start = skip_blank(source, span.end)
    if start == len(source) or _is_complete(span) or _FENCE_END.match(source, start):
        return source, span
    meant = _MEANT.match(source, start)
    example = f'{meant["key"].lower()} = "…"' if meant else _SUCCESS
    line = source[start : start + _MOST_SHOWN].split("\n", maxsplit=1)[0].strip()
    problem, hint = f"below [tool_call] this line is no key with a value: {line!r}", f"write {example}, each on a line of its own"
    raise syntax_error(source, start, problem, hint)


def _is_complete(span: Span) -> bool:
    """Tell whether there is code or a message, or a table on one line, in which they would stand."""
    wanted = {"code", "message"}
    return any(found.key[-1] in wanted or (found.key[0] == "tool_call" and found.tokens) for found in span.statements)


def _checked(source: str, span: Span) -> Span:
    """Return the span, longer where its code seems to end too early; refuse what else the reply says about tools."""
    code = next((statement for statement in span.statements if statement.name == CODE), None)
    second = _call_at(source, span.end)
    if code and len(code.quote) == 3 and source.startswith("\n", code.value + 3) and code.quote in source[span.end :]:  # noqa: PLR2004
        try:
            span = scan(source, span.start, code_as_block=True)
            second = _call_at(source, span.end)
        except AttpSyntaxError:
            if second is None:
                raise
    if second is not None:
        raise syntax_error(source, second, "this is a second tool call", _ONE_CALL)
    invented = [statement.start for statement in span.statements if statement.key[0] == "tool_result"]
    invented += [found.start() for found in _RESULT.finditer(source, span.end)]
    if invented:
        raise syntax_error(source, invented[0], "this result comes from no tool", "end the reply after [tool_call], and wait")
    return span


def _read(source: str, span: Span) -> tuple[str, CodeCall | None]:
    """Return the thought and the call of a document; ``None`` for no call."""
    document, code = mend(source, span)
    values = _parsed(source, span, document)
    table = values.get("tool_call", {})
    if isinstance(table, list) and len(table) == 1:
        table = table[0]
    if not isinstance(table, dict):
        _refuse(source, span, "tool_call", "tool_call is not one table", _ONE_CALL)
    if code is not None:
        table["code"] = code
    texts: dict[str, Any] = {name: table.get(name, "") for name in _FIELDS}
    texts["thought"] = values.get("thought", table.get("thought", ""))
    for name, value in texts.items():
        if not isinstance(value, str):
            _refuse(source, span, name, f"{name} is no text", f'write {name} = "…"')
    return texts["thought"], _call(source, span, values, table, texts) if "tool_call" in values else None


def _parsed(source: str, span: Span, document: str) -> dict[str, Any]:
    try:
        import tomli  # noqa: PLC0415 (an extra, for those who speak ATTP)
    except ModuleNotFoundError as error:
        raise missing_extra(error, "attp") from error

    surrogate = SURROGATE.search(source, span.start, span.end)
    if surrogate:
        problem = f"the character U+{ord(surrogate[0]):04X} is half of a pair"
        raise syntax_error(source, surrogate.start(), problem, "write the whole character, or leave it out")
    try:
        return tomli.loads(document)
    except tomli.TOMLDecodeError as error:
        line = source.count("\n", 0, span.start) + error.lineno
        hint = next(hint for words, hint in _PARSER_HINTS.items() if words in error.msg)
        raise AttpSyntaxError(error.msg, line=line, column=error.colno, hint=hint) from None


def _call(source: str, span: Span, values: Mapping[str, Any], table: Mapping[str, Any], texts: Mapping[str, str]) -> CodeCall:
    coded, said, status = bool(texts["code"].strip()), bool(texts["message"].strip()), texts["status"].strip().lower()
    meant = status or ("fail" if said and not coded else "success")
    success, fail = meant == "success", meant == "fail"
    where = ", as it stands above [tool_call]" if "code" in values else ""
    rules = (
        (not (status or said or "code" in table), "there is neither code nor a message", f"below [tool_call] write {_SUCCESS}"),
        (not (success or fail), f"the status {status[:20]!r} is unknown", 'write status = "success" or "fail"'),
        (success and not (coded or "code" in table), f"there is no code to run{where}", "below [tool_call] write code = '''…'''"),
        (fail and coded, "there is code, and the status is fail", 'write status = "success", or no code'),
        (fail and not said, "there is no message", 'below [tool_call] write what is missing: message = "…"'),
    )
    for broken, problem, hint in rules:
        if broken:
            _refuse(source, span, "status", problem, hint)
    if success and not coded:
        _refuse(source, span, "code", "the code is empty", "write it between the quotes: code = '''…'''")
    code = texts["code"] if success else ""
    return CodeCall(status="success" if success else "fail", target=texts["target"], code=code, message=texts["message"])


def _refuse(source: str, span: Span, name: str, problem: str, hint: str) -> NoReturn:
    places = {statement.key[-1]: statement.start for statement in reversed(span.statements)}
    raise syntax_error(source, places.get(name, places.get("tool_call", span.start)), problem, hint)
