"""What the URL of a working tier says: where the tier is, and which store stands behind it."""

import re
from urllib.parse import parse_qsl, urlencode

import attrs

from memci.errors import ConfigError

SCHEMES = ("redis", "rediss", "redis+unix")
"""Plain, over TLS, and through a socket of this machine."""

_OWN = ("store", "ttl_s", "timeout_ms", "prefix")
_DRIVER = ("db", "ssl_ca_certs", "ssl_cert_reqs", "ssl_certfile", "ssl_keyfile")
_TTL_S, _MOST_TTL_S = 3_600, 31_536_000
_TIMEOUT_MS, _MOST_TIMEOUT_MS = 250, 60_000


# A password that holds @, / or ? as it is could be taken for a host, a path or an option, whose names errors show.
_URL = re.compile(
    r"(?:rediss?://(?:[^@/?]*@)?(?:\[[^\]@/?]*\]|[^@/?:\[\]]*)(?::[0-9]{0,5})?(?:/[^@?]*)?|redis\+unix://(?:[^@/?]*@)?[^@?:]*)"
    r"(?:\?.*)?",
    re.DOTALL,
)


@attrs.frozen(repr=False)
class Location:
    """A tier, and the store behind it.

    Attributes:
        url: Of the server, as the driver takes it; it may hold a password.
        store: URL of the store behind.
        ttl_s: Seconds that a session stays in the tier after it was last used.
        timeout_ms: Milliseconds that an answer of the tier is waited for.
        prefix: Begins the names of all keys.
    """

    url: str
    store: str
    ttl_s: int
    timeout_ms: int
    prefix: str


def is_clear(url: str) -> bool:
    """Return whether everybody reads the same user, password and server in a URL. O(its length)."""
    return _URL.fullmatch(url) is not None


def parse(url: str) -> Location:
    """Read ``redis://user:password@host:6379/0?store=<URL, percent-encoded>&ttl_s=3600&timeout_ms=250&prefix=memci``.

    Raises:
        ConfigError: It cannot be used. The text shows nothing of the URL but names of options, as it may hold passwords.
    """
    if not is_clear(url):
        message = "percent-encode what user and password hold of @ (%40), : (%3A), / (%2F), ? (%3F), # (%23) and % (%25)"
        raise _refused(message)
    address, _, query = url.partition("?")
    scheme, _, rest = address.partition("://")
    options = dict(parse_qsl(query, keep_blank_values=True))
    unknown = sorted(set(options).difference(_OWN, _DRIVER))
    if unknown:
        # What has no value may be one itself.
        is_name = unknown[0].isidentifier() and options[unknown[0]]
        name = f"there is no option {unknown[0][:40]}" if is_name else "it has an unknown option"
        message = f"{name}, there are {', '.join(sorted((*_OWN, *_DRIVER)))}"
        raise _refused(message)
    store = options.get("store", "")
    if not rest or not store or store.partition(":")[0] in SCHEMES:
        message = "it names no server, or no store behind it: give redis://host:6379/0?store=<URL, percent-encoded>"
        raise _refused(message)
    database = "" if scheme == "redis+unix" else rest.rpartition("@")[2].partition("/")[2]
    if database and not (database.isascii() and database.isdecimal()):
        message = "its database is a number, such as the 0 of redis://host:6379/0"
        raise _refused(message)
    of_driver = urlencode({name: options[name] for name in _DRIVER if name in options})
    return Location(
        url=f"{'unix' if scheme == 'redis+unix' else scheme}://{rest}" + (f"?{of_driver}" if of_driver else ""),
        store=store,
        ttl_s=_number(options, "ttl_s", _TTL_S, _MOST_TTL_S),
        timeout_ms=_number(options, "timeout_ms", _TIMEOUT_MS, _MOST_TIMEOUT_MS),
        prefix=options.get("prefix", "memci"),
    )


def _number(options: dict[str, str], name: str, default: int, most: int) -> int:
    text = options.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and 1 <= int(text) <= most):
        message = f"{name} is no number from 1 to {most}"
        raise _refused(message)
    return int(text)


def _refused(reason: str) -> ConfigError:
    return ConfigError(f"the URL of the working tier cannot be used: {reason}", path="store")
