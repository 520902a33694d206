"""Topics that are closed: what folds, under which title, and what becomes of that later."""

from pathlib import Path
from typing import Any

import pytest

from memci.archive.contents.contents_page import ContentsEntry, Directory, Outlined
from memci.archive.contents.shrink import TITLES_CHARACTERS, shrink
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.upkeep.copying import copy_session
from memci.errors import ArgumentError, MemciError
from tests.engine.sessions import config_of, open_session, states, talk
from tests.engine.wire import assistant, calling, result, user


def listed(session: Session) -> list[str]:
    """Return what the contents page lists, by index."""
    return [entry.index for entry in session.contents.entries]


def titles(session: Session) -> list[tuple[str, ...]]:
    """Return the titles of the directories, and those of entries, in order."""
    entries = [entry for entry in session.contents.entries if not isinstance(entry, Outlined)]
    return [entry.titles if isinstance(entry, Directory) else (entry.title,) for entry in entries]


def shown(session: Session) -> str:
    return "\n".join(str(message["content"]) for message in session.window().messages)


def test_the_pages_of_a_topic_become_a_directory_of_its_title() -> None:
    """All complete pages leave the window together; the heading has the title, and each page has a row."""
    session = open_session()
    talk(session, 4, words=60)
    done = session.close_topic("  Questions one to three ")
    assert (("usr-1", "usr-2", "usr-3"), "topic", session.seq) == (done.pages, done.reason, done.seq)
    assert done.tokens_after < done.tokens_before
    (directory,) = session.contents.entries
    assert isinstance(directory, Directory)
    assert ("usr-1..3", (1, 2, 3)) == (directory.index, directory.listed)
    heading, *rows = directory.render().split("\n")
    assert heading.startswith("[usr-1..3] Questions one to three · 3 pages")
    assert ["1 ", "2 ", "3 "] == [row[:2] for row in rows]
    assert directory.render() in shown(session)
    assert {"usr-1": "hidden", "usr-2": "hidden", "usr-3": "hidden", "usr-4": "open"} == states(session)


def test_a_topic_begins_where_the_last_one_ended() -> None:
    """Each directory holds the pages of its topic alone, in which none of those that fold later comes."""
    session = open_session(contents={"max_tokens": 1_200})
    talk(session, 4)
    session.close_topic("first")
    talk(session, 3, first=5)
    assert ("usr-4", "usr-5", "usr-6") == session.close_topic("second").pages
    assert ["usr-1..3", "usr-4..6"] == listed(session)
    assert [("first",), ("second",)] == titles(session)
    for number in range(8, 68, 10):
        talk(session, 10, first=number)
        session.fold("all")
    topics, *others = session.contents.entries
    assert isinstance(topics, Directory)
    assert ("usr-1..6", ("first", "second")) == (topics.index, topics.titles)
    assert all(isinstance(each, Directory) and not each.titles for each in others)


def test_one_page_gets_the_title_alone() -> None:
    """Its entry has the title, also where it had a name of its own; a row that it becomes begins with it."""
    session = open_session(contents={"max_tokens": 300})
    session.begin_page("a name")
    talk(session, 2)
    assert ("usr-1",) == session.close_topic("One thing").pages
    (entry,) = session.contents.entries
    assert isinstance(entry, ContentsEntry)
    assert ("usr-1", "One thing") == (entry.index, entry.title)
    assert entry.render().startswith("[usr-1] One thing · 2 entries")
    assert "a name" not in entry.render()
    assert "One thing" == session.facts(1).title
    talk(session, 40, first=3)
    session.fold("all")
    assert "\n1 One thing" in session.contents.render()


def test_pages_that_folded_earlier_come_in_where_they_are_listed_singly() -> None:
    """Those side by side with the newest do; what stands in a directory already, and all before it, stays there."""
    session = open_session()
    talk(session, 6)
    session.fold(["usr-1", "usr-2", "usr-3"])
    assert ["usr-1", "usr-2", "usr-3"] == listed(session)
    assert ("usr-4", "usr-5") == session.close_topic("all of it").pages
    assert ["usr-1..5"] == listed(session)
    talk(session, 3, first=7)
    session.fold("all")
    assert ["usr-1..5", "usr-6", "usr-7", "usr-8"] == listed(session)
    done = session.close_topic("the rest")
    assert ((), "topic") == (done.pages, done.reason)
    assert ["usr-1..5", "usr-6..8"] == listed(session)


def test_one_archived_page_is_called_by_the_title() -> None:
    """Where nothing is left to fold, the entry that is there has the title, in the window too."""
    session = open_session()
    talk(session, 2)
    session.fold("all")
    before = session.contents.entries
    session.close_topic("One thing")
    assert "[usr-1] One thing · 2 entries" in shown(session)
    session.undo_fold()
    assert before == session.contents.entries
    assert [(session.facts(1).title,)] == titles(session)


def test_a_pinned_page_keeps_its_entry() -> None:
    """A directory holds no pinned page; its neighbours on both sides share one."""
    session = open_session()
    talk(session, 6)
    session.pin(3)
    session.close_topic("around it")
    assert ["usr-1..5", "usr-3"] == listed(session)
    (directory, _) = session.contents.entries
    assert isinstance(directory, Directory)
    assert ((1, 2), (4, 5)) == directory.covers


def test_a_page_that_waits_for_a_result_stays() -> None:
    """It is of the topic, and joins its directory when it folds."""
    session = open_session(contents={"max_tokens": 900})
    talk(session, 1)
    session.extend([user("look"), calling("c1"), user("and go on"), assistant("yes")])
    talk(session, 2, first=4)
    assert ("usr-1", "usr-3", "usr-4") == session.close_topic("it").pages
    session.append(result("c1", "found"))
    talk(session, 30, first=6)
    session.fold("all")
    assert ("usr-1..4", ("it",)) == (listed(session)[0], titles(session)[0])


TITLES: Any = ["", "  ", "x" * 121, "two\nlines", "of [usr-12]", "Contents of earlier pages", "half \ud800", "\u200b", 7, None]


@pytest.mark.parametrize("title", TITLES)
def test_a_title_is_a_line_without_marks(title: str) -> None:
    """Others are refused, and nothing is folded."""
    session = open_session()
    talk(session, 3)
    before = session.seq
    with pytest.raises(ArgumentError, match=r"title: .* give a line of 1 to 120 characters") as refused:
        session.close_topic(title)
    assert ("title", before) == (refused.value.argument, session.seq)


@pytest.mark.parametrize(
    "title", ["三月发票导出", "Où est ma commande\u00a0?", "x" * 120, "usr-12, bare", 'with "quotes"; and · dots']
)
def test_a_title_may_be_of_any_language(title: str) -> None:
    """Its spaces and signs stay as they are, in the window and when the session is opened again."""
    store = MemoryStore()
    for number in range(2):
        with Engine(store, config_of()) as engine, engine.session("chat") as session:
            if not number:
                talk(session, 3)
                session.close_topic(title)
            assert [(title,)] == titles(session)
            assert f"[usr-1..2] {title} · 2 pages" in shown(session)


def test_without_a_complete_page_there_is_no_topic() -> None:
    """That is so before the first turn ended, and just after a topic was closed."""
    session = open_session()
    talk(session, 1)
    with pytest.raises(MemciError, match="no topic to close"):
        session.close_topic("nothing")
    talk(session, 2, first=2)
    session.close_topic("something")
    with pytest.raises(MemciError, match="no topic to close"):
        session.close_topic("nothing")


def test_undoing_takes_the_topic_back() -> None:
    """Pages and contents page are as they were, and the topic can be closed again, under another title."""
    session = open_session()
    talk(session, 5)
    session.close_topic("first")
    talk(session, 3, first=6)
    before, contents = session.window().messages, session.contents.entries
    session.close_topic("wrong")
    session.undo_fold()
    assert (before, contents) == (session.window().messages, session.contents.entries)
    assert ("usr-5", "usr-6", "usr-7") == session.close_topic("right").pages
    assert [("first",), ("right",)] == titles(session)


def test_windows_of_before_and_after_render_again(tmp_path: Path) -> None:
    """Whichever topics are closed, what a window was then comes from the journal, byte for byte; opened again nothing differs."""
    windows = {}
    with Engine(f"file:{tmp_path}", config_of(snapshot_every=7)) as engine, engine.session("chat") as session:
        for number in range(1, 20, 3):
            talk(session, 3, first=number)
            window = session.window()
            windows[window.seq] = window.to_json()
            session.close_topic(f"topic {number}")
            window = session.window()
            windows[window.seq] = window.to_json()
        assert windows == {seq: session.render(seq).to_json() for seq in windows}
        assert session.verify().ok
        kept = session.contents.entries
    with Engine(f"file:{tmp_path}", config_of()) as engine, engine.session("chat") as session:
        assert kept == session.contents.entries
        assert windows == {seq: session.render(seq).to_json() for seq in windows}
        talk(session, 2, first=22)
        assert 21 <= min(int(index.removeprefix("usr-")) for index in session.close_topic("last").pages)


def test_going_back_opens_the_topic_again() -> None:
    """After a rewind into a topic, or from a checkpoint before its end, its pages are of the open one."""
    session = open_session()
    talk(session, 2)
    here = session.checkpoint("here")
    talk(session, 4, first=3)
    session.close_topic("all")
    session.rewind("usr-4/1")
    assert (["usr-1..2"], ("all",)) == (listed(session), titles(session)[0])
    talk(session, 3, first=7)
    assert ("usr-3", "usr-7", "usr-8") == session.close_topic("more").pages[:3]
    session.restore_checkpoint(here.id)
    talk(session, 1, first=12)
    assert ("usr-1", "usr-2") == session.close_topic("anew").pages


def test_a_fork_goes_on_with_the_topics() -> None:
    """It knows where the last topic ended, and what it closes is its own."""
    with Engine(MemoryStore(), config_of()) as engine, engine.session("one") as session:
        talk(session, 4)
        session.close_topic("shared")
        talk(session, 3, first=5)
        with engine.fork("one", "two") as fork:
            assert ("usr-4", "usr-5", "usr-6") == fork.close_topic("its own").pages
            assert [("shared",), ("its own",)] == titles(fork)
        assert [("shared",)] == [each for each in titles(session) if each != ("",)][:1]


def test_a_copy_in_another_store_goes_on_with_the_topics() -> None:
    """It shows the same titles, and closes what came after the last of them."""
    source, target = MemoryStore(), MemoryStore()
    with Engine(source, config_of()) as engine, engine.session("chat") as session:
        talk(session, 4)
        session.close_topic("before")
        talk(session, 2, first=5)
        window = session.window().to_json()
        copy_session(source, target, "chat", now="2026-05-08T00:00:00+00:00")
    with Engine(target, config_of()) as engine, engine.session("chat") as copy:
        assert (window, [("before",)]) == (copy.window().to_json(), titles(copy))
        assert ("usr-4", "usr-5") == copy.close_topic("after").pages


def test_why_a_page_stands_under_a_title() -> None:
    """``explain`` tells of the topic, of its pages and of its directory; lists of pages call it by its title."""
    session = open_session()
    talk(session, 4)
    session.close_topic("Parcels")
    talk(session, 2, first=5)
    session.fold(["usr-4"])
    assert "in usr-1..3, the topic Parcels" in str(session.explain(2))
    assert "closed as a topic: Parcels" in str(session.explain("usr-1..3"))
    assert ("Parcels", "Directory of 2 pages") == (session.facts("usr-1..3").title, session.facts("usr-1..2").title)
    assert "title" not in str(session.explain(4))
    session.close_topic("Letters")
    assert "listed under a title that it was given: Letters" in str(session.explain(5)) or ["usr-4..5"] == listed(session)[1:]


def directory(first: int, last: int, *names: str) -> Directory:
    spans = tuple((number, f"word{number}", 1.0, ", ") for number in range(first, last + 1))
    made = Directory(
        index=f"usr-{first}..{last}",
        spans=spans,
        covers=((first, last),),
        pages=last - first + 1,
        archived_turn=last,
        titles=names,
    )
    return made.counted(len)


def test_directories_that_merge_keep_the_newest_titles() -> None:
    """As many as there is room for; the heading has them in order."""
    long = ["a" * 120, "b" * 120, "c" * 120, "c" * 120]
    entries = [directory(10 * place + 1, 10 * place + 3, name) for place, name in enumerate(long)]
    left = shrink(
        entries, limit=60, low_share=1.0, directories=True, turn=50, count=len, has_pages=lambda *_: False, evict=False
    ).entries
    (merged,) = left
    assert isinstance(merged, Directory)
    assert ("b" * 120, "c" * 120) == merged.titles
    assert sum(map(len, merged.titles)) <= TITLES_CHARACTERS
    assert f"[usr-1..33] {'b' * 120}; {'c' * 120} · 12 pages" in merged.render()


def test_a_window_without_room_keeps_the_title() -> None:
    """However little the contents page may hold, what is left of the topic is called by its title."""
    session = open_session(contents={"max_tokens": 200})
    talk(session, 20, words=40)
    session.close_topic("The long one")
    assert session.contents.tokens <= 200
    assert [("The long one",)] == titles(session)


@pytest.mark.parametrize("given", ["name", "topic"])
def test_a_title_stays_when_the_entry_is_made_anew(given: str) -> None:
    """It does when a late result comes in, and when the page leaves a directory that took it."""
    session = open_session(contents={"max_tokens": 600}, budget={"window": 8_000, "reserve": 0})
    session.begin_page("The title" if given == "name" else None)
    session.extend([user("question " + "ask " * 600), calling("c1"), assistant("I looked for it")])
    talk(session, 1, first=2, words=2)
    session.window(budget=600)  # the page folds, though its call waits
    if given == "topic":
        session.close_topic("The title")
    assert "[usr-1] The title · 3 entries" in session.contents.render()
    session.append(result("c1", "found late"))
    session.fold()
    assert "[usr-1] The title · 4 entries" in session.contents.render()
    talk(session, 40, first=3)
    session.fold("all")
    assert "\n1 The title" in session.contents.render()
    session.restore(1)
    assert "[usr-1] The title · 4 entries" in session.contents.render()


def test_what_was_said_last_comes_in_where_its_page_was_ended() -> None:
    """The open page is of the next topic, unless another one was opened after it."""
    session = open_session()
    talk(session, 3)
    session.begin_page()
    assert ("usr-1", "usr-2", "usr-3") == session.close_topic("all three").pages
    talk(session, 2, first=4)
    assert ("usr-4",) == session.close_topic("the next").pages
