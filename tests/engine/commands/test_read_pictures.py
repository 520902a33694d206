"""Pictures of a page that a model reads with ``read_page``: parts of the result, or what they are; never base64 as text."""

import json
from typing import Any

import pytest

from memci.engine.session import Session
from memci.messages.validation import validate
from tests.engine.pictures import answered, picture, png, shown
from tests.engine.sessions import open_session, talk
from tests.engine.wire import assistant, user

Value = dict[str, Any]
SOUND = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
FILE = {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0x"}}
WIRES = ("openai", "responses", "anthropic")


def folded(wire: str, *messages: Value, **sections: Any) -> Session:  # noqa: ANN401 (any section of the file)
    session = open_session(active={"min_pages": 1}, format=wire, **sections)
    session.extend([*messages])
    talk(session, 2, first=2)
    session.fold("all")
    return session


def read(session: Session, wire: str, index: str = "usr-1", **arguments: int) -> tuple[Value, list[Value]]:
    """Return what ``read_page`` answers natively, and the parts that stand behind it in the result."""
    given = {"index": index, **arguments}
    match wire:
        case "anthropic":
            message = session.handle_tool_call({"type": "tool_use", "id": "c", "name": "read_page", "input": given})
            content = message["content"][0]["content"]
        case "responses":
            call = {"type": "function_call", "call_id": "c", "name": "read_page", "arguments": json.dumps(given)}
            content = session.handle_tool_call(call)["output"]
        case _:
            function = {"name": "read_page", "arguments": json.dumps(given)}
            content = session.handle_tool_call({"id": "c", "type": "function", "function": function})["content"]
    if isinstance(content, str):
        return json.loads(content), []
    return json.loads(content[0]["text"]), content[1:]


@pytest.mark.parametrize("wire", WIRES)
def test_a_picture_is_a_part_or_described(wire: str) -> None:
    """The text describes the picture; the result carries it where the format's results can, which chat completions' cannot."""
    part = picture(wire, png())
    session = folded(wire, shown(wire, "look", part), assistant("seen"))
    reading, parts = read(session, wire)
    assert "[image, 700×500, 3 kB, kept at usr-1/1]" in reading["text"]
    assert png()[:200] not in json.dumps(reading)
    assert ([] if wire == "openai" else [part]) == parts


@pytest.mark.parametrize("wire", ["responses", "anthropic"])
def test_a_picture_of_a_tool_is_read(wire: str) -> None:
    """One inside a tool's result is carried too, and the message can be appended and sent."""
    part = picture(wire, png())
    session = folded(wire, user("go"), *answered(wire, "the page", part), assistant("done"))
    parts = read(session, wire)[1]
    assert [part] == parts
    session.extend([user("again"), *answered(wire, "read", *parts)])
    window = session.window()
    assert part in [each for value in window.messages for each in results_of(value)]
    assert [] == validate(window.messages, wire)


def test_a_picture_goes_with_what_stands_for_it() -> None:
    """Read in ranges, each picture comes once; read as an entry, only its own."""
    parts = [picture("responses", png(number)) for number in (1, 2)]
    session = folded("responses", shown("responses", "one", parts[0]), shown("responses", "two", parts[1]), assistant("seen"))
    found: list[Value] = []
    start = 0
    while start >= 0:
        reading, some = read(session, "responses", start=start, limit=150)
        found, start = found + some, reading["next"]
    assert parts == found
    assert parts[1:] == read(session, "responses", "usr-1/2")[1]


def test_pictures_without_room_are_described_only() -> None:
    """An answer takes no more than its share of the budget, its pictures counted."""
    part = picture("anthropic", png())
    session = folded("anthropic", shown("anthropic", "look", part, part, part), budget={"window": 4_000, "reserve": 0})
    reading, parts = read(session, "anthropic")
    assert (3, 1) == (reading["text"].count("kept at usr-1/1"), len(parts))


@pytest.mark.parametrize(
    ("wire", "part", "told"),
    [
        ("openai", picture("openai", "iVBORw0KGgo="), "[image, 8 bytes, kept at usr-1/1]"),
        (
            "openai",
            SOUND,
            "[sound, 4 bytes, kept at usr-1/1]",
        ),
        (
            "openai",
            FILE,
            "[file, 6 bytes, kept at usr-1/1]",
        ),
        ("responses", {"type": "input_file", "file_data": "JVBERi0x"}, "[document, 6 bytes, kept at usr-1/1]"),
        ("anthropic", picture("anthropic", "iVBORw0KGgo="), "[image, 8 bytes, kept at usr-1/1]"),
    ],
)
def test_small_ones_are_described_too(wire: str, part: Value, told: str) -> None:
    """The bytes of a block that holds pictures, sound or a file are never text, however few they are."""
    reading, _ = read(folded(wire, shown(wire, "look", part)), wire)
    assert told in reading["text"]


def results_of(message: Value) -> list[Value]:
    """Return the parts of a result in a message."""
    content = message.get("output", message.get("content"))
    inner = content[0].get("content", content) if isinstance(content, list) and content else []
    return inner if isinstance(inner, list) else []


def test_base64_of_any_key_is_described() -> None:
    """What stands under keys that memci does not know, and a picture that a tool wrote as text, are described too."""
    odd = {"role": "assistant", "content": "done", "frames": [png(1)], "signed": "Aa1" * 400}
    tool = [answered("openai", "")[0], answered("openai", "")[1] | {"content": json.dumps({"screenshot": png(2)})}]
    reading, _ = read(folded("openai", user("go"), *tool, odd), "openai")
    messages = json.loads(reading["text"])
    assert ["[image, 700×500, 3 kB, kept at usr-1/4]"] == messages[3]["frames"]
    assert "[data, 900 bytes, kept at usr-1/4]" == messages[3]["signed"]
    assert {"screenshot": "[image, 700×500, 3 kB, kept at usr-1/3]"} == json.loads(messages[2]["content"])


def test_searches_and_lists_hold_no_base64() -> None:
    """A picture that a tool wrote as text is not in titles, contents lines and snippets."""
    text = f"receipt data:image/png;base64,{png(2)} total"
    tool = [answered("openai", "")[0], answered("openai", "")[1] | {"content": text}]
    session = folded("openai", user("go"), *tool, assistant("the receipt"))
    shown_to_model = [hit.snippet for hit in session.search("receipt total")]
    shown_to_model += [session.contents.render(), str(session.toolbox.call("list_pages", {}))]
    assert shown_to_model[0]
    assert not any(png(2)[:40] in text for text in shown_to_model)


def test_code_reads_no_base64() -> None:
    """In ATTP, whose answers are texts, a picture is described."""
    session = folded("openai", shown("openai", "look", picture("openai", png())), assistant("seen"))
    code = "__result__ = read_page('usr-1')['text']"
    reply = ['thought = "look"', "[tool_call]", 'status = "success"', 'target = "look"', f"code = '''\n{code}\n'''"]
    answer = session.attp("\n".join(reply)).to_toml()
    assert "[image, 700×500, 3 kB, kept at usr-1/1]" in answer
    assert png()[:99] not in answer


def test_a_stub_holds_no_base64() -> None:
    """A large result that begins with a picture as text is shown as a stub that says so."""
    text = f"data:image/png;base64,{png()} {'word ' * 5_000}"
    tool = [answered("openai", "")[0], answered("openai", "")[1] | {"content": text}]
    session = open_session(budget={"window": 2_000, "reserve": 0})
    session.extend([user("go"), *tool])
    stub = session.window().messages[-1]["content"]
    assert "[image, 700×500, 3 kB]" in stub
    assert png()[:99] not in stub


@pytest.mark.parametrize("wire", ["responses", "anthropic"])
def test_each_picture_of_an_entry_comes_with_its_range(wire: str) -> None:
    """Of several pictures for which one answer has no room, each comes with the range in which what stands for it ends."""
    parts = [picture(wire, png(number, (1_000, 1_000))) for number in range(4)]
    session = folded(wire, shown(wire, "look", *parts), assistant("seen"), budget={"window": 7_000, "reserve": 0})
    found, start = [], 0
    while start >= 0:
        reading, carried = read(session, wire, "usr-1/1", start=start, limit=60)
        assert len(carried) <= 1
        found += carried
        start = reading["next"]
    assert parts == found
