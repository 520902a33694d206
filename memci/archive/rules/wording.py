"""Scores how close the wording of a sentence is to that of a rule: a linear model of words, pairs of words and parts of words.

It is trained on sentences in 17 languages (``benchmarks/rules``), most of them in English, German, Spanish, French and Chinese. A
sentence in a language that it does not know scores near its bias, which decides nothing.
"""

import re
from functools import cache, lru_cache
from itertools import pairwise
from math import sqrt
from pathlib import Path
from zlib import crc32

BITS = 19  # of the place of a weight
STEPS = 20  # of a weight of 1: weights are bytes
LEAST_FEATURES = 30  # by which a sum is divided: a few words alone prove little
_PLACES = (1 << BITS) - 1
_FACTOR = 0x9E3779B1  # spreads the values over the places

_TOKEN = re.compile(
    "[\u3040-\u30ff\u3400-\u9fff]"  # each sign of Han is a word
    "|[^\\W\\d_\u3040-\u30ff\u3400-\u9fff]+|\\d+|[?!:;,.…'’？！：；，。]"
)
_MARKS = str.maketrans("，。？！：；’", ",.?!:;'")
_FIRST, _LAST = 1, 2


def score(sentence: str) -> float:
    """Return how close a sentence is to a rule: below 0 for most that set none. O(its length)."""
    weights, bias = _model()
    places = features(sentence)
    return sum([weights[place] for place in places]) / (STEPS * sqrt(max(len(places), LEAST_FEATURES))) + bias


def features(sentence: str) -> list[int]:
    """Return the places of the weights of a sentence: its words, neighbours and parts of words, hashed. O(its length)."""
    words = _words(sentence)
    are_signs = 2 * sum(["\u3040" <= word[0] <= "\u9fff" for word in words]) > len(words)
    parts = [_parts(word) for word in words]
    chain = [_FIRST, *[code for code, _, _, _ in parts], _LAST]
    pairs = [first * 31 + second * 7 for first, second in pairwise(chain)]
    values = [*chain, *pairs, *[pair * 13 + third for pair, third in zip(pairs, chain[2:], strict=False)]]
    values.append(900 + min(len(words), 60) // (10 if are_signs else 6))
    if not are_signs:
        stems = [_FIRST, *[stem for _, stem, _, _ in parts]]
        values += [first * 17 + third * 3 for first, third in zip(chain, chain[2:], strict=False)]
        values += [first * 19 + second * 5 for first, second in pairwise(stems)]
        values += [part * 5 for _, _, part, _ in parts]
        values += [part * 9 for _, _, _, part in parts]
    return [(value * _FACTOR >> 15) & _PLACES for value in values]


@lru_cache(maxsize=2_048)
def _parts(word: str) -> tuple[int, int, int, int]:
    """Return the hashes of a word, and of its beginnings and its end, which inflected words share."""
    parts = (word, word[:5], word[:4], word[-3:])
    whole, stem, start, end = (crc32(part.encode()) for part in parts)
    return whole, stem, start, end


def _words(sentence: str) -> list[str]:
    """Return words, numbers as ``0``, and marks, without full stops at the end."""
    words = ["0" if word[0].isdigit() else word for word in _TOKEN.findall(sentence.lower().translate(_MARKS))]
    while words and words[-1] == ".":
        words.pop()
    return words


@cache
def _model() -> tuple[memoryview, float]:
    """Return weights, by place, and the bias, which two bytes hold in thousandths."""
    data = Path(__file__).with_name("wording.bin").read_bytes()
    return memoryview(data)[:-2].cast("b"), int.from_bytes(data[-2:], "little", signed=True) / 1000
