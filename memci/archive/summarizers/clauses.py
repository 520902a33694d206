"""Finds the clauses of a text that a word limits: a negation, a condition, an exception, or how something is meant."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain

from memci.archive.summarizers.words import any_of, compiled, estimate, in_lower_case, is_plain

_SHORT_SENTENCE = 26.0  # tokens up to which a sentence is one clause
_HANGING = 8  # characters between a limiting word and the end of its line, as of "without a", that do not say what it limits
_FEW_TOKENS = 4.0  # of a part between commas that says too little by itself, such as "do not" or an item of a list

# Words that a clause is not to be shown without: they deny it, forbid it, or make an exception of it ...
_DENYING = """
no not never none nobody nothing nowhere neither nor without cannot cant dont doesnt didnt isnt wasnt wont hardly barely unless
except only unable impossible avoid refuse refused forbid forbidden lack lacks lacking excluding declined rejected
nicht unmöglich abgelehnt kein keine keinen keinem keiner keines nie niemals nichts niemand ohne nur außer
ne pas jamais rien personne aucun aucune sans sauf seulement
nunca jamás imposible nada nadie ningún ninguno ninguna sin excepto solo sólo salvo tampoco
não impossível nem nenhum nenhuma sem exceto apenas somente
non mai impossibile niente nessuno nessuna senza tranne soltanto
niet onmogelijk geen nooit niets niemand zonder alleen tenzij
inte ingen inget aldrig utan bara ikke aldri aldrig uten ei ilman vain
nie nigdy bez tylko chyba oprócz
nu niciodată fără doar decât nem soha nélkül csak nincs ne nije nemoj nikada samo nikdy jen kromě není
tidak jangan bukan tanpa hanya kecuali đừng không chưa chỉ trừ
değil yok asla hiç sadece olmadan
не нет ни невозможно никогда нельзя без только кроме никто ничего ні немає тільки
δεν μην μη όχι χωρίς μόνο ποτέ
لا لم لن ليس ليست بدون فقط إلا أبدا ممنوع
לא אין בלי רק אל אסור
नहीं न मत बिना केवल सिर्फ कभी
"""
# ... or say how it is meant, or when it holds.
_QUALIFYING = """
until till must if whether instead stop maybe perhaps might should falls solange bis muss müssen sondern vielleicht si doit jusqu
hasta até finché tot moet если пока должен должна должны нужно якщо αν إذا אם अगर
"""

# All that is not in a table, as patterns: what begins with a word, and what stands within one or in a script without spaces.
_DENYING_WORDS = f"(?:{any_of(_DENYING.split())})(?!\\w)|n['’]\\w|off[ -]limits(?!\\w)|ne\\w{{2,20}}(?:jte|ěte)(?!\\w)"
_DENYING_PARTS = "n(?<=[^\\W\\d_]n)['’]t(?!\\w)|m(?<=\\wm)[ae]y[iı]n(?:[iı]z)?(?!\\w)"  # the latter of Turkish verbs
_DENYING_CHARACTERS = (
    "(?:(?<![是能可好])|(?<=是)(?!不是)|(?<=能)(?!不能)|(?<=可)(?!不可)|(?<=好)(?!不好))不(?!错|过|仅|但|同|客气|用谢|好意思|[?？]|$)"
    "|(?<![特区分个级差])别(?![的人墅名])|(?<!有)没(?![?？]|$)|沒|勿|未(?!来)"
    "|无法|無|禁止|只|仅|除非|除了|除外|ない|なかった|ません|ず(?=に)|だけ|しか|以外"
    "|(?<![가-힣])(?:안|못)(?= )|않|없|말(?=[아고라])|지 마|금지|만(?= )|제외|ไม่|ห้าม|อย่า|เท่านั้น|ยกเว้น"
)
_DENIAL = f"(?<!\\w)(?:{_DENYING_WORDS})|{_DENYING_PARTS}|{_DENYING_CHARACTERS}"
_CONTRAST_WORDS = (
    "(?:rather than|contrary to|as opposed to|other than|apart from|aside from|untrue that|false that"
    "|fail(?:s|ed)? to|far from|yet to|anything but|(?:everyone|everybody|everything|all|any|anyone|anywhere) but|rul(?:e|es"
    "|ed) out"
    "|refrain(?:s|ed)? from|abandon(?:s|ed)?|the last thing|(?:stop|quit)(?:s|ped)? \\w+ing|called off|your (?:approval|consent"
    "|permission)"
    "|wish(?:es|ed)? (?:I|we|he|she|they|you)|imagine"
    "|ausgenommen|abgesehen von|ausgeschlossen|weder|kaum|angenommen|weit davon|steh(?:t|en) noch aus|aufgehört"
    "|loin d[e'’]|cessé|arrêté d[e'’]|à peine|hormis|excepté|supposons|lejos de|dej(?:é|ó|a|ar|aron|amos) de|apenas|descart(?:ó"
    "|é|a)"
    "|longe de|dei(?:xei|xou|xa|xar|xaram) de|smesso di|lontano da|behalve|verre van|gestopt met|utom|förutom|knappt|undtagen"
    "|unntatt"
    "|z wyjątkiem|przest(?:ał|aje|ałem|ałam)|ledwo|kivételével|kivéve|hacsak|исключил\\w*|исключен\\w*|исключая|едва|вряд ли"
    "|перестал\\w*|hariç)(?!\\w)"
    "|schl(?:oss|ieß(?:t|en)?)(?= .{1,80}(?<!\\w)aus(?!\\w))|mal(?= [^\\W\\d_]+(?:i|ei|ou|ava)(?!\\w))"
)
_PROVISO_WORDS = "(?:as long as|provided that|in case|on condition|es sei denn|vorausgesetzt|à condition|con tal de)(?!\\w)"
# What did not happen: "had the bank approved it", "we would have moved", "we almost bought it".
_UNREAL_WORDS = (
    "(?:almost|nearly|supposed to|about to|(?:would|could)(?:n['’]t)?(?: not)?['’ ](?:have|ve)"
    "|beinahe|hätten?|wären?|presque|failli|aurait|auraient|aurais|casi|hubiera|habría|quase|teria|avrebbe|bijna|nästan|почти"
    "|чуть не|бы)(?!\\w)|(?:(?<![^\\n])|(?<=[.!?,;:]\\s))(?:had|were) (?:the|my|our|he|she|they|we|I|you|it)(?!\\w)"
)
_QUALIFYING_WORDS = f"(?:{any_of(_QUALIFYING.split())})(?!\\w)"
_LIMITING_WORDS = f"{_DENYING_WORDS}|{_QUALIFYING_WORDS}|{_CONTRAST_WORDS}|{_PROVISO_WORDS}|{_UNREAL_WORDS}"
_LIMITING_CHARACTERS = "必须|如果|要是|もし|なら|ถ้า|排除|戒了|假设|假如|差点|险些|本来|本应|惜しくも|はずだった|뻔했"
_PLAIN_LIMIT = in_lower_case(f"(?<!\\w)(?:{_LIMITING_WORDS})|{_DENYING_PARTS}")  # for text in which all letters are ASCII
_LIMIT = f"(?<!\\w)(?:{_LIMITING_WORDS})|{_DENYING_PARTS}|{_DENYING_CHARACTERS}|{_LIMITING_CHARACTERS}"
# Those of them that say when what follows the comma holds.
_CONDITION = (
    f"(?<!\\w)(?:{_PROVISO_WORDS}|(?:if|unless|until|till|whether|except|instead|falls|solange|bis|si|sauf|jusqu|hasta|salvo"
    "|até|finché|tenzij|tot|chyba|eğer|если|пока|якщо|αν|إذا|إلا|אם|अगर)(?!\\w))|除非|除了|如果|要是|もし|なら|ถ้า|ยกเว้น"
)
_TITLES = ("\\b[0-9]", "\\b[0-9][0-9]", "\\b[DMJS]r", "\\b[HF]r", "\\b[MS]t", "\\bMs", "\\bMrs", "\\bNr", "\\bProf")
SENTENCE_END = re.compile(  # but for the dot of a day of a month, or of a title; what begins with one set of signs is found fast
    "[.!?…؟।。！？；\\n\\r|;](?:(?<=[。！？；\\n\\r|])|(?<=;)\\s|(?<=[.!?…؟।]){}(?=[\\s\"'”’)\\]]|$))".format(
        "".join(f"(?<!{title}\\.)" for title in _TITLES)
    )
)
_LIST_AFTER = "[*_]*[:：][*_]*[ \\t]*\\n(?:[ \\t]*\\n)?(?:[ \\t]*(?:[-*•·]|[0-9]{1,2}[.)])[ \\t][^\\n]*(?:\\n(?:[ \\t]*\\n)?|$))+"
_CLOSING = re.compile("[.!?…؟।。！？\"'”’»」』)\\]]*")
_WORD_CHARACTER = re.compile("\\w")
_INNER = re.compile("\\w(?:.*\\w)?", re.DOTALL)
_PART_END = re.compile("[,:;](?=\\s)(?!\\s(?:19|20)[0-9]{2}(?![0-9]))|[，、：；()（）]|\\s[–—-]\\s")


def limited_clauses(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of what words that limit something belong to. O(length of the text).

    That is their sentence where it is short, with the list that follows it where they limit what is listed; else parts of it.
    """
    found = compiled(_PLAIN_LIMIT).finditer(text.lower()) if is_plain(text) else compiled(_LIMIT, re.IGNORECASE).finditer(text)
    for start, line_end, limits in _limited_sentences(text, [limit.span() for limit in found]):
        end = line_end
        items = compiled(_LIST_AFTER).match(text, end)
        if items is not None and _PART_END.search(text, limits[-1][1], end) is None:  # "only if:" and the items below it
            end = start + len(text[start : items.end()].rstrip())
        elif end - limits[-1][1] <= _HANGING and text[end : end + 1] == "\n":  # a line that was broken: the next one continues it
            end = next((last for _, last in _between(SENTENCE_END, text, end + 1, len(text))), end)
        is_short = estimate(text[start:end]) <= _SHORT_SENTENCE
        yield from [(start, end)] if is_short else _limited_parts(text, start, end, limits)


def denied_clauses(text: str) -> list[tuple[int, int]]:
    """Return start and end of each clause with a word that denies, forbids or excepts something. O(its length)."""
    sentences_with = _limited_sentences(text, [denial.span() for denial in compiled(_DENIAL, re.IGNORECASE).finditer(text)])
    return [part for start, end, denials in sentences_with for part in _limited_parts(text, start, end, denials)]


def undenied(text: str) -> str:
    """Return a text without the words that deny, forbid or except something. O(its length)."""
    return compiled(_DENIAL, re.IGNORECASE).sub(" ", text)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, from their first letter or digit to their last. O(its length)."""
    return [text[start:end] for start, end in _between(SENTENCE_END, text, 0, len(text))]


def sentence_places(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence, from its first letter or digit on, with the marks that end it. O(length)."""
    start = 0
    for mark_start, mark_end in chain((mark.span() for mark in SENTENCE_END.finditer(text)), ((len(text), len(text)),)):
        inner = _WORD_CHARACTER.search(text, start, mark_start)
        end = mark_end + len(_CLOSING.match(text, mark_end)[0])  # type: ignore[index]  # it matches nothing, too
        if inner is not None:
            yield inner.start(), len(text[:end].rstrip())
        start = end


def denies(text: str) -> bool:
    """Return whether a text has a word that denies, forbids or excepts something."""
    return compiled(_DENIAL, re.IGNORECASE).search(text) is not None


def _limited_sentences(text: str, limits: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, Sequence[tuple[int, int]]]]:
    """Yield start and end of each sentence in which limiting words stand, and the places of these words."""
    place = 0
    for start, end in _between(SENTENCE_END, text, 0, len(text)) if limits else ():
        first = place
        while place < len(limits) and limits[place][0] < end:
            place += 1
        if first < place:
            yield start, end, limits[first:place]


def _between(ends: re.Pattern[str], text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of what stands between marks, from its first letter or digit to its last."""
    for mark_start, mark_end in chain((mark.span() for mark in ends.finditer(text, start, end)), ((end, end),)):
        inner = _INNER.search(text, start, mark_start)
        if inner is not None:
            yield inner.span()
        start = mark_end


def _limited_parts(text: str, start: int, end: int, limits: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a sentence with a limiting word, each with its neighbours that it may belong to."""
    parts = list(_between(_PART_END, text, start, end))
    starts = [limit_start for limit_start, _ in limits]
    is_limited = [bisect_left(starts, first) < bisect_left(starts, last) for first, last in parts]
    condition, beginnings = compiled(_CONDITION, re.IGNORECASE), set(starts)
    run: tuple[int, int] | None = None
    continues = False
    for number, (first, last) in enumerate(parts):
        begins = number + 1 < len(parts) and parts[number + 1][0] in beginnings
        is_short = estimate(text[first:last]) <= _FEW_TOKENS
        if run is not None and (continues or is_short or is_limited[number]):
            run = run[0], last
        else:
            if run is not None:
                yield run
            run = (first, last) if is_limited[number] or begins else None
        is_condition = is_limited[number] and condition.search(text, first, last) is not None
        continues = run is not None and (begins or is_condition or (is_limited[number] and is_short))
    if run is not None:
        yield run
