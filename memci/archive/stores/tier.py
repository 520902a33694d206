"""A store with a working tier before it: what many workers open again and again is in Redis, and the store stays the truth.

docs/stores.md says what keeps the tier from ever being wrong. What is deleted or redacted leaves it before the store is asked to
do it, and again afterwards; what was read from the store before is refused then, as the token of the entry is gone. Lines and
snapshots have their checksums, which hold for this session alone; what fails them is made anew.

A session is two keys. ``<prefix>:{<sha256>}`` is a hash: *token*, another one whenever the session left the tier in between, and
*head*, the number of the last record. The same name with ``:lines`` is the entry's text: the number of the newest snapshot and a
line break, the snapshot, and the lines of the journal from some before that snapshot on, as ``LineCodec`` writes them; 0 and all
lines where there is no snapshot. One with a token alone was announced, and is filled by whoever announced it. A call is a script.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, NoReturn
from urllib.parse import parse_qsl, urlencode
from uuid import uuid4

import attrs
import orjson

from memci.archive.stores.contract import NewRecord, Record, SessionStore, Snapshots, Store
from memci.archive.stores.record_codec import LineCodec
from memci.errors import ConfigError, StoreError, UnavailableError

if TYPE_CHECKING:
    from redis import Redis

    from memci.archive.catalogue.page_index import PageIndex

MOST_BYTES = 4_000_000  # of a session in the tier; it leaves the tier when it has more
# The last records of an entry, which are compared with the store. One alone could be the same in a session that took the place
# of a deleted one; so many of memci's events have a time among them.
_COMPARED = 8

_OWN = ("store", "ttl_s", "timeout_ms", "prefix")
_DRIVER = ("db", "ssl_ca_certs", "ssl_cert_reqs", "ssl_certfile", "ssl_keyfile")
_SCHEMES = ("redis", "rediss", "redis+unix")  # plain, over TLS, and through a socket of this machine
_MOST = {"ttl_s": 31_536_000, "timeout_ms": 60_000}
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


@attrs.frozen(repr=False)
class Location:
    """A tier: the server's URL, as the driver takes it, that of the store, and what the other options say."""

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

    Raises ``ConfigError`` if it cannot be used; the text shows nothing of it but names of options, as it may hold passwords.
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
        _refuse("it names no server, or no store: give redis://host:6379/0?store=<URL, percent-encoded>")
    numbers = {"ttl_s": "3600", "timeout_ms": "250"} | {name: options[name] for name in _MOST if name in options}
    for name, text in numbers.items():
        if not re.fullmatch("[0-9]{1,8}", text) or not 1 <= int(text) <= _MOST[name]:
            _refuse(f"{name} is no number from 1 to {_MOST[name]}")
    of_driver = urlencode({name: options[name] for name in _DRIVER if name in options})
    server = f"{'unix' if scheme == 'redis+unix' else scheme}://{rest}" + (f"?{of_driver}" if of_driver else "")
    return Location(server, store, int(numbers["ttl_s"]), int(numbers["timeout_ms"]), options.get("prefix", "memci"))


def _refuse(reason: str) -> NoReturn:
    message = f"the URL of the working tier cannot be used: {reason}"
    raise ConfigError(message, path="store") from None  # the driver's text may quote the password


class RedisTier:
    """The tier as the store uses it. No call raises because of the tier; after a failure others are not even tried for a while.

    The first call connects, and raises ``ConfigError`` if the driver is not installed, or cannot use the URL. ``requests`` counts
    round trips by name, ``failures`` those that failed in a row; with threads that share it both are approximate.
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
        """Return token and text of a session, both empty for nothing; ``None`` where the tier does not answer.

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
        return self._ask("remove", "return redis.call('DEL', KEYS[1], KEYS[2])", key) is not None

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
            self._skip = min(1 << self.failures, 1_024)  # requests that are not made after one that failed: 1, 2, 4, …
            self.failures += 1
            if self.failures == 1:
                import logging  # noqa: PLC0415 (slow to load, and seldom needed)

                text = "the working tier failed (%s), the store goes on without it"
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
            options = {"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s, "retry": retry, "protocol": 2}
            try:
                self._client = redis.Redis.from_url(self._location.url, **options)
            except ValueError:
                _refuse("give redis://user:password@host:6379/0, percent-encoded")
        return self._client


class _Copy(NamedTuple):
    """The records after *base*, and the newest snapshot."""

    base: int
    records: list[Record]
    snapshot: tuple[int, bytes] | None

    @property
    def head(self) -> int:
        return self.base + len(self.records)


class _Journal:
    """Looks after the tier's entry of the session, too."""

    def __init__(self, session: SessionStore, tier: RedisTier, owner: tuple[str, str], *, read_only: bool) -> None:
        self.copy: _Copy | None = None  # what the first look took over, until it is read or something else is asked for
        self._session = session
        self._journal = session.journal
        self._tier = tier
        self._key = tier.key(*owner)
        self._codec = LineCodec(*owner)
        self._read_only = read_only
        self._token = ""  # of the entry that was compared with the store, or made
        self._is_due = True  # the tier is to be looked at: at first, and after the entry was lost

    def head(self) -> int:
        self.copy = None
        copy = self._looked()
        return self._journal.head() if copy is None else copy.head

    def append(self, expected: int, records: Sequence[NewRecord]) -> int:
        self.copy = None
        head = self._journal.append(expected, records)
        if self._token:
            # Each line stands for itself.
            lines = [self._codec.encode_commit(seq, [record]) for seq, record in enumerate(records, start=expected)]
            if not self._tier.put(self._key, self._token, expected, head, b"".join(lines)):
                self.forget()
        return head

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        copy = self._looked()
        if copy is None or after < copy.base or until is None or until >= copy.head:
            self.copy = None  # read to its end, or of no use
        if copy is None or after < copy.base:
            yield from self._journal.read(after, until)
        else:
            yield from (record for record in copy.records[after - copy.base :] if until is None or record.seq <= until)

    def redact(self, bodies: Mapping[int, bytes], former: Mapping[int, str] | None = None) -> None:
        self.apart(lambda: self._journal.redact(bodies, former))

    def forget(self, *, is_due: bool = True) -> None:
        """Let go of the entry as it was; the tier is to be looked at again, or never more."""
        self.copy, self._token, self._is_due = None, "", is_due

    def renew(self) -> None:
        """Make the entry again, after a snapshot was kept."""
        token = self._token
        self.forget()
        with suppress(StoreError):  # the snapshot is kept all the same
            if token:
                self._made(token)

    def apart(self, delete: Callable[[], None]) -> None:
        """Delete content from the store, with the session dropped from the tier before and after."""
        self.forget()
        if not self._tier.remove(self._key):
            message = (
                "the working tier does not answer and may hold a copy: nothing was done; mend it, or open the store without it"
            )
            raise UnavailableError(message)
        try:
            delete()
        finally:
            removed = self._tier.remove(self._key)
        if not removed:
            message = "the store has done it, but the working tier did not answer and may hold a copy: mend it, and do it again"
            raise UnavailableError(message)

    def _looked(self) -> _Copy | None:
        """Return what was taken over; where that is due, take the entry over if the store has the same, else make it again."""
        if self._is_due:
            self._is_due = False
            token, text = self._tier.find(self._key, "" if self._read_only else uuid4().hex) or ("", b"")
            copy = self._decoded(text)
            with suppress(StoreError):  # whoever asks the store next is told
                if copy is not None and self._is_stored(copy):
                    self.copy, self._token = copy, token
                elif token and not self._read_only:
                    self.copy = self._made(token)
        return self.copy

    def _is_stored(self, copy: _Copy) -> bool:
        last = copy.records[-_COMPARED:]
        return list(islice(self._journal.read(copy.head - len(last)), _COMPARED + 1)) == last

    def _made(self, token: str) -> _Copy | None:
        """Read what the tier should hold from the store, and put it there; ``None`` where it is too much."""
        snapshot = self._session.snapshots.find()
        seq, body = snapshot or (0, b"")
        copy = _Copy(max(seq - _COMPARED, 0), [], snapshot)
        text = bytearray(b"%d\n" % seq)
        text += self._codec.encode_snapshot(seq, body) if seq else b""
        for record in self._journal.read(copy.base):
            line = self._codec.encode_commit(record.seq - 1, [NewRecord(record.kind, record.version, record.body)])
            text += self._codec.redact(line, record.body) if record.redacted else line
            copy.records.append(record)
            if len(text) > MOST_BYTES:
                return None
        if copy.head < seq:
            return None
        if self._tier.put(self._key, token, None, copy.head, bytes(text)):
            self._token, self._is_due = token, False
        return copy

    def _decoded(self, text: bytes) -> _Copy | None:
        """Return what an entry holds, ``None`` where it is not what was written."""
        lines = text.splitlines(keepends=True)
        try:
            seq = int(lines.pop(0))
            snapshot = (seq, self._codec.decode_snapshot(lines.pop(0), seq)) if seq else None
            copy = _Copy(max(seq - _COMPARED, 0), [self._codec.decode(line) for line in lines], snapshot)
        except (IndexError, ValueError, StoreError):
            return None
        is_whole = [record.seq for record in copy.records] == [*range(copy.base + 1, copy.head + 1)]
        return copy if is_whole and seq <= copy.head else None


class _Snapshots:
    def __init__(self, snapshots: Snapshots, journal: _Journal) -> None:
        self.problems = snapshots.problems
        self._snapshots = snapshots
        self._journal = journal

    def put(self, seq: int, body: bytes) -> None:
        self._snapshots.put(seq, body)
        self._journal.renew()

    def find(self, at_most: int | None = None) -> tuple[int, bytes] | None:
        copy = self._journal.copy
        return copy.snapshot if copy is not None and at_most is None else self._snapshots.find(at_most)

    def clear(self) -> None:
        self._journal.apart(self._snapshots.clear)


class TieredSession:
    """Implements ``memci.archive.stores.contract.SessionStore``. Pages, blobs and index are those of the store.

    What takes content out raises ``UnavailableError`` too where the tier does not answer: before anything is done, or, where it
    failed meanwhile, after the store has done it, as the tier may still hold a copy.
    """

    def __init__(self, stored: SessionStore, tier: RedisTier, owner: tuple[str, str], *, read_only: bool) -> None:
        self.journal = _Journal(stored, tier, owner, read_only=read_only)
        self.snapshots = _Snapshots(stored.snapshots, self.journal)
        self.pages = stored.pages
        self.blobs = stored.blobs
        self.durability = stored.durability
        self.indexed_seq = stored.indexed_seq
        self.rest = stored.rest
        self._stored = stored

    @property
    def index(self) -> "PageIndex":
        """Page facts and search, as the store has them."""
        return self._stored.index

    def close(self) -> None:
        """Let go of the session. May be called twice."""
        self.journal.forget(is_due=False)
        self._stored.close()


class TieredStore:
    """Implements ``memci.archive.stores.contract.Store`` on another store, which is closed with this one, as the tier is."""

    def __init__(self, store: Store, tier: RedisTier) -> None:
        self.durability: str = store.durability
        self.tier = tier
        self.sessions = store.sessions
        self.usage = store.usage
        self.sweep = store.sweep
        self._store = store

    def open(self, tenant: str, session_id: str, *, read_only: bool = False) -> TieredSession:
        """Open what is stored of a session; the tier is asked when the journal is first looked at."""
        stored = self._store.open(tenant, session_id, read_only=read_only)
        return TieredSession(stored, self.tier, (tenant, session_id), read_only=read_only)

    def delete(self, tenant: str, session_id: str) -> None:
        """Remove all that is stored of a session; after an ``UnavailableError`` call again: the tier may still hold a copy."""
        with closing(self.open(tenant, session_id, read_only=True)) as session:
            session.journal.apart(lambda: self._store.delete(tenant, session_id))

    def close(self) -> None:
        """Close the store, and give the connections back. May be called twice."""
        self._store.close()
        self.tier.close()
