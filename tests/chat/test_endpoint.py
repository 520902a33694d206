import gzip
import json
import sys
import traceback
import tracemalloc
from pathlib import Path
from typing import Any

import openai
import pytest

import memci
from memci.chat import Chat, Endpoint
from memci.errors import ConfigError, ModelError
from tests.chat.model_server import Drip, Hold, Http, Message, said, serving
from tests.chat.talks import CONFIG, config, roles, talking

KEY = "sk-3nrc9d-very-secret"

DRIVER_ERRORS = {
    "APIConnectionError",
    "APIError",
    "APIResponseValidationError",
    "APIStatusError",
    "APITimeoutError",
    "AuthenticationError",
    "BadRequestError",
    "ConflictError",
    "ContentFilterFinishReasonError",
    "InternalServerError",
    "InvalidWebhookSignatureError",
    "LengthFinishReasonError",
    "NotFoundError",
    "OAuthError",
    "OpenAIError",
    "PermissionDeniedError",
    "RateLimitError",
    "UnprocessableEntityError",
    "WebSocketConnectionClosedError",
    "WebSocketQueueFullError",
    "_AmbiguousModuleClientUsageError",
}
"""The errors of the client that were looked at; but for that of web hooks all are below ``OpenAIError``."""


@pytest.mark.slow
def test_client_has_no_new_errors() -> None:
    """The client raises no error that was not looked at when its errors were mapped."""
    errors = {
        name: value for name, value in list(vars(openai).items()) if isinstance(value, type) and issubclass(value, Exception)
    }
    assert set(errors) == DRIVER_ERRORS
    others = {name for name, error in errors.items() if not issubclass(error, openai.OpenAIError)}
    assert {"InvalidWebhookSignatureError"} == others


@pytest.mark.server
@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_failed_requests_are_sent_again(status: int) -> None:
    """A request that fails for a while is sent again, as often as was allowed, and the message stands in it once."""
    answers: list[Http | Message] = [Http(status), Http(status), said("At last.")]
    with serving(lambda _: answers.pop(0)) as server, talking(server, max_retries=2) as (chat, session):
        assert "At last." == chat.say("Hello").text
        assert [[{"role": "user", "content": "Hello"}]] * 3 == [request["messages"] for request in server.requests]
        assert ["user", "assistant"] == roles(session)


@pytest.mark.server
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 429, 500, 529])
def test_failed_turn_is_resumed(status: int) -> None:
    """After the last attempt the error tells the status, the user's message is kept once, and the turn can go on."""
    with serving(lambda _: Http(status)) as server, talking(server, max_retries=1) as (chat, session):
        with pytest.raises(ModelError, match=f"status {status}.*out of order") as raised:
            chat.say("Hello")
        assert status == raised.value.status
        assert ["user"] == roles(session)
        server.script = lambda _: said("Hello.")
        resumed = chat.resume()
        assert resumed is not None
        assert "Hello." == resumed.text
        assert [{"role": "user", "content": "Hello"}] == server.requests[-1]["messages"]
        assert chat.resume() is None


@pytest.mark.server
@pytest.mark.parametrize(
    ("header", "least_s", "most_s"),
    [("7", 7, 7), ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0), ("Fri, 31 Dec 9999 23:59:59 GMT", 1e9, 1e13), ("soon", None, None)],
)
def test_for_how_long_not_to_ask_is_told(header: str, least_s: float | None, most_s: float | None) -> None:
    """Seconds as they stand, and those up to a date."""
    with serving(lambda _: Http(429, retry_after=header)) as server, talking(server, max_retries=0) as (chat, _):
        with pytest.raises(ModelError) as raised:
            chat.say("Hello")
        told_s = raised.value.retry_after_s
        assert told_s is least_s if least_s is None or told_s is None or most_s is None else least_s <= told_s <= most_s


@pytest.mark.server
def test_silent_endpoint_times_out() -> None:
    """An endpoint that does not answer in time is an error, and the turn can go on."""
    with serving(lambda _: Hold()) as server, talking(server, timeout_s=0.1) as (chat, session):
        with pytest.raises(ModelError, match=r"did not answer within 0\.1 s") as raised:
            chat.say("Hello")
        assert raised.value.status is None
        assert ["user"] == roles(session)


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.parametrize("drip", [Drip(), Drip(sized=False), Drip(head=True)], ids=["body", "body of no length", "head"])
def test_dripping_endpoint_times_out(drip: Drip) -> None:
    """The timeout bounds a whole attempt: an endpoint that writes a byte now and then is not waited for, but asked again."""
    answers: list[Drip | Message] = [drip, drip, said("At last.")]
    with serving(lambda _: answers.pop(0)) as server, talking(server, timeout_s=0.4) as (chat, session):
        with pytest.raises(ModelError, match=r"did not answer within 0\.4 s"):
            chat.say("Hello")
        assert ["user"] == roles(session)
        with Endpoint(server.url, "scripted", timeout_s=0.4, max_retries=1) as model:
            again = Chat(session, model).resume()
        assert again is not None
        assert ("At last.", 3) == (again.text, len(server.requests))


@pytest.mark.server
@pytest.mark.slow
def test_an_answer_of_any_size_is_a_reply_or_an_error() -> None:
    """An answer of more than 16 MiB is not read to its end, nothing of it is kept, and the turn can go on."""
    answers: list[Http | Message] = [Http(200, b" " * 17_000_000), said("x" * 4_000_000), said("Short.")]
    with serving(lambda _: answers.pop(0)) as server, talking(server) as (chat, session):
        with pytest.raises(ModelError, match="more than 16777216 bytes"):
            chat.say("Hello")
        assert ["user"] == roles(session)
        resumed = chat.resume()
        assert resumed is not None
        assert 4_000_000 == len(resumed.text)
        assert "Short." == chat.say("Shorter").text


@pytest.mark.server
@pytest.mark.slow
def test_an_answer_that_never_ends_is_left() -> None:
    """What an endpoint writes is read up to the limit, and no further, whatever it packs."""
    body = gzip.compress(b"[" * 200_000_000)
    with serving(lambda _: Http(200, body, encoding="gzip")) as server, talking(server) as (chat, session):
        tracemalloc.start()
        with pytest.raises(ModelError, match="more than 16777216 bytes"):
            chat.say("Hello")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 120_000_000
        assert ["user"] == roles(session)


@pytest.mark.server
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    """Where an endpoint points to another place nothing is sent there; the error says where that is, and no secret of it."""
    with serving(lambda _: said("Got you.")) as other:
        location = other.url.replace("://", "://ada:pass1234@") + "/chat/completions?token=t0"
        with serving(lambda _: Http(status, location=location)) as server, talking(server) as (chat, session):
            with pytest.raises(ModelError, match=rf"status {status}, it points to {other.url}/chat/completions: ") as raised:
                chat.say("Hello")
            assert status == raised.value.status
            assert ["user"] == roles(session)
        assert [] == other.keys


@pytest.mark.server
def test_absent_endpoint_cannot_be_reached() -> None:
    """Where nobody listens the error names host and port, and what to do."""
    with serving(lambda _: said("Hello.")) as server:
        pass
    with talking(server) as (chat, _), pytest.raises(ModelError, match=r"127\.0\.0\.1:\d+.*cannot be reached.*base URL"):
        chat.say("Hello")


@pytest.mark.server
def test_path_that_is_not_there() -> None:
    """A base URL without the API's path is answered with advice."""
    with (
        serving(lambda _: said("Hello.")) as server,
        Endpoint(server.url.removesuffix("/v1"), "scripted", max_retries=0) as model,
        memci.Engine("memory:", CONFIG) as engine,
        engine.session("talk") as session,
        pytest.raises(ModelError, match=r"status 400.*no such path"),
    ):
        Chat(session, model).say("Hello")


GARBAGE = [
    b"",
    b"<html>Sign in to the airport's network</html>",
    b"\xff\xfe",
    b"null",
    b"[]",
    b"{}",
    b'{"choices": []}',
    b'{"choices": [{}]}',
    b'{"choices": [{"message": null}]}',
    b'{"choices": [{"message": "Hello"}]}',
    b'{"choices": "Hello"}',
    b"[" * 100_000,
]


@pytest.mark.server
@pytest.mark.parametrize("body", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_no_reply(body: bytes) -> None:
    """An answer that is no chat completion is an error of one short line, and nothing of it is kept."""
    with serving(lambda _: Http(200, body)) as server, talking(server) as (chat, session):
        with pytest.raises(ModelError, match="no chat completion") as raised:
            chat.say("Hello")
        assert len(str(raised.value)) < 500
        assert ["user"] == roles(session)


@pytest.mark.server
def test_error_within_an_answer_is_told() -> None:
    """An error that comes with status 200, as some routers send it, is told in its own words."""
    body = json.dumps({"error": {"code": 502, "message": "the model is asleep"}}).encode()
    with (
        serving(lambda _: Http(200, body)) as server,
        talking(server) as (chat, _),
        pytest.raises(ModelError, match="reports an error: the model is asleep"),
    ):
        chat.say("Hello")


@pytest.mark.server
@pytest.mark.parametrize("repeated", [KEY, KEY.upper()], ids=["as it is", "in capitals"])
def test_key_stays_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture, repeated: str) -> None:
    """The key is in no error, also where the endpoint repeats it, in no log, and in no file of the store."""
    body = json.dumps({"error": {"message": f"wrong API key: {repeated}"}}).encode()
    with (
        caplog.at_level("DEBUG"),
        serving(lambda _: Http(401, body)) as server,
        talking(server, store=f"file:{tmp_path}", api_key=KEY) as (chat, _),
    ):
        with pytest.raises(ModelError, match=r"wrong API key: \[key\]") as raised:
            chat.say("Hello")
        assert f"Bearer {KEY}" == server.keys[-1]
        assert KEY not in "".join(traceback.format_exception(raised.value)) + repr(vars(raised.value))
        assert (None, None) == (raised.value.__cause__, raised.value.__context__)
    assert KEY not in caplog.text
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.server
def test_password_of_the_url_is_not_told() -> None:
    """An error names host and port of the base URL alone, not the password that may stand in it."""
    with serving(lambda _: Http(500)) as server:
        url = server.url.replace("://", "://ada:pass1234@")
        with Endpoint(url, "scripted", max_retries=0) as model, pytest.raises(ModelError) as raised:
            model.complete([{"role": "user", "content": "Hello"}], [], may_call=True)
    assert "pass1234" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.server
def test_without_a_key_something_is_sent() -> None:
    """Local servers need no key: a placeholder is sent in its place."""
    with serving(lambda _: said("Hello.")) as server, talking(server, api_key=None) as (chat, _):
        chat.say("Hello")
        assert ["Bearer none"] == server.keys


@pytest.mark.server
def test_options_are_sent() -> None:
    """More keys of the request go with every request."""
    options = {"temperature": 0.5, "max_completion_tokens": 100, "vendor": {"cache": True}}
    with serving(lambda _: said("Hello.")) as server, talking(server, options=options) as (chat, _):
        chat.say("Hello")
        assert options == {key: server.requests[0][key] for key in options}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"base_url": "localhost:8080/v1"}, "base_url"),
        ({"base_url": "ftp://localhost/v1"}, "base_url"),
        ({"base_url": "http:///v1"}, "base_url"),
        ({"base_url": "http://[::1/v1"}, "base_url"),
        ({"base_url": "http://localhost:port/v1"}, "base_url"),
        ({"base_url": ""}, "base_url"),
        ({"base_url": "http://localhost/v1?key=sk-1"}, "base_url"),
        ({"api_key": "sk-\u2026"}, "api_key"),
        ({"api_key": "sk-1\nX-Other: 2"}, "api_key"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"timeout_s": float("inf")}, "timeout_s"),
        ({"max_retries": -1}, "max_retries"),
        ({"max_retries": 1.5}, "max_retries"),
        ({"options": {"stream": True}}, "options.stream"),
        ({"options": {"messages": []}}, "options.messages"),
    ],
)
def test_wrong_arguments(changes: dict[str, Any], path: str) -> None:
    """An argument that cannot be used is refused by its name, and a key is not shown."""
    arguments: dict[str, Any] = {"base_url": "http://localhost:8080/v1", "model": "scripted"} | changes
    with pytest.raises(ConfigError) as raised:
        Endpoint(**arguments)
    assert path == raised.value.path
    assert "sk-" not in str(raised.value)


def test_missing_client_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, making an endpoint says what to install."""
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ConfigError, match="its extra chat"):
        Endpoint("http://localhost:8080/v1", "scripted")


@pytest.mark.server
def test_window_that_does_not_fit_is_told() -> None:
    """Where no window fits nothing is sent, the message is kept, and a larger budget goes on with it."""
    small, large = ({**config(), "budget": {"window": window, "reserve": 0}} for window in (60, 4_000))
    reply: Message = said("That is long.")
    with serving(lambda _: reply) as server, memci.Engine("memory:", large) as engine:
        with talking(server, small) as (chat, session):
            with pytest.raises(memci.BudgetError, match="the budget is 60"):
                chat.say("word " * 200)
            kept = list(session.messages())
        assert [] == server.requests
        with engine.session("talk") as session, Endpoint(server.url, "scripted", max_retries=0) as model:
            session.extend(kept)
            resumed = Chat(session, model).resume()
            assert resumed is not None
            assert "That is long." == resumed.text
