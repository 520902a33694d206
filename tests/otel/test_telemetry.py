"""Spans and metrics: what is told of calls, that they nest, and that nothing anybody said is in them."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import memci
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import PageNotFoundError
from memci.otel import instrument, uninstrument
from tests.engine.sessions import config_of, talk
from tests.engine.wire import user

CANARY = "zebrafinch"


@pytest.fixture
def tracing() -> Iterator[tuple[TracerProvider, InMemorySpanExporter]]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider, exporter
    uninstrument()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_calls_have_spans(tracing: tuple[TracerProvider, InMemorySpanExporter]) -> None:
    """Append, window, fold, recall and search have a span each, with the session, numbers, and the names of the conventions."""
    provider, exporter = tracing
    engine = Engine("memory:", config_of())
    instrument(engine, tracer_provider=provider)
    session = engine.session("chat", tenant="acme")
    talk(session, 4)
    session.fold(["usr-1"])
    session.window()
    session.recall("usr-1")
    session.search("ask1x3")
    engine.search("ask1x3", tenant="acme")
    spans = exporter.get_finished_spans()
    assert ["memci.append"] * 4 + ["memci.fold", "memci.window", "memci.recall"] == [span.name for span in spans[:7]]
    assert {"memci.search"} == {span.name for span in spans[7:]}
    folded, window, recalled = spans[4:7]
    assert {"gen_ai.conversation.id": "chat", "memci.tenant": "acme"}.items() <= attributes(folded).items()
    assert 1 == attributes(folded)["memci.fold.pages"]
    assert attributes(window)["gen_ai.conversation.compacted"]
    assert 0 < attributes(window)["memci.window.tokens"] <= attributes(window)["memci.window.budget"]
    assert "usr-1" == attributes(recalled)["gen_ai.memory.record.id"]
    assert "search_memory" == attributes(spans[7])["gen_ai.operation.name"]


def test_a_list_of_the_hosts_is_an_append(tracing: tuple[TracerProvider, InMemorySpanExporter]) -> None:
    """What comes in by a list has the span of an append, with how many messages are new."""
    provider, exporter = tracing
    instrument(tracer_provider=provider)
    with Engine("memory:") as engine, engine.session("chat") as session:
        session.sync([user("Hello.")])
        session.sync([user("Hello."), {"role": "assistant", "content": "Yes."}, user("And now?")])
    spans = exporter.get_finished_spans()
    assert [("memci.append", 1), ("memci.append", 2)] == [
        (span.name, attributes(span)["gen_ai.memory.record.count"]) for span in spans
    ]


def test_spans_nest_in_the_callers(tracing: tuple[TracerProvider, InMemorySpanExporter]) -> None:
    """The span that is current where the call is made is the parent, also of awaited calls."""
    provider, exporter = tracing
    instrument(tracer_provider=provider)
    tracer = provider.get_tracer("host")

    async def main() -> None:
        async with memci.AsyncEngine("memory:") as engine, engine.session("chat") as session:
            with tracer.start_as_current_span("request"):
                await session.append(user("Hello."))
                await session.window()

    asyncio.run(main())
    with tracer.start_as_current_span("request"), Engine("memory:") as engine:
        engine.session("chat").append(user("Hello."))
    spans = exporter.get_finished_spans()
    requests = {span.context.span_id for span in spans if span.name == "request" and span.context}
    inner = [span for span in spans if span.name != "request"]
    assert ["memci.append", "memci.window", "memci.append"] == [span.name for span in inner]
    assert all(span.parent is not None and span.parent.span_id in requests for span in inner)


def test_errors_are_told_by_their_kind(tracing: tuple[TracerProvider, InMemorySpanExporter]) -> None:
    """A call that fails has the error's class, and none of its text; the error goes on."""
    provider, exporter = tracing
    instrument(tracer_provider=provider)
    session = Engine("memory:").session("chat")
    session.append(user(CANARY))
    with pytest.raises(PageNotFoundError):
        session.recall("usr-9")
    span = exporter.get_finished_spans()[-1]
    assert ("PageNotFoundError", False, 0) == (span.status.description, span.status.is_ok, len(span.events))


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic"])
def test_a_tool_is_named(tracing: tuple[TracerProvider, InMemorySpanExporter], wire: str) -> None:
    """A call of a tool says which, where there is one of that name, and that it answered an error; no more of what was given."""
    provider, exporter = tracing
    with Engine("memory:", config_of(format=wire)) as engine, engine.session("chat") as session:
        instrument(engine, tracer_provider=provider)
        for name, given in (("list_pages", {}), ("read_page", {"index": "usr-99"}), ("marmalade", {})):
            calls: dict[str, dict[str, Any]] = {
                "openai": {"id": "1", "function": {"name": name, "arguments": json.dumps(given)}},
                "responses": {"call_id": "1", "type": "function_call", "name": name, "arguments": json.dumps(given)},
                "anthropic": {"id": "1", "type": "tool_use", "name": name, "input": given},
            }
            session.handle_tool_call(calls[wire])
    told = [(attributes(span).get("gen_ai.tool.name"), span.status.description) for span in exporter.get_finished_spans()]
    assert [("list_pages", None), ("read_page", "PageNotFoundError"), (None, "ToolNotFoundError")] == told


def test_a_streamed_answer_is_an_append(tracing: tuple[TracerProvider, InMemorySpanExporter]) -> None:
    """What a stream stores as it ends has the span of an append."""
    provider, exporter = tracing
    with Engine("memory:", config_of()) as engine, engine.session("chat") as session:
        instrument(engine, tracer_provider=provider)
        session.append(user("When?"))
        with session.stream() as stream:
            stream.add({"choices": [{"index": 0, "delta": {"content": "Soon."}, "finish_reason": "stop"}]})
    assert ["memci.append"] * 2 == [span.name for span in exporter.get_finished_spans()]


def test_nothing_that_was_said_is_told(tracing: tuple[TracerProvider, InMemorySpanExporter]) -> None:
    """No span and no metric holds a word of a message, a query, a note or a title."""
    provider, exporter = tracing
    reader = InMemoryMetricReader()
    engine = Engine("memory:", config_of(budget={"window": 600, "reserve": 0}))
    instrument(engine, tracer_provider=provider, meter_provider=MeterProvider([reader]))
    session = engine.session("chat")
    for _ in range(30):
        session.append(user(f"{CANARY} " * 20))
        session.append({"role": "assistant", "content": CANARY})
        session.window()
    session.search(CANARY)
    session.create_detail_page(CANARY, CANARY, CANARY)
    session.close_topic(CANARY)
    told = "".join(span.to_json() for span in exporter.get_finished_spans())
    metrics = reader.get_metrics_data()
    assert metrics is not None
    assert CANARY not in told + metrics.to_json()
    assert "memci.fold" in told


def test_metrics_of_an_engine() -> None:
    """Seconds and sizes of windows, and how often pages folded, are counted."""
    reader = InMemoryMetricReader()
    engine = Engine("memory:", config_of(budget={"window": 600, "reserve": 0}))
    instrument(engine, meter_provider=MeterProvider([reader]))
    uninstrument()
    session = engine.session("chat")
    talk(session, 30)
    session.window()
    data: Any = reader.get_metrics_data()
    found = {metric.name: metric.data.data_points for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    assert 1 == found["memci.window.tokens"][0].count
    durations = found["memci.operation.duration"]
    assert {"append": 30, "window": 1} == {point.attributes["memci.operation"]: point.count for point in durations}
    assert found["memci.notices"][0].value > 0


def test_it_can_be_switched_off(tracing: tuple[TracerProvider, InMemorySpanExporter]) -> None:
    """After uninstrument the calls are those of before, however often it was switched on."""
    provider, exporter = tracing
    former = Session.window
    instrument(tracer_provider=provider)
    instrument(tracer_provider=provider)
    uninstrument()
    assert former is Session.window
    Engine("memory:").session("chat").append(user("Hello."))
    assert () == exporter.get_finished_spans()
