"""Streamed answers are stored once: whole, or as far as they came."""

import asyncio
from typing import Any

import pytest

import memci
from memci.archive.stores.memory import MemoryStore
from memci.engine.engine import Engine
from memci.engine.hosting.streaming import Stream
from memci.engine.session import Session
from memci.errors import ConflictError
from tests.engine.sessions import open_session
from tests.engine.wire import assistant, user
from tests.messages.test_streaming import ANTHROPIC, CHAT, chunk


class Gone(Exception):  # noqa: N818 (whoever reads the answer left)
    """The client left."""


def asked() -> Session:
    session = open_session()
    session.append(user("Where is it?"))
    return session


def leave(stream: Stream, pieces: list[Any]) -> None:
    """Read some pieces of an answer, and leave."""
    with stream:
        for each in pieces:
            stream.add(each)
        raise Gone


def stored(session: Session) -> list[Any]:
    return [message.get("content") for message in session.messages()][1:]


def test_a_whole_answer_is_one_append() -> None:
    """The message is appended once the block is left, in one commit, and its entry is there."""
    session = asked()
    seq = session.seq
    with session.stream() as stream:
        told = [stream.add(each) for each in CHAT]
        assert (seq, "Let me look.", []) == (session.seq, stream.text, stream.entries)
    assert ["Let me look."] == stored(session)
    assert ("Let me look.", seq + 1, True) == ("".join(told), session.seq, stream.complete)
    assert stream.entries[0].message["tool_calls"][0]["id"] == "a"
    assert [entry.address for entry in stream.entries] == [entry.address for entry in stream.finish()] == ["usr-1/2"]


def test_a_client_that_leaves() -> None:
    """What came until then is kept, the error goes on, and nothing is doubled by a later finish."""
    session = asked()
    stream = session.stream()
    with pytest.raises(Gone):
        leave(stream, CHAT[:2])
    assert (["Let me "], False) == (stored(session), stream.complete)
    stream.finish()
    assert ["Let me "] == stored(session)


def test_a_generator_that_is_closed() -> None:
    """A host that streams to its client by a generator keeps what was sent, where the client closes the connection."""
    session = asked()

    def answer() -> Any:  # noqa: ANN401 (a generator)
        with session.stream() as stream:
            for each in CHAT:
                yield stream.add(each)

    running = answer()
    assert ["", "Let me "] == [next(running), next(running)]
    running.close()
    assert ["Let me "] == stored(session)


def test_nothing_came() -> None:
    """Where nothing came that can be kept, nothing is appended."""
    session = asked()
    stream = session.stream()
    with pytest.raises(Gone):
        leave(stream, CHAT[:1])
    assert ([], []) == (stored(session), stream.entries)


def test_the_same_answer_is_stored_once() -> None:
    """Where an answer is there under the key, whole or in part, a second one is not stored, and its entries tell."""
    session = asked()
    with pytest.raises(Gone):
        leave(session.stream(key="answer-1"), [chunk(role="assistant", content="Let me")])
    with session.stream(key="answer-1") as again:
        assert ["Let me"] == [entry.message["content"] for entry in again.entries]
        again.add(chunk("stop", role="assistant", content="Another one."))
    assert ["Let me"] == stored(session)


def test_usage_calibrates() -> None:
    """What the provider counted is at hand for report_usage."""
    session = asked()
    session.window()
    with session.stream() as stream:
        for each in CHAT:
            stream.add(each)
    assert session.report_usage(stream.usage).reason


def test_anthropics_answer_goes_back_as_it_came() -> None:
    """A thought with its signature, text and calls stand in the next window as the provider wants them."""
    session = Engine("memory:", {"format": "anthropic"}).session("s")
    session.append(user("Where is it?"))
    with session.stream() as stream:
        for each in ANTHROPIC:
            stream.add(each)
    results = [{"type": "tool_result", "tool_use_id": call, "content": "there"} for call in "ab"]
    session.append({"role": "user", "content": results})
    content = session.window().messages[1]["content"]
    assert ["thinking", "text", "tool_use", "tool_use"] == [block["type"] for block in content]


def test_with_asyncio() -> None:
    """The same is awaited; where the task is cancelled, what came is stored before the cancelling goes on."""

    async def main() -> tuple[Any, list[Any]]:
        async with memci.AsyncEngine("memory:") as engine, engine.session("s") as session:
            await session.append(user("Where is it?"))
            async with session.stream() as stream:
                for each in CHAT[:3]:
                    stream.add(each)
            assert ("Let me look.", False, None, 1) == (stream.text, stream.complete, stream.usage, len(stream.entries))

            async def answer() -> None:
                async with session.stream(key="two") as stream:
                    stream.add(chunk(role="assistant", content="And "))
                    began.set()
                    await asyncio.Event().wait()

            began = asyncio.Event()
            task = asyncio.create_task(answer())
            await began.wait()
            task.cancel()
            done = await asyncio.gather(task, return_exceptions=True)
            return done, [message["content"] async for message in session.messages()]

    done, said = asyncio.run(main())
    assert isinstance(done[0], asyncio.CancelledError)
    assert ["Where is it?", "Let me look.", "And "] == said


def test_what_others_write_meanwhile_keeps_no_answer_from_being_stored() -> None:
    """A rating, a title or a window of another worker comes before the answer, though conflicts are raised elsewhere."""
    store = MemoryStore()
    with Engine(store) as engine, Engine(store) as beside, engine.session("chat") as session:
        session.append(user("Where is it?"))
        with session.stream() as stream:
            stream.add(chunk(content="Here."))
            with beside.session("chat") as other:
                other.annotate("usr-1/1", {"rating": 1})
                other.describe(title="Where")
        assert ["Here."] == stored(session)


def test_an_answer_that_broke_off_is_told_from_a_whole_one() -> None:
    """Asked for again with its key it is there, and not complete; taken back, the key is free for the whole one."""
    session = asked()
    with pytest.raises(Gone):
        leave(session.stream(key="one"), [chunk(content="It is")])
    assert {"interrupted": True} == session.transcript()[0].metadata
    with session.stream(key="one") as stream:
        assert (False, "It is") == (stream.complete, stream.text)
    session.rewind(stream.entries[0].address)
    with session.stream(key="one") as stream:
        for each in CHAT:
            stream.add(each)
    with session.stream(key="one") as again:
        assert (True, stream.text) == (again.complete, again.text)
    assert {} == session.transcript()[0].metadata


def test_a_key_of_a_question_is_not_that_of_an_answer() -> None:
    """What the user said under the key is not taken for the answer."""
    session = asked()
    session.append(user("Where is it now?"), key="request")
    with pytest.raises(ConflictError, match="no answer"), session.stream(key="request"):
        pass


def test_a_question_that_is_taken_back_meanwhile() -> None:
    """An answer to a message that somebody took back is stored nowhere else: that is told, and the text is there."""
    session = asked()
    session.append(user("And when?"))
    session.append(assistant("Soon."))
    session.append(user("How soon?"))
    before = [*session.messages()][:-1]
    stream = session.stream().__enter__()
    stream.add(CHAT[0])
    session.rewind("usr-2/1")
    session.append(user("Never mind."))
    stream.add(CHAT[1])
    with pytest.raises(ConflictError, match="taken back"):
        stream.finish()
    assert "Let me " == stream.text
    assert [*before, user("Never mind.")] == [*session.messages()]


def test_an_answer_that_is_not_wanted_is_not_stored() -> None:
    """Whoever reads it can see what would be appended, and keep nothing of it, however the block is left."""
    session = asked()
    with session.stream() as stream:
        stream.add(CHAT[1])
        assert ["Let me "] == [message["content"] for message in stream.messages]
        stream.discard()
    assert ([], [], []) == (stored(session), stream.entries, stream.finish())


def test_the_error_that_ended_it_goes_on() -> None:
    """Where the answer cannot be stored either, that is said beside it."""
    session = asked()

    def close() -> None:
        with session.stream() as stream:
            stream.add(chunk(content="It is"))
            session.close()
            raise Gone

    with pytest.raises(Gone) as raised:
        close()
    assert "not stored" in str(raised.value.__notes__)
