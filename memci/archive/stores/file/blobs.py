"""Large data of a tenant as files, each once, and beside it a small file for each session that refers to it.

::

    <tenant>/blobs/<SHA-256>             the data
                   <SHA-256>.<session>   the last record that the session put it for
                   lock                  taken by whoever adds or removes
"""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress

from memci.archive.disk import take_lock
from memci.archive.stores.file.journal import FileJournal
from memci.archive.stores.file.session import LOCK, SessionFiles


class FileBlobs:
    """Implements ``memci.archive.stores.contract.Blobs``. A reference is safe before the data, and goes before it."""

    def __init__(self, files: SessionFiles, journal: FileJournal) -> None:
        self._files = files
        self._journal = journal
        self._io = files.io
        self._suffix = f".{files.name}"
        self._is_settled = False

    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:
        """Keep blobs for records up to *seq*. New ones cost two syncs each, and there is one for all; copies cost none."""
        files = self._files
        with files.reported(self._files.blobs):
            if not seq and all(self._seq(name) >= 0 and self._read(name) == blob for name, blob in blobs.items()):
                return blobs  # what records hold is safe, and all others are copies
        with self._journal.locked(files.blobs), self._locked():
            made: list[str] = []
            try:
                for name, blob in blobs.items():
                    known, stored = self._seq(name), self._read(name)
                    made += [name + self._suffix] * (known < 0) + [name] * (stored is None)
                    if known < seq:
                        files.write_file([b"%d" % seq], self._path(name + self._suffix), sync=True)
                    if stored != blob:
                        files.write_file([blob], self._path(name), sync=True)
                if not self._is_settled:  # whoever made the directory may have died before its name was safe
                    files.sync(files.tenant_directory)
                    files.sync(files.root)
                    self._is_settled = True
                files.sync(files.blobs)  # whoever made what is there may have died before
            except OSError:
                for name in reversed(made):  # nobody may take what is not safe for what is there
                    with suppress(OSError):
                        files.unlink(self._path(name))
                raise
        return blobs

    def find(self, name: str) -> bytes | None:
        """Return a blob, or ``None`` where there is none."""
        with self._files.reported(self._files.blobs):
            return self._read(name)

    def names(self) -> Iterator[str]:
        """Yield the names of the blobs that the session refers to, in no order. O(blobs of the tenant)."""
        with self._files.reported(self._files.blobs):
            yield from self._own()

    def drop(self, names: Collection[str], seq: int) -> None:
        """Forget references for records up to *seq*, and files without any. One sync. O(blobs of the tenant)."""
        with self._journal.locked(self._files.blobs), self._locked():
            self._forget([name for name in names if self._seq(name) <= seq])

    def forget_all(self) -> None:
        """Forget all references of the session, which is being deleted, under its lock. Raises ``OSError``."""
        if self._files.list_names(self._files.blobs):
            with self._locked():
                self._forget(self._own())

    def _forget(self, names: Collection[str]) -> None:
        """Remove references, and all data without any, under both locks."""
        for name in names:
            self._files.unlink(self._path(name + self._suffix))
        found = self._files.list_names(self._files.blobs)
        referred = {name.partition(".")[0] for name in found if "." in name}
        for name in found:
            if "." not in name and name not in referred and name != LOCK:
                self._files.unlink(self._path(name))
        self._files.sync(self._files.blobs)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the tenant's blobs, under that of the session."""
        self._files.make_directory(self._files.blobs)
        fd = self._io.open(self._path(LOCK), os.O_RDWR | os.O_CREAT)
        try:
            take_lock(fd, self._io.wait_s, self._io.lock)
            yield
        finally:
            self._io.close(fd)

    def _seq(self, name: str) -> int:
        """Return the record that the session put a blob for last, -1 for none."""
        text = self._read(name + self._suffix)
        return -1 if text is None else int(text) if text.isdigit() else 0

    def _own(self) -> list[str]:
        found = self._files.list_names(self._files.blobs)
        return [name.removesuffix(self._suffix) for name in found if name.endswith(self._suffix)]

    def _read(self, name: str) -> bytes | None:
        return self._files.find_file(self._files.blobs, name)

    def _path(self, name: str) -> str:
        return f"{self._files.blobs}/{name}"
