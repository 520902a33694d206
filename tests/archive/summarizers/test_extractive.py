"""Tests of the extractive summariser: what its lines and headline hold."""

import json
from typing import Any

import pytest

from memci.archive.summarizers.extractive import ExtractiveSummarizer
from memci.archive.summarizers.summary import Summary
from memci.archive.summarizers.words import estimate, words
from memci.messages.formats.openai import facts
from tests.engine.wire import assistant, user

INVOICES: list[dict[str, Any]] = [
    {"role": "user", "content": "how do I export the March invoices as CSV?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "export_invoices", "arguments": '{"month": "2026-03"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "412 rows written to invoices-2026-03.csv"},
    {"role": "assistant", "content": "Use Settings › Billing › Export; the limit is 10k rows."},
]
LONG_ANSWER = "The committee discussed a wide variety of procedural considerations regarding municipal drainage. " * 30
TRACEBACK = """Running the suite now
Traceback (most recent call last):
  File "/app/src/billing.py", line 77, in charge
    total = amounts[user]
KeyError: 'amelia_rossi_1297'
"""


def summarize(messages: list[dict[str, Any]], max_tokens: int = 64) -> Summary:
    return ExtractiveSummarizer().summarize([facts(message) for message in messages], max_tokens=max_tokens)


def tool_page(name: str, arguments: object, result: str) -> list[dict[str, Any]]:
    call = {"id": "x", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        user("go on please"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "x", "content": result},
    ]


def test_one_line_an_entry_with_its_role() -> None:
    """Each entry has one line, in order, that begins with who speaks, with the tool's name for a result and a call."""
    starts = [line.split(":")[0].split("(")[0] for line in summarize(INVOICES).lines]
    assert ["user", "assistant → export_invoices", "tool export_invoices", "assistant"] == starts


def test_short_pages_are_kept_nearly_whole() -> None:
    """With room enough, a short chat keeps nine tenths of its words, in the title or the lines."""
    page = [user("I went to a pottery workshop in Lisbon yesterday."), assistant("Lovely! What did you make at the workshop?")]
    summary = summarize(page, 200)
    kept = set(words(" ".join((summary.title, *summary.lines))))
    said = words("I went to a pottery workshop in Lisbon yesterday. Lovely! What did you make at the workshop?")
    assert 0.9 * len(said) <= sum(word in kept for word in said)


def test_the_call_keeps_short_literal_arguments_whole() -> None:
    """A call is shown with its name and its short arguments as they were given."""
    lines = summarize(tool_page("get_user_details", {"user_id": "amelia_rossi_1297"}, "ok")).lines
    assert "assistant → get_user_details(user_id=amelia_rossi_1297)" in lines


def test_a_result_finds_the_nearest_unanswered_call_with_its_id() -> None:
    """Where ids repeat in a page, each result is named after its own call."""
    first = tool_page("find_flight", {"from": "Lisbon"}, "flight TAP432 departs 07:45")
    second = tool_page("book_flight", {"number": "TAP432"}, "seat 14C confirmed for Okonkwo")
    lines = summarize(first + second, 200).lines
    assert ["find_flight", "book_flight"] == [
        line.split(":")[0].removeprefix("tool ") for line in lines if line.startswith("tool")
    ]


def test_json_results_keep_pairs_without_braces() -> None:
    """Of a JSON result the telling keys and values are kept as they stand, numbers as they were written, without braces."""
    result = '[{"reservation_id": "SI5UKW", "status": "confirmed", "total": 12.50, "meta": {"note": null}}]'
    line = summarize(tool_page("get_reservation", {}, result)).lines[-1]
    assert "reservation_id: SI5UKW" in line
    assert "total: 12.50" in line
    assert not set('{}[]"') & set(line)


def test_error_lines_of_a_traceback_are_kept() -> None:
    """The line that names the error and what it is about survives in a long result."""
    noise = "\n".join(f"collected item number {number} without any trouble" for number in range(300))
    line = summarize(tool_page("run", {}, f"{noise}\n{TRACEBACK}{noise}"), 40).lines[-1]
    assert "KeyError: 'amelia_rossi_1297'" in line


def test_literal_values_deep_inside_a_huge_result_are_found() -> None:
    """An error name that occurs once in the middle of a megabyte is on the result's line."""
    noise = "some ordinary words that repeat themselves\n" * 5_000
    summary = summarize(tool_page("run", {}, noise[:100_000] + "InvoiceLockedError at billing.py:77\n" + noise * 4), 64)
    assert "InvoiceLockedError" in " ".join(summary.lines)


def test_literal_values_outlive_ordinary_words() -> None:
    """In a tight room the values are still there, whole, when the words around them are gone."""
    text = f"{LONG_ANSWER} Your reservation SI5UKW costs $1,299.00 and leaves on May 20th. {LONG_ANSWER}"
    line = " ".join(summarize([user("what about my trip?"), assistant(text)], 48).lines)
    assert all(value in line for value in ("SI5UKW", "$1,299.00", "May 20th"))


def test_a_value_is_shown_whole_or_not_at_all() -> None:
    """No room is so small that a part of a URL stands on a line."""
    url = "https://example.com/reports/2026/march/invoices.csv?token=abc123"
    for room in range(4, 60, 4):
        text = " ".join(summarize([user(f"please look at {url} for me today")], room).lines)
        assert url in text or "example" not in text


def test_the_user_keeps_most_room_beside_a_long_answer() -> None:
    """Beside an answer many times longer than the question, the question's rare words are all kept."""
    question = "which pump suits the Ebersberg reservoir after the sluice was widened?"
    lines = summarize([user(question), assistant(LONG_ANSWER)], 48).lines
    kept = " ".join(lines[:1])
    assert all(
        word in kept + summarize([user(question)]).title for word in ("pump", "Ebersberg", "reservoir", "sluice", "widened")
    )


def test_chinese_values_and_names_are_kept() -> None:
    """In Chinese the price, the rating and the phone number are kept whole, and the name of the place with them."""
    page = [
        user("你能帮我找一家评分4.5分以上，价格100-200元的酒店吗？"),
        assistant("推荐您去北京天伦王朝酒店，电话是010-66550888，祝您旅途愉快。"),
    ]
    text = " ".join(summarize(page, 60).lines)
    assert all(value in text for value in ("4.5分", "100-200元", "北京天伦王朝酒店", "010-66550888"))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Wie hoch ist die Rechnung für den Wasserschaden in der Schillerstraße?", ("Wasserschaden", "Schillerstraße")),
        ("Когда приедет водопроводчик на Невский проспект?", ("водопроводчик", "Невский")),
        ("¿Cuándo llega el fontanero a la calle Velázquez?", ("fontanero", "Velázquez")),
        ("متى يصل السباك إلى شارع التحرير؟", ("السباك", "التحرير")),
        ("배관공은 언제 종로에 도착합니까?", ("배관공은", "종로에")),
        ("新宿のラーメン屋はどこですか？", ("新宿", "ラーメン屋")),
    ],
)
def test_other_languages_keep_their_rare_words(text: str, kept: tuple[str, ...]) -> None:
    """Rare words of other languages stand in the title or the line."""
    summary = summarize([user(text)], 30)
    assert all(word in f"{summary.title} {summary.lines}" for word in kept)


def test_words_with_nothing_to_say_get_no_more_than_themselves() -> None:
    """Small talk gets very short lines or none."""
    assert 12 >= estimate("\n".join(summarize([user("ok"), assistant("Thanks!")]).lines))


@pytest.mark.parametrize("messages", [[], [user("")], [user("   \n")], [user("???")], [assistant("")]])
def test_pages_without_words_have_a_title_and_no_room(messages: list[dict[str, Any]]) -> None:
    """A page without a single word is summarised too."""
    summary = summarize(messages)
    assert summary.title
    assert 0.0 == summary.importance


def test_an_image_leaves_a_mark() -> None:
    """A message with an image says so."""
    content = [{"type": "text", "text": "what is wrong with this boiler?"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    assert summarize([{"role": "user", "content": content}]).lines[0].endswith("[image]")


def test_title_says_what_was_asked() -> None:
    """The title is a short run of the user's words, without the words that introduce it."""
    assert "how do I export the March invoices as CSV?" == summarize(INVOICES).title


def test_title_of_a_page_without_a_user() -> None:
    """A continuation page is named after its first call or words."""
    assert summarize(INVOICES[1:3]).title


def test_title_has_ten_words_at_most() -> None:
    """However long the question, the title is short."""
    assert 10 >= len(summarize([user("please compare copper plumbing and plastic plumbing " * 50)]).title.split())


def test_summary_has_thirty_words_at_most() -> None:
    """The summary of the whole page is one or two runs of its words."""
    summary = summarize([user(LONG_ANSWER), assistant(LONG_ANSWER.replace("drainage", "sewers"))]).summary
    assert 0 < len(summary.replace("…", " ").split()) <= 30


def test_outcome_is_the_end_of_the_page() -> None:
    """The outcome comes from the last words of the assistant."""
    assert "limit is 10k rows" in summarize([*INVOICES, assistant("Done: the limit is 10k rows.")]).outcome


def test_keywords_and_entities_are_few_and_whole() -> None:
    """Rare words and literal values of the page are listed, most telling first, in bounded number."""
    summary = summarize([*INVOICES, user(" ".join(f"zebra{letter} x{letter}_{letter}9" for letter in "abcdefghijklmnopqrstuvw"))])
    assert 12 >= len(summary.keywords) > 0
    assert 16 == len(summary.entities)
    assert "invoices-2026-03.csv" in summarize(INVOICES).entities
    assert "invoices" in summarize(INVOICES).keywords


def test_state_changes_are_the_calls_that_write() -> None:
    """Calls whose name begins with a verb of reading, and calls that failed, change nothing."""
    page = (
        tool_page("get_user_details", {"user_id": "a_1"}, "{}")
        + tool_page("book_reservation", {"user_id": "a_1", "seat": 4}, "Error: no seat left")
        + tool_page("cancel_reservation", {"reservation_id": "SI5UKW"}, "cancelled")
    )
    assert ("cancel_reservation(reservation_id=SI5UKW)",) == summarize(page).state_changes


def test_importance_grows_with_what_cannot_be_said_again() -> None:
    """A page of values and changes is more important than small talk."""
    assert summarize([user("hello there"), assistant("hi, how are you?")]).importance < summarize(INVOICES).importance <= 1.0


def worth_of_a_token(*said: str) -> float:
    summary = summarize([user(said[0]), assistant(said[1])])
    return sum(worth for _, worth, _ in summary.words) / sum(estimate(text) for text, *_ in summary.words)


def test_pages_of_any_script_have_the_same_chance_of_a_row() -> None:
    """The words of the same talk are worth about as much for a token in a script without spaces, at the one price of all rows."""
    english = worth_of_a_token(
        "How long should we stay in the museum, and is the entrance free?",
        "The National Museum takes about three hours; tickets are free on weekdays.",
    )
    chinese = worth_of_a_token("博物馆要逛多久，门票免费吗？", "国家博物馆大概要逛三个小时，工作日门票免费。")
    assert 0.6 < chinese / english < 1.4
