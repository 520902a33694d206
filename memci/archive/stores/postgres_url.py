"""What of a store's URL is memci's own, and what is the driver's."""

from memci.errors import ConfigError

OPTIONS = ("memci_index", "memci_pool")
"""Parameters of memci's own; they are taken as they are, without percent-decoding."""


def split_options(url: str) -> tuple[str, dict[str, str]]:
    """Return the URL without memci's own parameters, and these.

    Raises:
        ConfigError: One of them is not known. The text does not show the URL, which may hold a password.
    """
    place, _, query = url.partition("?")
    options = {}
    others = []
    for parameter in query.split("&") if query else ():
        name, _, value = parameter.partition("=")
        if name in OPTIONS:
            options[name] = value
        elif name.startswith("memci_"):
            message = f"there is no parameter {name}: the URL takes {', '.join(OPTIONS)}, and what libpq knows"
            raise ConfigError(message, path="store")
        else:
            others.append(parameter)
    return f"{place}?{'&'.join(others)}" if others else place, options


def pool_size(text: str) -> int:
    """Return the most connections that a process opens.

    Raises:
        ConfigError: It is no number from 1.
    """
    if not (text.isascii() and text.isdecimal() and int(text[:9]) > 0):
        message = f"memci_pool is {text[:80]!r}: give a number of connections, from 1"
        raise ConfigError(message, path="store")
    return int(text)
