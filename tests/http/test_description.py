"""The description of the API is what it does: requests made of it, right and wrong, get the answers that it promises."""

import json
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from schemathesis.core.transport import Response

from tests.http.attacking import AnyCase, Tally, attack, operations
from tests.http.serving import say, serving, value

pytestmark = pytest.mark.slow

EXAMPLES = 12  # of each kind for each operation; make torture sends thousands


@pytest.fixture(scope="module")
def described() -> Iterator[TestClient]:
    with serving() as api:
        yield api


@pytest.mark.timeout(400)
def test_every_operation_answers_as_it_is_described(described: TestClient) -> None:
    """No answer is a failure of the server, and each has a status, a type and a shape that the description names."""
    tally, number = Tally(), 0

    def send(case: AnyCase) -> Response:
        return case.call(app=described.app, headers={"Host": "localhost"})

    for operation in operations(value(described.get("/openapi.json"))):
        say(described, "chat", "one", "two")
        say(described, "other", "one")
        attack(operation, send, tally, EXAMPLES)
        number += 1
    assert [] == tally.failures
    assert number >= 28
    assert {200, 201, 204, 404, 422} <= set(tally.answers)
    assert not [status for status in tally.answers if status >= 500]


def test_the_description_names_what_the_library_returns(described: TestClient) -> None:
    """Values of sessions are described by their fields, each operation has words and a name of its own."""
    text = described.get("/openapi.json").text
    description = json.loads(text)
    operations = [each for path in description["paths"].values() for each in path.values()]
    assert len(operations) == len({each["operationId"] for each in operations})
    assert all(each["description"] for each in operations)
    assert {"seq", "advised", "breakdown"} <= set(description["components"]["schemas"]["Status"]["properties"])
    assert "_raws" not in text
