"""Anthropic's SDK: requests stay in the window, by its tool runner too, thinking goes back as it came, pages are recalled."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import beta_async_tool, beta_tool

import memci
from memci.adapters.anthropic import MemciMiddleware
from memci.engine.session import Session
from tests.adapters.budget import COUNT, WINDOW

pytestmark = pytest.mark.frameworks

SYSTEM = "You are a careful helper."
ASKED: dict[str, Any] = {"model": "claude-of-a-test", "max_tokens": 500, "system": SYSTEM}


@pytest.fixture
def session() -> Iterator[Session]:
    config = {"format": "anthropic", "budget": {"window": WINDOW, "reserve": 0}}
    with memci.Engine("memory:", config) as engine, engine.session("chat") as session:
        yield session


def request_tokens(body: dict[str, Any]) -> int:
    """Return what a request takes, counted by the bodies that the SDK sends: every text, call and result, and what is offered."""
    told = [block["text"] for block in body["system"]] if isinstance(body["system"], list) else [body["system"]]
    told += [json.dumps([tool["name"], tool.get("description"), tool["input_schema"]]) for tool in body.get("tools", ())]
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else [{"type": "text", "text": message["content"]}]
        for block in blocks:
            kept = {key: value for key, value in block.items() if key in ("text", "input", "content", "thinking", "name")}
            told += [value if isinstance(value, str) else json.dumps(value) for value in kept.values()]
    return sum(map(COUNT, told)) + 4 * len(body["messages"])


class Provider:
    """Answers requests by a function of the body and its number, and remembers them."""

    def __init__(self, answer: Callable[[dict[str, Any], int], list[dict[str, Any]]]) -> None:
        self.bodies: list[dict[str, Any]] = []
        self._answer = answer

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.bodies.append(body)
        content = self._answer(body, len(self.bodies))
        usage = {"input_tokens": 1_000, "output_tokens": 10}
        reason = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
        message = {"id": f"msg_{len(self.bodies)}", "type": "message", "role": "assistant", "model": body["model"]}
        return httpx2.Response(200, json={**message, "content": content, "stop_reason": reason, "usage": usage})

    async def later(self, request: httpx2.Request) -> httpx2.Response:
        return self(request)


def client_of(provider: Provider, memory: MemciMiddleware) -> anthropic.Anthropic:
    http = httpx2.Client(transport=httpx2.MockTransport(provider))
    return anthropic.Anthropic(api_key="none", http_client=http).with_middleware(memory)


@beta_tool
def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: " + "sand and water and boats " * 12


@beta_async_tool
async def look_later(place: str) -> str:
    """Look at a place."""
    return f"{place}: " + "sand and water and boats " * 12


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def use(name: str, number: int, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{name}_{number}_{len(given)}", "name": name, "input": given}


def remembering(body: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Think and look twice at what the user asks, and answer; when it is asked of an earlier turn, search and recall first."""
    last = body["messages"][-1]["content"]
    results = [block for block in last if block["type"] == "tool_result"] if isinstance(last, list) else []
    if not results:
        if "remember" in json.dumps(last):
            return [use("search_pages", number, query="harbour master")]
        thought = {"type": "thinking", "thinking": "I have to look.", "signature": "c2lnbmVk"}
        calls = [{**use("look", number, place=place), "id": f"toolu_{place}_{number}"} for place in ("here", "there")]
        return [thought, *calls]
    if "search_pages" in results[0]["tool_use_id"]:
        found = json.loads(results[0]["content"])
        return [use("recall_page", number, index=found[0]["index"])]
    if "recall_page" in results[0]["tool_use_id"]:
        return [text("Marmalade." if "is called Marmalade" in json.dumps(body["messages"]) else "I do not know.")]
    return [text("It is done. " * 8)]


def question(number: int) -> str:
    said = "The harbour master is called Marmalade. Keep that in mind."
    return said if number == 3 else f"Question {number}: what of the boats of pier {number}?"


@pytest.mark.slow
def test_forty_turns_with_the_tool_runner(session: Session) -> None:
    """No request is over the window, the model brings an early page back within a run, and the session holds every message."""
    memory = MemciMiddleware(session)
    provider = Provider(remembering)
    client = client_of(provider, memory)
    messages: list[Any] = []
    for number in range(1, 42):
        asked = question(number) if number < 41 else "Do you remember the harbour master?"
        messages.append({"role": "user", "content": asked})
        runner = client.beta.messages.tool_runner(messages=messages, tools=[look, *memory.tools()], **ASKED)
        final = runner.until_done()
        messages = [*session.messages()][1:]
    assert "Marmalade." == final.content[-1].text
    assert max(map(request_tokens, provider.bodies)) <= WINDOW
    assert "c2lnbmVk" in json.dumps(provider.bodies[-4]["messages"])
    assert () == session.verify().problems
    assert 4 * 40 + 6 == len(messages)
    assert 1_000 in [event.data["prompt_tokens"] for event in session.events("usage")]


def test_one_long_run_with_asyncio(session: Session) -> None:
    """Within a run of 40 requests, each that is sent fits."""
    memory = MemciMiddleware(session)

    def work(_: dict[str, Any], number: int) -> list[dict[str, Any]]:
        return [text("All piers are done.")] if number > 40 else [use("look_later", number, place=f"pier {number}")]

    provider = Provider(work)

    async def run() -> Any:
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(provider.later))
        async with anthropic.AsyncAnthropic(api_key="none", http_client=http).with_middleware(memory) as client:
            asked: list[Any] = [{"role": "user", "content": "Look at every pier."}]
            runner = client.beta.messages.tool_runner(messages=asked, tools=[look_later, *memory.async_tools()], **ASKED)
            return await runner.until_done()

    assert "All piers are done." == asyncio.run(run()).content[0].text
    assert 41 == len(provider.bodies)
    assert max(map(request_tokens, provider.bodies)) <= WINDOW
    assert () == session.verify().problems


def test_answers_go_back_as_they_came(session: Session) -> None:
    """The SDK's objects may stand in the list; an edited list edits the session; only the last breakpoint is sent."""
    provider = Provider(lambda _, number: [text(f"Answer {number}.")])
    client = client_of(provider, MemciMiddleware(session))
    mark = {"type": "ephemeral"}
    asked: list[Any] = [{"role": "user", "content": [{**text("One?"), "cache_control": mark}]}]
    first = client.messages.create(messages=asked, **ASKED)
    asked += [
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [{**text("Two?"), "cache_control": mark}]},
    ]
    client.messages.create(messages=asked, **ASKED)
    assert [text("One?")] == provider.bodies[1]["messages"][0]["content"]
    assert mark == provider.bodies[1]["messages"][-1]["content"][-1]["cache_control"]
    client.messages.create(messages=[*asked[:-1], {"role": "user", "content": "Three?"}], **ASKED)
    said = [message["content"] for message in session.messages()][1:]
    assert [[text("One?")], [text("Answer 1.")], "Three?", [text("Answer 3.")]] == said


def streamed(content: list[dict[str, Any]], number: int) -> str:
    """Return an answer as the provider streams it."""
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "c", "content": []}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "usage": {"input_tokens": 50, "output_tokens": 1}}}
    ]
    for place, block in enumerate(content):
        if block["type"] == "text":
            begun, delta = text(""), {"type": "text_delta", "text": block["text"]}
        else:
            begun, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events.append({"type": "content_block_start", "index": place, "content_block": begun})
        events.append({"type": "content_block_delta", "index": place, "delta": delta})
        events.append({"type": "content_block_stop", "index": place})
    reason = "tool_use" if content[-1]["type"] == "tool_use" else "end_turn"
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}})
    events.append({"type": "message_stop"})
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


class StreamingProvider(Provider):
    """Answers with events."""

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.bodies.append(body)
        told = streamed(self._answer(body, len(self.bodies)), len(self.bodies))
        return httpx2.Response(200, text=told, headers={"content-type": "text/event-stream"})


def test_streams_are_kept(session: Session) -> None:
    """What is streamed is kept as it ends, by hand and in the tool runner, which goes on from it."""
    provider = StreamingProvider(
        lambda _, number: [use("look", number, place="a")] if number in (2, 3) else [text("On the third.")]
    )
    memory = MemciMiddleware(session)
    client = client_of(provider, memory)
    asked: list[Any] = [{"role": "user", "content": "When?"}]
    with client.messages.stream(messages=asked, **ASKED) as stream:
        assert "On the third." == "".join(stream.text_stream)
    assert [text("On the third.")] == [*session.messages()][-1]["content"]
    asked += [{"role": "assistant", "content": [text("On the third.")]}, {"role": "user", "content": "Look first."}]
    for run in client.beta.messages.tool_runner(messages=asked, tools=[look], stream=True, **ASKED):
        for _ in run:
            pass
    said = [message["role"] for message in session.messages()][1:]
    assert ["user", "assistant"] * 4 == said
    assert 50 in [event.data["prompt_tokens"] for event in session.events("usage")] or () == session.verify().problems


def test_streams_with_asyncio(session: Session) -> None:
    """The same for an asynchronous client."""
    provider = StreamingProvider(lambda _, __: [text("On the third.")])

    async def ask() -> str:
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(provider.later))
        memory = MemciMiddleware(session)
        client = anthropic.AsyncAnthropic(api_key="none", http_client=http).with_middleware(memory)
        async with client, client.messages.stream(messages=[{"role": "user", "content": "When?"}], **ASKED) as stream:
            return "".join([said async for said in stream.text_stream])

    assert "On the third." == asyncio.run(ask())
    assert [text("On the third.")] == [*session.messages()][-1]["content"]


def test_requests_are_taken_at_their_word(session: Session) -> None:
    """One without a system prompt has none, marks inside of results are no part of it, and the schema of an output counts."""
    provider = Provider(lambda _, number: [use("look", number, place="a")] if number == 1 else [text("Well.")])
    client = client_of(provider, MemciMiddleware(session))
    asked: list[Any] = [{"role": "user", "content": "One?"}]
    first = client.messages.create(messages=asked, **ASKED)
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_look_1_1",
        "content": [{**text("sand"), "cache_control": {"type": "ephemeral"}}],
    }
    asked += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    client.messages.create(messages=asked, model="m", max_tokens=5)
    assert "system" not in provider.bodies[-1]
    before = session.seq
    unmarked = [*asked[:-1], {"role": "user", "content": [{**result, "content": [text("sand")]}]}]
    schema = {"type": "object", "properties": {f"a{number}": {"type": "string"} for number in range(600)}}
    output: Any = {"format": {"type": "json_schema", "schema": schema}}
    with pytest.raises(memci.BudgetError):
        client.messages.create(messages=unmarked, model="m", max_tokens=5, output_config=output)
    assert [] == [
        event for event in session.events("rewound", before) if event.data["page"] == "usr-1" and event.data["position"] < 4
    ]


def test_other_requests_are_left_alone(session: Session) -> None:
    """Counting tokens, and errors of the provider, change nothing."""
    provider = Provider(lambda _, __: [text("Well.")])
    memory = MemciMiddleware(session)

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("count_tokens"):
            return httpx2.Response(200, json={"input_tokens": 7})
        return httpx2.Response(400, json={"type": "error", "error": {"type": "invalid_request_error", "message": "no"}})

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    client = anthropic.Anthropic(api_key="none", http_client=http).with_middleware(memory)
    asked: list[Any] = [{"role": "user", "content": "One?"}]
    assert 7 == client.messages.count_tokens(model="c", messages=asked).input_tokens
    assert 0 == session.turn
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(messages=asked, **ASKED)
    client_of(provider, memory).messages.create(messages=asked, **ASKED)
    assert ["user", "assistant"] == [message["role"] for message in session.messages()][1:]


def test_a_page_with_a_picture() -> None:
    """What the model did wrong is in the result; a page is read with its pictures."""
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    with memci.Engine("memory:", {"format": "anthropic"}) as engine, engine.session("chat") as session:
        session.append({"role": "user", "content": [text("Look."), {"type": "image", "source": source}]})
        session.append({"role": "assistant", "content": "A boat."})
        tools = {tool.name: tool for tool in MemciMiddleware(session).tools()}
        assert "PageNotFoundError" in tools["read_page"].call({"index": "usr-99"})
        assert {"type": "image", "source": source} in tools["read_page"].call({"index": "usr-1"})


def test_a_thread_of_another_conversation(session: Session) -> None:
    """A runner whose conversation is not the one that was kept last is told to have a middleware of its own."""
    memory = MemciMiddleware(session)
    client = client_of(Provider(remembering), memory)
    asked: list[Any] = [{"role": "user", "content": "One?"}]
    runner = client.beta.messages.tool_runner(messages=asked, tools=[look], **ASKED)
    next(runner)
    client.messages.create(messages=[{"role": "user", "content": "remember?"}], **ASKED)
    with pytest.raises(memci.ConfigError, match="its own"):
        next(runner)


def test_another_format_is_refused() -> None:
    """A session that keeps messages of another provider says which format is needed."""
    with (
        memci.Engine("memory:") as engine,
        engine.session("chat") as session,
        pytest.raises(memci.ConfigError, match="anthropic"),
    ):
        MemciMiddleware(session)
