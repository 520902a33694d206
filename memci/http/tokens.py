"""Tokens: who may do what with the sessions of which tenant. A file has their hashes; each is shown once, when it is made."""

import hmac
import os
import secrets
from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs

from memci.archive.stores.names import check_identifier
from memci.engine.core.monitor import logger
from memci.engine.settings import config_file
from memci.errors import ConfigError, InvalidIdError, MemciError
from memci.messages import codec

_PREFIX = "memci"
_NOBODY = "0" * 64


class Scope(StrEnum):
    """What a token is good for; each is good for what those before it are, too."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def allows(self, other: "Scope") -> bool:
        """Return whether it is good for what needs another one."""
        order = list(Scope)
        return order.index(self) >= order.index(other)


@attrs.frozen(kw_only=True)
class Caller:
    """Who asks: by which token, empty where none is needed, for which tenant, and what it may do."""

    token: str
    tenant: str
    scope: Scope


class Tokens:
    """The tokens of a file, which is read again when it changes: a line that is taken out ends a token at once.

    Raises ``ConfigError`` for a file that cannot be read; one that cannot be read any more leaves what was known.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._seen = self._stamp()
        self._known = _read(self._path)

    def find(self, given: str) -> Caller | None:
        """Return whose token this is, ``None`` for nobody's; it takes the same time for any secret of an id."""
        self._follow()
        prefix, _, rest = given.partition("_")
        name, _, secret = rest.partition("_")
        caller, known = self._known.get(name, (None, _NOBODY))
        is_it = hmac.compare_digest(_hash(secret), known)
        return caller if is_it and prefix == _PREFIX else None

    def _stamp(self) -> tuple[int, ...]:
        try:
            seen = self._path.stat()
        except OSError:
            return ()
        return seen.st_mtime_ns, seen.st_size, seen.st_ino

    def _follow(self) -> None:
        seen = self._stamp()
        if seen != self._seen:
            self._seen = seen
            try:
                self._known = _read(self._path)
            except MemciError as error:
                logger().error("the tokens stay as they were: %s", error)


def new_token(path: str | os.PathLike[str], tenant: str, scope: Scope) -> str:
    """Make a token, append its hash to a file, which only its owner may read where it is made for that, and return it."""
    check_identifier(tenant, "tenant")
    file = Path(path)
    known = _read(file) if file.exists() else {}
    name, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    facts = {"tenant": tenant, "scope": scope.value, "sha256": _hash(secret)}
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8") as opened:
            if known and not file.read_bytes().endswith(b"\n"):
                opened.write("\n")  # whoever edited it left it so
            opened.write(f"{codec.encode(name).decode()}: {codec.encode(facts).decode()}\n")  # what is JSON is YAML
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        message = f"the file of tokens {str(file)!r} cannot be written: {error.strerror}"
        raise ConfigError(message) from error
    return f"{_PREFIX}_{name}_{secret}"


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()  # of 256 random bits: nothing that makes guessing slow is needed


def _read(path: Path) -> Mapping[str, tuple[Caller, str]]:
    return {str(name): _token(str(name), facts) for name, facts in config_file.read(path).items()}


def _token(name: str, facts: Any) -> tuple[Caller, str]:  # noqa: ANN401 (what a file holds)
    wanted = {"tenant", "scope", "sha256"}
    if not isinstance(facts, Mapping) or set(facts) != wanted or not all(isinstance(each, str) for each in facts.values()):
        message = f"a token has {', '.join(sorted(wanted))}, as memci serve --new-token writes them"
        raise ConfigError(message, path=name)
    try:
        caller = Caller(token=name, tenant=check_identifier(facts["tenant"], "tenant"), scope=Scope(facts["scope"]))
    except (ValueError, InvalidIdError) as error:
        raise ConfigError(str(error), path=name) from error
    return caller, facts["sha256"]
