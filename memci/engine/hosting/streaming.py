"""A streamed answer: it is put together as it comes, and appended once, when it ends or whoever reads it leaves."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol, Self

from memci.chapters.page import Entry
from memci.errors import ConflictError, MemciError
from memci.messages.parts import PartKind, parts
from memci.messages.streaming import Assembler, piece


class Append(Protocol):
    """Stores an answer."""

    def __call__(self, messages: list[dict[str, Any]], *, complete: bool) -> list[Entry]:
        """Return the entries that it is then."""


class Stream(AbstractContextManager["Stream"]):
    """An answer that comes in pieces; ``Session.stream`` makes one.

    Attributes:
        text: What a user reads of it so far.
        entries: Those that it was appended as, once the block was left; none where nothing came that can be kept. Where an
            answer was stored under the same key before, these are there as the block is entered, and nothing is appended.
        complete: Whether the provider said that it is whole. Where an answer that is there already broke off, ``rewind`` to
            ``entries[0].address`` and ask again: the key then is free.
    """

    def __init__(self, assembler: Assembler, find: Callable[[], tuple[list[Entry], bool]], append: Append) -> None:
        self._assembler = assembler
        self._find = find
        self._append = append
        self._is_discarded = False
        self._was_whole: bool | None = None  # of an answer that was there before
        self.text = ""
        self.entries: list[Entry] = []

    def __enter__(self) -> Self:
        """Look whether an answer is there already."""
        self.entries, is_whole = self._find()
        if self.entries:
            if any(entry.message.get("role", "assistant") != "assistant" for entry in self.entries):
                message = "the key was used for a message that is no answer: give each answer a key of its own"
                raise ConflictError(message, expected=0, head=self.entries[0].node.seq)
            self._was_whole = is_whole
            self.text = "".join(
                part.text for entry in self.entries for part in parts(entry.message) if part.kind is PartKind.TEXT
            )
        return self

    @property
    def complete(self) -> bool:
        """Whether it is whole; see the attributes."""
        return self._assembler.complete if self._was_whole is None else self._was_whole

    @property
    def usage(self) -> Any:  # noqa: ANN401 (as the provider says it)
        """What the provider counted, for ``Session.report_usage``; ``None`` until it says so."""
        return self._assembler.usage

    def add(self, chunk: object) -> str:
        """Take a piece in, as the provider sends it, and return what it adds to the text. O(the piece)."""
        said = self._assembler.add(piece(chunk))
        self.text += said
        return said

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What would be appended of it now. O(what came)."""
        return self._assembler.messages()

    def discard(self) -> None:
        """Keep nothing of what comes: leaving the block appends nothing."""
        self._is_discarded = True

    def finish(self) -> list[Entry]:
        """Append what came, once, and return the entries; leaving the block does it."""
        if not (self.entries or self._is_discarded) and (messages := self.messages):
            self.entries = self._append(messages, complete=self.complete)
        return self.entries

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Append what came, whatever ended it; an error that ended it goes on, with what kept the answer from being stored."""
        try:
            self.finish()
        except MemciError as failed:
            if error is None:
                raise
            error.add_note(f"what came of the answer is not stored: {failed}")
