"""Tests that no line says what its page did not: what would be wrong if a part were missing is shown whole or not at all."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.summarizers import whole as whole_texts
from memci.archive.summarizers.extractive import ExtractiveSummarizer
from memci.archive.summarizers.literals import LiteralKind
from memci.archive.summarizers.whole import beginning, stretches
from memci.messages.formats.openai import facts
from memci.quality.scoring.truth import cut_numbers, inverted

RULES = (
    "Do not deploy the billing service to production",
    "Never email the client about the outage in Lisbon",
    "Deploy on Friday unless the staging database fails",
    "Only use the metric units of the report",
    "Bitte keine Rechnungen an den Buchhalter schicken",
    "Ruf den Kunden nie vor dem Frühstück an",
    "N'envoyez jamais la facture au comptable",
    "No llames nunca al cliente durante la cena",
    "Non spedire mai la fattura senza firma",
    "Никогда не отправляйте счета бухгалтеру",
    "Без подписи договор действует только неделю",
    "Μην στέλνετε ποτέ τιμολόγια στον λογιστή",
    "لا ترسل الفاتورة إلى المحاسب أبدا",
    "אל תשלחו את החשבונית לרואה החשבון",
    "बिना हस्ताक्षर के बिल मत भेजो",
    "请不要把发票寄给会计",
    "请求書を会計に送ってはいけません",
    "송장을 회계사에게 보내지 않습니다",
    "ห้ามส่งใบแจ้งหนี้ให้นักบัญชี",
)
PLAIN = (
    "The harbour museum opens at noon",
    "My sister paints lighthouses in Gothenburg",
    "Die Ausstellung zeigt alte Landkarten aus Lübeck",
    "Пекарня на углу продаёт ржаной хлеб",
    "Το καράβι φεύγει από τον Πειραιά",
    "المكتبة تفتح أبوابها صباحا",
    "הספרייה נפתחת בשעות הבוקר",
    "पुस्तकालय सुबह खुलता है",
    "图书馆早上开门，周末也营业",
    "図書館は朝に開きます",
    "도서관은 아침에 문을 엽니다",
    "ห้องสมุดเปิดตอนเช้า",
)
NUMBERS = (
    "Please ring me at +31 6 5513 0862 from now on",
    "I paid 1 250 000 EUR for the house by the lake",
    "His number is 06 12 34 12 78 at work",
    "The dose is 2.5 mg twice a day for 14 days",
    "The flight on 5 June 2026 leaves at 10:45 from gate B12",
    "Version 3.11.2-rc1 needs 8 GB of memory",
    "It was −12 °C and took 4m 13s",
    "房租是每月3500元，电话010-66552134",
)
SENTENCES = st.lists(st.sampled_from([*RULES, *PLAIN, *NUMBERS]), min_size=1, max_size=9, unique=True)
MARKS = st.sampled_from([". ", "! ", "\n", "。", "; "])


def lines_of(asked: str, answered: str, max_tokens: int) -> Iterator[str]:
    """Yield all that is shown of a page: its row, and the texts of its entry."""
    messages = [facts({"role": "user", "content": asked}), facts({"role": "assistant", "content": answered})]
    summary = ExtractiveSummarizer().summarize(messages, max_tokens=max_tokens)
    yield "".join(lead + text for text, _, lead in summary.words)
    yield from (summary.title, summary.summary, summary.outcome, *summary.lines)


def faults_of(asked: str, answered: str, max_tokens: int) -> list[str]:
    said = f"{asked}\n{answered}"
    return [
        fault for line in lines_of(asked, answered, max_tokens) for fault in (*cut_numbers(said, line), *inverted(said, line))
    ]


@given(SENTENCES, SENTENCES, MARKS, st.integers(12, 120))
def test_no_line_says_what_the_page_did_not(asked: list[str], answered: list[str], mark: str, max_tokens: int) -> None:
    """In any script, no number is cut and no clause loses its negation, in rows, titles and lines."""
    assert [] == faults_of(mark.join(asked), mark.join(answered), max_tokens)


def test_the_yardstick_sees_what_it_is_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only literal values are kept whole, as they once were, both kinds of fault are found."""
    for finder in ("_numbers", "_names", "limited_clauses"):
        monkeypatch.setattr(whole_texts, finder, lambda _: [])
    chance = random.Random(1)  # noqa: S311 (chance, not secrets)
    found = [faults_of(". ".join(chance.sample([*RULES, *NUMBERS], 6)), "Noted.", 40) for _ in range(40)]
    assert 20 < sum(map(bool, found))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Use +31 6 5513 0862, please.", ["+31 6 5513 0862"]),
        ("I paid 1 250 000 EUR for 12 chairs.", ["1 250 000 EUR", "12 chairs"]),
        ("Call (020) 7946 0018 or 06 12 34 12 78.", ["(020) 7946 0018", "06 12 34 12 78"]),
        ("It was -12.5 °C at .5 bar, and took 4m 13s.", ["-12.5 °C", ".5 bar", "4m 13s"]),
        ("Seats 41 to 44, from 9 to 5, in 3 of 12 coaches.", ["41 to 44", "9 to 5", "3 of 12 coaches"]),
        ("Less than 5 of the 30 users renewed, more than 20 left.", ["Less than 5 of the 30 users", "more than 20 left"]),
        ("It is too coarse. Me too! See a.py rather than b.py.", ["too coarse", "See a.py rather than b.py"]),
        ("Hey Lucas Brown, is New York far?", ["Lucas Brown", "New York"]),
        ("Do not deploy. Ship it.", ["Do not deploy"]),
        ("I prefer metric units, not imperial ones.", ["I prefer metric units, not imperial ones"]),
        (
            "It cleans up all sessions without a\n  checkpoint of their own\nand ends.",
            ["It cleans up all sessions without a\n  checkpoint of their own"],
        ),
        ("I leave after 8 am, with at least 2 bags and up to $600.", ["after 8 am", "at least 2 bags", "up to $600"]),
        ("评分4.5分以上，最多3人", ["4.5分以上", "最多3人"]),
        ("2 failed, 30 passed in 3.1s (see log)", ["2 failed, 30 passed in 3.1s"]),
        ("Fly from Seattle (SEA) to Mars.", ["Seattle (SEA)"]),
        ("The bus takes 2 h 35 min at 30 km/h.", ["2 h 35 min", "30 km/h"]),
        ("From 30 s to 45 s for 40 x 30 x 20 cm.", ["30 s to 45 s", "40 x 30 x 20 cm"]),
        (
            "IBAN DE89 3704 0044 0532 0130 00 of Jürgen von der Leyen",
            ["IBAN DE89 3704 0044 0532 0130 00", "Jürgen von der Leyen"],
        ),
        ("at 00:1B:44:11:3A:B7 and 2001:db8::ff00:42:8329", ["00:1B:44:11:3A:B7", "2001:db8::ff00:42:8329"]),
        ("call 0171 / 555 12 34 or ext. 88", ["0171 / 555 12 34", "ext. 88"]),
        ("es kostet 12 500 руб. 50 коп. am 3. März 2025", ["12 500 руб. 50 коп.", "3. März 2025"]),
        ("see C:\\Users\\Ann Smith\\tax return.pdf first", ["C:\\Users\\Ann Smith\\tax return.pdf"]),
        ("Ms. O'Neill paid £45.50, Mr. van Dijk £12.20", ["Ms. O'Neill", "£45.50", "Mr. van Dijk", "£12.20"]),
        ("Wir haben kein Zimmer für den 3. Oktober bekommen.", ["Wir haben kein Zimmer für den 3. Oktober bekommen"]),
        ("Nicht ohne Frau Dr. Weiß kündigen. Danke.", ["Nicht ohne Frau Dr. Weiß kündigen"]),
        ("Die Heizung bleibt aus, es sei denn es friert.", ["Die Heizung bleibt aus, es sei denn es friert"]),
        ("We ship to all of Europe other than Norway.", ["We ship to all of Europe other than Norway"]),
        ("Had the bank approved it, we would have moved.", ["Had the bank approved it, we would have moved"]),
        (
            "We almost bought it. Wir hätten fast zugesagt. 我差点迟到了。",
            ["We almost bought it", "Wir hätten fast zugesagt", "我差点迟到了"],
        ),
        ("They had the car, and we were there.", []),
        ("文件在版本v8.3.1中报错1,250.50。", ["v8.3.1", "1,250.50"]),
        ("应于5 March到达，March 16, 2025之前", ["5 March", "March 16, 2025之前"]),
        ("请检查Jean-Luc Moreau的订单。Владимир Иванов来了", ["Jean-Luc Moreau", "Владимир Иванов"]),
        ("Omar al-Rashid met Muhammad ibn Musa al-Khwarizmi.", ["Omar al-Rashid", "Muhammad ibn Musa al-Khwarizmi"]),
        ("At Casa do Conto, for the Lord of the Isles.", ["Casa do Conto", "Lord of the Isles"]),
        ("Everyone but Chloe paid. Dejé de tomar aspirina.", ["Everyone but Chloe paid", "Dejé de tomar aspirina"]),
        ("Der Arzt schloss Krebs aus. Far from done.", ["Der Arzt schloss Krebs aus", "Far from done"]),
        ("Timeout after 30 s.", ["after 30 s"]),
        ("Neposílejte balík panu před pátkem.", ["Neposílejte balík panu před pátkem"]),
        ("Faturayı ödemeyin, bekleyin.", ["Faturayı ödemeyin, bekleyin"]),
        ("Pay, provided that she agrees. It lacks encryption.", ["Pay, provided that she agrees", "It lacks encryption"]),
        ("It was on 3 March. Then we left.", ["3 March"]),
        ("能玩3、4个小时的景点，3～5人", ["3、4个", "3～5人"]),
        ("I like elegant dances like ballet, and cities such as Rome.", ["dances like ballet", "cities such as Rome"]),
        ("A comparison of git-notes vs trailers", ["git-notes vs trailers"]),
        ("- **Cabin:** Economy\n- Seats: 12 and 14\nCabin: none", ["Cabin:** Economy", "Seats: 12 and 14", "Cabin: none"]),
        ("| `trim` | 85.7% |\na.go:516\t\ttrim\t\t66.7%", ["`trim` | 85.7%", "a.go:516", "66.7%"]),
        ("(1859 - 140) * 2 + (996 - 141)", ["(1859 - 140) * 2 + (996 - 141)"]),
        ("On 2024-05-19, 10 - 20 of them.", ["2024-05-19", "10", "20"]),
        ("It can be adjusted or removed to save; the rest is to be charged.", ["can be adjusted or removed", "to be charged"]),
        ("La factura debe ser pagada. Sie sollte bezahlt werden.", ["debe ser pagada", "bezahlt werden"]),
        ("[Request interrupted by user]\n[a] b", ["[Request interrupted by user]"]),
        ("推荐您去北京饭店、北京都季商旅酒店、7天酒店(西站店)。", ["北京饭店", "北京都季商旅酒店", "7天酒店(西站店)"]),
        ("Never do this:\n- deploy\n- email\n\nFine", ["Never do this:\n- deploy\n- email"]),
        ("If you like, here is the list:\n- deploy\n- email", ["If you like, here is the list"]),
        ("价格不错，有没有早餐？价格高不？", []),
        ("请不要打电话。谢谢", ["请不要打电话"]),
    ],
)
def test_what_is_shown_whole(text: str, whole: list[str]) -> None:
    """Numbers with all groups and what they count, names of several words, and clauses with what limits them."""
    assert whole == [text[start:end] for start, end, _ in stretches(text)]


def test_a_condition_goes_with_what_it_is_for() -> None:
    """In a long sentence the parts between commas stand for themselves, but for a condition, a short part and a list."""
    talk = "The committee met in the old harbour museum and talked about the colours of the new ferry for three hours"
    said = {
        f"{talk}, and if it rains, we stay at home": ["and if it rains, we stay at home"],
        f"{talk}, do not, under any circumstances, pay": ["do not, under any circumstances, pay"],
        f"{talk}, buy no milk, eggs, or nuts": ["buy no milk, eggs, or nuts"],
        f"{talk}, she said": [],
    }
    for text, whole in said.items():
        found = [text[start:end] for start, end, kind in stretches(text) if kind is LiteralKind.CLAUSE]
        assert whole == found


def test_what_is_too_long_is_not_shown() -> None:
    """A clause of more than a row has room for is left out, as a part of it would be wrong."""
    text = "never " + "turn the old brass valve of the boiler in the cellar " * 6
    assert [LiteralKind.BLOB] == [kind for _, _, kind in stretches(text)]
    assert all("valve" not in line for line in lines_of(text, "Noted, the boiler is in order.", 60))


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("short", 5, "short"),
        ("Call the office at +31 6 5513 0862 before noon", 30, "Call the office at…"),
        ("The museum opens at ten. Do not bring dogs into it", 40, "The museum opens at ten.…"),
        ("Never, in any of the rooms of this house, light a fire", 30, "Never, in any of the rooms of…"),
        ("Fly to New York in May, please", 14, "Fly to…"),
        ("x" * 60, 20, "x" * 19 + "…"),
        ("请把所有的订单都发到上海的仓库去", 8, "请把所有的订单…"),
        ("run the job; then wait", 13, "run the job…"),
    ],
)
def test_a_beginning_ends_between_words(text: str, most: int, shown: str) -> None:
    """It ends within no number, name or clause with a negation, but for one that leaves nothing else."""
    assert shown == beginning(text, most)
    assert len(shown) <= most


@given(st.text(alphabet="ab 0.,;不别\n", max_size=80), st.integers(2, 90))
def test_a_beginning_is_as_short_as_wanted(text: str, most: int) -> None:
    """Whatever the text, it is what the text begins with, and a mark where that is not all of it."""
    shown = beginning(text, most)
    assert len(shown) <= most or shown == text
    assert shown == text or (shown.endswith("…") and text.startswith(shown[:-1]))


def test_the_user_speaks_again() -> None:
    """In the row of a page in which the user speaks twice, it says who says what."""
    said = [("user", "Where is the harbour museum?"), ("assistant", "In Gothenburg."), ("user", "And the lighthouse?")]
    messages = [facts({"role": role, "content": content}) for role, content in said]
    words = ExtractiveSummarizer().summarize(messages, max_tokens=60).words
    assert "harbour museum? → In Gothenburg | user: And the lighthouse?" == "".join(
        lead + text for text, _, lead in words
    ).lstrip(", ")


PIECES = ("x", "A-", "not, ", "if, a b ", "1 ", "(1", "n't", "not a\n\n", "Aa'", "1 to 2 ", "… not", "- a: ", "| a ", "\t1")


@pytest.mark.parametrize("piece", [*PIECES, "not:\n- a\n", "请、", "请(", "a vs ", "can be ", "1 + "])
def test_no_text_takes_long(piece: str) -> None:
    """Text that repeats one piece is looked at once: what took the square of its length would not end here."""
    text = piece * (120_000 // len(piece))
    assert all(start < end <= len(text) for start, end, _ in stretches(text))
