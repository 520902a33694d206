"""Questions, and requests to look back, in what a user says: the messages for which earlier pages are searched unasked."""

from memci.archive.summarizers.words import compiled

_MOST_READ = 2_000  # characters at each end of a message
_MARK = "[?？؟]"
# Where a sentence begins, after a greeting or a name.
_BEGIN = "(?:^|[.!,;:。！，]\\s*|\\n|\\b(?:and|so|but|ok|okay|hey|hi|und|et|y|e|и|а)\\s+)\\W*"
_OPENINGS = (
    "(?:who|whom|whose|what|which|when|where|why|how|did|does|do you|is|are|was|were|has|have you|had"
    "|wer|wen|wem|was|welche[rsnm]?|wann|wo|wohin|woher|warum|wie|wieviel|hat|haben|war|ist"
    "|qui|que|quoi|quel(?:le)?s?|quand|où|pourquoi|comment|combien|est-ce|qu['’]"
    "|quién|qué|cuál(?:es)?|cuándo|dónde|cómo|cuánt[oa]s?"
    "|chi|cosa|quale|quali|quando|dove|perché|come|quanto|quem|qual|quais|onde|quanto"
    "|wie|wat|welke?|wanneer|waar|waarom|hoe|kto|co|który|kiedy|gdzie|dlaczego|jak|ile"
    "|кто|что|какой|какая|какие|когда|где|куда|почему|как|сколько|kim|ne zaman|nerede|hangi|nasıl|kaç)\\b"
)
_LOOKING_BACK = (
    "\\b(?:remind me|tell me|show me|look up|find (?:me )?the|list (?:all|the|every)|recap|summari[sz]e|go back to|remember when"
    "|(?:we|you|i) (?:said|told|mentioned|discussed|agreed|decided|talked|recommended|suggested|used|wrote|called)"
    "|last time|earlier|previous(?:ly)?|from before|as before|again the|the same as"
    "|erinner|sag mir|zeig mir|nochmal|vorhin|letztes mal|wie zuvor|rappelle|dis-moi|montre-moi|la dernière fois"
    "|tout à l['’]heure|recuérdame|dime|muéstrame|la última vez|antes dijiste"
    "|ricordami|dimmi|l['’]ultima volta|lembra|diga-me|da última vez"
    "|напомни|скажи|покажи|в прошлый раз)"
)
_UNSPACED = (
    "什么|哪|谁|多少|几[个点号家]|怎么|怎样|如何|为什么|吗|呢|是否|告诉我|提醒我|还记得|上次|之前|刚才"
    "|何|いつ|どこ|だれ|誰|どの|どれ|いくら|なぜ|教えて|か[。]?$|前回|さっき"
    "|무엇|뭐|언제|어디|누구|어떤|얼마|왜|알려|지난번|ماذا|متى|أين|من هو|كيف|كم|لماذا|ما هو|ما هي|ذكرني"
    "|क्या|कब|कहाँ|कौन|कैसे|कितन|क्यों|อะไร|เมื่อไ|ที่ไหน|ใคร|เท่าไ|ทำไม"
)
_ASKS = f"{_MARK}|{_BEGIN}{_OPENINGS}|{_LOOKING_BACK}|{_UNSPACED}"


def asks(text: str) -> bool:
    """Return whether a text asks a question, or to look back, by its words; most statements, thanks and greetings do not.

    O(the first and the last 2,000 characters).
    """
    if len(text) > 2 * _MOST_READ:
        text = f"{text[:_MOST_READ]}\n{text[-_MOST_READ:]}"
    return compiled(_ASKS).search(text.lower()) is not None
