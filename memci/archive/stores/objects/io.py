"""Every request that the object store makes, counted, and what the driver's errors mean."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import attrs

from memci.errors import ConfigError, UnavailableError

if TYPE_CHECKING:
    from obstore import PutMode, UpdateVersion
    from obstore.store import ObjectStore as Driver

_T = TypeVar("_T")
Condition: TypeAlias = Literal["absent", "same"]
"""When a put is to be done: where there is no object yet, or where it still is the version that is named."""

_PARALLEL = 8
_BATCH = 1_000  # objects that one listing or deletion names, as S3 has it
_UNFIT = {
    "LocalStore": "a directory has no conditional put: use file:./directory",
    "HTTPStore": "a web server has no conditional put: use s3, gs or az",
}
_STATUS = re.compile(r"status code: (\d{3})")
_REFUSED = {"401", "403"}
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")


class AbsentError(Exception):
    """There is no such object."""


class UnchangedError(Exception):
    """The object is still the version that was named."""


class RejectedError(Exception):
    """The condition of a put does not hold: somebody else wrote the object, or removed it."""


@attrs.frozen
class Version:
    """What tells one content of an object from another. Providers use either or both.

    Attributes:
        e_tag: The entity tag of HTTP.
        generation: The provider's own version.
    """

    e_tag: str | None
    generation: str | None

    def condition(self) -> "UpdateVersion":
        """Return the condition of a put that replaces this version only."""
        condition: UpdateVersion = {}
        if self.e_tag is not None:
            condition["e_tag"] = self.e_tag
        if self.generation is not None:
            condition["version"] = self.generation
        return condition


@attrs.frozen
class Found:
    """An object as it was read.

    Attributes:
        body: Its bytes.
        version: Which content this is.
    """

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
        bytes_written: Bytes of the bodies that were put.
        bytes_read: Bytes of the bodies that came.
    """

    def __init__(self, connect: "Callable[[], Driver]") -> None:
        self.requests: Counter[str] = Counter()
        self.bytes_written = 0
        self.bytes_read = 0
        self._connect = connect
        self._driver: Driver | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._lock = Lock()  # protects the counts, and that driver and pool are made once

    def find(self, path: str, unless: Version | None = None) -> Found | None:
        """Return an object, ``None`` where there is none. One request.

        Raises:
            UnchangedError: It is still the version *unless*; no body was sent.
        """

        def call(driver: "Driver") -> Found:
            import obstore  # noqa: PLC0415 (the driver is optional)

            condition = unless and unless.e_tag
            result = obstore.get(driver, path, options={"if_none_match": condition} if condition else None)
            meta = result.meta
            return Found(bytes(result.bytes()), Version(meta["e_tag"], meta["version"]))

        try:
            found = self.request("get", path, call)
        except AbsentError:
            return None
        with self._lock:
            self.bytes_read += len(found.body)
        return found

    def put(self, path: str, body: bytes) -> None:
        """Write an object, over an older one. One request."""
        self._put(path, body, "overwrite")

    def replace(self, path: str, body: bytes, version: Version | None) -> Version:
        """Write an object if it is still this version, or if there is none where *version* is ``None``. One request.

        Raises:
            RejectedError: It is another.
        """
        return self._put(path, body, "create" if version is None else version.condition())

    def put_each(self, objects: Mapping[str, bytes]) -> None:
        """Write objects over older ones, some at a time. One request each; if one fails, others may be written."""
        self._each(self.put, objects, objects.values())

    def find_each(self, paths: Collection[str]) -> list[bytes | None]:
        """Return the bodies of objects in the order of their paths, ``None`` where there is none. One request each."""
        found = self._each(self.find, paths)
        return [None if one is None else one.body for one in found]

    def delete(self, paths: Collection[str]) -> None:
        """Delete objects; those that are not there are passed over. One request for each thousand."""
        rest = list(paths)
        while rest:
            batch, rest = rest[:_BATCH], rest[_BATCH:]
            try:
                self._delete(batch)
            except AbsentError:  # some providers delete one by one and stop there
                for path in batch:
                    self._delete_one(path)

    def names(self, prefix: str) -> Iterator[str]:
        """Yield the paths below a prefix, which is whole path segments. One request for each thousand."""
        stream: Iterator[Any] | None = None

        def call(driver: "Driver") -> list[Any]:
            import obstore  # noqa: PLC0415 (the driver is optional)

            nonlocal stream
            if stream is None:
                stream = iter(obstore.list(driver, prefix, chunk_size=_BATCH))
            return list(next(stream, []))

        while True:
            batch = self.request("list", prefix, call)
            yield from (str(meta["path"]) for meta in batch)
            if len(batch) < _BATCH:
                return

    def close(self) -> None:
        """End the threads. May be called twice; a later call begins new ones."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def request(self, kind: str, path: str, call: "Callable[[Driver], _T]", condition: "Condition | None" = None) -> _T:
        """Make one request, count it, and say by memci's errors what went wrong. A subclass can make requests fail."""
        with self._lock:
            self.requests[kind] += 1
            if self._driver is None:
                self._driver = _connected(self._connect)
            driver = self._driver
        try:
            return call(driver)
        except Exception as error:
            mapped = _mapped(error, path, condition)
            if mapped is None:
                raise
            raise mapped from None

    def _put(self, path: str, body: bytes, mode: "PutMode") -> Version:
        def call(driver: "Driver") -> Version:
            import obstore  # noqa: PLC0415 (the driver is optional)

            # In one piece whatever the size: a put in several parts cannot be conditional everywhere.
            result = obstore.put(driver, path, body, mode=mode, use_multipart=False)
            return Version(result["e_tag"], result["version"])

        try:
            version = self.request("put", path, call, None if mode == "overwrite" else "absent" if mode == "create" else "same")
        except AbsentError:
            # Some providers answer so where the condition names a version of what is gone; else the bucket is missing.
            if isinstance(mode, dict):
                raise RejectedError from None
            raise _no_bucket(path) from None
        with self._lock:
            self.bytes_written += len(body)
        return version

    def _delete(self, paths: list[str]) -> None:
        def call(driver: "Driver") -> None:
            import obstore  # noqa: PLC0415 (the driver is optional)

            obstore.delete(driver, paths)

        self.request("delete", paths[0], call)

    def _delete_one(self, path: str) -> None:
        try:
            self._delete([path])
        except AbsentError:
            return

    def _each(self, call: Callable[..., _T], *columns: Collection[object]) -> list[_T]:
        if len(columns[0]) <= 1:
            return list(map(call, *columns))
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_PARALLEL, "memci-objects")
            pool = self._pool
        # All of them end before one that failed is reported: none is under way once this returns.
        futures = [pool.submit(call, *row) for row in zip(*columns, strict=True)]
        failures = [failure for future in futures if (failure := future.exception()) is not None]
        if failures:
            raise failures[0]
        return [future.result() for future in futures]


def _connected(connect: "Callable[[], Driver]") -> "Driver":
    try:
        driver = connect()
    except ImportError as error:
        message = "the store needs obstore: install memci with its extra objects"
        raise ConfigError(message, path="store") from error
    name = type(driver).__name__
    if name in _UNFIT:
        raise ConfigError(_UNFIT[name], path="store")
    return driver


def _mapped(error: Exception, path: str, condition: "Condition | None") -> Exception | None:
    """Return what an error of the driver means, ``None`` where it is none.

    The driver calls it *exists* where the provider answered 409, another put being under way, or where a put that is to
    make the object met one. Whether the first of them is the same put, sent again, is not known.
    """
    from obstore import exceptions  # noqa: PLC0415 (the driver is optional)

    text = str(error)
    status = match[1] if (match := _STATUS.search(text)) else ""
    if any(word in text for word in _NO_BUCKET):
        return _no_bucket(path)
    match error:
        case FileNotFoundError() | exceptions.NotFoundError():
            return AbsentError()
        case exceptions.NotModifiedError():
            return UnchangedError()
        case exceptions.AlreadyExistsError() | exceptions.PreconditionError() if condition == "absent" or (
            condition == "same" and isinstance(error, exceptions.PreconditionError)
        ):
            return RejectedError()
        case exceptions.PermissionDeniedError() | exceptions.UnauthenticatedError() | PermissionError():
            advice = "the provider refused it: see the credentials in the environment and their rights"
        case exceptions.NotSupportedError():
            advice = "the provider has no conditional put: use another, or file:./directory"
        case exceptions.BaseError() | OSError() if status in _REFUSED:
            advice = "the provider refused it: see the credentials in the environment and their rights"
        case exceptions.BaseError() | OSError():
            reason = f"the provider answered {status}" if status else "the provider did not answer"
            advice = f"{reason}: see the network, the endpoint and the region, then do it again"
        case _:
            return None
    return UnavailableError(f"{path}: {advice}")


def _no_bucket(path: str) -> UnavailableError:
    return UnavailableError(f"{path}: there is no such bucket: make it, or see the URL, the endpoint and the region")
