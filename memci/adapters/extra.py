"""What is said where the package of a framework is missing, or is another one: which extra of memci brings it."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def brought_by(extra: str) -> Iterator[None]:
    """Note at an ``ImportError`` in the block that an *extra* of memci brings what is imported there."""
    try:
        yield
    except ImportError as error:  # packages of other people may have such a name, too
        error.add_note(f"memci.adapters needs more here: install memci with its extra {extra}")
        raise
