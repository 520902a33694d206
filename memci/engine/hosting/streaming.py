"""A streamed answer: it is put together as it comes, and appended once, when it ends or whoever reads it leaves."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from memci.chapters.page import Entry
from memci.messages.streaming import Assembler, piece


class Stream(AbstractContextManager["Stream"]):
    """An answer that comes in pieces; ``Session.stream`` makes one.

    Attributes:
        text: What a user reads of it so far.
        entries: Those that it was appended as, once the block was left; none where nothing came that can be kept. Where an
            answer was stored under the same key before, these are there as the block is entered, and nothing is appended.
    """

    def __init__(
        self, assembler: Assembler, find: Callable[[], list[Entry]], append: Callable[[list[dict[str, Any]]], list[Entry]]
    ) -> None:
        self._assembler = assembler
        self._find = find
        self._append = append
        self.text = ""
        self.entries: list[Entry] = []

    def __enter__(self) -> Self:
        """Look whether an answer is there already."""
        self.entries = self._find()
        return self

    @property
    def complete(self) -> bool:
        """Whether the provider said that it is whole."""
        return self._assembler.complete

    @property
    def usage(self) -> Any:  # noqa: ANN401 (as the provider says it)
        """What the provider counted, for ``Session.report_usage``; ``None`` until it says so."""
        return self._assembler.usage

    def add(self, chunk: object) -> str:
        """Take a piece in, as the provider sends it, and return what it adds to the text. O(the piece)."""
        said = self._assembler.add(piece(chunk))
        self.text += said
        return said

    def finish(self) -> list[Entry]:
        """Append what came, once, and return the entries; leaving the block does it."""
        if not self.entries and (messages := self._assembler.messages()):
            self.entries = self._append(messages)
        return self.entries

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Append what came, whatever ended it."""
        self.finish()
