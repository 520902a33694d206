import json
from typing import Any

import pytest

from memci.chat import Ending, ToolAnswered
from memci.errors import ModelError
from tests.chat.model_server import Http, Message, Said, calling, said, serving
from tests.chat.talks import config, roles, talking

pytestmark = pytest.mark.server


def test_text_is_the_answer() -> None:
    """A reply of text ends the turn after one call, and user and reply are in the session as they were said."""
    reply = said("Good morning.", refusal=None, annotations=[], provider={"id": 7})
    with serving(lambda _: reply) as server, talking(server) as (chat, session):
        answer = chat.say("Hello")
        assert ("Good morning.", Ending.ANSWERED, 1) == (answer.text, answer.ending, answer.calls)
        assert [{"role": "user", "content": "Hello"}, reply] == list(session.messages())
        assert "Bearer sk-test-key" == server.keys[0]


@pytest.mark.parametrize("protocol", ["native", "attp", "none"])
def test_a_headline_is_not_shown(protocol: str) -> None:
    """The answer lacks the line at its end, which the session keeps."""
    reply = said("It is noon.\n[memci:title] Noon")
    settings = config(protocol, summary={"headlines": True})
    with serving(lambda _: reply) as server, talking(server, settings) as (chat, session):
        answer = chat.say("What time is it?")
        assert ("It is noon.", Ending.ANSWERED) == (answer.text, answer.ending)
        assert reply == list(session.messages())[1]
        assert "[memci:title]" in server.requests[0]["messages"][0]["content"]


def test_message_with_parts_is_said() -> None:
    """A user's message may be a dict with parts."""
    message = {"role": "user", "content": [{"type": "text", "text": "Look"}]}
    with serving(lambda _: said("I do.")) as server, talking(server) as (chat, session):
        chat.say(message)
        assert message == server.requests[0]["messages"][-1] == next(session.messages())


def test_kept_replies_are_sent_as_endpoints_take_them() -> None:
    """Empty keys and missing content of earlier replies, which endpoints refuse in requests, are not sent back."""
    reply: Message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": [], "function_call": None}
    with serving(lambda _: reply) as server, talking(server) as (chat, session):
        chat.say("One")
        chat.say("Two")
        assert [] == server.refused
        assert {"role": "assistant", "content": ""} == server.requests[1]["messages"][1]
        assert [reply, reply] == [message for message in session.messages() if message["role"] == "assistant"]


def test_every_call_of_a_message_is_answered() -> None:
    """Ten calls in one message, an unknown tool and broken arguments among them, each get one result, in order."""
    calls = [(f"c{number}", "search_pages", '{"query": "x"}') for number in range(8)]
    calls += [("c8", "order_pizza", "{}"), ("c9", "search_pages", '{"query": ')]

    def script(messages: list[Message]) -> Message:
        return said("Nothing found.") if messages[-1]["role"] == "tool" else calling(*calls, content="Let me look.")

    steps: list[Any] = []
    with serving(script) as server, talking(server, observer=steps.append) as (chat, session):
        assert "Nothing found." == chat.say("Where is x?").text
        assert ["user", "assistant", *["tool"] * 10, "assistant"] == roles(session)
        results = [message for message in session.messages() if message["role"] == "tool"]
        assert [call[0] for call in calls] == [result["tool_call_id"] for result in results]
        assert "ToolNotFoundError" == json.loads(results[8]["content"])["error"]["kind"]
        assert "error" in json.loads(results[9]["content"])
        assert [call[1:] for call in calls] == [(step.name, step.arguments) for step in steps if isinstance(step, ToolAnswered)]
        assert [] == server.refused


def test_call_that_is_no_function_is_answered() -> None:
    """A call of a kind that is not offered gets a result that says so, and the turn goes on."""
    call = {"id": "c1", "type": "custom", "custom": {"name": "shell", "input": "ls"}}

    def script(messages: list[Message]) -> Message:
        if messages[-1]["role"] == "tool":
            return said("I cannot.")
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    with serving(script) as server, talking(server) as (chat, session):
        assert "I cannot." == chat.say("List the files").text
        assert ["user", "assistant", "tool", "assistant"] == roles(session)
        assert "functions that are offered" in list(session.messages())[2]["content"]
        assert [] == server.refused


def test_a_reply_of_too_many_calls_is_not_kept() -> None:
    """A reply of 65 calls is an error of the model and leaves the session as it was; one of 64 is carried out."""
    many = [[(f"c{number}", "list_pages", "{}") for number in range(count)] for count in (65, 64)]
    replies = [calling(*many[0]), calling(*many[1]), said("Done.")]
    with serving(lambda _: replies.pop(0)) as server, talking(server) as (chat, session):
        with pytest.raises(ModelError, match="65 calls"):
            chat.say("Go")
        assert ["user"] == roles(session)
        answer = chat.resume()
        assert answer is not None
        assert "Done." == answer.text
        assert ["user", "assistant", *["tool"] * 64, "assistant"] == roles(session)
        assert [] == server.refused


def test_a_reply_that_is_too_large_for_a_message_is_not_kept() -> None:
    """A reply beyond the session's limit is an error of the model; the turn goes on with another one."""
    replies = [calling(("c1", "list_pages", "x" * 3_000)), said("Short.")]
    settings = config(limits={"message_bytes": 2_000})
    with serving(lambda _: replies.pop(0)) as server, talking(server, settings) as (chat, session):
        with pytest.raises(ModelError, match=r"limits\.message_bytes"):
            chat.say("Go")
        assert ["user"] == roles(session)
        assert "Short." == chat.say("Shorter").text


@pytest.mark.parametrize("tokens", [10**13, -5, 10**400, "many", None, 0])
def test_what_a_provider_counted_never_leaves_calls_unanswered(tokens: object) -> None:
    """A usage that cannot be is no reason to stop between a call and its result."""
    replies: list[Said | Message] = [Said(calling(("c1", "list_pages", "{}")), prompt_tokens=tokens), said("Done.")]
    with serving(lambda _: replies.pop(0)) as server, talking(server) as (chat, session):
        assert "Done." == chat.say("Go").text
        assert ["user", "assistant", "tool", "assistant"] == roles(session)


def test_rounds_are_bounded() -> None:
    """After the last round the tools are switched off, and an answer ends the turn."""

    def script(messages: list[Message]) -> Message:
        number = sum(message["role"] == "tool" for message in messages)
        return said("Enough.") if number == 3 else calling((f"c{number}", "list_pages", "{}"))

    with serving(script) as server, talking(server, max_rounds=3) as (chat, _):
        answer = chat.say("Look everywhere")
        assert ("Enough.", Ending.ANSWERED, 4) == (answer.text, answer.ending, answer.calls)
        assert ["auto", "auto", "auto", "none"] == [request["tool_choice"] for request in server.requests]
        assert 1 == len({json.dumps(request["tools"]) for request in server.requests})


def test_calls_beyond_the_bound_are_refused() -> None:
    """A model that never stops calling gets an error for each call of its last reply, and the transcript stays whole."""
    numbers = iter(range(1_000))

    def script(_: list[Message]) -> Message:
        return calling((f"a{next(numbers)}", "list_pages", "{}"), (f"b{next(numbers)}", "list_pages", "{}"), content="Looking.")

    with serving(script) as server, talking(server, max_rounds=2) as (chat, session):
        answer = chat.say("Look everywhere")
        assert ("Looking.", Ending.LIMIT, 3) == (answer.text, answer.ending, answer.calls)
        assert ["user", *["assistant", "tool", "tool"] * 3] == roles(session)
        kinds = [json.loads(message["content"]).get("error", {}).get("kind") for message in list(session.messages())[-2:]]
        assert ["LimitExceededError"] * 2 == kinds
        server.script = lambda _: said("Here you are.")
        resumed = chat.resume()
        assert resumed is not None
        assert "Here you are." == resumed.text
        assert [] == server.refused


@pytest.mark.parametrize(
    ("reply", "text", "ending"),
    [
        (Said(said("It begins"), "length"), "It begins", Ending.CUT),
        (Said(said("", reasoning_content="Hmm"), "length"), "", Ending.CUT),
        (Said({"role": "assistant", "content": None, "refusal": "I will not."}), "I will not.", Ending.REFUSED),
        (Said(said("As for"), "content_filter"), "As for", Ending.REFUSED),
        (Said({"role": "assistant", "content": None}, "content_filter"), "", Ending.REFUSED),
        (Said(said("")), "", Ending.EMPTY),
        (Said({"role": "assistant"}), "", Ending.EMPTY),
        (Said(said(" \n")), " \n", Ending.EMPTY),
        (
            Said({"role": "assistant", "content": [{"type": "thinking", "text": "Hmm"}, {"type": "text", "text": "Yes."}]}),
            "Yes.",
            Ending.ANSWERED,
        ),
    ],
)
def test_endings(reply: Said, text: str, ending: Ending) -> None:
    """However a reply ends, it is kept as it came, the answer tells how it ended, and nothing waits."""
    with serving(lambda _: reply) as server, talking(server) as (chat, session):
        answer = chat.say("Well?")
        assert (text, ending) == (answer.text, answer.ending)
        assert reply.message == list(session.messages())[-1]
        assert chat.resume() is None
        assert 1 == len(server.requests)


def test_cut_call_is_answered_with_an_error() -> None:
    """A call whose arguments were cut off gets an error for its result, from which the model mends it."""

    def script(messages: list[Message]) -> Said | Message:
        if messages[-1]["role"] == "user":
            return Said(calling(("c1", "search_pages", '{"query": "mar')), "length")
        return said("Never mind.")

    with serving(script) as server, talking(server) as (chat, session):
        assert "Never mind." == chat.say("Find March").text
        assert "ArgumentError" in list(session.messages())[2]["content"]


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"role": "user", "content": "Ha"}, "role 'user'"),
        ({"content": "Ha"}, "role None"),
        (calling(("c1", "list_pages", "{}"), ("c1", "list_pages", "{}")), "stands twice"),
        (calling(("", "list_pages", "{}")), "with an id"),
        ({"role": "assistant", "content": 7}, "content is text"),
        ({"role": "assistant", "content": "x", "logit": float("nan")}, "JSON"),
    ],
)
def test_reply_that_cannot_be_kept(message: Message, problem: str) -> None:
    """A reply that is no message is an error, nothing of it is kept, and the turn goes on with the next try."""
    with serving(lambda _: message) as server, talking(server) as (chat, session):
        with pytest.raises(ModelError, match=problem):
            chat.say("Hello")
        assert ["user"] == roles(session)
        server.script = lambda _: said("Hello.")
        resumed = chat.resume()
        assert resumed is not None
        assert "Hello." == resumed.text
        assert ["user", "assistant"] == roles(session)


def test_reported_usage_calibrates_the_counter() -> None:
    """What the endpoint counted scales the next window's size; a number that is none is not reported."""
    usage: list[object] = [0, "many", -3, True, None]
    with serving(lambda _: Said(said("Yes."), None, usage.pop())) as server, talking(server) as (chat, session):
        while usage:
            chat.say("A question of some length, so that the count is not small")
        plain = session.render(at=session.seq).tokens
        usage.append(plain)
        chat.say("And one more")
        before = session.window(tools=session.toolbox.openai()).tokens
        usage.append(before * 2)
        chat.say("The last")
        assert session.window(tools=session.toolbox.openai()).tokens > before * 1.5
        assert [] == server.refused


def test_protocol_none_offers_nothing() -> None:
    """With the protocol ``none`` the requests hold no tools."""
    with serving(lambda _: said("Yes.")) as server, talking(server, config("none")) as (chat, _):
        chat.say("Hello")
        assert {"model", "messages", "stream", "stream_options"} == set(server.requests[0])


def test_lone_surrogates_reach_the_endpoint_replaced() -> None:
    """A half of a surrogate pair is kept in the session, and sent as U+FFFD, as UTF-8 has no form for it."""
    with serving(lambda _: said("cut \ud83d", x=2**70)) as server, talking(server) as (chat, session):
        chat.say("One \udc00")
        chat.say("Two")
        assert ["One \ufffd", "cut \ufffd", "Two"] == [message["content"] for message in server.requests[1]["messages"]]
        assert 2**70 == server.requests[1]["messages"][1]["x"]
        assert ["One \udc00", "cut \ud83d"] == [message["content"] for message in session.messages()][:2]


def test_status_400_names_the_endpoint_and_what_it_said() -> None:
    """The error of a refused request has status, host and the endpoint's words."""
    answer = Http(400, b'{"error": {"message": "context length\\n exceeded"}}')
    with serving(lambda _: answer) as server, talking(server) as (chat, _):
        with pytest.raises(ModelError, match=r"127\.0\.0\.1:.*status 400.*context length exceeded") as raised:
            chat.say("Hello")
        assert 400 == raised.value.status
