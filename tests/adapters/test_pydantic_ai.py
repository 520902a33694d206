"""Pydantic AI: requests stay in the window, nothing is lost, pages come back in a run, what is the framework's stays so."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.models.function import AgentInfo, FunctionModel

import memci
from memci.adapters.pydantic_ai import MemciCapability, history
from tests.adapters.budget import COUNT, WINDOW

pytestmark = pytest.mark.frameworks


def request_tokens(messages: list[Any], info: AgentInfo) -> int:
    """Return what a request takes, counted by the framework's own messages: every text of every part, and what is offered."""
    offered = [*info.function_tools, *info.output_tools]
    told = [json.dumps([tool.name, tool.description, tool.parameters_json_schema]) for tool in offered]
    for part in (part for message in messages for part in message.parts):
        if part.part_kind == "tool-call":
            told.append(part.tool_name + part.args_as_json_str())
        elif part.part_kind == "tool-return":
            told.append(part.model_response_str())
        else:
            told.append(part.content if isinstance(part.content, str) else json.dumps(part.content, default=repr))
    return sum(map(COUNT, [info.instructions or "", *told])) + 4 * len(messages)


def run(agent: Agent[None, Any], prompt: Any, **given: Any) -> Any:
    return asyncio.run(agent.run(prompt, **given))


class Model:
    """Calls ``look``, then answers; when it is asked of an earlier turn, it searches and recalls first."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.sizes: list[int] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.requests.append(messages)
        self.sizes.append(request_tokens(messages, info))
        last: Any = messages[-1].parts[-1]
        if last.part_kind == "user-prompt":
            if "remember" in str(last.content):
                return ModelResponse(parts=[ToolCallPart("search_pages", {"query": "harbour master"})])
            thought = ThinkingPart("I have to look.", signature="signed")
            return ModelResponse(
                parts=[thought, ToolCallPart("look", {"place": "here"}), ToolCallPart("look", {"place": "there"})]
            )
        if last.part_kind == "tool-return" and last.tool_name == "search_pages":
            found = json.loads(last.model_response_str())
            return ModelResponse(parts=[ToolCallPart("recall_page", {"index": found[0]["index"]})])
        if last.part_kind == "tool-return" and last.tool_name == "recall_page":
            shown = "".join(
                str(part.content) for message in messages for part in message.parts if part.part_kind == "user-prompt"
            )
            return ModelResponse(parts=[TextPart("It is Marmalade." if "is called Marmalade" in shown else "I do not know.")])
        return ModelResponse(parts=[TextPart("It is done. " * 8)])


def agent_of(model: Any, *capabilities: Any, **given: Any) -> Agent[None, Any]:
    agent = Agent(FunctionModel(model), instructions="You are a careful helper.", capabilities=capabilities, **given)

    @agent.tool_plain
    def look(place: str) -> str:
        """Look at a place."""
        return f"{place}: " + "sand and water and boats " * 12

    return agent


def question(number: int) -> str:
    if number == 3:
        return "The harbour master is called Marmalade. Keep that in mind."
    return f"Question {number}: what of the boats of pier {number}?"


def run_forty(engine: memci.Engine, *, with_history: bool) -> tuple[Model, list[ModelMessage], str]:
    model = Model()
    agent = agent_of(model, MemciCapability(engine))
    kept: list[ModelMessage] = []
    for number in range(1, 41):
        given = {"message_history": kept} if with_history and kept else {}
        result = run(agent, question(number), conversation_id="chat", **given)
        kept = result.all_messages() if with_history else [*kept, *result.new_messages()]
    given = {"message_history": kept} if with_history else {}
    result = run(agent, "Do you remember the harbour master?", conversation_id="chat", **given)
    return model, [*kept, *result.new_messages()], result.output


@pytest.mark.slow
@pytest.mark.parametrize("with_history", [False, True])
def test_forty_turns_with_tools(engine: memci.Engine, *, with_history: bool) -> None:
    """No request is over the window, the model brings an early page back, and the session holds every message."""
    model, messages, answer = run_forty(engine, with_history=with_history)
    assert "It is Marmalade." == answer
    assert max(model.sizes) <= WINDOW
    with engine.session("chat") as session:
        assert () == session.verify().problems
        assert 41 == session.turn
        said = [message for message in session.messages() if message["role"] != "system"]
    prompts = [part.content for message in messages for part in message.parts if part.part_kind == "user-prompt"]
    assert prompts == [message["content"] for message in said if message["role"] == "user"]
    assert 5 * 40 + 6 == len(said)


@pytest.mark.slow
def test_messages_in_view_are_the_frameworks_own(engine: memci.Engine) -> None:
    """Thoughts with their signatures and all: a request has the objects of the history, where they are shown whole."""
    model, messages, _ = run_forty(engine, with_history=True)
    shown = [message for message in model.requests[-4] if isinstance(message, ModelResponse)]
    own = [message for message in messages if any(message is each for each in shown)]
    assert 4 <= len(own)
    assert any(isinstance(part, ThinkingPart) and part.signature == "signed" for message in own for part in message.parts)


def test_answers_that_say_the_same_keep_their_thoughts(engine: memci.Engine) -> None:
    """Each answer of the history goes back with its own thoughts, in its place, where the text of several is the same."""
    requests: list[list[ModelMessage]] = []

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        requests.append(messages)
        return ModelResponse(parts=[ThinkingPart("Again.", signature=f"signed {len(requests)}"), TextPart("Well.")])

    agent = agent_of(model, MemciCapability(engine))
    kept: list[ModelMessage] = []
    for _ in range(3):
        kept = run(agent, "And now?", conversation_id="chat", message_history=kept).all_messages()
    shown = [part for message in requests[-1] for part in message.parts if isinstance(part, ThinkingPart)]
    assert ["signed 1", "signed 2"] == [part.signature for part in shown]


def test_an_edited_history_edits_the_session(engine: memci.Engine) -> None:
    """A run whose history ends earlier goes on from there; what it left stays in the journal as a variant."""
    agent = agent_of(Model(), MemciCapability(engine))
    first = run(agent, "One?", conversation_id="chat")
    run(agent, "Two?", conversation_id="chat", message_history=first.all_messages())
    run(agent, "Three?", conversation_id="chat", message_history=first.all_messages())
    with engine.session("chat") as session:
        assert ["One?", "Three?"] == [message["content"] for message in session.messages() if message["role"] == "user"]
        assert {"Two?", "Three?"} == {variant.message["content"] for variant in session.variants("usr-3/1")} | {"Two?"}


def test_the_first_answer_is_generated_anew(engine: memci.Engine) -> None:
    """A history of the one question, without a prompt, is the whole conversation."""
    agent = agent_of(Model(), MemciCapability(engine))
    first = run(agent, "One?", conversation_id="chat")
    run(agent, None, conversation_id="chat", message_history=first.all_messages()[:1])
    with engine.session("chat") as session:
        assert ["One?"] == [message["content"] for message in session.messages() if message["role"] == "user"]


@pytest.mark.parametrize("is_first", [True, False])
def test_beside_a_processor_of_histories(engine: memci.Engine, *, is_first: bool) -> None:
    """Wherever it stands in the list, the session has what was said, once, and the framework's history stays whole."""
    memory, processor = MemciCapability(engine), ProcessHistory[None](list)
    agent = Agent(FunctionModel(lambda _, __: ModelResponse(parts=[TextPart("Well.")])), capabilities=[memory, processor])
    if is_first:
        agent = Agent(FunctionModel(lambda _, __: ModelResponse(parts=[TextPart("Well.")])), capabilities=[processor, memory])
    kept: list[ModelMessage] = []
    for number in range(12):
        kept = run(agent, f"{number}? " + "words " * 300, conversation_id="chat", message_history=kept).all_messages()
        run(agent, f"{number}? ", conversation_id="other")
    assert 24 == len(kept)
    for name in ("chat", "other"):
        with engine.session(name) as session:
            assert 24 == len(list(session.messages()))


def test_a_processor_that_edits_what_was_said(engine: memci.Engine) -> None:
    """A message that is changed between the requests of a run, and changed back, is in the session as it was at the end."""
    prompts = iter(["One?", "One, please?", "One?"])
    looks = [ToolCallPart("look", {"place": place}) for place in ("here", "there")]
    answers = iter(list[Any]([*looks, TextPart("Well.")]))

    def edited(messages: list[ModelMessage]) -> list[ModelMessage]:
        return [ModelRequest(parts=[UserPromptPart(next(prompts))]), *messages[1:]]

    def model(_: list[ModelMessage], __: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[next(answers)])

    agent = agent_of(model, MemciCapability(engine), ProcessHistory[None](edited))
    run(agent, "One?", conversation_id="chat")
    with engine.session("chat") as session:
        said = [message for message in session.messages() if message["role"] != "system"]
    assert ["user", "assistant", "tool", "assistant", "tool", "assistant"] == [message["role"] for message in said]
    assert ("One?", "Well.") == (said[0]["content"], said[-1]["content"])


def test_structured_output_and_retries(engine: memci.Engine) -> None:
    """Output tools are counted and answered; a retry is part of the conversation."""
    answers = iter(list[dict[str, Any]]([{"age": "old"}, {"age": 7}]))

    class Facts(BaseModel):
        age: int

    def model(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, next(answers))])

    result = run(agent_of(model, MemciCapability(engine), output_type=Facts), "How old?", conversation_id="chat")
    assert 7 == result.output.age
    with engine.session("chat") as session:
        assert ["system", "user", "assistant", "tool", "assistant", "tool"] == [each["role"] for each in session.messages()]
        assert session.window().tokens


def test_pictures() -> None:
    """What a user shows, and what a tool answers with, are parts of the session's messages, and come back as they were."""
    engine = memci.Engine("memory:")
    picture = BinaryContent(b"\x89PNG", media_type="image/png")
    requests: list[Any] = []

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        requests.append(messages)
        if len(requests) == 1:
            return ModelResponse(parts=[ToolCallPart("draw", {})])
        return ModelResponse(parts=[TextPart("A boat.")])

    agent = agent_of(model, MemciCapability(engine))

    @agent.tool_plain
    def draw() -> list[Any]:
        return ["drawn", picture]

    run(agent, ["What is this?", picture], conversation_id="chat")
    assert [picture] == requests[1][-1].parts[0].files
    run(agent, "And now?", conversation_id="chat")
    assert "What is this?" == requests[2][0].parts[0].content[0]
    assert b"\x89PNG" == requests[2][0].parts[0].content[1].data
    with engine.session("chat") as session:
        url = "data:image/png;base64,iVBORw=="
        assert [False, True, False, True] == [url in json.dumps(message) for message in session.messages()][:4]
        told: list[Any] = history(session)
    assert [picture.data] == [item.data for item in told[0].parts[0].content[1:]]


def test_streaming(engine: memci.Engine) -> None:
    """A streamed answer is kept as it ends; the next run has it."""

    async def words(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
        yield "On the "
        yield "third."

    agent = Agent(FunctionModel(stream_function=words), capabilities=[MemciCapability(engine)])

    async def ask() -> str:
        async with agent.run_stream("When?", conversation_id="chat") as result:
            return "".join([text async for text in result.stream_text(delta=True)])

    assert "On the third." == asyncio.run(ask())
    with engine.session("chat") as session:
        assert ["When?", "On the third."] == [message["content"] for message in session.messages()]


def test_what_was_asked_is_kept_where_the_model_fails(engine: memci.Engine) -> None:
    """The error is the caller's; the session has the question, and goes on."""

    def fails(_: list[ModelMessage], __: AgentInfo) -> ModelResponse:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        run(agent_of(fails, MemciCapability(engine)), "One?", conversation_id="chat")
    run(agent_of(Model(), MemciCapability(engine)), "Two?", conversation_id="chat")
    with engine.session("chat") as session:
        assert ["One?", "Two?"] == [message["content"] for message in session.messages() if message["role"] == "user"]


def test_a_run_that_broke_off_takes_nothing_back(engine: memci.Engine) -> None:
    """Where a tool fails in a run with a history, what was asked and answered in the run stays in the session."""
    agent = agent_of(lambda *_: ModelResponse(parts=[ToolCallPart("fall", {})]), MemciCapability(engine))

    @agent.tool_plain
    def fall() -> str:
        raise ConnectionError

    kept = run(agent_of(Model(), MemciCapability(engine)), "One?", conversation_id="chat").all_messages()
    with pytest.raises(ConnectionError):
        run(agent, "Two?", conversation_id="chat", message_history=kept)
    with engine.session("chat") as session:
        *_, asked, answered = session.messages()
    assert ("Two?", "fall") == (asked["content"], answered["tool_calls"][0]["function"]["name"])


def test_one_session_for_all_runs() -> None:
    """A Session in the engine's place is used whatever the conversation is called, and stays open."""
    with memci.Engine("memory:") as engine, engine.session("mine") as session:
        agent = agent_of(Model(), MemciCapability(session))
        run(agent, "One?")
        run(agent, "Two?")
        assert 2 == session.turn
        assert ["mine"] == list(engine.sessions())


def test_a_tool_that_is_called_wrongly(engine: memci.Engine) -> None:
    """What the model did wrong is in the result, and the run goes on; pictures of a page that is read come with it."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw==", "detail": "low"}}
    calls = iter(
        [ToolCallPart("read_page", {"index": "usr-99"}), ToolCallPart("read_page", {"index": "usr-1"}), TextPart("I see.")]
    )
    results: list[Any] = []

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        results.append(messages[-1].parts[-1])
        found: Any = next(calls, TextPart("I see."))
        return ModelResponse(parts=[found])

    with engine.session("chat") as session:
        session.append({"role": "user", "content": [{"type": "text", "text": "Look."}, picture]})
        session.append({"role": "assistant", "content": "A boat."})
    run(agent_of(model, MemciCapability(engine)), "Once more?", conversation_id="chat")
    assert "PageNotFoundError" in results[1].model_response_str()
    assert b"\x89PNG" == results[2].files[0].data


def test_without_tools() -> None:
    """With ``recall.protocol: none`` the agent has its own tools alone."""
    names: list[str] = []

    def model(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        names.extend(tool.name for tool in info.function_tools)
        return ModelResponse(parts=[TextPart("Well.")])

    with memci.Engine("memory:", {"recall": {"protocol": "none"}}) as engine:
        run(agent_of(model, MemciCapability(engine)), "One?", conversation_id="chat")
    assert ["look"] == names


def test_another_format_is_refused() -> None:
    """A session that keeps messages of another provider says which format is needed."""
    with memci.Engine("memory:", {"format": "anthropic"}) as engine, pytest.raises(memci.ConfigError, match="format: openai"):
        run(agent_of(Model(), MemciCapability(engine)), "One?", conversation_id="chat")


@pytest.mark.slow
def test_many_conversations_at_once(engine: memci.Engine) -> None:
    """One capability serves them all, each from its own session."""
    agent = agent_of(Model(), MemciCapability(engine))

    async def ask(number: int) -> None:
        for turn in range(3):
            await agent.run(f"{number}/{turn}?", conversation_id=f"chat-{number}")

    async def ask_all() -> None:
        await asyncio.gather(*map(ask, range(8)))

    asyncio.run(ask_all())
    for number in range(8):
        with engine.session(f"chat-{number}") as session:
            asked = [message["content"] for message in session.messages() if message["role"] == "user"]
            assert [f"{number}/{turn}?" for turn in range(3)] == asked
