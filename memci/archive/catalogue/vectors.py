"""Vectors of pages in a page index: making those that are missing, and comparing a query with all of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from memci.archive.catalogue.embedding import DIMENSIONS, PASSAGE_CHARS, PASSAGES, Embedder, passage
from memci.archive.catalogue.index_file import damaged

if TYPE_CHECKING:
    import sqlite3

    from numpy import float32, int64
    from numpy.typing import NDArray

MOST_PAGES = 256
"""Pages whose vectors one search makes at most."""

MOST_CHARS = 100_000
"""Characters of text after which it makes no more."""

_READ_PAGES = 2_048
_HIGHEST = 127  # of a code, which has eight bits and a sign

# Walks from the youngest text down and ends with the last that is missing, which in a conversation that goes on is near.
_MISSING = """SELECT page.name FROM text CROSS JOIN page ON page.id = text.id LEFT JOIN vector ON vector.id = text.id
WHERE vector.id IS NULL OR ? ORDER BY text.id DESC LIMIT ?"""
_TEXTS = f"SELECT substr(text, 1, {PASSAGE_CHARS}) FROM entry WHERE page = ? ORDER BY position LIMIT {PASSAGES}"  # noqa: S608 (numbers)
_VECTORS = "SELECT vector.id, scale, codes FROM vector {join} ORDER BY vector.id"
_OF_TURNS = "JOIN page ON page.id = vector.id WHERE page.turn BETWEEN ? AND ?"


@attrs.frozen
class Missing:
    """Pages that have no vector, youngest first.

    Attributes:
        seq: The last journal record in the index when they were looked for.
        texts: By index, what is to be embedded.
    """

    seq: int
    texts: Mapping[str, str]


def missing(connection: "sqlite3.Connection", model: str) -> Missing:
    """Return searchable pages without a vector of a model, as many as one search may make. O(1) where there is none."""
    seq, pages, vectors, known = connection.execute("SELECT seq, pages, vectors, model FROM meta").fetchone()
    others = known != model
    count = pages if others else pages - vectors
    texts: dict[str, str] = {}
    chars = 0
    if count:
        for (name,) in connection.execute(_MISSING, (others, min(count, MOST_PAGES))).fetchall():
            if chars >= MOST_CHARS:
                break
            texts[name] = passage(text for (text,) in connection.execute(_TEXTS, (name,)))
            chars += len(texts[name])
    return Missing(seq, texts)


def encoded(texts: Mapping[str, str], embedder: Embedder) -> list[tuple[str, float, bytes]]:
    """Return the vectors of some texts as they are kept: by name, a scale and a byte for each dimension."""
    import numpy as np  # noqa: PLC0415 (optional)

    vectors = embedder.embed(list(texts.values()))
    scales = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny) / _HIGHEST
    codes = np.rint(vectors / scales[:, None]).astype(np.int8)
    return [(name, float(scale), row.tobytes()) for name, scale, row in zip(texts, scales, codes, strict=True)]


class Likeness:
    """How like a query each page is, by the cosine of their vectors.

    Reads all vectors of the index, a few at a time: 520 bytes a page from the file, and 12 in memory while the search lasts.

    Args:
        connection: The index.
        embedder: Embeds the query.
        query: Any text.
        turns: Only pages opened in these turns, both ends included; ``None`` for all.
        extra: By place, the texts of the entries of pages that are compared too, or instead of what the index holds of them.

    Raises:
        CorruptError: The index is damaged.
    """

    def __init__(
        self,
        connection: "sqlite3.Connection",
        embedder: Embedder,
        query: str,
        turns: tuple[int, int] | None,
        extra: Mapping[int, Iterable[str]],
    ) -> None:
        import numpy as np  # noqa: PLC0415 (optional)

        asked, *others = embedder.embed([passage([query]), *map(passage, extra.values())])
        places: list[NDArray[int64]] = [np.zeros(0, np.int64)]
        cosines: list[NDArray[float32]] = [np.zeros(0, np.float32)]
        if connection.execute("SELECT model FROM meta").fetchone()[0] == embedder.name:
            rows = connection.execute(_VECTORS.format(join=_OF_TURNS if turns else ""), turns or ())
            while part := rows.fetchmany(_READ_PAGES):
                places.append(np.array([row[0] for row in part], np.int64))
                codes = np.frombuffer(b"".join(row[2] for row in part), np.int8)
                if len(codes) != len(part) * DIMENSIONS:
                    message = "a vector has another length"
                    raise damaged(message)
                # Not @: the threads that it may use are slower than none at this size where other programs run.
                dots = np.einsum("ij,j->i", codes.reshape(-1, DIMENSIONS).astype(np.float32), asked)
                cosines.append(dots * np.array([row[1] for row in part], np.float32))
        self._places = np.concatenate(places)
        self._cosines = np.concatenate(cosines)
        self._extra = {place: float(vector @ asked) for place, vector in zip(extra, others, strict=True)}

    def best(self, most: int, least: float) -> list[int]:
        """Return the places of so many pages that are most like the query, with a cosine of at least *least*, best first."""
        import numpy as np  # noqa: PLC0415 (optional)

        near = np.flatnonzero(self._cosines >= least)
        chosen = near[np.argsort(-self._cosines[near], kind="stable")[:most]]
        found = dict(zip(self._places[chosen].tolist(), self._cosines[chosen].tolist(), strict=True))
        found |= {place: cosine for place, cosine in self._extra.items() if cosine >= least}
        return sorted(found, key=lambda place: (-found[place], place))[:most]

    def cosines(self, places: Sequence[int]) -> dict[int, float]:
        """Return the cosines of those of some places that have a vector."""
        import numpy as np  # noqa: PLC0415 (optional)

        wanted = np.isin(self._places, np.array(places, np.int64))
        return dict(zip(self._places[wanted].tolist(), self._cosines[wanted].tolist(), strict=True)) | self._extra
