"""Opening a store by its URL."""

import os
import re
from typing import TYPE_CHECKING

from memci.archive.stores.contract import Store
from memci.archive.stores.file.store import FileStore, check_durability
from memci.errors import ConfigError

if TYPE_CHECKING:
    from memci.archive.stores.sql.postgres_connections import HostPool

_SCHEMES = (
    "file:./directory, file:/absolute/directory, sqlite:///file.db, sqlite:////absolute/file.db, "
    "postgresql://user:password@host/database, s3://bucket/prefix, gs://bucket/prefix, az://container/prefix, "
    "redis://host:6379/0?store=<URL of another store> or memory:"
)
_USER = re.compile(r"//[^/?]*@")
_PARAMETERS = re.compile(r"\?.*", re.DOTALL)
_SCHEME = re.compile(
    r"(?:file|sqlite|postgres(?:ql)?|s3|gs|az|rediss?|redis\+unix|memory|https?):|[a-z][a-z0-9+.-]*://", re.IGNORECASE
)
_BUCKET = re.compile(r"//[\w.-]+(?:/[^@:?]*)?(?:\?.*)?", re.DOTALL)
_WITH_POOL = ("postgresql", "postgres", "redis", "rediss", "redis+unix")
_PATHS = {"file": re.compile(r"(?://(?=/))?((?!//)[^\0]+)"), "sqlite": re.compile(r"///((?!//)[^\0]*[^\0/])")}
# What a path that is none may hold: a password before a host, or after a name.
_SECRET = re.compile(r":.*@|^//[^/].*@|[?&].*=|(?:pass|pwd|secret|token|key)\w*\s*=", re.DOTALL | re.IGNORECASE)


def open_store(url: str, durability: str = "fsync", pool: "HostPool | None" = None) -> Store:
    """Open the store that a URL names; nothing is read or written yet.

    ``file:./chats`` and ``sqlite:///chats.db`` are relative to the working directory as it is now, ``file:/srv/chats`` and
    ``sqlite:////srv/chats.db`` absolute; all are taken as they are, without percent-decoding. docs/stores.md has the others, with
    their options; a *pool* lends the connections of a ``postgresql:`` one. ``ConfigError``, whose path is ``store``,
    ``durability`` or ``pool``, says which of them cannot be used.
    """
    checked = check_durability(durability)
    scheme, colon, rest = url.partition(":")
    if pool is not None and scheme not in _WITH_POOL:
        message = f"{shown_url(url)!r} has no use for a pool of connections to PostgreSQL: leave it out"
        raise ConfigError(message, path="pool")
    match scheme, colon:
        case "file", ":":
            return FileStore(_path(url), checked)
        case "sqlite", ":":
            from memci.archive.stores.sql.sqlite import SqliteStore  # noqa: PLC0415 (each store loads what it needs alone)

            return SqliteStore(_path(url), checked)
        case "postgresql" | "postgres", ":" if rest.startswith("//"):
            from memci.archive.stores.sql.postgres import PostgresStore  # noqa: PLC0415 (as above)

            return PostgresStore(url, checked, pool=pool)
        case "s3" | "gs" | "az", ":":
            from memci.archive.stores.objects.store import ObjectStore  # noqa: PLC0415 (as above)

            return ObjectStore.from_url(url, checked)
        case "redis" | "rediss" | "redis+unix", ":" if rest.startswith("//"):
            from memci.archive.stores import tier  # noqa: PLC0415 (as above)

            location = tier.parse(url)
            return tier.TieredStore(open_store(location.store, checked, pool), tier.RedisTier(location))
        case "memory", ":" if not rest:
            from memci.archive.stores.memory import MemoryStore  # noqa: PLC0415 (as above)

            return MemoryStore()
        case _:
            raise _unknown(url)


def shown_url(url: str) -> str:
    """Return a URL as an error or a log may show it: without user and parameters, as these may hold passwords and keys.

    Of what is no URL of a store only the scheme is left, and not even that where it may be a user; a plain path is shown.
    """
    from memci.archive.stores import tier  # noqa: PLC0415 (as above)
    from memci.archive.stores.sql import postgres_url  # noqa: PLC0415 (as above)

    scheme, colon, rest = url.partition(":")
    match scheme, colon:
        case _, "":
            is_plain = not set(url).intersection("@=?")
        case "file" | "sqlite", ":":
            is_plain = not _SECRET.search(rest)
        case _, ":" if postgres_url.is_clear(url) or tier.is_clear(url):
            return _PARAMETERS.sub("?…", _USER.sub("//…@", url))
        case "s3" | "gs" | "az", ":" if _BUCKET.fullmatch(rest):
            return _PARAMETERS.sub("?…", url)
        case _:
            is_plain = url == "memory:"
    if is_plain:
        return url
    return f"{scheme}:…" if _SCHEME.match(url) else "…"


def place_of(url: str) -> str:
    """Return what two URLs have in common that name one directory, or one file, in different ways; any other URL as it is."""
    scheme = url.partition(":")[0]
    return f"{scheme}:{os.path.realpath(_path(url))}" if scheme in _PATHS else url


def _path(url: str) -> str:
    scheme, _, rest = url.partition(":")
    found = _PATHS[scheme].fullmatch(rest)
    if found is None:
        raise _unknown(url)
    return found[1]


def _unknown(url: str) -> ConfigError:
    return ConfigError(f"{shown_url(url)!r} is no store: give {_SCHEMES}", path="store")
