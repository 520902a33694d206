"""Requests made of the API's own description, right and wrong, and what every answer to them has to be."""

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import attrs
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.core.transport import Response
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi import checks

from tests.http.serving import user

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]

KNOWN = {
    "session_id": st.sampled_from(["chat", "other"]),
    "index": st.sampled_from(["usr-1", "usr-2", "1", "usr-0", "sys-0", "usr-1..2", "slots"]),
    "checkpoint_id": st.sampled_from(["cp-1", "cp-2"]),
}
"""What is there, beside what the description lets one guess."""

MESSAGES: st.SearchStrategy[Any] = st.lists(st.text().map(user), min_size=1, max_size=3)

AnyCase: TypeAlias = Case[Any]
AnyOperation: TypeAlias = APIOperation[Any, Any, Any, Any]
Send = Callable[[AnyCase], Response]


@attrs.define
class Tally:
    """What came of an attack: answers by status, and for each operation that failed a check, how."""

    answers: dict[int, int] = attrs.field(factory=dict)
    failures: list[str] = attrs.field(factory=list)


def operations(description: dict[str, Any]) -> Iterator[AnyOperation]:
    """Yield what can be asked, but for the stream, which does not end."""
    for found in schemathesis.openapi.from_dict(description).get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        if not operation.path.endswith("/notices"):
            yield operation


@st.composite
def aimed(draw: st.DrawFn, operation: AnyOperation, mode: GenerationMode) -> AnyCase:
    """Return a request that mostly names what is there, and brings messages that can be ones."""
    case: AnyCase = draw(operation.as_strategy(generation_mode=mode))
    for name, strategy in KNOWN.items():
        if name in (case.path_parameters or {}) and draw(st.integers(0, 3)):
            case.path_parameters[name] = draw(strategy)
    if isinstance(case.body, dict) and "messages" in case.body and draw(st.booleans()):
        case.body = {"messages": draw(MESSAGES)}
    return case


def attack(operation: AnyOperation, send: Send, tally: Tally, examples: int, number: int = 0) -> None:
    """Ask for an operation so many times rightly, and as many times wrongly where it can be, and check each answer."""
    for mode in GenerationMode:

        @seed(number)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )
        @given(case=aimed(operation, mode))
        def ask(case: AnyCase) -> None:
            answer = send(case)
            tally.answers[answer.status_code] = tally.answers.get(answer.status_code, 0) + 1
            case.validate_response(answer, checks=CHECKS)

        try:
            ask()
        except Unsatisfiable:  # all that can be given to it is right
            assert mode is GenerationMode.NEGATIVE, operation.label
        except FailureGroup as group:
            tally.failures += [f"{operation.label}: {json.dumps(str(error))[:1_000]}" for error in group.exceptions]
