"""What a summary costs, in calls of Python functions: most of its words are handled many at a time."""

from functools import partial

from memci.archive.contents.noting import notes_of
from memci.archive.summarizers import literals as literal_module
from memci.archive.summarizers.extractive import ExtractiveSummarizer
from memci.archive.summarizers.literals import _BEGINNING, literals
from memci.archive.summarizers.passage import Atoms
from memci.archive.summarizers.words import Known, estimate
from memci.messages.formats.openai import facts
from tests.python_calls import python_calls

WORDS = "the late invoice of the northern office was sent to another supplier by hand, so they want it back before winter. "
MOST_CALLS_A_WORD = 5.5


def page(words: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": words}, {"role": "assistant", "content": words[::-1] + words * 4}]


def test_a_page_costs_a_few_calls_a_word() -> None:
    """All of a summary, lines and row and title together, takes five calls a word, once the words were met."""
    messages = [facts(value) for value in page(WORDS)]
    ExtractiveSummarizer().summarize(messages, max_tokens=52)
    words = sum(len(value["content"].split()) for value in page(WORDS))
    calls = python_calls(lambda: ExtractiveSummarizer().summarize(messages, max_tokens=52))
    assert calls.total() <= MOST_CALLS_A_WORD * words


def test_each_text_of_a_page_is_cut_once() -> None:
    """Title, keywords, row, lines and the rest share the pieces into which a text was cut."""
    messages = [facts(value) for value in page(WORDS)]
    calls = python_calls(lambda: ExtractiveSummarizer().summarize(messages, max_tokens=52))
    assert len(messages) == calls[Atoms.cut.__code__] == calls[literals.__code__]


def test_a_key_with_its_value_is_cut_once() -> None:
    """What a result says as a key with its value, and said before, is not cut again."""
    results = ['{"cabin": "economy", "seats": 12}', '{"seats": 12, "status": "open", "cabin": "economy"}']
    seen, again = ([facts({"role": "function", "name": "look", "content": text})] for text in results)
    ExtractiveSummarizer().summarize(seen, max_tokens=52)
    calls = python_calls(lambda: ExtractiveSummarizer().summarize(again, max_tokens=52))
    assert 2 == calls[Atoms.cut.__code__]  # the text, and its new pair


def test_cutting_costs_no_call_a_word() -> None:
    """Words that were met before are cut without a call for each: ten times as many take no more."""
    Atoms().add(WORDS)
    once, often = (python_calls(partial(Atoms().add, text)).total() for text in (WORDS, WORDS * 10))
    assert once >= often


def test_values_that_were_met_before_are_not_weighed_again() -> None:
    """Paths, identifiers and numbers, which a session says again and again, are looked at once, however they stand in a text."""
    Atoms().add("run 4711 of HAT-136 (src/app_one.py): run")
    calls = python_calls(lambda: Atoms().add("HAT-136 in 4711 (src/app_one.py): run " * 20))
    assert 0 == calls[estimate.__code__] == calls[literal_module._kind.__code__]


def test_a_number_that_no_value_begins_with_is_passed_over() -> None:
    """Brackets, dashes, capitals and bare numbers of code are no beginning of a date, an amount or a number with a unit."""
    assert [] == _BEGINNING.findall("call(HAT, x-y, IDS[2]) -> Marna; (I) 4) {5} n=6")
    assert ["1", "$", "5", "M", "("] == _BEGINNING.findall("1 km, $5, May 4) (040) x")


def test_of_many_words_only_the_latest_are_kept() -> None:
    """What was made of words is found again, and what takes their place is made in turn, so that memory stays bounded."""
    made: list[str] = []

    def make(text: str) -> str:
        made.append(text)
        return text.upper()

    known = Known(make, 4)
    assert ["A", "B", "A", "C", "A"] == [known[text] for text in "abaca"]
    assert list("abc") == made
    assert ["D", "E", "A"] == [known[text] for text in "dea"]
    assert list("abcdea") == made


def test_plain_words_cost_the_working_set_no_call() -> None:
    """The working set passes over plain words: ten times as many take no more calls."""
    once, often = ([("usr-1", facts({"role": "assistant", "content": text}))] for text in (WORDS, WORDS * 10))
    assert python_calls(partial(notes_of, once, 0)).total() >= python_calls(partial(notes_of, often, 0)).total()
