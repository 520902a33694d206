"""What is measured of a conversation that is played."""

from typing import Any

import attrs
import pytest

from memci.engine.settings.config import Budget, Config
from memci.messages.tokens.message_tokens import REPLY_TOKENS, count_message
from memci.quality.baselines import SlidingMessages, WholeHistory
from memci.quality.catalogue import memci_spec
from memci.quality.conversation import Need, Question
from memci.quality.engines import FoundPage
from memci.quality.played import Evidence, Faults, Needs, Played, Recall
from memci.quality.playing import play
from memci.quality.scoring.evidence import RETURNED_TOKENS
from tests.quality.small import (
    COUNTER,
    MESSAGES,
    SYSTEM,
    Altering,
    Dropping,
    Forgetful,
    Noting,
    Parting,
    assistant,
    conversation,
    question,
    user,
)

BUDGET = 1_000
NINE = question("What does Tango weigh?", "Nine pounds, for a cat", 1)


def played(engine: WholeHistory, *asked: Question, budget: int = BUDGET) -> Played:
    return play(engine, conversation(*asked), budget)


def whole(budget: int = BUDGET) -> WholeHistory:
    return WholeHistory(budget, COUNTER)


def test_a_call_is_a_window_before_an_assistant_message() -> None:
    """Four assistant messages make four calls, of the sizes that the messages before them have."""
    sizes = [count_message(message, COUNTER) for message in MESSAGES]
    found = played(whole()).calls
    assert 4 == found.calls
    assert sum(sum(sizes[:before]) + REPLY_TOKENS for before in (2, 4, 6, 8)) == found.tokens


def test_whole_history_is_reused_as_far_as_it_was_sent() -> None:
    """Each call of the whole history begins with all of the call before."""
    found = played(whole()).calls
    lengths = [found.length, found.prefix]
    assert lengths[0] > lengths[1] > 0


def test_verbatim_tokens_count_once_the_history_is_outgrown() -> None:
    """Only calls whose history is above the budget count, and system messages are no part of it."""
    sizes = [count_message(message, COUNTER) for message in MESSAGES]
    budget = sum(sizes[:7]) + REPLY_TOKENS
    found = played(whole(budget), budget=budget).calls
    assert (1, sum(sizes[1:8])) == (found.outgrown, found.verbatim)


def test_an_engine_that_keeps_nothing_is_caught() -> None:
    """Nothing of the evidence is found in an empty window, whatever the engine says of its pages."""
    found = played(Forgetful(BUDGET, COUNTER), NINE)
    assert Evidence(questions=1, pages=1, folded=1, left=3, owners=1, row_owners=1) == found.evidence
    assert 0 == found.calls.verbatim


def test_a_window_over_budget_is_caught() -> None:
    """Each window above the budget counts, that at the end too."""
    sizes = [count_message(message, COUNTER) for message in MESSAGES]
    budget = sum(sizes[:6]) + REPLY_TOKENS
    assert Faults(over_budget=2) == played(whole(budget), budget=budget).faults


def test_a_parted_pair_is_caught() -> None:
    """A call whose result was left out counts in every window that shows the call."""
    assert Faults(broken_pairs=3) == played(Parting(BUDGET, COUNTER)).faults


def test_a_changed_message_is_caught() -> None:
    """A message that comes back as another one is lost."""
    assert Faults(lost=1) == played(Altering(BUDGET, COUNTER)).faults


def test_words_of_the_answer_count_where_they_stand() -> None:
    """Of the three words that answer and turn share, an entry shows its own at its page."""
    found = played(Noting(), NINE).evidence
    shown = Evidence(questions=1, anchored=1.0, at_page=1.0, pages=1, indexed=1)
    assert attrs.evolve(shown, named=1, folded=1, left=1, listed=1, owners=1, row_owners=1) == found


@pytest.mark.parametrize(
    ("shown", "owned"),
    [
        ("[turn-1] a cat of nine pounds", 0.0),
        ("[turn-1] Tango, a cat of nine pounds", 1.0),
        ("[turn-0] Tango was here\n[turn-1] a cat of nine pounds", 1.0),
        ("[turn-0] Tango was here\n[turn-9] a dog\n[turn-1] a cat of nine pounds", 0.0),
        ("[turn-1] Tango, a cat", 1 / 3),
    ],
)
def test_a_value_is_owned_where_its_owner_is_named(shown: str, owned: float) -> None:
    """What the question asks about stands in the row, or in the one before it."""
    engine = Noting()
    engine.shown = shown
    found = played(engine, NINE).evidence
    assert 1 == found.row_owners
    assert pytest.approx([owned, owned]) == [found.row_owned, found.owned]


def test_a_question_without_a_name_has_no_owner() -> None:
    """Of other questions nobody can say whether the answer is owned; in Chinese it is what the conversation says as well."""
    assert 0 == played(Noting(), question("what weighs nine pounds?", "a cat", 1)).evidence.owners
    said = [user("北京京仪大酒店怎么样？"), assistant("评分4.5分，电话是010-62165588")]
    asked = conversation(question("北京京仪大酒店的电话是什么？", "010-62165588", 1), messages=said, lang="zh")
    assert 1 == play(whole(), asked, BUDGET).evidence.owners


class Quoting(Noting):
    """Shows a line of the first turn, quoted, when it is asked."""

    quote = "> My cat Tango weighs nine pounds."

    def asked(self, question: str) -> list[dict[str, Any]]:
        return [*self.window(), user(f"[recalled]\n{self.quote}"), user(question)]


def test_evidence_is_in_view_where_it_stands_word_for_word_or_is_quoted() -> None:
    """A row shows it too, but not in the words of the conversation; a quotation of something else is none of it."""
    assert (1, 0.0) == in_view(Noting())
    assert (1, 1.0) == in_view(Quoting())
    assert (1, 1.0) == in_view(whole())
    invented = Quoting()
    invented.quote = "> A cat of nine pounds, for sale."
    assert (1, 0.0) == in_view(invented)


def in_view(engine: WholeHistory) -> tuple[int, float]:
    found = played(engine, NINE).asked
    return found.questions, found.in_view


def test_asking_costs_what_the_last_window_does_not_have() -> None:
    """The question is sent after the last window; nothing of it stays in the engine."""
    engine = whole()
    found = played(engine, NINE, NINE)
    assert 2 == found.asked.calls
    assert found.asked.prefix < found.asked.length < found.asked.prefix + 2 * 20
    assert len(MESSAGES) == len(engine.window())


def test_a_file_can_be_opened_where_its_whole_path_is_in_view() -> None:
    """Its name alone is not enough; a list of files under their directory is, and a path below the one that a heading says."""
    path = "/srv/app/models/invoice.py"
    said = [
        user(f"Look at {path} and /srv/app/models/tax.py"),
        assistant("Both are short."),
        user("Thanks " * 30),
        assistant("Bye."),
    ]
    needs = (Need("file", "invoice.py"), Need("file", "tax.py"), Need("file", "other.py"))
    engine = Noting()
    for shown, openable in (
        ("[turn-1] invoice.py", 0),
        (f"[turn-1] {path}", 1),
        ("[turn-1] two\nfiles under /srv/app/: models/invoice.py, models/tax.py", 2),
        ("[turn-1..2] 2 pages · …/ is /srv/app/\n1 Edit …/models/invoice.py: total → tax\n2 tax.py", 1),
    ):
        engine = Noting()
        engine.shown = shown
        asked = attrs.evolve(conversation(messages=[SYSTEM, *said]), needs=needs)
        found = play(engine, asked, BUDGET).needs["file"]
        assert (3, 2, openable) == (found.asked, found.paths, found.openable)


def test_words_elsewhere_in_the_window_are_anchored_but_not_at_their_page() -> None:
    """A word that another page says stands in the window, and not where the answer is."""
    engine = Noting()
    engine.shown = "[turn-1] a cat"
    found = played(engine, NINE).evidence
    assert pytest.approx([2 / 3, 1 / 3]) == [found.anchored, found.at_page]


def test_a_page_is_indexed_by_a_row_of_its_own() -> None:
    """The heading of a range is no row of its pages, and not their place."""
    engine = Noting()
    engine.shown = "[turn-1..2] a cat of nine pounds"
    heading = played(engine, NINE).evidence
    engine.shown += "\n1 a cat of nine pounds"
    row = played(engine, NINE).evidence
    assert [(0, 0.0), (1, 1.0)] == [(found.indexed, found.at_page) for found in (heading, row)]


@pytest.mark.parametrize(
    ("shown", "chosen"),
    [
        ("[turn-1] a cat of nine pounds", 1.0),
        ("[turn-1..4] cats and dogs", 0.25),
        ("[turn-1..4] cats and dogs\n1 a cat", 1.0),
        ("[turn-1] my parrot", 0.0),
        ("\n".join(f"[turn-{number}] a cat" for number in (9, 8, 7, 6, 5, 1)), 0.0),
    ],
)
def test_a_reader_chooses_among_five_rows(shown: str, chosen: float) -> None:
    """A page counts when the question's words find its row, and as a share of the range whose heading they find."""
    engine = Noting()
    engine.shown = shown
    found = played(engine, question("Which cat is it?", "Tango", 1)).evidence
    assert (1, chosen) == (found.folded, found.chosen)


@pytest.mark.parametrize(
    ("shown", "named"),
    [
        ("[turn-1] Tango weighs", 1),
        ("[turn-1] Tango and the dog", 0),
        ("[turn-1..16] Tango weighs", 1),
        ("[turn-1..17] Tango weighs", 0),
        ("[turn-2] Tango weighs", 0),
    ],
)
def test_a_page_is_named_by_two_words_of_it(shown: str, named: int) -> None:
    """They stand in its row, or in the heading of a range of at most 16 pages."""
    engine = Noting()
    engine.shown = shown
    assert named == played(engine, NINE).evidence.named


def test_answers_of_another_conversation_are_coincidence() -> None:
    """Of the words of a foreign answer, the window has one; an answer of which its evidence held nothing is no question."""
    talk = attrs.evolve(conversation(NINE), foreign=(("nine", "camels"), ()))
    found = play(whole(), talk, BUDGET).evidence
    assert (1, 0.5) == (found.foreign, found.coincidence)


def test_needs_are_met_where_they_stand_in_the_window() -> None:
    """Texts are looked for in arguments and results too, and counted by their kind."""
    needs = (Need("file", "forty pounds"), Need("file", "a.py"), Need("identifier", "weigh"), Need("hash", "Tango"))
    found = play(SlidingMessages(60, COUNTER), attrs.evolve(conversation(), needs=needs), 60).needs
    assert {"file": Needs(asked=2, met=1), "identifier": Needs(1, 1), "hash": Needs(1, 0)} == found


def test_of_equal_messages_the_newest_are_shown() -> None:
    """Evidence that left the window is not verbatim because the same was said again."""
    again = (*MESSAGES, MESSAGES[1], MESSAGES[2])
    asked = question("What does Tango weigh?", "nine pounds", 1)
    engine = SlidingMessages(sum(count_message(value, COUNTER) for value in (SYSTEM, *again[-2:])) + REPLY_TOKENS, COUNTER)
    found = play(engine, conversation(asked, messages=again), BUDGET).evidence
    assert (1.0, 0.0, 0) == (found.anchored, found.at_page, found.verbatim)


def test_evidence_in_the_window_is_verbatim() -> None:
    """A page counts for each question whose evidence it holds."""
    asked = question("What does the dog weigh?", "forty pounds", 5)
    assert Evidence(questions=2, anchored=2.0, at_page=2.0, pages=2, verbatim=2) == played(whole(), asked, asked).evidence


def test_an_answer_that_the_evidence_does_not_hold_is_no_question() -> None:
    """What stands in no evidence page cannot be shown, and is left out of the shares."""
    found = played(whole(), question("When?", "7 May 2023", 1)).evidence
    assert (0, 1) == (found.questions, found.pages)


@pytest.mark.parametrize(("answer", "shown"), [("685元", (1, 1.0)), ("685", (1, 1.0)), ("68 5元", (0, 0.0))])
def test_without_spaces_the_answer_counts_as_it_is_written(answer: str, shown: tuple[int, float]) -> None:
    """In Chinese the answer is a value that stands there whole, or not at all."""
    said = ({"role": "user", "content": "价格?"}, {"role": "assistant", "content": "价格685元。"})
    talk = conversation(question("价格是什么？", answer, 1), messages=said, lang="zh")
    found = play(whole(), talk, BUDGET).evidence
    assert shown == (found.questions, found.anchored)


def test_recall_counts_pages_by_their_rank() -> None:
    """Of two evidence pages, the first hit is one, and the second stands in the sixth place."""
    engine = Noting()
    names = ["turn-1", "a", "b", "c", "d", "turn-2"]
    engine.hits = tuple(FoundPage(page=name, text="word", passage="") for name in names)
    found = played(engine, question("pounds?", "nine", 1, 5)).recall
    assert {"facts": Recall(questions=1, first=0.5, five=0.5, ten=1.0, within=1.0, asked=1)} == found


def test_recall_within_a_number_of_tokens() -> None:
    """A page counts when it and all before it are within 1,000 tokens."""
    engine = Noting()
    first, second = " word" * (RETURNED_TOKENS - 1), " two words"
    assert RETURNED_TOKENS - 1 == COUNTER.count(first)
    engine.hits = (FoundPage(page="turn-1", text=first, passage=""), FoundPage(page="turn-2", text=second, passage=""))
    found = played(engine, question("pounds?", "nine", 1, 5)).recall["facts"]
    assert (1.0, 0.5) == (found.five, found.within)


def test_answers_count_as_told_by_the_first_five_passages() -> None:
    """Of two words of the answer that only the evidence has, the fifth passage holds one, and the sixth the other."""
    engine = Noting()
    told = ["", "", "", "", "a cat?", "nine pounds"]
    engine.hits = tuple(FoundPage(page=f"turn-{place}", text="", passage=passage) for place, passage in enumerate(told))
    found = played(engine, question("How many pounds?", "Nine pounds, for a cat", 1)).recall["facts"]
    assert (1, 0.5) == (found.asked, found.told)


def test_an_answer_that_the_question_says_is_not_asked_for() -> None:
    """A question that holds all of its answer is left out."""
    engine = Noting()
    engine.hits = (FoundPage(page="turn-1", text="", passage="nine pounds"),)
    found = played(engine, question("Does it weigh nine pounds?", "Nine pounds", 1)).recall["facts"]
    assert (1, 0, 0.0) == (found.questions, found.asked, found.told)


def test_a_dropped_page_is_never_found() -> None:
    """Evidence that no page holds counts as a page that was not found."""
    engine = Dropping()
    engine.hits = (FoundPage(page="turn-2", text="forty", passage=""),)
    found = played(engine, question("pounds?", "nine", 1, 5))
    assert (0.5, 1) == (found.recall["facts"].first, found.evidence.verbatim)


def test_no_search_is_nothing_to_measure() -> None:
    """An engine without a search has no recall."""
    assert {} == played(whole(), NINE).recall


@pytest.mark.parametrize("window", [120, 200, 2_000])
def test_memci_keeps_its_promises(window: int) -> None:
    """Nothing is lost, parted or over budget with memci, and it finds the page of an answer."""
    spec = memci_spec(Config(budget=Budget(window=99_999, reserve=0)))
    talk = conversation(NINE, messages=MESSAGES * 3)
    with spec.open(window, talk) as engine:
        found = play(engine, talk, window)
    assert found.faults.ok
    assert 1.0 == found.recall["facts"].five
