"""Says how much each atom of a page tells, seen in the whole page."""

from collections.abc import Sequence

from memci.archive.summarizers.literals import LiteralKind
from memci.archive.summarizers.selection import Passage

_SPEAKER_WORTH = {"user": 1.2, "assistant": 1.0, "call": 0.9, "tool": 0.8}
_OTHER_WORTH = 0.5
_REPEATED_SHARE = 0.25
_EARLY_ATOMS = 20
_LATE = (1.0, *(min(1.0, (_EARLY_ATOMS / place) ** 0.3) for place in range(1, 2_000)))
_LATE_KINDS = frozenset({None, LiteralKind.NUMBER, LiteralKind.PAIR})
_SHORT_ATOMS = 40
_LONG_POWER = 0.25


def weigh(passages: Sequence[Passage]) -> None:
    """Set the worth of every atom of a page. O(atoms).

    The worth of what an atom says, times the weight of who says it. Words and bare numbers behind the twentieth atom of their
    passage count ``(20 / place) ** 0.3`` (no less behind the two-thousandth), everything in a passage of more than forty atoms
    that the user did not say ``(40 / atoms) ** 0.25``. What was said before in the page counts a quarter; the user is taken to
    speak first.
    """
    said: set[str] = set()
    for passage in sorted(passages, key=lambda passage: passage.speaker != "user"):
        weight = _SPEAKER_WORTH.get(passage.speaker, _OTHER_WORTH)
        if passage.speaker != "user" and len(passage.atoms) > _SHORT_ATOMS:
            weight *= (_SHORT_ATOMS / len(passage.atoms)) ** _LONG_POWER
        for place, atom in enumerate(passage.atoms, 1):
            worth = 0.0
            for form, value in atom.forms:
                worth += value * _REPEATED_SHARE if form in said else value
                said.add(form)
            if place > _EARLY_ATOMS and atom.kind in _LATE_KINDS:
                worth *= _LATE[place] if place < len(_LATE) else _LATE[-1]
            atom.worth = worth * weight
