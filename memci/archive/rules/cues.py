"""What shows that a sentence of the user's sets a rule, in many languages: patterns, by the script that they are written in.

Each is a mapping from a script to a pattern of small letters. Those of languages in Latin letters are one pattern, as a short
sentence does not tell which language it is in.
"""

from memci.archive.summarizers.words import any_of

LATIN, CYRILLIC, HAN, HANGUL, ARABIC, DEVANAGARI = "latin", "cyrillic", "han", "hangul", "arabic", "devanagari"
LETTERS = {  # of each script; Han with kana
    LATIN: "[a-z]",
    CYRILLIC: "[\u0400-\u04ff]",
    HAN: "[\u3040-\u30ff\u4e00-\u9fff]",
    HANGUL: "[\uac00-\ud7a3]",
    ARABIC: "[\u0600-\u06ff]",
    DEVANAGARI: "[\u0900-\u097f]",
}

_MANNERS = """
english german french spanish italian portuguese dutch polish russian turkish chinese japanese korean arabic hindi
british american deutsch englisch französisch spanisch italienisch euros? dollars? pounds? usd eur gbp miles?
kilomet(?:er|re)s? km metric celsius fahrenheit
"""
_LANGUAGE = any_of(_MANNERS.split()[:19])
_BEGIN = (  # where a clause begins that may ask for something
    "(?:^|[,;:–—.!?]\\s*|(?<=\\n)|\\b(?:and|but|so|also|then|btw|ok(?:ay)?|thx|thanks|anyway|oh|well|right|und|aber|dann|et"
    "|mais|donc|pero|maar|ale|и|но|а|ve|ama)\\s+)"
    "(?:(?:(?:please|pls|plz|kindly|also|just|so|then|ok|now|generally|in general|as a rule|by default|btw|by the way|always"
    "|(?:make|be) sure(?: that)?(?: you)?(?: to)?"
    "|ensure(?: that)?|(?:can|could|would|will) you(?: please)?|you (?:must|should|shall|need to|have to|are to|can)|i(?:'d"
    "| would) like you to"
    "|i (?:want|need) you to|bitte|immer|stets|generell|grundsätzlich|kannst du|könntest du|du (?:kannst|sollst|musst)|mal"
    "|einfach"
    "|s'il (?:te|vous) pla[iî]t|por favor|per favore|per piacere|пожалуйста|alsjeblieft|graag|proszę|lütfen)[\\s,:]+){0,4})"
)
_ALWAYS = (
    "always|never|immer|niemals|nie|stets|toujours|jamais|siempre|nunca|jamás|sempre|mai|всегда|никогда|altijd|nooit|zawsze"
    "|nigdy|selalu|jangan pernah"
    "|luôn luôn|đừng bao giờ|asla|her zaman|हमेशा|दائما|دائما|دائمًا"
)
_TELLING = (
    "(?!\\s+(?:mind|been|a|an|the|again|had|has|have been|was|were|did|do i|heard|seen|saw|thought|knew|too|one|good|great"
    "|nice|fun|say|ever"
    "|happy|glad|full|here|there|so|really|enough|is|are|in|on|love|loved|wanted|quit|\\w{1,30}(?:ed|ing|amos|emos|imos|ons|iamo)"
    "|mehr|wieder|más|mais|disait|dit)\\b)"
)
_EVERY = (
    "every time|each time|any ?time|whenever|when(?:ever)? you(?! (?:can|could|have|get|got|want|like|need|feel|are ready))"
    "|each of your|(?:every|each) (?:\\w{1,30} ){0,2}(?:price|amount|answer|reply|response|commit|message|date|number|quote|claim"
    "|file|step|change"
    "|function|section|chapter|summary|email|mail|line|term|point|paragraph|sentence|example|test|recipe|hotel|flight|option"
    "|suggestion|distance|figure|table|source|task|code)s?"
    "|all (?:\\w{1,30} ){0,2}(?:prices|amounts|answers|replies|responses|commits?|messages|dates|numbers|times|distances"
    "|temperatures|figures|units|emails|comments|strings|sums|quotes|sources|weights|measurements|names)"
    "|in (?:all|every|each|your)|at the (?:end|beginning|start|top|bottom) of (?:each|every|your|all)|at a time"
    "|one at a time|before (?:you|every|each|any|doing|editing|changing|deleting|sending|telling|running|\\w{1,30}ing)"
    "|after (?:you|every|each)|until (?:i|we)|unless (?:i|we|it)|as (?:long|soon) as|if (?:i|you|something|anything|there|it"
    "|a|an|the|any|we)\\b|by default"
)
_KIN = (
    "i|i['’]?m|i am|we|we['’]?re|(?:my|our) (?:(?:young|old|little|elder|eld|small)\\w{0,30} )?(?:husband|wife|partner|son"
    "|daughter|kids?|child|children|mother|mum|mom|father|dad|sister|brother|girlfriend|boyfriend|guests?|parents?|baby"
    "|friend|grand\\w{1,30}|team|family|youngest|oldest|in-laws)|one of us|(?:one|two|three|some) of (?:my|our|the) \\w{1,30}"
    "|one is"
    "|and (?:one|two) (?:is|are)|\\w{1,30} (?:of (?:my|our) )?(?:guests?|kids?|children)"
)

# What the user forbids.
PROHIBITION = {
    LATIN: (
        "\\b(?:"
        "under no circumstances\\b"
        "|you(?:['’]re| are) not (?:allowed|permitted|supposed) to\\b"
        "|you (?:may|must|shall|should|can)(?:n['’]?t| ?not| never)\\b"
        "|i (?:do not|don['’]?t) want (?:you\\b|any\\b|to see\\b|to (?:hear|read|get)\\b)"
        "|i never want\\b"
        "|off[ -]limits\\b"
        "|out of bounds\\b"
        "|not on my behalf\\b"
        "|hands off\\b"
        "|without (?:asking me|my (?:explicit )?(?:approval|ok|okay|permission|consent|say))\\b"
        "|(?:verwende|benutze?|schreib(?:e|t)?|nenn(?:e|t)?|nimm|schick(?:e|t)?|mach(?:e|t)?|lösch(?:e|t)?|änder(?:e|t)|ändere"
        "|erwähne?|empfiehl|empfehle|gib|frag(?:e)?|vermeide?|push(?:e)?|rühr(?:e)?|fass(?:e)?|schlag(?:e)?|verschick(?:e)?"
        "|sende?|teile?|ruf(?:e)?|buch(?:e)?|bestell(?:e)?|lass)\\b.{0,60}\\b(?:nicht|kein\\w{0,30}|nie|niemals|nichts|weg)\\b"
        "|(?:darfst|sollst|dürfen sie|sollen sie)\\b.{0,40}\\b(?:nicht|kein\\w{0,30}|nie)\\b"
        "|hör(?:e|t)? auf\\b"
        "|ich (?:will|möchte) (?:nicht|kein\\w{0,30})\\b"
        "|ist tabu\\b"
        "|ohne (?:meine|mein|mich|vorher|rücksprache)\\b"
        "|plus (?:de |d['’])\\w{1,30}.{0,40}(?:désormais|maintenant|svp|s['’]il)"
        "|(?:évite|évitez|arrête(?:z)? (?:de |d['’]))"
        "|surtout pas\\b"
        "|pas (?:de |d['’])\\w{1,30}.{0,60}(?:s['’]il|svp|sans|dans|avant)"
        "|(?:tu ne dois|vous ne devez|il ne faut)\\b.{0,30}\\b(?:pas|jamais)\\b"
        "|je ne veux (?:pas|plus|aucun)\\b"
        "|sans (?:me demander|mon accord|m['’]en parler)\\b"
        "|(?:evita|evite|deja de|dejen? de)\\b"
        "|no quiero (?:que|ver|ningún|ninguna|más)\\b"
        "|sin (?:preguntarme|mi permiso|consultarme|avisarme)\\b"
        "|nada de \\w{1,30}"
        "|prohibido\\b"
        "|evite\\b"
        "|não quero (?:que|ver|nenhum|mais)\\b"
        "|sem (?:me perguntar|minha autorização|me avisar)\\b"
        "|evita(?:te)?\\b"
        "|smetti(?:la)? di\\b"
        "|non voglio (?:che|più|nessun|vedere)\\b"
        "|senza (?:chieder|il mio|avvisarmi)"
        "|niente \\w{1,30}.{0,40}(?:né|per favore|nei|nelle|nel|prima)"
        "|(?:gebruik|verwijder|stuur|schrijf|noem|verander|wijzig|maak|geef|stel|push|vertel|raak|doe|bel|plan"
        "|boek)\\b.{0,60}\\b(?:niet|geen|nooit|niets)\\b"
        "|(?:vermijd|stop met)\\b"
        "|ik wil (?:niet|geen)\\b"
        "|zonder (?:het |me |mij |mijn )\\w{1,30}"
        "|unikaj\\b"
        "|przestań\\b"
        "|bez (?:mojej|pytania|zgody)\\b"
        "|nie chcę (?:żeb|żad|wi)"
        "|żadnych\\b"
        "|(?:hiçbir|hiç|asla|sakın|bir daha)\\b.{0,60}\\w{1,30}(?:ma|me|mayın|meyin|mayınız|meyiniz|mayalım|meyelim)[.!]?$"
        "|(?:istemiyorum|yasak)[.!]?$"
        "|kullanma(?:yın)?\\b"
        "|yazma(?:yın)?[.!]?$"
        "|no need to (?:explain|mention|repeat|apologi[sz]e)\\b"
        "|keine .{1,60}(?:vornehmen|machen|verwenden|nennen|vorschlagen|erwähnen)\\b"
        "|nichts (?:verloren|zu suchen)\\b"
        "|queda(?:n)? (?:descartad|prohibid)\\w{1,30}"
        "|inutile de\\b"
        "|interdiction de\\b"
        "|abst(?:iens-toi|enez-vous)\\b"
        "|hors de question\\b"
        ")"
        f"|{_BEGIN}(?:do not|don['’]?t|never|no more|avoid|refrain from|steer clear of|stay away from)\\s+(?!worry|mind\\b"
        "|bother\\b|panic|give up|hesitate|get me wrong|be (?:so |too |that )?(?:silly|sad|shy|sorry|afraid|scared|mad|too|so"
        "|hard)|forget|know|think|you\\b|say never|ever say|tell me\\b|miss\\b|even\\b|let\\b|again|been|thought|had|heard"
        "|seen|saw|knew|feel|get\\b|quit|\\w{1,30}ed\\b|liked|loved|wanted|was|were|did|really|i\\b|sweat|need to|have to|lose"
        "|stop\\b|underestimate|look back|want)"
        f"|{_BEGIN}(?:stop|quit)\\s+(?!by\\b)\\w{{1,30}}ing\\b"
        f"|{_BEGIN}(?:leave|keep)\\s+\\S.{{0,60}}\\b(?:out of|off|away from|untouched|unchanged|alone)\\b"
        f"|{_BEGIN}no\\s+(?!one\\b|way\\b|idea|worries|problem|doubt|need|thanks|matter|wonder|longer|wait\\b|but\\b|it\\b|i\\b"
        f"|the\\b|that\\b|this\\b|we\\b|you\\b|sorry|offen[cs]e|rush|kidding|pressure|more than)\\w{{1,30}}.{{0,80}}\\b(?:in"
        "|without"
        "|before|after|unless|until|please|pls|for me|anywhere|ever|without asking)\\b"
        f"|{_BEGIN}nothing\\s+(?:before|after|over|above|with|under|that|spicy|from|can be)\\b"
        f"|{_BEGIN}(?:bitte )?(?:nie(?:mals)?|keine?[nmrs]?|nichts?|nie wieder)\\s+(?!problem|sorge|ahnung|angst|aufgeben"
        "|mehr\\b|so\\b|schlecht|zu\\b|nur\\b|wahr)\\S.{0,200}"
        "|(?:^|[,;:.]\\s*|\\b(?:et|mais|surtout|merci de)\\s+)n(?:e |['’])(?!t['’]?inquiète|vous inquiétez|lâche|abandonne"
        "|t['’]en fais|quittez)\\S{1,40} (?:\\S{1,40} ){0,3}?(?:pas|jamais|plus|rien|aucun\\w{0,30})\\b"
        "|(?:^\\W{0,3}|\\b(?:y|pero|por favor),?\\s+)(?:no(?=.{0,200}\\b(?:el|la|los|las|de|del|en|que|por|con|un|una|mi|ni|más"
        "|antes"
        "|sin|nada|ning[úu]n\\w{0,30}|cuando|al|eso|esto)\\b)|nunca|jamás)\\s+(?!te preocupes|se preocupe|te rindas|importa"
        "|pasa nada|sé\\b|me digas|creo|hay\\b|es\\b|he\\b|tengo|puedo|quiero saber)(?:me |te |le |lo |la |nos |se |los "
        "|las )?\\w{1,30}(?:es|as|en|an|ues|emos|amos)\\b"
        "|(?:^\\W{0,3}|\\b(?:e|mas|por favor),?\\s+)(?:não|nao|nunca|jamais)\\s+(?!se preocupe|te preocupes|desanim|desist|sei\\b"
        "|é\\b|tem\\b|há\\b|foi|quero saber|acho|consigo|tenho|posso)(?:me |se |o |a )?\\w{1,30}(?:a|e|am|em|as|es)\\b(?=.{3})"
        "|(?:^\\W{0,3}|\\b(?:e|ma|per favore|per piacere),?\\s+)(?:non|mai)\\s+(?!mi\\b|ti\\b|ci\\b|preoccupar|mollare|so\\b|è\\b"
        "|c['’]è|ho\\b|importa|posso|vedo|credo|ti preoccupare|fa niente|ti arrendere)\\w{1,30}(?:re|rmi|rlo|rla|rti|ate|ete|ite"
        "|iate|a|i)\\b(?=.{3})"
        "|(?:^|[,;:.]\\s*|alsjeblieft )(?:nooit|geen)\\s+(?!idee|probleem|zorgen|zin\\b|dank)\\S.{0,200}"
        "|(?:^|[,;:.]\\s*|\\b(?:i|ale|proszę)\\s+)(?:nie|nigdy(?: nie)?)\\s+(?!poddawaj|martw|ma\\b|wiem|mam\\b|jest|przejmuj"
        "|szkodzi|chodzi|mogę|wierzę|pamiętam)\\w{1,30}(?:aj|uj|ij|yj|ej|ań|sz|cie|ł|wiaj|ruszaj|ń)\\b"
        "|\\w{1,30}(?:madan|meden|olmadan|almadan|sormadan)\\b.{0,60}\\w{1,30}(?:ma|me|mayın|meyin)[.!]?$"
        f"|{_BEGIN}(?:leave out|skip|omit|avoid) (?:any|the|all|every|everything)\\b.{{0,60}}\\b(?:that|until|with|any)\\b"
        "|darfst du mir nicht"
    ),
    CYRILLIC: (
        "\\b(?:"
        "избегай(?:те)?\\b"
        "|перестань(?:те)?\\b"
        "|без (?:моего|моей|спроса|разрешения)\\b"
        "|я не хочу,? (?:чтобы|видеть)"
        "|запрещено\\b"
        "|никаких\\b"
        ")"
        "|(?:^|[,;:.]\\s*|\\b(?:и|но|пожалуйста)\\s+)(?:больше )?(?:не|никогда не|ничего не|никому не|нигде не)\\s+(?!сдава"
        "|волну|пережива|знаю|беспокой|могу|думаю|помню|расстра|важно|надо)\\w{1,30}(?:й|йте|ь|ьте|и|ите)\\b"
    ),
    HAN: (
        "(?:请|請|也|都|就|但|千万|一定|绝对|永远|，|,|^|的|时|里|前|意)(?:不要|别再|別再|不许|不能|不准|切勿|勿|禁止|不得|不可以)(?!太贵|太远|紧|担心|客气|灰心|急|放弃|生气|忘|怕|难过"
        "|误会)\\S{2,}"
        "|(?:^|[，,。])(?:请|請)?(?:别|別)(?!的|人|太贵|太远|担心|客气|灰心|急|放弃|生气|忘|怕|难过|误会|说了)\\S{2,}"
        "|没有我的?(?:同意|允许|许可)"
        "|(?:しないで|使わないで|書かないで|出さないで|変えないで|消さないで|送らないで|触らないで|[わかさたなばまらがえけせてねめれ]ないで)(?:ください|下さい|ほしい|欲しい|くれ|ね|。|$)(?<!気にしないで)"
        "|(?:禁止です|厳禁|控えて|やめて(?:ください|ほしい))"
        "|就免了"
        "|请勿"
    ),
    HANGUL: (
        "(?<!포기)(?<!걱정)하지\\s?(?:마|말)"
        "|[가-힣]지\\s?(?:마세요|말아\\s?주세요|말아줘|말 것|마라|마십시오)(?<!걱정하지 마세요)"
        "|(?:쓰지|넣지|보내지|바꾸지|지우지|건드리지|추천하지|사용하지) 마"
        "|(?:금지|없이)[가-힣 ]*(?:마|말)"
    ),
    ARABIC: (
        "\\b(?:"
        "تجنب\\b"
        "|ممنوع\\b"
        ")"
        "|(?:^|[،,.:]\\s*|\\b(?:و|من فضلك)\\s*)(?:لا|ولا|أبدا لا|لا أريد|إياك)\\s+(?!تستسلم|تقلق|عليك|أعرف|بأس|أدري|يوجد|تحزن"
        "|تنسى|تنس)(?:ت\\S{1,40}|أريد\\s.{0,200})"
        "|بدون (?:إذن|أن تسأل|موافقت)"
    ),
    DEVANAGARI: ("\\bमत\\s+(?!हारो|करो चिंता)\\S+|(?:न|ना)\\s+(?:करें|करना|लिखें|भेजें|बदलें|दें)|से बचें|बिना\\s.{0,40}(?:मत|न )"),
}

# How answers are to be, and what is to be done whenever something happens.
INSTRUCTION = {
    LATIN: (
        "\\b(?:"
        f"(?:{_EVERY})\\b.{{2,80}},\\s*(?:please |also |just |always |then )?(?:add|ask|tell|give|show|run|sort|use|include"
        "|write|mention|explain|list|put|check|convert|round|say|skip|stop|start|update|send|quote|cite|note|make|keep|wait"
        "|confirm|warn|remind|commit|create|mark|name|offer|suggest|answer|reply|call|do)\\b"
        "|i(?:['’]d| would)? (?:want|like|need|prefer|appreciate)(?: it if)? you (?:to |always |never |skip|ke[ep]+t?|used?|us"
        "|answer|writ|ask|check|stop)\\w{0,30}.{0,200}\\b(?:always|never|every|each|all|any|from now|first|before|until|unless"
        "|in|with"
        "|without|short|brief|concise|when(?:ever)?|only)\\b"
        "|(?:alle|jede[rsn]?|sämtliche)\\s.{1,60}\\b(?:bitte|immer|müssen|sollen|sollten|muss|soll|angeben|schreiben|nennen)\\b"
        "|(?:immer wenn|jedes mal|wann immer|bevor du|bevor sie|sobald du|wenn du (?:mir )?(?:etwas|was|eine?n?|code"
        "|preise))\\b"
        "|(?:antworte|antworten sie|schreib(?:e|en sie)?|erklär(?:e|en sie)?|gib|geben sie|nenn(?:e|en sie)?|zeig(?:e|st"
        "|en sie)?|frag(?:e|en sie)?|benutze?|verwende|nimm|halte?|formulier(?:e)?|rechne|runde|sortier(?:e)?|fass|führ(?:e)?"
        "|prüf(?:e)?|sag)\\b.{0,80}\\b(?:immer|stets|nur(?: noch)?|auf (?:deutsch|englisch|französisch|spanisch|italienisch)"
        "|in (?:euro|dollar|metern|kilometern|kurzen|stichpunkten|einfacher|ganzen|einem satz)|ohne|statt|anstatt|erst|vorher"
        "|zuerst|jede[nsrm]?|alle[ns]?|bevor|höchstens|maximal|kurz(?:e)?|knapp|brutto|netto|mwst|mit (?:quelle|beispiel)"
        "|am ende)\\b"
        "|(?:chaque fois que|à chaque|avant de|avant que|toute?s les)\\b.{2,80}\\b(?:dis|donne|indique|mets|ajoute|demande"
        "|montre|écris|précise|doivent|doit)\\w{0,30}\\b"
        "|(?:demande(?:z)?-moi|préviens-moi|prévenez-moi)\\b.{0,40}\\bavant\\b"
        "|(?:cada vez que|siempre que|antes de|todos los|todas las)\\b.{2,80}\\b(?:dime|di|pon|añade|incluye|pregunta|indica"
        "|muestra|usa|debe|deben|tienen que|en)\\w{0,30}\\b"
        "|(?:toda vez que|sempre que|cada vez que|antes de|todos os|todas as)\\b.{2,80}\\b(?:diga|coloque|inclua|pergunte|me"
        "|deve|devem|em)\\b"
        "|(?:ogni volta che|prima di|tutti i|tutte le)\\b.{2,80}\\b(?:dimmi|indica|metti|aggiungi|chiedi|chiedimi|devono|deve"
        "|vanno|va)\\b"
        "|(?:telkens als|elke keer|voordat je)\\b"
        "|(?:za każdym razem|zanim (?:coś|cokolwiek))\\b"
        "|(?:her zaman|her seferinde|bundan (?:sonra|böyle)|bütün|tüm|her)\\b.{2,100}\\b\\w{1,30}(?:yaz|kullan|ver|söyle|göster"
        "|ekle|belirt|sor|cevapla|yanıtla|olsun|yap)(?:ın|in|un|ün|ınız|iniz)?[.!]?$"
        "|(?:türkçe|ingilizce|almanca|kısaca|kısa)\\b.{0,40}\\b(?:cevap|yanıt|yaz|konuş)\\w{0,30}"
        "|would you mind \\w{1,30}ing\\b.{1,80}\\b(?:every|each|all|any)"
        "|with whichever\\b"
        "|with (?:every|each|any) \\w{1,30} (?:you|that)\\b"
        "|nach jede[mr] \\w{1,30}\\b.{1,60}\\bdu\\b"
        "|am ende deiner\\b"
        "|con cada \\w{1,30} que\\b"
        "|cada (?:dos|tres|cinco) "
        "|tu (?:lanceras|donneras|mettras|écriras|demanderas)\\b"
        "|pensez à\\b"
        "|une seule .{1,20} à la fois\\b"
        "|toute \\w{1,30} .{1,40}doit\\b"
        ")"
        "|^(?:"
        "(?:please |also |and )?(?:all|every|any|each)\\s.{1,60}\\b(?:should|must|need(?:s)? to|ha(?:ve|s) to|shall|may only"
        "|is to|are to)\\b(?! (?:i|we|it)\\b)"
        "|(?:first .{1,60}(?:then|only then)|wait for my)\\b"
        "|every \\w{1,30} (?:you|that)\\b.{1,60}\\b(?:gets|needs|comes|goes)\\b"
        "|(?:jede[nrs]?|alle|sämtliche)\\s.{1,60}\\w{1,30}en[.!]?$"
        "|(?:ordenar|indicar|usar|poner|escribir|responder|citar|mostrar|incluir|redondear|enséñame)\\b.{1,80}"
        "|(?:indiquer|utiliser|écrire|répondre|citer|mettre|classer)\\b"
        ")"
        f"|{_BEGIN}(?:{_ALWAYS})\\b{_TELLING}\\s+\\w"
        f"|{_BEGIN}(?:answer|reply|respond|write|speak|talk|explain|phrase|format|quote|give|show|state|express|cite|keep|use"
        "|put|round|sort|order|list|address|translate|spell|end|begin|start|name|ask|tell|check|run|add|include|mention"
        "|stick to|stay|limit|follow|treat|assume|convert|mark|highlight|label|number|default to|be|refer to|prefer|remind"
        "|warn|confirm|verify|pretend|act|prefix|wrap|comment|document|indent|test|save|store|log|send|suggest|recommend|offer"
        "|double-check|summari[sz]e|present|structure|describe|schedule|book|plan|price|count|measure|report|commit|deploy"
        f"|review|correct)\\b(?! if\\b| whether\\b).{{0,120}}\\b(?:{_EVERY}|always|(?<!-)\\bonly\\b|instead of|rather than"
        f"|without\\b|not (?:by|in|the|more)|(?:in|to) (?:plain |simple |proper )?(?:{_LANGUAGE})|(?:in|to) (?:euros?|dollars?"
        "|pounds?|usd|eur|gbp|miles?|km|kilomet(?:er|re)s?|metric|celsius|fahrenheit|kg|grams)|in (?:full|plain|simple|bullet"
        "|markdown|prose|lower ?case|upper ?case|capital|the imperative|present tense|past tense|passive|active"
        "|the first person|one (?:sentence|line|paragraph)|two sentences|three|short|my time|utc|24)|(?:under|below|at most"
        "|no more than|at least|max(?:imum)?(?: of)?|up to|within) (?:\\d+|two|three|four|five|six|ten|a)\\b|like (?:i['’]?m"
        "|i am|a|an|you)|as (?:if|though|yyyy|a list|bullets)|me (?:before|first)|(?:short|brief|concise|simple|formal"
        "|informal|polite|casual|neutral|friendly|gender)\\b|vat|tax(?:es)?|metric|24[- ]hour|two decimals?|decimal|tabs"
        "|spaces|snake_?case|camel_?case|type hints|emojis?|oxford comma)"
        f"|{_BEGIN}(?:add|include|give|show|put|quote|state|cite|mention|tell me|ask me|let me know"
        f"|explain)\\b.{{0,80}}\\b(?:(?:before|after|for|with|to|in|of) (?:every|each|all|any)\\b)"
        "|(?:^|[,;:.]\\s*)(?:réponds|répondez|écris|écrivez|explique(?:z)?|indique(?:z)?|donne(?:z)?|utilise(?:z)?|mets|mettez"
        "|exprime(?:z)?|cite(?:z)?|garde(?:z)?|parle(?:z)?|vouvoie(?:z)?|tutoie(?:z)?|affiche(?:z)?|propose(?:z)?|ajoute(?:z)?"
        "|fais|faites|précise(?:z)?)(?:-\\w{1,30})?\\b.{0,80}\\b(?:toujours|en (?:français|anglais|allemand|espagnol|euros?"
        "|dollars?|kilomètres|une phrase|italien)|au format|sans|chaque|tous? les|toutes les|uniquement|seulement|courte?s?"
        "|bref|simple(?:s|ment)?|d['’]abord|avant|plutôt|au lieu|à la fin|ttc|ht)\\b"
        "|(?:^|[,;:.¡]\\s*|\\by\\s+)(?:responde|contesta|escribe|explica|explíca(?:me|lo)|usa|utiliza|pon|da(?:me)?|dime"
        "|indica|muestra|muéstrame|cita|trata|trátame|háblame|habla|redondea|ordena|pregúntame|avísame|mantén|incluye"
        "|añade)\\w{0,30}\\b.{0,80}\\b(?:siempre|en (?:español|inglés|francés|alemán|euros|dólares|kilómetros|una frase"
        "|castellano)"
        "|sin|cada|todos? l|todas? l|solo|sólo|únicamente|cort[oa]s?|breves?|antes|primero|en vez|en lugar|al final"
        "|con (?:un )?(?:ejemplo|iva)|de (?:usted|tú)|como si)\\b"
        "|(?:^|[,;:.]\\s*)(?:responda|responde|escreva|escreve|explique|explica|use|usa|coloque|dê|diga|indique|mostre|cite"
        "|pergunte|mantenha|fale|fala|inclua|arredonde)\\b.{0,80}\\b(?:sempre|em (?:português|inglês|espanhol|euros|reais"
        "|dólares|quilômetros|uma frase)|sem|cada|todos? os|todas? as|só|apenas|curt[oa]s?|breves?|antes|primeiro|em vez"
        "|no final|no fim|com (?:um )?exemplo)\\b"
        "|(?:^|[,;:.]\\s*)(?:rispondi(?:mi)?|scrivi(?:mi)?|spiega(?:mi)?|usa|metti|dai|dammi|dimmi|indica(?:mi)?|mostra(?:mi)?"
        "|cita|chiedi(?:mi)?|tieni|parla(?:mi)?|includi|arrotonda)\\b.{0,80}\\b(?:sempre|in (?:italiano|inglese|francese"
        "|tedesco|euro|dollari|chilometri|una frase)|senza|ogni|tutti i|tutte le|solo|soltanto|brev[ei]|cort[oiae]|prima"
        "|invece|non per|alla fine|con (?:un )?esempio)\\b"
        "|(?:^|[,;:.]\\s*)(?:antwoord|schrijf|leg|gebruik|geef|noem|zet|toon|vraag|hou(?:d)?|sorteer|rond|vermeld|zeg"
        "|stuur)\\b.{0,80}\\b(?:altijd|in het (?:nederlands|engels|frans|duits)|in (?:euro|dollar|kilometer)\\S{0,40}|zonder"
        "|elke?"
        "|alle|alleen|kort(?:e)?|eerst|voordat|in plaats|aan het eind|voortaan|max(?:imaal)?)\\b"
        "|(?:^|[,;:.]\\s*)(?:odpowiadaj|pisz|podawaj|używaj|pokazuj|tłumacz|wyjaśniaj|pytaj|zwracaj|stosuj|dodawaj|zaokrąglaj"
        "|sortuj|trzymaj|mów|cytuj)\\w{0,30}\\b.{3}"
        "|önce bana sor"
        "|olarak (?:yaz|ver|göster|belirt)"
    ),
    CYRILLIC: (
        "\\b(?:"
        "все\\s.{1,60}\\b(?:считай|указывай|пиши|пересчитывай|давай|показывай)(?:те)?\\b"
        "|(?:каждый раз|всякий раз|прежде чем|перед тем как)\\b"
        ")"
        "|(?:^|[,;:.]\\s*)(?:отвечай|пиши|указывай|используй|показывай|объясняй|спрашивай|добавляй|считай|приводи|давай все"
        "|называй|говори|округляй|пересчитывай|сообщай)(?:те)?\\b(?=.{3})"
    ),
    HAN: (
        "(?<![我他她])(?:请|請)?(?:用|以)(?<![我他她]用)(?:中文|英文|英语|德语|日语|简体|繁体|人民币|美元|欧元|公里|公制|摄氏|表格|列表|大白话|一句话|第一人称|敬语|您)\\S{0,10}(?:回答"
        "|回复|写|说|表示|标|显示|列|称呼|解释|报价|计算)"
        "|(?:所有|(?<![我他她们友])每(?:次|个|条|封|一)|一律|统一|都要|都得|凡是|只推荐|务必|先问我|先给我看|回答(?:要|请|尽量|控制))(?!.{0,20}(?:吗|呢|？|\\?|是否|哪))\\S{2,}"
        "|(?:回答|回复|解释)\\S{0,4}(?:简短|简洁|短一点|尽量短|不要超过|控制在)"
        "|(?:日本語|英語|敬語|税込|税抜|円|箇条書き|簡潔|短く|一文|ですます|です・ます|メートル法)(?:で|に|を).{0,20}(?:ください|下さい|お願い|答えて|書いて|して)"
        "|(?:必ず|毎回|すべて|全て|常に|いつも).{1,40}(?:ください|下さい|お願い|こと|して(?:ね|。|$))"
        "|(?:する|変更|削除|送信)前に.{1,20}(?:ください|聞いて|確認)"
        "|てから.{0,12}(?:ください|して)"
        "|先.{1,14}，再"
        "|的时候(?:顺便|也).{1,30}"
        "|麻烦你等"
    ),
    HANGUL: (
        "(?:한국어로|영어로|존댓말로|반말로|원화로|표로|짧게|간단히|간결하게|미터법으로).{0,20}(?:줘|주세요|해|하세요|부탁)"
        "|(?:모든|매번|항상|언제나|때마다|반드시|꼭|앞으로).{1,60}(?:줘|주세요|하세요|해 줘|할 것|부탁|마|해라|해)(?:[.!]|$)"
        "|(?:하기|보내기|수정하기|삭제하기) 전에.{0,30}(?:물어|확인|보여|알려)"
    ),
    ARABIC: (
        "(?:^|[،,.:]\\s*)(?:اكتب|أجب|جاوب|استخدم|اذكر|اعرض|ضع|أضف|اسألني|رد|تحدث|اشرح|قدم|أعطني|احسب|حول|اجعل"
        "|التزم)\\S{0,40}\\s.{0,80}(?:دائم|بال|كل|جميع|فقط|قبل|بدون|دون|أولا|باللغة|مختصر|قصير|في نهاية|عند)"
        "|(?:كلما|في كل مرة|قبل أن|يجب أن|لازم)\\s"
    ),
    DEVANAGARI: (
        "(?:हमेशा|हर बार|हर|सभी|सारे|केवल|सिर्फ|पहले मुझसे|हिंदी में|अंग्रेज़ी में|छोटे|संक्षेप में|रुपये में"
        "|जब भी).{1,80}(?:दीजिए|दें|दो|बताइए|बताएं|बताओ|बताना|लिखिए|लिखें|लिखो|लिखना|कीजिए|करें|करो|करना|पूछें|पूछना|पूछो|रखें"
        "|रखो|रखना|देना)(?:।|$|[.!])"
    ),
}

# What the user likes better.
PREFERENCE = {
    LATIN: (
        "\\b(?:"
        "i (?:\\w{1,30}ly |always |much |usually |really )?prefer\\b(?! (?:a|the|this|that|not to)\\b)"
        "|i(?:['’]d| would)(?: \\w{1,30}ly| always| much)? rather\\b(?! than)"
        "|i(?:['’]d| would)(?: \\w{1,30}ly| much)? prefer\\b(?=.{0,200}\\b(?:answers?|replies|responses?|explanations?|examples?"
        "|summar\\w{1,30}|lists?|tables?|code|short|brief|called|you (?:didn|kept|used|gave|wrote|asked|always|never|skipp"
        "|stopp)\\w{0,30})\\b)"
        "|(?:i|we) like\\b.{1,80}\\b(?:better|more) than\\b"
        "|work(?:s)? best for (?:me|us)\\b"
        "|(?:i['’]?m|i am|we['’]re) not (?:a |really a |much of a )?(?:(?:big |huge )?fan of|into|keen on)\\b"
        "|i(?:['’]d| would) (?:be happier|appreciate it if you \\w{1,30}(?:ed|pt|ave|ot|an|ew|rote|old)|always (?:pick|choose"
        "|take"
        "|go)|love it if you|pick|choose)\\b"
        "|(?:my|our) preference\\b"
        "|i(?:['’]m| am)? (?:hate|can(?:no|['’])?t stand|dislike)\\b.{0,60}\\b(?:answers?|replies|lists?|emails?|meetings?"
        "|hotels?|flights?|seats?|code|comments?|tables?|long|jargon|emojis?|small talk|buffets?|layovers?|stopovers?)\\b"
        "|mir (?:ist|sind|wäre|wären)\\b.{1,60}\\blieber\\b"
        "|ich (?:bevorzuge|hätte lieber|mag lieber|möchte lieber|mag .{1,40} lieber|würde lieber|bin kein fan)\\b"
        "|am liebsten (?:ist|sind|hätte|habe|wäre|mag|reise|fliege|esse)\\b"
        "|lieber .{1,60} als\\b"
        "|je préfère\\b"
        "|j['’]aime(?:rais)? mieux\\b"
        "|je n['’]aime pas (?:les|le|la|trop)\\b"
        "|prefiero\\b"
        "|preferiría\\b"
        "|me gusta(?:n)? más\\b"
        "|no me gustan? (?:los|las|el|la)\\b"
        "|prefiro\\b"
        "|preferia\\b"
        "|gosto mais\\b"
        "|não gosto de\\b"
        "|preferisco\\b"
        "|preferirei\\b"
        "|mi piac\\w{1,30} di più\\b"
        "|non mi piac\\w{1,30}\\b"
        "|ik heb liever\\b"
        "|ik (?:geef de voorkeur|prefereer)\\b"
        "|liever .{1,60} dan\\b"
        "|wolę\\b"
        "|wolał(?:a)?bym\\b"
        "|nie lubię\\b"
        "|tercih ede\\w{1,30}\\b"
        "|sevmiyorum\\b"
        "|i(?:['’]d| would) love (?:it if|for)\\b"
        "|it would (?:help|be (?:nice|great|good|best)) if you\\b"
        "|suits? (?:me|us) (?:better|best)\\b"
        "|makes? me happy\\b"
        "|helps? me (?:get|understand|follow) (?:things|it|this|code|ideas)\\b(?=.{0,40}(?:faster|better|best|more))"
        "|i (?:lean|tend) towards?\\b"
        "|we['’]re (?:big|keen|not big|not keen) on\\b"
        "|(?:is|are) (?:just |exactly )?what (?:i['’]m|we['’]re) after\\b"
        "|beats? .{1,60} for me\\b"
        "|mir gef(?:ällt|allen)\\b"
        "|gef(?:ällt|allen) mir\\b"
        "|(?:ist|sind) mir (?:wichtiger|lieber)\\b"
        "|finde ich (?:besser|schöner|angenehmer)\\b"
        "|es wäre (?:schön|gut|nett|toll),? wenn du\\b"
        "|nos (?:encantan?|aburren?|gustan?)\\b"
        "|lo mío (?:es|son)\\b"
        "|me (?:ayudan?|sientan?|viene|va) (?:más|mejor)\\b"
        "|te agradecería que\\b"
        "|me encantaría que\\b"
        "|j['’]aime (?:autant|surtout|mieux)\\b"
        "|on apprécie\\b"
        "|(?:ont|a) ma préférence\\b"
        "|l['’]idéal serait\\b"
        "|je suis plutôt\\b"
        "|ce serait (?:bien|top|sympa) (?:de|si)\\b"
        ")"
    ),
    CYRILLIC: ("\\b(?:мне (?:больше )?(?:нравятся|нравится|удобнее|лучше)\\b|я предпочитаю\\b|предпочитаю\\b|не люблю\\b)"),
    HAN: (
        "更(?:喜欢|偏好|偏爱|倾向)\\S{0,40}"
        "|(?:我|我们)(?:喜欢|偏好|偏爱|倾向)(?:先|短|简|安静|靠|直接|于)\\S{0,40}"
        "|我不(?:喜欢|吃得惯)\\S{2,}"
        "|(?:ほうが|方が)(?:好み|好き|いい|良い|助かり)"
        "|(?:苦手|好みです)"
        "|偏爱"
        "|宁愿"
        "|口味偏"
        "|要是能.{1,20}就(?:太)?好"
    ),
    HANGUL: ("(?:더|제일) (?:좋아|선호|편해)|선호(?:해|합니다)|싫어(?:해|합니다)|보다 .{1,20}(?:더 )?(?:좋아|선호|낫)"),
    ARABIC: ("أفضّ?ل\\s|لا أحب\\s"),
    DEVANAGARI: ("(?:मुझे|हमें)\\s.{1,60}(?:पसंद|बेहतर)"),
}

# How a team or a project does things.
CONVENTION = {
    LATIN: (
        "\\b(?:"
        "in (?:this|our) (?:repo(?:sitory)?|project|code ?base|team|company|app|organi[sz]ation|department|module|monorepo"
        "|service|lab)\\b"
        "|(?:at|in) our (?:company|team|office|place)\\b"
        "|our (?:\\w{1,30} ){0,3}(?:is|are) (?:named|called|written|always|never|in|on|stored|kept|numbered|formatted)\\b"
        "|(?:that['’]?s|it['’]?s|this is) (?:our|company|team|the) (?:policy|convention|rule|standard|style)\\b"
        "|our (?:policy|convention|rule|standard|house style|style guide|style)\\b"
        "|(?:our|the) (?:fiscal|financial|school) year\\b"
        "|code ?base are\\b"
        "|(?:is|are) (?:a )?(?:product|brand|proper|technical) (?:term|name)s?\\b"
        "|stays? in (?:english|german|french|spanish|lower ?case)\\b"
        "|bei uns\\b"
        "|in (?:diesem|unserem) (?:projekt|repo|team|unternehmen|code)\\b"
        "|in unserer (?:firma|abteilung|codebasis)\\b"
        "|wir (?:duzen|siezen|verwenden|benutzen|nutzen|schreiben|nennen|arbeiten mit|rechnen|committen)\\b"
        "|unsere? \\w{1,30} (?:heißen|heißt|beginn\\w{1,30}|werden|stehen|sind immer)\\b"
        "|chez nous\\b"
        "|dans (?:ce|notre) (?:projet|dépôt|équipe|code|entreprise)\\b"
        "|dans notre équipe\\b"
        "|(?:nous|on) (?:utilis(?:ons|e)|vouvoy(?:ons|e)|tutoy(?:ons|e)|écri(?:vons|t)|nomm(?:ons|e))\\b"
        "|nos \\w{1,30} (?:sont|commencent|portent)\\b"
        "|en (?:este|nuestro) (?:proyecto|repo|equipo|código)\\b"
        "|en nuestra (?:empresa|oficina)\\b"
        "|(?:usamos|tuteamos|nombramos|escribimos|trabajamos con|seguimos)\\b"
        "|nuestr[oa]s? \\w{1,30} (?:van|se llaman|empiezan|está|están|son)\\b"
        "|aqu[ií] (?:usamos|a gente usa|se usa|trabajamos)\\b"
        "|neste projeto\\b"
        "|no nosso (?:projeto|time|código)\\b"
        "|na nossa (?:empresa|equipe)\\b"
        "|a gente usa\\b"
        "|in (?:questo|nostro) (?:progetto|repo|team)\\b"
        "|nel nostro (?:progetto|team|codice)\\b"
        "|da noi\\b"
        "|(?:noi )?usiamo\\b"
        "|bij ons\\b"
        "|in (?:dit|ons) (?:project|team)\\b"
        "|(?:wij|we) gebruiken\\b"
        "|u nas\\b"
        "|w (?:tym|naszym) (?:projekcie|zespole|repo)\\b"
        "|używamy\\b"
        "|bizde\\b"
        "|bu projede\\b"
        "|bizim (?:ekip|proje|kod)\\w{0,30}"
        "|kullanıyoruz\\b"
        "|(?:go|are|is|gets?|stays?) (?:always |all )?(?:written|shown|spelled|named|stored|numbered|formatted|signed"
        "|translated|abbreviated|capitali[sz]ed|snake_case|camelcase|kebab-case|in lower ?case|in upper ?case"
        "|day-month-year)\\b(?! (?:by|at|on)\\b)"
        "|spelling throughout\\b"
        "|when(?:ever)? i (?:write|say|type|put) .{1,40},? (?:i mean|it means|that means)\\b"
        "|wird (?:durchgängig|immer|stets) .{1,40}(?:übersetzt|geschrieben|abgekürzt)\\b"
        "|(?:beträge|uhrzeiten|daten|namen|titel|preise) (?:gibst|schreibst|nennst|mit|im|als|ohne|immer)\\b"
        "|bedeutet, dass\\b"
        "|steht (?:bei uns )?für\\b"
        "|(?:los|las|el|la|todo)\\b.{1,40}\\bse (?:escriben?|apuntan?|ponen?|nombran?|traducen?|redactan?)\\b"
        "|(?:van|va) (?:en|sin|con) (?:inglés|español|mayúsculas|minúsculas|singular|plural)\\b"
        "|lo traducimos\\b"
        "|cuando (?:ponga|escriba|diga) "
        "|s['’]écri(?:t|vent)\\b"
        "|restent? en (?:français|anglais)\\b"
        "|désignent?\\b"
        "|quand j['’]écris\\b"
        "|portent? (?:la date|le nom)\\b"
        ")"
        "|^(?:"
        "(?!it |he |she |this |that |my |i )(?:\\w{1,30} ){0,2}\\w{3,}s (?:live|go (?:in|to|out|under|on)|belong|are named"
        "|are called|are written|start with|end (?:in|with)|follow|sit|stay) .+"
        "|(?:dates?|times?|amounts?|prices|titles?|headings?|keys|variables?|commits?|branch names|file names) (?:go|are|in|as"
        "|always|with)\\b"
        ")"
        "|(?:^|[.,;:!]\\s*|\\b(?:and|but|because|since)\\s+)(?:we|our \\w{1,30}) (?:only |always |never |still |all )?(?:use"
        "|don['’]t use|are using|name|write|indent|deploy|release|follow|stick to|call|spell|store|log|format|tag|squash"
        "|rebase|number)\\b"
    ),
    CYRILLIC: (
        "\\b(?:"
        "у нас (?:в (?:проекте|команде|коде|компании|репозитории)|принято|все)\\b"
        "|в (?:этом|нашем) (?:проекте|коде|репозитории)\\b"
        "|мы (?:используем|пишем|называем)\\b"
        ")"
    ),
    HAN: (
        "我们(?:这边|这里|团队|公司|项目|组)?(?:的)?\\S{0,8}(?:统一|都用|用的是|一律|只用|规定|约定|习惯|命名|不用)"
        "|(?:这个|本|咱们)(?:项目|仓库|团队|代码库)(?:里|中|的)?\\S{2,}"
        "|公司规定"
        "|(?:うち|私たち|弊社|当社|このプロジェクト|このリポジトリ|チーム)(?:の|では|は)\\S{0,12}(?:では|は|を|で).{2,40}(?:です|ます|います|使)"
        "|指的(?:都)?是"
        "|按.{1,20}(?:顺序|格式)(?:写|排)"
        "|(?:全部|都|一律)(?:小写|大写)"
        "|(?:文件夹|文件|变量|分支|接口|人名|日期|金额)的?\\S{0,6}(?:统一|按|全部|一律)"
        "|(?:名字|命名)是"
    ),
    HANGUL: ("우리 (?:팀|회사|프로젝트|코드)\\S*\\s.{2,}|이 (?:프로젝트|저장소|코드)(?:는|에서는|에서)\\s.{2,}"),
    ARABIC: ("عندنا(?: في)?\\s|في (?:هذا|مشروعنا|فريقنا|شركتنا) (?:المشروع)?|نستخدم\\s"),
    DEVANAGARI: ("हमारी (?:टीम|कंपनी) में|हमारे (?:प्रोजेक्ट|यहाँ|कोड) (?:में)?|इस (?:प्रोजेक्ट|रिपो) में|हम .{1,30} (?:इस्तेमाल|उपयोग) करते"),
}

# Who the user is, how to address people, and who the assistant is to be.
IDENTITY = {
    LATIN: (
        "\\b(?:"
        "(?:address me|refer to me) as\\b"
        "|i go by\\b"
        "|my pronouns\\b"
        '|you(?:[\'’]re| are) ["“]?\\w+["”]? to me\\b'
        "|sign (?:your|all|my) (?:messages|mails|e-?mails|replies)\\b"
        "|it['’]s \\w{1,30}, (?:please )?(?:not|don['’]t)\\b"
        "|i['’]?m (?:dr|prof|mrs?|ms)\\b"
        "|i(?:['’]m| am) (?:a|an|the) (?:\\w{1,30} ){0,3}\\w{1,30},? (?:so (?:you|please|no|use|keep|explain|don['’]?t|nothing)"
        "|and (?:i['’]?m|not|i need)|please)\\b"
        "|i['’]?m (?:the only (?:developer|engineer|person|one)|new to|fairly new|not a native|a beginner|a native)\\b"
        "|(?:nenn(?:e|en sie)? mich|mich (?:einfach )?\\w{1,30} nennen|sag(?:en sie)? (?:einfach |bitte )?du zu mir|ich heiße"
        "|mein name ist|du kannst mich|sprich mich|sie können mich)\\b"
        "|ich bin (?:anfänger|lehrer|arzt|ärzt|kein muttersprach|neu)\\w{0,30}"
        "|(?:appelle-moi|appelez-moi|je m['’]appelle|tutoie-moi|vouvoyez-moi|tu peux me tutoyer)\\b"
        "|je suis (?:débutant|médecin|prof|enseignant|infirm)\\w{0,30}"
        "|(?:llámame|llámeme|me llamo|trátame|puedes llamarme|mi nombre es|dime \\w{1,30} a secas)\\b"
        "|soy (?:profesor|médic|principiante|estudiante|enfermer|abogad|nuev)\\w{0,30}\\b"
        "|(?:me chame|chame-me|pode me chamar|pode tratar-me|trate-me|meu nome é)\\b"
        "|sou (?:professor|médic|iniciante|estudante)\\w{0,30}"
        "|(?:chiamami|mi chiami|mi chiamo|mi dia (?:pure )?del|dammi del)\\b"
        "|sono (?:un[ao]? )?(?:insegnante|medico|principiante|studente)\\w{0,30}"
        "|(?:noem me|noem mij|zeg maar (?:gewoon )?\\S{1,40} tegen|ik heet|je mag me)\\b"
        "|(?:zwracaj(?:cie)? się do mnie|mów mi|mam na imię|nazywam się|zwracać .{0,20}do mnie|do mnie zwracać)\\b"
        "|bana\\b.{1,40}\\b(?:de|deyin|diye hitap|diyebilirsin)\\b"
        "|benim adım\\b"
        "|(?:you play|you['’]re playing|you act as|you are now|you['’]re now)\\b"
        "|i sign as\\b"
        "|signed? (?:as|with) the name\\b"
        "|goes by the name\\b"
        "|is pronounced\\b"
        "|i['’]m an? .{1,40}, so (?:my|you|please|no|use)\\b"
        "|no need to explain\\b"
        "|du (?:bist|spielst) (?:ab jetzt |jetzt )?(?:frau|herr|eine?n?|mein|der|die)\\b"
        "|wir können uns (?:gern )?duzen\\b"
        "|unterzeichnet wird\\b"
        "|und (?:siezt|duzt)\\b"
        "|ich bin gelernte\\w{0,30}"
        "|(?:tú )?haces de\\b"
        "|firmamos\\b"
        "|me dice(?:n)?\\b.{1,30}\\b(?:puedes|también)\\b"
        "|m['’]appeler\\b"
        "|tu (?:incarnes|joues)\\b"
        "|au nom de\\b"
        "|mon nom (?:d['’]usage|est)\\b"
        ")"
        f"|{_BEGIN}(?:just )?call me (?!back|when|if|later|tomorrow|at|on|a cab|crazy|old)\\S{{1,40}}"
    ),
    CYRILLIC: ("\\b(?:зови(?:те)? меня|называй(?:те)? меня|обращай(?:ся|тесь) ко мне|меня зовут)\\b"),
    HAN: (
        "(?:叫|称呼|喊)我(?!去|来|做|一下)\\S{1,8}"
        "|我(?:的名字|姓)(?:是|叫)?\\S{1,40}"
        "|(?:私|僕|俺)のことは.{1,30}(?:呼ん|よん)"
        "|と呼んで(?:ください|ね|ほしい)"
        "|私の名前は"
        "|你(?:扮演|演)"
        "|落款"
        "|名字叫"
        "|我是(?:学|做|搞)\\S{1,40}的"
    ),
    HANGUL: ("(?:저를|나를|절|날)\\s.{1,30}(?:불러|부르)|(?:제|내) 이름은"),
    ARABIC: ("ناد(?:يني|ني|وني)\\s|اسمي\\s|خاطبني\\s"),
    DEVANAGARI: ("मुझे\\s.{1,30}(?:कहकर|कहें|कहो|बुला)|मेरा नाम"),
}

# What limits what can be suggested: diets, budgets, times, machines.
CONSTRAINT = {
    LATIN: (
        "\\b(?:"
        f"(?:{_KIN})\\b[^.!?]{{0,40}}\\b(?:allergic|allergy|allergies|intolerant|intolerance|c(?:o)?eliac|vegan|vegetarian"
        "|pescatarian|kosher|halal|diabetic|diabetes|pregnant|wheelchair|crutches|colou?r-?blind|deaf|blind|dyslexic|epileptic"
        "|asthma|hearing aid|lactose|gluten)\\b"
        "|(?:i|we) (?:can(?:no|['’])?t|can not|don['’]?t|do not|must not) (?:eat|drink|spend|go over|exceed|afford|fly|drive"
        "|climb|walk far|stand|upgrade|update|use|work (?:on|after|before)|read)\\b(?!.{0,30}\\b(?:yesterday|last|believe)\\b)"
        "|keep (?:the sabbath|kosher)\\b"
        "|(?:it|everything|that|this|all of it|the (?:code|app|site|script|page|trip|room|solution)) (?:has|have|needs"
        "|need) to (?:be|run|work|fit|support|stay|start|end|cost)\\b"
        "|must (?:run|work|fit|support|stay|be (?:compatible|step-free|accessible|vegan|gluten))\\b"
        "|(?:only has|there['’]?s no way to|we only have|i only have)\\b"
        "|(?:my|our|the) (?:total |whole )?budget (?:is|for)\\b"
        "|budget:? (?:is |of )?(?:max|at most|\\d)"
        "|never exceed\\b"
        "|i['’]?m (?:only )?(?:available|free|off|in the office) (?:on|only|from|until|after|before)\\b"
        "|i (?:only )?work (?:from|on|part|until|nights)\\b"
        "|i (?:live|am based|['’]m based) in\\b.{0,60}\\bso\\b"
        "|so (?:nothing|everything|squats|no (?:\\w{1,30} ){0,3}(?:after|before|over|without|please|with))\\b.{1,40}"
        "|(?:ich|wir|meine?|unsere?)\\b.{0,40}\\b(?:allerg\\w{1,30}|zöliakie|laktoseintoleran\\w{1,30}|vegan\\w{0,30}"
        "|vegetari\\w{1,30}|diabet\\w{1,30}"
        "|schwanger|rollstuhl|gehörlos|unverträglich\\w{0,30})\\b"
        "|(?:ich|wir) (?:esse|essen|trinke|trinken|vertrage|vertragen|darf|dürfen|kann|können)\\b.{0,30}\\b(?:kein\\w{0,30}|nicht"
        "|nichts)\\b"
        "|geht (?:also |bei mir )?gar nicht\\b"
        "|(?:mein|unser) budget\\b"
        "|muss (?:unter|auf|mit|ohne|bis)\\b.{1,40}\\b(?:laufen|funktionieren|passen|bleiben)\\b"
        "|(?:je|nous|elle|il|mon|ma|mes|notre|nos)\\b.{0,40}\\b(?:allergi\\w{1,30}|intoléran\\w{1,30}|végétari\\w{1,30}"
        "|végéta?li\\w{1,30}|vegan"
        "|diabétique|enceinte|cœliaque|fauteuil roulant|sourde?)\\b"
        "|(?:je|nous) ne (?:mange|mangeons|bois|buvons|peux|pouvons)\\b.{0,20}\\b(?:pas|plus|jamais)\\b"
        "|(?:mon|notre) budget\\b"
        "|(?:soy|somos|es|mi|mis|tengo|tenemos|nuestr\\w{1,30})\\b.{0,40}\\b(?:alérgic\\w{1,30}|alergia|intolerante|intolerancia"
        "|vegan\\w{1,30}|vegetarian\\w{1,30}|diab[eé]tic\\w{1,30}|embarazada|celíac\\w{1,30}|silla de ruedas|sord[oa])\\b"
        "|no (?:como|comemos|bebo|puedo (?:comer|tomar|gastar|pasar))\\b"
        "|(?:mi|nuestro) presupuesto\\b"
        "|(?:sou|somos|meu|minha|tenho|viajamos)\\b.{0,40}\\b(?:alérgic\\w{1,30}|alergia|intolerante|vegan\\w{1,30}"
        "|vegetarian\\w{1,30}"
        "|diabétic\\w{1,30}|grávida|celíac\\w{1,30}|cadeira de rodas|bebê)\\b"
        "|não (?:como|bebo|posso (?:comer|gastar))\\b"
        "|(?:meu|nosso) orçamento\\b"
        "|(?:sono|siamo|mio|mia|ho)\\b.{0,40}\\b(?:allergic\\w{1,30}|allergia|intollerante|vegan\\w{1,30}|vegetarian\\w{1,30}"
        "|diabetic\\w{1,30}"
        "|incinta|celiac\\w{1,30}|sedia a rotelle)\\b"
        "|non (?:mangio|bevo|posso mangiare)\\b"
        "|(?:il mio|il nostro) budget\\b"
        "|(?:ik|wij|we|mijn|onze?)\\b.{0,40}\\b(?:allergisch|allergie|intolerant|veganist\\w{0,30}|vegetari\\w{1,30}"
        "|diabe\\w{1,30}|zwanger"
        "|rolstoel|doof|slechthorend)\\b"
        "|ik (?:eet|drink|mag) geen\\b"
        "|(?:mój|moja|mam|syn|córka|żona|mąż|jestem)\\b.{0,40}\\b(?:uczulen\\w{1,30}|alergi\\w{1,30}|nietoleranc\\w{1,30}"
        "|wegan\\w{0,30}"
        "|wegetarian\\w{0,30}|cukrzyc\\w{1,30}|ciąży|wózku)\\b"
        "|nie (?:jem|piję|mogę jeść)\\b"
        "|(?:alerji\\w{0,30}|vegan\\w{0,30}|vejetaryen\\w{0,30}|diyabet\\w{0,30}|hamile\\w{0,30}|çölyak\\w{0,30}|tekerlekli)\\b"
        "|(?:yiyemiyorum|yemiyorum|içmiyorum|içemiyorum)\\b"
        "|bütçe(?:m|miz)\\b"
        "|(?:my|our) \\w{1,30} can['’]?t have\\b"
        "|(?:is|are) (?:all|the most) (?:i|we)(?:['’]ve| have)? got\\b"
        "|(?:is|are) closed on\\b"
        "|(?:has|have) to (?:run|fit|work|stay) (?:on|under|below|within|in)\\b"
        "|can['’]t be (?:upgraded|changed|moved|replaced)\\b"
        "|not an? \\w{1,30} more\\b"
        "|(?:maximum|minimum|limit|cap|ceiling|deadline) (?:is|for .{1,30} is)\\b"
        "|on (?:mon|tues|wednes|thurs|fri|satur|sun)days\\b(?=.{0,60}\\b(?:closed|off|busy|booked|only|never|no)\\b)"
        "|sind? .{1,40}nicht drin\\b"
        "|(?:verträgt|vertrage|vertragen) kein\\w{0,30}\\b"
        "|(?:montags|dienstags|mittwochs|donnerstags|freitags|samstags|sonntags)\\b.{0,60}\\b(?:belegt|geschlossen|nicht|frei"
        "|nie|kein\\w{0,30})\\b"
        "|muss in .{1,30} (?:vorgetragen|fertig|passen)"
        "|presupuesto (?:total )?.{0,30}(?:es|son)\\b"
        "|tiene que (?:seguir|ser|pesar|caber|funcionar)\\b"
        "|solo dispongo\\b"
        "|como máximo\\b"
        "|no se puede\\b.{1,40}\\b(?:pared|techo|suelo|obra)\\b"
        "|n['’](?:a|avons|ont|ai) que\\b"
        "|il faut que je\\b"
        "|n['’]acceptent? que\\b"
        "|ne (?:peut|peuvent) pas être\\b"
        "|plafond de\\b"
        ")"
        "|, so\\b.{1,50}\\b(?:are|is) out\\b"
    ),
    CYRILLIC: (
        "\\b(?:"
        "(?:мне|нам) нельзя\\b"
        "|я не (?:ем|пью)\\b"
        "|(?:мой|наш) бюджет\\b"
        ")"
        "|(?:аллерги|непереносимост|веган|вегетариан|диабет|гастрит|беремен|целиаки|инвалидн)\\w{0,30}.{0,60}"
    ),
    HAN: (
        "(?:我|孩子|老婆|老公|妈妈|爸爸|爱人|家人|我们|女儿|儿子|同事)?\\S{0,6}(?:过敏|吃素|素食|不吃(?:辣|肉|猪肉|牛肉|香菜|海鲜)|乳糖不耐|糖尿病|怀孕|孕妇|轮椅|清真|色盲)\\S{0,40}"
        "|预算(?:是|只有|最多|不超过|在)\\S{1,40}"
        "|(?:アレルギー|ベジタリアン|ヴィーガン|妊娠中|妊婦|糖尿病|車椅子|乳糖不耐|食べられない|飲めない|食べません|飲みません|予算は)\\S{0,40}"
        "|最多\\S{1,8}(?:，|。|$)"
        "|超过.{1,12}就"
        "|(?:膝盖|腰)不好"
        "|要值班"
    ),
    HANGUL: ("(?:알레르기|채식|비건|임신|당뇨|휠체어|유당불내|못 (?:먹|마셔|마시)|안 (?:먹어|먹습|마셔)|예산은)\\S*"),
    ARABIC: ("حساسية|نباتي|حامل|سكري|كرسي متحرك|لا (?:نأكل|آكل|أكل|أشرب)|الحلال|ميزانيت(?:ي|نا)"),
    DEVANAGARI: (
        "(?:एलर्जी|शाकाहारी|वीगन|मधुमेह|डायबिटीज|गर्भवती|व्हीलचेयर)|(?:नहीं|नही) (?:खाते|खाता|खाती|पीता|पीती|पीते|खा सकत)|(?:हम|मैं) जैन|बजट"
    ),
}

# What is to be kept in mind.
REMEMBER = {
    LATIN: (
        "\\b(?:"
        "(?:keep|bear|have) in mind\\b"
        "|note that\\b"
        "|please note\\b"
        "|don['’]?t forget (?:that|my|our|i\\b|we\\b|the)"
        "|make a note\\b"
        "|for (?:the record|future reference)\\b"
        "|just so you know\\b"
        "|fyi\\b"
        "|(?:denk(?:e|t)? (?:bitte )?(?:immer )?dr?an|merk(?:e)? dir|vergiss nicht|vergessen sie nicht|beachte|bedenke"
        "|berücksichtige|behalte .{0,20}im kopf|denken sie daran)\\b"
        "|(?:retiens|retenez|n['’]oublie(?:z)? pas|souviens-toi|rappelle-toi|tiens compte|tenez compte|garde(?:z)? en tête"
        "|notez? que|sache(?:z)? que)\\b"
        "|(?:recuerda|recuerde|ten en cuenta|tenga en cuenta|no olvides|no te olvides|apunta que|que sepas)\\b"
        "|(?:lembre-se|lembra(?: que)?|leve em conta|não esqueça|não se esqueça|tenha em mente)\\b"
        "|(?:ricorda(?:ti)?|tieni (?:presente|conto)|non dimenticare|tenga presente)\\b"
        "|(?:onthoud|denk eraan|vergeet niet|hou(?:d)? er rekening mee|let op)\\b"
        "|(?:pamiętaj|zapamiętaj|nie zapomnij|weź pod uwagę|miej na uwadze)\\b"
        "|(?:unutma(?:yın)?|aklında (?:olsun|tut)|hatırla|not et|aklınızda)\\b"
        "|you should know\\b"
        "|heads[- ]up\\b"
        "|nicht vergessen\\b"
        "|behalte .{0,20}hinterkopf\\b"
        "|für alle weiteren\\b"
        "|ten presente\\b"
        "|que no se te pase\\b"
        "|quédate con (?:este|el) dato\\b"
        "|garde(?:z)? à l['’]esprit\\b"
        ")"
        "|^for later:"
        "|(?:^|[.,!:;\\n]\\s*|\\bplease\\s+|\\balso\\s+)remember\\b(?! (?:when|that (?:guy|time|day|night|one|girl|man|woman"
        "|place|movie|song|trip|scene|year|summer|party|feeling)\\b|how|the (?:time|day|good|old|first)|him|her|me\\b|them"
        "|it\\b|what|who|why|where|to\\b))"
        "|(?<!to )\\btake into account\\b"
    ),
    CYRILLIC: ("\\b(?:запомни(?:те)?|помни(?:те)?|учти(?:те)?|имей(?:те)? в виду|не забудь(?:те)?|не забывай(?:те)?)\\b"),
    HAN: (
        "(?:记住|請記住|记得|请注意|注意一下|别忘了?|要知道)(?!了?(?:吗|么|？|\\?|。|，|$))\\S{2,}"
        "|覚えておいて"
        "|忘れないで"
        "|念頭に"
        "|请留意"
        "|心里要有数"
        "|以后我(?:提到|说)"
    ),
    HANGUL: ("기억해|명심|잊지\\s?마|참고로"),
    ARABIC: ("تذكّ?ر\\s|لا تنس|ضع في اعتبارك|انتبه|خذ (?:في|ب)"),
    DEVANAGARI: ("याद रख|ध्यान रख|मत भूल"),
}

# What holds for all that comes, by how it is said: what follows from how the user is, what alone is wanted or never, and roles.
GENERAL = {
    LATIN: (
        "\\b(?:"
        "so (?:please |that )?(?:no\\b|only|never|don['’]?t|do not|avoid|use|keep|give|make(?! sure)|add|plan|write|answer"
        "|explain|show|leave|skip|speak|filter|ignore|assume|treat|choose|pick|swap|put|stay|nothing|everything|anything"
        "|all\\b|any\\b)\\b.{4}"
        "|(?:is|are) (?:banned|off the table|not permitted|forbidden|taboo|not to appear)\\b"
        "|(?:without|no) .{1,40}\\bunless i\\b"
        "|at most\\b.{1,40}\\bper\\b"
        "|(?:hard |strict )?cap of\\b"
        "|no exceptions\\b"
        "|throughout\\b(?! the (?:day|year|night|world|week|trip))"
        "|make it a habit\\b"
        "|i take blood\\b"
        "|i(?:['’]m| am) (?:on a .{1,20}diet|muslim|jewish|hindu|claustrophobic|colou?rblind)\\b"
        "|(?:also|daher|deshalb|darum|deswegen) (?:bitte |keine?\\w{0,30} |nur |nichts |such|halte?|drück|lass|nimm|schreib|gib"
        "|plan|achte|bezieh)\\w{0,30}"
        "|(?:ausschließlich|durchweg|durchgängig|grundsätzlich|jeweils|prinzipiell|ausnahmslos)\\b"
        "|(?:höchstens|maximal)\\b.{1,30}\\b(?:pro|je|auf einmal|am stück|für)\\b"
        "|finger weg\\b"
        "|kommt? nicht (?:infrage|in frage)\\b"
        "|scheiden? .{0,20}aus\\b"
        "|unter keinen umständen\\b"
        "|du (?:spielst|bist jetzt|darfst|sollst|nennst mich)\\b.{6}"
        "|(?:dürfen|darf) .{1,60}nicht\\b"
        "|muss vorher\\b"
        "|nur (?:nach|mit|noch|gebraucht)\\b"
        "|unser(?:e|em|er)? (?:styleguide|leitfaden|doku|firma|team)\\b"
        "|mein limit\\b"
        "|notier dir\\b"
        "|(?:bitte|statt .{1,20},? bitte)(?: (?:im|in|mit|als|auf) .{1,30})?[.!]$(?<=.{24})"
        "|(?:donc|alors|du coup) (?:pas |rien |mes |mon |que |uniquement|évite|des |plus |tiens)"
        "|(?:seulement|uniquement|exclusivement)\\b.{4}"
        "|tu (?:es|fais|seras|serez|t['’]appelleras|parleras)\\b.{1,40}\\bet\\b"
        "|c['’]est la règle\\b"
        "|c['’]est un principe\\b"
        "|je tiens à ce que\\b"
        "|je veux (?:des|que)\\b.{1,40}\\b(?:pas|jamais|toujours)\\b"
        "|je déteste\\b"
        "|il me faut\\b"
        "|obligatoires?\\b"
        "|ne (?:se|prévoient|sort|sortez|sors)\\b.{1,30}\\b(?:pas|plus)\\b"
        "|(?:nous n['’]achetons|on dort|on randonne|nous ne payons)\\b"
        "|passe par\\b"
        "|as[ií] que (?!nada\\b|ya\\b|bueno|voy|me |fuimos|he\\b)\\S{1,40} .{2,}"
        "|(?:solo|sólo|únicamente|exclusivamente)\\b.{2,40}\\b(?:fuentes|en|con|cuando|si|para)\\b"
        "|(?:serás|seréis|vas a ser|te nombro|haces de|usted será|imagina que eres)\\b"
        "|(?:como mucho|como máximo|un tope de|el máximo que)\\b"
        "|(?:odio|detesto)\\b.{1,60},"
        "|tengo fobia\\b"
        "|me sienta mal\\b"
        "|no me permite\\b"
        "|está(?:n)? (?:vetad|descartad|prohibid)\\w{1,30}"
        "|(?:quiero|quisiera|me gustaría|agradecería|me vendría bien|le ruego) que\\b"
        "|no cuentes conmigo\\b"
        "|(?:téngalo|tenlo|considéralo|tenelo) (?:en cuenta|presente|para)\\b"
        "|teng?[aoé] en cuenta\\b"
        "|ten siempre\\b"
        "|no se te olvide\\b"
        "|salvo que te diga\\b"
        "|nos ceñimos\\b"
        "|porfa[.!]?$"
        "|nuestro manual\\b"
        "|es tan amable\\b"
        ")"
        "|^(?:"
        "(?:please |pls |ok |and |but |also )?only (?!the\\b|a\\b|one\\b|two\\b|my\\b|that\\b|this\\b|then\\b"
        "|if\\b)[a-z]+ .{4,80}(?<!left)(?<!now)$"
        "|(?:everything|anything|whatever|whoever|wherever|nobody|your (?:answers|replies|job|role|name)|the (?:client|tone"
        "|word|linter|team|kids|budget)|documents|numbers|variable names)\\b.{2,80}\\b(?:must|should|has to|have to|needs? to"
        "|may only|may not|is to|are to|needs my|is not to)\\b"
        "|(?:you (?:should|may|ought to|['’]re to|are to|will|['’]ll) (?:assume|treat|only|mention|use|not|be|always|never|act"
        "|play|speak)|act as|pretend (?:to be|you)|consider (?:me|yourself)|treat (?:me|any|every|all|the)|assume (?:that |i "
        "|i['’]m |all |amounts|everything|we)|limit your|keep (?:a running|track)|stick to|let['’]s (?:stick|do everything"
        "|do all|say you)|call the|be (?:blunt|brief|direct|concise|honest|patient|kind|strict)\\b)"
        "|(?:unless|until|whenever|when in doubt|as long as|for each|in every|in all|for our|with me|as far as possible"
        "|for privacy|in what follows|for our purposes|from today on)\\b[^,]{3,80},\\s*(?:please |then |just )?(?!i\\b|we\\b"
        "|he\\b|she\\b|they\\b|it\\b|the\\b|my\\b|that\\b|there\\b)\\w{1,30}"
        "|(?:hey |ok )?(?:so )?for the future\\b"
        "|(?:maximal|höchstens)\\b"
        "|(?:sobald|solange|falls|bis zur?|vor jede[mr]|bei jede[mr]|nach jede[mr]|für dieses|für dich|zwischen uns|vorerst"
        "|fürs erste)\\b.{6,}"
        "|(?:sei|betrachte dich|stell dich|tu so|benutz bitte|unterlass|halte dich|verzichte)\\b.{4}"
        "|(?:tout|toute|tous|toutes|chaque|aucune?|zéro|pas d[e'’]|plus (?:jamais )?de|jamais de|plus jamais|rien (?:de|qui)"
        "|que des)\\b.{4}"
        "|(?:sois|soyez|renonce|traite-moi|tutoie|cesse|épargne-moi|conserve|emploie|restons|enregistre|présente|dis-moi)\\b"
        "|(?:quand|si|au mot|pour les|pour le moment|dans les|dans nos)\\b.{4,60},"
        "|(?:todo|toda|todos|todas|cada|ningun[oa]?|nada de|ni |que (?:no|conste|las|los)|por norma|en todo momento"
        "|cada vez que|siempre|sin )\\b.{4}"
        "|(?:sé|sea|trátanos|considera que|anota que|deja siempre|escríbeme|háblame|ve guardándome|puedes tutearme)\\b"
        ")"
        f"|{_BEGIN}no (?!one\\b|way\\b|idea|worries|problem|doubt|need|thanks|matter|wonder|longer|wait\\b|but\\b|it\\b|i\\b"
        "|the\\b|that\\b|this\\b|we\\b|you\\b|sorry|offen[cs]e|rush|kidding|pressure|more than|luck|big deal|joke|biggie|clue"
        f"|reply|answer|news|time|question)[a-z]\\w{{1,30}}(?: [\\w'’-]+){{1,12}}[.!]?$"
    ),
    HAN: (
        "(?:始终|全程|从(?:这|此|今)\\S{0,6}(?:开始|往后|起)|往后|今后|一概|坚决|绝不能|统统|每回|凡是|无论什么|不管什么)(?!.{0,14}(?:吗|？))\\S{2,}"
        "|(?:只许|只用|只看|只推荐|禁用|忌用)(?!.{0,14}(?:吗|？|就行|就可以))\\S{2,}"
        "|(?:你|您)(?:来)?(?:当|做|扮|就是|暂且做)(?:我|法官|一)\\S{1,40}"
        "|把我当(?:成|作)"
        "|养成这个习惯"
        "|(?:记一下|记牢|记着)[，：:]?\\S{1,40}"
        "|(?:要|得|请)(?:留意|绕开|避开)"
        "|(?:别|不要)(?:超过|高过|多于)"
        "|不能(?:高过|超过|动|删)"
        "|我(?:信佛|吃素|有(?:高血压|糖尿病|痛风)|胃不好|不进|不网购|习惯用)"
        "|(?:照着|按这个|照这个)(?:排|来|筛)"
        "|谁都不(?:许|能)?\\S{1,6}"
    ),
}

# What says by itself that something holds from then on.
LASTING = {
    LATIN: (
        "\\b(?:"
        "from now on\\b"
        "|from here on\\b"
        "|going forward\\b"
        "|from this point on\\b"
        "|in (?:all )?(?:the )?future (?:replies|answers|responses|messages)\\b"
        "|for the (?:rest|remainder) of\\b"
        "|(?:for|during|throughout) (?:this|the whole|the entire|our) (?:conversation|session|chat)\\b"
        "|(?:ground|house|basic|my|some|a few|two|three) rules\\b"
        "|one (?:rule|ground rule)\\b"
        "|(?:ab jetzt|von nun an|ab sofort|künftig|in zukunft|von jetzt an|für den rest|für die restliche|solange wir)\\b"
        "|(?:désormais|dorénavant|à partir de maintenant|à l['’]avenir|pour la suite|pour le reste)\\b"
        "|(?:a partir de ahora|de ahora en adelante|en adelante|desde ahora|para el resto|para lo que queda|a partir de agora"
        "|de agora em diante|daqui (?:em|para a|pra) (?:diante|frente)|pelo resto|d['’]ora in (?:poi|avanti)|da ora in poi"
        "|per il resto|da adesso)\\b"
        "|(?:vanaf nu|voortaan|in het vervolg|voor de rest)\\b"
        "|(?:od teraz|od tej pory|na resztę|w przyszłości|do końca)\\b"
        "|(?:bundan (?:sonra|böyle)|şu andan itibaren|konuşmanın geri kalan\\w{0,30})\\b"
        ")"
    ),
    CYRILLIC: ("\\b(?:отныне|с этого момента|впредь|с этих пор|теперь всегда|до конца (?:разговора|беседы|сессии))\\b"),
    HAN: (
        "以后(?:都|请|不要|别|每次|要|一律|只|统一|所有|你)"
        "|以後(?:都|請|不要|別|每次|要|一律|只)"
        "|[从從][现現]在(?:起|开始|開始)"
        "|今[后後]"
        "|接下来(?:都|请|的对话|一直)"
        "|(?:这|整)(?:次|个)?(?:对话|会话)"
        "|これからは"
        "|今後は?"
        "|これ以降"
        "|以降は"
        "|このセッション"
        "|この会話"
        "|この先"
    ),
    HANGUL: ("앞으로(?:는|도)?|이제부터|지금부터|이 대화|남은 대화"),
    ARABIC: ("من الآن فصاعد|بعد الآن|من اليوم|لبقية"),
    DEVANAGARI: ("अब से|आगे से|आज से|बाकी बातचीत"),
}

# What announces rules before a colon.
ANNOUNCING = {
    LATIN: (
        "\\b(?:remember (?:this|the following)|keep (?:this|the following|one thing) in mind|rules?|guidelines?|conventions?"
        "|preferences?|house style|things? (?:to (?:know|remember|keep in mind)|about me)|about me|ten en cuenta una cosa"
        "|merk dir (?:das|folgendes)|folgendes|para tener en cuenta|rappels?|règles?|reglas?|regras?|regole|regels|zasady"
        "|kurallar)\\b"
    ),
    CYRILLIC: ("правила"),
    HAN: ("规则|規則|规定|约定|ルール|次のように|ルール|规则|约定|规定"),
    HANGUL: ("규칙"),
    ARABIC: ("قواعد"),
    DEVANAGARI: ("नियम"),
}

# What holds for one time alone, or tells of a part of what is at hand.
ONCE = {
    LATIN: (
        "\\b(?:"
        "(?:just|only) (?:this|for) (?:once|now|one|time)\\b"
        "|this (?:one )?time\\b"
        "|for now\\b"
        "|this once\\b"
        "|right now\\b"
        "|(?<!in the )(?:first|second|third|fourth|last|next|previous) (?:one|two|line|paragraph|question|sentence|item|image"
        "|picture|column|row|hotel|entry|part|slide)\\b"
        "|in (?:this|that) (?:list|file|sentence|chart|table|paragraph|one|case|cell|mail|email)\\b"
        "|yet(?=[.,!]|$)"
        "|that (?:one|again)\\b"
        "|as it (?:is|was)\\b"
        "|(?:don['’]?t|do not|stop) \\w{1,30} (?:it|that|this|them)(?=[,!.]|$)"
        "|(?:diesmal|dieses mal|nur jetzt|ausnahmsweise|vorerst)\\b"
        "|(?:cette fois|pour l['’]instant|de cette liste|(?:deuxième|troisième)(?! (?:fois|personne)))\\b"
        "|(?:esta vez|por ahora|en esta lista|de esta lista|el segundo|el tercero|la segunda(?! (?:vez|persona|temporada)))\\b"
        "|(?:desta vez|por enquanto|o segundo|deste texto)\\b"
        "|(?:questa volta|per ora|da questa)\\b"
        "|(?:deze keer|dit keer|voor nu|deze alinea)\\b"
        "|(?:tym razem|na razie|z tej listy)\\b"
        "|(?:bu sefer|bu listeye|şimdilik)\\b"
        "|the \\w{1,20} one\\b"
        "|sondern (?:den|die|das)\\b"
        ")"
        "|^\\W*(?:please |bitte )?(?:(?:write|draft|compose) (?:me |us )?an? "
        "|(?:schreib|entwirf|verfass)\\w{0,3} (?:mir |uns |bitte )*eine?n? "
        "|(?:escríbeme|escribe|redacta|hazme|dame) una? |(?:écris|rédige|compose|fais)(?:-moi|-nous)? une? )"
    ),
    CYRILLIC: ("\\b(?:в этот раз|на этот раз|пока что|из этого списка)\\b"),
    HAN: (
        "^(?:请|帮我|给我)*(?:写|编|来)一(?:首|个|篇|封|段)|这(?:次(?!会话|对话|聊天)|一次|一段|段(?!时间)|个列表)|今回(?:だけ|は)|このリスト|この段落"
    ),
    HANGUL: ("이번(?:만|에는)|이 (?:문단|목록)"),
    ARABIC: ("هذه المرة|هذا الجدول|هذه الفقرة"),
    DEVANAGARI: ("इस बार|इस पैरा"),
}

# What tells that somebody else says it.
REPORTED = {
    LATIN: (
        "\\b(?:"
        "(?:said|says|heard|told|tells|wrote|writes|used to|as (?:my|they) .{1,20}say|read somewhere|is it true|has this rule"
        "|claims that|banned|(?<!even if i )(?<!aunque )insist\\w{0,30}|the (?:sign|readme|label|manual|note|novel|book))\\b"
        "|(?:sag(?:t|te)|(?<!wir )sagen(?! wir)|(?<!wie )(?<!doch )gesagt|steht|schrieb|schreibt|stand(?= (?:da|dass|in|im"
        "|auf)\\b)|meint(?:e)?|behauptet\\w*"
        "|(?<!ich )(?:dürfe|solle|müsse|könne))\\b"
        "|(?:disait|(?<!on )(?<!déjà )dit|on dit que|(?<!s['’])écrit|comme on dit|disaient|affirme|prétend|soutient)\\b"
        "|(?:(?<!se )(?<!the )dice|se dice que|decía|dijo|(?<!me )(?<!nos )pone|(?<!por )escrito|escribió|dejaba|afirma|asegura"
        "|sostiene)\\b"
        "|(?:disse|dizia|jurava|escrito)\\b"
        "|(?:diceva|dicono|ha detto|scritto)\\b"
        "|(?:zei|zegt|staat|schreef|mag niet van)\\b"
        "|(?:mówi(?:ł|ła)?|powtarza\\w{0,30}|powiedzia\\w{0,30}|wisi|napisane)\\b"
        "|(?:derdi|dedi|der(?=[.!]?$)|yazıyor|söyledi)\\b"
        ")"
    ),
    CYRILLIC: ("(?:говорил|сказал|написан|говорит)\\w*"),
    HAN: (
        "(?:他|她|们|妈|爸|爷|奶|师|生|老板|朋友|同事|家|人)(?:总|常|老|都|经常)?(?:是)?(?:说|説|告诉)|写着|寫著|写道|[听據据]说|(?:言って|書いて(?!ください|ほしい|ね|くだ)|言われ|と言)"
    ),
    HANGUL: ("(?:라고(?! ?(?:불러|부르))|하래|그러셨|말씀|써 있|하라고|말라고)"),
    ARABIC: ("(?:تقول|قال|مكتوب|يقولون|كانت)"),
    DEVANAGARI: ("(?:कहते|कहती|कहता|कहा|लिखा था|लिखा है)"),
}

# Proverbs and encouragement.
FIGURATIVE = {
    LATIN: (
        "\\b(?:"
        "never say never\\b"
        "|don['’]?t give up\\b"
        "|never (?:ever )?give up\\b"
        "|better safe\\b"
        "|thou shalt\\b"
        "|(?:ha){2,}h?\\b"
        "|(?:ja){2,}\\b"
        "|lol\\b"
        ")"
        "|poddawaj"
        "|te rindas"
        "|abandonne"
        "|gib nicht auf"
        "|nicht aufgeben"
        "|desanim"
        "|mollare"
        "|opgeven"
        "|pes etme"
    ),
    CYRILLIC: ("сдавай"),
    HAN: ("哈哈|気にしない|あきらめない|灰心"),
    HANGUL: ("포기하지"),
    ARABIC: ("تستسلم"),
    DEVANAGARI: ("हारो"),
}

# Of whom a sentence tells that states no rule of the user's.
OF_OTHERS = {
    LATIN: (
        "\\b(?:he|she|they|his|her|their|people|everybody|everyone|nobody|neighbou?rs?|boss|friend of|a friend|colleagues?"
        "|coworkers?|someone|somebody|kids these|who)\\b"
    ),
}

# How a sentence begins in the middle of which nothing is asked for.
OF_SELF = {
    LATIN: (
        "^\\W{0,3}(?:i|i['’]?m|i['’]?ve|i['’]?ll|i['’]?d|we|we['’]?re|he|she|they|it|my|the|can|could|would|should|is|are|does|do"
        "|did|why|how|what|when|where|if|no|so|while|since|direct|you|yeah|yes)\\b"
    ),
}

# What tells of the past.
PAST = {
    LATIN: (
        "\\b(?:"
        "(?:i|we) (?:never|always) \\w{1,30}(?:ed|ew|old|ent|ad|ook|ame)\\b"
        "|(?:i|we|it) (?:was|were|had|did|went|used|always (?:lose|forget|rains?|end))\\b"
        "|as a (?:kid|child|teenager)\\b"
        "|back (?:then|when|at|in)\\b"
        "|years? ago\\b"
        "|last (?:year|week|night|summer|month)\\b"
        "|yesterday\\b"
        ")"
    ),
}

# A question that asks for something to hold all the same.
POLITE = {
    LATIN: (
        "\\b(?:"
        "(?:can|could|will|would) you\\b.{1,80}\\b(?:from (?:now|here) on|going forward|in (?:the )?future|every time)\\b"
        "|(?:can|could|will|would) you (?:please )?(?:always|never|also always|stop \\w{1,30}ing|from now on|please not|not)\\b"
        "|(?:kannst|könntest) du (?:bitte )?(?:immer|nie|ab jetzt|künftig)\\b"
        "|(?:peux-tu|pourrais-tu) (?:toujours|ne (?:plus|jamais)|désormais)\\b"
        "|(?:puedes|podrías) (?:siempre|no|dejar de)\\b"
        ")"
    ),
    HAN: ("以后(?:可以|能不能|请)|(?:能不能|可以)(?:以后|每次|一直|都)"),
}

# What says how somebody is to be called.
NAMING = {
    LATIN: (
        "\\b(?:call me|i go by|address me|refer to me|nenn(?:e|en sie)? mich|appelle-moi|appelez-moi|llámame|llámeme|me chame"
        "|chiamami|noem me|zwracaj|diye hitap)\\b"
    ),
    CYRILLIC: ("(?:зови|называй)(?:те)? меня"),
    HAN: ("叫我|呼んで"),
    HANGUL: ("불러"),
    ARABIC: ("ناد(?:ي|و)"),
    DEVANAGARI: ("नाम"),
}

# What takes a rule back.
TAKING_BACK = {
    LATIN: (
        "\\b(?:"
        "you (?:can|may) .{1,60}\\bagain\\b"
        "|(?:forget|ignore|drop|scrap|cancel) (?:the|my|that|what i said about) .{0,40}(?:rules?|about|thing|instruction|limit"
        "|restriction)?\\b"
        "|(?:no longer|not .{1,30} any ?more|any longer)\\b"
        "|i take (?:that|it) back\\b"
        "|(?:du kannst|sie können|ihr könnt|darfst|dürfen) .{1,60}\\bwieder\\b"
        "|(?:vergiss|ignoriere?|streich(?:e)?) (?:die|meine|das)\\b"
        "|nicht mehr (?:nötig|wichtig|gelten)\\b"
        "|(?:tu peux|vous pouvez) (?:de nouveau|à nouveau)\\b"
        "|(?:oublie(?:z)?|ignore(?:z)?) (?:la|ma|les|ce que)\\b"
        "|(?:ya )?puedes .{1,60}\\b(?:de nuevo|otra vez)\\b"
        "|(?:olvida|ignora) (?:la|lo|mi)\\b"
        "|ya no (?:hace falta|es necesario|hay que)\\b"
        "|pode .{1,60} de novo\\b"
        "|(?:puoi|può) .{1,60} di nuovo\\b"
        "|mag .{1,60} weer\\b"
        "|możesz znowu\\b"
        "|artık .{1,60} olur\\b"
        ")"
    ),
    CYRILLIC: ("\\b(?:можешь|можете) снова\\b"),
    HAN: (
        "(?:可以|能)(?:再|重新).{1,30}(?:了|。|$)"
        "|不(?:用|必|需要)再"
        "|(?:取消|忘掉|忽略).{0,12}(?:规则|要求|那条|说的)"
        "|また.{1,30}(?:ていい|てもいい|て大丈夫)"
        "|(?:もう|今後).{1,30}(?:なくていい|必要ない)"
    ),
    HANGUL: ("다시 .{1,30}(?:도 돼|도 됩니다|해도)"),
    DEVANAGARI: ("यह नियम|फिर से .{1,30} सकते"),
}

# What a number limits.
LIMIT = {
    LATIN: (
        "\\b(?:budget|limit|max(?:imum)?|most|more than|less than|under|below|over|up to|within|words?|sentences?|minutes?"
        "|hours?|lines?|euros?|dollars?|pounds?|percent|höchstens|maximal|unter|über|plafond|máximo|presupuesto|au plus)\\b"
        "|[$€£%]"
    ),
    HAN: ("最多|不超过|预算"),
}

# Words that name a language, a currency or a unit.
MANNERS = frozenset(_MANNERS.split()) | {
    "euro",
    "dollar",
    "pound",
    "mile",
    "kilometer",
    "kilometre",
    "英文",
    "中文",
    "英语",
    "美元",
    "人民币",
}
# Words that tell nothing of what a rule is about.
COMMON = frozenset(
    """
    again about what that this said rule rules ignore forget from with your have longer anymore more when then never always please
    will want need back drop cancel instruction wieder kannst können nicht mehr diese meine regel vergiss nouveau peux oublie
    règle puedes nuevo olvida regla
    """.split()  # noqa: SIM905 (a table)
)
# Words that only ask for something.
ASKING = frozenset(
    """
    please pls kindly bitte always immer toujours siempre sempre por favor svp s te vous plaît now then also and but ok
    """.split()  # noqa: SIM905 (a table)
)
