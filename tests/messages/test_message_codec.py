"""JSON values on their way through bytes."""

import json
import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.errors import InvalidMessageError
from memci.messages import codec
from tests.messages.strategies import values


def same(left: object, right: object) -> bool:
    """Return whether two JSON values are equal, types and the order of keys included."""
    return repr(left) == repr(right)


@given(values)
def test_values_survive(value: object) -> None:
    """What is written reads back equal: integers of any size, lone surrogates, floats, key order."""
    assert same(value, codec.decode(codec.encode(value)))


@given(values)
def test_what_is_written_is_plain_json(value: object) -> None:
    """Any JSON reader reads the bytes, which hold neither a line break nor a NUL."""
    data = codec.encode(value)
    assert same(value, json.loads(data))
    assert not {0, 10, 13} & set(data)


@given(values, st.integers(0, 3))
def test_json_of_other_writers_is_read(value: object, indent: int) -> None:
    """What the standard library writes, escaped or not, indented or not, reads as the same value."""
    for ascii_only in (True, False):
        data = json.dumps(value, ensure_ascii=ascii_only, indent=indent or None).encode("utf-8", "surrogatepass")
        if b"\xed" not in data:  # a surrogate as bytes is no UTF-8, and only escapes can carry it
            assert same(value, codec.decode_foreign(data))


@given(values)
def test_a_checked_copy_shares_nothing(value: object) -> None:
    """The copy is equal, and no container of it is one of the original."""
    copy = codec.checked_copy(value)
    assert same(value, copy)
    assert not containers(value) & containers(copy)


def containers(value: object) -> set[int]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = {id(value)} if isinstance(value, dict | list) else set()
    return own.union(*map(containers, inner))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_without_a_form_are_refused(number: float) -> None:
    """NaN and the infinities are refused, and the error names their place."""
    with pytest.raises(InvalidMessageError, match="no form in JSON") as caught:
        codec.checked_copy({"a": [1.0, number]})
    assert "a[1]" == caught.value.path


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64, 10**400])
def test_large_integers_survive(number: int) -> None:
    """Integers beyond 64 bits come back as the same integers."""
    assert number == codec.decode(codec.encode({"n": number}))["n"]


def test_endless_integers_are_refused() -> None:
    """An integer of more digits than Python writes is refused as a value, not as a crash."""
    with pytest.raises(ValueError, match="4300"):
        codec.encode(10**4_300)


@pytest.mark.parametrize("value", [{1, 2}, (1,), b"bytes", object(), 1j], ids=lambda value: type(value).__name__)
def test_what_is_not_json_is_refused(value: object) -> None:
    """A value of a type that JSON does not have is refused with its place."""
    with pytest.raises(InvalidMessageError, match="is not a JSON value") as caught:
        codec.checked_copy({"a": {"b": value}})
    assert "a.b" == caught.value.path


@pytest.mark.parametrize("key", [1, None, True, 1.5])
def test_keys_are_text(key: object) -> None:
    """A key that is not text is refused rather than turned into text."""
    with pytest.raises(InvalidMessageError, match="is not text"):
        codec.checked_copy({key: 1})


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["lists", "dicts"])
def test_depth_is_bounded(wrap: Any) -> None:  # noqa: ANN401 (a lambda)
    """As many levels as are allowed are copied and written; one more is refused."""
    value: object = "deep"
    for _ in range(codec.MAX_DEPTH):
        value = wrap(value)
    assert same(value, codec.decode(codec.encode(codec.checked_copy(value))))
    with pytest.raises(InvalidMessageError, match="nested deeper"):
        codec.checked_copy(wrap(value))


def test_a_value_that_holds_itself_is_refused() -> None:
    """A list within itself is refused for its depth."""
    value: list[object] = []
    value.append(value)
    with pytest.raises(InvalidMessageError, match="nested deeper"):
        codec.checked_copy(value)


@pytest.mark.parametrize("data", [b"", b"{", b"[1,]", b"nul", b'{"a":1}x', b'"\xff"', b"\xef\xbb\xbf"])
def test_other_bytes_are_refused(data: bytes) -> None:
    """Bytes that are no JSON raise ``ValueError``."""
    with pytest.raises(ValueError):  # noqa: PT011 (two parsers, two texts)
        codec.decode(data)


def test_what_is_kept_takes_little_room() -> None:
    """The bytes of a message take about as much memory as they are long, whatever buffer they were written in."""
    value = {"role": "user", "content": "x" * 80}
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [codec.encode(value) for _ in range(500)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 500 * 3 * len(kept[0])
