"""Files of conversations from elsewhere: what kind a file is of, and reading it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from memci.adapters.importing import chatgpt, claude
from memci.adapters.importing.draft import refuse
from memci.adapters.importing.imported import Imported
from memci.adapters.importing.transcript import transcript
from memci.errors import ConfigError, missing_extra, shown
from memci.messages import codec

Source: TypeAlias = Literal["auto", "chatgpt", "claude", "transcript", "agents-sqlite"]

_SQLITE, _ZIP = b"SQLite format 3\0", b"PK\3\4"
_KEYS = {"chatgpt": "mapping", "claude": "chat_messages"}
_READERS: dict[str, tuple[Callable[..., Iterator[Imported]], str]] = {
    "chatgpt": (chatgpt.conversations, "openai"),
    "claude": (claude.conversations, "anthropic"),
}


def read_file(path: Path, source: Source = "auto", *, to: str | None = None) -> Iterator[Imported]:
    """Yield the conversations of a file, in a wire format: by default the one that is nearest to the source.

    *source* says what wrote the file; ``auto`` tells it by what it holds.

    Raises:
        ConfigError: The file cannot be read, or there is no such source.
        InvalidMessageError: It is damaged, or of another shape; ``path`` is the place in it.
    """
    if source not in get_args(Source):
        message = f"there is no source {shown(source)}: there is {', '.join(get_args(Source))}"
        raise ConfigError(message, path="source")
    try:
        with path.open("rb") as file:
            head = file.read(len(_SQLITE))
            data = head if head == _SQLITE else head + file.read()
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise ConfigError(message, path=str(path)) from error
    if data.startswith(_ZIP):
        message = "it is a ZIP archive: unpack it, and give the conversations.json that is in it"
        raise ConfigError(message, path=str(path))
    document, found = (None, source) if source != "auto" else _recognised(data)
    if found == "agents-sqlite":
        try:
            from memci.adapters.importing.agents_sdk import database  # noqa: PLC0415 (an extra)
        except ModuleNotFoundError as error:
            raise missing_extra(error, "openai-agents") from error
        yield from database(path, to=to or "responses")
    elif found in _READERS:
        read, nearest = _READERS[found]
        yield from read(_decoded(data) if document is None else document, to=to or nearest)
    else:
        yield transcript(data, path.stem, to=to)


def _recognised(data: bytes) -> tuple[Any, str]:
    """Return a file's JSON document, where it is one of an export, and what kind it is of."""
    if data.startswith(_SQLITE):
        return None, "agents-sqlite"
    try:
        document = codec.decode_foreign(data.removeprefix(b"\xef\xbb\xbf"))
    except ValueError:
        return None, "transcript"
    first = document[0] if isinstance(document, list) and document else document
    found = next((name for name, key in _KEYS.items() if isinstance(first, dict) and key in first), "transcript")
    return document, found


def _decoded(data: bytes) -> Any:  # noqa: ANN401 (a JSON value)
    try:
        return codec.decode_foreign(data.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        refuse("the file", f"it is no JSON ({error})")
