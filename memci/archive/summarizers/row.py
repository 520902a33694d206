"""The words of a page that its row in a directory is made of."""

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memci.archive.summarizers.literals import LiteralKind
from memci.archive.summarizers.outcome import outcome
from memci.archive.summarizers.passage import Atoms
from memci.archive.summarizers.selection import Passage, shown, subject_of
from memci.archive.summarizers.summary import ALWAYS, EXCHANGE, GIVEN, OTHERS, PASSAGE, RESULT, SENTENCE, USER, Word
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
_MEASURED = frozenset({LiteralKind.MONEY, LiteralKind.NUMBER, LiteralKind.QUANTITY})  # an amount of something
_SETTING = re.compile("=(?:[0-9]+|true|false|null)$|^(?:\\w*_)?mode=")  # of a call, such as a limit
_ASKING = ("?", "!", "？", "！")  # which a word shows that stands before it
_QUESTION = re.compile("[?？]")
_AFTER_WORD = " ,，、。"
_FEW_WORDS = 3  # before the word of a refusal, such as "Unfortunately, I": nothing depends on them
_SHOWN_NAMES = 2  # of a path, about, where rows show it below a directory
_SUBJECT_WORTH = 1.2  # of what a call is about, at least, also where it was named before in the page
_OWNER_ATOMS = 2  # before a value, among which what it is the value of is looked for

_Run = tuple[int, int, float]  # first atom, that after the last, worth
_Placed = tuple[int, int, int, int, float]  # the same, after the numbers of its call, or passage, and of its passage


def row_words(atoms: Atoms, passages: Sequence[Passage]) -> tuple[Word, ...]:
    """Return what tells most of a page for its tokens, in its order; of a long one how the user began, too.

    What stands together in a script without spaces is one word, and so is a value with the word before it. A refusal, and a call
    that failed, are shown whatever else is.
    """
    words: list[Word] = []
    factor = _UNSPACED_WORTH if _is_unspaced(atoms) else 1.0
    runs = _placed(_joined(atoms, passages), passages)
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
            lead = gap[1:] if gap[:1] in _ASKING and words and words[-1][0].endswith(gap[:1]) else gap
        elif not end or any(opens or ";" in (gap or "") for gap, _, opens in atoms.gaps[end : first + 1]):
            lead, text = _after_outcome(outcomes.get(number, ""), text)
        elif passage.tool or _is_apart(atoms, end, first):
            lead = PASSAGE
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


def _is_apart(atoms: Atoms, end: int, first: int) -> bool:
    """Return whether words left out before a place, or an amount before them, would be read as belonging to each other."""
    amounts = (atoms.kinds[end - 1] in _MEASURED) + (atoms.kinds[first] in _MEASURED)
    return amounts > 1 or (amounts > 0 and any(gap is not None and "," in gap for gap, _, _ in atoms.gaps[end : first + 1]))


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
        if room < 0:
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
