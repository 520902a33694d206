"""A bucket: the URL that names it, every request that is made there, and what the driver's errors mean."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias, TypeVar
from urllib.parse import parse_qsl

from memci.archive.catalogue.index_folder import MOST_BYTES, NUMBER
from memci.errors import ConfigError, UnavailableError

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode, PutResult, UpdateVersion
    from obstore.store import ObjectStore as Driver

Version: TypeAlias = "UpdateVersion"  # tells one content of an object from another: the condition of a put that replaces it
_T = TypeVar("_T")

_ADDRESS = re.compile(r"(?:s3|gs|az)://[^/@#:]+(?:/[^@#]*)?")  # of providers with a conditional put; no user and no fragment
_CONFIG = ("account_name", "endpoint", "region", "virtual_hosted_style_request")
_KNOWN = sorted((*_CONFIG, "allow_http", "memci_index", "memci_index_bytes", "timeout_s", "retries"))

_PARALLEL = 8
_BATCH = 1_000  # objects that one listing or deletion names, as S3 has it
_STATUS = re.compile(r"status code: (\d{3})")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")


def parse(url: str, durability: str = "fsync") -> tuple[str, dict[str, Any], str | None, int]:
    """Return the URL with nothing secret, what the driver takes beside it, the directory for indexes, if any, and its bytes.

    Raises ``ConfigError`` if it cannot be used, or the durability is not ``fsync``. The text shows nothing after the prefix.
    """
    if durability != "fsync":
        message = f"{durability!r} is no durability of an object store: fsync, the provider's acknowledgement, is the only one"
        raise ConfigError(message, path="durability")
    address, _, query = url.partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    if not _ADDRESS.fullmatch(address) or "@" in given.get("endpoint", ""):
        _refuse("give s3://bucket/prefix, gs://bucket/prefix or az://container/prefix, and credentials in the environment")
    for name in sorted(given.keys() - set(_KNOWN)):  # what has no value may be a secret itself
        unknown = f"there is no option {name[:40]}" if name.isidentifier() and given[name] else "it has an unknown option"
        _refuse(f"{unknown}, there are {', '.join(_KNOWN)}; credentials come from the environment")
    most = given.get("memci_index_bytes", str(MOST_BYTES))
    if not NUMBER.fullmatch(most):
        _refuse("memci_index_bytes is a number of bytes")
    timeout_s, retries = given.get("timeout_s", "30"), given.get("retries", "3")
    if not re.fullmatch("[1-9][0-9]{0,3}", timeout_s) or not re.fullmatch("[0-9]{1,4}", retries):
        _refuse("timeout_s is a number from 1 to 9999, and retries one from 0")
    timeout = timedelta(seconds=int(timeout_s))
    client = {name: given[name] for name in ("allow_http",) if name in given}
    options = {
        "config": {name: given[name] for name in _CONFIG if name in given},
        "client_options": {**client, "timeout": timeout, "connect_timeout": timeout},
        "retry_config": {"max_retries": int(retries), "retry_timeout": timeout * (int(retries) + 1)},
    }
    return address, options, given.get("memci_index"), int(most)


def connect(url: str, options: Mapping[str, Any]) -> "Driver":
    """Make the driver, without a request; ``ConfigError`` if obstore is missing, or option or environment cannot be used."""
    try:
        from obstore.exceptions import BaseError  # noqa: PLC0415 (the driver is optional)
        from obstore.store import from_url  # noqa: PLC0415 (the same)
    except ImportError as error:
        message = "the store needs obstore: install memci with its extra objects"
        raise ConfigError(message, path="store") from error
    try:
        driver: Driver = from_url(url, **options)
    except (BaseError, ValueError, TypeError) as error:
        _refuse(f"no client can be made for it ({type(error).__name__}): see the options, and the account in the environment")
    return driver


def _refuse(reason: str) -> NoReturn:
    message = f"the URL of the object store cannot be used: {reason}"
    raise ConfigError(message, path="store") from None  # the driver's text may quote the environment


class UnchangedError(Exception):
    """The object is still the version that was named."""


class RejectedError(Exception):
    """The condition of a put does not hold: somebody else wrote the object, or removed it."""


_ANSWERS = {
    **dict.fromkeys(("FileNotFoundError", "NotFoundError"), FileNotFoundError),
    "NotModifiedError": UnchangedError,
    "PreconditionError": RejectedError,
}


class Found(NamedTuple):
    """An object as it was read."""

    body: bytes
    version: Version


class ObjectIo:
    """A bucket, or a part of one, as the object store uses it. Safe for many threads; paths are relative to the prefix.

    Every call raises ``UnavailableError`` where the provider did not answer, or refused: a put or deletion may then have taken
    effect all the same. No text of the driver is passed on, for it may show addresses with keys in them.
    """

    def __init__(self, connect: "Callable[[], Driver]") -> None:
        self._connect = connect  # makes the driver, when the first request is made
        self._driver: Driver | None = None

    def find(self, path: str, unless: "Version | None" = None) -> Found | None:
        """Return an object, ``None`` where there is none, or ``UnchangedError`` if it still is that version. One request."""
        tag = unless.get("e_tag") if unless else None

        def get(driver: "Driver") -> Found:
            result = driver.get(path, options={"if_none_match": tag} if tag else None)
            return Found(bytes(result.bytes()), _version(result.meta))

        try:
            return self.request("get", path, get)
        except FileNotFoundError:
            return None

    def put(self, path: str, body: bytes, mode: "PutMode" = "overwrite") -> Version:
        """Write an object: over any, or a new one (``create``) or over one version, else ``RejectedError``. One request."""
        try:
            # In one piece whatever the size: a put in several parts cannot be conditional everywhere.
            call = methodcaller("put", path, body, mode=mode, use_multipart=False)
            result: PutResult = self.request("put", path, call, creates=mode == "create")
        except FileNotFoundError:
            # Some providers answer so where the condition names a version of what is gone; else the bucket is missing.
            raise (RejectedError() if isinstance(mode, dict) else _no_bucket(f"put {path}")) from None
        return _version(result)

    def delete(self, paths: Collection[str]) -> None:
        """Delete objects; those that are not there are passed over. One request for each thousand."""
        rest = list(paths)
        while rest:
            batch, rest = rest[:_BATCH], rest[_BATCH:]
            try:
                self.request("delete", batch[0], methodcaller("delete", batch))
            except FileNotFoundError:  # some providers delete one by one and stop there
                for path in batch if len(batch) > 1 else ():
                    self.delete([path])

    def names(self, prefix: str) -> Iterator[str]:
        """Yield the paths below a prefix, which is whole path segments. One request for each thousand."""
        yield from (path for path, _ in self.sizes(prefix))

    def sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield the paths below a prefix, each with its size in bytes; see ``names``."""
        stream: Iterator[Any] | None = None

        def list_next(driver: "Driver") -> list[Any]:
            nonlocal stream
            stream = stream or iter(driver.list(prefix, chunk_size=_BATCH))
            return list(next(stream, []))

        batch = self.request("list", prefix, list_next)
        while batch:
            yield from ((str(meta["path"]), int(meta["size"])) for meta in batch)
            batch = self.request("list", prefix, list_next) if len(batch) == _BATCH else []

    def request(self, kind: str, path: str, call: "Callable[[Driver], _T]", *, creates: bool = False) -> _T:
        """Make one request, and say by memci's errors what went wrong. A subclass can count requests or make them fail."""
        driver = self._driver = self._driver or self._connect()
        from obstore.exceptions import BaseError  # noqa: PLC0415 (the driver is optional)

        try:
            return call(driver)
        except (BaseError, OSError, NotImplementedError) as error:
            raise _meaning(error, f"{kind} {path}", creates=creates) from None


def each(call: Callable[..., _T], *columns: Collection[object]) -> list[_T]:
    """Make calls, some at a time; none is under way once this returns or raises, though others may be done then."""
    if len(columns[0]) <= 1:
        return list(map(call, *columns))
    with ThreadPoolExecutor(_PARALLEL, "memci-objects") as pool:
        return list(pool.map(call, *columns))


def _version(meta: "ObjectMeta | PutResult") -> Version:
    """Leave out what the provider does not tell."""
    tag, number = meta["e_tag"], meta["version"]
    return {**({} if tag is None else {"e_tag": tag}), **({} if number is None else {"version": number})}


def _meaning(error: Exception, request: str, *, creates: bool) -> Exception:
    """Return what an error of the driver means.

    It says *exists* where a put that *creates* met an object, and for any 409: another put, perhaps the same one sent again.
    """
    name, text = type(error).__name__, str(error)
    status = match[1] if (match := _STATUS.search(text)) else ""
    if any(word in text for word in _NO_BUCKET):
        return _no_bucket(request)
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
    return UnavailableError(f"{request}: {advice}")


def _no_bucket(request: str) -> UnavailableError:
    return UnavailableError(f"{request}: there is no such bucket: make it, or see the URL, the endpoint and the region")
