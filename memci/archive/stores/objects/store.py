"""Sessions in a bucket of S3, Google Cloud Storage, Azure or what speaks their protocols, through obstore.

A session is one small object, its manifest, that every commit replaces by a conditional put, and immutable objects that it
names; ``memci.archive.stores.objects.opening`` shows where they lie.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from memci.archive.stores.names import check_identifier, file_name, find_identifier, is_hashed
from memci.archive.stores.objects.io import ObjectIo, connect, parse
from memci.archive.stores.objects.manifest import owner_of
from memci.archive.stores.objects.opening import Opening, manifests_path
from memci.archive.stores.objects.session import ObjectSession

if TYPE_CHECKING:
    import os


class ObjectStore:
    """Implements ``memci.archive.stores.contract.Store`` on objects. Any number of machines may use it at once.

    Different sessions may be used by different threads at once. Open it in the process that uses it: a driver that has
    made a request does not survive a fork.

    Args:
        io: The requests.
        index_dir: A directory of this machine for the indexes, which are not stored in the bucket; ``None`` keeps each
            in memory while its session is open.

    Attributes:
        durability: ``fsync``: the provider has acknowledged it. There is no weaker one.
        io: As given; its counts tell what was done.
    """

    def __init__(self, io: ObjectIo, index_dir: "str | os.PathLike[str] | None" = None) -> None:
        self.durability: str = "fsync"
        self.io = io
        self._index_dir = None if index_dir is None else Path(index_dir).absolute()
        self._opened: WeakSet[ObjectSession] = WeakSet()

    @classmethod
    def from_url(cls, url: str, durability: str = "fsync") -> "ObjectStore":
        """Return the store that a URL names, such as ``s3://bucket/prefix?region=eu-central-1``; no request is made yet.

        Credentials are those that the environment has, as obstore finds them: they never stand in the URL.

        Raises:
            ConfigError: The URL cannot be used, or a weaker durability was asked for.
        """
        location = parse(url, durability)
        return cls(ObjectIo(lambda: connect(location)), location.index_dir)

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> ObjectSession:
        """Open what is stored of a session; no request is made before something is asked for."""
        session = ObjectSession(self._opening(tenant, session_id, read_only=read_only), self._index_folder(tenant, session_id))
        self._opened.add(session)
        return session

    def sessions(self, tenant: str) -> Iterator[str]:
        """Yield the ids of all sessions, in no order: a request for each thousand, and one for each id of over 180 bytes."""
        for path in self.io.names(manifests_path(check_identifier(tenant, "tenant"))):
            name = path.rpartition("/")[2]
            session_id = self._noted_id(tenant, path) if is_hashed(name) else find_identifier(name)
            if session_id is not None and file_name(session_id) == name:
                yield session_id

    def delete(self, tenant: str, session_id: str) -> None:
        """Remove all that is stored of a session; nothing happens where there is none. Durable once it returns.

        The manifest goes first, and with it the session; what a crash or an error then leaves goes with the next call. One
        request for the manifest, one to see whether the id began anew, and two for each thousand other objects. The index
        goes from this machine only.
        """
        opening = self._opening(tenant, session_id, read_only=True)
        self.io.delete([opening.manifest_path])
        left = list(self.io.names(opening.parts_path))
        if left:
            # Objects of a session come after its manifest: those listed are of one that is there by now, or of none.
            kept = opening.path("") if opening.refresh() else None
            self.io.delete([path for path in left if kept is None or not path.startswith(kept)])
        folder = self._index_folder(tenant, session_id)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Close the sessions that are still open. May be called twice."""
        for session in list(self._opened):
            session.close()

    def _opening(self, tenant: str, session_id: str, *, read_only: bool) -> Opening:
        checked = check_identifier(tenant, "tenant"), check_identifier(session_id, "session id")
        return Opening(self.io, *checked, read_only=read_only)

    def _index_folder(self, tenant: str, session_id: str) -> Path | None:
        return self._index_dir and self._index_dir / file_name(tenant) / file_name(session_id)

    def _noted_id(self, tenant: str, path: str) -> str | None:
        found = self.io.find(path)
        owner = owner_of(found.body) if found else None
        return owner[1] if owner is not None and owner[0] == tenant else None
