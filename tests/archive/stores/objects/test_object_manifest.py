"""Manifests and lists as bytes, and the plans for new versions of them."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.archive.stores.contract import NewRecord
from memci.archive.stores.objects.manifest import (
    SEGMENT_BYTES,
    TAIL_BYTES,
    TAIL_RECORDS,
    WRITES,
    Draft,
    Manifest,
    ManifestCodec,
    Part,
    Snapshot,
    is_old,
    owner_of,
)
from memci.archive.stores.record_codec import DamagedLineError, LineCodec
from memci.errors import StoreError

CODEC = ManifestCodec("tenant", "session")
LINES = LineCodec("tenant", "session")

_seqs = st.integers(1, 2**53)
_parts = st.lists(st.builds(Part, _seqs, _seqs, st.integers(0, 5), st.text("09-.af", max_size=9)), max_size=5)
_manifests = st.builds(
    Manifest,
    incarnation=st.text("09af", min_size=1, max_size=9),
    revision=st.integers(1, 2**53),
    parts=_parts.map(tuple),
    snapshots=st.lists(st.builds(Snapshot, st.integers(0, 2**53), st.text("09-", max_size=9)), max_size=3).map(tuple),
    writes=st.lists(st.text("09af", max_size=9), max_size=3).map(tuple),
    tail=st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"") + b"\n"), max_size=5).map(b"".join),
).map(lambda manifest: attrs.evolve(manifest, head=manifest.tail_part.first - 1 + manifest.tail.count(b"\n")))


@given(manifest=_manifests, tenant=st.text(max_size=9), session_id=st.text(max_size=9))
def test_a_manifest_comes_back(manifest: Manifest, tenant: str, session_id: str) -> None:
    """What is encoded is decoded as it was, tells whose it is, and is nobody else's."""
    codec = ManifestCodec(tenant, session_id)
    body = codec.encode(manifest)
    assert manifest == codec.decode(body)
    assert (tenant, session_id) == owner_of(body)
    with pytest.raises(DamagedLineError):
        ManifestCodec(tenant, session_id + "x").decode(body)


@given(body=st.binary())
def test_other_bytes_are_no_manifest(body: bytes) -> None:
    """Any bytes are read or are damage."""
    with pytest.raises(DamagedLineError):
        CODEC.decode(body)
    assert owner_of(body) is None


def test_a_list_is_of_its_part_only() -> None:
    """A list in the place of another one is damage, as is a manifest in its place."""
    parts = [Part(1, 64, 0, "a"), Part(65, 90, 0, "b")]
    body = CODEC.encode_list(parts)
    assert parts == CODEC.decode_list(Part(1, 90, 1, "x"), body)
    for other in (Part(1, 91, 1, "x"), Part(2, 90, 1, "x"), Part(1, 90, 2, "x")):
        with pytest.raises(DamagedLineError, match="no list of the records"):
            CODEC.decode_list(other, body)
    with pytest.raises(DamagedLineError, match="no list"):
        CODEC.decode_list(Part(1, 90, 1, "x"), CODEC.encode(Manifest(incarnation="i")))


def test_a_newer_format_is_refused_as_such() -> None:
    """What a newer memci wrote is no damage: one is told to upgrade."""
    with pytest.raises(StoreError, match="upgrade"):
        CODEC.decode(CODEC._seal(b"manifest", b'{"other":1}', b"2"))


@given(commits=st.lists(st.tuples(st.integers(1, 200), st.integers(1, 6_000)), min_size=1, max_size=60))
def test_any_commits_are_planned_without_a_gap(commits: list[tuple[int, int]]) -> None:
    """Parts and tail hold every line once and in order, the tail stays small, levels never rise, and writes are named."""
    manifest = Manifest(incarnation="i")
    objects: dict[str, bytes] = {}
    written = b""
    for number, (count, size) in enumerate(commits, start=1):
        lines = LINES.encode_commit(manifest.head, [NewRecord("appended", 1, b'"%b"' % (b"x" * size))] * count)
        written += lines
        draft = Draft(CODEC, manifest, f"{number:x}")
        draft.append(lines, count)
        assert not objects.keys() & draft.objects.keys()
        objects |= draft.objects
        manifest = draft.manifest
        assert number == manifest.revision
        assert number == 1 or len(manifest.tail) <= TAIL_BYTES
        assert number == 1 or manifest.head - manifest.tail_part.first < TAIL_RECORDS
    levels = [part.level for part in manifest.parts]
    assert sorted(levels, reverse=True) == levels
    assert written == b"".join(read(objects, manifest.parts)) + manifest.tail
    segments = {path: body for path, body in objects.items() if path.startswith("segments/")}
    assert all(len(body) <= SEGMENT_BYTES for body in segments.values())
    assert all(is_old(path.removeprefix("segments/"), len(commits), range(1, manifest.head + 1)) for path in segments)
    assert [f"{number:x}" for number in range(1, len(commits) + 1)][-WRITES:] == list(manifest.writes)


def read(objects: dict[str, bytes], parts: tuple[Part, ...] | list[Part]) -> list[bytes]:
    """Return the segments below parts in order."""
    found = []
    for part in parts:
        found.extend(read(objects, CODEC.decode_list(part, objects[part.path])) if part.level else [objects[part.path]])
    return found


def test_names_tell_records_and_revision() -> None:
    """The name of a segment says which records it holds and which version of the manifest it was made for."""
    part = Draft(CODEC, Manifest(incarnation="i", revision=6), "ab12").add_part(65, 128, b"")
    assert Part(65, 128, 0, "65-128.7-ab12") == part
    assert [False, True, True] == [is_old(part.name, revision, [65]) for revision in (6, 7, 8)]
    assert [True, True, False, False] == [is_old(part.name, 7, [seq]) for seq in (65, 128, 64, 129)]
    assert not is_old("notes.txt", 7, [65])
