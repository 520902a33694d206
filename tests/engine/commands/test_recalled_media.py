"""Pictures, sound and files of pages that come back: they themselves where the format carries them, else what they are."""

import base64
import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.stores.contract import NewRecord
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.chapters.page import MessageNode, Page
from memci.engine.history import blocks
from memci.engine.session import Session
from memci.messages import codec
from memci.messages.formats import format as formats
from memci.messages.tokens.counter import get_counter
from memci.messages.tokens.message_tokens import count_message
from memci.messages.validation import validate
from tests.engine.pictures import answered, picture, png, shown
from tests.engine.sessions import open_session, talk
from tests.engine.wire import assistant, calling, result, user

Value = dict[str, Any]
NOISE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8).decode()
WIRES = ("openai", "responses", "anthropic")
FILE = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0x"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "UklGRg", "format": "wav"}}
INPUT_FILE = {"type": "input_file", "file_id": "file-1"}
DOCUMENT = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"}}
ID_ONLY = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}


def recalled(wire: str, *messages: Value) -> tuple[Session, Value]:
    """Return a session whose first page, of these messages of one day, was folded and recalled, and the block that shows it."""
    session = open_session(active={"min_pages": 1}, format=wire)
    session.extend([*messages], at="2023-05-08T13:56:00+00:00")
    talk(session, 2, first=2)
    session.fold("all")
    session.recall(1)
    return session, next(value for value in session.window().messages if "[recalled page" in str(value["content"]))


def texts(block: Value) -> list[str]:
    return [part["text"] if "text" in part else part["type"] for part in block["content"]]


@pytest.mark.parametrize("wire", WIRES)
def test_a_picture_comes_back_in_its_place(wire: str) -> None:
    """A recalled picture is a part of the block, between the lines that stood before and behind it, and the call is legal."""
    part = picture(wire, png())
    session, block = recalled(wire, shown(wire, "look", part), assistant("seen"))
    kind = part["type"]
    assert [
        "[recalled page usr-1, turn 1: 2 entries · 2023-05-08, quoted as data]\nusr-1/1 user:\n> look",
        kind,
        "usr-1/2 assistant:\n> seen\n[end of page usr-1]",
    ] == texts(block)
    assert (part, "user") == (block["content"][1], block["role"])
    window = session.window()
    assert [] == validate(window.messages, wire)
    assert count_message(block, counter_of(session)) <= window.breakdown["recalled"]


def counter_of(session: Session) -> Any:  # noqa: ANN401 (a counter)
    return get_counter(session.config.counter)


@pytest.mark.parametrize(
    ("wire", "part"),
    [("openai", FILE), ("openai", SOUND), ("responses", INPUT_FILE), ("anthropic", DOCUMENT), ("anthropic", ID_ONLY)],
)
def test_files_and_sound_come_back(wire: str, part: Value) -> None:
    """What the format carries in a message of the user comes back as it was, ids of the provider's included."""
    _, block = recalled(wire, shown(wire, "read", part), assistant("read it"))
    assert part == block["content"][1]


@pytest.mark.parametrize("wire", WIRES)
def test_a_picture_of_a_tool_comes_back(wire: str) -> None:
    """A picture inside a tool's result stands behind the result's text."""
    part = picture(wire, png())
    _, block = recalled(wire, user("go"), *answered(wire, "the page", part), assistant("done"))
    assert part in block["content"]
    assert block["content"][block["content"].index(part) - 1]["text"].endswith("> the page")


def test_what_cannot_be_carried_is_described() -> None:
    """A picture in another format's block, and what the assistant said aloud, are lines with kind, size and address."""
    foreign = picture("anthropic", png(length=1_200_000))
    spoken = {"role": "assistant", "content": None, "audio": {"id": "a1"}}
    said = {"role": "assistant", "content": None, "audio": {"id": "a2", "expires_at": 1, "transcript": "aloud", "data": png(1)}}
    _, block = recalled("openai", shown("openai", "look", foreign), spoken, said)
    assert "> [image, 700×500, 1.2 MB, kept at usr-1/1]" in block["content"]
    assert "> [sound, kept at usr-1/2]" in block["content"]
    assert "> aloud\n> [sound, 700×500, 3 kB, kept at usr-1/3]" in block["content"]


def test_base64_in_a_text_is_described() -> None:
    """A tool that answers with a picture as text brings its description back, no base64."""
    text = json.dumps({"screenshot": png(), "title": "Start"})
    _, block = recalled("openai", user("go"), *answered("openai", text)[:1], answered("openai", "")[1] | {"content": text})
    assert '> {"screenshot": "[image, 700×500, 3 kB, kept at usr-1/3]", "title": "Start"}' in block["content"]


def test_marks_for_the_cache_stay_behind() -> None:
    """A recalled picture brings no breakpoint, and the title of a document is quoted."""
    part = {**DOCUMENT, "title": "[end of page usr-1]", "cache_control": {"type": "ephemeral"}}
    _, block = recalled("anthropic", shown("anthropic", "read", part), assistant("done"))
    assert [DOCUMENT] == block["content"][1:2]
    assert block["content"][0]["text"].endswith("> read\n> [end of page usr-1]")


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
def test_text_between_pictures_stays_quoted(said: list[str]) -> None:
    """Each line of stored text keeps its mark, whatever stands beside it."""
    page = Page(index="usr-1", turn=1)
    wire = formats.get("openai")
    content = [part for text in said for part in ({"type": "text", "text": text}, picture("openai", png()))]
    page.add(MessageNode(message=wire.facts({"role": "user", "content": content}), tokens=9, seq=1))
    block = blocks.page_block(page, wire).value()
    lines = [line for text in texts(block) if text != "image_url" for line in text.split("\n")]
    own = [lines[0], lines[1], lines[-1]]
    assert ["usr-1/1 user:", "[end of page usr-1]"] == own[1:]
    assert all(line.startswith("> ") for line in lines[2:-1] if not line.splitlines() or line)


def test_a_late_result_keeps_the_pictures() -> None:
    """A recalled page that takes a late result in still shows its picture, with its true size."""
    part = picture("openai", png())
    session = open_session(active={"min_pages": 1})
    session.extend([shown("openai", "look", part), *answered("openai", "late")[:1], assistant("waiting"), user("b")])
    session.window(200)
    session.window(8_000)
    session.recall(1)
    session.append(answered("openai", "late")[1])
    session.fold()
    block = next(value for value in session.window().messages if "[recalled page usr-1" in str(value["content"]))
    assert part in block["content"]
    assert "\n> late\n" in block["content"][-1]["text"]
    assert count_message(block, counter_of(session)) == session.window().breakdown["recalled"]


def test_a_recall_of_the_time_before_renders_as_it_did() -> None:
    """An event without ``media`` and ``dated`` shows what its size was counted with: a mark for the picture, and no date."""
    store = MemoryStore()
    session = open_session(store, active={"min_pages": 1})
    session.extend([shown("openai", "look", picture("openai", png())), assistant("seen")])
    talk(session, 2, first=2)
    session.fold("all")
    session.recall(1)
    seq = session.seq
    session.close()
    opened = store.open("default", "chat")
    last = next(opened.journal.read(seq - 1, seq))
    event = codec.decode(last.body)
    opened.journal.append(seq, [NewRecord("faded", 1, codec.encode({"pages": ["usr-1"], "reason": "command"}))])
    del event["media"], event["dated"]
    opened.journal.append(seq + 1, [NewRecord(last.kind, last.version, codec.encode(event))])
    again = open_session(store, active={"min_pages": 1})
    block = next(value for value in again.window().messages if "[recalled page" in str(value["content"]))
    assert block["content"].startswith("[recalled page usr-1, turn 1: 2 entries, quoted as data]\n")
    assert "> look\n> [image]\nusr-1/2 assistant:" in block["content"]


@pytest.mark.parametrize(("dated", "days"), [(None, "2023-05-08..09-03"), (2, "2023-05-08..09-03"), (True, "2023-05-08..06-01")])
def test_the_days_of_a_recalled_page_are_as_they_were_counted(dated: int | None, days: str) -> None:
    """A block says the earliest and the latest day of its page; where an older event is ``dated``, those of both ends."""
    said = [(user("look"), "2023-06-01"), (assistant("seen"), "2023-09-03"), (assistant("again"), "2023-05-08")]
    assert f"[recalled page usr-1, turn 1: 3 entries · {days}, quoted as data]" == heading(dated, said)


@pytest.mark.parametrize(("dated", "size"), [(None, "1 entry"), (2, "1 entries"), (True, "1 entries")])
def test_one_entry_of_a_recalled_page_is_named_as_it_was_counted(dated: int | None, size: str) -> None:
    """A block says ``1 entry``; where an older event counted it with ``1 entries``, that."""
    assert f"[recalled page usr-1, turn 1: {size} · 2023-06-01, quoted as data]" == heading(dated, [(user("look"), "2023-06-01")])


def heading(dated: int | None, said: list[tuple[dict[str, Any], str]]) -> str:
    """Return the first line of the block of a page of these messages, recalled by an event that is *dated* so, or as of now."""
    store = MemoryStore()
    session = open_session(store, active={"min_pages": 1})
    for message, day in said:
        session.append(message, at=day)
    session.begin_page()
    talk(session, 2, first=2)
    session.fold("all")
    session.recall(1)
    seq = session.seq
    session.close()
    if dated is not None:
        opened = store.open("default", "chat")
        last = next(opened.journal.read(seq - 1, seq))
        opened.journal.append(seq, [NewRecord("faded", 1, codec.encode({"pages": ["usr-1"], "reason": "command"}))])
        event = codec.decode(last.body) | {"dated": dated}
        opened.journal.append(seq + 1, [NewRecord(last.kind, last.version, codec.encode(event))])
    again = open_session(store, active={"min_pages": 1})
    assert again.verify().ok
    block = next(value for value in again.window().messages if "[recalled page" in str(value["content"]))
    return str(block["content"].splitlines()[0])


def test_an_opened_snapshot_keeps_the_pictures(tmp_path: Path) -> None:
    """A session that is loaded from a snapshot renders the same window."""
    session = open_session(FileStore(tmp_path, "flush"), active={"min_pages": 1}, snapshot_every=1)
    session.extend([shown("openai", "look", picture("openai", png())), assistant("seen")])
    talk(session, 2, first=2)
    session.fold("all")
    session.recall(1)
    window = session.window().messages
    session.close()
    assert window == open_session(FileStore(tmp_path, "flush"), active={"min_pages": 1}).window().messages


@pytest.mark.parametrize("text", ["\n".join(textwrap.wrap(NOISE, 76)), f"icon: data:image/png;base64,{NOISE[:500]} and so on"])
def test_base64_within_a_text_is_never_shown(text: str) -> None:
    """Wrapped in lines, or in a short URL, it stands in no contents line, snippet, reading or recalled block."""
    session, _ = recalled("openai", user("Show me PLOT"), calling("c1"), result("c1", text), assistant("There."))
    reading = session.toolbox.call("read_page", {"index": "usr-1", "limit": 8_000})["text"]
    shown_texts = [session.window().to_json().decode(), reading, *(hit.snippet for hit in session.search("plot there icon"))]
    pieces = [NOISE[place : place + 40] for place in range(0, 460, 7)]
    assert [] == [piece for piece in pieces for shown_text in shown_texts if piece in shown_text]
