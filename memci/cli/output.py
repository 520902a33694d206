"""What a command writes: one JSON document for machines, tables and text for people.

No character of stored text reaches a terminal that could move the cursor, change colours or turn the direction of the line.
"""

import os
import re
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any

import attrs

from memci.cli.bar import Bar
from memci.cli.exit_code import ExitCode, refuse
from memci.errors import MemciError
from memci.messages import codec

# Control characters but line feed and tab, line and paragraph separators, embeddings, overrides and isolates of direction, and
# lone surrogates, which no encoding can write.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BREAKS = re.compile("[\t\n]+")


def safe(text: str) -> str:
    """Return *text* with each character that could control a terminal written out in ASCII; lines stay lines."""
    return _UNSAFE.sub(lambda match: _escaped(match[0]), text)


def one_line(text: str) -> str:
    """Return *text* as ``safe`` does, on one line."""
    return _BREAKS.sub(" ", safe(text)).strip()


def json_text(value: object) -> str:
    """Return a JSON document on one line; what could control a terminal is written as JSON escapes, which mean the same."""
    # In a JSON text such characters stand within strings only, and the control characters below a blank are escaped already.
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", codec.encode(value).decode())


class Heading(str):
    """A line that stands out on a terminal."""

    __slots__ = ()


@attrs.frozen
class Line:
    """Words between dots, after an indent of the command's own; on a terminal each has its style, and the line is cut to fit."""

    indent: str
    words: Iterable[tuple[str, str]]


@attrs.frozen
class Table:
    """Rows of cells under columns; a column whose heading ends with ``#`` holds numbers, which stand on the right."""

    columns: Sequence[str]
    rows: Iterable[Sequence[str]]


@attrs.frozen
class Answer:
    """What a command found, for machines and for people; only one of the two is written, so that both may share an iterator."""

    value: object  # the JSON document; objects of attrs stand in it as JSON objects, and iterators as lists
    parts: Iterable[str | Line | Table | Bar]  # the same in texts, headings and tables
    remark: str = ""  # a line to standard error, for people
    ok: bool = attrs.field(default=True, kw_only=True)  # whether the command exits with 0
    error: MemciError | None = attrs.field(default=None, kw_only=True)  # what is raised once the answer is written

    def write(self, *, json: bool) -> None:
        """Write it to standard output."""
        if json:
            document(self.value)
            return
        show(self.parts)
        if self.remark:
            note(self.remark)


def show(parts: Iterable[str | Line | Table | Bar]) -> None:
    """Write texts that may come from a store, headings and tables; bars on a terminal only."""
    for part in parts:
        if isinstance(part, Table):
            _table(part)
        elif isinstance(part, Line):
            _line(part)
        elif isinstance(part, Bar):
            if sys.stdout.isatty():
                _print(part)
        elif isinstance(part, Heading) and sys.stdout.isatty():
            from rich.text import Text  # noqa: PLC0415 (40 ms, for terminals only)

            _print(Text(one_line(part), style="bold"))
        else:
            write((one_line(part) if isinstance(part, Heading) else safe(part)) + "\n")


def document(value: object) -> None:
    """Write a JSON document to standard output, in UTF-8 whatever the terminal has."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    write(json_text(_plain(value)) + "\n")


def _plain(value: object) -> object:
    """Return a JSON value, made of attrs' objects and of iterators too."""
    if attrs.has(kind := type(value)):
        return {name: _plain(getattr(value, name)) for name in attrs.fields_dict(kind)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return list(map(_plain, value)) if isinstance(value, list | tuple | Iterator) else value


def _line(line: Line) -> None:
    words = [(shown, style) for word, style in line.words if (shown := one_line(word))]
    if not sys.stdout.isatty():
        write(line.indent + " · ".join(word for word, _ in words) + "\n")
        return
    from rich.text import Text  # noqa: PLC0415 (40 ms, for terminals only)

    joined = Text(" · ").join([Text(word, style=style) for word, style in words])
    _print(Text.assemble((line.indent, "bright_black"), joined), no_wrap=True, overflow="ellipsis")


def _table(table: Table) -> None:
    """Draw it, folded to the width of a terminal; elsewhere write plain columns, whole, a row a line."""
    headings = [name.removesuffix("#") for name in table.columns]
    on_right = [name.endswith("#") for name in table.columns]
    lines = [[one_line(cell) for cell in row] for row in table.rows]
    if not sys.stdout.isatty():
        lines.insert(0, headings)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            cells = zip(line, widths, on_right, strict=True)
            write("  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells).rstrip() + "\n")
        return
    from rich import box  # noqa: PLC0415 (40 ms, for terminals only)
    from rich.table import Table as Drawn  # noqa: PLC0415 (as above)
    from rich.text import Text  # noqa: PLC0415 (as above)

    drawn = Drawn(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, right in zip(headings, on_right, strict=True):
        drawn.add_column(heading, justify="right" if right else "left", no_wrap=right)
    for line in lines:
        drawn.add_row(*map(Text, line))
    _print(drawn)


@contextmanager
def progress(words: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error while the block runs, where that is a terminal; what is yielded moves it: done, and in all."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console  # noqa: PLC0415 (40 ms, for terminals only)
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415 (as above)

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(one_line(words), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def count(number: float | None) -> str:
    """Return a number without decimals, its thousands apart; empty for ``None``."""
    return "" if number is None else f"{number:,.0f}"


def share(value: float | None) -> str:
    """Return a share as a percentage; empty for ``None``."""
    return "" if value is None else f"{value:.1%}"


def breakdown(tokens_by_part: Mapping[str, int]) -> str:
    """Return the tokens of a window by part, without the empty parts."""
    return ", ".join(f"{part} {count(tokens)}" for part, tokens in tokens_by_part.items() if tokens)


def note(words: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(one_line(words) + "\n")


def write(words: str, *, through: bool = False) -> None:
    """Write to standard output as it is, with *through* all that is still in the buffer; raises CommandError where that fails."""
    try:
        sys.stdout.write(words)
        if through:
            sys.stdout.flush()
    except OSError as error:
        # What is still in the buffer goes nowhere, so that the interpreter ends quietly.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        if isinstance(error, BrokenPipeError):
            refuse("the output was closed", ExitCode.PIPE_CLOSED)
        refuse(f"the output cannot be written: {error.strerror}", ExitCode.STORE)


def is_read(wait_s: float) -> bool:
    """Wait, and return whether there still is somebody to read standard output; at once where they have gone."""
    poller = select.poll()
    poller.register(sys.stdout, 0)  # reports errors alone: the other end of a pipe was closed, or the terminal
    return not poller.poll(wait_s * 1_000)


def prepare() -> None:
    """Let standard output and error write out what their encoding has no character for, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what was put in the place of a standard stream may be another
            stream.reconfigure(errors="backslashreplace")


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number <= 0xFF else f"\\u{number:04x}"  # noqa: PLR2004 (two hex digits)


def _print(renderable: object, **options: Any) -> None:  # noqa: ANN401 (those of rich)
    from rich.console import Console  # noqa: PLC0415 (40 ms, for terminals only)

    Console(markup=False, highlight=False, emoji=False).print(renderable, **options)
