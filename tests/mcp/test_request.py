"""Lines of input that are no request, and what is answered to whoever sent them."""

import json

import mcp_types as types
import pytest

from memci.mcp.server import refusal


def request(**keys: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping", **keys})


@pytest.mark.parametrize(
    "line",
    [
        request(),
        request(id="a"),
        request(params={"x": "\ufffd \U0001f600"}),
        '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        '{"jsonrpc": "2.0", "id": 1, "result": {}}',
        '{"jsonrpc": "2.0", "id": 1, "result": "\\ud800"}',
        '{"jsonrpc": "2.0", "id": 1, "error": 5}',
        '{"method": "notifications/progress"}',
        "\n",
    ],
)
def test_messages_are_left_to_the_sdk(line: str) -> None:
    """A message is not refused; nor are a blank line, a broken result and a broken notification, which nobody waits for."""
    assert refusal(line) is None


@pytest.mark.parametrize(
    ("line", "known"),
    [
        (request(params=[]), 7),
        (request(method=7), 7),
        (request(params={"x": "\ud800"}), 7),
        (request(id="a", params={"\udc00": 1}), "a"),
        (request(id="\ud800"), None),
        (request(id=1.5), None),
        (request(id=None), None),
        (request(id=True), None),
        (request(id=[1], method="\ud800"), None),
        ('{"id": 10}', 10),
        ('{"id": 10, "method": "ping"}', 10),
        ("{}", None),
        ("[]", None),
        (f"[{request()}]", None),
        ("5", None),
    ],
)
def test_what_is_no_request_is_invalid(line: str, known: int | str | None) -> None:
    """JSON that is no request is refused as one, with its id where it has one that can be sent."""
    error = refusal(line)
    assert error is not None
    assert (types.INVALID_REQUEST, known) == (error.error.code, error.id)
    assert ("surrogate" in error.error.message) == ("\\ud800" in line or "\\udc00" in line)


@pytest.mark.parametrize("line", ["hello", "{", '{"jsonrpc": "2.0", "id": 1', "[" * 100_000, "1" * 10_000])
def test_what_is_no_json_cannot_be_parsed(line: str) -> None:
    """A line that is no JSON, or none that can be read, is refused without an id."""
    error = refusal(line)
    assert error is not None
    assert (types.PARSE_ERROR, None) == (error.error.code, error.id)
