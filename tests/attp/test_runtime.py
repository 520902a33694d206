import asyncio
import threading
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from memci.attp.document import parse
from memci.attp.runtime import (
    KEPT_ANSWERS,
    AnswerRepeated,
    CallFinished,
    CodeStarted,
    Event,
    ReplyParsed,
    Result,
    Runtime,
    ToolCalled,
)
from memci.attp.sandbox import Limits
from memci.attp.toolbox import Toolbox
from memci.errors import ArgumentError, PageEvictedError

CALLED: list[str] = []


def find_order(number: str) -> dict[str, str]:
    """Find an order by its number."""
    CALLED.append(number)
    return {"number": number, "status": "sent"}


def lose_page(index: str) -> str:
    """Fail as a recall of an evicted page does."""
    raise PageEvictedError(index)


def break_down(reason: str) -> str:
    """Fail as a broken tool does."""
    message = f"{reason}: cannot read /var/lib/orders.db at 0x7f00deadbeef"
    raise RuntimeError(message)


async def ask_courier(number: str) -> str:
    """Ask the courier, who takes a moment."""
    await asyncio.sleep(0)
    return f"{number} is on its way"


async def wait_for_ever(number: str) -> str:
    """Ask somebody who never answers."""
    await asyncio.Event().wait()
    return number


def box(*functions: Any) -> Toolbox:  # noqa: ANN401 (functions of any signature)
    toolbox = Toolbox()
    for function in functions or (find_order, lose_page, break_down):
        toolbox.register(function)
    return toolbox


def reply(code: str, *, thought: str = "look it up") -> str:
    return f"thought = \"{thought}\"\n\n[tool_call]\nstatus = \"success\"\ntarget = \"orders\"\ncode = '''\n{code}\n'''\n"


def answered(result: Result) -> dict[str, Any]:
    document = tomllib.loads(result.to_toml())
    assert ["tool_result"] == list(document)
    found = document["tool_result"]
    assert isinstance(found, dict)
    return found


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    CALLED.clear()
    with Runtime(box(), Limits(time_s=0.5)) as made:
        yield made


def test_a_call_is_answered_with_its_result(runtime: Runtime) -> None:
    """The answer to a call is a document with the status and what the code assigned."""
    result = runtime.run(reply('__result__ = find_order("A-17")["status"]'))
    assert ("sent", None, None, 1) == (result.value, result.error, result.answer, result.calls)
    assert {"status": "success", "result": "sent"} == answered(result)
    assert ["A-17"] == CALLED


def test_what_code_prints_is_in_the_answer(runtime: Runtime) -> None:
    """Printed text stands beside the result."""
    result = runtime.run(reply('print("on", 1)\n__result__ = [1, {"a": None}]'))
    assert {"status": "success", "result": [1, {}], "printed": "on 1\n"} == answered(result)


def test_a_plain_answer_calls_nothing(runtime: Runtime) -> None:
    """A reply without a tool call is the model's answer; there is nothing to send back."""
    result = runtime.run("Your order was sent.")
    assert ("Your order was sent.", "", None) == (result.answer, result.to_toml(), result.error)


def test_no_content_is_an_empty_answer(runtime: Runtime) -> None:
    """A message that calls tools natively has null as its content: it says nothing. A list of parts is no reply."""
    assert ("", "") == (runtime.run(None).answer, asyncio.run(runtime.arun(None, "c1")).answer)
    parts: Any = [{"type": "text", "text": "Hello"}]
    for call in (runtime.run, parse):
        with pytest.raises(ArgumentError, match="text"):
            call(parts)


def test_a_model_that_gives_up_says_why(runtime: Runtime) -> None:
    """A call with the status fail runs nothing; its message is the answer."""
    result = runtime.run('[tool_call]\nstatus = "fail"\nmessage = "There is no tool for refunds."\n')
    assert ("There is no tool for refunds.", "", None) == (result.answer, result.to_toml(), result.error)


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("__result__ = 1 / 0", "ZeroDivisionError", "division by zero"),
        ("import os\n__result__ = 1", "ImportError", "the module os"),
        ("__result__ = find_order(17)", "ToolArgumentError", "number"),
        ("__result__ = find_order()", "ToolArgumentError", "number"),
        ("__result__ = find_order('A', 'B')", "ToolArgumentError", "find_order(number: str)"),
        ("__result__ = find_orders('A')", "NameError", "find_orders"),
        ("__result__ = lose_page('usr-3')", "PageEvictedError", "usr-3"),
        ("__result__ = break_down('disk')", "RuntimeError", "disk: cannot read …"),
        ("__result__ = find_order", "TypeError", "__result__ is not plain data"),
        ("while True:\n    pass\n__result__ = 1", "LimitExceededError", "time_s"),
        ("__result__ = 'x' * 70_000", "LimitExceededError", "output_bytes"),
    ],
)
def test_what_goes_wrong_is_answered(code: str, kind: str, said: str, runtime: Runtime) -> None:
    """Whatever goes wrong in the code or a tool is an answer that the model can act on, and nothing is raised."""
    result = runtime.run(reply(code))
    answer = answered(result)
    assert result.error is not None
    assert ("error", kind, result.error.message) == (answer["status"], answer["error"]["kind"], answer["error"]["message"])
    assert said in result.error.message
    for hidden in ("/var/lib", "0x7f", "Traceback", "monty", "_memci"):
        assert hidden not in result.to_toml()


def test_errors_have_line_and_hint(runtime: Runtime) -> None:
    """The answer names the line of the code, and what to do where that can be said."""
    error = answered(runtime.run(reply("x = 1\n__result__ = find_orders(x)")))["error"]
    assert (2, "the tools are find_order, lose_page, break_down") == (error["line"], error["hint"])


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ('float("nan")', "math.isfinite"),
        ('{"a": [-1e999]}', "math.isfinite"),
        ('find_order(float("inf"))', "math.isfinite"),
        ("10**5000", "math.log10"),
        ("str(10**5000)", "math.log10"),
        ("find_order(10**5000)", "math.log10"),
        ("(rows := [], rows.append(rows))[0]", "holds itself"),
        ("[" * 80 + "]" * 80, "flatter"),
    ],
)
def test_values_that_cannot_be_sent_have_a_hint(value: str, hint: str, runtime: Runtime) -> None:
    """A value that has no form outside of the sandbox is answered with what to give instead, and with nothing to set."""
    error = runtime.run(f"[tool_call]\ncode = '''\n__result__ = {value}\n'''\n").error
    assert error is not None
    assert "ValueError" == error.kind
    assert hint in error.hint
    assert "set_int" not in error.message


def test_limits_are_named(runtime: Runtime) -> None:
    """The result tells a passed limit by its name."""
    error = runtime.run(reply("for i in range(65):\n    find_order(str(i))\n__result__ = 1")).error
    assert error is not None
    assert ("LimitExceededError", "calls") == (error.kind, error.limit)


def test_a_broken_reply_is_answered(runtime: Runtime) -> None:
    """A reply that cannot be read is answered with the place and a hint; one that is too large with its limit."""
    error = answered(runtime.run('[tool_call]\nstatus = "success"\ncode = 17\n'))["error"]
    assert ("AttpSyntaxError", 3) == (error["kind"], error["line"])
    assert error["hint"]
    assert "reply_bytes" == (runtime.run(reply("#" * 70_000)).error or pytest.fail("there is no error")).limit


def test_code_in_a_fence_runs(runtime: Runtime) -> None:
    """Code that a model fenced and indented runs all the same."""
    assert runtime.run(reply("```python\n    __result__ = 1\n```")).value == 1


def test_a_retry_gets_the_stored_answer(runtime: Runtime) -> None:
    """The same reply under the same id runs once; its retries get the same result."""
    text = reply('__result__ = find_order("A-17")')
    first = runtime.run(text, "call-1")
    assert first is runtime.run(text, "call-1")
    assert ["A-17"] == CALLED


def test_calls_without_an_id_run_each_time(runtime: Runtime) -> None:
    """Without an id, the same reply runs again."""
    text = reply('__result__ = find_order("A-17")')
    assert runtime.run(text).value == runtime.run(text).value
    assert ["A-17", "A-17"] == CALLED


def test_an_id_runs_one_reply_only(runtime: Runtime) -> None:
    """Another reply under the id of a call is not run, and not answered with what is not its own."""
    runtime.run(reply('__result__ = find_order("A-17")'), "call-1")
    other = runtime.run(reply('__result__ = find_order("B-1")'), "call-1")
    assert "CallIdReusedError" == answered(other)["error"]["kind"]
    assert ["A-17"] == CALLED


def test_errors_are_stored_as_well(runtime: Runtime) -> None:
    """A call that failed is not tried again under its id."""
    text = reply('find_order("A-17")\n__result__ = 1 / 0')
    assert runtime.run(text, "call-1") is runtime.run(text, "call-1")
    assert ["A-17"] == CALLED


def test_answers_are_kept_for_the_last_calls(runtime: Runtime) -> None:
    """The store of answers is bounded: the oldest are forgotten."""
    texts = [f"answer {number}" for number in range(KEPT_ANSWERS + 1)]
    results = [runtime.run(text, text) for text in texts]
    assert results[1] is runtime.run(texts[1], texts[1])
    assert results[0] is not runtime.run(texts[0], texts[0])


def test_a_retry_waits_for_a_call_that_runs() -> None:
    """A retry that comes while its call runs gets the same answer, and the tool runs once."""
    inside, leave = threading.Event(), threading.Event()
    calls: list[str] = []

    def hold(name: str) -> str:
        """Hold on."""
        calls.append(name)
        inside.set()
        leave.wait(10)
        return name

    text = reply('__result__ = hold("a")')
    results: list[Result] = []
    with Runtime(box(hold)) as runtime:
        threads = [threading.Thread(target=lambda: results.append(runtime.run(text, "call-1"))) for _ in range(3)]
        for thread in threads:
            thread.start()
        inside.wait(10)
        leave.set()
        for thread in threads:
            thread.join()
    assert (["a"], ["a"] * 3) == (calls, [result.value for result in results])


def test_a_call_that_was_interrupted_is_forgotten() -> None:
    """An interrupt in a tool is raised to the backend; the call runs anew under its id."""
    raised: list[int] = []

    def once(name: str) -> str:
        """Interrupt the first time."""
        if not raised:
            raised.append(1)
            raise KeyboardInterrupt
        return name

    text = reply('__result__ = once("a")')
    with Runtime(box(once)) as runtime:
        with pytest.raises(KeyboardInterrupt):
            runtime.run(text, "call-1")
        assert "a" == runtime.run(text, "call-1").value


def test_every_step_is_observable(runtime: Runtime) -> None:
    """Observers hear of each step in order, with the call's id and what happened."""
    heard: list[Event] = []
    runtime.observe(heard.append)
    text = reply('find_order("A-17")\n__result__ = lose_page(index="usr-3")')
    result = runtime.run(text, "call-1")
    runtime.run(text, "call-1")
    match heard:
        case [
            ReplyParsed(reply=parsed),
            CodeStarted(target="orders", code=code),
            ToolCalled(tool="find_order", positional=("A-17",), named={}, error=None),
            ToolCalled(tool="lose_page", positional=(), named={"index": "usr-3"}, error=PageEvictedError()),
            CallFinished(result=finished),
            AnswerRepeated(result=repeated),
        ]:
            assert (result.reply, result, result) == (parsed, finished, repeated)
            assert code in text
        case _:
            pytest.fail(f"heard {heard}")
    assert {"call-1"} == {event.call_id for event in heard}


def test_a_reply_that_cannot_be_read_is_finished_at_once(runtime: Runtime) -> None:
    """Of a broken reply, observers hear that it is finished, with its error."""
    heard: list[Event] = []
    runtime.observe(heard.append)
    result = runtime.run("[tool_call]\nstatus =")
    assert [result] == [event.result for event in heard if isinstance(event, CallFinished)]
    assert len(heard) == 1


def test_an_observer_that_fails_is_logged(runtime: Runtime, caplog: pytest.LogCaptureFixture) -> None:
    """An observer that raises stops neither the call nor the other observers, and the log names the event."""
    heard: list[Event] = []

    def fail(event: Event) -> None:
        raise ValueError(type(event).__name__)

    runtime.observe(fail)
    runtime.observe(heard.append)
    assert runtime.run(reply("__result__ = 1")).value == 1
    assert len(heard) == 3
    assert "an observer failed on ReplyParsed" in caplog.text


def test_async_tools_run_in_the_loop_of_the_caller() -> None:
    """``arun`` runs async tools where it is awaited, and plain ones in a thread."""
    loops: list[object] = []
    threads: list[int] = []

    async def where(name: str) -> str:
        """Tell where it runs."""
        loops.append(asyncio.get_running_loop())
        return name

    def plain(name: str) -> str:
        """Tell in which thread it runs."""
        threads.append(threading.get_ident())
        return name

    async def main() -> list[object]:
        with Runtime(box(where, plain)) as runtime:
            runs = (runtime.arun(reply('__result__ = where("a") + plain("b")')) for _ in range(3))
            results = await asyncio.gather(*runs)
        assert [asyncio.get_running_loop()] * 3 == loops
        assert threading.get_ident() not in threads
        return [result.value for result in results]

    assert ["ab"] * 3 == asyncio.run(main())


def test_async_tools_run_without_a_loop() -> None:
    """``run`` gives an async tool a loop of its own."""
    with Runtime(box(ask_courier)) as runtime:
        assert "A-17 is on its way" == runtime.run(reply('__result__ = ask_courier("A-17")')).value


def test_run_refuses_to_block_a_loop() -> None:
    """``run`` in a thread that runs an event loop says to await ``arun``, as an async tool would wait for ever."""

    async def main() -> None:
        with Runtime(box(ask_courier)) as runtime, pytest.raises(RuntimeError, match="await arun"):
            runtime.run(reply("__result__ = 1"))

    asyncio.run(main())


@pytest.mark.parametrize("in_loop", [False, True])
def test_an_async_tool_that_hangs_is_cancelled(in_loop: bool) -> None:  # noqa: FBT001 (a parameter of the test)
    """An async tool that does not answer within the time of tools is cancelled, and the limit is named."""
    text = reply('__result__ = wait_for_ever("A-17")')
    with Runtime(box(wait_for_ever), Limits(tools_s=0.1)) as runtime:
        result = asyncio.run(runtime.arun(text)) if in_loop else runtime.run(text)
    assert result.error is not None
    assert "tools_s" == result.error.limit


def test_a_cancelled_call_is_not_lost() -> None:
    """A caller that stops waiting finds the answer of the call under its id; it ran once."""
    inside, leave = threading.Event(), threading.Event()
    calls: list[str] = []

    def hold(name: str) -> str:
        """Hold on."""
        calls.append(name)
        inside.set()
        leave.wait(10)
        return name

    async def main() -> object:
        text = reply('__result__ = hold("a")')
        with Runtime(box(hold)) as runtime:
            waiting = asyncio.create_task(runtime.arun(text, "call-1"))
            await asyncio.to_thread(inside.wait, 10)
            waiting.cancel()
            leave.set()
            result = await runtime.arun(text, "call-1")
            return result.value

    assert "a" == asyncio.run(main())
    assert ["a"] == calls
