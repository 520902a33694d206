"""What stands in the place of pictures and files in what is stored, and that it becomes again what it was."""

import json
from base64 import b64encode, urlsafe_b64encode
from hashlib import sha256, shake_128
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.stores.blobs import named, put_back, taken_out
from memci.messages import codec

DATA = [shake_128(b"%d" % number).digest(900 + number) for number in range(3)]
RUNS = [encode(data).decode() for data in DATA for encode in (b64encode, urlsafe_b64encode)]
NAME = "0123456789abcdef" * 4

texts = st.one_of(
    st.text(max_size=30),
    st.text(st.sampled_from('\\/"unblobs0aA \n\x00\x1f=é😀\ud800'), max_size=30),
    st.sampled_from([rf"\/blobs\/{NAME}", f"/blobs/{NAME}", rf"\\/blobs\\/{NAME}", "x" * 2_000, "é" * 2_000]),
    st.sampled_from(RUNS),
)
mixed = st.lists(texts, max_size=5).map("".join)
values = st.recursive(
    st.one_of(mixed, st.integers(), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(mixed, inner, max_size=3)),
    max_leaves=8,
)


def again(value: Any) -> tuple[bytes, bytes]:  # noqa: ANN401 (a JSON value)
    """Return the bytes of a value, and what they are after both ways."""
    body = codec.encode(value)
    text, blobs = taken_out(body)
    assert set(blobs) == named(text)
    assert all(sha256(blob).hexdigest() == name for name, blob in blobs.items())
    json.loads(text)
    return body, put_back(text, blobs.__getitem__)


@given(values)
def test_any_value_comes_back(value: Any) -> None:  # noqa: ANN401 (a JSON value)
    """Byte for byte, whatever stands around the data, references that somebody wrote included; what is stored is JSON."""
    body, back = again(value)
    assert body == back


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("before", ["", "data:image/png;base64,", 'said "', "\n", "\\", "\\n", "\x01", "é", "\ud800", '{"a":"'])
def test_a_long_run_is_taken_out(run: str, before: str) -> None:
    """A picture leaves the record wherever it stands, within a text that is JSON itself too."""
    value = {"text": f"{before}{run} and on"}
    body, back = again(value)
    assert body == back
    text, blobs = taken_out(body)
    assert len(text) < 150
    assert all(blob.decode() in run for blob in blobs.values())


@pytest.mark.parametrize("text", ["Aa1" * 341, "x" * 5_000, "1234567890" * 500, "a b " * 5_000, "Aa1." * 5_000])
def test_other_texts_stay(text: str) -> None:
    """Words, numbers and short data are left in the record."""
    body = codec.encode({"text": text})
    assert (body, {}) == taken_out(body)


def test_the_same_data_has_one_name() -> None:
    """A picture in a URL, in a block of its own and in a text is one blob."""
    run = RUNS[0]
    value = [f"data:image/png;base64,{run}", {"source": {"data": run}}, json.dumps({"screenshot": run})]
    text, blobs = taken_out(codec.encode(value))
    assert {sha256(run.encode()).hexdigest(): run.encode()} == blobs
    assert 3 == text.count(b"blobs")
