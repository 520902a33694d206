"""Pages and snapshots of one session in an object store."""

from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256

from memci.archive.stores.names import check_page_name, is_page_name
from memci.archive.stores.objects.manifest import Change, Manifest, Planner, Snapshot
from memci.archive.stores.objects.opening import BLOBS, PAGES, SNAPSHOTS, Opening
from memci.archive.stores.record_codec import DamagedLineError
from memci.archive.stores.thinning import superfluous
from memci.errors import UnavailableError


class ObjectPages:
    """Implements ``memci.archive.stores.contract.Pages``: an object for each page."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def put(self, pages: Mapping[str, bytes]) -> None:
        """Write pages, over older ones of the same name: n + 2 requests, of which up to eight are under way at a time.

        The manifest is looked at before and after, so that a page of a session that is deleted meanwhile does not stay.

        Raises:
            InvalidIdError: A name is no page's; nothing was written.
            UnavailableError: The session was deleted or has no record yet, or not all of them are safe; call again.
        """
        opening = self._opening
        opening.check_writable()
        checked = {check_page_name(name): page for name, page in pages.items()}
        if not checked:
            return
        opening.begun()
        objects = {opening.path(PAGES, name): page for name, page in checked.items()}
        opening.io.put_each(objects)
        try:
            opening.refresh()
        except UnavailableError:
            opening.remove_if_deleted(objects)
            raise

    def find(self, name: str) -> bytes | None:
        """Return the bytes of a page, or ``None`` where there is none. One request.

        Raises:
            InvalidIdError: The name is no page's.
            UnavailableError: The provider did not answer.
        """
        opening = self._opening
        opening.check_open()
        check_page_name(name)
        if opening.latest() is None:
            return None
        found = opening.io.find(opening.path(PAGES, name))
        return None if found is None else found.body

    def names(self) -> Iterator[str]:
        """Yield the names of all pages, in no order; other objects are passed over. One request for each thousand."""
        opening = self._opening
        opening.check_open()
        if opening.latest() is None:
            return
        for path in opening.io.names(opening.path(PAGES)):
            name = path.rpartition("/")[2]
            if is_page_name(name):
                yield name

    def remove(self, names: Collection[str]) -> None:
        """Delete pages; names that are not there are passed over. Two requests for up to a thousand of them.

        Raises:
            InvalidIdError: A name is no page's; nothing was deleted.
            UnavailableError: The session was deleted, or not all of them are known to be gone; call again.
        """
        opening = self._opening
        opening.check_writable()
        wanted = [check_page_name(name) for name in names]
        if wanted and opening.refresh() is not None:
            opening.io.delete([opening.path(PAGES, name) for name in wanted])


class ObjectBlobs:
    """Implements ``memci.archive.stores.contract.Blobs``: an object for each blob and record that brings it.

    No two sessions share an object, and no two records: there is nothing here by which those who add and those who delete could
    keep out of each other's way.
    """

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:
        """Keep blobs for records up to *seq*, none of a session that has no record yet; n + 2 requests.

        Raises:
            UnavailableError: The session was deleted, or not all of them are safe; call again.
        """
        opening = self._opening
        opening.check_writable()
        if opening.refresh() is None:
            return ()
        known = set() if seq else set(self.names())
        objects = {opening.path(BLOBS, name, str(seq)): blob for name, blob in blobs.items() if name not in known}
        opening.io.put_each(objects)
        try:
            opening.refresh()
        except UnavailableError:
            opening.remove_if_deleted(objects)
            raise
        return blobs

    def find(self, name: str) -> bytes | None:
        """Return a blob, or ``None`` where there is none. Two requests.

        Raises:
            UnavailableError: The session was deleted, or the provider did not answer.
        """
        opening = self._opening
        opening.check_open()
        if opening.latest() is None:
            return None
        data = None
        for path in opening.io.names(opening.path(BLOBS, name)):
            found = opening.io.find(path)
            if found is not None:
                data = found.body
                if sha256(data).hexdigest() == name:
                    break
        return data

    def names(self) -> Iterator[str]:
        """Yield the names of the blobs that the session refers to, in no order. One request for each thousand."""
        opening = self._opening
        opening.check_open()
        if opening.latest() is not None:
            yield from {path.split("/")[-2] for path in opening.io.names(opening.path(BLOBS))}

    def drop(self, names: Collection[str], seq: int) -> None:
        """Delete what was put for records up to *seq*.

        Raises:
            UnavailableError: The session was deleted, or not all of them are known to be gone; call again.
        """
        opening = self._opening
        opening.check_writable()
        if opening.refresh() is not None:
            found = (path.rsplit("/", 2) for name in names for path in opening.io.names(opening.path(BLOBS, name)))
            opening.io.delete(["/".join(parts) for parts in found if int(parts[-1]) <= seq])


class ObjectSnapshots:
    """Implements ``memci.archive.stores.contract.Snapshots``: an object for each state, which the manifest names."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def put(self, seq: int, body: bytes) -> None:
        """Keep a state; older ones are thinned out, so that their number grows with the logarithm of the history.

        Three requests: the state is put, the manifest names it, and those that are thinned out are deleted.

        Raises:
            UnavailableError: The session was deleted or has no record yet, or it is not known whether the state is kept.
        """
        opening = self._opening
        opening.check_writable()
        opening.begun(again=False)
        name = f"{seq}-{opening.new_id()}"
        path = opening.path(SNAPSHOTS, name)
        opening.io.put(path, opening.lines.encode_snapshot(seq, body))
        former: list[str] = []

        def plan(planner: Planner, base: Manifest) -> Change:
            others = [snapshot for snapshot in base.snapshots if snapshot.seq != seq]
            dropped = set(superfluous([seq, *(snapshot.seq for snapshot in others)]))
            kept = [snapshot for snapshot in (*others, Snapshot(seq, name)) if snapshot.seq not in dropped]
            former[:] = [snapshot.name for snapshot in base.snapshots if snapshot not in kept]
            if seq in dropped:
                former.append(name)
            return planner.keep(kept)

        try:
            opening.change(plan)
        except UnavailableError:
            opening.remove_if_deleted([path])
            raise
        self._delete(former)

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        """Return the newest undamaged state with ``seq <= at_most``, or ``None``. Two requests, and one for each damaged one.

        Raises:
            UnavailableError: The session was deleted, or the provider did not answer.
        """
        self._opening.check_open()
        manifest = self._opening.refresh()
        for snapshot in reversed(manifest.snapshots if manifest else ()):
            if at_most is None or snapshot.seq <= at_most:
                body = self._read(snapshot)
                if isinstance(body, bytes):
                    return snapshot.seq, body
        return None

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each damaged snapshot, oldest first."""
        self._opening.check_open()
        manifest = self._opening.refresh()
        for snapshot in manifest.snapshots if manifest else ():
            body = self._read(snapshot)
            if isinstance(body, DamagedLineError):
                yield f"{self._opening.path(SNAPSHOTS, snapshot.name)}: {body}; it is not used and can be deleted"

    def clear(self) -> None:
        """Delete all of them, damaged ones and those that a crash left too.

        Raises:
            UnavailableError: The session was deleted, or not all of them are known to be gone; call again.
        """
        opening = self._opening
        opening.check_writable()
        manifest = opening.refresh()
        if manifest is None:
            return
        if manifest.snapshots:
            opening.change(lambda planner, base: planner.keep(()) if base.snapshots else None)
        opening.io.delete(list(opening.io.names(opening.path(SNAPSHOTS))))

    def _read(self, snapshot: Snapshot) -> bytes | DamagedLineError:
        opening = self._opening
        found = opening.io.find(opening.path(SNAPSHOTS, snapshot.name))
        if found is None:
            return DamagedLineError("the object is missing")
        try:
            return opening.lines.decode_snapshot(found.body, snapshot.seq)
        except DamagedLineError as error:
            return error

    def _delete(self, names: Collection[str]) -> None:
        self._opening.io.delete([self._opening.path(SNAPSHOTS, name) for name in names])
