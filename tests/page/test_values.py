"""What the page shows of a session, as values, before any of it is drawn."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import memci
from memci.engine.hosting.past import past_windows
from memci.engine.session import Session
from memci.page.band import Band, chosen, read_band, savings
from memci.page.journal import Journal, read_journal, spans
from memci.page.message import MOST_CHARACTERS, shown_message
from memci.page.pages import page_detail, page_table, page_tree
from memci.page.presets import compared
from memci.page.searching import queries, searched
from memci.page.window import window_value
from memci.quality.replay import read_conversation, replay
from tests.page.sessions import EXAMPLES, SMALL, eventful, say, trip


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """A session in which much happened. No test writes to it."""
    with eventful() as opened:
        yield opened


@pytest.fixture(scope="module")
def journal(session: Session) -> Journal:
    """What its journal tells."""
    return read_journal(session)


@pytest.fixture(scope="module")
def band(session: Session, journal: Journal) -> Band:
    """Its calls, with all windows."""
    return read_band(session, journal, range(len(journal.calls)))


def test_windows_of_a_walk_are_those_that_are_rendered(session: Session, journal: Journal) -> None:
    """Each window of a walk is, byte for byte, what render makes of its event, and each message has a source."""
    for past in past_windows(session._open, journal.calls):
        again = session.render(at=past.window.seq)
        assert (again, again.to_json()) == (past.window, past.window.to_json())
        assert len(past.window.messages) == len(past.raws) == len(past.sources)


def test_a_walk_of_no_events_is_empty(session: Session) -> None:
    """Without events there is no window."""
    assert [] == list(past_windows(session._open, []))


@pytest.mark.parametrize("wire", ["openai", "anthropic", "responses"])
def test_sources_are_the_parts_of_the_breakdown(wire: str) -> None:
    """In every format, messages are of just those parts that have tokens, and a message of a page names it."""
    config = {**SMALL, "format": wire}
    with memci.Engine("memory:", config) as engine, engine.session("s") as session:
        trip(session, 30)
        session.recall("usr-2")
        session.slots["goal"] = "Keep the books."
        session.window(extra="It is Monday.")
        (past,) = past_windows(session._open, [session.seq])
    parts = {source.part for source in past.sources} | ({"system"} if past.window.system else set())
    assert {part for part, tokens in past.window.breakdown.items() if tokens} - {"reply", "tools"} <= parts | {"open", "active"}
    assert {"contents", "recalled", "slots", "extra"} <= parts
    assert "usr-2" in {source.page for source in past.sources if source.part == "recalled"}
    pages = [source.page for source in past.sources if source.part in ("active", "open")]
    assert pages == sorted(pages, key=lambda index: int(index[4:]))


def test_a_call_is_before_each_answer(session: Session, journal: Journal) -> None:
    """The calls are the windows before answers of the assistant; the last one is the window now."""
    answers = [event.seq for event in session.events("appended") if event.data["message"]["role"] == "assistant"]
    assert len(answers) + 1 == len(journal.calls)
    assert all(call < answer for call, answer in zip(journal.calls, answers, strict=False))
    assert session.render(at=session.seq).to_json() == session.render(at=journal.calls[-1]).to_json()


def test_marks_say_what_happened(journal: Journal) -> None:
    """Folds, recalls, going back and pins are told in words, in their order."""
    kinds = [mark.kind for mark in journal.marks]
    assert {"folded", "recalled", "rewound", "pinned"} <= set(kinds)
    words = " | ".join(mark.words for mark in journal.marks)
    assert "recall of usr-3" in words
    assert "the session went back to before usr-31/1" in words
    assert "usr-4 is pinned" in words
    assert [mark.seq for mark in journal.marks] == sorted(mark.seq for mark in journal.marks)


def test_figures_are_those_of_a_replay() -> None:
    """Tokens, reuse and cost of all calls, and of sending everything, are what a replay of the same conversation measures."""
    said, _ = read_conversation([EXAMPLES / "support.json"])
    config = {"budget": {"window": 2_000, "reserve": 0}}
    with memci.Engine("memory:", config) as engine:
        found = replay(engine, "support", said)
    with memci.Engine("memory:", config) as engine, engine.session("support") as session:
        for each in said:
            if each.message["role"] == "assistant":
                session.window()
            session.append(each.message, at=each.at)
        band = read_band(session, read_journal(session))
    assert (found.sent.calls, found.sent.tokens, found.sent.prefix) == (
        band.ways["memci"].calls,
        band.ways["memci"].tokens,
        band.ways["memci"].prefix,
    )
    whole = band.ways["whole"]
    assert (found.whole.tokens, found.whole.length, found.whole.prefix) == (whole.tokens, whole.length, whole.prefix)
    assert whole.tokens > band.ways["sliding"].tokens
    assert band.ways["sliding"].prefix_reuse < band.ways["memci"].prefix_reuse


def test_a_sliding_window_fits_its_budget(session: Session, journal: Journal, band: Band) -> None:
    """What the last messages take is never over the budget, and is all where all fits."""
    sliding = band.ways["sliding"]
    budgets = band.columns["budget"][:-1]
    assert sliding.tokens <= sum(budgets)
    assert sliding.tokens <= band.ways["whole"].tokens
    rows = savings(session, band)
    assert ["memci", "whole", "sliding"] == [row["way"] for row in rows]
    assert {len(journal.calls) - 1} == {row["calls"] for row in rows}


def test_what_was_taken_back_is_sent_no_more(band: Band) -> None:
    """After the session went back, everything so far is less than before."""
    whole = band.columns["whole"]
    assert any(later < former for former, later in itertools.pairwise(whole))


def test_parts_add_up(band: Band) -> None:
    """The tokens by part are those of the window, for each call."""
    for number, tokens in enumerate(band.columns["tokens"]):
        assert tokens == sum(part[number] for part in band.parts.values())


def test_misses_are_where_the_prompt_begins_otherwise(band: Band) -> None:
    """After a fold the cache misses, and it is said why; where messages only came in, it does not."""
    told = dict(band.misses)
    assert any("fold" in why for why in told.values())
    cached, tokens = band.columns["cached"], band.columns["tokens"]
    grown = [number for number in range(1, len(tokens)) if number not in told]
    assert all(cached[number] >= 0.85 * tokens[number - 1] for number in grown)


def test_few_windows_are_chosen_around_what_happened(journal: Journal) -> None:
    """Of many windows the first, the last and those at marks stand in a file, no more than were allowed."""
    total = len(journal.calls)
    assert list(range(total)) == chosen(journal, total)
    assert [0, total - 1] == chosen(journal, 2)
    some = chosen(journal, 12)
    assert {0, total - 1} <= set(some)
    assert len(some) <= 12
    after = [next(number for number, seq in enumerate(journal.calls) if seq >= mark.seq) for mark in journal.marks]
    assert len({*some} & {number - step for number in after for step in (0, 1)}) >= 6


def test_a_window_has_its_messages_with_their_parts(session: Session, journal: Journal) -> None:
    """A window as a value holds what was sent, what each message is, and how many the call before began with."""
    before, seq = journal.calls[3:5]
    value, window = window_value(session, seq, before), session.render(at=seq)
    assert [message["content"] for message in window.messages] == [message["text"] for message in value["messages"]]
    assert len(value["messages"]) == len(value["parts"]) == len(value["pages"])
    assert len(session.render(at=before).messages) == value["cached"]
    assert 0 == window_value(session, seq)["cached"]


def test_the_table_has_every_page(session: Session, journal: Journal) -> None:
    """Each fact of the pages is a column, and pages without a title are called by how they begin."""
    table = page_table(session, journal)
    assert [facts.index for facts in session.pages()] == table["index"]
    assert {len(table["index"])} == {len(column) for column in table.values()}
    assert all(table["title"])
    assert "pinned" == table["held"][table["index"].index("usr-4")]


def test_notes_stand_among_the_pages() -> None:
    """A note is in the table after the pages, in the tree where it is listed, and has its text."""
    with memci.Engine("memory:", SMALL) as engine, engine.session("s") as session:
        trip(session, 3)
        note = session.create_detail_page("Plan", "where we go", "By train to town 9.")
        journal = read_journal(session)
        assert note == page_table(session, journal)["index"][-1]
        assert note in page_tree(session)[1]["children"]
        ((_, _, tokens, message),) = page_detail(session, journal, note)["entries"]
    assert tokens > 0
    assert "By train to town 9." in message["text"]


def test_a_session_without_a_call_has_a_window() -> None:
    """Where nobody answered yet there is the window now, and nothing was sent."""
    with memci.Engine("memory:", SMALL) as engine, engine.session("s") as session:
        session.append({"role": "user", "content": "Hello?"})
        band = read_band(session, read_journal(session), [0])
        assert 1 == len(band.columns["seq"]) == len(band.windows)
        assert {0} == {row["calls"] for row in savings(session, band)}
        assert {0} == {row["tokens"] for row in savings(session, band)}


def test_another_system_prompt_leaves_nothing_to_a_cache() -> None:
    """Where a format has the system prompt apart, messages that are the same share nothing after another one."""
    with memci.Engine("memory:", {**SMALL, "format": "anthropic"}) as engine, engine.session("s") as session:
        session.set_system([{"role": "system", "content": "Be terse."}])
        trip(session, 2)
        first = session.seq
        session.set_system([{"role": "system", "content": "Be kind."}])
        session.append({"role": "user", "content": "Hello?"})
        assert 0 == window_value(session, session.seq, first)["cached"]
        assert 4 == window_value(session, first, first)["cached"]


def test_the_tree_has_every_page_once(session: Session) -> None:
    """Every page stands in the tree once, below what lists it, or among those that nothing lists."""

    def leaves(children: list[object]) -> Iterator[str]:
        for child in children:
            yield from [child] if isinstance(child, str) else leaves(child["children"])  # type: ignore[index]  # a branch

    grown = page_tree(session)
    assert sorted(facts.index for facts in session.pages()) == sorted(leaves(list(grown)))
    assert ["sys-0", "usr-0"] == [branch["index"] for branch in grown][:2]


def test_a_page_tells_all_that_is_known_of_it(session: Session, journal: Journal) -> None:
    """The detail of a page has why it is where it is, its line, what happened to it, and its messages."""
    detail = page_detail(session, journal, "usr-3")
    assert session.explain("usr-3").reasons == detail["reasons"]
    assert "3" in detail["line"]
    assert ["folded", "recall of usr-3"] == [words for _, words in detail["history"]][:2]
    assert [node.seq for node in session.page("usr-3").nodes()] == [entry[0] for entry in detail["entries"]]
    assert all(tokens > 0 for _, _, tokens, _ in detail["entries"])
    said = [message["content"] for message in session.page("usr-3").messages]
    assert said == [message["text"] for *_, message in detail["entries"]]


def test_a_search_tells_the_rank_of_what_it_does_not_give(session: Session) -> None:
    """Beside its hits a search tells all pages that match, those in the window included."""
    found = searched(session, "hotel in town 5")
    value = found.to_mapping()
    assert "usr-5" == value["hits"][0]["index"]
    assert value["hits"][0]["why"]
    assert {hit["index"] for hit in value["hits"]} < set(found.ranked)
    assert session.pages("open")[0].index in found.ranked


def test_searches_are_what_was_asked() -> None:
    """The model's own searches come first, then what the user said last."""
    call = {"id": "c1", "type": "function", "function": {"name": "search_pages", "arguments": '{"query": "hotel bill"}'}}
    with memci.Engine("memory:", SMALL) as engine, engine.session("s") as session:
        say(session, "What was it?", "I look.")
        session.append({"role": "user", "content": "And the hotel?"})
        session.append({"role": "assistant", "content": None, "tool_calls": [call]})
        session.append({"role": "tool", "tool_call_id": "c1", "content": "[]"})
        assert ["hotel bill", "And the hotel?"] == queries(session, read_journal(session), 2)


def test_presets_stand_side_by_side(session: Session) -> None:
    """Each column has its figures, the session's own first; a name that is no preset is an error."""
    heard: list[tuple[int, int]] = []
    found = compared(session, ["truncate"], lambda done, total: heard.append((done, total)))
    assert ["now", "truncate"] == found["columns"]
    assert {2} == {len(row["values"]) for row in found["rows"]}
    assert heard[-1][0] == heard[-1][1]
    with pytest.raises(memci.ConfigError, match="preset"):
        compared(session, ["none-such"], lambda _done, _total: None)


def test_presets_carry_the_tools_of_the_sessions_calls() -> None:
    """Strategies for calls with tools are those for a window without that room, and each call costs the tools too."""
    tools = [{"type": "function", "function": {"name": "look", "description": "word " * 900, "parameters": {}}}]
    room, figures = 0, []
    for window, offered in ((3_000, tools), (0, None)):
        with memci.Engine("memory:", {"budget": {"window": window or 3_000 - room, "reserve": 0}}) as engine:
            session = engine.session("s")
            for number in range(30):
                session.append({"role": "user", "content": f"question {number} " * 30})
                room = session.window(tools=offered).breakdown["tools"] or room
                session.append({"role": "assistant", "content": f"answer {number} " * 30})
            found = compared(session, ["truncate"], lambda _done, _total: None)
            figures.append({row["label"]: row["values"] for row in found["rows"]})
    beside, alone = figures
    assert beside["folds"] == alone["folds"]
    assert [sent + 30 * room for sent in alone["tokens sent"]] == beside["tokens sent"]
    assert all(more > less for more, less in zip(beside["prefix reuse"], alone["prefix reuse"], strict=True))


ITEM = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}
LONG = "x" * MOST_CHARACTERS


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"role": "user", "content": "Hi"}, {"role": "user", "text": "Hi", "rest": ""}),
        ({"role": "user", "content": "Hi", "n": 2**70}, {"role": "user", "text": "Hi", "rest": f'{{"n":{2**70}}}'}),
        (ITEM, {"role": "function_call", "text": "→ f({})", "rest": json.dumps(ITEM, indent=2)}),
        ({"role": "user", "content": f"{LONG}xxx"}, {"role": "user", "text": LONG, "rest": "", "cut": 3}),
    ],
    ids=["text", "large-number", "item", "long"],
)
def test_a_message_is_its_words_and_the_rest(value: dict[str, object], shown: dict[str, object]) -> None:
    """A message is shown as who said it, its words, and the rest as JSON; what is left out of a long one is counted."""
    assert shown == shown_message(value)


def test_neighbours_are_told_as_ranges() -> None:
    """Pages are told in few words, and what is no page as it is."""
    assert "usr-1..3, usr-7, sys-1, usr-4..9" == spans(["usr-1", "usr-2", "usr-3", "usr-7", "sys-1", "usr-4..9"])


def test_a_restored_checkpoint_brings_back_what_was_said(tmp_path: Path) -> None:
    """Going to a checkpoint takes back what came after it, and everything so far is as it was there."""
    with memci.Engine(f"file:{tmp_path}", SMALL) as engine, engine.session("s") as session:
        trip(session, 3)
        checkpoint = session.checkpoint("here")
        session.append({"role": "user", "content": "One more."})
        session.window()
        session.restore_checkpoint(checkpoint.id)
        session.append({"role": "user", "content": "One more."})
        session.window()
        session.append({"role": "assistant", "content": "Yes."})
        whole = read_band(session, read_journal(session)).columns["whole"]
        rounded_up = session.render(at=read_journal(session).calls[-2]).tokens - whole[-2]
        assert 0 <= rounded_up <= 2


def test_schemas_of_tools_count_in_each_way() -> None:
    """While everything fits, windows with tools take what sending everything takes, and the cache could have the tools."""
    tools = [{"type": "function", "function": {"name": "look_up", "description": "Look a price up. " * 20}}]
    with memci.Engine("memory:", {"budget": {"window": 5_000, "reserve": 0}}) as engine, engine.session("s") as session:
        for number in range(5):
            session.append({"role": "user", "content": f"What does part {number} cost?"})
            session.window(tools=tools)
            session.append({"role": "assistant", "content": f"{number} euros."})
        band = read_band(session, read_journal(session))
    assert min(band.parts["tools"]) > 50
    assert {ours - whole for ours, whole in zip(band.columns["tokens"], band.columns["whole"], strict=True)} == {0}
    assert all(cached > tools for cached, tools in zip(band.columns["cached"][1:], band.parts["tools"][1:], strict=True))
    assert 1 == len({(ways.tokens, ways.length, ways.prefix) for ways in band.ways.values()})
