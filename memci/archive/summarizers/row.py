"""The words of a page that its row in a directory is made of."""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from memci.archive.summarizers.literals import LiteralKind
from memci.archive.summarizers.outcome import outcome
from memci.archive.summarizers.passage import Atoms
from memci.archive.summarizers.selection import Passage, shown, subject_of
from memci.archive.summarizers.summary import ALWAYS, EXCHANGE, GIVEN, LEFT_OUT, OTHERS, PASSAGE, RESULT, SENTENCE, USER, Word
from memci.archive.summarizers.words import UNSPACED, compiled, estimate
from memci.messages.formats.format import SYSTEM_ROLES

_TOKENS, _SHARE = 64.0, 0.75  # of all of them, at most; of the page
_LEAST_WORTH = 0.15
_SMALLEST_WORTH = (
    0.001  # of a word that is shown for its worth, such as the subject of another: more than that of one always shown
)
_UNSPACED_SHARE = 0.3  # of the tokens, from which on a page is one in a script without spaces
_UNSPACED_WORTH = 2.0  # of a word there: for a token such words tell half as much by the measures of words
_RESULT_WORTH = 0.3  # what a word of a result is worth, where those of the dialogue have 1
_FENCE = "```"
_CODE_WORTH = 0.1  # what a word of code is worth that an answer shows; what it is for is said beside it
_LONG_TOKENS = 250  # of a page of which the user's first words say most
_BEGINNING_WORDS, _BEGINNING_WORTH = 16, 0.5  # how many, and what each is worth at least for a token
_NEAR = 2  # atoms of a script without spaces that are so far apart are shown with what stands between them
_INNER = frozenset({"", "(", "（", "·"})  # what stands within such a word
_MOST_ATOMS = 8  # of one word
_VALUES = frozenset({LiteralKind.MONEY, LiteralKind.NUMBER})  # of something
_SETTING = re.compile("=(?:[0-9]+|true|false|null)$|^(?:\\w*_)?mode=")  # of a call, such as a limit
_ENDING = ("?", "!", "？", "！", ")", "）", "]")  # which a word shows that stands before it
_QUESTION = re.compile("[?？]")
_AFTER_WORD = " ,，、。"
_FEW_WORDS = 3  # before the word of a refusal, such as "Unfortunately, I": nothing depends on them
_SHOWN_NAMES = 2  # of a path, about, where rows show it below a directory
_SUBJECT_WORTH = 1.2  # of what a call is about, at least, also where it was named before in the page
_OWNER_ATOMS = 2  # before a value, among which what it is the value of is looked for

_LEAST_WORDS, _NEIGHBOURS = 2, 3  # words of a phrase; how far from a lone word a neighbour is looked for
_BRIDGED_TOKENS = 3.0  # of what stands between two words of a phrase, at most
_MOST_OF_PHRASE = 12.0  # tokens
_LITTLE_BEFORE, _LITTLE_BEHIND = 1, 2  # atoms between a phrase and the beginning, or the end, of its part
_FAR_WORTH = 0.15  # by which a neighbour of a lone word is worth less for each word between them

_Run = tuple[int, int, float]  # first atom, that after the last, worth
_Placed = tuple[int, int, int, int, float]  # the same, after the numbers of its call, or passage, and of its passage


def row_words(atoms: Atoms, passages: Sequence[Passage]) -> tuple[Word, ...]:
    """Return what tells most of a page for its tokens, in its order; of a long one how the user began, too.

    What stands together in a script without spaces is one word, and so is a value with the word before it. A refusal, and a call
    that failed, are shown whatever else is.
    """
    words: list[Word] = []
    factor = _UNSPACED_WORTH if _is_unspaced(atoms) else 1.0
    runs = _placed(_phrases(atoms, passages, _joined(atoms, passages)), passages)
    outcomes = {number: text for number, text in _outcomes(passages) if runs}
    questions = _question_marks(atoms, passages, runs)
    runs += [(number, number, 0, 0, 0.0) for number in outcomes]
    before, end = -1, 0
    for _, number, first, last, worth in sorted(runs):
        passage, lead = passages[number], " "
        text = shown(atoms, first, last) + questions.get(last, "") if last else outcomes[number]
        if len(text) <= 1:
            continue
        if number != before:
            lead = _lead(passages, before, number)
            text = " ".join(filter(None, (passage.tool, passage.failure and f"({passage.failure})", text)))
        elif first == end and (gap := atoms.gaps[first][0]) is not None:
            lead = gap[1:] if gap[:1] in _ENDING and words and words[-1][0].endswith(gap[:1]) else gap
        elif not end or any(opens or ";" in (gap or "") for gap, _, opens in atoms.gaps[end : first + 1]):
            lead, text = _after_outcome(outcomes.get(number, ""), text)
        else:
            lead = PASSAGE if passage.tool else LEFT_OUT
        word = text, max(round(factor * worth, 3), _SMALLEST_WORTH) if last else ALWAYS, lead
        if passage.tool and number == before and first == end:
            word = _of_call(words.pop(), word, " | " if "|" in atoms.after[first - 1] else lead)
        elif passage.tool and number == before:
            word = (*word[:2], GIVEN)
        words.append(word)
        before, end = number, last
    return tuple(words)


def _of_call(word: Word, other: Word, between: str) -> Word:
    """Return two neighbouring words of a call as one."""
    return word[0] + between + other[0], word[1] + other[1], word[2]


def _question_marks(atoms: Atoms, passages: Sequence[Passage], runs: Iterable[_Placed]) -> dict[int, str]:
    """Return by where a run ends the mark that it has: each question of the assistant shows that it is one, and no answer.

    That is the run that tells most for its tokens, as others are left out before it.
    """
    best: dict[int, tuple[float, int]] = {}
    questions = {number: _questions(atoms, each) for number, each in enumerate(passages) if each.speaker == "assistant"}
    for _, number, first, last, worth in runs:
        end = questions[number].get(last - 1) if number in questions else None
        if end is not None:
            density = math.inf if end == last - 1 else worth / sum(atoms.costs[first:last])
            best[end] = max(best.get(end, (-1.0, 0)), (density, last))
    return {last: atoms.after[end][:1] for end, (_, last) in best.items() if end != last - 1}


def _questions(atoms: Atoms, passage: Passage) -> dict[int, int]:
    """Return for each atom of a question the last one of it."""
    found, end = dict[int, int](), -1
    for place in reversed(passage.places) if _QUESTION.search(passage.text) else ():
        end = place if _QUESTION.match(atoms.after[place]) else end
        if end >= 0:
            found[place] = end
        end = -1 if atoms.gaps[place][2] else end
    return found


def _placed(runs: Iterator[_Run], passages: Sequence[Passage]) -> list[_Placed]:
    """Return runs after the numbers of their calls and passages, results right after their calls: calls can run at once."""
    starts = [passage.places.start for passage in passages]
    numbered = list[_Placed]()
    for first, last, worth in runs:
        number = bisect_right(starts, first) - 1
        call = passages[number].call
        numbered.append((number if call is None else call, number, first, last, worth))
    return numbered


def _outcomes(passages: Sequence[Passage]) -> Iterator[tuple[int, str]]:
    """Yield the words of each answer that refuses something, or leaves it open, after the number of its passage."""
    asked = False
    for number, passage in enumerate(passages):
        asked |= passage.speaker == "user"
        if asked and passage.speaker == "assistant" and (place := outcome(passage.text)):
            yield number, passage.text[slice(*place)]


def _after_outcome(said: str, text: str) -> tuple[str, str]:
    """Return what leads from the words of an outcome to more of its answer, and that without them, if it begins with them."""
    before, mark, rest = text.partition(said) if said else ("", "", "")
    inner = rest.lstrip(_AFTER_WORD)
    if mark and inner and before.count(" ") < _FEW_WORDS:
        return rest[: len(rest) - len(inner)] or " ", inner
    return SENTENCE, text


def _lead(passages: Sequence[Passage], before: int, number: int) -> str:
    """Return the lead of the words of a passage after those of another; -1 for none."""
    if before >= 0 and passages[number].call == before:
        return RESULT
    was_user, is_user = before < 0 or passages[before].speaker == "user", passages[number].speaker == "user"
    if was_user == is_user:
        asked = not is_user and any(each.speaker == "user" for each in passages[before + 1 : number])
        return EXCHANGE if asked else PASSAGE
    return USER if is_user else OTHERS


def _is_unspaced(atoms: Atoms) -> bool:
    if "".join(atoms.texts).isascii():
        return False
    begins = compiled(UNSPACED).match
    costs = [cost for text, cost in zip(atoms.texts, atoms.costs, strict=True) if not text.isascii() and begins(text)]
    return sum(costs) > _UNSPACED_SHARE * sum(atoms.costs)


def _joined(atoms: Atoms, passages: Sequence[Passage]) -> Iterator[_Run]:
    """Yield what is chosen, in order; neighbours of a script without spaces, and what overlaps, as one."""
    run: _Run | None = None
    for first, last, worth in sorted(_chosen(atoms, passages)):
        if run is not None:
            inner = atoms.gaps[run[1]][0] in _INNER and last - run[1] <= _NEAR and last - run[0] <= _MOST_ATOMS
            if first < run[1] or (inner and _INNER.issuperset([gap for gap, _, _ in atoms.gaps[run[1] : last]])):
                run = run[0], max(last, run[1]), run[2] + worth
                continue
            yield run
        run = first, last, worth
    if run is not None:
        yield run


def _phrases(atoms: Atoms, passages: Sequence[Passage], runs: Iterable[_Run]) -> Iterator[_Run]:
    """Yield runs as phrases that read as they were said; those of calls and results as they are, as values alone tell enough."""
    phrase: _Run | None = None
    number, parts = 0, _Parts(atoms)
    for run in runs:
        while run[0] >= passages[number].places.stop:
            number += 1
        passage = passages[number]
        first, last, worth = run
        if not passage.tool and passage.speaker != "tool":
            first, last = parts.phrase(passage.places, first, last)
            if phrase is not None and phrase[0] >= passage.places.start and parts.are_near(phrase, first):
                if last <= phrase[1] or parts.sizes[last] - parts.sizes[phrase[0]] <= _MOST_OF_PHRASE:
                    phrase = phrase[0], max(last, phrase[1]), phrase[2] + worth
                    continue
                first = phrase[1]  # what stands between both says no more than a mark for it
        if phrase is not None:
            yield phrase if first == phrase[1] else parts.closed(phrase)
            first = max(first, phrase[1])
        phrase = first, last, worth
    if phrase is not None:
        yield parts.closed(phrase)


class _Parts:
    """The parts of sentences that can be shown as they stand: between their ends, and what is too much to show.

    Attributes:
        sizes: Estimated tokens of all atoms before each place, and at last of all.
    """

    def __init__(self, atoms: Atoms) -> None:
        self._atoms = atoms
        self._numbers = list(accumulate([gap is None or opens or ";" in gap for gap, _, opens in atoms.gaps]))
        self.sizes = list(accumulate(atoms.costs, initial=0.0))

    def are_near(self, phrase: _Run, first: int) -> bool:
        """Return whether few words stand between a phrase and an atom of the same part."""
        left_out = self.sizes[first] - self.sizes[min(phrase[1], first)]
        return left_out <= _BRIDGED_TOKENS and self._numbers[phrase[1] - 1] == self._numbers[first]

    def closed(self, phrase: _Run) -> _Run:
        """Return a phrase without the word after its last comma, where its part continues: it may be half of what is meant."""
        first, last, worth = phrase
        is_open = last < len(self._numbers) and self._numbers[last] == self._numbers[last - 1]
        if is_open and last - first > 1 and self._atoms.kinds[last - 1] is None and "," in (self._atoms.gaps[last - 1][0] or ""):
            last -= 1
        return first, last, worth

    def phrase(self, places: range, first: int, last: int) -> tuple[int, int]:
        """Return a run with what its part begins or ends with, if that is hardly more; a lone word with a neighbour.

        That is the one in the same part that tells more, with what stands between both.
        """
        part = self._numbers[first]
        if last - first == 1 and self._atoms.kinds[first] is None and self._atoms.words[first] < _LEAST_WORDS:
            near = range(max(places.start, first - _NEIGHBOURS), min(places.stop, last + _NEIGHBOURS))
            numbers, worths = self._numbers, self._atoms.worths
            others = [
                (worths[place] - _FAR_WORTH * abs(place - first), place)
                for place in near
                if place != first and numbers[place] == part
            ]
            other = max(others, default=(0.0, first))[1]
            first, last = min(first, other), max(first, other) + 1
        before, after = max(places.start, first - _LITTLE_BEFORE - 1), min(places.stop, last + _LITTLE_BEHIND + 1)
        if self._numbers[before] != part or before == places.start:
            before = bisect_left(self._numbers, part, before, first)
            first = before if self.sizes[first] - self.sizes[before] <= _BRIDGED_TOKENS else first
        if self._numbers[after - 1] != part or after == places.stop:
            after = bisect_right(self._numbers, part, last, after)
            last = after if self.sizes[after] - self.sizes[last] <= _BRIDGED_TOKENS else last
        return first, last


def _chosen(atoms: Atoms, passages: Sequence[Passage]) -> list[_Run]:
    """Return what tells most for its tokens, as much as there is room for."""
    costs = atoms.costs
    size = sum(costs)
    beginning = _BEGINNING_WORDS if size > _LONG_TOKENS else 0
    worths: list[float] = []
    for passage in passages:
        some = slice(passage.places.start, passage.places.stop)
        found = atoms.worths[some]
        if passage.speaker in SYSTEM_ROLES:  # these messages stay in the window as they are
            found = [0.0] * len(found)
        elif passage.speaker == "tool":
            found = [worth * _RESULT_WORTH for worth in found]
        elif passage.speaker == "call":  # what is only the name of an argument has its value behind it; a limit tells nothing
            texts = zip(found, atoms.texts[some], atoms.after[some], strict=True)
            found = [0.0 if after[:1] == "=" or _SETTING.search(text) else worth for worth, text, after in texts]
            if subject_of(atoms, passage) is not None:
                found[0] = max(found[0], _SUBJECT_WORTH)
        elif passage.speaker == "assistant" and _FENCE in passage.text:
            found = [worth * _CODE_WORTH if code else worth for worth, code in zip(found, _in_code(atoms, passage), strict=True)]
        elif passage.speaker == "user" and beginning > 0:
            for number, place in enumerate(passage.places):
                if beginning <= 0:
                    break
                beginning -= atoms.words[place]
                found[number] = max(found[number], _BEGINNING_WORTH * costs[place])
        worths += found
    return _dense(atoms, worths, _subjects(atoms, passages), min(_TOKENS, _SHARE * size))


def _in_code(atoms: Atoms, passage: Passage) -> list[bool]:
    """Return of each atom whether it is in a block of code."""
    found, inside = list[bool](), passage.text.lstrip().startswith(_FENCE)
    for place in passage.places:
        found.append(inside)
        inside ^= atoms.after[place].count(_FENCE) % 2 == 1
    return found


def _dense(atoms: Atoms, worths: Sequence[float], subjects: Mapping[int, int], room: float) -> list[_Run]:
    """Return what is worth most for a token, as much as there is room for; what belongs to a subject comes with that."""
    shown, runs = set[int](), list[_Run]()
    values = zip(atoms.texts, atoms.kinds, atoms.costs, strict=True)
    costs = [_path_cost(text) if kind is LiteralKind.PATH else cost for text, kind, cost in values]
    telling = [place for place, worth in enumerate(worths) if worth > _LEAST_WORTH]
    densities = {place: -worths[place] / (costs[place] + 1) for place in telling}
    for place in sorted(telling, key=densities.__getitem__):
        subject = subjects.get(place, place)
        is_new = subject not in shown and subject != place
        room -= costs[place] + costs[subject] * is_new
        if room < 0 and (runs or costs[place] > _TOKENS):
            break
        if is_new:
            runs.append((subject, subject + 1, worths[subject]))
        shown |= {place, subject}
        runs.append((_owner(atoms, place), place + 1, worths[place]))
    return runs


def _path_cost(path: str) -> float:
    """Return about what a path costs where rows show it below a directory."""
    return estimate("/".join(path.split("/")[-_SHOWN_NAMES:]))


def _subjects(atoms: Atoms, passages: Sequence[Passage]) -> dict[int, int]:
    """Return for each atom of a call, and of its result, the place of what the call is about: none is shown without that."""
    found = dict[int, int]()
    for passage in passages:
        if (subject := subject_of(atoms, passage)) is not None:
            found |= dict.fromkeys(passage.places, subject)
        elif passage.call is not None and (places := passages[passage.call].places):
            found |= dict.fromkeys(passage.places, places.start)
    return found


def _owner(atoms: Atoms, place: int) -> int:
    """Return the place of the word that a value belongs to, the nearest one before it that tells something; else its own."""
    if atoms.kinds[place] in _VALUES:
        for before in range(place - 1, place - 1 - _OWNER_ATOMS, -1):
            if atoms.gaps[before + 1][0] is None:
                break
            if atoms.worths[before] > _LEAST_WORTH and atoms.kinds[before] not in _VALUES:
                return before
    return place
