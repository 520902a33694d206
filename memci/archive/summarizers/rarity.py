"""How much a word tells, without a corpus to ask: from a small table of common words, and from its shape."""

import re

from memci.archive.summarizers.words import STOPWORDS, estimate

Told = tuple[tuple[str, float], ...]  # what a text says, in lower case, each with its worth where it is said for the first time

_COMMON = """
able absolutely access across actually add added afternoon age ago agree ahead air allow alone along already alright although
always amazing amount another answer anybody anymore anyone anything anyway anywhere apart appreciate area around ask asked
asking assist assistance available away awesome baby back bad based basic beautiful became become began begin behind believe
best better beyond big bit black body bring brought build business busy buy call called came care careful case cause certain
certainly chance change check choose city class clear clearly close code comes coming common community complete completely
confirm connect consider contact continue control correct cost country couple course create created current currently cut daily
data date day days deal decide decided deep definitely depend describe detail details different difficult directly done door due
early easily easy effort end enjoy enjoyed enjoying enough ensure especially etc even evening event every everybody everyone
everything everywhere exactly example excellent except excited exciting expect experience explain explore extra eye face fact
fair fall false family fantastic far fast father favorite feel feeling feelings felt field file fill final finally find fine
finish first five follow following food force forget form forward found four free friend friends front full fun function future
game gave general getting give given gives giving glad goal goes going gonna good gorgeous gotta great group grow guess guy guys
half hand hands happen happened happy hard hardly hate head hear heard heart hello help helped helpful helping helps hey hi high
hold home hope hopefully hoping hot hour hours house huge hundred idea ideas image imagine immediately important improve include
including increase incredible information inside inspire inspiring instead interest interested interesting issue item job join
keep keeping kept key kid kids kind kinda knew know known large last late later latest learn learned least leave left less level
life light like liked likely line list listen little live lives living local long longer look looked looking looks lose lost lot
lots love loved lovely low luck main make makes making manage many matter maybe mean means meet memories mention message method
mind mine minute minutes miss mom moment money month months morning mother move name near nearly necessary need needed needs
never new news next nice night nobody none normal note nothing notice now null number offer often ok okay old ones online open
opened option options order others otherwise outside overall part particular particularly parts past pay peace people perfect
perhaps person personal photo pick picture pictures piece place places plan plans play pleasure point positive possible possibly
power pretty previous price probably problem proceed process provide provided provides public pull purpose put question
questions quick quickly quite rather reach read ready real really reason receive recent recently recommend related remember
remind request require required response rest result results return review right room run running safe said save saw say saying
says second see seem seemed seems seen self send sense sent serious set setting several shape share shared shares sharing shot
shots show showed shows side simple simply since single situation six size skill slow small somebody someone something sometimes
somewhere soon sorry sort sound sounds space special specific spend spent spot staff stand start started starting state stay
step steps stick still stop story strong stuff style suggest super support supportive sure surely surprise system take taken
takes taking talk talking team tell ten term text thank thankful thanks thing things think thinking third thought thoughts
thousand three thrilled throughout time times today together told tomorrow tonight took top total totally touch tough toward
track treat tried trip true truly try trying turn type understand unfortunately unique unless update use used useful user uses
using usually value various version via view visit wait walk want wanted wants watch way ways week weekend weeks welcome well
went whatever whenever white whole wish within without woman wonder wonderful wondering word words work worked working works
world worry worth wow write wrong yeah year years yep yesterday young yup zero
"""
_OTHER_LANGUAGES = """
aber als auch auf aus bei bin bis bitte da dann das dass dein dem den der des die dies diese diesem diesen dieser doch dort du
durch ein eine einem einen einer eines er es etwas für gibt habe haben hat hatte hier ich ihr im ist ja kann kein keine können
mal man mehr mein meine mich mir mit muss nach nicht noch nur oder ohne schon sehr sein seine sich sie sind über um und uns
unter vielen danke vom von vor war waren warum wenn wer werden wie wir wird wo wurde zu zum zur au aux avec bien ce ces cet
cette comme dans de deux dire dois donc elle elles en est et être eu fait faire il ils j'ai je la le les leur lui mais merci mes
moi mon ne non nos notre nous ont ou où oui par pas peut peux plus pour pourquoi qu que quel quelle qui sa sans se ses si son
sont suis sur ta te tes toi ton tout tous très tu un une vos votre vous voudrais c'est d'un d'une n'est qu'il était al algo ante
como con cual cuando cuál cómo del desde donde dónde el ella ellos entre era eres esa ese eso esta estaba estar este esto está
están estoy fue gracias ha hace hacer hasta hay las lo los mi mis mucho muy más nada ni nuestro o para pero por porque puede
puedes puedo qué quien quiero ser sí sin sobre solo soy su sus también tan tengo tiene todo tus una unos uno y ya yo anche
ancora che chi ci come cosa dal dalla degli dei della delle di dove è essere gli grazie ho io lei loro ma mio molto nel nella
per perché più poi può quale quando quello questa questo sei sono sta sul sulla tutto voglio ao aos até com dos e ela ele em
essa esse foi isso isto já lhe mas meu minha muito na nas não nós obrigado os pela pelo posso qual quem quero sem seu sua são só
também tem tenho tudo uma você aan bij dat deze dit een het hij hoe ik kan maar met mijn naar niet nog om ook op tot uit van
voor waar wat wel wij wil worden zij zijn zou bir bu çok daha değil gibi için ile ki mu nasıl olan olarak var а без бы был была
было были быть в вам вас во вот все всё вы где да для до его ее её если есть еще ещё же за и из или им их к как когда кто ли мне
мой мы на надо не нет ни но ну о об он она они от очень по под при с со так такой там то только тут ты у уже хочу что чтобы эта
это этот я من في على إلى عن هذا هذه ما لا أن إن هو هي مع كان التي الذي و
"""
_COMMON_CHINESE = """
你好 您好 非常 感谢 请帮 帮我 我想 想要 可不 不客 客气 推荐 荐您 为您 给您 您推 一家 有没 已经 现在 今天
明天 它的 他的 我的 你的 需要 希望 觉得 喜欢 时候 比较 可能 应该 不过 再见 抱歉 对不 不起 找到 查到 能不
帮忙 麻烦 再帮 出去 过去 起来 出来 事情 东西 问题 开心 祝您 愉快 明白 清楚 欢迎 没问 当然 ます です した
ない いる ある こと もの これ それ ため から まで よう
"""
FUNCTION_CHARACTERS = frozenset(  # of Chinese and Japanese, which join words rather than tell something
    "的了是我你您他她它们吗呢吧啊呀哦嗯么哪谁这那有个和与及或也都就还又很在把被让给对从到向于以而但着过之其请好要想能会去来不没再吧"
    "はがをにでともへのですますたてなしいるれらくけさこそかよねえおあう"
)

STOP_WORTH = 0.04
COMMON_WORTH = 0.3
RARE_WORTH = 1.0
KNOWN: dict[str, tuple[Told, float]] = {
    word: (((word, worth),), estimate(word))
    for words, worth in ((_COMMON.split(), COMMON_WORTH), (_OTHER_LANGUAGES.split(), STOP_WORTH), (sorted(STOPWORDS), STOP_WORTH))
    for word in words
}  # common words in lower case: what each says, and its estimated tokens
_COMMON_PAIRS = frozenset(_COMMON_CHINESE.split()) | STOPWORDS
_SHORT_WORTHS = (0.1, 0.1, 0.35, 0.6, 0.85)  # by length
_LONGEST_WORD = 22
_PAIR_WORTHS = (RARE_WORTH, COMMON_WORTH, STOP_WORTH)
CHUNK = re.compile("[{0}]|[^{0}]{{1,6}}".format("".join(sorted(FUNCTION_CHARACTERS))))  # one of them, or what stands between
_SUFFIXES = ("'s", "’s", "'re", "’re", "'ve", "’ve", "'ll", "’ll", "'m", "’m", "'d", "’d", "n't", "n’t")


def word_worth(word: str, *, starts_sentence: bool) -> float:
    """Return how much a word that is not ``KNOWN`` tells: 0 for nothing, 1 for a rare word, more for a name in a sentence."""
    plain = word.lower()
    if not plain.isalpha():
        for suffix in _SUFFIXES:
            if plain.endswith(suffix):
                plain = plain[: -len(suffix)] + ("n" if suffix.startswith("n") and plain != "can" + suffix[1:] else "")
                break
        if plain in KNOWN:
            return KNOWN[plain][0][0][1]
    length = len(plain)
    if length <= 1 or length > _LONGEST_WORD or not (plain.isalnum() or any(character.isalnum() for character in plain)):
        return STOP_WORTH
    if word[0].isupper() and (not starts_sentence or word.isupper()):
        return RARE_WORTH * 1.25
    return _SHORT_WORTHS[length] if length < len(_SHORT_WORTHS) and word.isascii() else RARE_WORTH


def pair_worth(pair: str) -> float:
    """Return how much a pair of neighbouring characters of a script without spaces tells, 0 to 1."""
    if pair in _COMMON_PAIRS:
        return STOP_WORTH
    return _PAIR_WORTHS[(pair[0] in FUNCTION_CHARACTERS) + (pair[-1] in FUNCTION_CHARACTERS)]
