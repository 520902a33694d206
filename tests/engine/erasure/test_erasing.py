"""Erasing a page: nothing of it is left anywhere, all else stays, and the history can still be checked."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.archive.contents.contents_page import Directory
from memci.archive.disk import LOCK, FileIo
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.chapters.address import page_number
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import ConflictError, InvalidMessageError, PageNotFoundError, PermissionDeniedError
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import count_message
from tests.engine.sessions import config_of, open_session, states, talk, turn
from tests.engine.wire import Value, assert_paired, assistant, calling, result, system, user

if TYPE_CHECKING:
    from collections.abc import Callable

WORD = "zanzibarprotocol"
"""A word that only the page to be erased holds, in its user's and its assistant's words."""


def marked_turn() -> list[Value]:
    return [
        {"role": "user", "name": WORD, "content": f"what of the {WORD} of 12.04.2026, my {WORD} account?"},
        calling("c1", arguments=f'{{"q": "{WORD}"}}'),
        result("c1", f"{WORD} found in /home/{WORD}.txt"),
        assistant(f"the {WORD} is {WORD}"),
    ]


def open_on(root: Path, **sections: object) -> Session:
    settings = {"active": {"min_pages": 2, "max_pages": 4}, "snapshot_every": 7, "contents": {"max_tokens": 400}, **sections}
    return Engine(f"file:{root}", config_of(**settings)).session("chat")


def told(session: Session, before: int = 5, after: int = 5) -> str:
    """Tell a conversation with a page that is to be erased, and return its index."""
    session.append(system("be exact"))
    talk(session, before)
    entries = session.extend(marked_turn())
    talk(session, after, first=before + 1)
    return entries[0].page.index


def left_in(root: Path) -> list[str]:
    """Return the files below a directory that hold the word, in any case of its letters."""
    return [str(path) for path in root.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes().lower()]


HISTORIES = [
    "fold",
    "fold recall",
    "fold recall fade",
    "fold evict",
    "fold evict restore",
    "fold undo",
    "fold search",
    "fold rewind",
    "fold rewind-later rewind",
    "talk fold",
    "talk fold open-directory",
    "fold squeeze",
    "rewind-before",
    "fold rewind-before",
    "checkpoint fold restore-checkpoint",
    "checkpoint rewind-before restore-checkpoint",
    "fold recall checkpoint rewind-before restore-checkpoint",
    "close",
    "close undo",
    "close talk fold",
    "close-alone",
    "close-alone undo",
    "close checkpoint rewind-before restore-checkpoint",
    "close-alone checkpoint rewind-before restore-checkpoint",
    "close talk close fold squeeze",
    "vary choose",
    "vary choose fold",
    "vary fold rewind choose",
    "fold refused-list",
]


def do(session: Session, index: str, step: str) -> None:  # noqa: C901, PLR0912 (one branch a step)
    """Do one thing with a page, as it is told in a word."""
    match step:
        case "fold":
            session.fold("all")
        case "close":
            session.close_topic(f"all about {WORD}")
        case "close-alone":
            session.fold("all")
            session.pin(f"usr-1..{page_number(index) - 1}")
            session.pin(f"usr-{page_number(index) + 1}..99")
            session.close_topic(f"all about {WORD}")
        case "recall":
            session.recall(index)
        case "fade":
            session.fade(index)
        case "evict":
            session.evict(index)
        case "restore":
            session.restore(index)
        case "undo":
            session.undo_fold()
        case "search":
            session.search(WORD)
        case "rewind":
            session.rewind(f"{index}/3")
        case "rewind-later":
            session.rewind("usr-8/1")
        case "talk":
            talk(session, 60, first=20)
        case "open-directory":
            session.recall(session.contents.entries[0].index)
        case "rewind-before":
            session.rewind("usr-3/1")
        case "checkpoint":
            session.checkpoint("here")
        case "restore-checkpoint":
            session.restore_checkpoint(session.checkpoints()[0].id)
        case "squeeze":
            session.window(budget=900)
        case "vary":
            session.rewind(f"{index}/4")
            session.append(assistant(f"no, the {WORD}"))
        case "choose":
            session.choose(
                session.variants(f"{index}/2")[0] if session.facts(index).entries < 4 else session.variants(f"{index}/4")[-1]
            )
        case "refused-list":
            with pytest.raises(InvalidMessageError):
                session.sync([*[*session.messages()][:12], {"role": "nobody"}])


@pytest.mark.parametrize("history", HISTORIES)
def test_nothing_is_left(tmp_path: Path, history: str) -> None:
    """Whatever was done with the page, no file of the store holds a word of it, and all else is as it was."""
    session = open_on(tmp_path)
    index = told(session)
    for step in history.split():
        do(session, index, step)
    kept = [facts.index for facts in session.pages() if facts.index != index]
    before = {each: session.page(each).messages for each in kept}
    assert left_in(tmp_path)
    receipt = session.erase(index)
    assert (index, "chat", session.seq) == (receipt.page, receipt.session, receipt.seq)
    assert [] == left_in(tmp_path)
    assert before == {each: session.page(each).messages for each in kept}
    assert all(WORD not in session.render(at=seq).to_json().decode() for seq in range(session.seq + 1))
    assert [] == session.search(WORD, include_visible=True)
    assert () == session.verify().problems
    session._core.state._check()
    session.close()
    assert [] == left_in(tmp_path)
    with open_on(tmp_path) as again:
        assert before == {each: again.page(each).messages for each in kept}
        assert () == again.verify().problems
        again.append(user("and on"))
        again.window()


def test_topics_that_it_was_no_part_of_keep_their_titles(tmp_path: Path) -> None:
    """The title of its own topic goes, in journal and window; the others stay."""
    session = open_on(tmp_path, active={"min_pages": 1}, contents={"max_tokens": 900})
    talk(session, 4)
    session.close_topic("what was before")
    session.extend(marked_turn())
    talk(session, 3, first=5)
    session.close_topic(f"all about {WORD}")
    session.window()
    assert [("what was before",), (f"all about {WORD}",)] == [each.titles for each in directories(session)]
    session.erase("usr-5")
    assert [] == left_in(tmp_path)
    assert [("what was before",), ("[erased]",)] == [each.titles for each in directories(session)]
    assert () == session.verify().problems


def directories(session: Session) -> list[Directory]:
    return [each for each in session.contents.entries if isinstance(each, Directory)]


def test_what_is_left_keeps_its_shape(tmp_path: Path) -> None:
    """Roles, calls and results stay, so that a window is still well formed; what was said is ``[erased]``."""
    session = open_on(tmp_path)
    index = told(session, after=0)
    session.erase(index)
    window = session.window()
    assert_paired(window.messages)
    messages = session.page(index).messages
    assert ["user", "assistant", "tool", "assistant"] == [message["role"] for message in messages]
    assert {"[erased]"} == {message["content"] for message in messages}
    assert ("c1", "{}") == (messages[1]["tool_calls"][0]["id"], messages[1]["tool_calls"][0]["function"]["arguments"])
    assert "name" not in messages[0]
    assert session.page(index).tokens < 60
    entry = session.append(assistant("more"))
    assert f"{index}/5" == entry.address


def test_what_erasing_leaves(tmp_path: Path) -> None:
    """Ids of calls, names of tools, idempotency keys and labels of checkpoints stay; names of users and pages do not."""
    session = open_on(tmp_path)
    index = session.begin_page("vanishPage")
    call = {"id": "staysId", "type": "function", "function": {"name": "staysTool", "arguments": '{"vanishKey": "vanishValue"}'}}
    session.append({"role": "user", "name": "vanishUser", "content": "vanishWord", "vanishExtra": 1}, key="staysKey")
    session.append({"role": "assistant", "content": None, "tool_calls": [call]})
    session.append({"role": "tool", "tool_call_id": "staysId", "name": "staysTool", "content": "vanishResult"})
    talk(session, 3)
    session.checkpoint("staysLabel")
    session.fold("all")
    session.erase(index)
    session.close()
    left = b" ".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert all(name in left for name in (b"staysId", b"staysTool", b"staysKey", b"staysLabel"))
    assert b"vanish" not in left


def test_an_erased_page_can_be_recalled(tmp_path: Path) -> None:
    """The page keeps its index and its place in the contents page, and comes back saying that it was erased."""
    session = open_on(tmp_path, contents={"max_tokens": 8_000})
    index = told(session)
    session.fold("all")
    session.erase(index)
    session.fold("all")
    assert "[erased]" in next(entry for entry in session.contents.entries if entry.index == index).render()
    session.recall(index)
    block = next(message for message in session.window().messages if str(message["content"]).startswith("[recalled page"))
    assert 4 == block["content"].count("> [erased]")


def test_what_is_left_of_a_recalled_page_is_counted_as_it_is_shown(tmp_path: Path) -> None:
    """A page that is erased while it stands in the window by recall leaves a block of the size that the window counts."""
    session = open_on(tmp_path, active={"min_pages": 1})
    index = told(session)
    session.fold("all")
    session.recall(index)
    session.erase(index)
    window = session.window()
    block = next(message for message in window.messages if str(message["content"]).startswith("[recalled page"))
    assert 4 == block["content"].count("> [erased]")
    assert count_message(block, get_counter(session.config.counter)) == window.breakdown["recalled"]


def test_earlier_windows_say_that_it_was_erased(tmp_path: Path) -> None:
    """A prompt that was rendered before shows ``[erased]`` where the page stood, and the rest as it was."""
    session = open_on(tmp_path)
    index = told(session, after=0)
    window = session.window()
    session.erase(index)
    again = session.render(at=window.seq)
    assert len(window.messages) == len(again.messages)
    assert window.messages[:-4] == again.messages[:-4]
    assert "[erased]" == again.messages[-1]["content"]


def test_other_processes_take_notice(tmp_path: Path) -> None:
    """Who has the session open hears of it as of any other event, and then knows nothing of the page any more."""
    session = open_on(tmp_path)
    index = told(session, after=1)
    other = open_on(tmp_path)
    other.search(WORD, include_visible=True)
    assert WORD in other.window().to_json().decode()
    session.refresh()
    session.erase(index)
    other.refresh()
    assert WORD not in other.window().to_json().decode()
    assert [] == other.search(WORD, include_visible=True)
    assert () == other.verify().problems
    other.append(user("and on"))
    session.refresh()
    assert session.page(index).messages == other.page(index).messages
    assert [] == left_in(tmp_path)


def test_an_older_snapshot_is_passed_over(tmp_path: Path) -> None:
    """A snapshot of before, such as one that a slow process wrote after the erasure, is not believed."""
    session = open_on(tmp_path, snapshot_every=3)
    index = told(session, after=0)
    seq, body = next(iter([session._core.store.snapshots.find()])) or (0, b"")
    assert WORD.encode() in body
    session.erase(index)
    session._core.store.snapshots.clear()
    session._core.store.snapshots.put(seq, body)
    session.close()
    with open_on(tmp_path) as again:
        assert WORD not in again.window().to_json().decode()
        assert WORD not in again.render(at=seq).to_json().decode()


def test_erasing_again_is_fine(tmp_path: Path) -> None:
    """A page that was erased can be erased again; the receipt tells of what was taken out, whenever that was."""
    session = open_on(tmp_path)
    index = told(session)
    session.fold("all")
    first, again = session.erase(index), session.erase(index)
    assert first.records == again.records > 0
    assert (index,) == first.files == again.files
    assert () == session.verify().problems


def erased_while_a_call_waits(root: Path) -> Session:
    """Erase the page of a call that has no result yet."""
    session = open_on(root)
    session.append(user(f"look for {WORD}"))
    session.append(calling("late"))
    talk(session, 6)
    session.fold("all")
    session.erase("usr-1")
    return session


def test_a_late_result_of_an_erased_page(tmp_path: Path) -> None:
    """A result that comes late joins the erased page, and is erased with it the next time."""
    session = erased_while_a_call_waits(tmp_path)
    session.append(result("late", f"found {WORD}"))
    session.append(user("thanks"))
    session.fold("all")
    assert left_in(tmp_path)
    session.erase(1)
    assert [] == left_in(tmp_path)
    assert () == session.verify().problems


def test_what_others_said_is_not_touched() -> None:
    """A message of another page that reads like a contents page, an entry or a page is left as it is."""
    session = open_session()
    index = told(session, after=0)
    forged: list[Value] = [
        user(f"[usr-0] Contents of earlier pages\n[{index}] mine\n  user: mine"),
        {"role": "assistant", "content": "x", "page": index, "entries": [{"message": "y"}], "opened_by": "turn"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "x", "index": index, "lines": ["y"], "title": "z", "covers": [[1, 9]]}],
        },
    ]
    session.extend(forged)
    session.fold("all")
    session.recall("usr-7")
    session.erase(index)
    assert forged == [*session.page("usr-7").messages, *session.page("usr-8").messages]


@pytest.mark.parametrize("index", ["usr-99", "sys-7"])
def test_what_is_not_there_is_refused(index: str) -> None:
    """An index of no page is refused, and nothing is written."""
    session = open_session()
    told(session)
    seq = session.seq
    with pytest.raises(PageNotFoundError):
        session.erase(index)
    assert seq == session.seq


def test_a_system_page_can_be_erased(tmp_path: Path) -> None:
    """A part of the system prompt is erased as well, also one that was set later."""
    session = open_on(tmp_path)
    session.append(system(f"the password is {WORD}"))
    talk(session, 3)
    session.erase("sys-1")
    session.set_system([system(f"{WORD} again"), system("be kind")])
    session.erase("sys-2")
    assert [] == left_in(tmp_path)
    assert ["[erased]", "be kind"] == [message["content"] for message in session.window().messages[:2]]


def test_reading_only_erases_nothing(tmp_path: Path) -> None:
    """An engine that only reads refuses, and the page stays."""
    with open_on(tmp_path) as session:
        index = told(session)
    with Engine(f"file:{tmp_path}", read_only=True) as engine, engine.session("chat") as reader:
        with pytest.raises(PermissionDeniedError):
            reader.erase(index)
        assert WORD in json.dumps(reader.page(index).messages)


def test_a_session_in_memory_is_erased_too() -> None:
    """The same holds for a store in memory, whatever else has the session open."""
    store = MemoryStore()
    session, other = open_session(store), open_session(store)
    index = told(session)
    session.fold("all")
    other.refresh()
    assert other.search(WORD)
    session.erase(index)
    other.refresh()
    assert [] == other.search(WORD)
    assert states(session) == states(other)
    assert "archived" == session.facts(index).state == PageState.ARCHIVED
    assert [*turn(1)] == session.page("usr-1").messages


def test_sizes_are_those_of_what_is_left(tmp_path: Path) -> None:
    """A page that is in view takes as much of the window as it shows, also where the counter changed before or after."""
    for number, (first, then) in enumerate([("o200k_base", "approximate"), ("approximate", "o200k_base")]):
        with open_on(tmp_path / str(number), counter=first) as session:
            index = told(session, after=0)
        with open_on(tmp_path / str(number), counter=then) as session:
            session.erase(index)
            plain = open_session(counter=then)
            plain.extend([user("[erased]"), *session.page(index).messages[1:]])
            assert plain.page(1).tokens == session.page(index).tokens
        with open_on(tmp_path / str(number), counter=first) as session:
            session.append(user("and on"))
            assert session.page(index).tokens == sum(node.tokens for node in session.page(index).nodes()) < 60


def test_a_fork_that_was_made_before_the_page_is_another(tmp_path: Path) -> None:
    """A fork takes over what there was; a page that it opened later under the same index is its own, and stays."""
    with Engine(f"file:{tmp_path}", config_of(active={"min_pages": 2})) as engine, engine.session("chat") as session:
        talk(session, 2)
        engine.fork("chat", "before").close()
        (receipt,) = [session.erase(session.extend(marked_turn())[0].page.index)]
        assert () == receipt.forks
        with engine.session("before") as fork:
            talk(fork, 2, first=50)
        engine.fork("chat", "after").close()
        receipts = engine.erase("chat", "usr-3", forks=True)
        assert ["chat", "after"] == [each.session for each in receipts]
        engine.delete("after")
        assert ["chat"] == [each.session for each in engine.erase("chat", "usr-3", forks=True)]
        with engine.session("before") as fork:
            assert turn(50) == fork.page("usr-3").messages


class Interrupted(FileIo):
    """A file system on which something happens just before a lock is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.before: list[Callable[[], object]] = []

    def lock(self, fd: int, operation: int) -> None:
        if self.before and operation == LOCK:
            self.before.pop(0)()
        super().lock(fd, operation)


def beside(root: Path, io: FileIo, **sections: object) -> Session:
    """Open the session as another process does."""
    settings = {"active": {"min_pages": 2, "max_pages": 50}, "durability": "flush", **sections}
    return Engine(FileStore(root, "flush", io=io), config_of(**settings)).session("chat")


def erased_beside_a_fold(root: Path) -> tuple[Session, Session, str]:
    """Return the session of a process that folds a page and does not know yet that it was erased, of the other, and the page."""
    io = Interrupted()
    behind, session = beside(root, io), beside(root, FileIo())
    index = told(behind)
    session.refresh()
    io.before = [lambda: session.erase(index)]
    with pytest.raises(ConflictError):
        behind.fold("all")
    return behind, session, index


def test_a_fold_of_one_who_did_not_know_leaves_nothing(tmp_path: Path) -> None:
    """Page files that were written after an erasure by a process that did not know of it go when it hears of it."""
    behind, *_ = erased_beside_a_fold(tmp_path)
    behind.refresh()
    assert [] == left_in(tmp_path)
    behind.append(user("and on"), on_conflict="retry")
    behind.fold("all")
    assert () == behind.verify().problems
    assert [] == left_in(tmp_path)


def test_what_a_dead_process_left_is_found_and_removed(tmp_path: Path) -> None:
    """Where that process dies first, verify names the page file, and repair removes it."""
    behind, session, index = erased_beside_a_fold(tmp_path)
    behind.close()
    assert left_in(tmp_path)
    assert [index in problem for problem in session.verify().problems] == [True]
    with Engine(f"file:{tmp_path}", session.config) as engine:
        assert engine.repair("chat", apply=True).report.ok
    assert [] == left_in(tmp_path)


def test_a_snapshot_of_one_who_did_not_know_leaves_nothing(tmp_path: Path) -> None:
    """A snapshot that is written after an erasure, of a state before it, goes at once."""
    io = Interrupted()
    behind, session = beside(tmp_path, io, snapshot_every=3), beside(tmp_path, FileIo(), snapshot_every=10**6)
    index = told(behind, after=0)

    def erase_now() -> None:
        session.refresh()
        session.erase(index)

    for number in range(4):
        io.before = [lambda: None, erase_now]
        behind.append(user(f"more {number}"))
        if not io.before:  # the second lock was that of a snapshot
            break
    assert not io.before
    assert [] == left_in(tmp_path)
    behind.refresh()
    assert () == behind.verify().problems


def test_writers_do_not_hold_an_erasure_up(tmp_path: Path) -> None:
    """Who erases while another one writes goes on behind what was written."""
    io = Interrupted()
    session, other = beside(tmp_path, io), beside(tmp_path, FileIo())
    index = told(session)
    session.fold("all")
    io.before = [lambda: other.append(user("in between"), on_conflict="retry") for _ in range(40)]
    session.erase(index)
    assert [] == left_in(tmp_path)
    assert () == session.verify().problems


def in_a_directory(session: Session, name: str | None = None) -> str:
    """Tell so much that the marked page is in a directory, and return its index."""
    talk(session, 4)
    index = session.begin_page(name)
    session.extend(marked_turn())
    talk(session, 130, first=20)
    session.fold("all")
    return index


@pytest.mark.slow
def test_a_directory_that_a_checkpoint_keeps(tmp_path: Path) -> None:
    """The words that a directory took from the page leave the contents page that a restored checkpoint brought back."""
    with open_on(tmp_path, contents={"max_tokens": 300}) as session:
        index = in_a_directory(session)
        made = session.checkpoint("here")
        session.append(user("and on"))
        session.restore_checkpoint(made.id)
        session.erase(index)
        assert [] == left_in(tmp_path)
        assert all(WORD not in session.render(at=seq).to_json().decode() for seq in range(session.seq + 1))
        assert () == session.verify().problems


def test_a_name_of_several_lines(tmp_path: Path) -> None:
    """A page's name is erased as lists show it, too: in one line, and cut."""
    with open_on(tmp_path, contents={"max_tokens": 300}, budget={"window": 20_000, "reserve": 0}) as session:
        index = in_a_directory(session, f"the\t{WORD}\n  plan " + "of it " * 20)
        directory = next(entry.index for entry in session.contents.entries if isinstance(entry, Directory))
        session.recall(directory)
        session.erase(index)
        assert [] == left_in(tmp_path)


def test_a_title_that_is_a_common_word(tmp_path: Path) -> None:
    """What others said is left as it is in the contents page, though the title is a part of it, and the window keeps its size."""
    with open_on(tmp_path, contents={"max_tokens": 300}) as session:
        talk(session, 3)
        index = session.begin_page("as")
        session.extend(marked_turn())
        talk(session, 20, first=5)
        session.fold("all")
        made = session.checkpoint("here")
        session.append(user("and on"))
        session.restore_checkpoint(made.id)
        before = session.window().to_json().decode().count("ask")
        session.erase(index)
        assert before == session.window().to_json().decode().count("ask")
        core = session._core
        (shown,) = core.state.archive.message_list
        assert core.count(shown.message) <= shown.tokens


def test_a_directory_is_not_erased(tmp_path: Path) -> None:
    """A directory is no page, also where it was opened."""
    with open_on(tmp_path, contents={"max_tokens": 300}) as session:
        in_a_directory(session)
        directory = next(entry.index for entry in session.contents.entries if isinstance(entry, Directory))
        session.recall(directory)
        seq = session.seq
        with pytest.raises(PageNotFoundError, match="directory"):
            session.erase(directory)
        assert seq == session.seq


def test_a_page_that_goes_on_after_it_was_erased(tmp_path: Path) -> None:
    """Files of an erased page that are made later, or not needed any more, are nothing to repair."""
    session = erased_while_a_call_waits(tmp_path)
    session.append(result("late", "found"))
    session.append(user("thanks"))
    session.fold("all")
    assert () == session.verify().problems
    session.undo_fold()
    assert () == session.verify().problems
    assert [] == left_in(tmp_path)
