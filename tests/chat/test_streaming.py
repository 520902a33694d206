"""Replies that are read as they come: told in pieces, stored once, kept as far as they came."""

import json
import threading
from typing import Any

import pytest

import memci
from memci.chat import Chat, Endpoint, Reply, TextStreamed, WindowSent
from memci.errors import ConflictError, ModelError, ModelTimeoutError
from tests.chat.model_server import Http, Message, Pieces, Said, calling, chunk, chunked, said, serving
from tests.chat.talks import config, roles, talking

CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "list_pages", "arguments": "{}"}}
HALF = {"index": 0, "id": "c1", "type": "function", "function": {"name": "list_pages", "arguments": '{"a'}}


def told(steps: list[Any]) -> list[str]:
    return [step.text for step in steps if isinstance(step, TextStreamed)]


def marks(session: memci.Session) -> list[bool]:
    """Return whether each message is marked as one that broke off."""
    return ["interrupted" in each.metadata for each in reversed(session.transcript())]


@pytest.mark.server
def test_text_is_told_as_it_comes() -> None:
    """The first piece is told while the endpoint holds the second one back, and the answer is one message."""
    steps, first = list[Any](), threading.Event()

    def hear(step: Any) -> None:  # noqa: ANN401 (any step)
        steps.append(step)
        if told([step]):
            first.set()

    pieces = Pieces([chunk(role="assistant", content="Good "), first, chunk(content="morning."), chunk("stop")])
    with serving(lambda _: pieces) as server, talking(server, observer=hear) as (chat, session):
        answer = chat.say("Hello")
        assert ("Good morning.", "answered", 1) == (answer.text, answer.ending, answer.calls)
        assert ["Good", " morning."] == told(steps)
        assert [{"role": "user", "content": "Hello"}, said("Good morning.")] == list(session.messages())
        assert [False, False] == marks(session)


@pytest.mark.server
def test_calls_come_in_pieces_too() -> None:
    """Calls beside text are put together and carried out, and the text beside them is told, before the second window."""
    calls = [("c1", "list_pages", "{}"), ("c2", "search_pages", '{"query": "the pump"}')]
    replies = [calling(*calls, content="Let me look."), said("Nothing is there.")]
    steps = list[Any]()
    with serving(lambda _: replies.pop(0), streams=True) as server, talking(server, observer=steps.append) as (chat, session):
        assert "Nothing is there." == chat.say("Where is the pump?").text
        assert ["user", "assistant", "tool", "tool", "assistant"] == roles(session)
        assert calling(*calls, content="Let me look.") == list(session.messages())[1]
        assert [] == server.refused
    second = [place for place, step in enumerate(steps) if isinstance(step, WindowSent)][1]
    assert ("Let me look.", "Nothing is there.") == ("".join(told(steps[:second])), "".join(told(steps[second:])))


@pytest.mark.server
def test_streamed_and_whole_replies_make_the_same_session() -> None:
    """Whether or not the endpoint streams, the same messages are sent and stored, and the provider's counts are taken in."""
    first = Said(calling(("c1", "list_pages", "{}"), content="Wait."), prompt_tokens=900)
    last = Said(said("There. 猫 \N{CAT}"), prompt_tokens=1_000)
    kept = []
    for streams in (False, True):
        with (
            serving(lambda sent: last if sent[-1]["role"] == "tool" else first, streams=streams) as server,
            talking(server) as (chat, session),
        ):
            chat.say("Where?")
            usages = [event.data["prompt_tokens"] for event in session.events("usage")]
            kept.append((list(session.messages()), [request["messages"] for request in server.requests], usages))
    assert kept[0] == kept[1]
    assert [900, 1_000] == kept[1][2]


@pytest.mark.server
@pytest.mark.parametrize(
    ("pieces", "why"),
    [
        (Pieces([chunk(content="Half of ")], end="early"), "it ended early"),
        (Pieces([chunk(content="Half of ")], end="lost"), "peer closed connection|incomplete"),
        (Pieces([chunk(content="Half of ")], end="held"), "nothing came for 2 s"),
        (Pieces([chunk(content="Half of "), b": still here\n\n" * 9], end="held"), "nothing came for 2 s"),
        (
            Pieces([chunk(content="Half of "), {"error": {"message": "the model fell asleep"}}]),
            "reports an error: the model fell",
        ),
        (Pieces([chunk(content="Half of "), b"data: {\n\n"]), "no JSON"),
        (Pieces([chunk(content="Half of "), b"data: %b\n\n" % (b"[" * 100_000)]), "no JSON"),
        (Pieces([chunk(content="Half of "), {"choices": "none"}]), "none of a chat completion"),
        (Pieces([chunk(content="Half of "), {"choices": [{"delta": "none"}]}]), "none of a chat completion"),
        (Pieces([chunk(content="Half of "), chunk(role="user", content="I")]), "none of a chat completion"),
        (Pieces([chunk(content="Half of "), chunk(tool_calls=[{"index": "0"}])]), "none of a chat completion"),
        (Pieces([chunk(content="Half of "), chunk(tool_calls=[HALF])], end="early"), "it ended early"),
    ],
)
def test_what_came_of_a_reply_that_breaks_off_is_kept(pieces: Pieces, why: str) -> None:
    """The error says why it broke off and that what came is kept, once and marked; nothing waits, and the session goes on."""
    script: list[Pieces | Message] = [pieces, said("Whole.")]
    timeout_s = 2.0 if pieces.end == "held" else 60.0
    with serving(lambda _: script.pop(0)) as server, talking(server, timeout_s=timeout_s) as (chat, session):
        with pytest.raises(ModelError, match=f"broke off its answer: .*({why})") as raised:
            chat.say("Hello")
        assert ["what came of it is kept"] == raised.value.__notes__
        assert (None, None) == (raised.value.__cause__, raised.value.__context__)
        assert said("Half of ") == list(session.messages())[1]
        assert [False, True] == marks(session)
        assert chat.resume() is None
        assert "Whole." == chat.say("Again").text
        assert ["user", "assistant", "user", "assistant"] == roles(session)
        assert 2 == len(server.requests)


@pytest.mark.server
def test_a_stream_that_never_ends_is_left() -> None:
    """What an endpoint streams is read up to a limit, and no further; what came before is kept."""
    blank = b": %b\n" % (b"x" * 1_000_000)
    pieces = Pieces([chunk(content="Half of "), *[blank] * 140])
    with serving(lambda _: pieces) as server, talking(server) as (chat, session):
        with pytest.raises(ModelError, match="more than 134217728 bytes"):
            chat.say("Hello")
        assert said("Half of ") == list(session.messages())[1]


@pytest.mark.server
@pytest.mark.slow
def test_a_silent_stream_is_a_timeout() -> None:
    """A stream of which nothing came in time is a timeout, nothing is kept, and the turn is resumed."""
    script: list[Pieces | Message] = [Pieces([b": wait\n\n"], end="held"), said("Here.")]
    with serving(lambda _: script.pop(0)) as server, talking(server, timeout_s=2) as (chat, session):
        with pytest.raises(ModelTimeoutError) as raised:
            chat.say("Hello")
        assert not hasattr(raised.value, "__notes__")
        assert ["user"] == roles(session)
        answer = chat.resume()
        assert answer is not None
        assert "Here." == answer.text


@pytest.mark.server
def test_calls_that_came_whole_are_carried_out() -> None:
    """Of a reply that breaks off, a call that is whole is kept, and answered when the turn is resumed."""
    script: list[Pieces | Message] = [Pieces([chunk(content="Wait. "), chunk(tool_calls=[CALL])], end="early"), said("There.")]
    with serving(lambda _: script.pop(0)) as server, talking(server) as (chat, session):
        with pytest.raises(ModelError, match="it ended early"):
            chat.say("Where?")
        answer = chat.resume()
        assert answer is not None
        assert "There." == answer.text
        assert ["user", "assistant", "tool", "assistant"] == roles(session)
        assert [] == server.refused


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.parametrize("end", ["held", "lost", "early"])
def test_what_comes_after_the_end_does_not_matter(end: Any) -> None:  # noqa: ANN401 (a literal)
    """A reply whose end the model told is whole, whatever becomes of the connection."""
    pieces = Pieces([chunk(content="All of it."), chunk("stop")], end=end)
    with serving(lambda _: pieces) as server, talking(server, timeout_s=2) as (chat, session):
        assert "All of it." == chat.say("Hello").text
        assert [False, False] == marks(session)


@pytest.mark.server
@pytest.mark.parametrize(
    "answer",
    [
        Http(400, b'{"error": {"message": "stream is not supported"}}'),
        Http(422, b'{"detail": [{"loc": ["body", "stream_options"], "msg": "extra fields not permitted"}]}'),
        Pieces([]),
        Pieces([{"choices": [{"delta": {"content": "x", "role": "tool"}}]}]),
        Pieces([{"choices": 7}]),
    ],
    ids=["400", "422", "empty", "another role", "no choices"],
)
def test_endpoints_that_cannot_stream_are_asked_for_whole_replies(answer: Http | Pieces) -> None:
    """They are asked again without it, once, and never for a stream from then on."""
    with serving(lambda _: said("Whole.")) as server, talking(server) as (chat, session):
        server.script = lambda _: answer if "stream" in server.requests[-1] else said("Whole.")
        assert "Whole." == chat.say("One").text
        assert "Whole." == chat.say("Two").text
        assert [True, False, False] == ["stream" in request for request in server.requests]
        assert ["user", "assistant"] * 2 == roles(session)


@pytest.mark.server
def test_a_refusal_for_another_reason_is_not_asked_again() -> None:
    """A request that the endpoint refuses for what is in it fails at once."""
    with serving(lambda _: Http(400, b'{"error": {"message": "too long"}}')) as server, talking(server) as (chat, _):
        with pytest.raises(ModelError, match="status 400"):
            chat.say("Hello")
        assert 1 == len(server.requests)


@pytest.mark.server
def test_failed_requests_are_sent_again() -> None:
    """Before anything of a reply came, a request that fails is sent again, as ever."""
    answers: list[Http | Message] = [Http(503), said("At last.")]
    with serving(lambda _: answers.pop(0), streams=True) as server, talking(server, max_retries=1) as (chat, session):
        assert "At last." == chat.say("Hello").text
        assert ["user", "assistant"] == roles(session)


@pytest.mark.server
@pytest.mark.parametrize("end", ["done", "early"])
def test_a_streamed_reply_of_too_many_calls_is_not_kept(end: Any) -> None:  # noqa: ANN401 (a literal)
    """Nothing of 65 calls is kept, whether or not the reply broke off."""
    many = calling(*((f"c{number}", "list_pages", "{}") for number in range(65)))
    pieces = [*chunked(Said(many))]
    script: list[Pieces | Message] = [Pieces(pieces if end == "done" else pieces[:-1], end=end), said("None.")]
    with serving(lambda _: script.pop(0)) as server, talking(server) as (chat, session):
        with pytest.raises(ModelError, match=r"65 calls|ended early"):
            chat.say("Go")
        assert ["user"] == roles(session)
        assert "None." == chat.say("Fewer").text


@pytest.mark.server
def test_a_streamed_reply_that_is_too_large_is_not_kept() -> None:
    """A reply beyond the session's limit is an error of the model, and the session goes on."""
    replies = [said("x" * 3_000), said("Short.")]
    settings = config(limits={"message_bytes": 2_000})
    with serving(lambda _: replies.pop(0), streams=True) as server, talking(server, settings) as (chat, session):
        with pytest.raises(ModelError, match=r"limits\.message_bytes"):
            chat.say("Go")
        assert ["user"] == roles(session)
        assert "Short." == chat.say("Shorter").text


@pytest.mark.server
@pytest.mark.parametrize("text", ["It is noon.\n\n[memci:title] Noon", "It is noon.\n**[memci:title] Noon**\n"])
def test_a_headline_is_not_told(text: str) -> None:
    """The line at the end that gives the turn its title is stored, and not told in pieces."""
    steps = list[Any]()
    settings = config(summary={"headlines": True})
    with (
        serving(lambda _: said(text), streams=True) as server,
        talking(server, settings, observer=steps.append) as (chat, session),
    ):
        assert "It is noon." == chat.say("What time is it?").text
        assert "It is noon." == "".join(told(steps))
        assert said(text) == list(session.messages())[1]


@pytest.mark.server
def test_code_is_not_told() -> None:
    """With ATTP a reply is stored as it comes, and told when it is known whether it is an answer."""
    call = '[tool_call]\nstatus = "success"\ntarget = "count"\ncode = "__result__ = 6 * 7"\n'
    replies, steps = [said(call), said("It is 42.")], list[Any]()
    with (
        serving(lambda _: replies.pop(0), streams=True) as server,
        talking(server, config("attp"), observer=steps.append) as (chat, session),
    ):
        assert "It is 42." == chat.say("What is 6 * 7?").text
        assert [] == told(steps)
        assert ["user", "assistant", "user", "assistant"] == roles(session)


@pytest.mark.server
def test_an_observer_that_fails_keeps_what_came() -> None:
    """What whoever reads the pieces raises reaches the caller, and the session has the reply as far as it came."""

    def hear(step: object) -> None:
        if isinstance(step, TextStreamed):
            raise BrokenPipeError

    with serving(lambda _: said("Good morning, all."), streams=True) as server, talking(server, observer=hear) as (chat, session):
        with pytest.raises(BrokenPipeError):
            chat.say("Hello")
        assert said("Good ") == list(session.messages())[1]
        assert [False, True] == marks(session)


@pytest.mark.server
def test_a_question_that_is_taken_back_meanwhile_has_no_answer() -> None:
    """Where somebody takes the message back while it is answered, the answer is not stored after another one."""
    with serving(lambda _: said("Late."), streams=True) as server, talking(server) as (chat, session):

        def script(_: list[Message]) -> Message:
            session.rewind("usr-1/1")
            return said("Late.")

        server.script = script
        with pytest.raises(ConflictError, match="taken back"):
            chat.say("Hello")
        assert [] == roles(session)


class Whole:
    """A model of the caller's own that cannot stream."""

    def complete(self, messages: list[Message], tools: Any, *, may_call: bool) -> Reply:  # noqa: ANN401 (schemas)
        del messages, tools, may_call
        return Reply(message=said("Whole."))


def test_models_need_not_stream() -> None:
    """A model without the method is asked for whole replies, and nothing is told in pieces."""
    steps = list[Any]()
    with memci.Engine("memory:", config()) as engine, engine.session("talk") as session:
        assert "Whole." == Chat(session, Whole(), observer=steps.append).say("Hello").text
    assert [] == told(steps)


@pytest.mark.server
def test_pieces_are_handed_on_as_they_are() -> None:
    """Whoever uses an endpoint alone has its pieces, keys that memci does not know among them, and how the reply ended."""
    pieces, end = [chunk(content="Hi", vendor={"a": 1}), chunk("length")], {"choices": [], "usage": {"prompt_tokens": 3}}
    taken = list[Any]()
    with serving(lambda _: Pieces([*pieces, end])) as server, Endpoint(server.url, "scripted", max_retries=0) as model:
        reply = model.stream([{"role": "user", "content": "Hello"}], [], may_call=True, take=taken.append)
    assert [*pieces, end] == json.loads(json.dumps(taken))
    assert ({}, "length", 3) == (reply.message, reply.finish_reason, reply.prompt_tokens)
