"""What of a store's URL is memci's own, and what is the driver's."""

import re

from memci.errors import ConfigError

# Parameters of memci's own, which are taken as they are, without percent-decoding; and what they are where nothing is said.
_OPTIONS = {"memci_index": "", "memci_pool": "4"}

_HOST = r"(?:\[[^\]@/?]*\]|[^@/?:,\[\]]*)(?::[0-9]{0,5})?"
_PARAMETERS = r"(?:[^=&@?/]+=[^&{0}]*(?:&[^=&@?/]+=[^&{0}]*)*)?"
_URL = re.compile(
    rf"postgres(?:ql)?://(?:[^@/?]*@)?{_HOST}(?:,{_HOST})*"
    rf"(?:/[^@?]*(?:\?{_PARAMETERS.format('')})?|\?{_PARAMETERS.format('@')})?"
)


def is_clear(url: str) -> bool:
    """Return whether everybody reads the same user, password and hosts in a URL. O(its length).

    They do not where a password holds ``@``, ``/`` or ``?`` as it is: libpq takes a part of it for a host, a port or a database,
    and its errors show those. The form is that of the URIs of libpq
    (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS), without these.
    """
    return _URL.fullmatch(url) is not None


def split_options(url: str) -> tuple[str, int, str]:
    """Return the URL without memci's own parameters, the most connections of a process, and the directory of the indexes.

    The text of a ``ConfigError`` shows nothing of a URL that cannot be used: it may hold a password.
    """
    if not is_clear(url):
        message = (
            "the URL of the database cannot be read: give postgresql://user:password@host:5432/database, and percent-encode what "
            "the user and the password hold of @ (%40), : (%3A), / (%2F), ? (%3F), # (%23) and % (%25)"
        )
        raise ConfigError(message, path="store")
    place, _, query = url.partition("?")
    parameters = [parameter.partition("=") for parameter in query.split("&") if parameter]
    own = {name: value for name, _, value in parameters if name.startswith("memci_")}
    if not own.keys() <= _OPTIONS.keys():
        message = f"a parameter of memci's own is none of {', '.join(_OPTIONS)}: the URL takes these, and what libpq knows"
        raise ConfigError(message, path="store")
    index, size = ({**_OPTIONS, **own}[name] for name in _OPTIONS)
    if not (size.isascii() and size.isdecimal() and int(size[:9]) > 0):
        message = "memci_pool is no number: give how many connections a process opens at most, from 1"
        raise ConfigError(message, path="store")
    others = "&".join("".join(parameter) for parameter in parameters if parameter[0] not in own)
    return f"{place}?{others}" if others else place, int(size), index
