"""One opening of a session in an object store: its manifest as it is known, and the way to change it.

::

    <prefix>/<tenant>/manifests/<session>                            the manifest; there is a session where there is one
    <prefix>/<tenant>/parts/<session>/<incarnation>/segments/…       older records
                                                   /lists/…          lists of parts
                                                   /pages/usr-12     raw pages
                                                   /snapshots/…      cached states
                                                   /blobs/…          large data, for each record that brings it
"""

from collections import OrderedDict
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TypeAlias, TypeVar
from uuid import uuid4

import attrs

from memci.archive import refusal
from memci.archive.stores.names import file_name
from memci.archive.stores.objects.io import ObjectIo, RejectedError, UnchangedError, Version
from memci.archive.stores.objects.manifest import Change, Manifest, ManifestCodec, Part, Planner
from memci.archive.stores.record_codec import DamagedLineError, LineCodec
from memci.errors import CorruptError, StoreError, UnavailableError

PAGES = "pages"
SNAPSHOTS = "snapshots"
BLOBS = "blobs"
SEGMENTS = "segments"
LISTS = "lists"

_ATTEMPTS = 100
_KEPT_OBJECTS = 4
_KEPT_BYTES = 1 << 19


Plan: TypeAlias = Callable[[Planner, Manifest], Change | None]
"""What one wants to make of a manifest: the new version, or ``None`` where it is as it should be.

It is asked again where somebody else was faster, and may raise what the caller is to get.
"""

_T = TypeVar("_T")


@attrs.frozen
class _Known:
    """A version of the manifest and by what to ask for a newer one."""

    manifest: Manifest
    version: Version


@attrs.frozen
class _Attempt:
    """A new version that was tried: the id of the write, and the objects that it needs, by path."""

    manifest: Manifest
    write: str
    objects: dict[str, bytes]


class Opening:
    """What journal, pages and snapshots of one opened session share. For one thread at a time.

    Attributes:
        session_id: For error texts.
        lines: Reads and writes the lines of the session.
        io: The requests.
        incarnation: Of the session that this opening belongs to; before it has seen one, of the one that it would begin.
        has_begun: Whether it has seen or begun one.
    """

    def __init__(self, io: ObjectIo, tenant: str, session_id: str, *, read_only: bool) -> None:
        self.session_id = session_id
        self.lines = LineCodec(tenant, session_id)
        self.io = io
        self.incarnation = uuid4().hex
        self.has_begun = False
        self._codec = ManifestCodec(tenant, session_id)
        self._manifest_path = manifest_path(tenant, session_id)
        self._parts_path = parts_path(tenant, session_id)
        self._read_only = read_only
        self._known: _Known | None = None
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._is_closed = False

    def check_open(self) -> None:
        """Refuse what comes after ``close``.

        Raises:
            SessionClosedError: The session was closed.
        """
        if self._is_closed:
            raise refusal.closed(self.session_id)

    def check_writable(self) -> None:
        """Refuse to write where that was not asked for.

        Raises:
            SessionClosedError: The session was closed.
            PermissionDeniedError: It was opened read-only.
        """
        self.check_open()
        if self._read_only:
            raise refusal.read_only(self.session_id)

    def refresh(self) -> Manifest | None:
        """Return the manifest as it is now, ``None`` where the session has not begun. One request, without body if unchanged.

        Raises:
            CorruptError: It is damaged.
            UnavailableError: The session was deleted, or the provider did not answer.
        """
        known = self._known
        try:
            found = self.io.find(self._manifest_path, known.version if known else None)
        except UnchangedError:
            return known.manifest if known else None
        if found is None:
            if self.has_begun:
                raise refusal.deleted(self.session_id)
            return None
        manifest = self._decoded(self._manifest_path, lambda: self._codec.decode(found.body))
        if self.has_begun and manifest.incarnation != self.incarnation:
            raise refusal.deleted(self.session_id)
        self._adopt(manifest, found.version)
        return manifest

    def latest(self) -> Manifest | None:
        """Return the manifest as this opening knows it; it asks only if it knows none. Raises as ``refresh`` does."""
        return self.refresh() if self._known is None else self._known.manifest

    def known_head(self) -> int:
        """Return the head as this opening last saw it, 0 where it saw none."""
        return self._known.manifest.head if self._known else 0

    def begun(self, *, again: bool = True) -> Manifest:
        """Return the manifest of a session to which something is about to be added: as it is now, or as it was last seen.

        Raises:
            UnavailableError: The session was deleted, or has no record yet, or the provider did not answer.
        """
        manifest = self.refresh() if again else self.latest()
        if manifest is None:
            message = f"session {self.session_id!r} has no record yet: append to its journal first"
            raise UnavailableError(message)
        return manifest

    def change(self, plan: Plan) -> Manifest:
        """Make a new version of the manifest and return it. Durable once it returns.

        One request where the plan needs no other object, else two one after the other; more where somebody else was faster.

        Raises:
            CorruptError: The manifest is damaged.
            UnavailableError: The session was deleted, or it is not known whether it was done.
        """
        attempts: list[_Attempt] = []
        for _ in range(_ATTEMPTS):
            known = self._known
            if known is None and self.has_begun:
                self.refresh()
                continue
            base = Manifest(incarnation=self.incarnation) if known is None else known.manifest
            write = self.new_id()
            change = plan(Planner(self._codec, base, write), base)
            if change is None:
                return base
            attempts.append(
                _Attempt(change.manifest, write, {self.part_path(part): body for part, body in change.objects.items()})
            )
            done = self._try(attempts, known.version if known else None)
            if done is not None:
                return done
        message = f"session {self.session_id!r}: others wrote {_ATTEMPTS} times before this could: do it again"
        raise UnavailableError(message)

    def remove_if_deleted(self, paths: Collection[str]) -> None:
        """Delete objects that were put for a session that is gone by now, as far as that can be told and done."""
        with suppress(StoreError, DamagedLineError):
            found = self.io.find(self._manifest_path)
            if found is None or self._codec.decode(found.body).incarnation != self.incarnation:
                self.io.delete(paths)

    def new_id(self) -> str:
        """Return an id that nobody has."""
        return uuid4().hex[:16]

    def list_parts(self, part: Part) -> list[Part]:
        """Return the parts of which a list tells. One request, none if it was read lately.

        Raises:
            CorruptError: It is missing or damaged.
        """
        path = self.part_path(part)
        body = self.objects([path])[0]
        if body is None:
            raise self.missing(path, part.first)
        return self._decoded(path, lambda: self._codec.decode_list(part, body), part.first)

    def objects(self, paths: Collection[str]) -> list[bytes | None]:
        """Return immutable objects; those read last are kept. One request for each of the others, some at a time."""
        kept = self._kept
        found = {path: kept[path] for path in paths if path in kept}
        missing = [path for path in paths if path not in found]
        read = zip(missing, self.io.find_each(missing), strict=True)
        found |= {path: body for path, body in read if body is not None}
        for path, body in found.items():
            if len(body) <= _KEPT_BYTES:
                kept[path] = body
                kept.move_to_end(path)
        while len(kept) > _KEPT_OBJECTS:
            kept.popitem(last=False)
        return [found.get(path) for path in paths]

    def part_path(self, part: Part) -> str:
        """Return the path of a part's object."""
        return self.path(LISTS if part.level else SEGMENTS, part.name)

    def path(self, *names: str) -> str:
        """Return the path of an object, or of a folder of them, of this incarnation."""
        return "/".join((self._parts_path, self.incarnation, *names))

    def corrupt(self, reason: str, place: str, seq: int | None = None) -> CorruptError:
        """Make the error of one who meets damage."""
        return CorruptError(reason, session=self.session_id, place=place, seq=seq)

    def missing(self, place: str, seq: int) -> CorruptError:
        """Make the error of one who does not find a record, or what holds it."""
        return self.corrupt(f"the record {seq} is missing", place, seq)

    @property
    def tail_place(self) -> str:
        """Where the tail lies, for error texts."""
        return self._manifest_path

    def close(self) -> None:
        """Let go of what was read. May be called twice."""
        self._is_closed = True
        self._known = None
        self._kept.clear()

    def _try(self, attempts: "list[_Attempt]", version: Version | None) -> Manifest | None:
        """Make the last of the attempts, and return the manifest as it then is, or ``None`` where somebody else was faster."""
        attempt = attempts[-1]
        self.io.put_each(attempt.objects)
        try:
            new = self.io.replace(self._manifest_path, self._codec.encode(attempt.manifest), version)
        except RejectedError:
            return self._rejected(attempts)
        except UnavailableError as failure:
            return self._unanswered(attempts, failure)
        self._adopt(attempt.manifest, new)
        return attempt.manifest

    def _rejected(self, attempts: "list[_Attempt]") -> Manifest | None:
        """Return the manifest if an attempt did take effect, for what is repeated on the way is refused the second time."""
        self._known = None
        try:
            current = self.refresh()
        except UnavailableError:
            self.remove_if_deleted(attempts[-1].objects)
            raise
        done = self._holds(current, attempts)
        if done:
            return current
        # The version that it was to replace never comes back, so nothing will ever refer to its objects.
        self._discard(attempts[-1])
        if current is not None:
            attempts[:] = [attempt for attempt in attempts if attempt.manifest.revision > current.revision]
        return None

    def _unanswered(self, attempts: "list[_Attempt]", failure: UnavailableError) -> Manifest | None:
        """Return the manifest if an attempt took effect, else raise *failure*: it may still do so, so its objects stay."""
        self._known = None
        try:
            current = self.refresh()
        except UnavailableError:
            raise failure from None
        if self._holds(current, attempts):
            return current
        raise failure

    def _holds(self, current: Manifest | None, attempts: "list[_Attempt]") -> bool:
        if current is None:
            return False
        mine = [attempt for attempt in attempts if attempt.manifest.incarnation == current.incarnation]
        outcomes = [current.holds(attempt.write, attempt.manifest.revision) for attempt in mine]
        if None in outcomes and True not in outcomes:
            message = (
                f"session {self.session_id!r}: others wrote so often that nobody knows whether this was done: refresh and look"
            )
            raise UnavailableError(message)
        return True in outcomes

    def _discard(self, attempt: "_Attempt") -> None:
        with suppress(UnavailableError):  # what stays is in nobody's way, and goes with the session
            self.io.delete(attempt.objects)

    def _adopt(self, manifest: Manifest, version: Version) -> None:
        self._known = _Known(manifest, version)
        self.incarnation = manifest.incarnation
        self.has_begun = True

    def _decoded(self, place: str, decode: Callable[[], _T], seq: int | None = None) -> _T:
        try:
            return decode()
        except DamagedLineError as error:
            raise self.corrupt(str(error), place, seq) from error


def manifest_path(tenant: str, session_id: str) -> str:
    """Return the path of a session's manifest."""
    return f"{manifests_path(tenant)}/{file_name(session_id)}"


def manifests_path(tenant: str) -> str:
    """Return the folder of the manifests of a tenant."""
    return f"{file_name(tenant)}/manifests"


def parts_path(tenant: str, session_id: str) -> str:
    """Return the folder of all other objects of the sessions that had and have this id."""
    return f"{file_name(tenant)}/parts/{file_name(session_id)}"
