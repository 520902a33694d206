"""Session ids, tenants and page names as file names, one to one.

A name is the id with everything but ``a-z``, ``0-9``, ``_`` and ``-`` percent-encoded, byte by byte in UTF-8 with upper-case hex.
Capital letters and dots are encoded too: some file systems ignore case, and ``..`` is no file. Where that makes more than
180 bytes, the name is ``~`` and the SHA-256 of the id in hex; no encoded id begins with ``~``.
"""

import re
from hashlib import sha256
from typing import NamedTuple

from memci.errors import InvalidIdError, shown

MAX_NAME_BYTES = 180  # the longest name that spells its id; file systems take 255 bytes, some of them less
BLOBS = "blobs"  # the directory that the sessions of a tenant share; a session of this id has a ``b`` that is encoded
_SESSION_BLOBS = "%62lobs"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")
_ENCODED = tuple(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in range(256))
_ESCAPE = re.compile(rb"%([0-9A-F]{2})")
_PAGE_NAME = re.compile(r"[a-z0-9_]+-[0-9]+(\.r[0-9]+)?")


class SessionKey(NamedTuple):
    """What tells a session of one process from all others."""

    tenant: str
    session_id: str


def check_identifier(value: object, what: str) -> str:
    """Return a session id or tenant, as *what* calls it; raise ``InvalidIdError`` if it is not text that UTF-8 can encode."""
    try:
        if isinstance(value, str) and value.encode():
            return value
        problem = "is empty: give at least one character" if value == "" else f"is a {type(value).__name__}: give text"
    except UnicodeEncodeError as error:
        problem = f"{shown(value)} has a lone surrogate at character {error.start}: UTF-8 cannot encode it, replace it"
    message = f"the {what} {problem}"
    raise InvalidIdError(message, value=value)


def check_key(tenant: str, session_id: str) -> SessionKey:
    """Return tenant and session id, if ``check_identifier`` takes them."""
    return SessionKey(check_identifier(tenant, "tenant"), check_identifier(session_id, "session id"))


def check_page_name(name: str) -> str:
    """Return the name of a page file, such as ``usr-12`` or ``usr-12.r1``; raise ``InvalidIdError`` if it is none."""
    if not is_page_name(name):
        message = f"{name[:80]!r} is no name of a page file: it is a segment of a-z, 0-9 and _, a number and perhaps a revision"
        raise InvalidIdError(message, value=name)
    return name


def is_page_name(name: str) -> bool:
    """Return whether ``check_page_name`` takes the name."""
    return len(name) <= MAX_NAME_BYTES and _PAGE_NAME.fullmatch(name) is not None


def file_name(identifier: str) -> str:
    """Return the file name of a checked id: at most 180 bytes of ASCII, and no two ids have the same."""
    data = identifier.encode()
    name = "".join([_ENCODED[byte] for byte in data])
    return name if len(name) <= MAX_NAME_BYTES else "~" + sha256(data).hexdigest()


def session_name(session_id: str) -> str:
    """Return the name of a session's directory beside that of the tenant's blobs; see ``file_name``."""
    name = file_name(session_id)
    return _SESSION_BLOBS if name == BLOBS else name


def find_session(name: str) -> str | None:
    """Return the id that the name of a session's directory spells; see ``find_identifier``."""
    return {BLOBS: None, _SESSION_BLOBS: BLOBS}.get(name, find_identifier(name))


def is_hashed(name: str) -> bool:
    """Return whether a file name is the hash of an id, which must be kept elsewhere."""
    return name.startswith("~")


def find_identifier(name: str) -> str | None:
    """Return the id that a file name spells, or ``None`` where it is no name that ``file_name`` makes of one, or a hash."""
    try:
        identifier = _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), name.encode()).decode()
        return identifier if identifier and file_name(identifier) == name else None
    except UnicodeError:
        return None
