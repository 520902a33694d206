"""LangChain: model calls stay in the window, with a checkpointer and without, pages come back, and the state's objects go out."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

import memci
from memci.adapters.langchain import MemciMiddleware, history
from tests.adapters.budget import COUNT, WINDOW

pytestmark = pytest.mark.frameworks


class Model(BaseChatModel):
    """Answers by a function of the messages, and remembers what it was asked."""

    answer: Callable[[list[Any]], AIMessage]
    calls: list[Any] = []  # noqa: RUF012 (a field)
    sizes: list[int] = []  # noqa: RUF012 (as above)
    offered: list[Any] = []  # noqa: RUF012 (as above)

    @property
    def _llm_type(self) -> str:
        return "of a test"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        self.offered[:] = [convert_to_openai_tool(each) for each in tools]
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        told = [*map(json.dumps, self.offered)]
        for message in messages:
            told.append(message.text)
            told += [json.dumps([call["name"], call["args"]]) for call in getattr(message, "tool_calls", ())]
        self.calls.append(messages)
        self.sizes.append(sum(map(COUNT, told)) + 4 * len(messages))
        return ChatResult(generations=[ChatGeneration(message=self.answer(messages))])


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: " + "sand and water and boats " * 12


def called(name: str, **given: Any) -> dict[str, Any]:
    return {"name": name, "args": given, "id": f"{name}-{json.dumps(given)}"}


def remembering(messages: list[Any]) -> AIMessage:
    """Look twice at what the user asks, and answer; when it is asked of an earlier turn, search and recall first."""
    last = messages[-1]
    if isinstance(last, HumanMessage):
        if "remember" in last.text:
            return AIMessage("", tool_calls=[called("search_pages", query="harbour master")])
        usage = {"input_tokens": 1_000, "output_tokens": 5, "total_tokens": 1_005}
        calls = [called("look", place="here"), called("look", place="there")]
        return AIMessage("I look.", tool_calls=calls, id=f"own-{last.text}", usage_metadata=usage)
    if last.name == "search_pages":
        return AIMessage("", tool_calls=[called("recall_page", index=json.loads(last.text)[0]["index"])])
    if last.name == "recall_page":
        return AIMessage("Marmalade." if any("is called Marmalade" in message.text for message in messages) else "I do not know.")
    return AIMessage("It is done. " * 8)


def question(number: int) -> str:
    said = "The harbour master is called Marmalade. Keep that in mind."
    return said if number == 3 else f"Question {number}: what of the boats of pier {number}?"


def thread(name: str = "chat") -> Any:
    return {"configurable": {"thread_id": name}, "recursion_limit": 300}


def agent_of(model: Model, engine: Any, **given: Any) -> Any:
    return create_agent(model, [look], system_prompt="You are a careful helper.", middleware=[MemciMiddleware(engine)], **given)


@pytest.mark.slow
@pytest.mark.parametrize("is_async", [False, True])
def test_forty_turns_with_tools(engine: memci.Engine, *, is_async: bool) -> None:
    """No call is over the window, the model brings an early page back, and the session holds every message of the state."""
    model = Model(answer=remembering, calls=[], sizes=[], offered=[])
    agent = agent_of(model, engine, checkpointer=InMemorySaver())

    def say(text: str) -> Any:
        asked = {"messages": [HumanMessage(text)]}
        return asyncio.run(agent.ainvoke(asked, thread())) if is_async else agent.invoke(asked, thread())

    for number in range(1, 41):
        say(question(number))
    state = say("Do you remember the harbour master?")["messages"]
    assert "Marmalade." == state[-1].text
    assert max(model.sizes) <= WINDOW
    own = [message for message in model.calls[-4] if str(message.id).startswith("own-")]
    assert 2 <= sum(bool(message.usage_metadata) for message in own)
    with engine.session("chat") as session:
        assert () == session.verify().problems
        said = [message for message in session.messages() if message["role"] != "system"]
        assert 1_000 in [event.data["prompt_tokens"] for event in session.events("usage")]
    assert 5 * 40 + 6 == len(said) == len(state)
    assert [message.text for message in state if isinstance(message, HumanMessage)] == [
        message["content"] for message in said if message["role"] == "user"
    ]


def test_the_whole_conversation_without_a_checkpointer(engine: memci.Engine) -> None:
    """A state that the caller keeps is taken at its word: what is edited there is edited in the session."""
    model = Model(answer=lambda _: AIMessage("Well."), calls=[], sizes=[], offered=[])
    agent = agent_of(model, engine)
    state = agent.invoke({"messages": [HumanMessage("One?")]}, thread())["messages"]
    state = agent.invoke({"messages": [*state, HumanMessage("Two?")]}, thread())["messages"]
    agent.invoke({"messages": [*state[:2], HumanMessage("Three?")]}, thread())
    with engine.session("chat") as session:
        assert ["One?", "Well.", "Three?", "Well."] == [message.text for message in history(session)]
        assert {"Two?", "Three?"} == {variant.message["content"] for variant in session.variants("usr-3/1")} | {"Two?"}


def test_structured_output(engine: memci.Engine) -> None:
    """The tool of an output is counted and answered."""

    class Facts(BaseModel):
        age: int

    model = Model(answer=lambda _: AIMessage("", tool_calls=[called("Facts", age=7)]), calls=[], sizes=[], offered=[])
    agent = agent_of(model, engine, response_format=ToolStrategy(Facts))
    assert Facts(age=7) == agent.invoke({"messages": [HumanMessage("How old?")]}, thread())["structured_response"]
    assert "Facts" in [each["function"]["name"] for each in model.offered]
    with engine.session("chat") as session:
        assert ["system", "user", "assistant", "tool"] == [message["role"] for message in session.messages()]
        assert session.window().tokens


def test_pictures_and_wrong_calls(engine: memci.Engine) -> None:
    """What the model did wrong is in the tool's message; a page with a picture is read with it."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw==", "detail": "low"}}
    answers = iter([AIMessage("", tool_calls=[called("read_page", index=index)]) for index in ("usr-99", "usr-1")])
    model = Model(answer=lambda _: next(answers, AIMessage("A boat.")), calls=[], sizes=[], offered=[])
    agent = agent_of(model, engine)
    earlier = [HumanMessage([{"type": "text", "text": "Look."}, picture]), AIMessage("A boat.")]
    state = agent.invoke({"messages": [*earlier, HumanMessage("Once more?")]}, thread())["messages"]
    wrong, right = (message for message in state if isinstance(message, ToolMessage))
    assert "PageNotFoundError" in wrong.text
    assert picture in right.content
    assert earlier[0].content == model.calls[-1][1].content


def test_the_rules_of_recall_stand_in_the_one_system_message(engine: memci.Engine) -> None:
    """However much folded, a call has one system message, as providers want it."""
    model = Model(answer=remembering, calls=[], sizes=[], offered=[])
    agent = agent_of(model, engine, checkpointer=InMemorySaver())
    for number in range(1, 15):
        agent.invoke({"messages": [HumanMessage(question(number))]}, thread())
    first, *others = model.calls[-1]
    assert isinstance(first, SystemMessage)
    assert first.text.startswith("You are a careful helper.\n\nEarlier pages")
    assert not any(isinstance(message, SystemMessage) for message in others)


def test_calls_that_are_no_json(engine: memci.Engine) -> None:
    """The agent answers them itself; the thread goes on."""
    broken = AIMessage(
        "",
        invalid_tool_calls=[{"name": "look", "args": '{"place": ', "id": "i1", "error": "no JSON", "type": "invalid_tool_call"}],
    )
    answers = iter([broken, AIMessage("Well."), AIMessage("And more.")])
    model = Model(answer=lambda _: next(answers), calls=[], sizes=[], offered=[])
    agent = agent_of(model, engine, checkpointer=InMemorySaver())
    for text in ("One?", "Two?"):
        agent.invoke({"messages": [HumanMessage(text)]}, thread())
    with engine.session("chat") as session:
        assert () == session.verify().problems
        assert 2 == session.turn


def test_an_agent_that_another_one_calls(engine: memci.Engine) -> None:
    """It has the thread of the other one, and a conversation of its own, also where several are called at once."""
    inner_model = Model(answer=lambda messages: AIMessage(f"answer to {messages[-1].text}"), calls=[], sizes=[], offered=[])
    inner = agent_of(inner_model, engine)

    @tool
    def ask(question: str) -> str:
        """Ask somebody else."""
        return str(inner.invoke({"messages": [HumanMessage(question)]})["messages"][-1].text)

    def work(messages: list[Any]) -> AIMessage:
        if isinstance(messages[-1], HumanMessage):
            return AIMessage("", tool_calls=[called("ask", question=f"sub {number}") for number in range(4)])
        return AIMessage("All answered.")

    model = Model(answer=work, calls=[], sizes=[], offered=[])
    middleware = [MemciMiddleware(engine)]
    agent = create_agent(model, [ask], system_prompt="You delegate.", middleware=middleware, checkpointer=InMemorySaver())
    for text in ("One?", "Two?"):
        state = agent.invoke({"messages": [HumanMessage(text)]}, thread())["messages"]
    results = [message.text for message in state if isinstance(message, ToolMessage)]
    assert sorted(f"answer to sub {number}" for number in range(4)) * 2 == [*sorted(results[:4]), *sorted(results[4:])]
    with engine.session("chat") as session:
        assert 2 == session.turn
        assert [] == list(session.events("rewound"))


def test_what_no_chat_completion_has(engine: memci.Engine) -> None:
    """Tools that the provider runs, parts of other kinds, and a system prompt of blocks go through as they are."""
    mark = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    model = Model(answer=remembering, calls=[], sizes=[], offered=[])
    search: dict[str, Any] = {"type": "web_search_preview"}
    seen: list[Any] = []

    class Last(AgentMiddleware):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.append(request)
            return handler(request.override(tools=[each for each in request.tools if each is not search]))

    agent = create_agent(
        model,
        [look, search],
        system_prompt=SystemMessage([mark]),
        middleware=[MemciMiddleware(engine), Last()],
        checkpointer=InMemorySaver(),
    )
    plain = {"type": "text-plain", "text": "plain words", "mime_type": "text/plain"}
    agent.invoke({"messages": [HumanMessage([{"type": "text", "text": "See."}, plain])]}, thread())
    for number in range(1, 14):
        agent.invoke({"messages": [HumanMessage(question(number))]}, thread())
    assert search in seen[-1].tools
    assert mark == seen[-1].system_message.content[0]
    assert "Earlier pages" in seen[-1].system_message.text


def test_a_state_whose_beginning_was_removed(engine: memci.Engine) -> None:
    """The session keeps what the state lets go of, and takes in what is new."""
    model = Model(answer=lambda _: AIMessage("Well."), calls=[], sizes=[], offered=[])
    agent = agent_of(model, engine, checkpointer=InMemorySaver())
    for number in range(6):
        state = agent.invoke({"messages": [HumanMessage(f"{number}?")]}, thread())["messages"]
    gone = [RemoveMessage(id=message.id) for message in state[:6]]
    for number in (6, 7):
        agent.invoke({"messages": [*gone, HumanMessage(f"{number}?")]}, thread())
        gone = []
    with engine.session("chat") as session:
        assert [f"{number}?" for number in range(8)] == [
            message["content"] for message in session.messages() if message["role"] == "user"
        ]


def test_what_is_missing_is_said(engine: memci.Engine) -> None:
    """A thread without an id, and a session of another format, say what to give; a session of one's own needs no thread."""
    model = Model(answer=lambda _: AIMessage("Well."), calls=[], sizes=[], offered=[])
    with pytest.raises(memci.ConfigError, match="thread_id"):
        agent_of(model, engine).invoke({"messages": [HumanMessage("One?")]})
    with memci.Engine("memory:", {"format": "anthropic"}) as other, pytest.raises(memci.ConfigError, match="format: openai"):
        agent_of(model, other).invoke({"messages": [HumanMessage("One?")]}, thread())
    with engine.session("mine") as session:
        agent_of(model, session).invoke({"messages": [HumanMessage("One?")]})
        assert 1 == session.turn
