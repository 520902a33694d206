"""What a test of the conformance suite shows, in a word: the rows of the report of ``memci.testing.conformance``."""

from collections.abc import Callable
from typing import TypeVar

from memci.errors import shown

_Test = TypeVar("_Test", bound=Callable[..., None])

CAPABILITIES = {
    "journal": "records come back dense, in order and byte for byte, from any place, whatever their size",
    "compare-and-set": "an append at any place but the head is a conflict that names the head, and writes nothing",
    "many openings": "openings of one session follow each other, and a reading does not see what is written meanwhile",
    "pages": "page files are found by name, written over, listed and removed",
    "snapshots": "the newest state is found, older ones are thinned out, all can be cleared",
    "ids": "any text is an id, and no two meet; what is no text is refused",
    "tenants": "a tenant sees and deletes only its own sessions",
    "read-only": "what was opened to be read follows the writer and changes nothing",
    "deletion": "a deleted session is gone whole, is not read or written on, and its id can begin anew",
    "redaction": "bodies are replaced for good, for whoever has the session open too, and nothing else changes",
    "blobs": "large data is there as long as a session refers to it, in whatever order sessions add and drop it",
    "index": "page facts and search open for every session, and leave none behind",
    "closing": "what was closed refuses everything, and can be closed again",
    "durability": "store and session say by the same word what survives",
}
"""What each capability means, in the order of the report."""

ATTRIBUTE = "memci_capability"
"""Where a test has its capability."""


def capability(name: str) -> Callable[[_Test], _Test]:
    """Say which capability of a store a test shows.

    Raises:
        ValueError: There is no such capability.
    """
    if name not in CAPABILITIES:
        message = f"{shown(name)} is none of {', '.join(CAPABILITIES)}"
        raise ValueError(message)

    def mark(test: _Test) -> _Test:
        setattr(test, ATTRIBUTE, name)
        return test

    return mark
