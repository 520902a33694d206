"""Counting with OpenAI's own tokenisers."""

import re
from collections.abc import Callable, Iterator
from typing import ClassVar

import attrs

from memci.messages.tokens import encodings

CHUNK_CHARACTERS = 20_000
"""Longer texts are encoded in chunks of this size: tiktoken's time grows faster than the text where nothing cuts it (a million
times one letter), and its regular expressions overflow their stack on long runs of spaces."""

_SEARCHED_CHARACTERS = 4_000

_BOUNDARY = re.compile(r"(?<=\S)(?= [^\W_])|(?<=\n)(?=[^\W_])")
"""Where both encodings cut a text anyway: before a single space and a letter or digit, and after a line."""


@attrs.define(eq=False)
class TiktokenCounter:
    """Counts with a byte-pair encoding. The vocabulary is loaded at the first count (0.2 to 0.4 s).

    Special tokens in a text, such as ``<|endoftext|>``, count as the ordinary text that they are; a lone surrogate counts as
    the replacement character. A count is exact, but for texts above ``CHUNK_CHARACTERS`` that have no line end and no space
    between words for 4,000 characters on end: there it may be a few tokens a chunk too high.

    Attributes:
        name: The encoding's name in ``encodings.ENCODINGS``.
    """

    exact: ClassVar[bool] = True
    margin: ClassVar[float] = 1.0

    name: str
    _encode: Callable[[str], list[int]] | None = attrs.field(default=None, init=False, repr=False)

    def count(self, text: str) -> int:
        """Return the number of tokens in *text*. O(its length), about 10 MB/s.

        Raises:
            ConfigError: The vocabulary is missing or damaged (first count only).
        """
        encode = self._encode
        if encode is None:
            # Two threads may both load at first; they set the same thing.
            encode = self._encode = encodings.load(self.name).encode_ordinary
        if len(text) <= CHUNK_CHARACTERS:
            return len(encode(text))
        return sum(len(encode(chunk)) for chunk in _chunks(text))


def _chunks(text: str) -> Iterator[str]:
    """Cut a text into chunks of at most ``CHUNK_CHARACTERS``, where the encodings cut it anyway if there is such a place."""
    start = 0
    while len(text) - start > CHUNK_CHARACTERS:
        end = start + CHUNK_CHARACTERS
        boundaries = [match.start() for match in _BOUNDARY.finditer(text, end - _SEARCHED_CHARACTERS, end)]
        if boundaries:
            end = boundaries[-1]
        yield text[start:end]
        start = end
    yield text[start:]
