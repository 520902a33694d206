"""Microsoft Agent Framework: what its agents send, and what sessions hold of it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
)
from pydantic import BaseModel

import memci
from memci.adapters.agent_framework import MemciMiddleware
from memci.engine.session import Session
from memci.errors import ConfigError
from tests.adapters.budget import COUNT, WINDOW

pytestmark = pytest.mark.frameworks

Answer = Callable[[Sequence[Message], int], list[Content]]
USAGE = {"input_token_count": 1_000, "cache_read_input_token_count": 400}


class Client(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A model whose nth call is answered by a function of the messages and n; it remembers what it was sent."""

    def __init__(self, answer: Answer, usage: dict[str, int] | None = None) -> None:
        super().__init__()
        self.function_invocation_configuration["max_iterations"] = 100
        self.answer, self.usage = answer, usage or {}
        self.calls: list[tuple[list[Message], dict[str, Any]]] = []

    def _inner_get_response(self, *, messages: Sequence[Message], stream: bool, options: Any, **_: Any) -> Any:
        self.calls.append(([*messages], {**options}))
        contents = self.answer(messages, len(self.calls))

        async def whole() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", contents)], usage_details=self.usage)  # type: ignore[arg-type]

        async def pieces() -> AsyncIterator[ChatResponseUpdate]:
            for content in contents:
                if content.type == "text" and content.text is not None:
                    yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(content.text[:4])])
                    content = Content.from_text(content.text[4:])  # noqa: PLW2901 (the rest of it)
                yield ChatResponseUpdate(role="assistant", contents=[content])

        return self._build_response_stream(pieces()) if stream else whole()

    def tokens(self) -> list[int]:
        """Return what each call takes: every text, call and result, and what is offered."""
        return [sum(map(COUNT, told(messages, options))) + 4 * len(messages) for messages, options in self.calls]


def told(messages: Sequence[Message], options: dict[str, Any]) -> Iterator[str]:
    yield options.get("instructions") or ""
    for tool in options.get("tools") or ():
        yield json.dumps([tool.name, tool.description, tool.parameters()])
    for message in messages:
        for content in message.contents:
            yield from (str(content.text or ""), str(content.name or ""), str(content.arguments or ""), str(content.result or ""))


@pytest.fixture
def session(engine: memci.Engine) -> Iterator[Session]:
    with engine.session("chat") as session:
        yield session


def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: " + "sand and water and boats " * 12


class Talk:
    """A conversation of one agent."""

    def __init__(self, session: Session, client: Client, **options: Any) -> None:
        self.memory = MemciMiddleware(session)
        tools: list[Any] = [look, *self.memory.tools()]
        self.agent = Agent(
            client=client, instructions="You are a careful helper.", tools=tools, middleware=[self.memory], **options
        )
        self.framework = AgentSession(session_id=session.id)

    def say(self, prompt: Any, **options: Any) -> Any:
        return asyncio.run(self.agent.run(prompt, session=self.framework, **options))

    def streamed(self, prompt: str) -> str:
        async def read() -> str:
            stream = self.agent.run(prompt, session=self.framework, stream=True)
            return "".join([update.text async for update in stream])

        return asyncio.run(read())


def text(said: str) -> list[Content]:
    return [Content.from_text(said)]


def call(call_id: str, name: str, **arguments: str) -> Content:
    return Content.from_function_call(call_id, name, arguments=json.dumps(arguments))


def remembering(messages: Sequence[Message], number: int) -> list[Content]:
    """Think and look twice at what the user asks, and answer; when it is asked of an earlier turn, search and recall first."""
    last = messages[-1].contents[-1]
    if messages[-1].role == "user":
        if "remember" in messages[-1].text:
            return [call(f"s{number}", "search_pages", query="harbour master")]
        thought = Content.from_text_reasoning(text="Let me look.", protected_data="sealed")
        return [thought, call(f"a{number}", "look", place="here"), call(f"b{number}", "look", place="there")]
    if str(last.call_id).startswith("s"):
        return [call(f"p{number}", "recall_page", index=json.loads(str(last.result))[0]["index"])]
    if str(last.call_id).startswith("p"):
        return text("Marmalade." if "is called Marmalade" in "".join(told(messages, {})) else "I do not know.")
    return text("It is done. " * 8)


@pytest.mark.slow
@pytest.mark.parametrize("streams", [False, True])
def test_forty_turns_with_tools(session: Session, *, streams: bool) -> None:
    """No call is over the window, the model brings an early page back within a run, and the session holds every message."""
    client = Client(remembering)
    talk = Talk(session, client)
    ask = talk.streamed if streams else lambda prompt: talk.say(prompt).text
    prompts = [f"Question {number}: what of the boats of pier {number}?" for number in range(1, 41)]
    prompts[2] = "The harbour master is called Marmalade. Keep that in mind."
    for prompt in prompts:
        assert "It is done. " * 8 == ask(prompt)
    assert "Marmalade." == ask("Do you remember the harbour master?")
    assert max(client.tokens()) <= WINDOW
    assert () == session.verify().problems
    messages = [*session.messages()]
    assert 1 + 5 * 40 + 6 == len(messages)
    assert prompts == [message["content"] for message in messages if message["role"] == "user"][:-1]
    sealed = [content for message in client.calls[-3][0] for content in message.contents if content.protected_data == "sealed"]
    assert sealed


def test_one_long_run(session: Session) -> None:
    """Within a run of 40 calls, each that is sent fits."""

    def work(_: Sequence[Message], number: int) -> list[Content]:
        if number > 40:
            return text("All piers are done.")
        return [call(f"{place}{number}", "look", place=f"pier {number} {place}") for place in "ab"]

    client = Client(work)
    assert "All piers are done." == Talk(session, client).say("Look at every pier.").text
    assert 41 == len(client.calls)
    assert max(client.tokens()) <= WINDOW
    assert () == session.verify().problems


def test_what_was_said_is_there_before_the_model_is_asked(session: Session) -> None:
    """A call that fails leaves what the user said in the session; the next run goes on."""

    def fail(messages: Sequence[Message], number: int) -> list[Content]:
        if number == 1:
            assert "Hello" == [*session.messages()][-1]["content"]
            raise TimeoutError
        return text(f"You said {messages[-1].text}")

    talk = Talk(session, Client(fail))
    with pytest.raises(TimeoutError):
        talk.say("Hello")
    assert "You said Again" == talk.say("Again").text
    assert () == session.verify().problems


def test_usage_calibrates(session: Session) -> None:
    """What the provider counted is reported to the session, and that of it which was cached."""
    Talk(session, Client(lambda _messages, _number: text("Yes."), USAGE)).say("Is it?")
    assert [1_000] == [event.data["prompt_tokens"] for event in session.events("usage")]


def test_structured_output_and_pictures(session: Session) -> None:
    """The schema of an output is counted, and a picture goes out as it came."""

    class Pier(BaseModel):
        name: str

    client = Client(lambda _messages, _number: text('{"name": "West"}'))
    talk = Talk(session, client)
    talk.say("Which?")
    before = session.window().breakdown["tools"]
    picture = Content.from_data(b"\x89PNG\r\n\x1a\n", media_type="image/png")
    answer = talk.say(Message("user", [Content.from_text("And this?"), picture]), options={"response_format": Pier})
    assert "West" == answer.value.name
    assert session.render(session.seq).breakdown["tools"] > before
    assert picture in client.calls[-1][0][-1].contents
    kept = [message for message in session.messages() if message["role"] == "user"][-1]
    assert {"text", "image_url"} == {part["type"] for part in kept["content"]}


def test_a_page_with_a_picture() -> None:
    """What the model did wrong is in the result; a page is read with its pictures."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    with memci.Engine("memory:") as engine, engine.session("chat") as session:
        session.append({"role": "user", "content": [{"type": "text", "text": "Look."}, picture]})
        session.append({"role": "assistant", "content": "I see."})
        tools = {tool.name: tool for tool in MemciMiddleware(session).tools()}
        (refused,) = asyncio.run(tools["read_page"].invoke(arguments={"index": "usr-99"}))
        assert "PageNotFoundError" in str(refused.text)
        _, shown = asyncio.run(tools["read_page"].invoke(arguments={"index": "usr-1"}))
    assert ("data", picture["image_url"]["url"]) == (shown.type, shown.uri)  # type: ignore[index]


def test_results_and_contents_of_other_kinds(session: Session) -> None:
    """Tools of the provider are counted, contents that no chat completion has leave a mark, and go out as they came."""
    client = Client(lambda _messages, _number: text("Read."))
    talk = Talk(session, client)
    file = Content.from_hosted_file("file-1")
    talk.say(Message("user", [Content.from_text("Read this."), file]), tools=[{"type": "web_search"}])
    assert file in client.calls[-1][0][-1].contents
    assert "Read this.[hosted_file]" == [*session.messages()][-2]["content"]


def test_sessions_without_tools() -> None:
    """Where models recall nothing, none are offered."""
    with memci.Engine("memory:", {"recall": {"protocol": "none"}}) as engine, engine.session("chat") as session:
        assert [] == MemciMiddleware(session).tools()


def test_another_format_is_refused() -> None:
    """A session that keeps messages of another provider says which format is needed."""
    with (
        memci.Engine("memory:", {"format": "anthropic"}) as engine,
        engine.session("chat") as session,
        pytest.raises(ConfigError, match="format: openai"),
    ):
        MemciMiddleware(session)
