"""What stands for long results: each call has a stub of its own text, which names what it leaves out; earlier windows stay."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest

from memci.archive.stores.contract import NewRecord
from memci.archive.stores.memory import MemoryStore
from memci.engine.commands.window import Window
from memci.engine.engine import Engine
from memci.engine.history.blocks import STUB_CHARACTERS, Stub
from memci.engine.session import Session
from memci.errors import StoreError
from memci.messages import codec
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import REPLY_TOKENS, count_message, count_tools
from memci.messages.validation import validate
from tests.engine.core.test_short_ways import called
from tests.engine.pictures import png
from tests.engine.sessions import config_of, open_session
from tests.engine.wire import Value, assistant, calling, result, user

BUDGET = 6_000
SMALL: dict[str, Any] = {"budget": {"window": BUDGET, "reserve": 0}, "active": {"low_water": 0.6}}
TIGHT: dict[str, Any] = {"budget": {"window": 1_000, "reserve": 0}}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png()}}
BLOCKS = ("anthropic", "openai")
READ_PAGE = {
    "type": "function",
    "function": {"name": "read_page", "description": "Read a page.", "parameters": {"type": "object"}},
}


def report(word: str, lines: int = 120) -> str:
    """Return a result of about seven tokens a line."""
    return "\n".join(f"{word} {line} was read" for line in range(lines))


def answered(call_id: str, content: object) -> Value:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def looked(number: int, *results: object, text: str = "") -> list[Value]:
    """Return a turn with a call for each of the results, which come in one message; with a *text* of the user's beside them."""
    ids = [f"c{number}x{place}" for place in range(len(results))]
    calls = [{"type": "tool_use", "id": each, "name": "look", "input": {}} for each in ids]
    beside = [{"type": "text", "text": text}] * bool(text)
    return [
        user(f"please look at {number}"),
        {"role": "assistant", "content": calls},
        {"role": "user", "content": [*map(answered, ids, results), *beside]},
    ]


def look(session: Session, turns: int, *results: object) -> None:
    for number in range(1, turns + 1):
        session.extend([*looked(number, *results), {"role": "assistant", "content": f"number {number} is fine"}])


def shown(window: Window, call_id: str) -> Any:  # noqa: ANN401 (the content of a result)
    """Return what a window shows under a call."""
    contents = (value["content"] for value in window.messages if isinstance(value["content"], list))
    return next(part["content"] for content in contents for part in content if part.get("tool_use_id") == call_id)


def assert_good(window: Window, wire_format: str) -> None:
    """Assert that the provider takes a window, and that it is no larger than it says."""
    assert [] == validate(window.messages, wire_format)
    assert sum(count_message(value, get_counter("o200k_base")) for value in window.messages) <= window.tokens <= window.budget


def as_before(session: Session, kinds: Iterable[str] = ()) -> MemoryStore:
    """Return a store with the journal of a session as a memci of renderer 2 wrote it, without events of some kinds."""
    store, seq = MemoryStore(), 0
    old = store.open("default", "chat")
    for record in session._core.store.journal.read():
        body = codec.decode(record.body)
        if record.kind == "configured":
            del body["renderer"]
        if record.kind == "settled":
            body["renderer"] = 2
        if record.kind not in kinds:
            old.journal.append(seq, [NewRecord(record.kind, record.version, codec.encode(body))])
            seq += 1
    session.close()
    return store


@pytest.mark.parametrize("wire_format", BLOCKS)
def test_each_result_of_a_message_has_a_stub_of_its_own(wire_format: str) -> None:
    """Under each call stand beginning and end of what answered it; a short result is whole."""
    session = open_session(**TIGHT, format=wire_format)
    session.extend(looked(1, report("apple", 400), report("pear", 400), "all is well"))
    window = session.window()
    assert_good(window, wire_format)
    for place, word in enumerate(("apple", "pear")):
        text = shown(window, f"c1x{place}")
        assert text.startswith("[usr-1/3: shortened from ")
        assert f" tokens in 3 results] {word} 0 was read\n{word} 1 was read\n" in text
        assert text.endswith(f"{word} 399 was read")
        assert ("pear" in text) == (word == "pear")
    assert "all is well" == shown(window, "c1x2")


@pytest.mark.parametrize("wire_format", BLOCKS)
def test_what_the_user_says_beside_results_is_apart_from_them(wire_format: str) -> None:
    """Where the user writes in the message of a result, each is shortened alone."""
    session = open_session(**TIGHT, format=wire_format)
    session.extend(looked(1, report("apple", 400), text="Which of them is red?"))
    window = session.window()
    assert_good(window, wire_format)
    assert "red" not in shown(window, "c1x0")
    assert {"type": "text", "text": "Which of them is red?"} == window.messages[-1]["content"][-1]


@pytest.mark.parametrize("wire_format", BLOCKS)
def test_results_of_one_message_are_trimmed_one_by_one(wire_format: str) -> None:
    """Long results that came together make room before pages fold, each by its own beginning, errors and end."""
    session = open_session(**SMALL, format=wire_format)
    failed = "\nERROR: disk full on node7\n".join([report("pear", 60), report("plum", 60)])
    look(session, 5, report("apple"), "all is well", failed)
    window = session.window()
    assert_good(window, wire_format)
    assert "trimmed" in {record.kind for record in session._core.store.journal.read()}
    assert "[usr-0]" not in window.to_json().decode()
    apples, short, pears = (shown(window, f"c1x{place}") for place in range(3))
    assert apples.startswith("[usr-1/3: shortened from ")
    assert "] apple 0 was read apple 1 was read" in apples
    assert apples.endswith("apple 119 was read")
    assert "all is well" == short
    assert "] pear 0 was read" in pears
    assert " […] ERROR: disk full on node7 […] " in pears
    assert pears.endswith("plum 59 was read")
    assert report("apple") == shown(window, "c5x0")
    assert window.to_json() == session.render(at=window.seq).to_json()


@pytest.mark.parametrize("content", [[0, 1], [1, 0], [0, 1, 0]], ids=["after", "before", "between"])
@pytest.mark.parametrize("trims", [True, False], ids=["trimmed", "stub"])
@pytest.mark.parametrize("wire_format", [*BLOCKS, "responses"])
def test_a_picture_that_is_left_out_is_named(wire_format: str, content: list[int], trims: bool) -> None:  # noqa: FBT001
    """Wherever it stood in a result, a stub and what stands for a trimmed result say that there is one."""
    session = open_session(**(SMALL if trims else TIGHT), format=wire_format)
    text = report("apple", (120 if trims else 400) // content.count(0))
    for number in range(1, 7 if trims else 2):
        picture: Value = {"type": "input_image", "image_url": f"data:image/png;base64,{png()}"}
        parts: list[Value] = [{"type": "input_text", "text": text}, picture]
        values: list[Value] = [
            user(f"look {number}"),
            {"type": "function_call", "call_id": f"c{number}", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": f"c{number}", "output": [parts[kind] for kind in content]},
        ]
        if wire_format != "responses":
            parts = [{"type": "text", "text": text}, PICTURE]
            values = looked(number, [parts[kind] for kind in content])
        session.extend(values)
    window = session.window()
    assert [] == validate(window.messages, wire_format)
    assert " tokens, 1 image left out] apple 0 was read" in window.to_json().decode()


def test_pictures_and_files_that_are_left_out_are_counted() -> None:
    """Those of each result are named with it, by kind and number; a text beside them is whole."""
    session = open_session(**TIGHT, format="anthropic")
    file = {"type": "document", "title": "Plan", "source": {"type": "base64", "media_type": "application/pdf", "data": png()}}
    session.extend(looked(1, [PICTURE, file, PICTURE], report("pear", 400), text="and these?"))
    window = session.window()
    assert_good(window, "anthropic")
    assert shown(window, "c1x0").endswith(" tokens in 2 results, 2 images, 1 document left out] [document] Plan")
    assert "left out" not in shown(window, "c1x1")
    assert {"type": "text", "text": "and these?"} == window.messages[-1]["content"][-1]


@pytest.mark.parametrize("trims", [True, False], ids=["trimmed", "stub"])
def test_windows_of_earlier_versions_are_rendered_as_they_were(trims: bool) -> None:  # noqa: FBT001
    """What a memci of renderer 2 wrote renders with its words; from the next event on, each result has its own."""
    session = open_session(**(SMALL if trims else TIGHT), format="anthropic")
    if trims:
        look(session, 8, report("apple"))
    else:
        session.extend(looked(1, report("apple", 400), report("pear", 400)))
    session.window()
    seq = session.seq
    store = as_before(session)
    again = open_session(store, **(SMALL if trims else TIGHT), format="anthropic")
    before = again.render(at=seq)
    first = shown(before, "c1x0")
    assert " tokens, kept whole] apple 0 was read" in first
    assert trims or first == shown(before, "c1x1")
    window = again.window()
    assert_good(window, "anthropic")
    assert "shortened from" in shown(window, "c1x0")
    assert again.render(at=seq).to_json() == before.to_json()
    assert again.verify().ok
    assert window.to_json() == open_session(store, **(SMALL if trims else TIGHT), format="anthropic").window().to_json()


def test_what_was_trimmed_before_any_window_is_rendered_as_it_was() -> None:
    """The journal's settings say how windows are rendered, where nobody asked for one yet."""
    session = open_session(**SMALL, format="anthropic")
    look(session, 8, report("apple"))
    session.fold()
    seq = session.seq
    assert "shortened from" in shown(session.render(at=seq), "c1x0")
    again = open_session(as_before(session, kinds=["settled"]), **SMALL, format="anthropic")
    assert " tokens, kept whole] apple 0 was read" in shown(again.render(at=again.seq), "c1x0")


def test_who_only_reads_sees_the_window_of_before() -> None:
    """Nothing is written to show a window that an earlier version asked for."""
    session = open_session(**SMALL, format="anthropic")
    look(session, 8, report("apple"))
    session.window()
    with Engine(as_before(session), config_of(**SMALL, format="anthropic"), read_only=True) as engine:
        reading = engine.session("chat")
        assert "kept whole" in shown(reading.window(), "c1x0")


def test_what_a_provider_counted_is_known_after_an_upgrade() -> None:
    """Sizes are counted anew for the new stubs; the scale by the provider's counts stays."""
    session = open_session(**SMALL, format="anthropic")
    look(session, 8, report("apple"))
    session.window()
    session.report_usage({"input_tokens": int(session._core.prepared.counted * 1.2), "output_tokens": 1})
    scale = session._core.state.scale
    assert scale > 1
    again = open_session(as_before(session), **SMALL, format="anthropic")
    again.window()
    assert scale == again._core.state.scale


def test_windows_of_unknown_renderers_are_refused() -> None:
    """Of a window that another renderer laid out, there is no guess."""
    session = open_session(format="anthropic")
    session.append(user("hello"))
    session.window()
    for renderer in (1, 5):
        settled = next(record for record in session._core.store.journal.read() if record.kind == "settled")
        body = codec.encode({**codec.decode(settled.body), "renderer": renderer})
        session._core.store.journal.append(session.seq, [NewRecord(settled.kind, settled.version, body)])
        session.refresh()
        with pytest.raises(StoreError, match=f"renderer {renderer}; this memci has 2 to 4"):
            session.render(at=session.seq)


def test_a_stub_is_made_once_a_message() -> None:
    """It is remembered beside its message: windows and folds that lay it out again do not make it anew."""
    session = open_session(**SMALL, format="anthropic")
    look(session, 8, report("apple"))
    session.window()
    trimmed = [node for page in session._core.state.active.pages() for node in page.nodes() if node.trimmed]
    assert len(trimmed) > 1

    def layouts() -> None:
        for index in ("usr-7", "usr-6"):
            session.fold([index])
            session.window()

    calls = called(layouts)
    assert calls["View._all"] > 1
    assert 0 == calls["Stub.of"]


def counted(window: Window, tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """Return what a call has, each message by itself."""
    counter = get_counter("o200k_base")
    return sum(count_message(value, counter) for value in window.messages) + count_tools(tools, counter) + REPLY_TOKENS


def filled(kind: str, store: MemoryStore | None = None) -> Session:
    """Return a session whose window shows something in part: results that were trimmed, one that is too large, or a request."""
    session = open_session(store, **(SMALL if kind == "trimmed" else TIGHT))
    for number in range(1, 9) if kind == "trimmed" else ():
        session.extend([user(f"look at {number}"), calling(f"c{number}"), result(f"c{number}", report("apple"))])
        session.append({"role": "assistant", "content": f"number {number} is fine"})
    if kind == "result":
        session.extend([user("look at 9"), calling("c9"), result("c9", report("apple", 400))])
    if kind == "request":
        session.append(user(report("apple", 400)))
    return session


@pytest.mark.parametrize("tools", [[READ_PAGE], []], ids=["read_page", "no tools"])
@pytest.mark.parametrize("kind", ["trimmed", "result", "request"])
def test_a_window_says_how_large_it_is_with_what_it_shows_in_part(kind: str, tools: list[dict[str, Any]]) -> None:
    """That counts as it is sent, with and without the tool which reads it whole; also once the session was opened again."""
    store = MemoryStore()
    session = filled(kind, store)
    session.window()
    window = session.window(tools=tools)
    assert "shortened from" in window.to_json().decode()
    assert window.tokens == counted(window, tools) == sum(window.breakdown.values()) <= window.budget
    assert min(window.breakdown.values()) == 0
    seq = session.seq
    assert (seq, window.tokens) == (session.window(tools=tools).seq, session.render(at=seq).tokens)
    again = open_session(store, **(SMALL if kind == "trimmed" else TIGHT))
    assert (seq, window.tokens) == (again.window(tools=tools).seq, again.render(at=seq).tokens)


@pytest.mark.parametrize("between", [" ", "\n\n", " " * 300, " " * 800])
@pytest.mark.parametrize("word", ["word", "词语", "\U0001f600"])
@pytest.mark.parametrize("count", [5, 100, 200, 1_000])
def test_a_stub_shows_the_ends_of_a_text_in_one_line(word: str, between: str, count: int) -> None:
    """However long a text is, and however much white space is in it, its stub is that of the text with single spaces."""
    stub = Stub(address="usr-1/2", tokens=900, offered=True)
    words = [f"{word}{number}" for number in range(count)]
    text, line = between.join(words), " ".join(words)
    if len(text) > STUB_CHARACTERS:  # shorter ones are shown as they are
        assert stub.for_text(line) == stub.for_text(text)


def test_the_hidden_middle_is_found_while_its_stub_is_in_view() -> None:
    """A search finds what a stub hides, of what is being said and of results, and nothing else of the open page."""
    text = f"{report('apple', 200)}\nthe code is ZEBRAFISH\n{report('pear', 200)}"
    for messages in ([user(text)], [user("look"), calling("c"), result("c", text)]):
        session = open_session(**TIGHT)
        session.extend(messages)
        session.window()
        hit, *others = session.search("code ZEBRAFISH")
        assert (hit.entry, others) == (f"usr-1/{len(messages)}", [])
        assert "ZEBRAFISH" in hit.snippet
        assert [] == session.search("look")
        session.extend([assistant("I see."), user("Thanks.")])
        session.window()
        assert "ZEBRAFISH" in session.search("code ZEBRAFISH")[0].snippet


def test_a_shortened_request_gives_room_in_few_steps() -> None:
    """Also once its page has folded and only the request stays in view: it does not fall to the least at once."""
    session = open_session(budget={"window": 4_000, "reserve": 0})
    session.append(user(" ".join(f"Line {number} has the value {37 * number}." for number in range(600))))
    sizes = list[int]()
    for number in range(12):
        session.extend([calling(f"c{number}"), result(f"c{number}", f"result {number} " * 60)])
        if number == 1:
            session.window()
            session.fold("all")
        messages = session.window().messages
        sizes.append(next(len(value["content"]) for value in messages if "[usr-1/1: " in str(value["content"])))
    steps = [after / before for before, after in pairwise(sizes) if after < before]
    assert 1 <= len(steps) <= 3, sizes
    assert all(0.2 < step for step in steps), sizes
