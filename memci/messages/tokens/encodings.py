"""The byte-pair encodings that can be used offline, and counting with them.

Vocabularies lie beside this module and do not come, as tiktoken's ``get_encoding`` has them, from the network. tiktoken takes
0.2 s to build its tables; ``Vocabulary`` counts the first texts of a process without.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from struct import unpack_from
from typing import TYPE_CHECKING, ClassVar, Final

import attrs

from memci.errors import ConfigError

if TYPE_CHECKING:
    import tiktoken

FIRST_CHARACTERS = 100_000  # that a process counts before it loads tiktoken, which takes five times as long
CHUNK_CHARACTERS = 20_000
"""Longer texts are encoded in chunks of this size: tiktoken's time grows faster than the text where nothing cuts it (a million
times one letter), and its regular expressions overflow their stack on long runs of spaces."""

_SEARCHED_CHARACTERS = 4_000  # before the end of a chunk, for a place to cut
# Where both encodings cut a text anyway: before a single space and a letter or digit, and after a line.
_BOUNDARY = re.compile(r"(?<=\S)(?= [^\W_])|(?<=\n)(?=[^\W_])")

ENCODINGS: Final[Mapping[str, tuple[str, str]]] = {
    # Source: tiktoken_ext/openai_public.py of tiktoken 0.14.
    "o200k_base": (
        "1c2396bc31d20478786d7a705845b74e33480f5708ab362b7458846c47556aa6",
        (
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
            r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
    ),
    "cl100k_base": (
        "794602497bcf85dd1489e98c9591736574ae484d4adb947671cea791019d2ecf",
        (
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+[\p{L}]++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
            r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
        ),
    ),
}
"""Of each encoding the SHA-256 of its vocabulary file, and how a text is cut before pairs are merged: a regular expression of
Rust's fancy-regex."""

# Encodings that differ from another one in special tokens only, which never occur in ordinary text.
SAME_TEXT: Final[Mapping[str, str]] = {"o200k_harmony": "o200k_base"}

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

_LONGEST_PIECE = 60  # bytes; merging costs the square of it here
_NONE = 1 << 30  # above all ranks


class Ranks(dict[bytes, int]):
    """Ranks by token, above all others for what is none, as far as somebody asked for them. 10 µs each, once.

    The file holds how many tokens there are, where each begins and where the last one ends, and the rank of each, as numbers of
    four bytes, the lowest first; and then the tokens, sorted.
    """

    def __init__(self, file: bytes) -> None:
        super().__init__()
        self._file = file
        (self._length,) = unpack_from("<I", file)
        self._first_rank = 4 * (self._length + 2)
        self._first_token = self._first_rank + 4 * self._length

    def __missing__(self, token: bytes) -> int:
        """Look a token up."""
        low, high = 0, self._length
        while low < high:
            middle = (low + high) // 2
            start, end = unpack_from("<II", self._file, 4 * (middle + 1))
            found = self._file[self._first_token + start : self._first_token + end]
            if found == token:
                return self.setdefault(token, *unpack_from("<I", self._file, self._first_rank + 4 * middle))
            low, high = (middle + 1, high) if found < token else (low, middle)
        return self.setdefault(token, _NONE)

    def all(self) -> dict[bytes, int]:
        """Return the ranks of all tokens. 0.1 s."""
        places = unpack_from(f"<{self._length + 1}I", self._file, 4)
        tokens = (self._file[self._first_token + start : self._first_token + end] for start, end in pairwise(places))
        return dict(zip(tokens, unpack_from(f"<{self._length}I", self._file, self._first_rank), strict=True))


@attrs.define(eq=False)
class Vocabulary:
    """The tokens of an encoding, which count first texts exactly. 5 ms."""

    name: str
    _cut: re.Pattern[str]
    _ranks: Ranks

    @classmethod
    def read(cls, name: str) -> "Vocabulary":
        """Read the vocabulary of one of ``ENCODINGS``; ConfigError where it is missing or damaged."""
        checksum, pattern = ENCODINGS[name]
        try:
            file = Path(__file__).with_name(f"{name}.vocabulary").read_bytes()
            problem = "" if sha256(file).hexdigest() == checksum else "is damaged"
        except OSError as error:
            problem = f"cannot be read ({error})"
        if problem:
            message = f"the vocabulary of {name} {problem}: install memci again, or use approximate"
            raise ConfigError(message, path="counter")
        for unicode, plain in _CLASSES.items():
            pattern = pattern.replace(unicode, plain)
        return cls(name, re.compile(pattern, re.ASCII), Ranks(file))

    def count(self, text: str) -> int | None:
        """Return the number of tokens in *text*; ``None`` where only tiktoken can tell, or sooner. About 3 MB/s."""
        if not _PLAIN.fullmatch(text):
            return None
        tokens = 0
        for piece in self._cut.findall(text):
            token = piece.encode()
            if len(token) > _LONGEST_PIECE:
                return None
            tokens += 1 if self._ranks[token] < _NONE else self._merged(token)
        return tokens

    def encoding(self) -> "tiktoken.Encoding":
        """Build tiktoken's encoding for ordinary text. 0.2 s, 60 MB."""
        import tiktoken  # noqa: PLC0415 (22 ms, for processes that count much)

        pattern = ENCODINGS[self.name][1]
        return tiktoken.Encoding(self.name, pat_str=pattern, mergeable_ranks=self._ranks.all(), special_tokens={})

    def _merged(self, token: bytes) -> int:
        """Return how many tokens are left of a piece when no two neighbours make one; the lowest rank merges first."""
        parts = [token[place : place + 1] for place in range(len(token))]
        while len(parts) > 1:
            rank, place = min((self._ranks[one + other], place) for place, (one, other) in enumerate(pairwise(parts)))
            if rank == _NONE:
                break
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        return len(parts)


@attrs.define(eq=False)
class TiktokenCounter:
    """Counts with a byte-pair encoding.

    The vocabulary is read at the first count (5 ms); ConfigError where it is missing or damaged. A process that counts
    more than ``FIRST_CHARACTERS``, or characters of rarer scripts, loads tiktoken too (0.2 s); the counts are the same. Special
    tokens in a text, such as ``<|endoftext|>``, count as ordinary text, a lone surrogate as the replacement character. A count is
    exact, but for texts above ``CHUNK_CHARACTERS`` that have no line end and no space between words for 4,000 characters on end:
    there it may be a few tokens a chunk too high.
    """

    exact: ClassVar[bool] = True
    margin: ClassVar[float] = 1.0

    name: str  # the encoding's name in ``ENCODINGS``
    # Two threads may both set these at first; they set the same.
    _encode: Callable[[str], list[int]] | None = attrs.field(default=None, init=False, repr=False)
    _vocabulary: Vocabulary | None = attrs.field(default=None, init=False, repr=False)
    _first: int = attrs.field(default=FIRST_CHARACTERS, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Load of tiktoken what no thread can load once the main thread has ended. 5 ms, less where logging is loaded."""
        import concurrent.futures.thread  # noqa: F401, PLC0415 (as above)

    def count(self, text: str) -> int:
        """Return the number of tokens in *text*. O(its length), about 10 MB/s."""
        encode = self._encode
        if encode is None:
            self._first -= len(text)
            vocabulary = self._vocabulary = self._vocabulary or Vocabulary.read(self.name)
            if self._first >= 0 and (tokens := vocabulary.count(text)) is not None:
                return tokens
            encode = self.load()
        if len(text) <= CHUNK_CHARACTERS:
            return len(encode(text))
        return sum(len(encode(chunk)) for chunk in _chunks(text))

    def load(self) -> Callable[[str], list[int]]:
        """Load tiktoken, where that was not done yet, and return its function from a text to tokens."""
        if self._encode is None:
            vocabulary = self._vocabulary or Vocabulary.read(self.name)
            self._encode, self._vocabulary = vocabulary.encoding().encode_ordinary, None
        return self._encode


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
