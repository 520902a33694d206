"""What holds for every document: what is written is read, nothing breaks out of its string, and no text costs much to parse."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.attp.document import CodeCall, Reply, parse
from memci.attp.runtime import Problem, Result
from memci.errors import AttpError
from tests.attp import fuzz_document
from tests.attp.replies import HOSTILE, call_toml

_QUOTES = st.sampled_from(
    ["'''", '"""', "\n", "\r\n", "\r", "\\", "[tool_call]\n", "```\n", "\x00", "\x7f", "\u2028", "= ", "# "]
)
texts = st.text(max_size=20) | st.lists(_QUOTES | st.text(max_size=3), max_size=8).map("".join)
said = texts.filter(str.strip)

calls = st.builds(
    lambda target, code, message: CodeCall(status="success", target=target, code=code, message=message), texts, said, texts
)
failures = st.builds(lambda target, message: CodeCall(status="fail", target=target, message=message), texts, said)

numbers = st.integers() | st.floats(allow_nan=False)
values: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
halves = st.text(st.characters(exclude_categories=()), max_size=10)


@pytest.fixture(scope="module")
def ordinary_cost() -> dict[int, float]:
    """CPU seconds of an ordinary reply, by size."""
    return fuzz_document.ordinary_costs()


@given(calls | failures, texts)
def test_what_is_written_is_read(call: CodeCall, thought: str) -> None:
    """Any text in any field comes back as it was."""
    assert Reply(thought=thought, call=call) == parse(call_toml(call, thought=thought))


@given(calls | failures, texts)
def test_what_is_written_is_read_out_of_a_fence(call: CodeCall, thought: str) -> None:
    """A fence and prose around a document change none of its texts."""
    text = f"Here it is.\n\n```toml\n{call_toml(call, thought=thought)}```\nOne moment."
    assert Reply(thought=thought, call=call) == parse(text)


@given(values)
def test_result_is_read_by_any_toml_reader(value: Any) -> None:  # noqa: ANN401 (JSON data)
    """A result is one table with a status and the value, whatever the value holds."""
    assert {"tool_result": {"status": "success", "result": value}} == tomllib.loads(Result(value=value).to_toml())


@given(texts, texts, st.integers(1, 10**6), said)
def test_error_is_read_by_any_toml_reader(kind: str, message: str, line: int, hint: str) -> None:
    """An error's texts stay inside of their strings."""
    error = {"kind": kind, "message": message, "line": line, "hint": hint}
    written = Result(error=Problem(kind=kind, message=message, line=line, hint=hint)).to_toml()
    assert {"tool_result": {"status": "error", "error": error}} == tomllib.loads(written)


@given(halves)
def test_half_of_a_pair_is_escaped(text: str) -> None:
    """UTF-8 has no form for half of a surrogate pair: it is written as the six characters of its escape."""
    readable = "".join(f"\\u{ord(char):04x}" if "\ud800" <= char <= "\udfff" else char for char in text)
    written = Result(value={text: text}).to_toml()
    assert {readable: readable} == tomllib.loads(written)["tool_result"]["result"]
    assert written.encode()


def test_what_toml_cannot_say_is_left_out_or_described() -> None:
    """``None`` is left out of tables and named in lists; an endless number is described."""
    assert {"status": "success"} == tomllib.loads(Result(value=None).to_toml())["tool_result"]
    assert {"a": 1} == tomllib.loads(Result(value={"a": 1, "b": None}).to_toml())["tool_result"]["result"]
    assert [1, "None"] == tomllib.loads(Result(value=[1, None]).to_toml())["tool_result"]["result"]
    assert "an integer of 20001 bits" == tomllib.loads(Result(value=1 << 20_000).to_toml())["tool_result"]["result"]
    without = Result(error=Problem(kind="X", message="m")).to_toml()
    assert {"kind": "X", "message": "m"} == tomllib.loads(without)["tool_result"]["error"]


@given(halves | st.lists(st.sampled_from(["thought = ", "[tool_call]", "code = ", '"', "'''", "\n", "x", "\\"])).map("".join))
def test_any_text_is_a_reply_or_an_error(text: str) -> None:
    """No text makes the parser raise anything but an ``AttpError``."""
    try:
        read = parse(text)
    except AttpError as error:
        said_why = str(error)
    else:
        said_why = f"read: {read}"
    assert said_why


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_costs_little(name: str, ordinary_cost: dict[int, float]) -> None:
    """A text that is made to cost much costs at most 20 times the CPU time of an ordinary reply of its size."""
    assert fuzz_document.MAX_RATIO >= fuzz_document.ratio(HOSTILE[name], ordinary_cost, 7)


def test_mutated_replies_are_read_or_refused() -> None:
    """A short run of the fuzzer finds no other exception; what it costs is measured by the long one."""
    found = fuzz_document.fuzz(1_500, seed=7)
    assert (1_500, []) == (found.cases, found.broken)
    assert {"call", "answer", "AttpSyntaxError"} <= set(found.outcomes)
