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
    Manifest,
    ManifestCodec,
    Part,
    Planner,
    Snapshot,
    made_in,
    overlaps,
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
).map(lambda manifest: attrs.evolve(manifest, head=manifest.tail_first - 1 + manifest.tail.count(b"\n")))


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

    class Newer(ManifestCodec):
        def seal(self, body: bytes) -> bytes:
            return b'{"v":2,"sum":"%b","manifest":%b}\n' % (self._sum(b"manifest", b"2", body), body)

    with pytest.raises(StoreError, match="upgrade"):
        CODEC.decode(Newer("tenant", "session").seal(b'{"other":1}'))


@given(commits=st.lists(st.tuples(st.integers(1, 200), st.integers(1, 6_000)), min_size=1, max_size=60))
def test_any_commits_are_planned_without_a_gap(commits: list[tuple[int, int]]) -> None:
    """Parts and tail hold every line once and in order, the tail stays small, levels never rise, and writes are named."""
    manifest = Manifest(incarnation="i")
    objects: dict[Part, bytes] = {}
    written = b""
    for number, (count, size) in enumerate(commits, start=1):
        lines = LINES.encode_commit(manifest.head, [NewRecord("appended", 1, b'"%b"' % (b"x" * size))] * count)
        written += lines
        manifest, made = Planner(CODEC, manifest, f"{number:x}").append(lines, count)
        assert not objects.keys() & made.keys()
        objects |= made
        assert number == manifest.revision
        assert number == 1 or len(manifest.tail) <= TAIL_BYTES
        assert number == 1 or manifest.head - manifest.tail_first < TAIL_RECORDS
    levels = [part.level for part in manifest.parts]
    assert sorted(levels, reverse=True) == levels
    assert written == b"".join(read(objects, manifest.parts)) + manifest.tail
    assert all(len(body) <= SEGMENT_BYTES for part, body in objects.items() if not part.level)
    assert all(part.last >= part.first and made_in(part.name) is not None for part in objects)
    assert [f"{number:x}" for number in range(1, len(commits) + 1)][-WRITES:] == list(manifest.writes)


def read(objects: dict[Part, bytes], parts: tuple[Part, ...] | list[Part]) -> list[bytes]:
    """Return the segments below parts in order."""
    found = []
    for part in parts:
        found.extend(read(objects, CODEC.decode_list(part, objects[part])) if part.level else [objects[part]])
    return found


def test_a_write_is_known_for_a_while() -> None:
    """The newest versions tell whether a write made them; of older ones nothing is known, of later ones that it did not."""
    manifest = Manifest(incarnation="i", revision=40, writes=tuple(map(str, range(40 - WRITES + 1, 41))))
    assert manifest.holds("40", 40) is True
    assert manifest.holds(str(40 - WRITES + 1), 40 - WRITES + 1) is True
    assert manifest.holds(str(40 - WRITES), 40 - WRITES) is None
    assert manifest.holds("39", 40) is False
    assert manifest.holds("41", 41) is False


def test_names_tell_records_and_revision() -> None:
    """The name of a part says which records it holds and which version of the manifest it was made for."""
    part = Planner(CODEC, Manifest(incarnation="i", revision=6), "ab12").part(65, 128, 0)
    assert "65-128.7-ab12" == part.name
    assert 7 == made_in(part.name)
    assert made_in("notes.txt") is None
    assert [True, True, False, False] == [overlaps(part.name, [seq]) for seq in (65, 128, 64, 129)]
