"""What a URL says about where objects are, and the driver for it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import attrs

from memci.errors import ConfigError

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Driver

SCHEMES = ("s3", "gs", "az")
"""Providers with a conditional put."""

_CONFIG = ("account_name", "endpoint", "region", "virtual_hosted_style_request")
_CLIENT = ("allow_http",)
_OWN = ("memci_index", "timeout_s", "retries")
_KNOWN = sorted((*_CONFIG, *_CLIENT, *_OWN))
_TIMEOUT_S = 30
_RETRIES = 3
_MOST = 3_600


@attrs.frozen
class Location:
    """Where objects are.

    Attributes:
        url: Scheme, bucket and prefix; no options and nothing secret.
        config: Options of the provider.
        client: Options of the HTTP client.
        timeout_s: Seconds that one request may take.
        retries: How often the driver repeats a request that had no answer.
        index_dir: Directory of this machine for the indexes; ``None`` for memory.
    """

    url: str
    config: Mapping[str, Any]
    client: Mapping[str, Any]
    timeout_s: int
    retries: int
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
    options = dict(parse_qsl(query, keep_blank_values=True))
    problem = _problem(scheme, rest, options)
    if problem is not None:
        raise _refused(problem)
    return Location(
        url=address,
        config={name: options[name] for name in _CONFIG if name in options},
        client={name: options[name] for name in _CLIENT if name in options},
        timeout_s=_number(options, "timeout_s", _TIMEOUT_S, least=1),
        retries=_number(options, "retries", _RETRIES, least=0),
        index_dir=options.get("memci_index"),
    )


def connect(location: Location) -> "Driver":
    """Make the driver; it makes no request yet.

    Raises:
        ConfigError: An option, or what the environment says, cannot be used.
        ImportError: obstore is not installed.
    """
    from obstore.exceptions import BaseError  # noqa: PLC0415 (the driver is optional)
    from obstore.store import from_url  # noqa: PLC0415 (the same)

    timeout = timedelta(seconds=location.timeout_s)
    options: dict[str, Any] = {
        "config": dict(location.config),
        "client_options": {**location.client, "timeout": timeout, "connect_timeout": timeout},
        "retry_config": {"max_retries": location.retries, "retry_timeout": timeout * (location.retries + 1)},
    }
    try:
        driver: Driver = from_url(location.url, **options)
    except (BaseError, ValueError, TypeError) as error:
        # The driver's text may quote the environment.
        reason = f"no client can be made for it ({type(error).__name__}): see the options, and the account in the environment"
        raise _refused(reason) from None
    return driver


def _problem(scheme: str, rest: str, options: Mapping[str, str]) -> str | None:
    """Return what is wrong with the parts of a URL. It quotes names of options, and nothing else of what was given."""
    bucket = rest.partition("/")[0]
    if "@" in rest or "#" in rest or ":" in bucket or "@" in options.get("endpoint", ""):
        return "it has a user, a password or a fragment: give credentials in the environment"
    if scheme not in SCHEMES or not bucket:
        return "it names no bucket: give s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
    unknown = sorted(set(options).difference(_KNOWN))
    if unknown:
        # What has no value may be one itself.
        name = (
            f"there is no option {unknown[0][:40]}"
            if _is_name(unknown[0]) and options[unknown[0]]
            else "it has an unknown option"
        )
        return f"{name}, there are {', '.join(_KNOWN)}; credentials come from the environment"
    return None


def _is_name(text: str) -> bool:
    return text.isascii() and text.isidentifier()


def _number(options: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    text = options.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST)) and least <= int(text) <= _MOST):
        message = f"{name} is no number from {least} to {_MOST}"
        raise _refused(message)
    return int(text)


def _refused(reason: str) -> ConfigError:
    return ConfigError(f"the URL of the object store cannot be used: {reason}", path="store")
