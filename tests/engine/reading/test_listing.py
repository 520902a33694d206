"""What lists of pages say of pages in the window, and of their titles."""

import json

import pytest

from memci.archive.catalogue.page_index import PageIndex
from memci.archive.contents.contents_page import Outlined
from memci.engine.reading.pages import MOST_LINES, TITLE_CHARACTERS, shown_title
from memci.engine.session import Session
from tests.engine.sessions import open_session, talk
from tests.engine.wire import assistant, user

CONTROLS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""All characters that only set the direction of what follows."""


def lines(session: Session, index: str) -> list[str]:
    """Return the lines of the list of a range, without its heading."""
    (message,) = session.toolbox.messages(index)
    return str(message["content"]).split("\n")[1:]


def test_pages_in_the_window_are_listed_with_their_sizes() -> None:
    """The list of a range says of pages that never folded their sizes, how they were named, and once when they were said."""
    session = open_session()
    talk(session, 2, at="2023-05-08T13:56:00")
    session.begin_page(name="Flights")
    session.append(user("Where to?"), at="2023-05-09T09:00:00")
    sizes = [session.page(number).tokens for number in (1, 2, 3)]
    assert [
        f"[usr-1] 2 entries · {sizes[0]} tokens · 2023-05-08",
        f"[usr-2] 2 entries · {sizes[1]} tokens",
        f"[usr-3] Flights · 1 entry · {sizes[2]} tokens · 2023-05-09",
    ] == lines(session, "usr-1..3")


def test_facts_tell_when_a_page_was_said() -> None:
    """The first and the last entry's time are facts of a page, in the window, in the archive, and of a range."""
    session = open_session(active={"min_pages": 1})
    times = [f"2023-05-{day:02}T13:56:00+00:00" for day in range(1, 7)]
    for place, at in enumerate(times):
        session.append(assistant("yes") if place % 2 else user("and so?"), at=at)
    before = session.pages()
    session.fold(["usr-1", "usr-2"])
    assert [(times[0], times[1]), (times[2], times[3]), (times[4], times[5])] == [
        (facts.first_at, facts.last_at) for facts in session.pages()
    ]
    assert [facts.first_at for facts in before] == [facts.first_at for facts in session.pages()]
    assert (times[0], times[3]) == (session.facts("usr-1..2").first_at, session.facts("usr-1..2").last_at)
    session.rewind("usr-2/2")
    assert (times[2], times[2]) == (session.facts("usr-2").first_at, session.facts("usr-2").last_at)


def test_facts_of_messages_out_of_order_span_all_of_them() -> None:
    """A page was said from its earliest to its latest message, and a range from its earliest to its latest page, in any order."""
    session = open_session(active={"min_pages": 1})
    for middle in ("2024", "2019", "2022"):
        for message, year in ((user("and so?"), "2021"), (assistant("yes"), middle), (assistant("and no"), "2020")):
            session.append(message, at=f"{year}-01-01")
    years = [("2020", "2024"), ("2019", "2021"), ("2020", "2022")]
    assert years == [(facts.first_at[:4], facts.last_at[:4]) for facts in session.pages()]
    session.fold(["usr-1", "usr-2"])
    assert years == [(facts.first_at[:4], facts.last_at[:4]) for facts in session.pages()]
    entries = [entry for entry in session.contents.entries if not isinstance(entry, Outlined)]
    assert years[:2] == [(entry.first_at[:4], entry.last_at[:4]) for entry in entries]
    assert ("2019", "2024") == (session.facts("usr-1..2").first_at[:4], session.facts("usr-1..2").last_at[:4])
    shown = [line.rpartition(" · ")[2] for line in lines(session, "usr-1..3")]
    assert ["2020-01-01..2024-01-01", "2019-01-01..2021-01-01", "2020-01-01..2022-01-01"] == shown


def test_a_page_is_found_by_the_days_of_all_its_messages() -> None:
    """``since`` and ``until`` find a page whose messages came out of order by the days of any of them, and by no others."""
    session = open_session(active={"min_pages": 1})
    for message, day in (
        (user("the lighthouse?"), "2024-05-05"),
        (assistant("tall"), "2024-06-06"),
        (assistant("yes"), "2024-03-03"),
    ):
        session.append(message, at=day)
    session.append(user("and now?"), at="2025-01-01")
    session.fold("all")
    spans = [("2024-03-03", "2024-03-03"), ("2024-06-06", None), (None, "2024-03-02"), ("2024-06-07", None)]
    found = [[hit.index for hit in session.search("lighthouse", since=since, until=until)] for since, until in spans]
    assert [["usr-1"], ["usr-1"], [], []] == found


def test_an_answer_of_an_index_that_is_made_again_is_whole() -> None:
    """A question is asked again where another process emptied the index meanwhile, to make it again."""
    session = open_session()
    talk(session, 5)
    answers: list[int] = []

    def count(index: PageIndex) -> int:
        if not answers:
            index.reset()
        answers.append(len(list(index.all_pages())))
        return answers[-1]

    assert 5 == session._core.ask(count)
    assert [0, 5] == answers


def test_pages_that_came_back_keep_their_titles() -> None:
    """A page whose fold was undone is listed under the title of its entry, with the size that it has now."""
    session = open_session(active={"min_pages": 1})
    talk(session, 3)
    session.fold("all")
    before = lines(session, "usr-1..2")
    session.undo_fold()
    assert before == lines(session, "usr-1..2")
    session.rewind("usr-2/2")
    session.append(assistant("All is new here."))
    assert f" · 2 entries · {session.page(2).tokens} tokens" in lines(session, "usr-1..2")[1]


def test_lines_of_several_pages_leave_out_titles_that_there_are_not() -> None:
    """A line of several pages in the window tells their size, and no empty titles."""
    session = open_session()
    talk(session, 1, words=2, at="2023-05-08T13:56:00")
    talk(session, 2 * MOST_LINES - 1, words=2, first=2, at="2023-05-09T13:56:00")
    found = lines(session, f"usr-1..{2 * MOST_LINES}")
    assert MOST_LINES == len(found)
    assert f"[usr-1..2] 2 pages · {session.page(1).tokens + session.page(2).tokens} tokens · 2023-05-08..09: …" == found[0]


def test_a_name_is_erased_from_lists_that_were_opened() -> None:
    """A page that was named, listed among many while in the window, and erased later has its name in no window ever shown."""
    session = open_session(active={"min_pages": 1})
    session.begin_page(name="Zanzibar")
    talk(session, 2 * MOST_LINES, words=2)
    for index in ("usr-1..3", f"usr-1..{2 * MOST_LINES}"):
        assert session.recall(index).messages
    shown = session.window().seq
    session.fold("all")
    session.erase(1)
    assert all("Zanzibar" not in session.render(at=seq).to_json().decode() for seq in (shown, session.seq))


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        (f"{CONTROLS}safe{CONTROLS} to {CONTROLS}read", "safe to read"),
        (f"a\n[usr-9] {CONTROLS}\nb", "a [usr-9]  b"),
        ("שלום 猫", "שלום 猫"),
        (CONTROLS, ""),
        ("x" * 5_000, "x" * TITLE_CHARACTERS + "…"),
        (CONTROLS * 10 + "x" * TITLE_CHARACTERS, "x" * TITLE_CHARACTERS),
    ],
)
def test_titles_in_lists(title: str, expected: str) -> None:
    """A title in a list is a line of bounded length, and cannot turn the direction of what stands around it."""
    assert expected == shown_title(title)


def test_names_in_lists_are_bounded_and_turn_nothing() -> None:
    """Neither the list of a range nor the tools give the name of a page with controls of direction, or at any length."""
    session = open_session(active={"min_pages": 1})
    session.begin_page(name=CONTROLS + "n" * 5_000)
    talk(session, 2)
    line = lines(session, "usr-1..2")[0]
    answers = [session.toolbox.call("list_pages", {}), session.toolbox.call("recall_page", {"index": "usr-1"})]
    given = [line, *(json.dumps(answer, ensure_ascii=False) for answer in answers)]
    assert not set(CONTROLS) & set("".join(given))
    assert all(0 < text.count("n" * TITLE_CHARACTERS) < 5 for text in given)
