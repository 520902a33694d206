"""Page files, snapshots and blobs of one session as files."""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress

from memci.archive.disk import take_lock
from memci.archive.stores.file.journal import FileJournal
from memci.archive.stores.file.session import JSON, LOCK
from memci.archive.stores.names import check_page_name, is_page_name
from memci.archive.stores.record_codec import DamagedLineError
from memci.archive.stores.thinning import superfluous


class FilePages:
    """Implements ``memci.archive.stores.contract.Pages``: one file a page, readable with any editor."""

    def __init__(self, journal: FileJournal) -> None:
        self._files = journal.files
        self._journal = journal
        self._is_settled = False

    def put(self, pages: Mapping[str, bytes]) -> None:
        """Write page files, over older ones of the same name; n pages cost n + 1 syncs, the first of an opening one more.

        A crash leaves each file as it was or as it should be.
        """
        files = self._files
        names = [check_page_name(name) + JSON for name in pages]
        if not names:
            return
        with self._journal.locked(files.pages):
            if files.make_directory(files.pages) or not self._is_settled:
                # Whoever made it, or began the journal, may have died before its name was safe.
                if self._journal.size():
                    files.sync(files.directory)
                else:
                    files.settle()
                self._is_settled = True
            for name, page in zip(names, pages.values(), strict=True):
                files.write_file([page], f"{files.pages}/{name}", sync=True)
            files.sync(files.pages)

    def find(self, name: str) -> bytes | None:
        """Return the bytes of a page file, or ``None`` where there is none."""
        file = check_page_name(name) + JSON
        with self._files.reported(f"{self._files.pages}/{file}"):
            return self._files.find_file(self._files.pages, file)

    def names(self) -> Iterator[str]:
        """Yield the names of all page files, in no order; other files are passed over."""
        with self._files.reported(self._files.pages):
            files = self._files.list_names(self._files.pages)
        names = (file.removesuffix(JSON) for file in files if file.endswith(JSON))
        yield from filter(is_page_name, names)

    def remove(self, names: Collection[str]) -> None:
        """Delete page files; names that are not there are passed over. One sync."""
        wanted = {check_page_name(name) + JSON for name in names}
        with self._journal.locked(self._files.pages):
            self._files.remove_files(self._files.pages, wanted)


class FileSnapshots:
    """Implements ``memci.archive.stores.contract.Snapshots``: one file a state, replaced whole and never synced."""

    def __init__(self, journal: FileJournal) -> None:
        self._files = journal.files
        self._journal = journal

    def put(self, seq: int, body: bytes) -> None:
        """Keep a state, and remove older ones that are superfluous by now."""
        files = self._files
        with self._journal.locked(files.snapshots):
            files.make_directory(files.snapshots)
            files.write_file([self._journal.codec.encode_snapshot(seq, body)], f"{files.snapshots}/{seq}{JSON}", sync=False)
            for old in superfluous(files.snapshot_seqs()):
                files.unlink(f"{files.snapshots}/{old}{JSON}")

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        """Return the newest undamaged state with ``seq <= at_most``, or ``None``."""
        return next(((seq, body) for seq, body in self._bodies(at_most) if isinstance(body, bytes)), None)

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each damaged snapshot, oldest first."""
        place = self._files.snapshots.removeprefix(f"{self._files.root}/")
        for seq, error in reversed([(seq, body) for seq, body in self._bodies() if not isinstance(body, bytes)]):
            yield f"{place}/{seq}{JSON}: {error}; it is not used and can be deleted"

    def clear(self) -> None:
        """Delete all of them, damaged ones too. One sync."""
        with self._journal.locked(self._files.snapshots):
            self._files.remove_files(self._files.snapshots)

    def _bodies(self, at_most: int | None = None) -> Iterator[tuple[int, bytes | DamagedLineError]]:
        """Yield the states with ``seq <= at_most``, newest first, each with its body or what is wrong with that."""
        files = self._files
        with files.reported(files.snapshots):
            for seq in sorted(files.snapshot_seqs(), reverse=True):
                line = files.find_file(files.snapshots, f"{seq}{JSON}") if at_most is None or seq <= at_most else None
                if line is not None:
                    yield seq, self._decoded(line, seq)

    def _decoded(self, line: bytes, seq: int) -> bytes | DamagedLineError:
        try:
            return self._journal.codec.decode_snapshot(line, seq)
        except DamagedLineError as error:
            return error


class FileBlobs:
    """Implements ``memci.archive.stores.contract.Blobs``: large data of a tenant, each once.

    ::

        <tenant>/blobs/<SHA-256>             the data
                       <SHA-256>.<session>   the last record that the session put it for
                       lock                  taken by whoever adds or removes

    A reference is safe before the data, and goes before it.
    """

    def __init__(self, journal: FileJournal) -> None:
        self._files = journal.files
        self._journal = journal
        self._directory = self._files.blobs
        self._suffix = f".{self._files.name}"
        self._is_settled = False

    def put(self, blobs: Mapping[str, bytes], seq: int) -> Collection[str]:
        """Keep blobs for records up to *seq*. New ones cost two syncs each, and there is one for all; copies cost none."""
        files = self._files
        with files.reported(self._directory):
            if not seq and all(self._seq(name) >= 0 and self._read(name) == blob for name, blob in blobs.items()):
                return blobs  # what records hold is safe, and all others are copies
        with self._journal.locked(self._directory), self._locked():
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
                files.sync(self._directory)  # whoever made what is there may have died before
            except OSError:
                for name in reversed(made):  # nobody may take what is not safe for what is there
                    with suppress(OSError):
                        files.unlink(self._path(name))
                raise
        return blobs

    def find(self, name: str) -> bytes | None:
        """Return a blob, or ``None`` where there is none."""
        with self._files.reported(self._directory):
            return self._read(name)

    def names(self) -> Iterator[str]:
        """Yield the names of the blobs that the session refers to, in no order. O(blobs of the tenant)."""
        with self._files.reported(self._directory):
            yield from self._own()

    def drop(self, names: Collection[str], seq: int) -> None:
        """Forget references for records up to *seq*, and files without any. One sync. O(blobs of the tenant)."""
        with self._journal.locked(self._directory), self._locked():
            self._forget([name for name in names if self._seq(name) <= seq])

    def forget_all(self) -> None:
        """Forget all references of the session, which is being deleted, under its lock. Raises ``OSError``."""
        if self._files.list_names(self._directory):
            with self._locked():
                self._forget(self._own())

    def _forget(self, names: Collection[str]) -> None:
        """Remove references, and all data without any, under both locks."""
        for name in names:
            self._files.unlink(self._path(name + self._suffix))
        found = self._files.list_names(self._directory)
        referred = {LOCK, *(name.partition(".")[0] for name in found if "." in name)}
        for name in found:
            if "." not in name and name not in referred:
                self._files.unlink(self._path(name))
        self._files.sync(self._directory)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the tenant's blobs, under that of the session."""
        io = self._files.io
        self._files.make_directory(self._directory)
        fd = io.open(self._path(LOCK), os.O_RDWR | os.O_CREAT)
        try:
            take_lock(fd, io.wait_s, io.lock)
            yield
        finally:
            io.close(fd)

    def _seq(self, name: str) -> int:
        """Return the record that the session put a blob for last, -1 for none."""
        text = self._read(name + self._suffix)
        return -1 if text is None else int(text) if text.isdigit() else 0

    def _own(self) -> list[str]:
        found = self._files.list_names(self._directory)
        return [name.removesuffix(self._suffix) for name in found if name.endswith(self._suffix)]

    def _read(self, name: str) -> bytes | None:
        return self._files.find_file(self._directory, name)

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"
