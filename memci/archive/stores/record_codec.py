"""How one journal record, and one snapshot, is written as one line of JSON; and which snapshots to keep.

A record::

    {"v":2,"seq":17,"left":0,"of":2,"kind":"appended","kv":1,"sha":"…","sum":"…","body":{…}}

`left`  how many records of the same commit follow; a commit whose last record has ``left`` above 0 was torn.
`of`    how many records the commit has, so that a hole in a torn commit is told from damage to an older one. Of a commit of one
        record neither is said.
`kv`    version of the kind.
`sha`   the first 16 bytes of the SHA-256 of the body's bytes, in base64 without padding.
`sum`   the first 8 bytes of the SHA-256 of the compact JSON array ``[v,tenant,session,seq,left,of,kind,kv,sha]`` in UTF-8,
        in base64 without padding.

Records of version 1 are read as well: they always say `left` and `of`, `sha` is a whole hash in hex, and `sum` 32 hex digits.

The checksum covers the hash of the body and not the body, so that a body can be replaced and the line still be checked;
a body is compared with its own hash whenever it is read. What is put in the place of a body carries its own hash::

    "body":{"redacted":"<SHA-256 of what follows, in hex>","event":{…}}

The line is put together from bytes and read by slices: the body is never encoded again.
"""

import re
from binascii import b2a_base64
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import orjson

from memci.archive.stores.contract import NewRecord, Record
from memci.errors import ConflictError, StoreError

_NUMBER = rb"(0|[1-9][0-9]{0,18})"
_RECORD = re.compile(
    rb'\{"v":' + _NUMBER + rb',"seq":' + _NUMBER + rb'(?:,"left":' + _NUMBER + rb',"of":' + _NUMBER
    + rb')?,"kind":"([a-z][a-z0-9_]*)","kv":' + _NUMBER
    + rb',"sha":"([A-Za-z0-9+/]{22}|[0-9a-f]{64})","sum":"([A-Za-z0-9+/]{11}|[0-9a-f]{32})","body":'
)  # fmt: skip
_REDACTED = re.compile(rb'\{"redacted":"([0-9a-f]{64})","event":')
_ANY_VERSION = re.compile(rb'\{"v":' + _NUMBER + rb",")
_KIND = re.compile(r"[a-z][a-z0-9_]*")
_LINE_END = b"}\n"
SEALED = b'{"memci_sealed":"'  # how a body begins that is ciphertext
_NEWEST = 3
_VERSION = 2
_SHA_BYTES, _SUM_BYTES = 16, 8
_HEX_DIGITS = 64  # of the hash of version 1


class DamagedLineError(ValueError):
    """A line is not what was written; the text says what is wrong with it. Stores make a ``CorruptError`` of it."""


class Header(NamedTuple):
    """What stands before the body of a record, and where that begins in the line."""

    seq: int
    left: int
    of: int
    kind: str
    version: int
    sha: bytes
    body_start: int


def check_commit(records: Sequence[NewRecord]) -> None:
    """Raise ``ValueError`` for an empty commit, and for one with a record that is not what ``NewRecord`` says."""
    if not records:
        message = "a commit needs at least one record"
        raise ValueError(message)
    for record in records:
        if record.version < 0 or not _KIND.fullmatch(record.kind):
            message = f"{record.kind!r}, version {record.version}: a kind is a word of a-z, 0-9 and _, and its version from 0"
            raise ValueError(message)
        check_body(record.body, record.kind)


def check_body(body: bytes, kind: str = "any") -> None:
    """Raise ``ValueError`` for a body that is empty, or has a line break or NUL, which compact JSON never has."""
    if not body or b"\n" in body or b"\0" in body:
        message = f"the body of a record of kind {kind} is not compact JSON: it is empty, or has a line break or NUL"
        raise ValueError(message)


def check_redaction(bodies: Mapping[int, bytes], head: int) -> None:
    """Raise ``ValueError`` for a record that a journal which is at *head* does not hold, and for what ``check_body`` refuses."""
    for seq, body in bodies.items():
        check_body(body)
        if not 1 <= seq <= head:
            message = f"there is no record {seq}: the journal is at {head}"
            raise ValueError(message)


def redacted_meanwhile(seq: int) -> ConflictError:
    """Make the error of one who would bring back what others took out of a record."""
    return ConflictError(f"record {seq} was redacted by others meanwhile: read it again", expected=seq, head=seq)


class LineCodec:
    """Writes and reads the lines of one session; a line of another session fails its checksum."""

    def __init__(self, tenant: str, session_id: str) -> None:
        self._owner = orjson.dumps([tenant, session_id])[1:-1]

    def encode_commit(self, expected: int, records: Sequence[NewRecord]) -> bytes:
        """Return the lines of one commit that follows the record *expected*; raise what ``check_commit`` raises."""
        check_commit(records)
        of = len(records)
        lines = []
        for number, record in enumerate(records, start=1):
            sha, left, kind = _short_hash(record.body, _SHA_BYTES), of - number, record.kind.encode()
            place = b"" if of == 1 else b'"left":%d,"of":%d,' % (left, of)
            checksum = self._sum(b"%d,%d,%d" % (expected + number, left, of), kind, b"%d" % record.version, sha)
            lines.append(
                b'{"v":2,"seq":%d,%b"kind":"%b","kv":%d,"sha":"%b","sum":"%b","body":%b}\n'
                % (expected + number, place, kind, record.version, sha, checksum, record.body)
            )
        return b"".join(lines)

    def decode_header(self, line: bytes) -> Header:
        """Read and check what stands before the body; raise ``DamagedLineError``, or ``StoreError`` for a newer memci's."""
        match = _RECORD.match(line) if line.endswith(_LINE_END) else None
        holds = False
        if match is not None:
            version, seq, left, of, kind, kind_version, sha, checksum = match.groups(default=b"")
            left, of = left or b"0", of or b"1"
            holds = self._sum(b"%b,%b,%b" % (seq, left, of), kind, kind_version, sha) == checksum
            if holds and version == (b"2" if len(sha) < _HEX_DIGITS else b"1"):
                return Header(int(seq), int(left), int(of), kind.decode(), int(kind_version), sha, match.end())
        newer = _ANY_VERSION.match(line)
        if newer is not None and int(newer[1]) > _VERSION and not holds:  # where it holds, a flipped bit made another digit
            message = f"a record has format version {int(newer[1])}, written by a newer memci: upgrade memci to read it"
            raise StoreError(message)
        message = "the line is not a journal record" if match is None else "the checksum of the record does not match"
        raise DamagedLineError(message)

    def decode_body(self, line: bytes, header: Header) -> tuple[bytes, bool]:
        """Return the body of a record, and whether it was redacted; raise ``DamagedLineError``."""
        body = line[header.body_start : -len(_LINE_END)]
        sha = _short_hash(body, _SHA_BYTES) if len(header.sha) < _HEX_DIGITS else sha256(body).hexdigest().encode()
        if sha == header.sha:
            return body, False
        match = _REDACTED.match(body)
        if match is not None and sha256(body[match.end() : -1]).hexdigest().encode() == match[1]:
            return body[match.end() : -1], True
        message = "the body does not match its SHA-256"
        raise DamagedLineError(message)

    def decode(self, line: bytes) -> Record:
        """Return the record of a line."""
        header = self.decode_header(line)
        body, redacted = self.decode_body(line, header)
        return Record(header.seq, header.kind, header.version, body, redacted)

    def redact(self, line: bytes, body: bytes, former: str | None = None) -> bytes:
        """Return the line of a record with another body in the place of its own; its checksum still holds.

        Raises ``ConflictError`` if its own is not the one with the SHA-256 *former*, and what ``decode`` raises.
        """
        check_body(body)
        header = self.decode_header(line)
        if former is not None and sha256(self.decode_body(line, header)[0]).hexdigest() != former:
            raise redacted_meanwhile(header.seq)
        return b'%b{"redacted":"%b","event":%b}}\n' % (line[: header.body_start], sha256(body).hexdigest().encode(), body)

    def encode_snapshot(self, seq: int, body: bytes) -> bytes:
        """Return a snapshot file; the body is compact JSON."""
        sha = sha256(body).hexdigest().encode()
        checksum = sha256(b'[1,%b,%d,"snapshot","%b"]' % (self._owner, seq, sha)).hexdigest()[:32].encode()
        return b'{"v":1,"seq":%d,"sha":"%b","sum":"%b","body":%b}\n' % (seq, sha, checksum, body)

    def decode_snapshot(self, line: bytes, seq: int) -> bytes:
        """Return the body of the snapshot file of the record *seq*; raise ``DamagedLineError``."""
        body = line.partition(b'"body":')[2][: -len(_LINE_END)]
        if self.encode_snapshot(seq, body) != line:
            message = f"the file is not the snapshot of record {seq} as this version of memci writes it"
            raise DamagedLineError(message)
        return body

    def _sum(self, place: bytes, kind: bytes, version: bytes, sha: bytes) -> bytes:
        """Return the checksum of a record at a place (seq, left and of); its hash tells the version of the line."""
        text = b'%b,%b,"%b",%b,"%b"]' % (self._owner, place, kind, version, sha)
        if len(sha) < _HEX_DIGITS:
            return _short_hash(b"[2," + text, _SUM_BYTES)
        return sha256(b"[1," + text).hexdigest()[:32].encode()


def _short_hash(text: bytes, size_bytes: int) -> bytes:
    return b2a_base64(sha256(text).digest()[:size_bytes], newline=False).rstrip(b"=")


def superfluous(seqs: Iterable[int]) -> list[int]:
    """Return the snapshots to remove, so that about log2 of the journal's length remain: the newest three, one a power of two.

    That is of the age in records before the newest. The oldest of a power stays, as it grows into the next one.
    """
    ordered = sorted(set(seqs), reverse=True)
    oldest = {(ordered[0] - seq).bit_length(): seq for seq in ordered[_NEWEST:]}
    kept = set(oldest.values())
    return [seq for seq in ordered[_NEWEST:] if seq not in kept]
