"""The lines of journals and snapshots."""

import base64
import hashlib
import json
import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.stores.contract import NewRecord
from memci.archive.stores.record_codec import DamagedLineError, LineCodec, check_commit
from memci.errors import StoreError

CODEC = LineCodec("default", "chat 1")
BODY = b'{"text":"caf\xc3\xa9"}'

_json = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=10,
)
_kinds = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)
_records = st.builds(NewRecord, _kinds, st.integers(0, 2**31), _json.map(orjson.dumps))
_ids = st.text(min_size=1, max_size=20)


def line_of(codec: LineCodec = CODEC, seq: int = 17) -> bytes:
    return codec.encode_commit(seq - 1, [NewRecord("appended", 1, BODY)])


def decode(codec: LineCodec, line: bytes) -> tuple[int, bytes]:
    header = codec.decode_header(line)
    return header.seq, codec.decode_body(line, header)[0]


def short(text: bytes, size: int) -> str:
    return base64.b64encode(hashlib.sha256(text).digest()[:size]).decode().rstrip("=")


def test_a_record_is_one_line_as_documented() -> None:
    """A record is one line of JSON whose keys, hash and checksum are what the format says."""
    sha = short(BODY, 16)
    for number, place in ((1, ""), (2, '"left":1,"of":2,')):
        owner = [2, "default", "chat 1", 17, number - 1, number, "appended", 1, sha]
        checksum = short(json.dumps(owner, separators=(",", ":"), ensure_ascii=False).encode(), 8)
        expected = (
            f'{{"v":2,"seq":17,{place}"kind":"appended","kv":1,"sha":"{sha}","sum":"{checksum}","body":{{"text":"café"}}}}\n'
        )
        commit = CODEC.encode_commit(16, [NewRecord("appended", 1, BODY)] * number)
        assert expected.encode() == commit.splitlines(keepends=True)[0]
        assert {"text": "café"} == json.loads(line_of())["body"]


def former(codec: LineCodec = CODEC) -> bytes:
    """Return the same record as version 1 of the format wrote it."""
    sha = hashlib.sha256(BODY).hexdigest()
    owner = b'[1,%b,17,0,1,"appended",1,"%b"]' % (codec._owner, sha.encode())
    checksum = hashlib.sha256(owner).hexdigest()[:32]
    head = f'{{"v":1,"seq":17,"left":0,"of":1,"kind":"appended","kv":1,"sha":"{sha}","sum":"{checksum}","body":'
    return head.encode() + BODY + b"}\n"


def test_a_commit_counts_down() -> None:
    """Each record of a commit says how many follow and how many there are."""
    commit = CODEC.encode_commit(
        4, [NewRecord("appended", 1, b"1"), NewRecord("page_folded", 2, b"2"), NewRecord("faded", 3, b"3")]
    )
    headers = [CODEC.decode_header(line) for line in commit.splitlines(keepends=True)]
    assert [(5, 2, 3), (6, 1, 3), (7, 0, 3)] == [(header.seq, header.left, header.of) for header in headers]
    assert [("appended", 1), ("page_folded", 2), ("faded", 3)] == [(header.kind, header.version) for header in headers]


@pytest.mark.parametrize("whole", [line_of(), former()])
def test_a_body_can_be_replaced(whole: bytes) -> None:
    """A redacted line keeps header and checksum, holds nothing of the former body, and its new body is checked as well."""
    line = CODEC.redact(whole, b'{"text":"[erased]"}')
    header = CODEC.decode_header(line)
    assert whole[: header.body_start] == line[: header.body_start]
    assert (b'{"text":"[erased]"}', True) == CODEC.decode_body(line, header)
    assert BODY not in line
    assert {"text": "[erased]"} == json.loads(line)["body"]["event"]
    assert line == CODEC.redact(line, b'{"text":"[erased]"}')
    with pytest.raises(DamagedLineError):
        CODEC.decode_body(line.replace(b"[erased]", b"[forged]"), header)


@given(_ids, _ids, st.integers(1, 2**53), _records)
def test_any_record_comes_back(tenant: str, session_id: str, seq: int, record: NewRecord) -> None:
    """Decoding a line gives what was encoded, for any body, kind and owner."""
    codec = LineCodec(tenant, session_id)
    line = codec.encode_commit(seq - 1, [record])
    header = codec.decode_header(line)
    assert (seq, 0, 1, record.kind, record.version) == header[:5]
    assert (record.body, False) == codec.decode_body(line, header)
    assert 1 == line.count(b"\n")


@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_is_read(bit: int) -> None:
    """A line with any one bit flipped is damaged, never another record and never a newer version."""
    several = CODEC.encode_commit(3, [NewRecord("appended", 1, BODY)] * 2).splitlines(keepends=True)
    for line in (line_of(), former(), *several):
        for place in range(len(line)):
            flipped = bytearray(line)
            flipped[place] ^= 1 << bit
            with pytest.raises(DamagedLineError):
                decode(CODEC, bytes(flipped))


def test_lines_of_the_former_version_are_read() -> None:
    """A record of version 1 is the record that it was."""
    assert (17, BODY) == decode(CODEC, former())
    with pytest.raises(DamagedLineError):
        decode(CODEC, former(LineCodec("default", "chat 2")))


def test_no_part_of_a_line_is_read() -> None:
    """No beginning of a line is a record."""
    line = line_of()
    for size in range(len(line)):
        with pytest.raises(DamagedLineError):
            decode(CODEC, line[:size])


@pytest.mark.parametrize(
    "other",
    [
        LineCodec("default", "chat 2"),
        LineCodec("other", "chat 1"),
        LineCodec('default","chat 1', "x"),
        LineCodec("d", "efaultchat 1"),
    ],
)
def test_a_line_belongs_to_one_session(other: LineCodec) -> None:
    """A record or snapshot of another session or tenant fails its checksum."""
    with pytest.raises(DamagedLineError):
        decode(CODEC, line_of(other))
    with pytest.raises(DamagedLineError):
        CODEC.decode_snapshot(other.encode_snapshot(7, BODY), 7)


def test_a_newer_version_is_not_damage() -> None:
    """A line of a version that is not known yet asks for an upgrade, whatever else stands in it."""
    with_another_sum = re.sub(b'"sum":"[^"]*"', b'"sum":"%011d"' % 0, line_of())
    for line in (b'{"v":3,"new":"format"}\n', with_another_sum.replace(b'{"v":2,', b'{"v":12,')):
        with pytest.raises(StoreError, match="upgrade") as caught:
            CODEC.decode_header(line)
        assert StoreError is type(caught.value)


def test_the_body_can_be_replaced_under_the_header() -> None:
    """The checksum of a header holds whatever the body is; the body is checked by its own hash."""
    line = line_of().replace(BODY, b"null")
    header = CODEC.decode_header(line)
    assert 17 == header.seq
    with pytest.raises(DamagedLineError, match="SHA-256"):
        CODEC.decode_body(line, header)


@given(st.integers(0, 2**53), _json)
def test_any_snapshot_comes_back(seq: int, value: object) -> None:
    """Decoding a snapshot gives the body that was encoded, for its own place only."""
    body = orjson.dumps(value)
    line = CODEC.encode_snapshot(seq, body)
    assert value == json.loads(line)["body"]
    assert body == CODEC.decode_snapshot(line, seq)
    with pytest.raises(DamagedLineError):
        CODEC.decode_snapshot(line, seq + 1)


def test_no_damaged_snapshot_is_read() -> None:
    """A snapshot with any byte changed, or cut anywhere, is damaged."""
    line = CODEC.encode_snapshot(7, BODY)
    for place in range(len(line)):
        flipped = bytearray(line)
        flipped[place] ^= 1
        for damaged in (bytes(flipped), line[:place]):
            with pytest.raises(DamagedLineError):
                CODEC.decode_snapshot(damaged, 7)


def test_a_record_is_not_a_snapshot() -> None:
    """A line of one sort is damage where the other is expected."""
    with pytest.raises(DamagedLineError):
        CODEC.decode_snapshot(line_of(seq=7), 7)
    with pytest.raises(DamagedLineError):
        CODEC.decode_header(CODEC.encode_snapshot(7, BODY))


def test_the_refusal_names_the_kind() -> None:
    """A commit that no journal can hold is refused with the kind of the record at fault."""
    with pytest.raises(ValueError, match="page_folded"):
        check_commit([NewRecord("appended", 1, b"{}"), NewRecord("page_folded", 1, b"{\n}")])
