"""How much a word tells, without a corpus to ask: from a small table of common words, and from its shape."""

import re

from memci.archive.summarizers.words import CHINESE_PAIRS, COMMON_WORDS, OTHER_WORDS, STOPWORDS, estimate

Told = tuple[tuple[str, float], ...]  # what a text says, in lower case, each with its worth where it is said for the first time

FUNCTION_CHARACTERS = frozenset(  # of Chinese and Japanese, which join words rather than tell something
    "的了是我你您他她它们吗呢吧啊呀哦嗯么怎哪谁这那有个和与及或也都就还又很在把被让给对从到向于以而但着过之其请好要想能会去来不没再吧"
    "はがをにでともへのですますたてなしいるれらくけさこそかよねえおあう"
)

STOP_WORTH = 0.04
COMMON_WORTH = 0.3
RARE_WORTH = 1.0
KNOWN: dict[str, tuple[Told, float]] = {
    word: (((word, worth),), estimate(word))
    for words, worth in ((COMMON_WORDS, COMMON_WORTH), (OTHER_WORDS, STOP_WORTH), (sorted(STOPWORDS), STOP_WORTH))
    for word in words
}  # common words in lower case: what each says, and its estimated tokens
_COMMON_PAIRS = frozenset(CHINESE_PAIRS) | STOPWORDS
_SHORT_WORTHS = (0.1, 0.1, 0.35, 0.6, 0.85)  # by length
_LONGEST_WORD = 22
_SHORTEST_FORM = 5  # letters, of an adverb or a form of a verb, which tell less than the names of things
_FORMS = ("ly", "ing", "ed")
_FORM_WORTH = 0.6  # ``memci bench quality``, locomo and coding
_PAIR_WORTHS = (RARE_WORTH, COMMON_WORTH, STOP_WORTH)
_PLACES = "店馆园院寺山城街路站楼厅场宫桥校区市省县村镇湖江河岛塔庙庄坊堂"  # with which names of places end in Chinese
_DIRECTED = "[出进回过下上起][来去]"  # what a verb in Chinese ends with, such as that of 出去玩
CHUNK = re.compile(  # one of them, or what stands between: a name, or a few characters
    "[这那哪][家些里种位边]?|{2}|[{0}]|(?:(?!{2})[^{0}]){{1,11}}[{1}](?![{1}])|(?:(?!{2})[^{0}]){{1,8}}".format(
        "".join(sorted(FUNCTION_CHARACTERS)), _PLACES, _DIRECTED
    )
)
_SUFFIXES = ("'s", "’s", "'re", "’re", "'ve", "’ve", "'ll", "’ll", "'m", "’m", "'d", "’d", "n't", "n’t")


def word_worth(word: str, *, starts_sentence: bool) -> float:
    """Return how much a word that is not ``KNOWN`` tells: 0 for nothing, 1 for a rare word, more for a name in a sentence."""
    plain = word.lower()
    if not plain.isalpha():
        for suffix in _SUFFIXES:
            if plain.endswith(suffix):
                plain = plain[: -len(suffix)] + ("n" if suffix.startswith("n") and plain != "can" + suffix[1:] else "")
                break
        if plain in KNOWN:
            return KNOWN[plain][0][0][1]
    length = len(plain)
    if length <= 1 or length > _LONGEST_WORD or not (plain.isalnum() or any(character.isalnum() for character in plain)):
        return STOP_WORTH
    if word[0].isupper() and (not starts_sentence or word.isupper()):
        return RARE_WORTH * 1.25
    if length > _SHORTEST_FORM and plain.isascii() and plain.endswith(_FORMS):
        return _FORM_WORTH
    return _SHORT_WORTHS[length] if length < len(_SHORT_WORTHS) and word.isascii() else RARE_WORTH


def pair_worth(pair: str) -> float:
    """Return how much a pair of neighbouring characters of a script without spaces tells, 0 to 1."""
    if pair in _COMMON_PAIRS:
        return STOP_WORTH
    return _PAIR_WORTHS[(pair[0] in FUNCTION_CHARACTERS) + (pair[-1] in FUNCTION_CHARACTERS)]
