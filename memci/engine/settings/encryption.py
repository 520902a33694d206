"""Encryption at rest: where the keys are, and the store that uses them."""

import os
import re
from base64 import urlsafe_b64decode

import attrs

from memci.archive.stores.contract import Store
from memci.errors import ConfigError

_PLACE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
_BYTES = 32
_NEW = "make one with: openssl rand -base64 32"


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _check_old(_instance: object, _field: "attrs.Attribute[tuple[str, ...]]", value: object) -> None:
    if not isinstance(value, tuple) or not all(isinstance(each, str) and _PLACE.fullmatch(each) for each in value):
        message = "give a list of variables of the environment, such as [env:MEMCI_OLD_KEY]"
        raise ConfigError(message, path="encryption.old_keys")


@attrs.frozen(kw_only=True)
class Encryption:
    """What is stored is ciphertext; see ``memci.archive.stores.encrypted``."""

    key: str | None = attrs.field(
        default=None,
        metadata={"comment": "env:NAME, the variable that has 32 bytes in base64; null for none", "example": "env:MEMCI_KEY"},
    )
    old_keys: tuple[str, ...] = attrs.field(
        default=(),
        converter=_listed,
        validator=_check_old,
        metadata={"comment": "those of before, which open what was written with them"},
    )

    @key.validator
    def _is_place(self, _attribute: object, given: object) -> None:
        if given is not None and not (isinstance(given, str) and _PLACE.fullmatch(given)):  # it may be the key
            message = "give the variable of the environment that has the key, such as env:MEMCI_KEY, and not the key itself"
            raise ConfigError(message, path="encryption.key")

    def around(self, store: Store) -> Store:
        """Return a store, or one around it that encrypts; ``ConfigError`` where a key is not there, or is none."""
        if self.key is None:
            if self.old_keys:
                message = "there are old keys and no key: give the one that writes"
                raise ConfigError(message, path="encryption.key")
            return store
        from memci.archive.stores.encrypted import EncryptedStore  # noqa: PLC0415 (for those who encrypt)

        return EncryptedStore(store, _read(self.key, "key"), [_read(place, "old_keys") for place in self.old_keys])


def _read(place: str, name: str) -> bytes:
    variable, path = place.removeprefix("env:"), f"encryption.{name}"
    text = os.environ.get(variable, "").strip()
    if not text:
        message = f"the environment has no {variable}: set it to {_BYTES} bytes in base64; {_NEW}"
        raise ConfigError(message, path=path)
    try:
        key = urlsafe_b64decode(text.replace("+", "-").replace("/", "_"))
    except ValueError:
        key = b""
    if len(key) != _BYTES:
        message = f"{variable} is no key: it takes {_BYTES} bytes in base64; {_NEW}"
        raise ConfigError(message, path=path)
    return key
