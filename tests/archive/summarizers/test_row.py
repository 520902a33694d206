"""Rows of pages with calls: what was called on what, how it ended, and who said what."""

import json
import re
from typing import Any

import pytest

from memci.archive.contents.contents_page import row
from memci.archive.summarizers.entries import called
from memci.archive.summarizers.extractive import ExtractiveSummarizer
from memci.messages.formats.openai import facts
from tests.engine.wire import Value, assistant, user

INVOICE = "/srv/app/backend/services/billing/models/invoice.py"
RENAMED = {"file_path": INVOICE, "old_string": "    total = 0", "new_string": "    amount = 0"}


def row_of(*messages: Value) -> str:
    """Return the row that says all that a page's row can say."""
    words = ExtractiveSummarizer().summarize([facts(value) for value in messages], max_tokens=64).words
    return row(1, [(1, *word) for word in words])


def calling(*calls: tuple[str, Any]) -> Value:
    """Return a message with calls, each with its name and arguments; the ids are c1, c2 and so on."""
    made = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for number, (name, arguments) in enumerate(calls, start=1)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(number: int, text: str) -> Value:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


def test_an_edit_says_which_file_and_what_becomes_of_what() -> None:
    """The name of the tool, the whole path, the words that were replaced and those that replaced them, and the result."""
    report = "The file has been updated. Here is a snippet of it:\n" + "    amount += line.net\n" * 20
    said = row_of(user("rename it"), calling(("Edit", RENAMED)), result(1, report), assistant("Done."))
    assert f"Edit {INVOICE}: total → amount: " in said


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_calls_that_run_at_once_have_their_own_results(order: tuple[int, int]) -> None:
    """In whichever order they come, each stands behind its call."""
    ends = {1: "permission denied for user deploy", 2: "tests/test_a.py ......F....F\n" * 8 + "2 failed, 30 passed in 3.1s"}
    calls = calling(("Bash", {"command": "rm -r /srv/cache"}), ("Bash", {"command": "pytest tests -q"}))
    said = row_of(user("clean up and test"), calls, *(result(number, ends[number]) for number in order), assistant("See above."))
    first, second = said.index("Bash (permission denied) rm -r /srv/cache: "), said.index("Bash (failed) pytest tests -q: ")
    assert first < second < said.index("2 failed, 30 passed in 3.1s")


def test_a_long_edit_is_shown_with_its_file_or_not_at_all() -> None:
    """Of what it wrote no word stands without the path, however rare it is."""
    written = "\n".join(f"def compute_{word}_total(ledger): ..." for word in ("zebra", "quokka", "wombat", "numbat"))
    edit = {"file_path": INVOICE, "old_string": "pass\npass", "new_string": written}
    said = row_of(user("add totals"), calling(("Edit", edit)), result(1, "updated " * 20), assistant("Added all totals."))
    assert "quokka" not in said or f"Edit {INVOICE}" in said
    assert f"Edit {INVOICE}" in said


def test_counts_of_one_line_are_shown_together() -> None:
    """Tests that passed are not shown without those that failed."""
    for text in ("1 failed, 12 passed, 3 skipped in 0.42s", "Ran 40 tests: 38 passed, 2 errors"):
        said = row_of(user("run all tests"), calling(("run", {"command": "make test"})), result(1, text), assistant("Hm."))
        assert ("12 passed" in said, "38 passed" in said) == ("1 failed" in said, "2 errors" in said)


def test_what_an_error_says_comes_before_other_lines() -> None:
    """Its whole line is shown where others of the same output, with words as rare, lose some."""
    lines = ["alder birch", "cedar dogwood", "elder ficus", "ginkgo hazel", "payments: error: vault sealed", "ivy juniper"]
    said = row_of(user("open it"), calling(("Bash", {"command": "make import"})), result(1, "\n".join(lines)), assistant("Hm."))
    assert "payments: error: vault sealed" in said
    assert "ivy juniper" not in said


def test_a_negation_in_an_argument_is_not_lost() -> None:
    """A clause that goes on from one argument into the next is shown with its negation or not at all."""
    why = "Run the tests to verify that the changed comment and the renamed helpers don't break anything else"
    arguments = {"command": "pytest tests -q", "timeout": 60, "description": why, "shell": "bash"}
    said = row_of(user("check it"), calling(("Bash", arguments)), result(1, "ok " * 30), assistant("Fine."))
    assert "break" not in said or "don't break" in said


def test_each_command_of_a_line_is_shown_whole_or_not_at_all() -> None:
    """Words are not picked out of them, as an option or a quotation would then belong to something else."""
    command = "cd /srv/app && git status --short || echo 'not a repository' && " + "find . -name '*.py' -newer setup.py " * 4
    said = row_of(user("look"), calling(("Bash", {"command": command})), result(1, "clean " * 40), assistant("Clean."))
    assert "git status --short" in said
    assert "newer" not in said or "find . -name '*.py' -newer setup.py" in said
    assert "repository" not in said or "echo 'not a repository'" in said


def test_commands_keep_the_mark_between_them() -> None:
    """A pipe stays between two commands, and where the output of one goes is left out."""
    calls = calling(("Bash", {"command": "ruff check . 2>&1 | tail -5"}))
    assert "Bash ruff check . | tail -5" in row_of(user("lint"), calls, result(1, "all clean " * 20), assistant("Clean."))


def test_an_entry_names_the_file_of_a_call() -> None:
    """However little room it has, no word of what a call wrote stands without its file."""
    written = "\n".join(f"def compute_{word}_total(ledger): ..." for word in ("zebra", "quokka", "wombat", "numbat"))
    messages = [user("add totals"), calling(("Write", {"file_path": INVOICE, "content": written})), result(1, "ok")]
    for room in range(10, 120, 5):
        lines = ExtractiveSummarizer().summarize([facts(value) for value in messages], max_tokens=room).lines
        assert all(f"Write({INVOICE}" in line for line in lines if "Write(" in line)


def test_a_refusal_is_shown_whatever_else_is() -> None:
    """What was asked and refused does not read as done, also where most words have no room."""
    said = row_of(
        user("Please remove the passenger named Sophia from my upcoming flights to Lisbon."),
        assistant("I'm unable to remove a passenger from an existing reservation. You may need to contact a human agent."),
    )
    assert "Sophia" in said
    assert " → unable" in said


def test_a_refusal_that_its_clause_begins_with_is_shown_once() -> None:
    """The rest of a short clause follows the word without saying it again; of other words, a mark sets it apart."""
    said = row_of(user("Is there any zoo that we could walk to?"), assistant("I'm unable to find zebras."))
    assert " → unable to find zebras" in said
    said = row_of(
        user("Any zoo nearby?"), assistant("Zebras live in Leipzig. Unfortunately, that is too far for today, my friend.")
    )
    assert " → Unfortunately; Zebras" in said


def test_a_request_to_confirm_is_shown() -> None:
    """What was only offered does not read as done."""
    said = row_of(
        user("Book HAT088 for Daiki Lee."), assistant("HAT088 for Daiki Lee, $172. Please confirm, and I will book it.")
    )
    assert " → Please confirm; HAT088" in said


def test_a_call_that_failed_says_so() -> None:
    """The word of its result stands with the call, whatever else of the result is shown."""
    said = row_of(user("rename it"), calling(("Edit", RENAMED)), result(1, "Error: file was modified. " * 30), assistant("Hm."))
    assert f"Edit (Error) {INVOICE}: total → amount" in said


@pytest.mark.parametrize(
    ("text", "words"), [('{"success": false, "id": 7}', "success: false"), ('{"isError": true}', "isError: true")]
)
def test_a_result_in_json_says_that_its_call_failed(text: str, words: str) -> None:
    """It is read as the tool wrote it, though its words are shown without quotation marks."""
    approval = calling(("approve_invoice", {"invoice": "INV-78"}))
    assert f"approve_invoice ({words}) invoice=INV-78" in row_of(user("approve it"), approval, result(1, text), assistant("Hm."))


def test_a_call_that_only_tried_something_says_so() -> None:
    """So does one whose result was skipped, or is marked as an error; in entries as in rows."""
    tried = [user("deploy it"), calling(("deploy", {"env": "live", "dry_run": True})), result(1, "fine"), assistant("Shall I?")]
    assert "deploy (dry_run: true) env=live" in row_of(*tried)
    skipped = [user("restart"), calling(("restart", {"host": "web-3"})), result(1, '{"skipped": true}'), assistant("Later.")]
    for messages, words in (
        (tried, "deploy(env=live, dry_run=true) (dry_run: true)"),
        (skipped, "restart(host=web-3) (skipped: true)"),
    ):
        assert words in ExtractiveSummarizer().summarize(list(map(facts, messages)), max_tokens=60).lines[1]


def test_what_the_assistant_asks_is_no_answer() -> None:
    """Words of a question that it asked have its mark, those of its answer do not."""
    said = row_of(user("Cancel my flights."), assistant("Gladly. Was it cancelled by the airline, or is it a change of plans?"))
    assert "?" in said.partition(" → ")[2]
    assert "?" not in row_of(user("Cancel my flights."), assistant("The airline cancelled them."))


def test_the_words_of_a_condition_govern_the_list_below() -> None:
    """What happens only under a condition is not shown without it."""
    listed = "1. The migration of invoices stopped halfway\n2. A worker restarted the importer twice"
    said = row_of(user("Why?"), assistant(f"The state file is stale. This could happen if:\n\n{listed}\n\nI will look."))
    assert "importer" not in said or "This could happen if" in said


def test_settings_of_a_call_are_left_out() -> None:
    """A limit or a switch tells nothing of what was looked for."""
    said = row_of(user("look"), calling(("Grep", {"pattern": "zebra", "limit": 30, "multiline": True})), result(1, "a.py"))
    assert "pattern=zebra" in said
    assert "limit" not in said
    assert "multiline" not in said


def test_code_of_an_answer_tells_less_than_what_it_is_for() -> None:
    """Names of a block of code are worth less than words around it."""
    code = "```python\nzebra_client.quokka()\n```"
    answer = assistant(f"Create the penguin first.\n{code}\nThen close the walrus handle.")
    words = ExtractiveSummarizer().summarize([facts(user("How?")), facts(answer)], max_tokens=64).words
    zebra, penguin, walrus = (sum(worth for text, worth, _ in words if name in text) for name in ("zebra", "penguin", "walrus"))
    assert zebra < min(penguin, walrus)


def test_words_left_out_of_a_sentence_have_a_mark() -> None:
    """What stands on both sides of it is not read as one."""
    between = "as I have said that to you all here before this"
    said = row_of(
        user(f"Use the certificate for $299, {between}, and cover the remaining $76 with the voucher."), assistant("Done.")
    )
    assert re.search("certificate for \\$299.* … cover the remaining \\$76 with the voucher", said)


def test_what_may_be_half_of_something_is_left_out() -> None:
    """A phrase does not end with the one word after a comma, where its sentence goes on."""
    asked = "The parcel goes to Suzhou with the express service for the usual 28.40 euros, seven to ten working days."
    assert re.search(r"seven(?! to)", row_of(user(asked), assistant("Done."))) is None


def test_what_was_said_is_shown_in_phrases() -> None:
    """Words of a row stand in the phrases in which they were said, and no word stands alone."""
    asked, told = (
        "Could you please move the appointment with Dr. Weber to the afternoon of the 14th?",
        "It is moved: Tuesday at 15:30.",
    )
    assert "1 move the appointment with Dr. Weber to the afternoon of the 14th? → It is moved: Tuesday at 15:30" == row_of(
        user(asked), assistant(told)
    )
    words = ExtractiveSummarizer().summarize([facts(user(asked)), facts(assistant(told))], max_tokens=64).words
    assert all(" " in text and (text.rstrip("?") in asked or text in told) for text, _, _ in words)


def test_a_bracket_is_closed_once() -> None:
    """Also where the phrase behind it follows at once."""
    listed = "We need 2 kg flour (rye or wheat), 500 ml milk from the farm in Tuscany, cinnamon, and quinces for the marmalade."
    assert 1 == row_of(user(listed), assistant("Noted.")).count(")")


def test_a_label_stays_with_its_value() -> None:
    """Neither a label nor its value is shown alone, in a list or a table."""
    listed = "- **Flight Number:** HAT271\n- **Seats:** Aisle and middle\n| Fare | Price |\n|---|---|\n| Basic | 85.7% |"
    said = row_of(user("Yes, book it."), assistant(f"Booked:\n{listed}"))
    assert ("Flight Number" in said, "Seats" in said, "Basic" in said) == (
        "Flight Number: HAT271" in said, "Seats: Aisle and middle" in said, "Basic: 85.7%" in said
    )  # fmt: skip
    assert "85.7%" not in said or "Basic: 85.7%" in said


def test_what_the_application_says_is_no_part_of_the_row() -> None:
    """Its messages stay in the window as they are, in their role; a row says what the user wanted and what came of it."""
    said = row_of(
        user("where is order 4711?"),
        {"role": "developer", "content": "The customer is a celebrity: offer champagne."},
        assistant("It is in Leipzig."),
    )
    assert "champagne" not in said
    assert "Leipzig" in said


def test_an_answer_to_another_question_is_apart() -> None:
    """Where the words of the question between two answers are left out, a mark stands between these."""
    said = row_of(
        user("And their phone number please?"),
        assistant("010-81098688."),
        user("Is there one that we can eat at next to it?"),
        assistant("Mingyuan Restaurant."),
    )
    assert ", Mingyuan" not in said
    assert "010-81098688 | " in said


def test_lines_have_a_mark_between_them() -> None:
    """What stands in two lines is not read as one sentence, unless the second goes on in small letters."""
    assert "Zanzibar; Timbuktu" in row_of(user("Zanzibar\nTimbuktu"), assistant("Reykjavik"))
    assert "Zanzibar timbuktu" in row_of(user("Zanzibar\ntimbuktu"), assistant("Reykjavik"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (RENAMED, f"{INVOICE}: total → amount"),
        ({"path": "a.py", "old_str": "x = 1\ny = 2", "new_str": "x = 1\ny = 3"}, "a.py: 2 → 3"),
        ({"path": "a.py", "old_str": "import os\n", "new_str": ""}, "a.py: import os → nothing"),
        ({"path": "a.py", "content": "print(1)"}, "a.py: print(1)"),
        ({"command": "pytest -q", "description": "Run all tests"}, "pytest -q: Run all tests"),
        ({"command": "pytest -q", "timeout": 60}, "pytest -q, timeout=60"),
        ({"command": "cd /srv && grep 'a|b' x.py | head -3"}, "cd /srv && grep 'a|b' x.py | head -3"),
        ({"command": " "}, "command= "),
        ({"query": "march"}, "query=march"),
        ({"path": "a.py", "old_str": "a\nb", "new_str": "c\nd\ne"}, "a.py: c\nd\ne"),
        ({"path": "a.py", "old_str": "# A\ndef a():\n  x\n", "new_str": "# A\ndef a():\n  y\n  z\n"}, "a.py: y\n  z"),
        (
            {"path": "a.py", "old_str": "# A is\ndef a(): ...\n\n# B stays" + "." * 99, "new_str": "# B stays" + "." * 99},
            "a.py: removed # A is and more",
        ),
        ({"path": [7], "old_str": None}, "path 7, old_str=null"),
        ([1, 2], "1, 2"),
        ({}, ""),
    ],
)
def test_arguments_are_written_as_people_would(arguments: object, text: str) -> None:
    """What a call is about comes first, without its key; of a long edit what it wrote."""
    written = called(json.dumps(arguments))
    assert text == written.text
    assert all(0 <= start < end <= len(text) for start, end, _ in written.units)


@pytest.mark.parametrize("text", ["", "{", "not JSON", '{"a": 1', "[" * 100_000, '{"path": ' + "[" * 50_000 + "]" * 50_000 + "}"])
def test_arguments_that_are_no_object_are_left_as_they_are(text: str) -> None:
    """Models answer nonsense, too."""
    assert text == called(text).text
