"""The working tier in Redis or Valkey: what was last used of a session, for as long as its time to live.

A session is two keys, ``<prefix>:{<sha256>}`` and the same with ``:lines``. The first is a hash:

======== ======================================================================
token    changes whenever what follows is not a continuation of what was there
head     sequence number of the last line
base     sequence number before the first line
seq      sequence number of the snapshot, 0 for none
snapshot the newest snapshot, as ``LineCodec`` writes it
bytes    of snapshot and lines
======== ======================================================================

The second is the list of the lines. An entry with a token alone was announced, and is filled by whoever announced it. Each
call is one script, and so one round trip that happens whole or not at all.
"""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

import attrs
import orjson

from memci.archive.stores.tier.redis_url import Location
from memci.errors import ConfigError

if TYPE_CHECKING:
    from redis import Redis

MOST_LINES = 2_000
"""Most lines of a session in the tier; it leaves the tier when it has more."""

MOST_BYTES = 4_000_000
"""Most bytes of snapshot and lines of a session in the tier."""

COMPARED = 8
"""Records of an entry, the last ones, that are compared with the store. One alone could be the same in a session that took the
place of a deleted one; so many of memci's events have a time among them."""

MOST_SKIPPED = 1_024
"""Most requests that are not made after one that failed."""

_FIND = """
local e = redis.call('HMGET', KEYS[1], 'token', 'head', 'base', 'seq', 'snapshot')
if not e[1] then
  if ARGV[2] == '' then return {} end
  redis.call('DEL', KEYS[2])
  redis.call('HSET', KEYS[1], 'token', ARGV[2])
  e = {ARGV[2]}
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[1])
if not e[2] then return {e[1]} end
if ARGV[3] == '' then return {e[1], e[2], e[3], e[4], e[5], redis.call('LRANGE', KEYS[2], 0, -1)} end
local skipped = tonumber(ARGV[3]) - tonumber(e[3])
if skipped < 0 then return {e[1]} end
return {e[1], e[2], ARGV[3], '0', '', redis.call('LRANGE', KEYS[2], skipped, -1)}
"""

_FILL = """
local e = redis.call('HMGET', KEYS[1], 'token', 'head')
if e[1] ~= ARGV[2] then return '0' end
if ARGV[2] == ARGV[3] and e[2] and tonumber(e[2]) >= tonumber(ARGV[4]) then return '1' end
redis.call('DEL', KEYS[1], KEYS[2])
local bytes = #ARGV[7]
for i = 8, #ARGV do
  bytes = bytes + #ARGV[i]
  redis.call('RPUSH', KEYS[2], ARGV[i])
end
redis.call('HSET', KEYS[1], 'token', ARGV[3], 'head', ARGV[4], 'base', ARGV[5], 'seq', ARGV[6], 'snapshot', ARGV[7],
  'bytes', bytes)
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[1])
return '1'
"""

_EXTEND = """
local e = redis.call('HMGET', KEYS[1], 'token', 'head', 'base', 'bytes')
if e[1] ~= ARGV[2] then return '0' end
if e[2] == ARGV[3] and tonumber(e[2]) - tonumber(e[3]) + #ARGV - 5 <= tonumber(ARGV[4]) then
  local bytes = tonumber(e[4])
  for i = 6, #ARGV do bytes = bytes + #ARGV[i] end
  if bytes <= tonumber(ARGV[5]) then
    for i = 6, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[i]) end
    redis.call('HSET', KEYS[1], 'head', string.format('%.0f', tonumber(e[2]) + #ARGV - 5), 'bytes', bytes)
    redis.call('EXPIRE', KEYS[1], ARGV[1])
    redis.call('EXPIRE', KEYS[2], ARGV[1])
    return '1'
  end
end
redis.call('DEL', KEYS[1], KEYS[2])
return '0'
"""

_RENEW = """
local e = redis.call('HMGET', KEYS[1], 'token', 'head', 'base', 'seq')
if e[1] ~= ARGV[2] then return '0' end
local seq, base = tonumber(ARGV[3]), e[3] and tonumber(e[3])
if e[2] and seq <= tonumber(e[2]) then
  if seq <= base or seq < tonumber(e[4]) then return '1' end
  local first = math.max(seq - tonumber(ARGV[6]), base)
  redis.call('LTRIM', KEYS[2], first - base, -1)
  local bytes = #ARGV[4]
  for _, line in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do bytes = bytes + #line end
  if bytes <= tonumber(ARGV[5]) then
    redis.call('HSET', KEYS[1], 'base', string.format('%.0f', first), 'seq', ARGV[3], 'snapshot', ARGV[4], 'bytes', bytes)
    redis.call('EXPIRE', KEYS[1], ARGV[1])
    redis.call('EXPIRE', KEYS[2], ARGV[1])
    return '1'
  end
end
redis.call('DEL', KEYS[1], KEYS[2])
return '0'
"""

_DONE = b"1"
_REMOVE = "return redis.call('DEL', KEYS[1], KEYS[2])"


@attrs.frozen
class Entry:
    """What the tier holds of a session.

    Attributes:
        head: Sequence number of the last line.
        base: Sequence number before the first line.
        lines: The lines of the journal between them.
        seq: Sequence number of the snapshot, 0 for none.
        snapshot: The line of the newest snapshot, empty for none.
    """

    head: int
    base: int
    lines: Sequence[bytes]
    seq: int
    snapshot: bytes


@attrs.frozen
class Found:
    """An answer of the tier.

    Attributes:
        token: The token of what is there; empty for nothing.
        entry: What is there; ``None`` for nothing yet, or nothing that can be read.
    """

    token: str
    entry: Entry | None


class RedisTier:
    """The tier as the store uses it. No call raises because of the tier; after a failure others are not even tried for a while.

    Threads may share it. Its counts and what it knows of failures are then approximate, which does no harm.

    Args:
        location: Where it is. Nothing is connected to before something is asked for.

    Attributes:
        requests: How many round trips were made, by name; one that failed counts, its repetition does not.
        failures: How many of them failed in a row, up to now.
    """

    def __init__(self, location: Location) -> None:
        self.requests: Counter[str] = Counter()
        self._location = location
        self._client: Redis | None = None
        self._skip = 0
        self.failures = 0

    def key(self, tenant: str, session_id: str) -> str:
        """Return the name of a session, which says nothing about it."""
        name = sha256(orjson.dumps([tenant, session_id])).hexdigest()
        return f"{self._location.prefix}:{{{name}}}"

    def find(self, key: str, token: str = "", after: int | None = None) -> Found | None:
        """Return what is there of a session, ``None`` where the tier does not answer.

        Args:
            key: The session.
            token: Announces an entry where there is none, to be filled with what is read from now on; empty to look only.
            after: Return the lines behind this record, and no snapshot; ``None`` for everything.
        """
        answer = self._ask("find", _FIND, key, token, "" if after is None else after)
        if not isinstance(answer, list):
            return None
        if len(answer) <= 1:
            return Found(_text(answer[0]) if answer else "", None)
        held, head, base, seq, snapshot, lines = answer
        try:
            return Found(_text(held), Entry(int(head), int(base), lines, int(seq), bytes(snapshot)))
        except (TypeError, ValueError):  # what is there is no entry
            self.remove(key)
            return None

    def fill(self, key: str, token: str, new_token: str, entry: Entry) -> bool:
        """Put an entry in the place of the one with this token, and return whether it, or a newer one, is there."""
        numbers = (entry.head, entry.base, entry.seq)
        return self._ask("fill", _FILL, key, token, new_token, *numbers, entry.snapshot, *entry.lines) == _DONE

    def extend(self, key: str, token: str, expected: int, lines: Sequence[bytes]) -> bool:
        """Add lines behind the record *expected*, and return whether they are there. An entry that missed some is removed."""
        if len(lines) > MOST_LINES or sum(map(len, lines)) > MOST_BYTES:
            self.remove(key)
            return False
        return self._ask("extend", _EXTEND, key, token, expected, MOST_LINES, MOST_BYTES, *lines) == _DONE

    def renew(self, key: str, token: str, seq: int, snapshot: bytes) -> bool:
        """Put a newer snapshot, and forget the lines before it but for a few; return whether the entry is still there."""
        if len(snapshot) > MOST_BYTES:
            self.remove(key)
            return False
        return self._ask("renew", _RENEW, key, token, seq, snapshot, MOST_BYTES, COMPARED) == _DONE

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
        """Run a script; ``None`` where it was not done, or nobody knows.

        Raises:
            ConfigError: The driver is not installed, or cannot use the URL.
        """
        if self._skip:
            self._skip -= 1
            return None
        client = self._connected()
        from redis.exceptions import RedisError, ResponseError  # noqa: PLC0415 (the driver is optional)

        keys = (key, f"{key}:lines")
        try:
            self.requests[name] += 1
            try:
                answer = client.eval(script, 2, *keys, self._location.ttl_s, *values)
            except ResponseError:  # what is there is no entry, or the server refuses scripts
                self.requests["remove"] += 1
                client.delete(*keys)
                raise
        except (RedisError, OSError) as error:
            self._failed(error)
            return None
        self.failures = 0
        return answer

    def _failed(self, error: Exception) -> None:
        """Leave the tier alone for 1, 2, 4, … requests, and say so the first time."""
        self._skip = min(1 << self.failures, MOST_SKIPPED)
        self.failures += 1
        if self.failures == 1:
            import logging  # noqa: PLC0415 (slow to load, and seldom needed)

            logging.getLogger("memci").warning(
                "the working tier failed (%s), the store behind it goes on without it", type(error).__name__
            )

    def _connected(self) -> "Redis":
        if self._client is None:
            try:
                from redis import Redis  # noqa: PLC0415 (optional, and slow to load)
                from redis.backoff import NoBackoff  # noqa: PLC0415 (the same)
                from redis.exceptions import ConnectionError as LostError  # noqa: PLC0415 (the same)
                from redis.retry import Retry  # noqa: PLC0415 (the same)
            except ImportError as error:
                message = f"a working tier needs the driver redis ({error}): install memci with its extra redis"
                raise ConfigError(message, path="store") from error
            timeout_s = self._location.timeout_ms / 1_000
            try:
                # A connection that the server closed meanwhile is opened again, once; a timeout is not waited for twice.
                self._client = Redis.from_url(
                    self._location.url,
                    socket_timeout=timeout_s,
                    socket_connect_timeout=timeout_s,
                    retry=Retry(NoBackoff(), 1, supported_errors=(LostError,)),
                    protocol=2,
                )
            except ValueError:
                # The driver's text may quote the password.
                message = "the URL of the working tier cannot be read: give redis://user:password@host:6379/0, percent-encoded"
                raise ConfigError(message, path="store") from None
        return self._client


def _text(value: object) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else ""
