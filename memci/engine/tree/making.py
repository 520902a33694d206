"""Directories that are made, and where pages are listed: what is asked of them, and how they are edited."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from memci.archive.catalogue.page_facts import PageFacts
from memci.engine.core.core import Core

By: TypeAlias = Literal["application", "model"]  # who edits


def make_directory(  # noqa: PLR0913 (the parts of a directory)
    core: Core, name: str, description: str, parent: str | int | None, children: Sequence[str | int], *, by: By
) -> str:
    """Make a directory of these pages, and return its index."""
    raise NotImplementedError


def move(core: Core, source: str | int, target: str | int, *, by: By) -> None:
    """List a page elsewhere."""
    raise NotImplementedError


def update(core: Core, index: str | int, name: str | None, description: str | None, *, by: By) -> None:
    """Give a note or a directory another name or description."""
    raise NotImplementedError


def undo(core: Core, *, by: By) -> None:
    """Take the last edit back."""
    raise NotImplementedError


def facts(core: Core, index: str) -> PageFacts:
    """Return the facts of a page, a directory or a root."""
    raise NotImplementedError


def children(core: Core, index: str) -> list[PageFacts]:
    """Return the facts of what a directory lists. O(children)."""
    raise NotImplementedError


def parent(core: Core, index: str) -> PageFacts | None:
    """Return the facts of what lists a page."""
    raise NotImplementedError


def ancestors(core: Core, index: str) -> list[PageFacts]:
    """Return the facts of the directories that a page is in, the nearest first. O(depth)."""
    raise NotImplementedError
