"""Which sentences of the user's set a rule, and which do not."""

from functools import partial

import pytest

from memci.archive.rules import detection
from memci.archive.rules.detection import MOST_RULES, RuleKind, rules_in
from tests.engine.core.test_short_ways import called

RULES = (
    "Don't push to the remote until I have reviewed the branch.",
    "Please don't touch anything under legacy/, another team owns it.",
    "Stop using emojis in your answers.",
    "You're not allowed to run anything against the production database.",
    "No new dependencies without asking me first.",
    "Do not send any emails on my behalf; draft them and let me send them myself.",
    "Quote every price with VAT included.",
    "Whenever you change a migration, run the full test suite before telling me it's done.",
    "Show me the plan before you edit any file.",
    "If something is out of stock, tell me right away instead of offering an alternative.",
    "Please always answer in German.",
    "I'd rather have short answers.",
    "I prefer bullet points over long paragraphs.",
    "Aisle seats work best for me, ideally near the front.",
    "We use pnpm here, not npm.",
    "In this repo we indent with tabs, and strings are single quoted.",
    "Tests live next to the module they test, not in a separate folder.",
    "Call me Dr. Weber.",
    "My pronouns are they/them, by the way.",
    "I'm allergic to peanuts, so never suggest a recipe with them.",
    "My husband uses a wheelchair, so everything has to be step-free.",
    "It has to run on Python 3.8, our customers cant update.",
    "Keep in mind that our fiscal year starts in July.",
    "Never exceed the budget of 500 dollars without my explicit approval.",
    "Bitte nichts pushen, bevor ich drübergeschaut habe.",
    "Mir sind kurze Antworten lieber.",
    "Wir duzen unsere Kunden grundsätzlich.",
    "Denk dran, dass ich freitags nicht arbeite.",
    "Ne modifie pas les fichiers du dossier vendor, s'il te plaît.",
    "No hagas ningún commit sin preguntarme antes.",
    "En este proyecto los nombres de las tablas van en singular.",
    "Não mexa no arquivo de configuração do nginx, por favor.",
    "Prefiro respostas diretas, sem introdução.",
    "Non usare anglicismi quando scrivi per me.",
    "Sono incinta, quindi niente pesce crudo né salumi.",
    "Verwijder geen bestanden zonder het eerst te vragen.",
    "Bij ons heten de testbestanden altijd naam.spec.ts.",
    "Podawaj mi ceny razem z bagażem rejestrowanym.",
    "Syn ma uczulenie na jajka i orzechy.",
    "Ничего не удаляй из базы без моего разрешения.",
    "Мне больше нравятся ответы без длинных списков.",
    "Benim onayım olmadan hiçbir paketi güncelleme.",
    "Bana Selin Hanım diye hitap edin lütfen.",
    "没有我的同意，不要改数据库的表结构。",
    "以后所有价格都请换算成人民币。",
    "叫我老陈就行。",
    "私が確認するまでmainにマージしないでください。",
    "えびとかにのアレルギーがあるんだよね。",
    "내가 검토하기 전에는 원격 저장소에 푸시하지 마.",
    "모든 금액은 부가세 별도라는 점을 기억해 주세요.",
    "لا تحذف أي ملف قبل أن تسألني.",
    "أفضّل الإجابات القصيرة والمباشرة.",
    "मुझसे पूछे बिना कोई फ़ाइल मत मिटाना।",
    "मुझे आसान हिंदी में छोटे जवाब पसंद हैं।",
)
NONE = (
    "Don't include the second one in this list, it's already been paid.",
    "Please make it shorter, about half of what it is now.",
    "Just this once use tabs, the file was like that already.",
    "Never mind, I found it myself.",
    "Don't worry about it, it was only a typo.",
    "Should I always use pnpm in a monorepo?",
    "My mother always said never to trust a cheap hotel.",
    "I never liked peanuts as a kid but whatever.",
    "We always lose against them!",
    "Never say never!",
    "Don't give up! You'll pass the next one.",
    "Our neighbours are vegan and their kids are allergic to everything.",
    "The README says to always run make clean before building.",
    "He always answers in German.",
    "I always forget how that command works.",
    "Let me know if you need any advice.",
    "Kopf hoch, nicht aufgeben!",
    "Mein Opa hat immer gesagt, man soll nie mit leerem Magen einkaufen.",
    "Ne t'inquiète pas, ce n'est pas grave.",
    "Ma grand-mère ne mangeait jamais de viande le vendredi.",
    "¡No te rindas, que ya casi lo tienes!",
    "Non preoccuparti, è solo un errore.",
    "Nie poddawaj się, jutro będzie lepiej!",
    "Не сдавайся, у тебя всё получится!",
    "别灰心，下次一定能考过！",
    "这次先不要加第二张图，直接导出给我。",
    "大丈夫、気にしないで。",
    "포기하지 마! 다음에는 꼭 붙을 거야.",
    "لا تستسلم، ستنجح في المرة القادمة!",
    "हिम्मत मत हारो, अगली बार ज़रूर जीतोगे!",
)

WITHOUT_CUE = (
    "Prices only make sense to me with tax in them, so give them that way.",
    "My knees are shot, so stairs are out for me.",
    "Zwei Sätze reichen mir als Antwort völlig.",
    "拿不准的地方直说，别瞎猜。",
    "交给我之前先跑一遍代码检查。",
)
SAID_AGAIN = (
    "Vergiss nicht: Der Vermieter darf von dem Ganzen nichts erfahren.",
    "In unserem Haus sagen wir Gäste, niemals Kunden.",
    "Dans notre clinique on dit patient, jamais malade.",
    "De mi ex no hablamos, ¿vale?",
    "我说什么你都要站在反方来反驳。",
)
ORDINARY = (
    "My sister got a new job and she loves it.",
    "Family means everything to me.",
    "Change the colour of the button to green.",
    "Am Wochenende waren wir mit den Kindern am See, das war herrlich.",
    "Schieb den zweiten Absatz über den ersten.",
    "El fin de semana estuvimos en la playa con los niños.",
    "Añade una prueba para la entrada vacía.",
    "Ma sœur a un nouveau travail et elle adore.",
    "Passe la couleur du bouton en vert.",
    "上周末我们带孩子去海边玩了。",
    "把第二段挪到第一段前面。",
    "You are welcome.",
    "Case closed from my side.",
    "The rental car is a Skoda from the airport, from the 15th, 52 euros a day with a child seat.",
    "We drive to Coimbra on the 15th, two hours, lunch at Zé Manel, they take no reservations.",
    "Das Museum öffnet um neun, unsere Karten sind für 10:20.",
    "En Oporto dormimos en la Rua da Boavista, habitación 6, 171 euros la noche.",
)


@pytest.mark.parametrize("rule", SAID_AGAIN)
def test_a_rule_may_look_like_a_label_a_report_or_a_question(rule: str) -> None:
    """A word before a colon, what "we say", a question tag, and 什么 for "whatever" do not make it another's words."""
    assert [rule] == [each.text for each in rules_in(rule)]


def test_words_quoted_one_by_one_are_part_of_the_rule() -> None:
    """A longer quotation is somebody else's."""
    rule = 'I\'m in Canada: always say "toque" and "chesterfield", never "beanie" or "couch".'
    assert [rule] == [each.text for each in rules_in(rule)]


@pytest.mark.parametrize("rule", WITHOUT_CUE)
def test_a_rule_in_other_words_is_found_by_its_wording(rule: str) -> None:
    """No cue is in it: the model decides, in a short message, beside a question too."""
    assert [rule] == [each.text for each in rules_in(rule)]
    assert [rule] == [each.text for each in rules_in(f"{rule} What is the time?")]


def test_wording_alone_does_not_decide_in_a_long_message() -> None:
    """Who writes at length tells of something, or hands it over."""
    told = "The office has many rooms and a garden with old trees. " * 12
    assert [] == rules_in(f"{told}{WITHOUT_CUE[2]}")


@pytest.mark.parametrize("said", ORDINARY)
def test_ordinary_sentences_set_no_rule(said: str) -> None:
    """News, feelings, plans, facts, and what is to be done now."""
    assert [] == rules_in(said)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_found_word_for_word(rule: str) -> None:
    """It stands as it was said, beside a question and a request that is none."""
    found = rules_in(f"What is the time?\n{rule}\nShow me the log of yesterday.")
    assert [rule] == [each.text for each in found]


@pytest.mark.parametrize("said", NONE)
def test_what_holds_only_now_or_is_told_is_no_rule(said: str) -> None:
    """Requests for one time, proverbs, encouragement, questions, and what others say or do."""
    assert [] == rules_in(said)


def test_a_sentence_that_announces_a_rule_brings_it() -> None:
    """Behind a colon, on the next line, or as the next sentence; of a list, what is a rule."""
    for mark in (":\n", ". "):
        announced = f"For the rest of this session{mark}Only whole sentences."
        assert any("Only whole sentences." in each.text for each in rules_in(announced))
    listed = "Ground rules:\n- No new dependencies without asking me.\n- Keep commits small, in the imperative.\nWhy is it slow?"
    assert ["No new dependencies without asking me.", "Keep commits small, in the imperative."] == [
        each.text for each in rules_in(listed)
    ]


@pytest.mark.parametrize(
    ("stated", "asked"),
    [
        ("I want to keep my app small, so I prefer libraries without dependencies", ", how can I add a login page?"),
        ("We use pnpm here, never npm", ", can you add the new library?"),
        ("Ich bevorzuge kurze Antworten", ", kannst du mir den Fehler erklären?"),
        ("以后都用中文回答我", ",能不能解释一下这个报错?"),
    ],
)
def test_a_question_behind_a_rule_is_no_part_of_it(stated: str, asked: str) -> None:
    """A sentence that states something first, and then asks."""
    assert [stated] == [each.text for each in rules_in(stated + asked)]


@pytest.mark.parametrize(
    "rule",
    [
        "Always write unit tests, comment every public function.",
        "Never delete anything in prod, should you need to, ask me first.",
        "From now on always tell me what you changed, what is left, and how to test it.",
    ],
)
def test_a_rule_that_asks_nothing_is_whole(rule: str) -> None:
    """Words that may begin a question are part of it."""
    assert [rule] == [each.text for each in rules_in(rule)]


def test_neighbours_of_one_kind_are_one_rule() -> None:
    """They may need each other; a rule of another kind is one of its own."""
    found = rules_in("Don't push to main. Don't delete branches without asking. Call me Ann.")
    assert [
        ("Don't push to main. Don't delete branches without asking.", RuleKind.PROHIBITION),
        ("Call me Ann.", RuleKind.IDENTITY),
    ] == [(each.text, each.kind) for each in found]


def test_many_rules_at_once_are_a_document() -> None:
    """Who says more than some rules in a message hands over a text."""
    said = "\n".join(f"- Never open door {number} without asking." for number in range(MOST_RULES + 1))
    assert MOST_RULES == len(rules_in(said.partition("\n")[2]))
    assert [] == rules_in(said)


def test_no_text_takes_long() -> None:
    """The work is bounded, whatever the text: counted, not timed."""
    for text in (
        "never " * 20_000,
        "a" * 40_000,
        "_" * 40_000,
        "-" * 40_000,
        "a:" * 20_000,
        "(" * 40_000,
        '"' * 40_000,
        "<a>" * 20_000,
        "不要" * 20_000,
        "x\n\n" * 20_000,
    ):
        assert 20_000 > called(partial(rules_in, text)).total()
    assert detection.rules_in("") == []
