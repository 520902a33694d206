"""Finds the words by which an answer refuses what was asked, or leaves it open, and a result says that its call failed."""

import re

from memci.archive.summarizers.whole import denies
from memci.archive.summarizers.words import compiled

_READ = 400  # characters of the beginning of an answer: further on it is about something else
_REGRET = 160  # characters after words of regret, among which a refusal has a word that denies something

_IDIOMS = "wait|believe|imagine|help|thank|stop|tell you|say enough|get enough|agree more|recommend"  # that follow "can't"
_REFUSALS = f"""
\\bunable\\b|\\bunfortunately\\b|\\bregrettably\\b|\\bimpossible\\b|\\bnot (?:possible|allowed|permitted|eligible|available|able)\\b
|(?<=\\bI )(?:cannot|can['’]t|can not|could not|couldn['’]t|won['’]t be able)\\b(?! (?:{_IDIOMS}))
|(?<=\\bwe )(?:cannot|can['’]t|can not|could not|couldn['’]t|won['’]t be able)\\b(?! (?:{_IDIOMS}))
|\\bleider\\b|\\bunmöglich\\b|\\bmalheureusement\\b|\\bhélas\\b|\\blamentablemente\\b|\\bdesafortunadamente\\b|\\bpor desgracia\\b
|\\bimposible\\b|\\binfelizmente\\b|\\bimpossível\\b|\\bpurtroppo\\b|\\bimpossibile\\b|\\bhelaas\\b|\\bonmogelijk\\b|\\btyvärr\\b
|\\bdesværre\\b|\\bdessverre\\b|\\bvalitettavasti\\b|\\bniestety\\b|\\bbohužel\\b|\\bsajnos\\b|\\bdin păcate\\b|\\bmaalesef\\b
|\\bne yazık ki\\b|к сожалению|невозможно|на жаль|δυστυχώς|للأسف|لا أستطيع|לצערי|दुर्भाग्य|申し訳|残念ながら|できかねます
|죄송|유감|안타깝|ขออภัย|rất tiếc|很遗憾|我们?(?:暂时|目前)?(?:无法|不能|没法)
"""
_REGRETS = f"""
\\bsorry\\b|\\bapologi[sz]e\\b|\\bapologies\\b|\\bi regret\\b|\\bentschuldigung\\b|\\btut mir leid\\b|\\bdésolée?\\b|\\blo siento\\b
|\\bdesculpe\\b|\\bsinto muito\\b|\\bmi dispiace\\b|\\bspiacent[ei]\\b|\\bhet spijt\\b|\\bbeklager\\b|\\bprzepraszam\\b|\\büzgünüm\\b
|извините|простите|вибачте|λυπάμαι|عذرا|آسف|מצטער|क्षमा|माफ़|すみません|미안|ขอโทษ|xin lỗi|[抱报]歉|对不起|不好意思|遗憾
"""
_REQUESTS = """
please confirm|(?:can|could|would|do) you (?:please )?confirm|for (?:your )?confirmation|bitte bestätigen|veuillez confirmer
|por favor,? confirm[ea]|si prega di confermare|confermi|bevestig|potwierdź|подтвердите|请确认|確認(?:して)?ください|확인해
"""
_FAILURE = """
\\A[\\s{\\[("'<]{0,4}(?P<word>errors?\\b|failed\\b|failure\\b|exception\\b|traceback\\b|fatal\\b|exit code:? [1-9][0-9]*|permission denied)
|\\A[^\\n]{0,120}?(?P<phrase>\\bwas rejected\\b|\\bpermission denied\\b|\\bno such file\\b|\\bcommand not found\\b)
|^(?P<line>FAIL(?:ED)?)\\s*$
"""


def _pattern(table: str) -> str:
    return table.strip().replace("\n", "")


def outcome(answer: str) -> tuple[int, int] | None:
    """Return where an answer has the words that say it refuses, or cannot do, what was asked, or waits for a confirmation.

    Words of regret alone are no refusal: only with a denial shortly after them. O(length of the answer).
    """
    text = answer[:_READ]
    found = compiled(_pattern(_REFUSALS), re.IGNORECASE).search(text)
    for regret in compiled(_pattern(_REGRETS), re.IGNORECASE).finditer(text, 0, found.start() if found else len(text)):
        if denies(text[regret.end() : regret.end() + _REGRET]):
            return regret.span()
    found = found or compiled(_pattern(_REQUESTS), re.IGNORECASE).search(answer)
    return found.span() if found else None


def failure(result: str) -> str:
    """Return the words by which a result says that its call failed; empty where it does not. O(its length)."""
    found = compiled(_pattern(_FAILURE), re.IGNORECASE | re.MULTILINE).search(result)
    return "" if found is None else next(filter(None, found.groups()))
