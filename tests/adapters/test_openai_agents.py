"""The OpenAI Agents SDK: calls stay in the window, also within one long run, items come back as they were, pages are recalled."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import (
    Agent,
    InputGuardrailTripwireTriggered,
    Runner,
    Usage,
    function_tool,
    handoff,
    input_guardrail,
    set_tracing_disabled,
)
from agents.extensions.handoff_filters import remove_all_tools
from agents.guardrail import GuardrailFunctionOutput
from agents.memory import Session as SdkSession
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from agents.testing.model import ModelCall
from openai.types.responses import ResponseReasoningItem
from pydantic import BaseModel

import memci
from memci.adapters.openai_agents import MemciSession
from memci.engine.session import Session
from tests.adapters.budget import COUNT, WINDOW

pytestmark = pytest.mark.frameworks


@pytest.fixture(autouse=True)
def _no_tracing() -> None:
    set_tracing_disabled(disabled=True)


@pytest.fixture
def session() -> Iterator[Session]:
    config = {"format": "responses", "budget": {"window": WINDOW, "reserve": 0}}
    with memci.Engine("memory:", config) as engine, engine.session("chat") as session:
        yield session


def call_tokens(call: ModelCall) -> int:
    """Return what a call takes, counted by the SDK's own items: every text of every item, and what is offered."""
    told = [call.system_instructions or ""]
    told += [json.dumps([tool.name, tool.description, tool.params_json_schema]) for tool in call.tools]  # type: ignore[union-attr]
    for item in call.input:
        told += [str(item.get(key) or "") for key in ("content", "output", "name", "arguments")]
    return sum(map(COUNT, told)) + 4 * len(call.input)


@function_tool
def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: " + "sand and water and boats " * 12


def model_of(answer: Callable[[ModelCall, int], list[Any]]) -> ScriptedModel:
    """Return a model whose nth call is answered by a function of the call and n."""
    steps = [ModelStep(responder=lambda call, number=number: answer(call, number)) for number in range(1, 400)]  # type: ignore[misc]
    return ScriptedModel(steps, default_usage=Usage(requests=1, input_tokens=1_000, output_tokens=10, total_tokens=1_010))


def say(session: Session, model: ScriptedModel, prompt: str, **given: Any) -> Any:
    memory = MemciSession(session)
    agent = memory.equipped(Agent("helper", instructions="You are a careful helper.", model=model, tools=[look], **given))
    work = Runner.run(agent, prompt, session=memory, run_config=memory.run_config, hooks=memory, max_turns=200)
    return asyncio.run(work)


def remembering(call: ModelCall, number: int) -> list[Any]:
    """Think and look twice at what the user asks, and answer; when it is asked of an earlier turn, search and recall first."""
    last = call.input[-1]
    if last.get("role") == "user":
        if "remember" in last["content"]:
            return [function_call("search_pages", {"query": "harbour master"}, call_id=f"s{number}")]
        calls = [function_call("look", {"place": place}, call_id=f"{place}{number}") for place in ("here", "there")]
        return [ResponseReasoningItem(id=f"r{number}", summary=[], type="reasoning", encrypted_content="sealed"), *calls]
    if last["call_id"].startswith("s"):
        found = json.loads(last["output"])
        return [function_call("recall_page", {"index": found[0]["index"]}, call_id=f"p{number}")]
    if last["call_id"].startswith("p"):
        return [assistant_message("Marmalade." if "is called Marmalade" in json.dumps(call.input) else "I do not know.")]
    return [assistant_message("It is done. " * 8, item_id=f"m{number}")]


@pytest.mark.slow
def test_forty_turns_with_tools(session: Session) -> None:
    """No call is over the window, the model brings an early page back within a run, and the session holds every item."""
    model = model_of(remembering)
    prompts = [f"Question {number}: what of the boats of pier {number}?" for number in range(1, 41)]
    prompts[2] = "The harbour master is called Marmalade. Keep that in mind."
    for prompt in prompts:
        say(session, model, prompt)
    assert "Marmalade." == say(session, model, "Do you remember the harbour master?").final_output
    assert max(map(call_tokens, model.calls)) <= WINDOW
    assert () == session.verify().problems
    items = asyncio.run(MemciSession(session).get_items())
    assert 7 * 40 + 6 == len(items)
    assert prompts == [item["content"] for item in items if item.get("role") == "user"][:-1]  # type: ignore[typeddict-item]
    assert "sealed" in json.dumps(model.calls[-3].input)


@pytest.mark.slow
def test_one_long_run(session: Session) -> None:
    """Within a run of 40 calls, each that is sent fits, though the SDK reads its session only once."""

    def work(_: ModelCall, number: int) -> list[Any]:
        if number > 40:
            return [assistant_message("All piers are done.")]
        return [function_call("look", {"place": f"pier {number} {place}"}, call_id=f"{place}{number}") for place in "ab"]

    model = model_of(work)
    assert "All piers are done." == say(session, model, "Look at every pier.").final_output
    assert 41 == len(model.calls)
    assert max(map(call_tokens, model.calls)) <= WINDOW
    assert () == session.verify().problems


def test_streamed_runs(session: Session) -> None:
    """What the user says is kept and shown before the model is asked, though the SDK adds it later; nothing is doubled."""
    model = model_of(remembering)

    async def stream(prompt: str) -> str:
        memory = MemciSession(session)
        agent = memory.equipped(Agent("helper", instructions="Be brief.", model=model, tools=[look]))
        run = Runner.run_streamed(agent, prompt, session=memory, run_config=memory.run_config, hooks=memory)
        async for _ in run.stream_events():
            pass
        return str(run.final_output)

    for number in range(1, 13):
        asyncio.run(stream("The same again?" if number % 2 else f"Question {number}?"))
    asked = [item["content"] for item in session.messages() if item.get("role") == "user"]
    assert 12 == len(asked)
    assert all(call.input[-1].get("role") == "user" for call in model.calls[::2])
    assert 7 * 12 == len(asyncio.run(MemciSession(session).get_items()))
    assert () == session.verify().problems


def test_a_handoff_that_filters_its_input(session: Session) -> None:
    """Agents hand over to each other within a run, also with a filter; the window stays that of the session."""
    first = model_of(lambda _, __: [function_call("transfer_to_second", {}, call_id="h")])
    second = model_of(lambda _, __: [assistant_message("Done by the second.")])
    memory = MemciSession(session)
    helper = memory.equipped(Agent("second", model=second))
    agent = Agent("first", model=first, handoffs=[handoff(helper, input_filter=remove_all_tools)])
    work = Runner.run(agent, "Who does it?", session=memory, run_config=memory.run_config)
    assert "Done by the second." == asyncio.run(work).final_output
    assert "Done by the second." == say(session, second, "And now?").final_output
    assert () == session.verify().problems


def test_an_agent_as_a_tool(session: Session) -> None:
    """An agent that another one calls has its own input, and sees nothing of the conversation."""
    inner_model = model_of(lambda _, __: [assistant_message("42")])
    inner = Agent("inner", instructions="Compute.", model=inner_model)

    def work(call: ModelCall, _: int) -> list[Any]:
        if call.input[-1].get("role") == "user":
            return [function_call("compute", {"input": "six times seven"}, call_id="c")]
        return [assistant_message(f"It is {call.input[-1]['output']}.")]

    memory = MemciSession(session)
    tools = [inner.as_tool("compute", "Computes.")]
    agent = memory.equipped(Agent("outer", instructions="Be brief.", model=model_of(work), tools=list(tools)))
    for secret in ("My secret is 4711.", "And now?"):
        result = asyncio.run(Runner.run(agent, secret, session=memory, run_config=memory.run_config))
        assert "It is 42." == result.final_output
    assert ["six times seven"] * 2 == [call.input[-1]["content"] for call in inner_model.calls]
    assert "4711" not in json.dumps([call.input for call in inner_model.calls])
    assert "Be brief." == next(session.messages())["content"]


def test_rules_in_the_input(session: Session) -> None:
    """What a run's input says as a developer stays in force beside the agent's instructions, and without any."""
    model = model_of(lambda _, __: [assistant_message("Well.")])
    memory = MemciSession(session)
    asked: list[Any] = [{"role": "developer", "content": "Rhyme."}, {"role": "user", "content": "One?"}]
    for given, instructions in ((asked, "Be brief."), ("Two?", "Be kind."), ("Three?", None)):
        agent = Agent("helper", instructions=instructions, model=model)
        asyncio.run(Runner.run(agent, given, session=memory, run_config=memory.run_config))
        assert "Rhyme." in json.dumps(model.calls[-1].input)
    assert ["Be kind.", "Rhyme."] == [item["content"] for item in session.messages()][:2]


def test_it_is_a_session_of_the_sdk(session: Session) -> None:
    """Items come back as they were added, oldest first, the newest by a limit; the newest can be popped, and all be cleared."""
    memory = MemciSession(session)
    assert isinstance(memory, SdkSession)
    items: list[Any] = [{"role": "user", "content": f"number {number}", "own": number} for number in range(5)]

    async def use() -> None:
        assert await memory.pop_item() is None
        await memory.add_items(items)
        await memory.add_items([])
        assert items == await memory.get_items()
        assert items[-2:] == await memory.get_items(2)
        assert [] == await memory.get_items(0)
        assert items[-1] == await memory.pop_item()
        assert items[:-1] == await memory.get_items()
        await memory.clear_session()
        await memory.clear_session()
        assert [] == await memory.get_items()
        await memory.add_items(items[:1])
        assert items[:1] == await memory.get_items(10)

    asyncio.run(use())
    assert () == session.verify().problems


def test_structured_output_and_pictures(session: Session) -> None:
    """The schema of an output is counted; a page with a picture is read with it."""

    class Facts(BaseModel):
        age: int

    picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw==", "detail": "low"}
    session.append({"role": "user", "content": [{"type": "input_text", "text": "Look."}, picture]})
    session.append({"role": "assistant", "content": "A boat."})

    def work(call: ModelCall, number: int) -> list[Any]:
        if number == 1:
            return [function_call("read_page", {"index": "usr-1"}, call_id="a")]
        if number == 2:
            return [function_call("read_page", '{"index": ', call_id="b")]
        assert picture["image_url"] in json.dumps(call.input)
        assert "not a JSON object" in call.input[-1]["output"]
        return [assistant_message('{"age": 7}')]

    assert Facts(age=7) == say(session, model_of(work), "How old?", output_type=Facts).final_output


def test_usage_calibrates(session: Session) -> None:
    """What the provider counted is reported to the session."""
    say(session, model_of(lambda _, __: [assistant_message("Well.")]), "One?")
    assert [1_000] == [event.data["prompt_tokens"] for event in session.events("usage")]


def test_what_a_guardrail_refuses(session: Session) -> None:
    """A run that never reaches the model leaves the session able to go on."""

    @input_guardrail
    async def refuse(*_: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    model = model_of(lambda _, __: [assistant_message("Well.")])
    with pytest.raises(InputGuardrailTripwireTriggered):
        say(session, model, "One?", input_guardrails=[refuse])
    assert "Well." == say(session, model, "Two?").final_output


def test_what_is_missing_is_said(session: Session) -> None:
    """The filter without the session, and a session of another format, say what to give."""
    memory = MemciSession(session)
    model = model_of(lambda _, __: [assistant_message("Well.")])
    say(session, model, "One?")
    with pytest.raises(memci.ConfigError, match="session=memory"):
        asyncio.run(Runner.run(memory.equipped(Agent("helper", model=model)), "Two?", run_config=memory.run_config))
    with memci.Engine("memory:") as engine, engine.session("other") as other, pytest.raises(memci.ConfigError, match="responses"):
        MemciSession(other)
