"""How many tokens a text may have, without counting them."""

import re

CJK = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Characters of scripts that put no spaces between words, as the inside of a regular expression's set."""

_PIECE = re.compile(f"([A-Za-z]+)|([0-9]{{1,3}})|([{CJK}])|([^\\W0-9_]+)|([^\\s\\w]|_)")
_WEIGHTS = {2: 1.05, 3: 0.83, 5: 0.45}
_LONG_LETTER_TOKENS = 0.175
_PLAIN_LETTERS = 6
_OTHER_LETTER_TOKENS = 0.36


def estimate(text: str) -> float:
    """Return about how many tokens a modern encoding makes of *text*; within a tenth over a page. O(its length).

    Words, digits, Chinese characters and punctuation are weighed one by one; the weights were fitted to o200k_base on
    conversations in English and Chinese, with code and tool calls.
    """
    if text.isascii() and text.isalpha():
        return 1.0 + _LONG_LETTER_TOKENS * max(0, len(text) - _PLAIN_LETTERS)
    total = 0.0
    for match in _PIECE.finditer(text):
        group = match.lastindex or 0
        if group == 1:
            total += 1.0 + _LONG_LETTER_TOKENS * max(0, match.end() - match.start() - _PLAIN_LETTERS)
        elif group == 4:
            total += 0.3 + _OTHER_LETTER_TOKENS * (match.end() - match.start())
        else:
            total += _WEIGHTS[group]
    return total
