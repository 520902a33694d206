"""What memci wrote of a page in lists goes, whatever marks the words have in them; titles and keywords are anybody's text."""

from typing import Any, get_args

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks import history
from memci.archive.contents.base_path import find_base
from memci.archive.contents.contents_page import ContentsPage, Directory
from memci.archive.stores.contract import Record
from memci.archive.stores.memory import MemoryStore
from memci.engine.erasure.redaction import Redaction
from memci.engine.history.events import Event
from memci.messages import codec
from memci.messages.formats import format as formats
from memci.messages.formats import openai
from tests.engine.sessions import open_session
from tests.engine.wire import assistant, user

WORD = "Zanzibar"

MARKS = (
    "; ",
    ", ",
    ": ",
    " · ",
    "…",
    "[usr-3] ",
    "usr-1..usr-9 · 3 pages · 12 tokens: ",
    "\n",
    "\u2028",
    ";",
    ",",
    " ",
    "x",
    "[erased]",
)

marked = st.lists(st.sampled_from(MARKS), max_size=4).map("".join)
titles = st.builds(lambda before, after: f"{before}{WORD}{after}{WORD}", marked, marked)
plain_titles = marked.map(lambda marks: f"plan{marks}y")


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 4, deadline=None)
@given(title=titles, others=st.lists(plain_titles, min_size=1, max_size=4), number=st.integers(1, 40), single=st.booleans())
@example(title=f"{WORD} account; patient {WORD}", others=["Ask; town"], number=2, single=False)
@example(title=f"a, {WORD}", others=["a"], number=2, single=True)
def test_a_title_leaves_every_list(title: str, others: list[str], number: int, single: bool) -> None:  # noqa: FBT001 (drawn)
    """Nothing of a title is left in contents pages, opened directories and states that checkpoints keep."""
    window = 20_000 if single else 1_500  # in a list of little room a line stands for several pages
    store = MemoryStore()
    session = open_session(
        store, budget={"window": window, "reserve": 0}, active={"min_pages": 1}, contents={"max_tokens": 150}, snapshot_every=20
    )
    made = session.checkpoint("empty")
    for place in range(1, 45):
        index = session.begin_page(title if place == number else others[place % len(others)])
        session.extend([user(f"ask {place}"), assistant(f"told {place}")])
        if place == number:
            erased = index
    session.fold("all")
    directories = [entry.index for entry in session.contents.entries if isinstance(entry, Directory)]
    for directory in directories:
        session.recall(directory)
    here = session.checkpoint("here")
    session.window()
    session.restore_checkpoint(made.id)
    session.restore_checkpoint(here.id)
    seq = session.seq
    session.erase(erased)
    records = [record.body.decode() for record in session._core.store.journal.read()]
    assert [] == [body for body in records if WORD in body]
    assert directories
    assert all(WORD not in session.render(at=at).to_json().decode() for at in (here.seq, seq, session.seq))
    assert () == session.verify().problems
    session.restore_checkpoint(here.id)
    assert WORD not in session.window().to_json().decode()
    assert () == session.verify().problems


@pytest.mark.parametrize(("pages", "heading"), [((4, 3), "13 pages"), ((3,), "13 pages · …/ is /srv/zebra/app/")])
def test_a_directory_of_paths_leaves_with_the_last_page_that_names_it(pages: tuple[int, ...], heading: str) -> None:
    """What a heading says that rows are below is said by two pages; once both are erased, nothing says it."""
    said = [(3, "/srv/zebra/app/a.py"), (4, "/srv/zebra/app/b.py"), (4, "/srv/zebra/app/c.py"), (5, "lunch")]
    spans = tuple((page, text, 1.0, " ") for page, text in said)
    directory = Directory(index="usr-1..13", spans=spans, covers=((1, 13),), pages=13, archived_turn=9, base=find_base(spans))
    shown = openai.block(ContentsPage(index="usr-0", entries=(directory,), tokens=9).render()).value()
    body = directory.to_mapping()
    wire = formats.get("openai")
    for page in pages:
        redaction = Redaction(page=f"usr-{page}", wire=wire, count=lambda message: len(message.raw), count_text=len)
        body = told(redaction, 1, "folded", {"directories": [body]})["directories"][0]
        shown = redaction.published({"message": shown, "tokens": 99, "indexes": [directory.index], "directories": []})["message"]
    left = Directory.from_mapping(body)
    assert f"[usr-1..13] {heading}" == left.render().split("\n")[0]
    assert openai.block(ContentsPage(index="usr-0", entries=(left,), tokens=9).render()).value() == shown
    assert (len(pages) == 1) == ("zebra" in str(body))


@settings(deadline=None)
@given(words=st.lists(titles, min_size=1, max_size=3), others=st.lists(titles, max_size=3), first=st.booleans())
def test_what_a_directory_says_of_a_page_leaves_it(words: list[str], others: list[str], first: bool) -> None:  # noqa: FBT001 (drawn)
    """What a directory says of the page leaves it, and the line that shows it; what it says of others stays as it is."""
    said, rest = [(3, word, 1.0, ", ") for word in words], [(13, word, 1.0, ", ") for word in others]
    spans = tuple([*said, *rest] if first else [*rest, *said])
    directory = Directory(index="usr-1..13", spans=spans, covers=((1, 13),), pages=13, archived_turn=9)
    shown = openai.block(ContentsPage(index="usr-0", entries=(directory,), tokens=9).render())
    redaction = Redaction(page="usr-3", wire=formats.get("openai"), count=lambda message: len(message.raw), count_text=len)
    left = told(redaction, 1, "folded", {"directories": [directory.to_mapping()]})
    assert [tuple(rest)] == [Directory.from_mapping(value).spans for value in left["directories"]]
    state = {"message": shown.value(), "tokens": 99, "indexes": [directory.index], "directories": []}
    kept = attrs.evolve(directory, spans=tuple(rest))
    expected = openai.block(ContentsPage(index="usr-0", entries=(kept,), tokens=9).render())
    assert expected.value() == redaction.published(state)["message"]
    assert 1 == redaction.records


@pytest.mark.parametrize("word", [[3], [3, 0], [3, 1, " → ", 4]])
def test_what_a_directory_still_says_of_a_page_leaves_it(word: list[Any]) -> None:
    """A record that only points to what was said of a page before points to it no more."""
    redaction = Redaction(page="usr-3", wire=formats.get("openai"), count=lambda message: len(message.raw), count_text=len)
    directory = {"index": "usr-1..13", "spans": [[1], word, [13, 2]], "covers": [[1, 13]], "pages": 13, "archived_turn": 9}
    left = told(redaction, 1, "folded", {"directories": [directory]})
    assert [{**directory, "spans": [[1], [13, 2]]}] == left["directories"]
    assert 1 == redaction.records


def test_windows_after_an_erasure_hold_what_was_said_of_other_pages() -> None:
    """A directory that was written by what it said before says the same of all pages but the erased one."""
    session = open_session(
        budget={"window": 2_500, "reserve": 0},
        active={"min_pages": 2},
        contents={"max_tokens": 400},
        rules={"detect": False},
        snapshot_every=10_000,
    )
    lines = (message["content"][:90] for message in history.messages(100))
    for asked, answered in zip(lines, lines, strict=True):
        session.extend([user(asked), assistant(answered)])
    session.fold("all")
    records = [codec.decode(record.body) for record in session._core.store.journal.read() if record.kind == "folded"]
    points = [span for body in records for value in body["directories"] for span in value["spans"] if isinstance(span[-1], int)]
    (*_, directory) = (entry for entry in session.contents.entries if isinstance(entry, Directory))
    erased = next(number for number, *_ in points if number in directory.listed)
    said = [span for span in directory.spans if span[0] != erased]
    session.erase(f"usr-{erased}")
    assert () == session.verify().problems
    (*_, left) = (entry for entry in session.contents.entries if isinstance(entry, Directory))
    assert said == list(left.spans)


def test_each_kind_of_event_says_how_it_is_erased() -> None:
    """A new kind of event says what is left of it without a page, or no page can be erased."""
    assert {event.kind for event in get_args(Event)} == set(Redaction.WITHOUT)


def told(redaction: Redaction, seq: int, kind: str, body: dict[str, Any]) -> dict[str, Any]:
    encoded = codec.encode(body)
    return redaction.event(Record(seq, kind, 1, encoded), codec.decode(encoded))
