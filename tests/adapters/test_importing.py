"""Exports and transcripts become sessions: what was said, with its times and a list of what was lost, whole or not at all."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

import memci
from memci.adapters.importing import chatgpt, claude
from memci.adapters.importing.imported import Imported, import_into
from memci.adapters.importing.transcript import transcript
from memci.archive.stores.file.store import FileStore
from memci.errors import ConfigError, ConflictError, InvalidMessageError
from tests.adapters.exports import PICTURE, ChatGpt, Transcript, answered, talked, used, worked
from tests.adapters.exports import claude as exported
from tests.adapters.killed_import import found

FORMATS = ["openai", "responses", "anthropic"]


def lost(imported: Imported) -> list[str]:
    return [each.text for each in imported.lost]


def lines(*values: Any) -> bytes:
    return b"\n".join(json.dumps(value).encode() for value in values)


def test_the_branch_of_chatgpt_that_was_read_last() -> None:
    """Words, calls of tools and their results come through, each with its time; the rest is named, with its place."""
    (imported,) = chatgpt.conversations([talked().value])
    call = {"id": "n6", "type": "custom", "custom": {"name": "python", "input": "print(90)"}}
    made = {"id": "n8-call", "type": "custom", "custom": {"name": "dalle_text2im", "input": ""}}
    assert [
        {"role": "system", "content": "I mend boilers."},
        {"role": "user", "content": "How hot is it?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "n6", "content": "90"},
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "n8-call", "content": "[image file-service://f1]"},
        {"role": "assistant", "content": "90 degrees."},
    ] == list(imported.messages)
    assert ("chat-1", "Boiler", "openai") == (imported.session_id, imported.title, imported.format)
    assert ["2026-01-02T04:04:07+00:00", "2026-01-02T04:04:08+00:00"] == list(imported.times[:2])
    assert "conversations[0].mapping.n5.message: thinking" == str(imported.lost[0])
    wanted = [
        "image_asset_pointer",
        "dalle.text2im",
        "which the export does not have",
        "citations",
        "plan.pdf",
        "1 message of other",
    ]
    assert all(any(words in text for text in lost(imported)) for words in wanted)


def test_calls_of_claude_are_answered_by_the_user() -> None:
    """Results that stand in the assistant's message are messages of their own; texts of attachments are documents."""
    (imported,) = claude.conversations(exported())
    source = {"type": "text", "media_type": "text/plain", "data": "It was 80."}
    document, named = {"type": "document", "source": source, "title": "notes.txt"}, {"type": "text", "text": "[file boiler.png]"}
    call = {"type": "tool_use", "id": "m2-2", "name": "look", "input": {"at": "boiler"}}
    result = {"type": "tool_result", "tool_use_id": "m2-2", "content": [{"type": "text", "text": "90"}]}
    assert [
        {"role": "user", "content": [document, named, {"type": "text", "text": "How hot is it?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "90 degrees."},
        {"role": "user", "content": "Thank you."},
    ] == list(imported.messages)
    assert ("2026-01-02T03:04:05.500000+00:00", None) == (imported.times[0], imported.times[-1])
    assert [
        "a file, of which the export has the name only: it stands in its place",
        "thinking, of which the export has no signature",
        "the keys message",
        "citations",
    ] == lost(imported)


def test_the_branch_of_claude_that_leads_to_the_end() -> None:
    """Where messages tell what they follow, those of other branches are counted."""
    value = exported()
    first, second, third = value["chat_messages"]
    other = second | {"uuid": "m9", "parent_message_uuid": "m1"}
    value["chat_messages"] = [first, other, second | {"parent_message_uuid": "m1"}, third | {"parent_message_uuid": "m2"}]
    (imported,) = claude.conversations([value])
    assert 5 == len(imported.messages)
    assert "1 message of other branches" in lost(imported)


def test_a_transcript_keeps_its_messages_as_they_are() -> None:
    """An answer of several lines is one message; what the agent's program added, and what was left, is counted."""
    imported = transcript(worked().data(), "file")
    thinking = {"type": "thinking", "thinking": "I read.", "signature": "c2ln"}
    assert [
        ("user", "Mend the boiler."),
        ("user", "First with a wrench."),
        ("assistant", [thinking, used(1), used(2)]),
        ("user", [answered(1)]),
        ("user", [answered(2, [PICTURE])]),
        ("assistant", [{"type": "text", "text": "It is mended."}]),
    ] == [(message["role"], message["content"]) for message in imported.messages]
    assert {"output_tokens": 3} == imported.messages[2]["usage"]
    assert ("session-1", "Mend the boiler", "anthropic") == (imported.session_id, imported.title, imported.format)
    assert "2026-01-02T03:04:01+00:00" == imported.times[0]
    assert ["line 3", "line 7", "line 10", "line 11"] == [each.place for each in imported.lost]


def test_what_the_other_format_cannot_say_is_named() -> None:
    """A picture in a result, which chat completions do not take, is its type in brackets, and listed with its line."""
    imported = transcript(worked().data(), "file", to="openai")
    assert ["text", "[image]"] == [message["content"] for message in imported.messages if message["role"] == "tool"]
    assert ["line 9"] == [each.place for each in imported.lost if "type image" in each.text]
    assert ["line 5.content[0]"] == [each.place for each in imported.lost if each.text == "thinking"]
    assert imported.times[2:4] == ("2026-01-02T03:04:04+00:00", "2026-01-02T03:04:06+00:00")


def test_thinking_without_a_signature_stays_out() -> None:
    """The provider would refuse it; it is listed with its line."""
    work = Transcript()
    work.say("user", "Mend it.")
    work.say("assistant", [{"type": "thinking", "thinking": "I look.", "signature": ""}, {"type": "text", "text": "Done."}])
    imported = transcript(work.data(), "file")
    assert [{"type": "text", "text": "Done."}] == imported.messages[1]["content"]
    assert ["line 3: thinking that has no signature"] == [*map(str, imported.lost)]


def test_a_transcript_of_items() -> None:
    """Lines whose payload is an item of the Responses API are its items; other lines are counted."""
    call = {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "done"}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Mend it."}]}
    events = [{"type": "response_item", "timestamp": "2026-01-02T03:04:05Z", "payload": each} for each in (said, call, output)]
    head, more = {"type": "session_meta", "payload": {"id": "rollout"}}, [{"type": "event_msg", "payload": {}}] * 2
    imported = transcript(lines(head, *events, *more), "file")
    assert ("rollout", "responses", [said, call, output]) == (imported.session_id, imported.format, list(imported.messages))
    assert ["2 lines of type event_msg"] == lost(imported)


def test_what_memci_exports_comes_back() -> None:
    """Messages one a line, a list of them, and a document with times are read; the format is told by what stands in them."""
    said = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [used(1)]},
        {"role": "user", "content": [answered(1)]},
    ]
    document = {"id": "chat", "messages": said, "timestamps": [None, "2026-01-02", None], "system": "Be brief."}
    assert said == list(transcript(lines(*said), "file").messages)
    assert said == list(transcript(lines(said), "file").messages)
    imported = transcript(json.dumps(document, indent=1).encode(), "file")
    assert ("chat", "anthropic", "system") == (imported.session_id, imported.format, imported.messages[0]["role"])
    assert "2026-01-02T00:00:00+00:00" == imported.times[2]
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}
    assert "responses" == transcript(lines(item), "file").format
    assert ("openai", "file") == (
        attrs.astuple(transcript(lines(said[0]), "file"))[2],
        transcript(lines(said[0]), "file").session_id,
    )


@pytest.mark.parametrize("to", FORMATS)
def test_every_source_goes_into_every_format(to: str) -> None:
    """A session takes each import, its window is one that the provider takes, and a second import adds nothing."""
    several = [
        *chatgpt.conversations([talked().value], to=to),
        *claude.conversations([exported()], to=to),
        transcript(worked().data(), "file", to=to),
    ]
    with memci.Engine("memory:", {"format": to}) as engine:
        for imported in several:
            assert len(imported.messages) == import_into(engine, imported)
            assert 0 == import_into(engine, imported)
            with engine.session(imported.session_id) as session:
                assert list(imported.messages) == list(session.messages())
                assert imported.title == session.metadata["title"]
                assert [] == memci.validate(session.window().messages, to)
                assert session.verify().ok


def test_messages_have_the_times_of_the_source() -> None:
    """A message without a time has that of the one before; a search by days finds what was said then."""
    (imported,) = claude.conversations([exported()])
    with memci.Engine("memory:", {"format": "anthropic"}) as engine:
        import_into(engine, imported)
        with engine.session("talk-1") as session:
            assert [("2026-01-02T03:04:05.500000+00:00", "2026-01-02T03:05:05+00:00")] == [
                (facts.first_at, facts.last_at) for facts in session.pages()
            ][:1]
            assert "2026-01-02T03:05:05+00:00" == session.pages()[-1].last_at


def test_a_source_that_went_on() -> None:
    """A second import brings what was said since; a session that went on by itself keeps what it has."""
    chat = talked()
    with memci.Engine("memory:") as engine:
        (first,) = chatgpt.conversations(chat.value)
        import_into(engine, first)
        chat.say("user", "And now?")
        (longer,) = chatgpt.conversations(chat.value)
        assert 1 == import_into(engine, longer)
        with engine.session("chat-1") as session:
            session.append({"role": "assistant", "content": "95 degrees."})
            assert 0 == import_into(engine, longer)
            assert "95 degrees." == session.transcript(1)[0].message["content"]


def test_what_came_since_has_the_time_of_the_message_before() -> None:
    """Where a second import brings a message without a time, it is dated as in one import, and not as of now."""
    (whole,) = claude.conversations([exported()])
    assert ("2026-01-02T03:05:05+00:00", None) == whole.times[-2:]
    with memci.Engine("memory:", {"format": "anthropic"}) as engine:
        import_into(engine, attrs.evolve(whole, messages=whole.messages[:-1], times=whole.times[:-1]))
        assert 1 == import_into(engine, whole)
        with engine.session("talk-1") as session:
            assert "2026-01-02T03:05:05+00:00" == session.pages()[-1].last_at


def test_a_title_that_the_user_gave_stays() -> None:
    """The source's title is for a session without one: a second import, of another title too, changes none that is there."""
    chat = talked()
    with memci.Engine("memory:") as engine, engine.session("chat-1") as session:
        import_into(engine, *chatgpt.conversations(chat.value))
        session.describe(title="My boiler")
        chat.value["title"] = "Heating"
        import_into(engine, *chatgpt.conversations(chat.value))
        assert "My boiler" == session.metadata["title"]


def test_another_conversation_of_the_id_stays() -> None:
    """A session that does not begin with the messages is left as it is, and so is one of another format."""
    (imported,) = chatgpt.conversations(talked().value)
    with memci.Engine("memory:") as engine, engine.session("chat-1") as session:
        session.append({"role": "user", "content": "Another one."})
        seq = session.seq
        with pytest.raises(ConflictError, match="does not begin with"):
            import_into(engine, imported)
        with pytest.raises(ConfigError, match="format: anthropic"):
            import_into(engine, attrs.evolve(imported, format="anthropic"))
        assert seq == session.seq


def test_a_conversation_is_stored_whole_or_not_at_all() -> None:
    """A message that the limits refuse keeps all others of its conversation out; without messages, there is no session."""
    (imported,) = chatgpt.conversations(talked().value)
    with memci.Engine("memory:", {"limits": {"message_bytes": 100}}) as engine:
        with pytest.raises(InvalidMessageError, match="message_bytes"):
            import_into(engine, imported)
        assert 0 == import_into(engine, attrs.evolve(imported, messages=(), times=()))
        assert [] == list(engine.sessions())


@pytest.mark.slow
def test_an_import_that_was_killed_is_repeated(tmp_path: Path) -> None:
    """Wherever an importer was killed, the next one leaves each conversation once, and nothing was half there."""
    command = [sys.executable, "-m", "tests.adapters.killed_import", str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 (fixed words)
    wanted = found()
    assert int(done.stdout) > 20
    for folder in tmp_path.iterdir():
        with memci.Engine(FileStore(folder, "flush")) as engine:
            for each in wanted:
                assert import_into(engine, each) in (0, len(each.messages))
                with engine.session(each.session_id) as session:
                    assert list(each.messages) == list(session.messages())
                    assert each.title == session.metadata["title"]


def test_results_without_a_call_are_left_out() -> None:
    """A result whose call is not there is listed; one message that answers calls of two is two."""
    work = Transcript()
    work.say("user", [answered(7), {"type": "text", "text": "Go on."}])
    work.say("assistant", [used(1)], answer="a")
    work.say("assistant", [used(2)], answer="b")
    work.say("user", [answered(2), {"type": "text", "text": "Both."}, answered(1)])
    imported = transcript(work.data(), "file")
    words = [{"type": "text", "text": "Go on."}]
    assert [words, [used(1)], [used(2)], [answered(1)], [answered(2), {"type": "text", "text": "Both."}]] == [
        message["content"] for message in imported.messages
    ]
    assert ["the result of 'toolu_7', a call that does not stand before it"] == lost(imported)
    with memci.Engine("memory:", {"format": "anthropic"}) as engine:
        assert 5 == import_into(engine, imported)


def test_arguments_that_are_no_json() -> None:
    """What a model wrote in place of arguments stands in an object where the other format takes nothing else."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{broken"}}
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    imported = transcript(lines(*said), "file", to="anthropic")
    assert {"arguments": "{broken"} == imported.messages[1]["content"][0]["input"]
    assert ["that the arguments of a call are no JSON object: they stand in one now"] == lost(imported)


def broken(**given: Any) -> Any:
    """Return a ChatGPT export whose last message has other keys."""
    chat = ChatGpt()
    chat.say("user", "a", **given)
    return chat.value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([5], "conversations[0]"),
        ({"mapping": []}, "conversations[0].mapping"),
        (talked().value | {"current_node": "gone"}, "conversations[0].mapping"),
        (talked().value | {"current_node": None}, "conversations[0].current_node"),
        (talked().value | {"title": 5}, "conversations[0].title"),
        (broken(author=None), "conversations[0].mapping.n1.message.author"),
        (broken(author={"role": "king"}), "conversations[0].mapping.n1.message.author.role"),
        (broken(create_time="soon"), "conversations[0].mapping.n1.message.create_time"),
        (broken(create_time=1e300), "conversations[0].mapping.n1.message.create_time"),
        (broken(create_time=True), "conversations[0].mapping.n1.message.create_time"),
        (broken(content={"content_type": "text", "parts": "a"}), "conversations[0].mapping.n1.message.content.parts"),
        (broken(content={"content_type": "text", "parts": [5]}), "conversations[0].mapping.n1.message.content.parts[0]"),
    ],
)
def test_damaged_exports_of_chatgpt(value: Any, path: str) -> None:
    """The error names the place, and what to do."""
    with pytest.raises(InvalidMessageError, match="import again") as caught:
        list(chatgpt.conversations(value))
    assert path == caught.value.path


def test_a_way_that_goes_round() -> None:
    """Nodes that follow each other in a circle are an error."""
    chat = talked()
    chat.mapping["root"]["parent"] = chat.value["current_node"]
    with pytest.raises(InvalidMessageError, match="the way from current_node"):
        list(chatgpt.conversations(chat.value))


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"chat_messages": 5}, "conversations[0].chat_messages"),
        ({"chat_messages": [{"sender": "king"}]}, "conversations[0].chat_messages[0].sender"),
        ({"chat_messages": [{"sender": "human", "created_at": "soon"}]}, "conversations[0].chat_messages[0].created_at"),
        ({"chat_messages": [{"sender": "human", "content": ["a"]}]}, "conversations[0].chat_messages[0].content[0]"),
        ({"chat_messages": [{"sender": "human", "attachments": {}}]}, "conversations[0].chat_messages[0].attachments"),
    ],
)
def test_damaged_exports_of_claude(change: dict[str, Any], path: str) -> None:
    """The error names the place, and what to do."""
    with pytest.raises(InvalidMessageError, match="import again") as caught:
        list(claude.conversations(exported() | change))
    assert path == caught.value.path


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b"", "line 1"),
        (b"\xff", "line 1"),
        (worked().data()[:-20], "line 12"),
        (lines({"role": "user", "content": "a"}, 5), "line 2"),
        (lines({"role": "user", "content": "a"}, {"role": "king", "content": "b"}), "line 2.role"),
        (lines({"type": "user", "message": {"content": 5}}), "line 1.content"),
        (lines({"type": "user", "message": {"content": "a"}, "timestamp": "soon"}), "line 1.timestamp"),
        (lines({"type": "user", "message": {"content": "a"}}, {"type": "user", "message": 5}), "line 2.message"),
        (lines({"messages": [{"role": "user", "content": "a"}], "timestamps": [None, None]}), "timestamps"),
        (lines({"messages": [{"role": "user", "content": "a"}], "timestamps": ["soon"]}), "messages[0]: time"),
        (lines({"messages": [], "format": "gemini"}), "format"),
        (lines({"messages": [5]}), "messages[0]"),
        (lines({"type": "response_item", "payload": 5}), "line 1.payload"),
    ],
)
def test_damaged_transcripts(data: bytes, path: str) -> None:
    """The error names the line."""
    with pytest.raises(InvalidMessageError) as caught:
        transcript(data, "file")
    assert path == caught.value.path
