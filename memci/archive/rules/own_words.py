"""Finds what of a message the user says to the assistant: no quotations, and nothing that was pasted or forwarded."""

import re
from collections.abc import Iterable, Iterator

from memci.archive.summarizers.words import compiled, estimate

LONG_TOKENS = 300.0  # of a message of which only the first and the last paragraph are the user's own words
_MOST_READ = 4_000  # characters of a paragraph
_QUOTED_WORD, _LEAST_WORDS = 24, 4  # characters of a quotation of single words; words beside such ones
_MANY_LINES = 2  # line breaks in a paragraph that may be a page, where a question follows it

_MASK = "\x00"  # in the place of what is not the user's own: no pattern has it
_FREE = "(?<![^\\W\u3040-\u9fff])"  # before what no word goes on with: a script without spaces has none
_FENCED = (  # code, comments, chat templates
    '```.*?(?:```|\\Z)|~~~.*?(?:~~~|\\Z)|`[^`\\n]{1,200}`|""".*?(?:"""|\\Z)|<!--.*?(?:-->|\\Z)'
    "|<\\|\\w{1,20}\\|>.*?(?:<\\|(?:im_end|end\\w*|eot_id)\\|>|\\Z)|-----BEGIN .*?(?:-----END [^-]{1,40}-----|\\Z)"
)
_TAG = "<([A-Za-z][\\w.-]{0,40})(?:\\s[^<>]{0,400})?>|\\[([A-Z][A-Z_ -]{2,30})\\]"
_OWN_LABEL = (  # what a line of the user's own may begin with, before a colon
    "(?i:note|notes|important|ps|p\\.s\\.|btw|also|reminder|rules?|style|format|language|tone|please|one (?:thing|more|rule)"
    "|going forward|from now on|remember|again|don['’]t forget|ok|for (?:this|the)|wichtig|hinweis|nochmal|noch mal"
    "|vergiss nicht|für später|denk dran|merke?(?: dir)?|apunta|anota|retiens"
    "|übrigens|sprache|ab jetzt|bitte|remarque|important|attention|encore|n['’]oublie pas|nota|importante|recuerda"
    "|otra vez|no olvides|idioma|lingua|belangrijk"
    "|let op|uwaga|ważne|важно|примечание|önemli|not|注意|另外|对了|还有|规则|要求|备注|提醒|重要|记着|记住|再说|新规|先说"
    "|先跟你说"
    "|注意点|なお|참고|중요|ملاحظة|مهم|हम|ध्यान|नोट)"
)
_LINES = (  # quotations of mails, tables, logs, diffs, JSON, prompts of a shell, headings
    "^[ \\t]*(?:>|//|\\||[{}\\[\\]]|\\$ |>>>|\\+\\+\\+|---|@@|#{1,6} |[-+](?=[^\\s\\d])|(?:\\[?\\d{4}-\\d\\d-\\d\\d[T ]"
    "|\\[?\\d\\d:\\d\\d:\\d\\d|\\[?\\d{1,2}[:.]\\d\\d\\]?[ \\t](?:<|[^:：\\n]{1,40}[:：])|—(?=\\S))"
    "|(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE)\\b|npm |\\w+ (?:ERR!|WARN|notice)\\b|\\d+\\.\\d+\\.?\\s|§|【"
    "|[^\\s:：]{1,20}(?: [^\\s:：]{1,20})?[ \\t]+\\d{1,2}[:：.]\\d\\d(?!\\d| (?:m|kg|meters?|metres?)\\b)"
    f"|(?!{_OWN_LABEL})[^\\W\\d_][\\w.-]{{1,24}}(?: [\\w.-]{{1,20}})?(?: \\([^)\\n]{{1,30}}\\))?[:：](?=[ \\t]*\\S)).*$"
)
_QUOTED_LINES = (  # what a paragraph begins with, up to its end where it has none
    '^[ \\t]*(?:"[^"]{10,4000}?(?:"|(?=\\n[ \\t]*\\n)|\\Z)|[“„][^“”„]{10,4000}?(?:[“”]|(?=\\n[ \\t]*\\n)|\\Z)'
    "|«[^«»]{10,4000}?(?:»|(?=\\n[ \\t]*\\n)|\\Z))"
)
_QUOTED = (
    '"[^"\\n]{3,600}"|“[^”]{3,600}”|„[^“”]{3,600}[“”]|«[^»]{3,600}»|‘[^’\\n]{8,600}’(?!\\w)|「[^」\\n]{2,600}」|『[^』\\n]{2,600}』'
    "|(?<!\\w)'[^'\\n]{12,600}'(?!\\w)"
)
# From such a line on a message holds another one, or a letter.
_HEADER = (
    "^[ \\t*]*(?:from|to|cc|sent|date|subject|von|an|gesendet|datum|betreff|de|à|para|enviado|fecha|asunto|envoyé|objet|da"
    "|oggetto|van|aan"
    "|onderwerp|od|do|temat|от|кому|тема|kimden|konu|发件人|收件人|主题"
    "|寄件者|差出人|宛先|件名|보낸 사람|제목|من|إلى|الموضوع)[ \\t]?[:：][ \\t*]*\\S.*$"
    "|^.{0,80}\\b(?:schrieb|wrote|écrit|escribió|scrisse|schreef|пишет|написала?)\\b.{0,40}[:：][ \\t]*$"
    "|^[^\\n:]{1,40}, \\[\\d{1,4}[./-]\\d{1,2}[^\\]\\n]{0,20}\\][ \\t]*$"
    "|^.{2,40} \\| .{2,60}$|^第[一二三四五六七八九十百0-9]+条(?!规).*$"
    "|^.*(?:original message|forwarded message|weitergeleitete nachricht|ursprüngliche nachricht|message transféré"
    "|mensaje reenviado|mensaje original"
    "|messaggio inoltrato|doorgestuurd bericht|пересланное сообщение|转发的?邮件|转发的?消息|原始邮件).*$"
)
_LETTER = (
    "^[ \\t]*(?:dear|hi|hello|hey) (?:all|team|everyone|everybody|colleagues|customers?|sir|madam|mr|mrs|ms|dr"
    "|[A-Z]\\w+)\\b[^.?!\\n]{0,40}[,:]?[ \\t]*$"
    "|^[ \\t]*(?:sehr geehrte|liebe|hallo|guten tag|estimad|querid|hola|buenos días|chèr|cher|bonjour|gentile|beste"
    "|geachte)[^.?!\\n]{0,50},[ \\t]*$"
    "|^[ \\t]*(?:best|kind|warm)?[ \\t]?(?:regards|wishes),?[ \\t]*$|^[ \\t]*(?:sincerely|cheers|yours"
    "|thanks and regards)[^.?!\\n]{0,20},?[ \\t]*$"
    "|^[ \\t]*(?:mit freundlichen|viele|beste|liebe|freundliche) grüße[n]?[^.?!\\n]{0,20}$|^[ \\t]*(?:un )?(?:saludos?"
    "|atentamente|cordialmente|cordialement"
    "|distinti saluti|met vriendelijke groet)[^.?!\\n]{0,20}$|^[ \\t]*(?:此致|敬礼|尊敬的|各位同事|亲爱的)[^。?!\\n]{0,20}$"
    "|^(?:\\w+[ .]){0,4}\\w+,[ \\t]*$"
)
# What asks for something to be done with a text that follows it, or says that one follows.
_HANDED = (
    "summari[sz]e|sum up|translate|proofread|rewrite|rephrase|shorten|explain|review|analy[sz]e|extract|classify|check|correct"
    "|fix|read|debug|reply to"
    "|answer|respond to|make (?:this|it) (?!an?\\b|sure|clear|the)|(?:good|better|right) (?:prompt|text|wording)"
    "|what (?:does|do|is|should)|here(?:'s| is| are)|below|following|pasted?|attached|this (?:mail|e-?mail"
    "|message|text|page|article|ticket"
    "|log|file|letter|note|chat|thread|post|comment|doc|document|contract|prompt|review|request)|the (?:mail|e-?mail|message"
    "|text|page|article|ticket|log|file"
    "|letter|note|chat|thread|post|comment|doc|document|contract|output|error|response|answer|result|readme)|got this|sent me"
    "|wrote|says?|said|told|reads?"
    "|zusammen|übersetz|korrigier|lies|hier (?:ist|sind)|folgend|unten|(?:diese[rsn]?|die|der|den|das|eine[rn]?) (?:mail"
    "|e-?mail|nachricht|text|seite|artikel"
    "|brief|notiz|log|datei|vertrag)"
    "|schreibt|schrieb|sagt|sagte|meint|steht|traduis|résume|voici|suivant|ci-dessous|écrit|dit|resum|traduc|tradu[cz]|corrig"
    "|aquí (?:está|tienes|va)|siguiente"
    "|(?:este|el|un) (?:correo|mensaje|texto|artículo|documento)|(?:esta|la|una) (?:carta|página|nota)"
    "|(?:le|la|un|une|ce|cette) (?:mail|courriel|message|texte|article|document|lettre|page|note)"
    "|dice|dijo|escribió|pone|riassumi|ecco|dice"
    "|scrive|samenvat|vertaal|hier is"
    "|streść|przetłumacz|oto|pisze|вот|переведи|пишет|написал|özetle|çevir|şöyle|总结|總結|概括|翻译|翻譯|看看|看一下|以下|如下|下面|这封|这段|这条|这篇|邮件|日志"
    "|改进|润色|写道|写着|批注|留言|要約|翻訳|以下の|次の文|요약|번역|다음|لخص|ترجم|التالي|सारांश|अनुवाद"
)
# What says that a paragraph which follows is somebody else's, or is asked about.
_GOT = (
    "copied|pasted?|found this|got this|received|forwarded?|sent me|left me|wrote me|from the (?:web|site|page|manual|docs|wiki"
    "|internet)|(?:what|does|is|did|can|do) .{0,40}\\bthis|this (?:mail|e-?mail"
    "|letter|text|page|thread|log|ticket|contract|note|message|readme|doc)|here(?:'s| is| are| it is)|have you seen"
    "|can you (?:see|tell)|translate|summari[sz]e|explain"
    "|kopiert|eingefügt|erhalten|bekommen|gefunden|weitergeleitet|geschrieben|(?:ist|was|sind) das hier"
    "|dies(?:e|er|es|em|en)?|übersetz|fass|was (?:hältst|heißt|bedeutet)|copi(?:é|ado)|pegado|recibido|llegó|mandaron"
    "|(?:ha|han|has) mandado|encontré|esto|est[ea]|traduc|resum"
    "|copié|collé|reçu|ceci|cette?|traduis|résume|这(?:是|封|段|份|样|一|个|篇|条)|收到|转发|下面|复制|贴|来自|有这么|这么一|对方|翻译|总结"
)
# What announces a rule all the same.
_ANNOUNCED = (
    "rules?|guidelines?|conventions?|preferences?|requirements?|constraints?|keep in mind|remember|note|notes|know about me"
    "|about me|from now on|going forward"
    "|for the (?:rest|remainder)|for this|for the (?:game|future)|session|please|points?|things|before we|regeln?|vorgaben"
    "|ab jetzt|ab sofort"
    "|für den rest|für mich gilt|für alles weitere|(?<! )(?:zum \\w+ mal|again|nochmal|otra vez)$|vergiss nicht|denk dran"
    "|bitte|merk|beachte|wichtig|règles?"
    "|désormais|à partir|pour la suite|pour toute la suite|je (?:le )?redis|je te l['’]ai déjà dit|n['’]oublie pas"
    "|important|points?|reglas|a partir|en adelante|(?:te )?lo repito|que te quede claro|guárdate|no olvides|recuerda"
    "|ten en cuenta|importante|regras"
    "|lembre|regole|d'ora|ricorda|regels|voortaan"
    "|onthoud|zasady|pamiętaj|na resztę|правила|запомни|учти|впредь|kurallar|unutma|规则|規則|以后|从现在|记住|记着"
    "|再说一遍|注意|几点"
    "|ルール|これから|お願い|覚えて|규칙"
    "|앞으로|기억|قواعد"
    "|تذكر|من الآن|قبل|नियम|याद"
)
_OF_ME = "^\\W*(?:i|i['’]\\w+|my|we|our|ich|meine?|wir|je|j['’]\\w+|nous|yo|mi|soy|tengo)\\b|^[我咱]"  # what begins with the user
_ASKING = "\\b(?:please|bitte|points?|notes?)\\b"  # what announces a rule, or means something else
_FOLLOWS = "(?:the following|folgendes|lo siguiente|ce qui suit|quanto segue|het volgende|如下)[^.。:：\\n]{0,20}[.。]"
_ASKED = re.compile("[?？]")
_COLON = "[:：][ \\t]*(?:\\n|$)|[:：][ \\t]+(?=\\S)|：(?=\\S)|(?<=[\u3040-\u9fff]):(?=[\u3040-\u9fff“「])"
_THIS_TEXT = (  # what asks about a text that stands before or after it
    "\\b(?:this|that|these|the above|dies\\w*|das hier|est[aeo]s?|es[ae]|cette?|ce|quest[aoe]|dit|deze|эт\\w+) (?:\\w+ )?"
    "(?:e-?mails?|mails?|messages?|texts?|pages?|letters?|articles?|notes?|logs?|tickets?|threads?|posts?|chats?|reviews?|documents?"
    "|contracts?"
    "|prompts?|drafts?|posters?|songs?|lyrics|slogans?|poems?|quotes?|entwurf\\w*|plakat\\w*|gedicht\\w*|brouillon|affiche|chanson"
    "|nachricht\\w*|briefe?s?|seite|artikels?|beitrags?|notiz|vertrags?|correos?|mensajes?|textos?|páginas?|cartas?|artículos?"
    "|conversación|courriels?|textes?|lettres?|annonces?|testo|messaggio|lettera|tekst|bericht|brief|письм\\w+|текст\\w*)\\b"
    "|这(?:段|封|篇|条|份)|一段(?:提示词|文字|话)|这\\w{0,4}(?:文字|邮件|消息|文章|网页|提示词)"
    "|この(?:文章?|メール|手紙|記事)|이 (?:글|메일|편지)"
)


def own_words(text: str) -> str:
    """Return a text of the user's with what is not the user's own masked, in its place. O(its length)."""
    text = _untagged(compiled(_FENCED, re.DOTALL).sub(_masked, text))
    text = compiled(_QUOTED_LINES, re.MULTILINE).sub(_masked, text)
    for pattern in (_HEADER, _LETTER):
        found = compiled(pattern, re.MULTILINE | re.IGNORECASE).search(text)
        text = text[: found.start()] if found else text
    text = compiled(_LINES, re.MULTILINE).sub(_masked, _of_paragraphs(_without_long(text)))
    return compiled(_QUOTED, re.DOTALL).sub(_masked, _before_handed(text))


def _untagged(text: str) -> str:
    """Return a text without what is in tags, such as those of a harness. O(its length and the kinds of tags).

    One that is not closed, on a line of its own, hides all that follows.
    """
    kept, place, missing = list[str](), 0, set[str]()
    for tag in compiled(_TAG).finditer(text):
        name = (tag[1] or tag[2]).lower()
        if tag.start() < place or name in missing:
            continue
        end = _tag_end(text, tag) or (len(text) if tag[1] and _is_alone(text, tag) else None)
        if end is None:
            missing.add(name)
            continue
        kept += [text[place : tag.start()], _hidden(text[tag.start() : end])]
        place = end
    return "".join([*kept, text[place:]])


def _tag_end(text: str, tag: re.Match[str]) -> int | None:
    """Return where a tag is closed, or the last one within it if tags of its name are left open; ``None`` if none is closed."""
    name = re.escape(tag[1] or tag[2])
    same_name = f"<(/?){name}(?:\\s[^<>]{{0,400}})?>" if tag[1] else f"\\[(/?){name}\\]"
    depth, end = 1, None
    for other in re.compile(same_name, re.IGNORECASE).finditer(text, tag.end()):
        depth += -1 if other[1] else 1
        end = other.end() if other[1] else end
        if depth == 0:
            break
    return end


def _is_alone(text: str, tag: re.Match[str]) -> bool:
    """Return whether a tag is all that its line has."""
    return not text[: tag.start()].rpartition("\n")[2].strip() and not text[tag.end() :].partition("\n")[0].strip()


def _masked(found: re.Match[str]) -> str:
    """Return the marks for what a pattern found."""
    return _hidden(found[0])


def _hidden(text: str) -> str:
    """Return as many marks as a text has characters, in its lines."""
    return re.sub("[^\\n]", _MASK, text)


def _without_long(text: str) -> str:
    """Return a long text with all masked but its first and last paragraph; all of it where it has one."""
    if estimate(text) <= LONG_TOKENS:
        return text
    ends = [found.span() for found in re.finditer("\\n[ \\t]*\\n", text)]
    if not ends:
        return ""
    first, last = text[: ends[0][0]], text[ends[-1][1] :]
    middle = text[ends[0][0] : ends[-1][1]]
    kept = [part if estimate(part) <= LONG_TOKENS else _hidden(part) for part in (first[:_MOST_READ], last)]
    return kept[0] + _hidden(first[_MOST_READ:] + middle) + kept[1]


def _of_paragraphs(text: str) -> str:
    """Return a text of several paragraphs without its middle, and without those that the first or the last hands over."""
    first_line, _, others = text.partition("\n")
    if others.strip() and _hands_over(first_line) and (_ASKED.search(text) or _hands(first_line)):
        return first_line
    ends = [found.span() for found in re.finditer("\\n[ \\t]*\\n+", text.rstrip())]
    if not ends:
        return text
    first, rest = text[: ends[0][0]], text[ends[0][1] :]
    asks = first.rstrip().endswith(("?", "？")) and "\n" in rest.strip() and not _announces(rest.partition("\n")[0])
    if asks or _hands_over(first) or _asks_about_text(first):
        return first
    last = ends[-1][1]
    lines = text[last:].strip().split("\n")
    plain = (compiled(_ASKING, re.IGNORECASE).sub("", part) for part in (first, lines[0]))
    is_own = 2 * sum(compiled(_OF_ME, re.IGNORECASE).search(line) is not None for line in lines) >= len(lines)
    if len(lines) > _MANY_LINES and not is_own and not any(map(_announces, plain)):
        return first  # what has many lines is a document, unless it is said to be rules
    is_of_lines = first.strip().count("\n") >= _MANY_LINES and not _announces(first.partition("\n")[0])
    if _asks_about_text(text[last:]) or (is_of_lines and _ASKED.search(text, last)):
        return _hidden(text[:last]) + text[last:]
    return first + _hidden(text[ends[0][0] : last]) + text[last:]


def _hands_over(text: str) -> bool:
    """Return whether a text says that somebody else's follows."""
    return _announces(text) is None and compiled(f"{_FREE}(?:{_GOT})", re.IGNORECASE).search(text) is not None


def _asks_about_text(text: str) -> bool:
    """Return whether a text asks about another one that stands beside it."""
    asks = _ASKED.search(text) or _hands(text)
    return asks is not None and compiled(_THIS_TEXT, re.IGNORECASE).search(text) is not None


def _announces(text: str) -> re.Match[str] | None:
    """Return where a text may announce a rule."""
    return compiled(f"{_FREE}(?:{_ANNOUNCED})", re.IGNORECASE).search(text)


def _hands(text: str) -> re.Match[str] | None:
    """Return where a text asks for something to be done with another one, or says that one follows."""
    return compiled(f"{_FREE}(?:{_HANDED})", re.IGNORECASE).search(text)


def _before_handed(text: str) -> str:
    """Return a text up to what the user hands over, or quotes: after a colon, or a sentence that says that it follows."""
    if follows := compiled(_FOLLOWS, re.IGNORECASE).search(text):
        text = text[: follows.end()]
    for colon in compiled(_COLON).finditer(text):
        start = max(text.rfind(mark, 0, colon.start()) for mark in ("\n", ". ", "! ", "? ", "。", "！", "？"))
        lead = text[start + 1 : colon.start()]
        announces = _announces(lead)
        hands = _hands(lead)
        ends_line = "\n" in colon[0] or colon.end() == len(text)
        if (ends_line and not announces) or (hands and (not announces or announces.start() > hands.start())):
            return text[: colon.end()]
    return text


def own_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the sentences of a text that ``own_words`` gave, with the marks that end them; none masked whole."""
    from memci.archive.summarizers.clauses import sentence_places  # noqa: PLC0415 (compiles many patterns)

    for start, end in _joined(text, sentence_places(text)):
        first = start
        while text[first - 1 : first] == _MASK:  # what it begins with is quoted
            first -= 1
        sentence = text[first:end]
        if sentence.count(_MASK) * 2 < len(sentence) or _quotes_words(sentence):
            yield first, end


def _quotes_words(sentence: str) -> bool:
    """Return whether only single words are quoted in a sentence, among others of the user's."""
    longest = max(map(len, compiled(f"{_MASK}+").findall(sentence)), default=0)
    return longest <= _QUOTED_WORD and len(compiled("[^\\W\\d_]+").findall(sentence)) >= _LEAST_WORDS


def _joined(text: str, places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield sentences with what follows them after a semicolon."""
    begun: tuple[int, int] | None = None
    for start, end in places:
        if begun is not None and not text[: begun[1]].endswith((";", "；")):
            yield begun
            begun = None
        begun = (start, end) if begun is None else (begun[0], end)
    if begun is not None:
        yield begun
