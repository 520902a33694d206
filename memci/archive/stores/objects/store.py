"""Sessions in a bucket of S3, Google Cloud Storage, Azure or what speaks their protocols, through obstore.

A session is one small object, its manifest, that every commit replaces by a conditional put, and immutable objects that it
names; ``memci.archive.stores.objects.opening`` shows where they lie.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakSet

from memci.archive.stores.names import check_identifier, file_name, find_identifier, is_hashed
from memci.archive.stores.objects.cache import IndexCache
from memci.archive.stores.objects.io import ObjectIo
from memci.archive.stores.objects.journal import ObjectJournal
from memci.archive.stores.objects.manifest import owner_of
from memci.archive.stores.objects.opening import Opening, manifest_path, manifests_path, parts_path
from memci.archive.stores.objects.pages import ObjectBlobs, ObjectPages, ObjectSnapshots
from memci.archive.stores.objects.url import connect, parse

if TYPE_CHECKING:
    import os

    from memci.archive.catalogue.page_index import PageIndex


class ObjectSession:
    """Implements ``memci.archive.stores.contract.SessionStore``. For one thread at a time.

    Attributes:
        journal: The truth.
        pages: Raw pages.
        snapshots: Cached states.
        blobs: Large data.
        durability: ``fsync``.
    """

    def __init__(self, opening: Opening, cache: IndexCache, durability: str) -> None:
        self.journal = ObjectJournal(opening)
        self.pages = ObjectPages(opening)
        self.snapshots = ObjectSnapshots(opening)
        self.blobs = ObjectBlobs(opening)
        self.durability = durability
        self._opening = opening
        self._cache = cache
        self._index: PageIndex | None = None
        self._indexed = ""

    @property
    def index(self) -> "PageIndex":
        """Page facts and search, opened when first asked for: a file of this machine, or empty and in memory."""
        opening = self._opening
        opening.check_open()
        if self._index is None:
            opening.latest()
            self._indexed = opening.incarnation
            self._index = self._cache.open(self._indexed)
        return self._index

    def indexed_seq(self) -> int:
        """Return 0: the index tells nothing of the journal."""
        self._opening.check_open()
        return 0

    def close(self) -> None:
        """Let go of the session, which stays in the store. May be called twice."""
        if self._index is not None:
            self._index.close()
            self._index = None
            if not self._opening.has_begun or self._opening.incarnation != self._indexed:
                self._cache.remove(self._indexed)
        self._opening.close()


class ObjectStore:
    """Implements ``memci.archive.stores.contract.Store`` on objects. Any number of machines may use it at once.

    Different sessions may be used by different threads at once. Open it in the process that uses it: a driver that has
    made a request does not survive a fork.

    Args:
        io: The requests; ``from_url`` makes it.
        index_dir: A directory of this machine for the indexes, which are not stored in the bucket; ``None`` keeps each
            in memory while its session is open.

    Attributes:
        durability: ``fsync``: the provider has acknowledged it. There is no weaker one.
        io: As given; its counts tell what was done.
    """

    def __init__(self, io: ObjectIo, index_dir: "str | os.PathLike[str] | None" = None) -> None:
        self.durability: str = "fsync"
        self.io = io
        self._index_dir = index_dir
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
        """Open what is stored of a session; no request is made before something is asked for.

        Raises:
            InvalidIdError: The id or tenant is not text, is empty, or UTF-8 cannot encode it.
        """
        check_identifier(tenant, "tenant")
        check_identifier(session_id, "session id")
        opening = Opening(self.io, tenant, session_id, read_only=read_only)
        session = ObjectSession(opening, self._cache(tenant, session_id, read_only=read_only), self.durability)
        self._opened.add(session)
        return session

    def sessions(self, tenant: str) -> Iterator[str]:
        """Yield the ids of the sessions that have at least one record, in no order.

        One request for each thousand, and one for each id that is too long for a name.

        Raises:
            InvalidIdError: See ``open``.
            UnavailableError: The provider did not answer.
        """
        for path in self.io.names(manifests_path(check_identifier(tenant, "tenant"))):
            name = path.rpartition("/")[2]
            session_id = self._noted_id(tenant, path) if is_hashed(name) else find_identifier(name)
            if session_id is not None and file_name(session_id) == name:
                yield session_id

    def delete(self, tenant: str, session_id: str) -> None:
        """Remove all that is stored of a session; nothing happens where there is none. Durable once it returns.

        The manifest goes first, and with it the session; what a crash then leaves goes with the next call. One request for
        the manifest, one to see whether the id began anew, and two for each thousand other objects. The index goes from this
        machine only.

        Raises:
            InvalidIdError: See ``open``.
            UnavailableError: Something is left; call again.
        """
        check_identifier(tenant, "tenant")
        check_identifier(session_id, "session id")
        self.io.delete([manifest_path(tenant, session_id)])
        left = list(self.io.names(parts_path(tenant, session_id)))
        if left:
            # Objects of a session come after its manifest: those listed are of one that is there by now, or of none.
            opening = Opening(self.io, tenant, session_id, read_only=True)
            kept = opening.path("") if opening.refresh() else None
            self.io.delete([path for path in left if kept is None or not path.startswith(kept)])
        self._cache(tenant, session_id, read_only=False).remove_all()

    def close(self) -> None:
        """Close the sessions that are still open, and end the threads. May be called twice."""
        for session in list(self._opened):
            session.close()
        self.io.close()

    def _cache(self, tenant: str, session_id: str, *, read_only: bool) -> IndexCache:
        return IndexCache(self._index_dir, tenant, session_id, read_only=read_only)

    def _noted_id(self, tenant: str, path: str) -> str | None:
        found = self.io.find(path)
        owner = owner_of(found.body) if found else None
        return owner[1] if owner is not None and owner[0] == tenant else None
