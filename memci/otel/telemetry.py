"""OpenTelemetry: a span for each thing that a session does, and metrics of an engine. Needs the extra ``otel``.

Names follow the GenAI conventions of OpenTelemetry where these have any (``gen_ai.conversation.id``,
``gen_ai.conversation.compacted``, ``gen_ai.operation.name``, ``gen_ai.memory.record.id``, ``gen_ai.memory.record.count``;
repository open-telemetry/semantic-conventions-genai, in development); all others begin with ``memci``. Nothing that anybody said
is in a span or a metric.
"""

import functools
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider

from memci.engine.commands.window import Window
from memci.engine.core.monitor import (
    Appended,
    CacheMiss,
    Conflict,
    EngineNotice,
    Eviction,
    Fade,
    Fold,
    FoldFailed,
    Recall,
    SummaryFailed,
    WindowMade,
)
from memci.engine.engine import Engine
from memci.engine.hosting.syncing import Synced
from memci.engine.reading.caching import CacheReport
from memci.engine.session import Session
from memci.messages.codec import dumped
from memci.version import VERSION

CONVERSATION, COMPACTED, OPERATION = "gen_ai.conversation.id", "gen_ai.conversation.compacted", "gen_ai.operation.name"
RECORD, RECORDS = "gen_ai.memory.record.id", "gen_ai.memory.record.count"
TENANT, TOOL = "memci.tenant", "gen_ai.tool.name"

_SCOPE = "memci"
_SEARCHING, _READING = {OPERATION: "search_memory"}, {OPERATION: "read_memory"}
_SPANS: Final[Mapping[tuple[type, str], tuple[str, Mapping[str, str]]]] = {
    (Session, "extend"): ("memci.append", {}),
    (Session, "sync"): ("memci.append", {}),
    (Session, "window"): ("memci.window", {}),
    (Session, "fold"): ("memci.fold", {}),
    (Session, "close_topic"): ("memci.fold", {}),
    (Session, "recall"): ("memci.recall", _READING),
    (Session, "search"): ("memci.search", _SEARCHING),
    (Session, "summarize"): ("memci.prepare", {}),
    (Session, "handle_tool_call"): ("memci.tool", {}),
    (Engine, "search"): ("memci.search", _SEARCHING),
}
_COUNTED: Final[tuple[type, ...]] = (Fold, FoldFailed, Recall, Eviction, Fade, Conflict, CacheMiss, SummaryFailed)

_lock = threading.Lock()  # protects which calls are traced
_former: dict[tuple[type, str], Callable[..., Any]] = {}


def instrument(
    *engines: Engine, tracer_provider: TracerProvider | None = None, meter_provider: metrics.MeterProvider | None = None
) -> None:
    """Trace the calls of all sessions of this process, and count what happens in these *engines*.

    Spans are children of the one that is current where the call is made, also with asyncio. An ``AsyncEngine`` is given by its
    own engine: ``instrument(async_engine)``. May be called again, for other engines; the first call's providers trace.
    """
    tracer = trace.get_tracer(_SCOPE, VERSION, tracer_provider)
    with _lock:
        for (owner, name), (span, attributes) in _SPANS.items():
            if (owner, name) not in _former:
                _former[owner, name] = getattr(owner, name)
                setattr(owner, name, _traced(_former[owner, name], tracer, span, attributes))
    meter = metrics.get_meter(_SCOPE, VERSION, meter_provider)
    for engine in engines:
        observer = _Counting(meter)
        getattr(engine, "_twin", engine).observe(observer)


def uninstrument() -> None:
    """Trace no calls any more; what counts goes on with its engine."""
    with _lock:
        for (owner, name), call in _former.items():
            setattr(owner, name, call)
        _former.clear()


def _traced(call: Callable[..., Any], tracer: trace.Tracer, name: str, attributes: Mapping[str, str]) -> Callable[..., Any]:
    @functools.wraps(call)
    def traced(self: Session | Engine, /, *positional: Any, **named: Any) -> Any:  # noqa: ANN401 (those of the call)
        given: dict[str, Any] = dict(attributes)
        if isinstance(self, Session):
            given |= {CONVERSATION: self.id, TENANT: self._core.key.tenant}
        with tracer.start_as_current_span(
            name, kind=SpanKind.INTERNAL, attributes=given, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                answer = call(self, *positional, **named)
            except BaseException as error:  # its text may quote what somebody said
                span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                span.set_attribute("error.type", type(error).__name__)
                raise
            if isinstance(self, Session) and isinstance(answer, dict):
                _tell_tool(span, self, positional, answer)
            for key, value in _told(answer).items():
                span.set_attribute(key, value)
            return answer

    return traced


def _tell_tool(span: trace.Span, session: Session, given: Sequence[object], answer: Mapping[str, Any]) -> None:
    """Say which tool was called, where there is one of that name, and whether it answered an error."""
    call: Any = dumped(given[0]) if given else None
    name = call.get("name", (call.get("function") or {}).get("name")) if isinstance(call, Mapping) else None
    if name in session.toolbox.known:
        span.set_attribute(TOOL, str(name))
    text = answer.get("output", answer.get("content"))
    text = text[0].get("content") if isinstance(text, list) else text
    failed = re.match(r'\{"error":\{"kind":"(\w+)"', text) if isinstance(text, str) else None
    if failed is not None:
        span.set_status(Status(StatusCode.ERROR, failed[1]))
        span.set_attribute("error.type", failed[1])


def _told(answer: object) -> dict[str, Any]:
    """Return what a span says of what a call returned: numbers and indexes."""
    match answer:
        case Window():
            return {
                "memci.window.tokens": answer.tokens,
                "memci.window.budget": answer.budget,
                "memci.window.zone": str(answer.zone),
                "memci.window.messages": len(answer.messages),
                COMPACTED: bool(answer.breakdown["contents"]),
            }
        case Fold():
            return {
                "memci.fold.pages": len(answer.pages),
                "memci.fold.tokens_before": answer.tokens_before,
                "memci.fold.tokens_after": answer.tokens_after,
                "memci.fold.reason": answer.reason,
            }
        case Synced():
            return {RECORDS: len(answer.appended)}
        case list():
            return {RECORDS: len(answer)}
    index = getattr(answer, "index", None)
    return {RECORD: index} if isinstance(index, str) else {}


class _Counting:
    """Counts what observers of an engine hear."""

    def __init__(self, meter: metrics.Meter) -> None:
        self._seconds = meter.create_histogram("memci.operation.duration", unit="s", description="Appends and windows")
        self._tokens = meter.create_histogram("memci.window.tokens", unit="{token}", description="Sizes of windows")
        self._full = meter.create_histogram("memci.window.share", unit="1", description="Share of the budget that a window takes")
        self._happened = meter.create_counter("memci.notices", description="Folds, recalls, conflicts, …, by name")
        self._missed = meter.create_counter(
            "memci.cache.missed", unit="{token}", description="Tokens that a cache could have had"
        )

    def __call__(self, notice: EngineNotice) -> None:
        if isinstance(notice, Appended | WindowMade):
            operation = "append" if isinstance(notice, Appended) else "window"
            self._seconds.record(notice.seconds, {"memci.operation": operation})
        if isinstance(notice, WindowMade):
            self._tokens.record(notice.tokens)
            self._full.record(notice.tokens / notice.budget)
        if isinstance(notice, _COUNTED):
            self._happened.add(1, {"memci.notice": type(notice).__name__})
        if isinstance(notice, CacheMiss) and isinstance(notice.report, CacheReport):
            self._missed.add(notice.report.expected_tokens - notice.report.cached_tokens)
