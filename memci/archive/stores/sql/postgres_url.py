"""What of a store's URL is memci's own, and what is the driver's."""

import re

from memci.archive.catalogue.index_folder import MOST_BYTES, NUMBER
from memci.errors import ConfigError

_HOST = r"(?:\[[^\]@/?]*\]|[^@/?:,\[\]]*)(?::[0-9]{0,5})?"
_PARAMETERS = r"(?:[^=&@?/]+=[^&{0}]*(?:&[^=&@?/]+=[^&{0}]*)*)?"
_URL = re.compile(
    rf"postgres(?:ql)?://(?:[^@/?]*@)?{_HOST}(?:,{_HOST})*"
    rf"(?:/[^@?]*(?:\?{_PARAMETERS.format('')})?|\?{_PARAMETERS.format('@')})?"
)


def is_clear(url: str) -> bool:
    """Return whether a URL is one of libpq whose password holds no ``@``, ``/`` or ``?`` as it is. O(its length).

    Libpq takes a part of such a password for a host, a port or a database, and its errors show those
    (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS).
    """
    return _URL.fullmatch(url) is not None


def split_options(url: str) -> tuple[str, int, str, int]:
    """Return the URL without memci's own parameters, and these: ``memci_pool``, ``memci_index`` or empty, ``memci_index_bytes``.

    They are taken without percent-decoding. A ``ConfigError`` shows nothing of the URL, which may hold a password.
    """
    if not is_clear(url):
        message = (
            "the URL of the database cannot be read: give postgresql://user:password@host:5432/database, and percent-encode what "
            "the user and the password hold of @ (%40), : (%3A), / (%2F), ? (%3F), # (%23) and % (%25)"
        )
        raise ConfigError(message, path="store")
    place, _, query = url.partition("?")
    parameters = [parameter for parameter in query.split("&") if parameter]
    own = dict(parameter.split("=", 1) for parameter in parameters if parameter.startswith("memci_"))
    size, index, most = own.pop("memci_pool", "8"), own.pop("memci_index", ""), own.pop("memci_index_bytes", str(MOST_BYTES))
    if own or not re.fullmatch("0*[1-9][0-9]{0,8}", size) or not NUMBER.fullmatch(most):
        takes = "memci_index, a directory, memci_index_bytes, what it may take"
        message = f"of memci's own the URL takes {takes}, and memci_pool, how many connections a process opens"
        raise ConfigError(message, path="store")
    others = "&".join(parameter for parameter in parameters if not parameter.startswith("memci_"))
    return f"{place}?{others}" if others else place, int(size), index, int(most)
