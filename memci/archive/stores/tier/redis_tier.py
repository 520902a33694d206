"""The working tier in Redis or Valkey: what was last used of a session, for as long as its time to live.

A session is two keys. ``<prefix>:{<sha256>}`` is a hash: *token*, another one whenever the session left the tier in between, and
*head*, the number of the last record. The same name with ``:lines`` is text, which the store makes and reads. An entry with a
token alone was announced, and is filled by whoever announced it. Each call is one script, and so one round trip that happens
whole or not at all.
"""

import re
from collections import Counter
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import parse_qsl, urlencode

import attrs
import orjson

from memci.errors import ConfigError

if TYPE_CHECKING:
    from redis import Redis

MOST_BYTES = 4_000_000  # of a session in the tier; it leaves the tier when it has more
_MOST_SKIPPED = 1_024  # requests that are not made after one that failed
_OWN = ("store", "ttl_s", "timeout_ms", "prefix")
_DRIVER = ("db", "ssl_ca_certs", "ssl_cert_reqs", "ssl_certfile", "ssl_keyfile")
_SCHEMES = ("redis", "rediss", "redis+unix")  # plain, over TLS, and through a socket of this machine

# A password that holds @, / or ? as it is could be taken for a host, a path or an option, whose names errors show.
_URL = re.compile(
    r"(?:rediss?://(?:[^@/?]*@)?(?:\[[^\]@/?]*\]|[^@/?:\[\]]*)(?::[0-9]{0,5})?(?:/[0-9]*)?|redis\+unix://(?:[^@/?]*@)?[^@?:]*)"
    r"(?:\?.*)?",
    re.DOTALL,
)

_FIND = """
local token = redis.call('HGET', KEYS[1], 'token')
if not token then
  if ARGV[2] == '' then return {} end
  token = ARGV[2]
  redis.call('DEL', KEYS[2])
  redis.call('HSET', KEYS[1], 'token', token)
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[1])
return {token, redis.call('GET', KEYS[2])}
"""

_PUT = """
local token, head = unpack(redis.call('HMGET', KEYS[1], 'token', 'head'))
if token ~= ARGV[2] then return 0 end
if ARGV[3] == '' then redis.call('DEL', KEYS[2]) end
if (ARGV[3] == '' or ARGV[3] == head) and redis.call('APPEND', KEYS[2], ARGV[5]) <= tonumber(ARGV[6]) then
  redis.call('HSET', KEYS[1], 'head', ARGV[4])
  redis.call('EXPIRE', KEYS[1], ARGV[1])
  redis.call('EXPIRE', KEYS[2], ARGV[1])
  return 1
end
redis.call('DEL', KEYS[1], KEYS[2])
return 0
"""

_REMOVE = "return redis.call('DEL', KEYS[1], KEYS[2])"


@attrs.frozen(repr=False)
class Location:
    """A tier: the server's URL, as the driver takes it, that of the store behind it, and what the other options say."""

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
    address, _, query = url.partition("?")
    scheme, _, rest = address.partition("://")
    options = dict(parse_qsl(query, keep_blank_values=True))
    store = options.get("store", "")
    if not is_clear(url):
        secrets = "@ (%40), : (%3A), / (%2F), ? (%3F), # (%23) and % (%25)"
        _refuse(f"give redis://user:password@host:6379/0, and percent-encode what user and password hold of {secrets}")
    for name in sorted(set(options).difference(_OWN, _DRIVER)):
        # What has no value may be one itself.
        unknown = f"there is no option {name[:40]}" if name.isidentifier() and options[name] else "it has an unknown option"
        _refuse(f"{unknown}, there are {', '.join(sorted((*_OWN, *_DRIVER)))}")
    if not rest or not store or store.partition(":")[0] in _SCHEMES:
        _refuse("it names no server, or no store behind it: give redis://host:6379/0?store=<URL, percent-encoded>")
    of_driver = urlencode({name: options[name] for name in _DRIVER if name in options})
    return Location(
        url=f"{'unix' if scheme == 'redis+unix' else scheme}://{rest}" + (f"?{of_driver}" if of_driver else ""),
        store=store,
        ttl_s=_number("ttl_s", options.get("ttl_s", "3600"), most=31_536_000),
        timeout_ms=_number("timeout_ms", options.get("timeout_ms", "250"), most=60_000),
        prefix=options.get("prefix", "memci"),
    )


def _number(name: str, text: str, *, most: int) -> int:
    if not re.fullmatch("[0-9]{1,8}", text) or not 1 <= int(text) <= most:
        _refuse(f"{name} is no number from 1 to {most}")
    return int(text)


def _refuse(reason: str) -> NoReturn:
    message = f"the URL of the working tier cannot be used: {reason}"
    raise ConfigError(message, path="store") from None  # the driver's text may quote the password


class RedisTier:
    """The tier as the store uses it. No call raises because of the tier; after a failure others are not even tried for a while.

    Threads may share it. Its counts and what it knows of failures are then approximate, which does no harm. Nothing is connected
    to before something is asked for: that raises ``ConfigError`` where the driver is not installed, or cannot use the URL.

    Attributes:
        requests: How many round trips were made, by name; one that failed counts, its repetition does not.
        failures: How many of them failed in a row, up to now.
    """

    def __init__(self, location: Location) -> None:
        self.requests: Counter[str] = Counter()
        self.failures = 0
        self._location = location
        self._client: Redis | None = None
        self._skip = 0

    def key(self, tenant: str, session_id: str) -> str:
        """Return the name of a session, which says nothing about it."""
        name = sha256(orjson.dumps([tenant, session_id])).hexdigest()
        return f"{self._location.prefix}:{{{name}}}"

    def find(self, key: str, token: str = "") -> tuple[str, bytes] | None:
        """Return the token and the text of a session, both empty for nothing, or ``None`` where the tier does not answer.

        Where there is nothing, *token* announces an entry, to be filled with what is read from now on; empty to look only.
        """
        answer = self._ask("find", _FIND, key, token)
        if not isinstance(answer, list):
            return None
        return (answer[0].decode("ascii", "replace"), answer[1] or b"") if answer else ("", b"")

    def put(self, key: str, token: str, after: int | None, head: int, text: bytes) -> bool:
        """Add a text of the records from *after* to *head*, or put it in the place of what is there where *after* is ``None``.

        Returns whether it is there, under this token. A session that missed records, or gets too large, is removed.
        """
        if len(text) > MOST_BYTES:
            self.remove(key)
            return False
        name, expected = ("fill", "") if after is None else ("extend", str(after))
        return self._ask(name, _PUT, key, token, expected, head, text, MOST_BYTES) == 1

    def remove(self, key: str) -> bool:
        """Remove a session, also where others are not asked after a failure; return whether it is known to be gone."""
        self._skip = 0
        return self._ask("remove", _REMOVE, key) is not None

    def close(self) -> None:
        """Give the connections back. May be called twice."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _ask(self, name: str, script: str, key: str, *values: str | int | bytes) -> object:
        """Run a script; ``None`` where it was not done, or nobody knows."""
        if self._skip:
            self._skip -= 1
            return None
        client = self._connected()
        import redis  # noqa: PLC0415 (the driver is optional)

        keys = (key, f"{key}:lines")
        try:
            self.requests[name] += 1
            answer: object = client.eval(script, 2, *keys, self._location.ttl_s, *values)
        except (redis.RedisError, OSError) as error:
            if isinstance(error, redis.ResponseError):  # what is there is no entry, or the server refuses scripts
                self.requests["remove"] += 1
                with suppress(redis.RedisError, OSError):
                    client.delete(*keys)
            self._skip = min(1 << self.failures, _MOST_SKIPPED)  # 1, 2, 4, …
            self.failures += 1
            if self.failures == 1:
                import logging  # noqa: PLC0415 (slow to load, and seldom needed)

                text = "the working tier failed (%s), the store behind it goes on without it"
                logging.getLogger("memci").warning(text, type(error).__name__)
            return None
        self.failures = 0
        return answer

    def _connected(self) -> "Redis":
        if self._client is None:
            try:
                import redis  # noqa: PLC0415 (optional, and slow to load)
            except ImportError as error:
                message = f"a working tier needs the driver redis ({error}): install memci with its extra redis"
                raise ConfigError(message, path="store") from error
            # A connection that the server closed meanwhile is opened again, once; a timeout is not waited for twice.
            retry = redis.retry.Retry(redis.backoff.NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
            timeout_s = self._location.timeout_ms / 1_000
            try:
                self._client = redis.Redis.from_url(
                    self._location.url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=retry, protocol=2
                )
            except ValueError:
                _refuse("give redis://user:password@host:6379/0, percent-encoded")
        return self._client
