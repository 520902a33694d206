"""What a command writes: one JSON document for machines, tables and text for people.

Stored text is other people's: no character of it reaches a terminal that could move the cursor, change colours or turn the
direction of the line.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TextIO

from memci.cli.exit_code import CommandError, ExitCode
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
    """Return a JSON document on one line.

    What could control a terminal is written as JSON escapes, which mean the same.
    """
    # In a JSON text such characters stand within strings only, and the control characters below a blank are escaped already.
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", codec.encode(value).decode())


def document(value: object) -> None:
    """Write a JSON document to standard output, in UTF-8 whatever the terminal has."""
    _reconfigure(sys.stdout, encoding="utf-8")
    write(json_text(value) + "\n")


def text(words: str) -> None:
    """Write text that may come from a store."""
    write(safe(words) + "\n")


def tell(value: object, words: str, *, json: bool) -> None:
    """Write a JSON document, or what stands in it in words."""
    if json:
        document(value)
    else:
        text(words)


def heading(words: str) -> None:
    """Write a line that stands out on a terminal."""
    if not sys.stdout.isatty():
        text(one_line(words))
        return
    from rich.text import Text  # noqa: PLC0415 (40 ms, for terminals only)

    _print(Text(one_line(words), style="bold"))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table: drawn and folded to the width of a terminal, and elsewhere in plain columns, whole, a row a line.

    A column whose heading ends with ``#`` holds numbers, which stand on the right.
    """
    headings = [name.removesuffix("#") for name in columns]
    on_right = [name.endswith("#") for name in columns]
    lines = [[one_line(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        lines.insert(0, headings)
        widths = [max(len(line[number]) for line in lines) for number in range(len(columns))]
        for line in lines:
            cells = zip(line, widths, on_right, strict=True)
            write("  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells).rstrip() + "\n")
        return
    from rich import box  # noqa: PLC0415 (40 ms, for terminals only)
    from rich.table import Table  # noqa: PLC0415 (as above)
    from rich.text import Text  # noqa: PLC0415 (as above)

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
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


def write(words: str) -> None:
    """Write to standard output as it is.

    Raises:
        CommandError: Whoever read it has closed it, or it cannot be written.
    """
    try:
        sys.stdout.write(words)
    except OSError as error:
        raise _lost(error) from error


def prepare() -> None:
    """Let standard output and error write out what their encoding has no character for, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        _reconfigure(stream, errors="backslashreplace")


def flush() -> None:
    """Write out what is still in the buffer.

    Raises:
        CommandError: As for ``write``.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        raise _lost(error) from error


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number <= 0xFF else f"\\u{number:04x}"  # noqa: PLR2004 (two hex digits)


def _print(renderable: object) -> None:
    from rich.console import Console  # noqa: PLC0415 (40 ms, for terminals only)

    Console(markup=False, highlight=False, emoji=False).print(renderable)


def _lost(error: OSError) -> CommandError:
    """Let what is still in the buffer go nowhere, so that the interpreter ends quietly, and return the error to raise."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    if isinstance(error, BrokenPipeError):
        return CommandError("the output was closed", ExitCode.PIPE_CLOSED)
    return CommandError(f"the output cannot be written: {error.strerror}", ExitCode.STORE)


def _reconfigure(stream: TextIO, *, encoding: str | None = None, errors: str | None = None) -> None:
    """Change how a stream writes; one that was put in the place of a standard stream may not be able to."""
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(encoding=encoding, errors=errors)
