"""What a model is told to do, in the language of what it is told of."""

from functools import cache
from importlib.resources import files
from string import Template

from memci.archive.summarizers.words import CHINESE_PAIRS, words

WORDS_PER_TOKEN = 0.7

_MOST_READ = 24_000  # characters of a text by which its language is known
_GERMAN = frozenset(
    [
        "der",
        "die",
        "das",
        "und",
        "ich",
        "nicht",
        "ist",
        "ein",
        "eine",
        "mit",
        "für",
        "auf",
        "den",
        "sie",
        "wir",
        "es",
        "zu",
        "im",
        "von",
    ]
)
_GERMAN_SHARE, _CHINESE_SHARE = 0.08, 0.02  # of the words of a page


def task(name: str, text: str, **values: object) -> str:
    """Return the task of this *name*, of those in ``prompts``, in the language of a *text*, with the values that it names."""
    return _template(f"{name}.{_language(text)}.md").substitute(values)


@cache
def _template(name: str) -> Template:
    return Template(files("memci.archive.summarizers.external").joinpath("prompts", name).read_text(encoding="utf-8"))


def _language(text: str) -> str:
    said = words(text[:_MOST_READ])
    if sum(map(frozenset(CHINESE_PAIRS).__contains__, said)) > _CHINESE_SHARE * len(said):
        return "zh"
    return "de" if sum(map(_GERMAN.__contains__, said)) > _GERMAN_SHARE * len(said) else "en"
