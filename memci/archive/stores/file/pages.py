"""Page files and snapshots of one session as files."""

from collections.abc import Collection, Iterator, Mapping

from memci.archive.disk import FileIo
from memci.archive.stores.file.session import PAGES, SNAPSHOTS, SessionFiles
from memci.archive.stores.names import check_page_name, is_page_name
from memci.archive.stores.record_codec import DamagedLineError, LineCodec
from memci.archive.stores.thinning import superfluous

_SUFFIX = ".json"


class FilePages:
    """Implements ``memci.archive.stores.contract.Pages``: one file a page, readable with any editor."""

    def __init__(self, files: SessionFiles) -> None:
        self._files = files
        self._is_settled = False

    def put(self, pages: Mapping[str, bytes]) -> None:
        """Write page files, over older ones of the same name; n pages cost n + 1 syncs, the first of an opening one more.

        A crash leaves each file as it was or as it should be.

        Raises:
            InvalidIdError: A name is no page's; nothing was written.
            UnavailableError: Not all of them are safe; call again.
        """
        files = self._files
        files.check_writable()
        names = [check_page_name(name) + _SUFFIX for name in pages]
        if not names:
            return
        with files.locked(PAGES):
            if files.make_directory(PAGES) or not self._is_settled:
                self._settle()
            for name, page in zip(names, pages.values(), strict=True):
                files.write_file(page, PAGES, name, sync=True)
            files.sync_directory(files.path(PAGES))

    def _settle(self) -> None:
        """Make the directory of the pages safe, once in the life of this object, under the lock. Raises ``OSError``.

        Whoever made it, or began the journal, may have died before its name was safe.
        """
        files = self._files
        fd = files.open_journal()
        if fd is None or not files.read_journal(1, 0):
            files.settle()
        else:
            files.sync_directory(files.directory)
        self._is_settled = True

    def find(self, name: str) -> bytes | None:
        """Return the bytes of a page file, or ``None`` where there is none.

        Raises:
            InvalidIdError: The name is no page's.
            UnavailableError: The file cannot be read.
        """
        self._files.check_open()
        file = check_page_name(name) + _SUFFIX
        with self._files.reported(PAGES, file):
            return self._files.find_file(PAGES, file)

    def names(self) -> Iterator[str]:
        """Yield the names of all page files, in no order; other files are passed over."""
        self._files.check_open()
        with self._files.reported(PAGES):
            files = self._files.list_names(PAGES)
        for file in files:
            name = file.removesuffix(_SUFFIX)
            if name != file and is_page_name(name):
                yield name

    def remove(self, names: Collection[str]) -> None:
        """Delete page files; names that are not there are passed over. One sync.

        Raises:
            InvalidIdError: A name is no page's; nothing was deleted.
            UnavailableError: Not all of them are known to be gone; call again.
        """
        files = self._files
        files.check_writable()
        wanted = {check_page_name(name) + _SUFFIX for name in names}
        with files.reported(PAGES):
            found = wanted.intersection(files.list_names(PAGES))
        if found:
            with files.locked(PAGES):
                for file in sorted(found.intersection(files.list_names(PAGES))):
                    files.remove_file(PAGES, file)
                files.sync_directory(files.path(PAGES))


class FileSnapshots:
    """Implements ``memci.archive.stores.contract.Snapshots``: one file a state, replaced whole and never synced."""

    def __init__(self, files: SessionFiles, codec: LineCodec, io: FileIo) -> None:
        self._files = files
        self._codec = codec
        self._io = io

    def put(self, seq: int, body: bytes) -> None:
        """Keep a state; older ones are thinned out, so that their number grows with the logarithm of the history.

        Raises:
            UnavailableError: It is not kept.
        """
        self._files.check_writable()
        with self._files.locked(SNAPSHOTS):
            self._files.make_directory(SNAPSHOTS)
            self._files.write_file(self._codec.encode_snapshot(seq, body), SNAPSHOTS, f"{seq}{_SUFFIX}", sync=False)
            for old in superfluous(self._seqs()):
                self._io.unlink(self._files.path(SNAPSHOTS, f"{old}{_SUFFIX}"))

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        """Return the newest undamaged state with ``seq <= at_most``, or ``None``.

        Raises:
            UnavailableError: The files cannot be read.
        """
        self._files.check_open()
        with self._files.reported(SNAPSHOTS):
            for seq in sorted(self._seqs(), reverse=True):
                if at_most is None or seq <= at_most:
                    body = self._read(seq)
                    if isinstance(body, bytes):
                        return seq, body
        return None

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each damaged snapshot, oldest first."""
        self._files.check_open()
        with self._files.reported(SNAPSHOTS):
            for seq in sorted(self._seqs()):
                body = self._read(seq)
                if isinstance(body, DamagedLineError):
                    yield f"{self._files.place(SNAPSHOTS, f'{seq}{_SUFFIX}')}: {body}; it is not used and can be deleted"

    def clear(self) -> None:
        """Delete all of them, damaged ones too. One sync.

        Raises:
            UnavailableError: Not all of them are known to be gone; call again.
        """
        files = self._files
        files.check_writable()
        with files.reported(SNAPSHOTS):
            found = files.list_names(SNAPSHOTS)
        if found:
            with files.locked(SNAPSHOTS):
                for file in files.list_names(SNAPSHOTS):
                    files.remove_file(SNAPSHOTS, file)
                files.sync_directory(files.path(SNAPSHOTS))

    def _seqs(self) -> list[int]:
        stems = (name.removesuffix(_SUFFIX) for name in self._files.list_names(SNAPSHOTS) if name.endswith(_SUFFIX))
        return [int(stem) for stem in stems if stem.isdecimal() and stem == str(int(stem))]

    def _read(self, seq: int) -> bytes | DamagedLineError | None:
        """Return the body, what is wrong with it, or ``None`` where the file went meanwhile. Raises ``OSError``."""
        line = self._files.find_file(SNAPSHOTS, f"{seq}{_SUFFIX}")
        if line is None:
            return None
        try:
            return self._codec.decode_snapshot(line, seq)
        except DamagedLineError as error:
            return error
