"""Opening a store by its URL."""

import re

from memci.archive.stores.contract import Store
from memci.archive.stores.file import FileStore, check_durability
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.postgres import PostgresStore
from memci.archive.stores.sqlite import SqliteStore
from memci.errors import ConfigError

_SCHEMES = (
    "file:./directory, file:/absolute/directory, sqlite:///file.db, sqlite:////absolute/file.db, "
    "postgresql://user:password@host/database, s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, "
    "redis://host:6379/0?store=<URL of the store behind it> or memory:"
)
_USER = re.compile(r"//.*@", re.DOTALL)
_PARAMETERS = re.compile(r"\?.*", re.DOTALL)


def open_store(url: str, durability: str = "fsync") -> Store:
    """Open the store that a URL names; nothing is read or written yet.

    ``file:./chats`` is relative to the working directory as it is now, ``file:/srv/chats`` and ``file:///srv/chats`` are
    absolute; what follows the scheme is taken as it is, without percent-decoding. ``sqlite:///chats.db`` is relative,
    ``sqlite:////srv/chats.db`` absolute, and taken as it is too. ``memory:`` is a new, empty store.
    ``postgresql://`` is what libpq takes, with parameters of memci's own (see ``PostgresStore``).
    ``redis://host:6379/0?store=…`` (``rediss:``, ``redis+unix:``) is a working tier before the store whose URL it names,
    percent-encoded.
    ``s3://bucket/prefix``, ``gs://bucket/prefix`` and ``az://container/prefix`` are objects; docs/stores.md has their options.

    Raises:
        ConfigError: The URL or the durability is not a known one; its path is ``store`` or ``durability``.
    """
    checked = check_durability(durability)
    scheme, colon, rest = url.partition(":")
    match scheme, colon:
        case "file", ":":
            return FileStore(_directory(url, rest), checked)
        case "sqlite", ":":
            return SqliteStore(_database(url, rest), checked)
        case "postgresql" | "postgres", ":" if rest.startswith("//"):
            return PostgresStore(url, checked)
        case "s3" | "gs" | "az", ":":
            from memci.archive.stores.object import ObjectStore  # noqa: PLC0415 (loads threads, which the others do not need)

            return ObjectStore.from_url(url, checked)
        case "redis" | "rediss" | "redis+unix", ":" if rest.startswith("//"):
            from memci.archive.stores.tiered import TieredStore  # noqa: PLC0415 (for those who have a tier)

            return TieredStore.from_url(url, checked, open_store)
        case "memory", ":" if not rest:
            return MemoryStore()
        case _:
            message = f"{shown_url(url)!r} is no store: give {_SCHEMES}"
            raise ConfigError(message, path="store")


def shown_url(url: str) -> str:
    """Return a URL as an error or a log may show it: without user and parameters, as these may hold passwords and keys."""
    scheme, _, _ = url.partition(":")
    return url if scheme in {"file", "sqlite"} else _PARAMETERS.sub("?…", _USER.sub("//…@", url))


def _directory(url: str, rest: str) -> str:
    path = rest.removeprefix("//") if rest.startswith("///") else rest
    if not path or path.startswith("//") or "\0" in path:
        message = f"{url!r} names no directory of this machine: give {_SCHEMES}"
        raise ConfigError(message, path="store")
    return path


def _database(url: str, rest: str) -> str:
    path = rest.removeprefix("///")
    if path == rest or not path or path.endswith("/") or path.startswith("//") or "\0" in path:
        message = f"{url!r} names no file of this machine: give {_SCHEMES}"
        raise ConfigError(message, path="store")
    return path
