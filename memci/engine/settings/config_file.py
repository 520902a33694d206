"""The configuration as a YAML file: reading one, and the text of the one with all defaults."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from memci.errors import ArgumentError, ConfigError, shown

if TYPE_CHECKING:
    import yaml

_WORDS = {None: "null", True: "true", False: "false"}


def text(config: attrs.AttrsInstance) -> str:
    """Return the file of a config, with a comment on every key, from the metadata of its fields."""
    return "# memci.yaml: every key with its default. Delete what you do not change.\n\n" + "\n".join(_lines(config, "")) + "\n"


def _lines(config: attrs.AttrsInstance, indent: str) -> Iterator[str]:
    below = False
    for field in attrs.fields(type(config)):
        value = getattr(config, field.name)
        is_section = attrs.has(type(value))
        if below or is_section:
            yield ""
        below = is_section
        written = _WORDS[value] if value is None or type(value) is bool else [*value] if isinstance(value, tuple) else value
        shown_value = "" if is_section else f" {written}"
        yield f"{indent}{field.name}:{shown_value}".ljust(25) + f" # {field.metadata['comment']}"
        if is_section:
            yield from _lines(value, "  ")


def read(path: str | os.PathLike[str]) -> Mapping[str, object]:
    """Read a YAML file of two levels of keys; an empty one is an empty mapping. All that can be wrong is a ``ConfigError``."""
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(argument="path", value=path, wanted="the path of a YAML file")
    name = os.fspath(path)
    try:
        said = Path(name).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{name}: byte {error.start} is not UTF-8: save the file as UTF-8"
        raise ConfigError(message) from error
    except (OSError, ValueError) as error:
        message = f"the file {shown(name)} cannot be read: {error}"
        raise ConfigError(message) from error
    value = _parse(said, name)
    if not isinstance(value, Mapping):
        message = f"{name}: a configuration is keys and values, such as 'counter: o200k_base', not a {type(value).__name__}"
        raise ConfigError(message)
    return value


def _parse(said: str, name: str) -> object:
    """Return the value of a YAML text, an empty mapping for an empty one."""
    import yaml  # noqa: PLC0415 (20 ms to load, and a config made in code needs none of it)

    try:
        loader = yaml.SafeLoader(said)
        root = loader.get_single_node()
        if root is None:
            return {}
        _refuse_duplicates(root, name)
        value = loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}, line {mark.line + 1}, column {mark.column + 1}" if mark else name
        message = f"{place}: not YAML: {error.problem or error.context}"
        # The parser's text quotes the line, which may hold the password of a store.
        raise ConfigError(message) from None
    except yaml.reader.ReaderError as error:
        before = said[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message = f"{name}, line {line}, column {column}: not YAML: {error.reason}"
        raise ConfigError(message) from error
    except (ValueError, LookupError, AttributeError, RecursionError) as error:
        # What PyYAML's scalar constructors let through: a date that does not exist, a tag whose text does not fit.
        message = f"{name}: a value cannot be read: {error}: write plain words and numbers, in two levels of keys"
        raise ConfigError(message) from error
    return {} if value is None else value


def _refuse_duplicates(root: "yaml.Node", name: str) -> None:
    """Refuse a key that stands twice: YAML forbids it, and PyYAML silently takes the last. Two levels are all there are."""
    from yaml import MappingNode  # noqa: PLC0415 (as above)

    levels = [("", root)]
    for path, node in levels:
        if not isinstance(node, MappingNode):
            continue
        seen = set()
        for key, value in node.value:
            place = f"{path}.{key.value}" if path else str(key.value)
            if place in seen:
                line, column = key.start_mark.line + 1, key.start_mark.column + 1
                message = f"stands twice in {name}, the second time in line {line}, column {column}: keep one"
                raise ConfigError(message, path=place)
            seen.add(place)
            if not path:
                levels.append((place, value))


def shown_store(url: str) -> str:
    """Return the store's URL as the ``repr`` of a config shows it: without what may be a secret."""
    from memci.archive.stores.url import shown_url  # noqa: PLC0415 (loads the stores' files, which a config does not need)

    return repr(shown_url(url))
