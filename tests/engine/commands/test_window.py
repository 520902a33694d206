"""What a window holds: the budget, the ladder, stubs, and a prefix that only grows."""

import base64
import json
import struct
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.stores.memory import MemoryStore
from memci.engine.core.monitor import Fold, Zone
from memci.engine.engine import Engine
from memci.errors import BudgetError, ConfigError
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import REPLY_TOKENS, count_message, count_tools
from tests.engine.sessions import NEVER, heard, open_session, talk, turn
from tests.engine.wire import Value, assert_paired, assistant, calling, result, system, user

TOOLS = [{"type": "function", "function": {"name": "look", "description": "Look something up", "parameters": {}}}]


def counted(messages: list[Value]) -> int:
    counter = get_counter("o200k_base")
    return sum(count_message(value, counter) for value in messages)


def test_a_window_counts_what_is_sent() -> None:
    """With an exact counter and nothing shortened, the tokens are those of messages, tools and the reply's start."""
    session = open_session()
    session.append(system("be brief"))
    talk(session, 3)
    window = session.window(tools=TOOLS)
    tools = count_tools(TOOLS, get_counter("o200k_base"))
    assert counted(window.messages) + tools + REPLY_TOKENS == window.tokens
    assert {"system": 6, "tools": tools, "contents": 0, "recalled": 0, "reply": 3}.items() <= window.breakdown.items()
    assert window.tokens == sum(window.breakdown.values())


def test_a_window_of_a_new_session_is_empty() -> None:
    """Before the first message a window holds nothing but room for the reply."""
    window = open_session().window()
    assert ([], REPLY_TOKENS, b"[]") == (window.messages, window.tokens, window.to_json())


def test_an_estimate_keeps_its_margin() -> None:
    """Under the approximate counter a window is counted with its margin, and with the provider's figure once it is known."""
    session = open_session(counter="approximate")
    talk(session, 10)
    window = session.window()
    raw = session._core.prepared.counted
    assert 1.15 * raw <= window.tokens <= 1.15 * raw + 7
    session.report_usage(prompt_tokens=2 * raw)
    assert 2 * raw <= session.window().tokens <= 2.2 * raw


@pytest.mark.parametrize("budget", [0, -1, 1.5, True, "900"])
def test_a_budget_is_a_number_of_tokens(budget: object) -> None:
    """A budget that is no number above 0 is refused and nothing is written."""
    session = open_session()
    talk(session, 1)
    seq = session.seq
    with pytest.raises(ConfigError, match="above 0") as caught:
        session.window(budget)  # type: ignore[arg-type]
    assert ("budget", seq) == (caught.value.path, session.seq)


def test_asking_again_writes_nothing() -> None:
    """A window with the same arguments is the same bytes and no event; other arguments are an event."""
    session = open_session()
    talk(session, 3)
    window = session.window(900, TOOLS)
    seq = session.seq
    assert window.to_json() == session.window(900, TOOLS).to_json()
    assert (seq, seq) == (session.seq, window.seq)
    session.window(901, TOOLS)
    assert seq + 1 == session.seq


def test_the_caller_owns_the_messages() -> None:
    """What the caller does to a window reaches neither the session nor the bytes of the window."""
    session = open_session()
    talk(session, 1)
    window = session.window()
    before = window.to_json()
    window.messages[0]["content"] = "changed"
    window.messages.append(user("more"))
    assert before == window.to_json() == session.window().to_json()
    assert turn(1) == session.window().messages


def test_a_window_that_cannot_fit_says_why() -> None:
    """When all steps were taken the error gives the tokens by part, and the session goes on with a larger budget."""
    session = open_session()
    session.append(system("long " * 500))
    talk(session, 5)
    with pytest.raises(BudgetError, match="nothing is lost") as caught:
        session.window(300)
    assert (300, caught.value.tokens) == (caught.value.budget, sum(caught.value.breakdown.values()))
    assert caught.value.breakdown["system"] > 500
    assert session.window(5_000).tokens <= 5_000
    assert [system("long " * 500), *(value for number in range(1, 6) for value in turn(number))] == list(session.messages())


def test_pages_fold_before_anything_is_shortened() -> None:
    """A window without room folds the oldest pages first, past the floor when it must, and keeps the newest."""
    session = open_session()
    talk(session, 10, words=20)
    notices = heard(session)
    window = session.window(500)
    fold = notices[0]
    assert isinstance(fold, Fold)
    assert ("budget", "usr-1") == (fold.reason, fold.pages[0])
    assert turn(10, 20) == window.messages[-2:]
    assert window.tokens <= 500


def test_large_entries_of_the_open_page_become_stubs() -> None:
    """When all else was done, large entries are shown as stubs that tell their size and address; the store keeps them whole."""
    session = open_session()
    session.extend([user("read it"), calling("x"), result("x", "row " * 3_000), assistant("read")])
    window = session.window(500)
    assert window.tokens <= 500
    stub = window.messages[2]
    assert ("tool", "x") == (stub["role"], stub["tool_call_id"])
    assert "usr-1/3" in stub["content"]
    assert result("x", "row " * 3_000) == session.page(1).messages[2]
    assert "row " * 3_000 == session.window(5_000).messages[2]["content"]


SCREEN = base64.b64encode(b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 1400, 1200) + bytes(400)).decode()
PICTURES = {
    "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": SCREEN}},
    "openai": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{SCREEN}", "detail": "high"}},
    "responses": {"type": "input_image", "image_url": f"data:image/png;base64,{SCREEN}", "detail": "high"},
}
WORDS = {"anthropic": "text", "openai": "text", "responses": "input_text"}


def shown_pictures(name: str, pictures: int, words: int = 5) -> Value:
    text = {"type": WORDS[name], "text": "what is it? " * words}
    return {"role": "user", "content": [*[PICTURES[name]] * pictures, text]}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_and_files_are_no_reason_for_a_stub(name: str) -> None:
    """However many tokens they have, they are shown while the window has room, also after a fold was undone and a reopening."""
    store = MemoryStore()
    session = open_session(store, format=name, snapshot_every=3)
    message = shown_pictures(name, 7)
    session.append(message)
    assert message == session.window().messages[0]
    assert session.window().tokens > 4_000
    session.extend([{"role": "assistant", "content": "A boiler."}, *(user(f"and {number}?") for number in range(9))])
    session.fold("all")
    assert message not in session.window().messages
    session.undo_fold()
    again = open_session(store, format=name, snapshot_every=3)
    assert message == again.window().messages[0]
    assert () == session.verify().problems


def test_pictures_are_stubs_where_a_budget_has_no_room() -> None:
    """The largest entries first: a small budget shows stubs of pictures as of texts, and no more of them than it must."""
    session = open_session(format="openai")
    session.extend([shown_pictures("openai", 9), shown_pictures("openai", 2)])
    window = session.window(4_000)
    assert [True, False] == ["[usr-1/" in str(message["content"]) for message in window.messages]
    assert window.to_json() == session.render(at=window.seq).to_json()
    assert [True, True] == ["[usr-1/" in str(message["content"]) for message in session.window(1_000).messages]
    assert [False, False] == ["[usr-1/" in str(message["content"]) for message in session.window().messages]


@pytest.mark.parametrize("text", ["🧵🪡", "龘靐", "ẑ͗̇", "-_", "word "])
def test_a_stub_is_short_in_any_script(text: str) -> None:
    """Whatever an entry is written in, its stub takes at most 400 tokens, and mostly far fewer."""
    with Engine("memory:", NEVER) as engine, engine.session("script") as session:
        entry = session.append(user(text * 20_000))
        assert 0 < entry.node.stub_tokens <= 400


def test_what_was_erased_is_no_stub() -> None:
    """An entry that was shown as a stub and is erased says that it was, and is counted as what it is now."""
    session = open_session()
    session.extend([user("word " * 2_000), assistant("yes")])
    assert session.window(500).messages[0]["content"].startswith("[usr-1/1: ")
    session.erase("usr-1")
    window = session.window(500)
    assert user("[erased]") == window.messages[0]
    assert sum(count_message(message, get_counter("o200k_base")) for message in window.messages) <= window.tokens


@pytest.mark.parametrize("text", ["a line of the report\n", "报告的一行。\n", "🧾 x\n"], ids=["latin", "chinese", "emoji"])
def test_a_stub_shows_as_much_as_there_is_room_for(text: str) -> None:
    """What is larger than the window shows its beginning and its end, as they are, in all the room that is left."""
    session = open_session(active={"page_tokens": 10_000})
    session.extend([user("read it"), calling("x"), result("x", text * 4_000)])
    window = session.window(4_000)
    shown = window.messages[-1]["content"]
    assert 3_600 < window.tokens <= 4_000
    assert text * 20 in shown
    assert shown.endswith(text * 10)
    assert window.to_json() == session.window(4_000).to_json()
    assert window.to_json() == session.render(at=window.seq).to_json()


def test_what_a_stub_shows_gives_way_first() -> None:
    """Where the next messages need the room, a stub shrinks to a quarter, and again, and stays so between such steps."""
    session = open_session(active={"page_tokens": 10_000})
    session.extend([user("read it"), calling("x"), result("x", "row " * 9_000)])
    shown = []
    for number in range(16):
        window = session.window(4_000)
        shown.append(len(window.messages[2]["content"]))
        session.append(assistant(f"{number} " + "word " * 250))
    sizes = list(dict.fromkeys(shown))
    assert sizes == sorted(sizes, reverse=True)
    assert 14_000 < sizes[0] < 16_000
    assert all(0.2 < small / large < 0.45 for large, small in pairwise(sizes))
    assert 3 <= len(sizes) < len(shown)


def test_a_stub_stays_one() -> None:
    """What was shown as a stub stays one until its page folds, so that the prefix does not change, and others stay whole."""
    session = open_session(active={"page_tokens": 10_000})
    session.extend([user("read it"), calling("x"), result("x", "row " * 1_400), assistant("read")])
    first = session.window(1_000)
    assert "[usr-1/3: " in first.messages[2]["content"]
    session.extend([user("more"), calling("y"), result("y", "line " * 300)])
    window = session.window(1_000)
    assert first.messages[:2] == window.messages[:2]
    assert "[usr-1/3: " in window.messages[2]["content"]
    assert "line " * 300 == window.messages[-1]["content"]


def test_results_of_tools_give_way_before_what_the_user_wrote() -> None:
    """Where room is needed in one turn, results become stubs first, the largest of them, then answers, then the user's words."""
    session = open_session(active={"page_tokens": 10_000})
    session.extend([user("ask " * 400), calling("x"), result("x", "row " * 500), assistant("say " * 450)])
    session.extend([calling("y"), result("y", "line " * 300)])

    def stubs(budget: int) -> list[int]:
        return [place for place, message in enumerate(session.window(budget).messages) if "[usr-1/" in str(message["content"])]

    assert [[], [2], [2, 5], [2, 3, 5], [0, 2, 3, 5]] == [stubs(budget) for budget in (2_000, 1_500, 1_200, 900, 600)]


@pytest.mark.parametrize("words", [150, 230, 1_000])
def test_many_results_at_once_block_nobody(words: int) -> None:
    """Results of parallel calls that are too many for a window are stubs, be they short or long."""
    session = open_session(budget={"window": 4_000, "reserve": 0})
    ids = [f"c{number}" for number in range(26)]
    session.extend([user("Read the files."), calling(*ids), *(result(call_id, "item " * words) for call_id in ids)])
    assert session.window().tokens <= 4_000


@pytest.mark.parametrize("turns", [0, 10, 60, 150])
def test_a_document_comes_before_what_was_said_long_ago(turns: int) -> None:
    """What was just said gets the room that the system part and the shortest contents page leave, however long the history is."""
    session = open_session(budget={"window": 3_000, "reserve": 0})
    talk(session, turns, words=20)
    session.append(user("Read this: " + "word " * 11_000))
    window = session.window()
    most = 3_000 - window.breakdown["contents"] - window.breakdown["work"]
    assert 0.9 * most < window.breakdown["open"]
    assert 2_250 < window.breakdown["open"]
    session.append(assistant("I have."))
    session.append(user("And?"))
    assert 0.4 * window.breakdown["open"] < session.window().breakdown["active"]


def test_there_is_no_cliff() -> None:
    """A message that is a little too large is shown to nearly the budget, as one is that just fits."""
    for words in (2_900, 2_980, 3_000, 3_100):
        session = open_session(budget={"window": 3_000, "reserve": 0})
        talk(session, 20, words=20)
        session.append(user("word " * words))
        assert 2_250 < session.window().breakdown["open"]


@pytest.mark.parametrize("line", ['{"id": %d, "ok": true, "name": "x"}', "第%d行：包裹已经寄到北京。", "行%dは終わりました。"])
@pytest.mark.parametrize("over", [1.005, 1.02, 1.05])
def test_there_is_no_cliff_in_other_texts(line: str, over: float) -> None:
    """JSON and scripts of wide characters too: how many of these make a token is found, and not taken from a rule of thumb."""
    session = open_session(budget={"window": 3_000, "reserve": 0})
    each = session.count([user("\n".join(line % number for number in range(100, 200)))]) / 100
    session.append(user("\n".join(line % number for number in range(100, 100 + int(over * 3_000 / each)))))
    assert 2_650 < session.window().tokens <= 3_000


@pytest.mark.parametrize("budget", [2_000, 4_000])
def test_a_document_has_the_room_of_a_small_window_too(budget: int) -> None:
    """Where the contents page cannot be as short as is wished for, older pages fold all the same."""
    session = open_session(budget={"window": budget, "reserve": 0})
    for number in range(200):
        session.append(user(f"What about parcel {number} to Porto, does it weigh {number % 50} kg?"))
        session.window()
        session.append(assistant(f"Parcel {number} weighs {number % 50} kg and leaves on Monday."))
    session.append(user("word " * budget))
    window = session.window()
    assert window.breakdown["active"] == 0
    assert 0.85 * (budget - window.breakdown["contents"]) < window.breakdown["open"]


@pytest.mark.parametrize("words", [1_800, 2_400, 2_700, 2_900])
def test_a_large_message_is_shown_in_part_later(words: int) -> None:
    """Once its turn is over, a message of nearly the whole budget shrinks in steps, and does not leave an empty window."""
    session = open_session(budget={"window": 3_000, "reserve": 0})
    talk(session, 20, words=20)
    session.append(user(" ".join(f"item{number}" for number in range(words // 2))))
    shares = []
    for number in range(8):
        window = session.window()
        shown = sum(f"item{item} " in str(window.messages) for item in range(words // 2)) / (words // 2)
        shares.append(round(shown, 2))
        assert window.tokens > 1_200
        session.extend([assistant("noted " * 40), user(f"and question {number}?")])
    assert shares == sorted(shares, reverse=True)
    assert shares[1] >= 0.5
    assert len(set(shares)) <= 3


def test_a_stub_that_turns_out_to_be_needless_is_none() -> None:
    """Where a small answer as a stub is not enough and what the user wrote has to be one too, the answer is shown whole."""
    session = open_session(active={"page_tokens": 10_000})
    session.extend([user("ask " * 1_400), assistant("say " * 300)])
    assert [True, False] == ["[usr-1/" in str(message["content"]) for message in session.window(1_000).messages]


@pytest.mark.parametrize("protocol", ["native", "none"])
def test_nothing_is_hidden_while_there_is_room(protocol: str) -> None:
    """A document that fits is shown whole, however long it is, and so is what a tool read."""
    session = open_session(budget={"window": 28_000, "reserve": 0}, recall={"protocol": protocol})
    session.append(user("Summarise this: " + "word " * 15_000))
    session.extend([calling("x"), result("x", "row " * 9_000)])
    assert list(session.messages()) == session.window().messages


def test_a_stub_names_a_tool_that_is_offered() -> None:
    """How to read what a stub stands for is said where the window has the tool for it, or the system part tells of ATTP."""
    said = "read it whole with read_page('usr-1/1')"
    session = open_session(recall={"protocol": "none"})
    session.append(user("word " * 1_000))
    assert said not in session.window(500).to_json().decode()
    for schemas in (session.toolbox.openai(), session.toolbox.responses(), session.toolbox.anthropic()):
        window = session.window(1_500, tools=schemas)
        assert window.breakdown["tools"]
        assert said in window.to_json().decode()
    session = open_session(recall={"protocol": "attp"})
    session.append(user("word " * 1_000))
    assert said not in session.window(500).to_json().decode()
    talk(session, 2)
    session.fold("all")
    session.append(user("word " * 4_000))
    assert "read it whole with read_page('usr-" in session.window(4_000).to_json().decode()


def test_zones_follow_the_share_of_the_budget() -> None:
    """A window below 0.50, 0.75 and 0.90 of its budget is green, yellow and orange, and red from there."""
    session = open_session()
    talk(session, 10)
    tokens = session.window().tokens
    shares = {Zone.GREEN: 0.49, Zone.YELLOW: 0.74, Zone.ORANGE: 0.89, Zone.RED: 0.98}
    assert list(shares) == [session.window(round(tokens / share)).zone for share in shares.values()]


def test_past_windows_render_again() -> None:
    """Any window that was given renders again, byte for byte, after folds, other budgets and other settings."""
    session = open_session()
    given_windows = []
    for number in range(1, 30):
        talk(session, 1, first=number)
        given_windows.append(session.window(300 + 37 * (number % 5), TOOLS if number % 2 else None))
    for window in given_windows:
        again = session.render(at=window.seq)
        assert (window.to_json(), window.tokens, window.budget) == (again.to_json(), again.tokens, again.budget)
        assert json.loads(window.to_json()) == window.messages


@pytest.mark.parametrize("at", [-1, 10_000, None, 1.0, True])
def test_an_unknown_event_cannot_be_rendered(at: object) -> None:
    """Rendering at an event that is not there is an error that says where the session is."""
    session = open_session()
    talk(session, 1)
    with pytest.raises(ConfigError, match=f"the session is at {session.seq}"):
        session.render(at=at)  # type: ignore[arg-type]


OTHER_SETTINGS: list[dict[str, Any]] = [
    {"counter": "approximate"},
    {"counter": "cl100k_base"},
    {"recall": {"protocol": "attp"}},
    {"active": {"page_tokens": 260}},
    {"budget": {"window": 700, "reserve": 100}},
]


@pytest.mark.parametrize("other", OTHER_SETTINGS, ids="-".join)
def test_other_settings_hold_from_the_next_window_on(other: dict[str, Any]) -> None:
    """A session that is opened with other settings renders by them at once, counts by them, and its past as it was."""
    store = MemoryStore()
    with open_session(store) as session:
        session.append(system("be brief"))
        talk(session, 12, words=40)
        session.extend([user("read it"), calling("x"), result("x", "row " * 300)])
        session.fold([1, 2, 3])
        session.recall(2)
        before = session.window()
    session = open_session(store, **other)
    window = session.window()
    assert window.to_json() == session.render(at=window.seq).to_json()
    assert window.tokens == session.render(at=window.seq).tokens <= window.budget
    core = session._core
    assert window.tokens >= core.state.scale * sum(count_message(value, core.counter) for value in window.messages)
    assert before.to_json() == session.render(at=before.seq).to_json()
    assert before.tokens == session.render(at=before.seq).tokens
    assert () == session.verify().problems


steps = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([1, 4, 12, 20]), st.integers(0, 2)),
    min_size=5,
    max_size=40,
)


@pytest.mark.slow
@given(steps, st.sampled_from([600, 900, 1_500]))
def test_between_folds_the_prefix_only_grows(conversation: list[tuple[int, int, int]], budget: int) -> None:
    """Each window begins with the messages of the one before, unless a fold came between them or one has no contents page."""
    session = open_session(budget={"window": budget, "reserve": 0}, active={"min_pages": 1, "page_tokens": 200})
    session.append(system("be brief"))
    notices = heard(session)
    previous: list[Value] = []
    whole = True
    for number, (calls, words, more) in enumerate(conversation):
        text = " ".join(f"w{number}x{word}" for word in range(words))
        values = [user(text)]
        if calls:
            values += [calling(*map(str, range(calls))), *(result(str(each), text) for each in range(calls))]
        values += [assistant(text)] * more
        for value in values:
            session.append(value)
            if session._core.state.active.open_page.open_calls:  # type: ignore[union-attr]
                continue  # a call of the model comes when the results are there
            folds = sum(isinstance(notice, Fold) for notice in notices)
            window = session.window().messages
            assert_paired(window)
            settled = session._core.state.settled
            assert settled is not None
            if folds == sum(isinstance(notice, Fold) for notice in notices) == 0 and whole and settled.contents:
                assert previous == window[: len(previous)]
            previous, whole = window, settled.contents
            notices.clear()
