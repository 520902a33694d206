"""Trains the model of ``memci.archive.rules.wording`` on the sentences here, and on ordinary messages given by path.

    python -m benchmarks.rules.train --ordinary FOLDER... --people FOLDER... [--half] [--write]

It needs numpy, scipy and scikit-learn. A file ``<language>.txt`` has a sentence a line after the letter of its kind, ``-`` for
one that sets no rule; ``{a|b}`` is a choice, and ``@name`` one of the words that a line ``@name = a|b`` lists. A folder has
conversations as JSON, with ``messages``: what its users say counts as no rule, unless a cue is in it, and what both sides say
where both are *people*. ``writers/`` has sentences of several writers, a line each as it is, after ``+`` for a rule; lines of
one number in German, Spanish and French are often counterparts, as are some in Dutch, Italian and Portuguese. ``--half`` trains
on every other conversation and on two thirds of these lines, and shows how often the rest is taken for a rule; ``check/`` has
sentences that no training reads.

The stored weights come from ``--ordinary taubench coding memorybank crosswoz swe_agent --people`` with LoCoMo's conversations 26
and 30; the same versions of the packages write the same bytes again (numpy 2.4.6, scipy 1.17.1, scikit-learn 1.9.1).
"""

import argparse
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression

from memci.archive.rules import wording
from memci.archive.rules.detection import LIKELY, kind_by_cues, small
from memci.archive.rules.own_words import own_sentences, own_words

HERE = Path(__file__).parent
LANGUAGES = ("en", "de", "es", "fr", "zh")
WRITTEN = tuple(sorted(path.stem for path in (HERE / "writers").glob("*.txt")))  # languages that writers wrote sentences in
_VARIANTS = 40  # of a line with choices
_LINE_WEIGHT, _ONE_WEIGHT = 6.0, 2.0  # of all variants of a line, of a line without choices
_RULE_WEIGHT, _ENGLISH_WEIGHT = 2.4, 3.6  # times that of a rule: most of what is ordinary is English
_WRITERS_RULE_WEIGHT, _WRITERS_OTHER_WEIGHT = 8.0, 12.0  # of a line in writers/
_HELD_OUT = 3  # of which many lines in writers/ the last is held out by --half
_ORDINARY_WEIGHT = 7_000.0  # of all ordinary sentences, so that their number leaves the bias as it is
_C = 20.0
_UNSTOPPED, _EXCLAIMED, _SMALL = (
    0.18,
    0.25,
    0.1,
)  # shares of sentences without a full stop, of these with "!", and in small letters
_MOST_CHARACTERS = 2_000  # of an ordinary message
_FIRST_SIGN = 0x3000  # of the scripts without spaces

Example = tuple[str, bool, float]  # a sentence, whether it sets a rule, and its weight


def variants(language: str, chance: random.Random) -> Iterator[Example]:
    """Yield the variants of the lines of a language."""
    fillers: dict[str, list[str]] = {}
    rule_weight = _ENGLISH_WEIGHT if language == "en" else _RULE_WEIGHT
    for line in (HERE / f"{language}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("@"):
            name, _, words = line.partition(" = ")
            fillers[name] = words.split("|")
        elif line.strip():
            kind, frame = line[0], line[2:]
            texts = sorted({_filled(frame, fillers, chance) for _ in range(_VARIANTS)})
            weight = _ONE_WEIGHT if len(texts) == 1 else min(1.0, _LINE_WEIGHT / len(texts))
            yield from ((text, kind != "-", weight * (1 if kind == "-" else rule_weight)) for text in texts)


def _filled(frame: str, fillers: dict[str, list[str]], chance: random.Random) -> str:
    """Return a sentence of a frame, now and then without its full stop, with an exclamation mark, or in small letters."""

    def choice(options: re.Match[str]) -> str:
        words: list[str] = options[1].split("|")
        return chance.choice(words)

    text = re.sub(r"\{([^{}]*)\}", choice, frame)
    for name in sorted(fillers, key=len, reverse=True):
        head, *tails = text.split(name)
        text = head + "".join(chance.choice(fillers[name]) + tail for tail in tails)
    text = re.sub(r"\s+", " ", re.sub(r"\s+([.,!?:])", r"\1", text)).strip()
    text = re.sub(r"([.,!?。])[.]+", r"\1", text)
    text = text.replace(" ", "") if ord(text[0]) >= _FIRST_SIGN else text[0].upper() + text[1:]
    if text.endswith(".") and chance.random() < _UNSTOPPED:
        text = text[:-1] + ("!" if chance.random() < _EXCLAIMED else "")
    return text[0].lower() + text[1:] if chance.random() < _SMALL else text


def written(language: str, *, is_rule: bool) -> list[str]:
    """Return the sentences of ``writers/`` in a language that set rules, or those that set none, without what they quote."""
    mark = "+ " if is_rule else "- "
    lines = (HERE / "writers" / f"{language}.txt").read_text(encoding="utf-8").splitlines()
    said = (own_words(line.removeprefix(mark)).replace("\x00", "") for line in lines if line.startswith(mark))
    return [sentence for sentence in said if any(map(str.isalpha, sentence))]


def split(sentences: list[str]) -> tuple[list[str], list[str]]:
    """Return sentences to train on, and every third one, which is held out."""
    kept = [sentence for number, sentence in enumerate(sentences) if number % _HELD_OUT != _HELD_OUT - 1]
    return kept, sentences[_HELD_OUT - 1 :: _HELD_OUT]


def ordinary(folders: list[Path], roles: set[str]) -> Iterator[tuple[str, int, str, bool]]:
    """Yield folder, number of the conversation, sentence, and whether a cue is in it."""
    number = 0
    for folder in folders:
        for path in sorted(folder.glob("*.json")):
            number += 1
            for message in json.loads(path.read_text(encoding="utf-8"))["messages"]:
                text = message.get("content")
                if message["role"] in roles and isinstance(text, str) and len(text) < _MOST_CHARACTERS:
                    own = own_words(text)
                    for sentence in (own[start:end].replace("\x00", "") for start, end in own_sentences(own)):
                        yield folder.name, number, sentence, kind_by_cues(small(sentence), is_simple=False) is not None


def matrix(sentences: Sequence[str]) -> scipy.sparse.csr_matrix:
    """Return the features of sentences, a row each, of the length that the score has."""
    places, ends = list[int](), [0]
    for sentence in sentences:
        places += wording.features(sentence)
        ends.append(len(places))
    rows = scipy.sparse.csr_matrix((np.ones(len(places)), places, ends), shape=(len(sentences), 1 << wording.BITS))
    return scipy.sparse.diags(1 / np.sqrt(np.maximum(np.diff(ends), wording.LEAST_FEATURES))) @ rows


def trained(examples: list[Example]) -> tuple[np.ndarray, float]:
    """Return the weights of a model, as it is stored, and its bias."""
    sentences, are_rules, sizes = zip(*examples, strict=True)
    model = LogisticRegression(C=_C, solver="liblinear", max_iter=300).fit(matrix(sentences), are_rules, sample_weight=sizes)
    return np.clip(np.round(model.coef_.ravel() * wording.STEPS), -127, 127).astype(np.int8), float(model.intercept_[0])


def show(name: str, sentences: list[str], weights: np.ndarray, bias: float) -> None:
    """Print how many sentences the model takes for rules."""
    scores = matrix(sentences) @ (weights / wording.STEPS) + bias
    print(f"{name}: {sum(scores > LIKELY)} of {len(sentences)}")  # noqa: T201 (a script)


def main() -> None:
    """Train, show figures, and write the weights where asked to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ordinary", nargs="*", type=Path, default=[])
    parser.add_argument("--people", nargs="*", type=Path, default=[])
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    chance = random.Random(5)  # noqa: S311 (variants, not secrets)
    examples = [each for language in (*LANGUAGES, "other") for each in variants(language, chance)]
    held_out = dict[str, list[str]]()
    for language in WRITTEN:
        for is_rule in (True, False):
            sentences = written(language, is_rule=is_rule)
            if options.half:
                sentences, held_out[f"{language}, held out {'rules' if is_rule else 'others'}"] = split(sentences)
            weight = _WRITERS_RULE_WEIGHT if is_rule else _WRITERS_OTHER_WEIGHT
            examples += [(sentence, is_rule, weight) for sentence in sentences]
    said = [*ordinary(options.ordinary, {"user"}), *ordinary(options.people, {"user", "assistant"})]
    texts = [text for _, number, text, has_cue in said if not has_cue and not (options.half and number % 2)]
    examples += [(text, False, _ORDINARY_WEIGHT / len(texts)) for text in texts]
    weights, bias = trained(examples)
    print(f"{len(examples)} sentences, {len(texts)} of them ordinary ones, bias {bias:.2f}")  # noqa: T201 (a script)
    for language in LANGUAGES:
        lines = (HERE / "check" / f"{language}.txt").read_text(encoding="utf-8").splitlines()
        show(f"{language}, rules", [line[2:] for line in lines if line.startswith("+")], weights, bias)
        show(f"{language}, others", [line[2:] for line in lines if line.startswith("-")], weights, bias)
    for name, sentences in held_out.items():
        show(name, sentences, weights, bias)
    for folder in (*options.ordinary, *options.people) if options.half else ():
        show(folder.name, [text for name, number, text, _ in said if name == folder.name and number % 2], weights, bias)
    if options.write:
        target = Path(wording.__file__).with_name("wording.bin")
        target.write_bytes(weights.tobytes() + round(bias * 1000).to_bytes(2, "little", signed=True))


if __name__ == "__main__":
    main()
