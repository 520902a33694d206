"""Page files and snapshots of one session as files."""

from collections.abc import Collection, Iterator, Mapping

from memci.archive.stores.file.journal import FileJournal
from memci.archive.stores.file.session import JSON, SessionFiles
from memci.archive.stores.names import check_page_name, is_page_name
from memci.archive.stores.record_codec import DamagedLineError, LineCodec
from memci.archive.stores.thinning import superfluous


class FilePages:
    """Implements ``memci.archive.stores.contract.Pages``: one file a page, readable with any editor."""

    def __init__(self, files: SessionFiles, journal: FileJournal) -> None:
        self._files = files
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
        for file in files:
            name = file.removesuffix(JSON)
            if name != file and is_page_name(name):
                yield name

    def remove(self, names: Collection[str]) -> None:
        """Delete page files; names that are not there are passed over. One sync."""
        files = {check_page_name(name) + JSON for name in names}
        with self._journal.locked(self._files.pages):
            self._files.remove_files(self._files.pages, files)


class FileSnapshots:
    """Implements ``memci.archive.stores.contract.Snapshots``: one file a state, replaced whole and never synced."""

    def __init__(self, files: SessionFiles, journal: FileJournal, codec: LineCodec) -> None:
        self._files = files
        self._journal = journal
        self._codec = codec

    def put(self, seq: int, body: bytes) -> None:
        """Keep a state, and remove older ones that are superfluous by now."""
        files = self._files
        with self._journal.locked(files.snapshots):
            files.make_directory(files.snapshots)
            files.write_file([self._codec.encode_snapshot(seq, body)], f"{files.snapshots}/{seq}{JSON}", sync=False)
            for old in superfluous(files.snapshot_seqs()):
                files.unlink(f"{files.snapshots}/{old}{JSON}")

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        """Return the newest undamaged state with ``seq <= at_most``, or ``None``."""
        with self._files.reported(self._files.snapshots):
            for seq in sorted(self._files.snapshot_seqs(), reverse=True):
                body = self._read(seq) if at_most is None or seq <= at_most else None
                if isinstance(body, bytes):
                    return seq, body
        return None

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each damaged snapshot, oldest first."""
        with self._files.reported(self._files.snapshots):
            for seq in sorted(self._files.snapshot_seqs()):
                body = self._read(seq)
                if isinstance(body, DamagedLineError):
                    place = f"{self._files.snapshots}/{seq}{JSON}".removeprefix(f"{self._files.root}/")
                    yield f"{place}: {body}; it is not used and can be deleted"

    def clear(self) -> None:
        """Delete all of them, damaged ones too. One sync."""
        with self._journal.locked(self._files.snapshots):
            self._files.remove_files(self._files.snapshots)

    def _read(self, seq: int) -> bytes | DamagedLineError | None:
        """Return the body, what is wrong with it, or ``None`` where the file went meanwhile. Raises ``OSError``."""
        line = self._files.find_file(self._files.snapshots, f"{seq}{JSON}")
        try:
            return None if line is None else self._codec.decode_snapshot(line, seq)
        except DamagedLineError as error:
            return error
