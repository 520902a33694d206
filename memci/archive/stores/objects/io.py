"""A bucket: the URL that names it, every request that is made there, counted, and what the driver's errors mean."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from operator import methodcaller
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias, TypeVar
from urllib.parse import parse_qsl

from memci.errors import ConfigError, UnavailableError

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode, PutResult, UpdateVersion
    from obstore.store import ObjectStore as Driver

Version: TypeAlias = "UpdateVersion"
"""What tells one content of an object from another: the condition of a put that replaces this content only."""

_T = TypeVar("_T")

_SCHEMES = ("s3", "gs", "az")  # providers with a conditional put
_CONFIG = ("account_name", "endpoint", "region", "virtual_hosted_style_request")
_CLIENT = ("allow_http",)
_KNOWN = sorted((*_CONFIG, *_CLIENT, "memci_index", "timeout_s", "retries"))
_MOST = 3_600

_PARALLEL = 8
_BATCH = 1_000  # objects that one listing or deletion names, as S3 has it
_STATUS = re.compile(r"status code: (\d{3})")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")


class Location(NamedTuple):
    """Where objects are: *url* with nothing secret, what the driver takes beside it, and a directory for indexes, if any."""

    url: str
    options: Mapping[str, Any]
    index_dir: str | None


def parse(url: str, durability: str = "fsync") -> Location:
    """Read the URL of an object store.

    Raises:
        ConfigError: It cannot be used, or the durability is not ``fsync``. The text shows nothing that follows the prefix.
    """
    if durability != "fsync":
        message = f"{durability!r} is no durability of an object store: fsync, the provider's acknowledgement, is the only one"
        raise ConfigError(message, path="durability")
    address, _, query = url.partition("?")
    scheme, _, rest = address.partition("://")
    bucket = rest.partition("/")[0]
    given = dict(parse_qsl(query, keep_blank_values=True))
    if "@" in rest or "#" in rest or ":" in bucket or "@" in given.get("endpoint", ""):
        _refuse("it has a user, a password or a fragment: give credentials in the environment")
    if scheme not in _SCHEMES or not bucket:
        _refuse("it names no bucket: give s3://bucket/prefix, gs://bucket/prefix or az://container/prefix")
    for name in sorted(set(given).difference(_KNOWN)):
        # What has no value may be one itself.
        is_name = name.isascii() and name.isidentifier() and given[name]
        unknown = f"there is no option {name[:40]}" if is_name else "it has an unknown option"
        _refuse(f"{unknown}, there are {', '.join(_KNOWN)}; credentials come from the environment")
    timeout = timedelta(seconds=_number("timeout_s", given.get("timeout_s", "30"), least=1))
    retries = _number("retries", given.get("retries", "3"), least=0)
    client = {name: given[name] for name in _CLIENT if name in given}
    options = {
        "config": {name: given[name] for name in _CONFIG if name in given},
        "client_options": {**client, "timeout": timeout, "connect_timeout": timeout},
        "retry_config": {"max_retries": retries, "retry_timeout": timeout * (retries + 1)},
    }
    return Location(address, options, given.get("memci_index"))


def connect(location: Location) -> "Driver":
    """Make the driver; it makes no request yet.

    Raises:
        ConfigError: obstore is not installed, or an option, or what the environment says, cannot be used.
    """
    try:
        from obstore.exceptions import BaseError  # noqa: PLC0415 (the driver is optional)
        from obstore.store import from_url  # noqa: PLC0415 (the same)
    except ImportError as error:
        message = "the store needs obstore: install memci with its extra objects"
        raise ConfigError(message, path="store") from error
    try:
        driver: Driver = from_url(location.url, **location.options)
    except (BaseError, ValueError, TypeError) as error:
        _refuse(f"no client can be made for it ({type(error).__name__}): see the options, and the account in the environment")
    return driver


def _number(name: str, text: str, *, least: int) -> int:
    if not re.fullmatch("[0-9]{1,4}", text) or not least <= int(text) <= _MOST:
        _refuse(f"{name} is no number from {least} to {_MOST}")
    return int(text)


def _refuse(reason: str) -> NoReturn:
    message = f"the URL of the object store cannot be used: {reason}"
    raise ConfigError(message, path="store") from None  # the driver's text may quote the environment


class AbsentError(Exception):
    """There is no such object."""


class UnchangedError(Exception):
    """The object is still the version that was named."""


class RejectedError(Exception):
    """The condition of a put does not hold: somebody else wrote the object, or removed it."""


_ANSWERS: Mapping[str, type[Exception]] = {
    "FileNotFoundError": AbsentError,
    "NotFoundError": AbsentError,
    "NotModifiedError": UnchangedError,
    "PreconditionError": RejectedError,
}


class Found(NamedTuple):
    """An object as it was read."""

    body: bytes
    version: Version


class ObjectIo:
    """A bucket, or a part of one, as the object store uses it. Safe for many threads; paths are relative to the prefix.

    Every call raises ``UnavailableError`` where the provider did not answer, or refused: a put or deletion may then have
    taken effect all the same. No text of the driver is passed on, for it may show addresses with keys in them.

    Args:
        connect: Makes the driver, when the first request is made.

    Attributes:
        requests: Requests by kind: ``get``, ``put``, ``list``, ``delete``. What the driver repeats by itself counts once.
    """

    def __init__(self, connect: "Callable[[], Driver]") -> None:
        self.requests: Counter[str] = Counter()
        self._connect = connect
        self._driver: Driver | None = None
        self._lock = Lock()  # protects the count, and that the driver is made once

    def find(self, path: str, unless: "Version | None" = None) -> Found | None:
        """Return an object, ``None`` where there is none. One request.

        Raises:
            UnchangedError: It is still the version *unless*; no body was sent.
        """
        tag = unless.get("e_tag") if unless else None

        def get(driver: "Driver") -> Found:
            result = driver.get(path, options={"if_none_match": tag} if tag else None)
            return Found(bytes(result.bytes()), _version(result.meta))

        try:
            return self.request("get", path, get)
        except AbsentError:
            return None

    def put(self, path: str, body: bytes, mode: "PutMode" = "overwrite") -> Version:
        """Write an object: over an older one, where there is none (``create``), or over one version only. One request.

        Raises:
            RejectedError: There is one, or it is another version.
        """
        try:
            # In one piece whatever the size: a put in several parts cannot be conditional everywhere.
            call = methodcaller("put", path, body, mode=mode, use_multipart=False)
            result: PutResult = self.request("put", path, call, creates=mode == "create")
        except AbsentError:
            # Some providers answer so where the condition names a version of what is gone; else the bucket is missing.
            raise (RejectedError() if isinstance(mode, dict) else _no_bucket(path)) from None
        return _version(result)

    def put_each(self, objects: Mapping[str, bytes]) -> None:
        """Write objects over older ones, some at a time. One request each; if one fails, others may be written."""
        _each(self.put, objects, objects.values())

    def find_each(self, paths: Collection[str]) -> list[bytes | None]:
        """Return the bodies of objects in the order of their paths, ``None`` where there is none. One request each."""
        return [found and found.body for found in _each(self.find, paths)]

    def delete(self, paths: Collection[str]) -> None:
        """Delete objects; those that are not there are passed over. One request for each thousand."""
        rest = list(paths)
        while rest:
            batch, rest = rest[:_BATCH], rest[_BATCH:]
            try:
                self.request("delete", batch[0], methodcaller("delete", batch))
            except AbsentError:  # some providers delete one by one and stop there
                for path in batch if len(batch) > 1 else ():
                    self.delete([path])

    def names(self, prefix: str) -> Iterator[str]:
        """Yield the paths below a prefix, which is whole path segments. One request for each thousand."""
        stream: Iterator[Any] | None = None

        def list_next(driver: "Driver") -> list[Any]:
            nonlocal stream
            stream = stream or iter(driver.list(prefix, chunk_size=_BATCH))
            return list(next(stream, []))

        batch = self.request("list", prefix, list_next)
        while batch:
            yield from (str(meta["path"]) for meta in batch)
            batch = self.request("list", prefix, list_next) if len(batch) == _BATCH else []

    def request(self, kind: str, path: str, call: "Callable[[Driver], _T]", *, creates: bool = False) -> _T:
        """Make one request, count it, and say by memci's errors what went wrong. A subclass can make requests fail."""
        with self._lock:
            self.requests[kind] += 1
            if self._driver is None:
                self._driver = self._connect()
            driver = self._driver
        from obstore.exceptions import BaseError  # noqa: PLC0415 (the driver is optional)

        try:
            return call(driver)
        except (BaseError, OSError, NotImplementedError) as error:
            raise _meaning(error, path, creates=creates) from None


def _each(call: Callable[..., _T], *columns: Collection[object]) -> list[_T]:
    """Make calls, some at a time; none is under way once this returns or raises."""
    if len(columns[0]) <= 1:
        return list(map(call, *columns))
    with ThreadPoolExecutor(_PARALLEL, "memci-objects") as pool:
        return list(pool.map(call, *columns))


def _version(meta: "ObjectMeta | PutResult") -> Version:
    """Leave out what the provider does not tell."""
    tag, number = meta["e_tag"], meta["version"]
    return {**({} if tag is None else {"e_tag": tag}), **({} if number is None else {"version": number})}


def _meaning(error: Exception, path: str, *, creates: bool) -> Exception:
    """Return what an error of the driver means.

    The driver calls it *exists* where the provider answered 409, another put being under way, or where a put that is to
    make the object met one. Whether the first of them is the same put, sent again, is not known.
    """
    name, text = type(error).__name__, str(error)
    status = match[1] if (match := _STATUS.search(text)) else ""
    if any(word in text for word in _NO_BUCKET):
        return _no_bucket(path)
    if name in _ANSWERS:
        return _ANSWERS[name]()
    if name == "AlreadyExistsError" and creates:
        return RejectedError()
    if name in {"NotSupportedError", "NotImplementedError"}:
        advice = "the provider has no conditional put: use another, or file:./directory"
    elif name in {"PermissionDeniedError", "UnauthenticatedError", "PermissionError"} or status in {"401", "403"}:
        advice = "the provider refused it: see the credentials in the environment and their rights"
    else:
        reason = f"the provider answered {status}" if status else "the provider did not answer"
        advice = f"{reason}: see the network, the endpoint and the region, then do it again"
    return UnavailableError(f"{path}: {advice}")


def _no_bucket(path: str) -> UnavailableError:
    return UnavailableError(f"{path}: there is no such bucket: make it, or see the URL, the endpoint and the region")
