"""The configuration as a YAML file: reading one, and the text of the one with all defaults."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from memci.errors import ArgumentError, ConfigError, shown

if TYPE_CHECKING:
    import yaml

_TEXT = """\
# memci.yaml: every key with its default. Delete what you do not change.

format: openai            # wire format of the messages: openai, responses or anthropic; a session keeps its own
counter: o200k_base       # what counts tokens: an encoding, a model's name such as gpt-4o, or approximate

budget:                   # a window holds at most window - reserve tokens
  window: 32000           # context window of the model, in tokens
  reserve: 4000           # tokens kept free for the reply

active:                   # the recent pages, shown word for word
  min_pages: 2            # newest pages that these marks never fold
  max_pages: null         # pages from which the oldest fold; null for no such mark
  high_water: 1.0         # share of the budget at which a fold begins
  low_water: auto         # share of the budget down to which it folds, below high_water; auto: from prices and sizes
  page_tokens: 8000       # tokens at which a long turn is cut into a continuation page

prices:                   # relative to plain input; used by low_water: auto
  write: 1.25             # a token written to the provider's prompt cache
  read: 0.1               # a token read from it; above 0, not above write

contents:                 # the contents page, the index of what was folded
  max_tokens: auto        # tokens it may hold; auto: from the budget
  low_share: 0.65         # share of max_tokens down to which it shrinks once it is over
  directories: true       # group old neighbours in directories before they leave

eviction:                 # when entries leave the contents page for their age; null switches a rule off
  zero_recall_turns: 200  # turns since archiving, for a page that was never recalled
  stale_turns: 400        # turns since the last recall (since archiving, if none), for any page

recall:                   # pages brought back by their index
  turns: 6                # turns that a recalled page stays
  max_share: 0.25         # share of the budget for recalled pages; beyond it the least recently used ones fade
  passages_tokens: 0      # tokens of pages attached unasked, for a turn, as they match the user's message; 0 for none
  protocol: native        # how the model is told to recall: none, native (tool calling) or attp

search:                   # session.search
  vectors: false          # true: rank by meaning too; needs the extra memci[vectors]

cache_breakpoints: false  # of Anthropic's prompt cache, at the ends of segments; the other formats have none
summarizer: extractive    # what writes the entries of the contents page; extractive needs no model
on_conflict: raise        # when somebody else wrote first: raise, or retry on what is there now
store: file:./memci       # where sessions live
durability: fsync         # fsync: an append returns once it is on disk; flush: once the operating system has it
snapshot_every: 500       # events between two snapshots, which only make loading faster

open_sessions:            # closed sessions whose state stays in memory, for the next time they are opened
  max_bytes: 64000000     # most memory that these states take, about; the one closed first leaves first, 0 keeps none

checkpoints:              # made without being asked for, beside those of session.checkpoint
  every_turns: null       # complete turns between two of them; null for none
  keep: 50                # the newest are listed, so many of them; null for all

limits:                   # what is refused for its size; nothing of it is stored
  message_bytes: 33554432 # of one message, as JSON
"""


def config_file_text() -> str:
    """Return a configuration file with all defaults and a comment on every key; reading it gives ``Config()``."""
    return _TEXT


def read(path: str | os.PathLike[str]) -> Mapping[str, object]:
    """Read a YAML file of two levels of keys; an empty file gives an empty mapping.

    Raises:
        ArgumentError: The path is none.
        ConfigError: The file cannot be read, is not YAML, holds a key twice, or is not keys and values.
    """
    if not isinstance(path, str | os.PathLike):
        raise ArgumentError(argument="path", value=path, wanted="the path of a YAML file")
    name = os.fspath(path)
    try:
        data = Path(name).read_bytes()
    except (OSError, ValueError) as error:
        message = f"the file {shown(name)} cannot be read: {error}"
        raise ConfigError(message) from error
    try:
        return parse(data.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        message = f"{name}: byte {error.start} is not UTF-8: save the file as UTF-8"
        raise ConfigError(message) from error


def parse(text: str, name: str) -> Mapping[str, object]:
    """Read the text of a YAML file; *name* stands in errors.

    Raises:
        ConfigError: As for ``read``.
    """
    import yaml  # noqa: PLC0415 (20 ms to load, and a config made in code needs none of it)

    try:
        loader = yaml.SafeLoader(text)
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
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message = f"{name}, line {line}, column {column}: not YAML: {error.reason}"
        raise ConfigError(message) from error
    except (ValueError, LookupError, AttributeError) as error:
        # What PyYAML's scalar constructors let through: a date that does not exist, a tag whose text does not fit.
        message = f"{name}: a value cannot be read: {error}: write plain words and numbers"
        raise ConfigError(message) from error
    except RecursionError as error:
        message = f"{name}: nested too deeply: there are two levels of keys"
        raise ConfigError(message) from error
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        message = f"{name}: a configuration is keys and values, such as 'counter: o200k_base', not a {type(value).__name__}"
        raise ConfigError(message)
    return value


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


def check_store(_instance: object, _attribute: object, value: object) -> None:
    """Refuse what is no text for a store's URL, without showing it: it may hold a password all the same.

    Raises:
        ConfigError: It is none.
    """
    if not isinstance(value, str) or not value.strip():
        given = "is empty" if isinstance(value, str) else f"is a {type(value).__name__}"
        message = f"{given}: give text, such as file:./memci"
        raise ConfigError(message, path="store")


def shown_store(url: str) -> str:
    """Return the store's URL as the ``repr`` of a config shows it: without what may be a secret."""
    from memci.archive.stores.url import shown_url  # noqa: PLC0415 (loads the stores' files, which a config does not need)

    return repr(shown_url(url))
