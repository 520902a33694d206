"""Which sentences of the user's are standing instructions."""

import re

import pytest

from benchmarks.trace import profiled
from memci.archive.contents import standing as module
from memci.archive.contents.standing import CUE_WORDS, MOST_CHARACTERS, standing
from memci.archive.summarizers.words import words


@pytest.mark.parametrize(
    "said",
    [
        "Please always answer in German.",
        "When you edit a file, always run the tests.",
        "never push to main without asking",
        "From now on, use tabs.",
        "Could you always add tests?",
        "I want you to never delete files.",
        "Don't ever use var.",
        "You must not touch prod.",
        "You mustn't touch prod.",
        "Do not use emojis in any of your answers.",
        "以后都用中文回答我。",
        "每次都先问我",
        "Non usare mai emoji.",
        "N'utilise jamais d'emojis.",
        "これからは日本語で答えてください。",
        "항상 한국어로 답해 주세요.",
        "Bitte immer auf Deutsch antworten.",
        "Antworte ab jetzt auf Englisch",
        "Désormais, réponds en français.",
        "A partir de ahora responde en español.",
        "Всегда отвечай по-русски.",
    ],
)
def test_what_is_to_hold_is_found(said: str) -> None:
    """What the user asks for from then on is found in many languages, word for word, beside other sentences."""
    assert [said] == list(standing(f"{said}\nThat is it."))


@pytest.mark.parametrize(
    "said",
    [
        "I always go there.",
        "Never mind.",
        "They never come and always complain.",
        "Always a pleasure!",
        "Why always me?",
        "You never shy away from a challenge and always try something new.",
        "I see emojis in all of your answers.",
        "They said you must not go.",
        "他每次都先问我",
        "Non mi piace mai.",
        "Je n'utilise jamais Word.",
        "Go on.",
    ],
)
def test_what_is_told_is_no_instruction(said: str) -> None:
    """What tells of something, or of others, is no standing instruction."""
    assert [] == list(standing(said))


def test_instructions_are_bounded() -> None:
    """A long sentence is given from its beginning, and of a document nothing."""
    (cut,) = standing("Always " + "x" * 500)
    assert (MOST_CHARACTERS, "Always xxx") == (len(cut), cut[:10])
    assert [] == list(standing("Always do it.\n" * 1000))


def test_each_cue_in_ascii_has_a_word_that_tells_of_it() -> None:
    """No cue is passed over since none of its words is looked for."""
    cues = re.split(r"\|(?![^(]*\))", f"{module._ALWAYS}|{module._FROM_NOW}|{module._EACH}")
    told = [cue for cue in cues if cue.isascii()]
    assert len(told) > 40
    assert [] == [cue for cue in told if CUE_WORDS.isdisjoint(words(re.sub(r"\(\?:[^)]*\)\?|\\\w", " ", cue)))]


def test_what_asks_for_nothing_costs_no_search() -> None:
    """No pattern is looked for in the sentences of a text in ASCII without any word of a cue."""
    searches: list[str] = []

    def note(_frame: object, kind: str, function: object) -> None:
        if kind == "c_call":
            searches.append(getattr(function, "__name__", ""))

    profiled(lambda: list(standing("The invoice was sent by hand. They want it back before winter.")), note)
    assert "findall" in searches  # of its words
    assert not {"search", "finditer"} & set(searches)
