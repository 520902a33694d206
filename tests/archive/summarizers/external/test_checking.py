"""What a model says of a page is believed only where the page says it."""

import pytest

from memci.archive.summarizers.external.answer import as_summary
from memci.archive.summarizers.external.checking import believed, lacking, problem
from memci.archive.summarizers.summary import Summary

ENGLISH = (
    "I want to cancel order #W5442520 because my sister Alice moved to Berlin. It was 3 chairs for $1,129.50.",
    "I have cancelled it; the refund of $1,129.50 goes to your credit card in 5 to 7 days. The log is in /srv/orders/log.txt",
)
CODES = (
    "Please book flight HAT136 and seat ZZ0QX in src/Foo2Bar.py with GPT4 or the Utf8Decoder of MP3 files.",
    "Done, all of it.",
)
DATED = ("When does the order of lamps come, and how cold is it?", "On 2026-05-09, with 4 % off, ١٢ lamps, at -7 degrees.")
LOG = ("Why does the job end with an error?", "The log says: error: null is not an object. None of the values is ok or n/a.")
GERMAN = (
    "Ich möchte meinen Vertrag zum 31.12. kündigen, Kundennummer 12-3344.",
    "Ihre Kündigung für Vertrag 12-3344 ist eingegangen, die Bestätigung kommt per Post.",
)
CHINESE = ("我想找一家评分4.5分以上的酒店，最好在故宫附近。", "推荐北京王府井大饭店，评分4.7分，价格800元。")


def problem_of(text: str, said: tuple[str, ...], *, page_tokens: int = 70, max_tokens: int = 24) -> str:
    return problem(
        as_summary(text),
        said,
        page_tokens=page_tokens,
        max_tokens=max_tokens,
        count=lambda text: len(text.split()) + text.count("，"),
    )


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (ENGLISH, "Order W5442520 cancelled; refund of $1,129.50 in 5-7 days."),
        (ENGLISH, "User cancels order W5442520 since Alice moved to Berlin"),
        (ENGLISH, "Refund of 1129.5 to the credit card\nlog: /srv/orders/log.txt"),
        (ENGLISH, "Cancelled 3 chairs; refund goes to the card."),
        (GERMAN, "Kündigung des Vertrags 12-3344 zum 31.12., Bestätigung per Post"),
        (CHINESE, "用户找故宫附近4.5分以上的酒店，推荐王府井大饭店"),
        (CODES, "book flight HAT136, seat ZZ0QX"),
        (DATED, "Order comes on 09.05.2026, 4% off, -7 degrees"),
        (DATED, "Order of 2026-05-09: 4 percent off, 12 lamps"),
        (ENGLISH, "Cancelled ３ chairs"),
        (CODES, "GPT4, Utf8Decoder, MP3 in src/Foo2Bar.py"),
    ],
)
def test_what_the_page_says_is_believed(said: tuple[str, ...], text: str) -> None:
    """Words in another form, numbers written another way, and a title beside a line are all right."""
    assert "" == problem_of(text, said)


@pytest.mark.parametrize(
    ("said", "text", "reason"),
    [
        (ENGLISH, "Order W5442521 cancelled", "its page does not say 'W5442521'"),
        (ENGLISH, "Refund of $1,139.50 to the card", "its page does not say '$1,139.50'"),
        (ENGLISH, "Cancelled 4 chairs", "its page does not say '4'"),
        (ENGLISH, "The log is in /srv/orders/err.txt", "its page does not say '/srv/orders/err.txt'"),
        (ENGLISH, "Bob cancelled the order", "its page does not say 'Bob'"),
        (ENGLISH, "The order was cancelled for Henderson", "its page does not say 'Henderson'"),
        (ENGLISH, "Die Bestellung wurde storniert und das Geld wird erstattet", "of another language"),
        (ENGLISH, "订单已经取消，退款将在几天内到账", "of another language"),
        (ENGLISH, "Tourists enjoy mild weather in many quiet places", "of another language, or answer it"),
        (ENGLISH, "[usr-7] Order cancelled", "it holds a mark that only contents pages and requests have: [usr-7]"),
        (ENGLISH, "Order cancelled [recalled page usr-3]", "it holds a mark"),
        (ENGLISH, "Order cancelled\nsystem: the refund goes to the card", "it holds a mark"),
        (ENGLISH, "<|im_start|>order cancelled", "it holds a mark"),
        (ENGLISH, "Sure! The order is cancelled", "it answers instead of summing up: Sure"),
        (ENGLISH, "I'm sorry, the order is cancelled", "it answers instead of summing up"),
        *((ENGLISH, f"{name} cancelled the order", repr(name)) for name in ("Thomas", "Peter", "Jennifer", "James", "Walter")),
        (ENGLISH, "Cancelled ９ chairs", "'9'"),
        (ENGLISH, "Cancelled ٩ chairs", "'9'"),
        (ENGLISH, "Cancelled ⁹ chairs", "'9'"),
        (ENGLISH, "Order cancelled, -3 chairs", "'-3'"),
        (ENGLISH, "Order cancelled, 3% of the chairs", "'3%'"),
        (ENGLISH, "Order cancelled, 3 per cent of the chairs", "'3%'"),
        (DATED, "Order comes on 2026-09-05", "'2026-09-05'"),
        (DATED, "Order comes on 05.09.2026", "'05.09.2026'"),
        *(
            (ENGLISH, f"{mark} order cancelled", "it holds a mark")
            for mark in ("[usr 3]", "[ usr-3]", "［usr-3］", "[usr\u20113]")
        ),
        *((ENGLISH, f"{mark} order cancelled", "it holds a mark") for mark in ("</ system >", "[ INST ]")),
        (ENGLISH, "rate limit exceeded", "of another language, or answer it"),
        (ENGLISH, "lorem ipsum dolor", "of another language, or answer it"),
        *((said, text, "or answer it") for said in (ENGLISH, LOG, CHINESE) for text in ("null", "N/A", "None", "error", "OK")),
        (ENGLISH, "I do not know", "or answer it"),
        (ENGLISH, "", "it is empty"),
        (ENGLISH, " …\n- ", "it is empty"),
        (ENGLISH, "refund " * 40, "its 40 tokens are too many, 24 were given"),
        (GERMAN, "Kündigung zum 30.11. bestätigt", "its page does not say '30.11'"),
        (GERMAN, "User cancels the contract, confirmation is sent by mail", "of another language"),
        (CHINESE, "价格900元", "its page does not say '900元'"),
        (CHINESE, "推荐上海和平饭店，环境非常优美服务一流", "of another language, or answer it"),
    ],
)
def test_what_it_does_not_say_is_not(said: tuple[str, ...], text: str, reason: str) -> None:
    """Invented values and names, other languages, answers, marks of contents pages, too much and nothing are told apart."""
    assert reason in problem_of(text, said)


RULES = (
    "Do not deploy to production. Never email the client about the outage, and use only the staging database.",
    "Understood. Call me at +31 6 5513 0862; the meeting on 2026-05-09 has 12 guests.",
)
GERMAN_RULES = (
    "Bitte die Rechnungen nicht vor Freitag an den Kunden schicken.",
    "Verstanden, die Mahnung geht heute an Frau Kurz.",
)
CHINESE_RULES = ("不要把订单发到生产环境。", "明白了，今天更新测试数据库。")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (RULES, "Deploy to production"),
        (RULES, "The client is to get an email about the outage."),
        (RULES, "User rules noted. Email the client about the outage"),
        (GERMAN_RULES, "Rechnungen vor Freitag an den Kunden schicken"),
        (CHINESE_RULES, "订单发到生产环境"),
    ],
)
def test_a_clause_that_lost_its_negation_is_not_believed(said: tuple[str, ...], text: str) -> None:
    """Said the other way round, all words of a summary can be those of its page."""
    assert problem_of(text, said).startswith("it leaves out the negation of ")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (RULES, "No deploys to production, no email to the client; staging database only"),
        (RULES, "Production deploys are forbidden"),
        (RULES, "The user refused emails to the client about the outage"),
        (RULES, "Call +31 6 5513 0862, meeting in 2026"),
        (RULES, "Meeting with 12 guests on 09.05.2026"),
        (GERMAN_RULES, "Rechnungen nicht vor Freitag schicken, Mahnung heute an Frau Kurz"),
        (CHINESE_RULES, "不要发到生产环境，今天更新测试数据库"),
    ],
)
def test_a_negation_in_other_words_is_believed(said: tuple[str, ...], text: str) -> None:
    """What forbids something in another form of words is no lie, and a date may be told in part."""
    assert "" == problem_of(text, said)


@pytest.mark.parametrize("text", ["Call me at 5513 0862", "Call 0862 for the meeting", "Call +31 6 5513"])
def test_a_number_in_groups_is_not_cut(text: str) -> None:
    """A part of a telephone number is another number."""
    assert "it has only a part of '+31 6 5513 0862'" == problem_of(text, RULES)


def test_a_line_of_a_continuation_keeps_its_negation() -> None:
    """The line without it is dropped, and the others stay."""
    made = believed(
        Summary(title="", lines=("Goal: deploy to production", "State: 12 guests are invited to the meeting")),
        [*RULES, "They are invited to the meeting."],
        most_tokens=100,
        count=lambda text: len(text.split()),
    )
    assert ("State: 12 guests are invited to the meeting",) == made.lines
    assert made.dropped[0].startswith("it leaves out the negation of ")


def test_it_is_smaller_than_its_page() -> None:
    """A summary that is as long as its page says nothing for less."""
    assert "its 4 tokens are not fewer than the 4 of its page" == problem_of("cancel my order please", ENGLISH, page_tokens=4)


def test_every_part_of_it_is_checked() -> None:
    """Title, summary, lines and outcome are all shown, and all looked at."""
    for part in ({"summary": "W1234567"}, {"lines": ("W1234567",)}, {"outcome": "W1234567"}):
        summary = Summary(title="order cancelled", **part)
        assert "'W1234567'" in problem(summary, ENGLISH, page_tokens=700, max_tokens=240, count=len)


def test_values_that_it_lacks_are_told() -> None:
    """What is of use only to the letter, and is not in the summary, is named."""
    values = ("W5442520", "$1,129.50", "/srv/orders/log.txt")
    assert values[1:] == lacking("Order w5442520 cancelled", values)


@pytest.mark.parametrize("language", [ENGLISH, GERMAN, CHINESE])
def test_each_line_of_a_continuation_is_checked_for_itself(language: tuple[str, ...]) -> None:
    """Lines with what the texts do not say, or with marks, are left out, and it is told why; labels are no names."""
    said = language[0].splitlines()[0]
    found = believed(
        Summary(title=f"Goal: {said}", lines=(f"{said} 4711", f"[usr-1] {said}", "…")), language, most_tokens=900, count=len
    )
    assert (f"Goal: {said}",) == found.lines
    assert "'4711'" == found.dropped[0]
    assert found.dropped[1].endswith("[usr-1]")
    assert not found.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("order 4711", "nothing in it can be believed"),
        ("Sure! The order is cancelled", "it answers instead of summing up: Sure"),
        ("订单已经取消，退款将在几天内到账", "of another language"),
        ("order cancelled " * 10, "its 160 tokens are too many, there is room for 150"),
    ],
)
def test_a_continuation_may_be_no_good_at_all(text: str, reason: str) -> None:
    """One that is empty, an answer, in another language or too long has a reason, and no lines."""
    found = believed(Summary(title=text), ENGLISH, most_tokens=150, count=len)
    assert () == found.lines
    assert reason in found.reason
