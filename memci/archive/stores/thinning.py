"""Which snapshots to keep."""

from collections.abc import Iterable

_NEWEST = 3


def superfluous(seqs: Iterable[int]) -> list[int]:
    """Return the snapshots to remove, so that about log2 of the journal's length remain.

    The newest three stay, and of the others one for each power of two of age, in records before the newest. In each
    power the oldest stays: it is the one that grows into the next power, and the younger ones can take its place.
    """
    ordered = sorted(set(seqs), reverse=True)
    oldest = {(ordered[0] - seq).bit_length(): seq for seq in ordered[_NEWEST:]}
    kept = set(oldest.values())
    return [seq for seq in ordered[_NEWEST:] if seq not in kept]
