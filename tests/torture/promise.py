"""What a writer was promised, what a recovery found, and whether the two agree."""

from collections.abc import Iterable, Mapping

import attrs

Journal = tuple[bytes, ...]
"""What was said in a session, oldest first."""

PICTURE_LOST = b"page file without its picture"
"""Found instead of a page whose file is there while the store no longer has a picture that it refers to."""

_EMPTY: frozenset[Journal] = frozenset({()})
_NO_PAGE: frozenset[bytes | None] = frozenset({None})


@attrs.frozen
class Promise:
    """What may be found, and nothing else may.

    Attributes:
        journals: By session, what it may hold: what was acknowledged, or that with a commit on its way.
        pages: By session and page, what the file may hold, ``None`` for no file.
        snapshots: By session, all that were ever put.
        forgotten: Bytes that are in no file any more.
    """

    journals: Mapping[str, frozenset[Journal]] = attrs.field(factory=dict)
    pages: Mapping[tuple[str, str], frozenset[bytes | None]] = attrs.field(factory=dict)
    snapshots: Mapping[str, frozenset[tuple[int, bytes]]] = attrs.field(factory=dict)
    forgotten: frozenset[bytes] = frozenset()

    def maybe(self, session: str, journal: Journal) -> "Promise":
        """Allow another journal beside those that are allowed: its commit is on its way."""
        allowed = self.journals.get(session, _EMPTY) | {journal}
        return attrs.evolve(self, journals={**self.journals, session: allowed})

    def surely(self, session: str, journal: Journal) -> "Promise":
        """Allow this journal only: it was acknowledged."""
        return attrs.evolve(self, journals={**self.journals, session: frozenset({journal})})

    def maybe_pages(self, session: str, pages: Mapping[str, bytes | None]) -> "Promise":
        """Allow these pages beside what is allowed."""
        known = {(session, name): self.pages.get((session, name), _NO_PAGE) | {page} for name, page in pages.items()}
        return attrs.evolve(self, pages={**self.pages, **known})

    def surely_pages(self, session: str, pages: Mapping[str, bytes | None]) -> "Promise":
        """Allow of these pages these bytes only."""
        known: dict[tuple[str, str], frozenset[bytes | None]] = {
            (session, name): frozenset({page}) for name, page in pages.items()
        }
        return attrs.evolve(self, pages={**self.pages, **known})

    def maybe_deleted(self, session: str) -> "Promise":
        """Allow any prefix of the steps of a deletion: the journal goes first, then the pictures, then the page files."""
        leftovers = {
            key: pages | {PICTURE_LOST, None} for key, pages in self.pages.items() if key[0] == session and pages != _NO_PAGE
        }
        return attrs.evolve(self.maybe(session, ()), pages={**self.pages, **leftovers})

    def surely_deleted(self, session: str) -> "Promise":
        """Allow nothing of the session: its deletion was acknowledged."""
        gone = dict.fromkeys((key for key in self.pages if key[0] == session), _NO_PAGE)
        return attrs.evolve(self.surely(session, ()), pages={**self.pages, **gone})

    def maybe_snapshot(self, session: str, seq: int, body: bytes) -> "Promise":
        """Allow a snapshot to be found."""
        known = self.snapshots.get(session, frozenset()) | {(seq, body)}
        return attrs.evolve(self, snapshots={**self.snapshots, session: known})

    def forget(self, secrets: Iterable[bytes]) -> "Promise":
        """Let these bytes be nowhere."""
        return attrs.evolve(self, forgotten=self.forgotten | frozenset(secrets))


@attrs.frozen
class Recovered:
    """What was found in one session after a crash.

    Attributes:
        journal: What it holds.
        pages: By name.
        snapshots: All that are found.
        faults: A sentence for each thing that no recovery may show, whatever was promised.
    """

    journal: Journal
    pages: Mapping[str, bytes]
    snapshots: tuple[tuple[int, bytes], ...]
    faults: tuple[str, ...]


def broken(promise: Promise, found: Mapping[str, Recovered], tree: Mapping[str, bytes | None]) -> list[str]:
    """Return a sentence for each promise that what was found breaks."""
    told: list[str] = []
    for session, recovered in found.items():
        told += recovered.faults
        allowed = promise.journals.get(session, _EMPTY)
        if not recovered.faults and recovered.journal not in allowed:
            told.append(f"{session[:20]}: {_lost(recovered.journal, allowed)}")
        if set(recovered.snapshots) - promise.snapshots.get(session, frozenset()):
            told.append(f"{session[:20]}: a snapshot that nobody put was found")
        for name, page in recovered.pages.items():
            if page not in promise.pages.get((session, name), _NO_PAGE):
                content = "is a " + PICTURE_LOST.decode() if page == PICTURE_LOST else f"holds {len(page)} bytes"
                told.append(f"{session[:20]}: page {name} {content}, which was not promised")
    for (session, name), pages in promise.pages.items():
        if None not in pages and session in found and name not in found[session].pages:
            told.append(f"{session[:20]}: page {name} is gone")
    held = b"\n".join(data for data in tree.values() if data) if promise.forgotten else b""
    told += [f"{secret[:20]!r} was taken out and is still there" for secret in promise.forgotten if secret in held]
    return told


def _lost(journal: Journal, allowed: Iterable[Journal]) -> str:
    known = max(allowed, key=len)
    same = next((place for place, pair in enumerate(zip(journal, known, strict=False)) if pair[0] != pair[1]), None)
    where = "" if same is None else f", another one at {same + 1}"
    return f"{len(journal)} found where {' or '.join(sorted({str(len(each)) for each in allowed}))} may be{where}"
