"""Standing instructions: sentences of the user's that are to hold from then on, found by a table of cues in several languages."""

import re
from collections.abc import Iterator

from memci.archive.summarizers.whole import beginning
from memci.archive.summarizers.words import words

MOST_CHARACTERS = 240  # of an instruction: a longer sentence is given from its beginning
_MOST_SCANNED = 8_000  # characters of a message: what is longer is a document, and not what the user asks for

_SENTENCE = re.compile("[^\\n.!?。！？;；]*(?:[.](?!\\s|$)[^\\n.!?。！？;；]*)*[.!?。！？]*")

# Where a clause begins, and the words that may stand before an always or a never that asks for something.
_CLAUSE = "(?:^|[,:，、：–—>-]\\s*|\\b(?:and|but|und|aber|et|mais|pero|mas|но|maar|ale)\\s+)"
_POLITE = (
    "(?:(?:(?:can|could|will) you|please|pls|kindly|also|so|then|ok(?:ay)?|remember|note|you (?:must|should|shall|need to|are to)"
    "|(?:(?:make|be) sure|ensure|remember|i (?:want|need|would like|'d like) you)(?: that| to)?(?: you)?"
    "|bitte|stets|s'il (?:te|vous) pla[iî]t|por favor|per favore|пожалуйста|alsjeblieft|proszę|tolong|lütfen)[\\s,:]+){0,3}"
)
_ALWAYS = (
    "always|never|do(?:n't| not) ever|you must(?: not|n't)|non \\w+re mai|n(?:e |['’])\\w+ jamais"
    "|immer|niemals|nie|toujours|ne jamais|siempre|nunca|jamás|sempre|jamais|mai|всегда|никогда"
    "|altijd|nooit|zawsze|nigdy|selalu|jangan pernah|luôn luôn|đừng bao giờ|asla|her zaman|हमेशा|دائما|دائمًا"
)
# What follows them where they tell of something instead.
_TELLING = (
    "(?!\\s+(?:mind|been|a|an|the|again|had|has|have been|was|were|did|do i|heard|seen|thought|knew|too|one|good|great|nice|fun"
    "|happy|glad|saw|full|here|there|so|really|enough|is|are|in|on|love|loved|wanted|\\w+(?:ed|ing)|mehr|wieder|más|mais)\\b)"
)
# What says by itself that something is to hold.
_FROM_NOW = (
    "from now on|from here on|going forward|from this point on|in (?:all )?(?:the )?future (?:replies|answers|responses)"
    "|for the rest of (?:this|our) (?:conversation|session|chat)|ab jetzt|von nun an|ab sofort|künftig|désormais"
    "|dorénavant|à partir de maintenant|a partir de ahora|de ahora en adelante|en adelante|a partir de agora|de agora em diante"
    "|daqui (?:em|para a) diante|d'ora in (?:poi|avanti)|da ora in poi|отныне|с этого момента|впредь|с этих пор|vanaf nu|voortaan"
    "|od teraz|od tej pory|bundan (?:sonra|böyle)|mulai sekarang|từ giờ(?: trở đi)?|từ nay|अब से|من الآن فصاعدا"
)
_ASIAN = (
    "以后都|以後都|以后(?:请|不要|别|每次|要|一律|只|统一)|以後(?:請|不要|別|每次|要|一律|只)|[从從][现現]在(?:起|开始|開始)|今[后後]"
    "|(?<![我他她们])每次都(?:要|请|用|得|先)|(?:请|要|务必|必须)(?:始终|一直|总是|永远)|(?:永远|绝对|千万)(?:不要|别|不能|不许)"
    "|これからは|これ以降|以降は|必ず[^。]*(?:ください|こと|下さい)|絶対に[^。]*(?:ないで|しないこと)|常に[^。]*(?:ください|こと|下さい)"
    "|앞으로(?:는|도)|이제부터|지금부터|항상[^.]*(?:주세요|하세요|해줘|해라|할 것)|절대(?:로)?[^.]*(?:마세요|말아|마라|말 것)"
)
_EACH = "\\bin (?:any|all|each|every one) of your (?:answers|replies|responses|messages|commits)\\b"
_CUE = re.compile(
    f"(?P<asked>{_CLAUSE}{_POLITE}(?:{_ALWAYS})\\b{_TELLING}|{_EACH})|\\b(?:{_FROM_NOW})\\b|{_ASIAN}", re.IGNORECASE
)
_CUE_WORDS_TABLE = """
always never ever must mustn mai immer niemals nie toujours jamais siempre nunca sempre altijd nooit zawsze nigdy selalu jangan
asla zaman now here forward point future rest jetzt nun sofort ahora adelante agora diante ora vanaf voortaan teraz pory bundan
sekarang your
"""
CUE_WORDS = frozenset(_CUE_WORDS_TABLE.split())  # a cue in ASCII has one; it takes a fraction of the time to look for them
_OF_OTHERS = re.compile(
    "\\b(?:(?:i|we|they|he|she|my|our|their)\\b(?! (?:want|need|would like|'d like) you)|you (?:have )?(?:always|never)\\b)",
    re.IGNORECASE,
)  # before them


def standing(text: str) -> Iterator[str]:
    """Yield the sentences of a message of the user's that hold from then on, word for word, in order. O(its size)."""
    if len(text) > _MOST_SCANNED or (text.isascii() and CUE_WORDS.isdisjoint(words(text))):
        return
    for match in _SENTENCE.finditer(text):
        sentence = match.group().strip().strip("-*>#• ")
        cue = _CUE.search(sentence)
        if cue is None or (cue["asked"] and _OF_OTHERS.search(sentence, 0, cue.start())):
            continue
        if not sentence.endswith(("?", "？")) or "you" in cue.group().lower().split():
            yield beginning(sentence, MOST_CHARACTERS)
