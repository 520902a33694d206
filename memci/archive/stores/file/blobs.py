"""Large data of a tenant as files, each once, and beside it a small file for each session that refers to it.

::

    <tenant>/blobs/<SHA-256>             the data
                   <SHA-256>.<session>   the last record that the session put it for
                   lock                  taken by whoever adds or removes
"""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress

from memci.archive.disk import FileIo, find_file
from memci.archive.stores.file.session import LOCK, SessionFiles


class FileBlobs:
    """Implements ``memci.archive.stores.contract.Blobs``. A reference is safe before the data, and goes before it."""

    def __init__(self, files: SessionFiles, io: FileIo) -> None:
        self._files = files
        self._io = io
        self._directory = files.blobs
        self._tenant = files.blobs.rpartition("/")[0]
        self._root = self._tenant.rpartition("/")[0]
        self._suffix = f".{files.name}"
        self._is_settled = False

    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:
        """Keep blobs for records up to *seq*. New ones cost two syncs each, and there is one for all.

        Raises:
            UnavailableError: Not all of them are safe, or the session was deleted; call again.
        """
        files = self._files
        files.check_writable()
        with files.reported():
            self._refuse_links()
            if not seq and all(self._seq(name) >= 0 and self._size(name) == len(blob) for name, blob in blobs.items()):
                return blobs  # what records hold is safe, and all others are copies
        with files.locked(), self._locked():
            made: list[str] = []
            try:
                for name, blob in blobs.items():
                    known, stored = self._seq(name), find_file(self._io, self._path(name))
                    made += [name + self._suffix] * (known < 0) + [name] * (stored is None)
                    if known < seq:
                        files.write_to(self._path(name + self._suffix), b"%d" % seq, sync=True)
                    if stored != blob:
                        files.write_to(self._path(name), blob, sync=True)
                if not self._is_settled:  # whoever made the directory may have died before its name was safe
                    for path in (self._tenant, self._root):
                        files.sync_directory(path)
                    self._is_settled = True
                files.sync_directory(self._directory)  # whoever made what is there may have died before
            except OSError:
                for name in reversed(made):  # nobody may take what is not safe for what is there
                    with suppress(OSError):
                        self._remove(name)
                raise
        return blobs

    def find(self, name: str) -> bytes | None:
        """Return a blob, or ``None`` where there is none.

        Raises:
            UnavailableError: The file cannot be read.
        """
        self._files.check_open()
        with self._files.reported():
            self._refuse_links()
            return find_file(self._io, self._path(name))

    def names(self) -> Iterator[str]:
        """Yield the names of the blobs that the session refers to, in no order. O(blobs of the tenant)."""
        self._files.check_open()
        with self._files.reported():
            found = self._list()
        yield from (name.removesuffix(self._suffix) for name in found if name.endswith(self._suffix))

    def drop(self, names: Collection[str], seq: int) -> None:
        """Forget references for records up to *seq*, and files without any. One sync. O(blobs of the tenant).

        Raises:
            UnavailableError: It is not known to be done; call again.
        """
        self._files.check_writable()
        with self._files.locked(), self._locked():
            self.forget([name for name in names if self._seq(name) <= seq])

    def forget_all(self) -> None:
        """Forget all references of the session, which is being deleted, under its lock. Raises ``OSError``."""
        if self._list():
            with self._locked():
                self.forget([name.removesuffix(self._suffix) for name in self._list() if name.endswith(self._suffix)])

    def forget(self, names: Collection[str]) -> None:
        """Remove references, and all data without any, under both locks. Raises ``OSError``."""
        for name in names:
            self._remove(name + self._suffix)
        found = self._list()
        referred = {name.partition(".")[0] for name in found if "." in name}
        for name in found:
            if "." not in name and name not in referred and name != LOCK:
                self._remove(name)
        self._files.sync_directory(self._directory)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the tenant's blobs, under that of the session. Raises ``OSError``."""
        self._refuse_links()
        with suppress(FileExistsError):
            self._io.make_directory(self._directory)
        fd = self._io.open(self._path(LOCK), os.O_RDWR | os.O_CREAT)
        try:
            self._io.lock(fd)
            yield
        finally:
            self._io.close(fd)

    def _seq(self, name: str) -> int:
        """Return the record that the session put a blob for last, -1 for none."""
        text = find_file(self._io, self._path(name + self._suffix))
        return -1 if text is None else int(text) if text.isdigit() else 0

    def _size(self, name: str) -> int | None:
        try:
            fd = self._io.open(self._path(name), os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            return self._io.stat(fd).st_size
        finally:
            self._io.close(fd)

    def _remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._io.unlink(self._path(name))

    def _list(self) -> list[str]:
        self._refuse_links()
        try:
            return [entry.name for entry in self._io.list_directory(self._directory)]
        except FileNotFoundError:
            return []

    def _refuse_links(self) -> None:
        """Refuse a directory that is a link, or that one leads to. Raises ``OSError``."""
        self._io.refuse_links(self._root, self._directory)

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"
