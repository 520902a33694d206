"""Sessions of Anthropic's messages and of Responses items: pages, pairs, windows, and the format that a session keeps."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.stores.memory import MemoryStore
from memci.chat import Chat
from memci.engine.commands.window import Window
from memci.engine.session import Session
from memci.errors import ConfigError, InvalidMessageError
from memci.messages.formats.anthropic import holders
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import count_message
from memci.messages.validation import validate
from tests.engine.sessions import config_of, open_session
from tests.engine.wires import ANTHROPIC, RESPONSES, WIRES, Value, Wire, assert_valid

SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "go"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}


def use(*ids: str) -> Value:
    return {
        "role": "assistant",
        "content": [THOUGHT, *({"type": "tool_use", "id": each, "name": "look", "input": {}} for each in ids)],
    }


def results(*ids: str, text: str = "found") -> Value:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": each, "content": text} for each in ids]}


def pages(session: Session) -> list[list[Value]]:
    return [session.page(facts.index).messages for facts in session.pages() if facts.index.startswith("usr")]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_turn_is_a_page_in_every_format(wire: Wire) -> None:
    """The user opens a page; what the model says and the results of its parallel calls stay in it, in the order they came."""
    session = open_session(format=wire.name)
    turns = []
    for number in range(3):
        ids = [f"a{number}", f"b{number}"]
        called = wire.answer("hm", "", ids)
        turn = [wire.user("go"), *called, *(wire.result(each, "found") for each in ids), *wire.answer("", "done", ())]
        session.extend(turn)
        turns.append(turn)
    assert turns == pages(session)
    assert_valid(session.window(), wire.name)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_one_append_each_gives_the_same_pages_as_one_for_all(wire: Wire) -> None:
    """It does not matter whether items come one by one, with the window asked for in between."""
    together, alone = open_session(format=wire.name), open_session(format=wire.name)
    values = [
        wire.user("go"),
        *wire.answer("hm", "ok", ["a", "b"]),
        wire.result("a", "1"),
        wire.result("b", "2"),
        wire.user("on"),
    ]
    together.extend(values)
    for value in values:
        alone.append(value)
        assert_valid(alone.window(), wire.name)
    assert pages(together) == pages(alone)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_contents_recalled_pages_and_stubs_stand_in_the_format(wire: Wire) -> None:
    """A window with a contents page, a recalled page and a stub is one that the provider takes, and none of it is lost."""
    session = open_session(format=wire.name, active={"min_pages": 1}, budget={"window": 1_500, "reserve": 0})
    session.append(wire.system("Be brief."))
    for number in range(5):
        session.extend([wire.user(f"question {number}"), *wire.answer("hm", f"answer {number}", ())])
    session.fold("all")
    session.recall(2)
    session.extend([wire.user("last"), *wire.answer("hm", "", ["a"]), wire.result("a", "word " * 2_000)])
    window = session.window(tools=session.toolbox.openai())
    assert_valid(window, wire.name)
    text = window.to_json().decode()
    assert "Contents of earlier pages" in text
    assert "[recalled page usr-2" in text
    assert "read it whole with read_page" in text
    assert "word word word" not in text.replace("word " * 60, "") or len(text) < 6_000
    assert session.page(6).messages[-1] == wire.result("a", "word " * 2_000)


def test_the_system_prompt_of_anthropic_is_a_parameter() -> None:
    """What was said as role system at the beginning stands in ``window.system``, and memci's instructions behind it."""
    session = open_session(format="anthropic", active={"min_pages": 1})
    cached = {"type": "text", "text": "Rules.", "cache_control": {"type": "ephemeral"}}
    session.append(SYSTEM)
    session.append({"role": "system", "content": [cached]})
    session.append(USER)
    window = session.window()
    assert [{"type": "text", "text": "Be brief."}, cached] == window.system
    assert [USER] == window.messages
    session.append({"role": "assistant", "content": "done"})
    session.append(USER)
    session.fold([1])
    assert 2 == len(session.window().system or ())
    assert 3 == len(session.window(tools=session.toolbox.anthropic()).system or ())


@pytest.mark.parametrize("name", ["openai", "responses"])
def test_elsewhere_it_stands_among_the_messages(name: str) -> None:
    """The other formats have no parameter for it."""
    session = open_session(format=name)
    session.extend([SYSTEM, USER])
    assert (None, [SYSTEM, USER]) == (session.window().system, session.window().messages)


def test_results_of_anthropic_do_not_open_a_page() -> None:
    """A user message that carries results only belongs to the turn; text beside results stays with its call as well."""
    session = open_session(format="anthropic")
    session.extend([USER, use("a"), results("a"), use("b")])
    session.append({"role": "user", "content": [*results("b")["content"], {"type": "text", "text": "also this"}]})
    assert 1 == len(pages(session))
    session.append(USER)
    assert 2 == len(pages(session))


def test_results_of_one_turn_become_one_message() -> None:
    """Results that came one by one, and the closing of a call without one, stand in one message, before any text."""
    session = open_session(format="anthropic")
    session.extend([USER, use("a", "b", "c"), results("b")])
    session.append({"role": "user", "content": [{"type": "text", "text": "also"}, *results("a")["content"]]})
    session.append(USER)
    window = session.window()
    kinds = [part.get("tool_use_id", part["type"]) for part in window.messages[2]["content"]]
    assert ["b", "a", "c", "text"] == kinds
    assert_valid(window, "anthropic")


def test_thinking_is_never_changed() -> None:
    """Thinking of a long entry stays whole and in front when the entry is shown as a stub."""
    session = open_session(format="anthropic", budget={"window": 1_000, "reserve": 0})
    long = {**use("a")["content"][1], "input": {"text": "word " * 2_000}}
    session.extend([USER, {"role": "assistant", "content": [THOUGHT, {"type": "text", "text": "so"}, long]}, results("a")])
    content = session.window().messages[1]["content"]
    assert [THOUGHT, {**long, "input": {}}] == [content[0], content[2]]
    assert content[1]["text"].startswith("[usr-1/2: ")


def test_empty_texts_inside_results_are_left_out_of_windows() -> None:
    """A result keeps what it holds beside empty texts, and may hold nothing."""
    session = open_session(format="anthropic")
    session.append({"role": "user", "content": "go"})
    calls = [{"type": "tool_use", "id": each, "name": "look", "input": {}} for each in "ab"]
    session.append({"role": "assistant", "content": calls})
    blank, text = {"type": "text", "text": " "}, {"type": "text", "text": "found"}
    contents = {"a": [blank, text], "b": [blank]}
    found = [{"type": "tool_result", "tool_use_id": each, "content": content} for each, content in contents.items()]
    session.append({"role": "user", "content": found})
    window = session.window()
    assert [[text], []] == [block["content"] for block in window.messages[-1]["content"]]
    assert_valid(window, "anthropic")


def test_what_anthropic_refuses_is_left_out_of_windows() -> None:
    """Empty texts, empty answers and thinking at the end are kept in the session and left out of the window."""
    session = open_session(format="anthropic")
    odd: list[Value] = [
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": []},
        {"role": "assistant", "content": [THOUGHT]},
        {"role": "assistant", "content": [{"type": "text", "text": " "}, {"type": "text", "text": "yes"}]},
        {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]},
    ]
    session.extend([USER, *odd, USER])
    assert [USER, *odd] == pages(session)[0]
    said = {"role": "assistant", "content": [{"type": "text", "text": "yes"}]}
    assert [USER, said, USER] == session.window().messages


@pytest.mark.parametrize(
    "said", ["The answer: \n", [THOUGHT, {"type": "text", "text": 'f(")];\n'}, THOUGHT]], ids=["text", "blocks"]
)
def test_a_text_that_the_model_goes_on_with_ends_without_white_space(said: Any) -> None:  # noqa: ANN401 (a content)
    """White space behind the last text is left out while that is the end of the window, which stays within its count."""
    session = open_session(format="anthropic")
    session.extend([USER, {"role": "assistant", "content": said}])
    window = session.window()
    assert_valid(window, "anthropic")
    counter = get_counter("o200k_base")
    assert sum(count_message(value, counter) for value in window.messages) <= window.tokens
    assert said == session.page(1).messages[1]["content"]
    session.append(USER)
    whole = said if isinstance(said, str) else said[:2]
    assert whole == session.window().messages[1]["content"]


@pytest.mark.parametrize("nothing", [{}, {"content": None}, {"content": []}, {"content": None, "tool_calls": []}])
def test_answers_that_say_nothing_are_sent_as_empty_texts(nothing: Value) -> None:
    """An answer of OpenAI's chat without content and calls is kept as it came, and stands in the window as one the API takes."""
    session = open_session()
    session.extend([USER, {"role": "assistant", **nothing}, {"role": "assistant", "content": None, "refusal": "No."}])
    assert {"role": "assistant", **nothing} == session.page(1).messages[1]
    empty = {"role": "assistant", "content": ""}
    assert [USER, empty, {"role": "assistant", "content": None, "refusal": "No."}] == session.window().messages


def test_a_search_that_the_provider_goes_on_with_is_sent_back_whole() -> None:
    """A turn that paused at the provider's own tool is the last message of the window, and its page is not cut there."""
    session = open_session(format="anthropic", active={"page_tokens": 10})
    server = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "long " * 50}}
    paused = {"role": "assistant", "content": [{"type": "text", "text": "I search."}, server]}
    session.extend([USER, paused])
    assert [USER, paused] == session.window().messages
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    session.append({"role": "assistant", "content": [found, {"type": "text", "text": "There."}]})
    assert 1 == len(pages(session))
    assert_valid(session.window(), "anthropic")


def ids(window: Window) -> list[str]:
    """Return the ids of the calls and results of a window, in order."""
    blocks = [block for value in window.messages if isinstance(value["content"], list) for block in value["content"]]
    return [block.get("id") or block["tool_use_id"] for block in blocks if block["type"] in ("tool_use", "tool_result")]


def test_ids_that_repeat_differ_in_the_window() -> None:
    """A later call of the same id gets the first free number there, and its result too; the session keeps what came."""
    session = open_session(format="anthropic")
    turn = [USER, use("a", "b"), results("b", "a"), {"role": "assistant", "content": "done"}]
    session.extend([*turn, USER, use("1"), results("1"), *turn[3:], *turn, *turn])
    window = session.window()
    assert [*"abba", *"11", *"2332", *"4554"] == ids(window)
    assert_valid(window, "anthropic")
    assert [turn, turn, turn] == [pages(session)[number] for number in (0, 2, 3)]
    session.fold("all")
    assert_valid(session.window(), "anthropic")


@pytest.mark.slow
@given(st.lists(st.sampled_from(["call_0", "call_1", "said", "asked", "found call_0", "found call_1"]), max_size=14))
def test_items_with_ids_of_local_servers_keep_their_results(steps: list[str]) -> None:
    """However calls of the same ids and their late results are mixed: each result stands with the newest call that had none."""
    session = open_session(format="responses", budget={"window": 100_000, "reserve": 0})
    session.append(USER)
    waiting: dict[str, list[str]] = {}
    belongs: dict[str, str] = {}
    for number, step in enumerate(steps):
        made, call_id = f"fc_{number}", step.removeprefix("found ")
        if step in ("said", "asked"):
            session.append({"role": "assistant" if step == "said" else "user", "content": step})
        elif step == call_id:
            waiting.setdefault(step, []).append(made)
            session.append({"type": "function_call", "id": made, "call_id": step, "name": "look", "arguments": "{}"})
        elif waiting.get(call_id):
            belongs[made] = waiting[call_id].pop()
            session.append({"type": "function_call_output", "call_id": call_id, "output": made})
        window = session.window()
        assert_valid(window, "responses")
    made_by: dict[str, str] = {}
    for value in session.window().messages:
        if value.get("type") == "function_call":
            made_by[value["call_id"]] = value["id"]
        elif value.get("output") in belongs:
            assert belongs[value["output"]] == made_by[value["call_id"]]


def test_a_repeated_id_changes_nothing_before_it() -> None:
    """The window grows by what was appended, also where a call is closed without a result, and stays within its count."""
    session = open_session(format="anthropic", budget={"window": 100_000, "reserve": 0})
    counter = get_counter("o200k_base")
    before: list[Value] = []
    for number in range(12):
        session.extend([USER, use("1", "toolu_x"), *([results("toolu_x", "1")] if number % 2 else [])])
        if number % 3:
            session.append(use("toolu_x"))
            session.append(results("toolu_x"))
        session.append({"role": "assistant", "content": "done"})
        window = session.window()
        assert before == window.messages[: len(before)]
        assert_valid(window, "anthropic")
        assert sum(count_message(value, counter) for value in window.messages) <= window.tokens
        before = window.messages


def test_at_most_four_breakpoints_are_sent() -> None:
    """Of more blocks with cache_control than a call may hold, the last one of the system prompt and the newest keep theirs."""
    session = open_session(format="anthropic")
    mark = {"cache_control": {"type": "ephemeral"}}
    session.append({"role": "system", "content": [{"type": "text", "text": each, **mark} for each in "ab"]})
    turns = [{"role": "user", "content": [{"type": "text", "text": str(number), **mark}]} for number in range(6)]
    session.extend(turns)
    window = session.window()
    assert [False, True] == ["cache_control" in part for part in window.system or ()]
    marked = ["cache_control" in value["content"][0] for value in window.messages]
    assert [False, False, False, True, True, True] == marked
    assert turns == pages(session)[0]


def test_no_breakpoint_takes_the_place_of_one() -> None:
    """Blocks that say ``cache_control: null`` count as no breakpoints: they stay as they are, and no real one is left out."""
    session = open_session(format="anthropic")
    session.append({"role": "system", "content": [{"type": "text", "text": "a", "cache_control": None}]})
    marks = [{"type": "ephemeral"}] * 4 + [None] * 4
    turn = {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": mark} for mark in marks]}
    session.append(turn)
    window = session.window()
    assert [{"type": "text", "text": "a", "cache_control": None}] == window.system
    assert [turn] == window.messages
    assert_valid(window, "anthropic")


def test_a_conversation_that_the_assistant_begins_gets_an_opening() -> None:
    """Anthropic's first message is the user's; the other formats need nothing."""
    session = open_session(format="anthropic")
    session.append({"role": "assistant", "content": "Hello, how can I help?"})
    window = session.window()
    assert "user" == window.messages[0]["role"]
    assert_valid(window, "anthropic")


def test_reasoning_stays_with_its_item() -> None:
    """No page is cut between a reasoning and what follows it, and a reasoning whose item is gone is left out of the window."""
    session = open_session(format="responses", active={"page_tokens": 10})
    items = RESPONSES.answer("long " * 50, "", ["a"])
    session.extend([USER, *items, RESPONSES.result("a", "found " * 50), *RESPONSES.answer("hm", "done", ())])
    starts = [page[0].get("type") for page in pages(session)]
    assert [None, "reasoning"] == starts
    session.rewind("usr-1/3")
    assert items[0] == session.page(1).messages[-1]
    assert [USER] == session.window().messages


def test_an_item_whose_id_is_gone_takes_its_reasoning_with_it() -> None:
    """The provider finds the item of a reasoning by its id."""
    session = open_session(format="responses")
    reasoning, call = RESPONSES.answer("hm", "", ["a"])
    del call["id"]
    session.extend([USER, reasoning, call, RESPONSES.result("a", "1")])
    assert [USER, call, RESPONSES.result("a", "1")] == session.window().messages


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_erased_pages_leave_messages_that_the_provider_takes(wire: Wire) -> None:
    """What is left of an erased page says nothing, pairs as before, and holds no thinking."""
    session = open_session(format=wire.name)
    session.extend([wire.user("secret"), *wire.answer("secret", "secret", ["a"]), wire.result("a", "secret"), wire.user("on")])
    session.erase(1)
    window = session.window()
    assert_valid(window, wire.name)
    assert "secret" not in window.to_json().decode()
    assert () == session.verify().problems


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_result_without_its_call_names_the_place(wire: Wire) -> None:
    """The error names the key under which the format puts the id of the call."""
    session = open_session(format=wire.name)
    session.append(wire.user("go"))
    with pytest.raises(InvalidMessageError) as caught:
        session.append(wire.result("nobody", "1"))
    assert {"openai": "tool_call_id", "responses": "call_id", "anthropic": "content"}[wire.name] == caught.value.path


def test_a_session_keeps_its_format() -> None:
    """Another format in the settings is refused at the first command that would write; reading goes on."""
    store = MemoryStore()
    session = open_session(store, format="anthropic")
    session.extend([USER, use("a"), results("a")])
    other = open_session(store)
    assert 3 == len(list(other.messages()))
    for command in (lambda: other.append(USER), other.window, other.begin_page):
        with pytest.raises(ConfigError) as caught:
            command()
        assert "format" == caught.value.path
        assert "anthropic" in str(caught.value)
    session.append(USER)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_tools_answer_in_the_format_of_the_call(wire: Wire) -> None:
    """What ``handle_tool_call`` returns can be appended as it is."""
    session = open_session(format=wire.name)
    session.append(wire.user("go"))
    (message,) = wire.answer("", "", ["a"])
    session.append(message)
    call: Any = message
    if wire is ANTHROPIC:
        call = message["content"][0]
    elif wire is not RESPONSES:
        call = message["tool_calls"][0]
    session.append(session.handle_tool_call(call))
    assert [] == validate(session.window().messages, wire.name)
    schemas = {"openai": session.toolbox.openai, "responses": session.toolbox.responses, "anthropic": session.toolbox.anthropic}
    assert "recall_page" in str(schemas[wire.name]())


def test_the_loop_speaks_openai_only() -> None:
    """The loop around a session refuses one of another format before anything is asked."""
    with pytest.raises(ConfigError) as caught:
        Chat(open_session(format="anthropic"), model=None)  # type: ignore[arg-type]  # it is never asked
    assert "format" == caught.value.path


def test_items_of_one_answer_are_one_call() -> None:
    """The traffic that decides when to fold counts answers of the model, not items."""
    session = open_session(format="responses")
    session.extend([USER, *RESPONSES.answer("hm", "so", ["a", "b"]), RESPONSES.result("a", "1"), RESPONSES.result("b", "2")])
    session.extend(RESPONSES.answer("hm", "done", ()))
    assert 2 == session._core.state.traffic.calls


def test_an_unwritten_session_takes_the_format_of_its_settings() -> None:
    """Before the first event a session speaks the format of its process."""
    session = open_session(format="responses")
    assert "responses" == session.config.format == config_of(format="responses").format
    session.set_system([{"role": "developer", "content": "a"}])
    assert [{"role": "developer", "content": "a"}] == session.window().messages


def marked(window: Window) -> list[str]:
    """Return the beginnings of the texts behind which a breakpoint stands, in the order of the window."""
    blocks = [*(window.system or ()), *(block for message in window.messages for block in holders(message["content"]))]
    return [str(block.get("text") or block.get("content") or block["type"])[:8] for block in blocks if "cache_control" in block]


def test_breakpoints_stand_at_the_ends_of_segments() -> None:
    """When asked for: behind the system prompt, the contents page, the complete pages and the last message, and nowhere else."""
    session = open_session(format="anthropic", cache_breakpoints=True)
    own = {"type": "text", "text": "mine", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    session.extend([SYSTEM, {"role": "user", "content": [own]}, {"role": "assistant", "content": "one"}])
    assert ["Be brief", "one"] == marked(session.window())
    session.extend([{"role": "user", "content": "two"}, {"role": "assistant", "content": "answer2"}])
    session.extend([{"role": "user", "content": "three"}, {"role": "assistant", "content": "answer3"}])
    session.fold("usr-1")
    session.recall("usr-1")
    session.extend([USER, use("a"), results("a")])
    window = session.window(tools=session.toolbox.anthropic())
    assert ["Earlier ", "[usr-0] ", "answer3", "found"] == marked(window)
    assert_valid(window, "anthropic")
    assert window.to_json() == session.render(session.seq).to_json()
    assert [own] == session.page("usr-1").messages[0]["content"]


SEARCH = [
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
]
ODD = {"type": "from_next_year"}


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([{"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "f"}}]}], (0, 0)),
        ([USER, {"role": "assistant", "content": SEARCH}], (1, 1)),
        ([USER, {"role": "assistant", "content": [*SEARCH, ODD]}], (1, 1)),
        ([USER, {"role": "assistant", "content": [ODD]}], (0, 0)),
        ([USER, {"role": "assistant", "content": [{"type": "text", "text": "hm"}, SEARCH[0]]}, ODD], (1, 0)),
        ([USER, {"role": "assistant", "content": [THOUGHT, *SEARCH[:1]]}], (1, 1)),
        ([USER, use("a"), {"role": "user", "content": [{"type": "text", "text": "so"}, *results("a")["content"]]}], (2, 1)),
    ],
    ids=["document", "provider's", "unknown", "unknown alone", "half", "paused", "results move"],
)
def test_a_breakpoint_stands_on_the_last_block_that_can_have_one(messages: list[Value], place: tuple[int, int]) -> None:
    """Of the last message, or of one before it; blocks that leave the window and those of types not known have none."""
    session = open_session(format="anthropic", cache_breakpoints=True)
    session.extend([{"role": "user", "content": [ODD]} if each is ODD else each for each in messages])
    window = session.window()
    found = [
        (number, position)
        for number, message in enumerate(window.messages)
        for position, block in enumerate(message["content"])
        if isinstance(block, dict) and "cache_control" in block
    ]
    assert [place] == found
    assert_valid(window, "anthropic")


def test_without_them_windows_hold_what_came_in() -> None:
    """Breakpoints are not set by default, and what the application set stays."""
    session = open_session(format="anthropic")
    session.extend([SYSTEM, USER, {"role": "assistant", "content": "one"}])
    assert [] == marked(session.window())
    with pytest.raises(ConfigError, match="cache_breakpoints"):
        config_of(cache_breakpoints=True)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_lost_result_does_not_stop_a_long_turn(wire: Wire) -> None:
    """Once the model goes on without the result of a call, the open page is cut as any other, and windows fit to the end."""
    session = open_session(format=wire.name, budget={"window": 2_000, "reserve": 0})
    session.append(wire.user("go"))
    for number in range(40):
        ids = [f"a{number}", f"b{number}"]
        session.extend(wire.answer("hm", "", ids))
        for each in ids[: 1 if number == 3 else 2]:
            session.append(wire.result(each, f"line {number} " * 20))
        assert_valid(session.window(), wire.name)
    late = session.append(wire.result("b3", "late"))
    assert "late" in str(session.page(late.page.index).messages)
    assert_valid(session.window(), wire.name)
    assert session.verify().ok
