"""How many tokens a text may have, without counting them."""

import re

CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1780-\u17d3"
)
"""Characters of scripts without spaces between words (Han, kana, Thai, Lao, Burmese, Khmer), as a regular expression's set."""

# Words, digits, characters of scripts without spaces, marks, letters of other scripts.
_PIECE = re.compile(f"([A-Za-z]+)|([0-9]{{1,3}})|([{CJK}])|([^\\s\\w]|_)|([^\\W0-9_]+)")
_WORD, _OTHER_WORD = 1, 5
_TOKENS = (0.0, 1.0, 1.05, 0.9, 0.7, 0.3)  # of a piece of each kind
_LONG_LETTER_TOKENS = 0.12
_PLAIN_LETTERS = 6
_OTHER_LETTER_TOKENS = 0.36


def estimate(text: str) -> float:
    """Return about how many tokens a modern encoding makes of *text*; within a tenth over a page. O(its length).

    Words, digits, Chinese characters and punctuation are weighed one by one; the weights were fitted to o200k_base on
    conversations in English and Chinese, with code and tool calls.
    """
    if text.isascii() and text.isalpha():
        return 1.0 if len(text) <= _PLAIN_LETTERS else 1.0 + _LONG_LETTER_TOKENS * (len(text) - _PLAIN_LETTERS)
    total = 0.0
    for piece in _PIECE.finditer(text):
        kind = piece.lastindex or 0
        total += _TOKENS[kind]
        if kind == _WORD:
            total += _LONG_LETTER_TOKENS * max(0, piece.end() - piece.start() - _PLAIN_LETTERS)
        elif kind == _OTHER_WORD:
            total += _OTHER_LETTER_TOKENS * (piece.end() - piece.start())
    return total
