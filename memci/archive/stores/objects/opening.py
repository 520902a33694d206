"""One opening of a session in an object store: its manifest as it is known, and the one way to change it.

::

    <prefix>/<tenant>/manifests/<session>                            the manifest; there is a session where there is one
    <prefix>/<tenant>/parts/<session>/<incarnation>/segments/…       older records
                                                   /lists/…          lists of parts
                                                   /pages/usr-12     raw pages
                                                   /snapshots/…      cached states
                                                   /blobs/…          large data, for each record that brings it
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from uuid import uuid4

from memci.archive import refusal
from memci.archive.stores.names import file_name
from memci.archive.stores.objects.io import ObjectIo, RejectedError, UnchangedError, Version
from memci.archive.stores.objects.manifest import WRITES, Draft, Manifest, ManifestCodec, Part
from memci.archive.stores.record_codec import DamagedLineError, LineCodec
from memci.errors import CorruptError, StoreError, UnavailableError

_ATTEMPTS = 100


class Opening:
    """What journal, pages, snapshots and blobs of one opened session share. For one thread at a time.

    Calls raise ``SessionClosedError`` after ``close``, ``CorruptError`` for what is damaged, and ``UnavailableError`` where the
    session was deleted, or the provider did not answer.

    Attributes:
        lines: Reads and writes the lines of the session.
        io: The requests.
        read_only: As given.
        manifest_path: Where the manifest lies.
        parts_path: The folder of all other objects of the sessions that had and have this id.
        incarnation: Of the session that this opening belongs to; before it has seen one, of the one that it would begin.
        has_begun: Whether it has seen or begun one.
    """

    def __init__(self, io: ObjectIo, tenant: str, session_id: str, *, read_only: bool) -> None:
        self.lines = LineCodec(tenant, session_id)
        self.io = io
        self.read_only = read_only
        self.manifest_path = f"{manifests_path(tenant)}/{file_name(session_id)}"
        self.parts_path = f"{file_name(tenant)}/parts/{file_name(session_id)}"
        self.incarnation = uuid4().hex
        self.has_begun = False
        self._session_id = session_id
        self._codec = ManifestCodec(tenant, session_id)
        self._known: tuple[Manifest, Version] | None = None
        self._is_closed = False

    def check_open(self) -> None:
        """Raise ``SessionClosedError`` after ``close``."""
        if self._is_closed:
            raise refusal.closed(self._session_id)

    def writable(self) -> "Opening":
        """Return this, or raise what ``check_open`` does, and ``PermissionDeniedError`` where it was opened read-only."""
        self.check_open()
        if self.read_only:
            raise refusal.read_only(self._session_id)
        return self

    def refresh(self) -> Manifest | None:
        """Return the manifest as it is now, ``None`` where the session has not begun. One request, without body if unchanged."""
        self.check_open()
        try:
            found = self.io.find(self.manifest_path, self._known and self._known[1])
        except UnchangedError:
            return self._known and self._known[0]
        if found is not None:
            try:
                manifest = self._codec.decode(found.body)
            except DamagedLineError as error:
                raise self.corrupt(str(error), self.manifest_path) from error
            if not self.has_begun or manifest.incarnation == self.incarnation:
                self._adopt(manifest, found.version)
                return manifest
        if self.has_begun:
            raise refusal.deleted(self._session_id)
        return None

    def latest(self) -> Manifest | None:
        """Return the manifest as this opening knows it; it asks only if it knows none."""
        self.check_open()
        return self._known[0] if self._known else self.refresh()

    def known_head(self) -> int:
        """Return the head as this opening last saw it, 0 where it saw none."""
        return self._known[0].head if self._known else 0

    def change(self, plan: Callable[[Draft], None]) -> Manifest:
        """Make a new version of the manifest and return it. Durable once it returns; after an error it may be done all the same.

        One request where the plan needs no other object, else two one after the other; more where somebody else was faster: the
        plan is then asked again, and may raise what the caller is to get.
        """
        write = uuid4().hex[:16]
        for _ in range(_ATTEMPTS):
            if self._known is None and self.has_begun:
                self.refresh()
            base, version = self._known or (Manifest(incarnation=self.incarnation), None)
            draft = Draft(self._codec, base, write)
            plan(draft)
            new, objects = draft.manifest, {self.path(path): body for path, body in draft.objects.items()}
            self.io.put_each(objects)
            try:
                made = self.io.put(self.manifest_path, self._codec.encode(new), "create" if version is None else version)
            except (RejectedError, UnavailableError) as failure:
                done = self._looked_up(new, objects, failure)
                if done is not None:
                    return done
            else:
                self._adopt(new, made)
                return new
        reason = f"others wrote {_ATTEMPTS} times before this could: do it again"
        raise self._unavailable(reason)

    def put_beside(self, objects: Mapping[str, bytes]) -> None:
        """Put objects that the manifest does not name; if the session was deleted meanwhile, they do not stay. n + 1 requests."""
        self.io.put_each(objects)
        try:
            self.refresh()
        except UnavailableError:
            self._remove_if_deleted(objects)
            raise

    def find(self, *names: str) -> bytes | None:
        """Return an object of this incarnation, ``None`` where there is none. One request."""
        found = self.io.find(self.path(*names)) if self.latest() else None
        return found.body if found else None

    def paths(self, *names: str) -> Iterator[str]:
        """Yield the paths of the objects in a folder of this incarnation. One request for each thousand."""
        if self.latest():
            yield from self.io.names(self.path(*names))

    def path(self, *names: str) -> str:
        """Return the path of an object, or of a folder of them, of this incarnation."""
        return "/".join((self.parts_path, self.incarnation, *names))

    def place(self, part: Part) -> str:
        """Return the path of what holds the records of a part."""
        return self.path(part.path) if part.path else self.manifest_path

    def list_parts(self, part: Part) -> list[Part]:
        """Return the parts of which a list tells. One request."""
        body = self.find(part.path)
        if body is None:
            raise self.missing(part, part.first)
        try:
            return self._codec.decode_list(part, body)
        except DamagedLineError as error:
            raise self.corrupt(str(error), self.place(part), part.first) from error

    def corrupt(self, reason: str, place: str, seq: int | None = None) -> CorruptError:
        """Make the error for damage."""
        return CorruptError(reason, session=self._session_id, place=place, seq=seq)

    def missing(self, part: Part, seq: int) -> CorruptError:
        """Make the error for a record that is not there, or whose object is not."""
        return self.corrupt(f"the record {seq} is missing", self.place(part), seq)

    def not_begun(self) -> UnavailableError:
        """Make the error for adding something to a session that has no record."""
        return self._unavailable("it has no record yet: append to its journal first")

    def close(self) -> None:
        """Let go of what was read. May be called twice."""
        self._is_closed = True
        self._known = None

    def _unavailable(self, reason: str) -> UnavailableError:
        return UnavailableError(f"session {self._session_id!r}: {reason}")

    def _adopt(self, manifest: Manifest, version: Version) -> None:
        self._known = manifest, version
        self.incarnation = manifest.incarnation
        self.has_begun = True

    def _looked_up(self, tried: Manifest, objects: Collection[str], failure: Exception) -> Manifest | None:
        """Return the manifest as it is now if a put of it took effect without saying so, ``None`` if it never will.

        What the driver repeats is refused the second time. A put without an answer that is not found may still take effect:
        then *failure* is raised, and its objects stay.
        """
        has_answer = isinstance(failure, RejectedError)
        self._known = None
        try:
            current = self.refresh()
        except UnavailableError as error:
            self._remove_if_deleted(objects)
            raise (error if has_answer else failure) from None
        if current is not None and current.incarnation == tried.incarnation:
            if tried.writes[-1] in current.writes:
                return current
            if current.revision - tried.revision >= WRITES:
                reason = "others wrote so often that nobody knows whether this was done: refresh and look"
                raise self._unavailable(reason)
        if not has_answer:
            raise failure
        # The version that it was to replace never comes back, so nothing will ever refer to its objects.
        with suppress(UnavailableError):  # what stays is in nobody's way, and goes with the session
            self.io.delete(objects)
        return None

    def _remove_if_deleted(self, paths: Collection[str]) -> None:
        """Delete objects that were put for a session that is gone by now, as far as that can be told and done."""
        with suppress(StoreError, DamagedLineError):
            found = self.io.find(self.manifest_path) if paths else None
            if found is None or self._codec.decode(found.body).incarnation != self.incarnation:
                self.io.delete(paths)


def manifests_path(tenant: str) -> str:
    """Return the folder of the manifests of a tenant."""
    return f"{file_name(tenant)}/manifests"
