"""What was measured before, so that it is not measured again as long as nothing changed that it depends on."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import attrs

from memci.errors import UnavailableError
from memci.messages import codec
from memci.quality.conversation import Conversation
from memci.quality.engines import EngineSpec
from memci.quality.playing import COUNTER, Played

_PACKAGE = Path(__file__).parent.parent
_TELLING = {"quality/picture.py", "quality/report.py"}  # they say what was measured, and decide nothing of it


class Cache:
    """Results in files, each named by the hash of all that decides it: conversation, engine, its settings and code, and budget.

    Several processes may share it. What cannot be read is measured again.

    Args:
        directory: Where the files are; it is made when the first one is written.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._code: dict[tuple[str, ...], str] = {}

    def find(self, conversation: Conversation, spec: EngineSpec, budget: int) -> Played | None:
        """Return what was measured, or ``None``. O(size of the conversation)."""
        try:
            return Played.from_mapping(codec.decode(self._path(conversation, spec, budget).read_bytes()))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, conversation: Conversation, spec: EngineSpec, budget: int, played: Played) -> None:
        """Keep what was measured.

        Raises:
            UnavailableError: It cannot be written.
        """
        path = self._path(conversation, spec, budget)
        written = path.with_suffix(f".{os.getpid()}")  # of this process alone; readers see a whole file or none
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            written.write_bytes(codec.encode(played.to_mapping()))
            written.replace(path)
        except OSError as error:
            message = f"results cannot be kept in {path.parent} ({error.strerror}): measure with --no-cache"
            raise UnavailableError(message) from error

    def _path(self, conversation: Conversation, spec: EngineSpec, budget: int) -> Path:
        if spec.code not in self._code:
            self._code[spec.code] = code_hash(_PACKAGE, spec.code)
        decides = [attrs.asdict(conversation), COUNTER, spec.name, spec.settings, self._code[spec.code], budget]
        return self._directory / f"{hashlib.sha256(codec.encode(decides)).hexdigest()}.json"


def code_hash(root: Path, patterns: Iterable[str]) -> str:
    """Return a hash of the names and contents of the files below *root* that match. O(their size)."""
    found = {path.relative_to(root).as_posix(): path for pattern in patterns for path in root.glob(pattern)}
    digest = hashlib.sha256()
    for name in sorted(found.keys() - _TELLING):
        digest.update(f"{name}\n".encode())
        digest.update(hashlib.sha256(found[name].read_bytes()).digest())
    return digest.hexdigest()
