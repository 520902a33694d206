"""Finds the words by which an answer refuses what was asked, or leaves it open, and a result says that its call failed."""

import re

from memci.archive.summarizers.clauses import denies
from memci.archive.summarizers.words import any_of, compiled

_COMMAS = "[,\n]"  # between the phrases of a table
_READ = 400  # characters of the beginning of an answer: further on it is about something else
_REGRET_READ = 160  # characters after words of regret, among which a refusal has a word that denies something


def _phrases(table: str) -> str:
    """Return a pattern of the phrases of a table, with commas between them."""
    return f"(?<!\\w)(?:{any_of(re.split(_COMMAS, table))})(?!\\w)"


_REFUSAL = (
    _phrases("""
unable, unfortunately, regrettably, impossible, not possible, not allowed, not permitted, not eligible, not available, not able
declined, rejected, refused, was denied, has been denied, has failed, did not work, abgelehnt, fehlgeschlagen, gescheitert
a échoué, refusé, refusée, rechazado, rechazada, ha fallado, recusado, recusada, rifiutato, rifiutata, geweigerd, mislukt
odrzucone, отклонен, отклонён, отклонена, отказано, не удалось, reddedildi, başarısız
leider, unmöglich, malheureusement, hélas, lamentablemente, desafortunadamente, por desgracia, imposible, infelizmente, impossível
purtroppo, impossibile, helaas, onmogelijk, tyvärr, desværre, dessverre, valitettavasti, niestety, bohužel, sajnos, din păcate
maalesef, ne yazık ki, к сожалению, невозможно, на жаль, δυστυχώς, للأسف, لا أستطيع, לצערי, rất tiếc
""")
    + "|(?:(?<=\\bI )|(?<=\\bwe ))(?:cannot|can['’]t|can not|could not|couldn['’]t|won['’]t be able)\\b"
    "(?! (?:wait|believe|imagine|help|thank|stop|tell you|say enough|get enough|agree more|recommend))"
    "|दुर्भाग्य|申し訳|残念ながら|できかねます|죄송|유감|안타깝|ขออภัย|很遗憾|我们?(?:暂时|目前)?(?:无法|不能|没法)"
)
_REGRET = (
    _phrases("""
sorry, apologize, apologise, apologies, I regret, Entschuldigung, tut mir leid, désolé, désolée, lo siento, desculpe, sinto muito
mi dispiace, spiacente, spiacenti, het spijt, beklager, przepraszam, üzgünüm, извините, простите, вибачте, λυπάμαι, عذرا, آسف
מצטער, xin lỗi
""")
    + "|क्षमा|माफ़|すみません|미안|ขอโทษ|[抱报]歉|对不起|不好意思|遗憾"
)
_REQUEST = (
    _phrases("""
please confirm, do you agree, shall I, should I, soll ich, once you give the go-ahead, can you confirm, could you confirm
could you please confirm, would you confirm, do you confirm, for confirmation
for your confirmation, bitte bestätigen, veuillez confirmer, por favor confirme, por favor confirma, por favor confirmar
si prega di confermare, bevestig, potwierdź, подтвердите
""")
    + "|请确认|確認(?:して)?ください|확인해"
)
_FAILED = (
    "(?<!\\b0 )\\b(?:not found|rejected|declined|denied|refused|aborted|killed|failed|timed out|no such file|unable to"
    "|(?:apply|build|job|operation|request|run) cancell?ed|cannot|could not|[1-9][0-9]* (?:errors?|failures?)"
    "|0 rows affected|nothing (?:was |has been )?changed|no changes made)\\b(?!\\()"
)
_FAILURE = (
    "\\A[\\s{\\[(\"'<]{0,4}(errors?\\b|failed\\b|failure\\b|exception\\b|traceback\\b|fatal\\b|exit code:? [1-9][0-9]*)"
    "|\\A[^\\n]{0,120}?\\b(was rejected|permission denied|no such file|command not found)\\b|^(FAIL(?:ED)?)\\s*$"
    '|("(?:is_?error|failed|skipped|dry_?run|simulated|cancell?ed|rolled_?back)"\\s*:\\s*true\\b|"result"\\s*:\\s*null\\b|"(?:success|ok|approved|accepted|allowed|completed)"\\s*:\\s*false)'
)
_REHEARSAL = '(?<!\\w)(?:--dry-run|--what-?if|--no-act)(?!\\w)|"(?:dry_?run|simulate|what_?if|preview_only)"\\s*:\\s*true'
_ENDING = 160  # characters of the last line of a result, which says how it ended


def outcome(answer: str) -> tuple[int, int] | None:
    """Return where an answer has the words that say it refuses, or cannot do, what was asked, or waits for a confirmation.

    Words of regret alone are no refusal: only with a denial shortly after them. O(length of the answer).
    """
    text = answer[:_READ]
    found = compiled(_REFUSAL, re.IGNORECASE).search(text)
    for regret in compiled(_REGRET, re.IGNORECASE).finditer(text, 0, found.start() if found else len(text)):
        if denies(text[regret.end() : regret.end() + _REGRET_READ]):
            return regret.span()
    found = found or compiled(_REQUEST, re.IGNORECASE).search(answer)
    return found.span() if found else None


def rehearsal(arguments: str) -> str:
    """Return the words by which a call says that it only tries something out; empty where it does not. O(their length)."""
    found = compiled(_REHEARSAL, re.IGNORECASE).search(arguments)
    return "" if found is None else found.group().replace('"', "")


def failure(result: str) -> str:
    """Return the words by which a result says that its call failed; empty where it does not. O(its length)."""
    found = compiled(_FAILURE, re.IGNORECASE | re.MULTILINE).search(result)
    if found is not None:
        return str(next(filter(None, found.groups()))).replace('"', "")
    ending = result.rstrip().rpartition("\n")[2]
    is_said = len(ending) <= _ENDING and ending[:1] not in ("{", "[")  # and no state of something, as JSON has it
    found = compiled(_FAILED, re.IGNORECASE).search(ending) if is_said else None
    return "" if found is None else str(found.group())
