"""What can be set: the budget, the marks at which pages fold, prices, eviction, recall, and where sessions live.

The attribute names are the keys of the YAML file. Every value is checked when an object is made: a ``Config`` that exists can be
used. Every refusal is a ``ConfigError`` whose ``path`` is the place in the file, such as ``active.max_pages``.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Self, TypeAlias

import attrs

from memci.engine import config_file
from memci.errors import ConfigError
from memci.messages.formats import format as formats

SUMMARIZERS: Final = ("extractive",)
PROTOCOLS: Final = ("none", "native", "attp")
DURABILITIES: Final = ("fsync", "flush")

_PLACE_KEYS = ("store", "durability", "snapshot_every", "open_sessions", "checkpoints")

MOST: Final = 10**12
"""The largest number that is taken: more tokens, pages or turns than anybody has, small enough for every reader of JSON."""

Validator: TypeAlias = Callable[[Any, Any, Any], None]


def _integer(path: str, *, at_least: int, otherwise: str | None = "") -> Validator:
    """Make a validator for a whole number; *otherwise* is one more value that is allowed, ``""`` for none."""
    also = {"": "", None: ", or null"}.get(otherwise, f", or {otherwise}")

    def check(_instance: object, _attribute: object, value: object) -> None:
        if otherwise != "" and value == otherwise:
            return
        if type(value) is not int or not at_least <= value <= MOST:
            raise _refusal(path, value, f"a whole number from {at_least} to {MOST}{also}")

    return check


def _share(path: str, *, otherwise: str = "") -> Validator:
    also = f", or {otherwise}" if otherwise else ""

    def check(_instance: object, _attribute: object, value: object) -> None:
        if otherwise and value == otherwise:
            return
        if type(value) is not float or not 0 < value <= 1:
            raise _refusal(path, value, f"a share above 0 and up to 1{also}")

    return check


def _price(path: str) -> Validator:
    def check(_instance: object, _attribute: object, value: object) -> None:
        if type(value) is not float or not 0 < value < math.inf:
            raise _refusal(path, value, "a number above 0, relative to the price of plain input (0.01 where reading is free)")

    return check


def _one_of(path: str, allowed: Sequence[str]) -> Validator:
    def check(_instance: object, _attribute: object, value: object) -> None:
        if value not in allowed:
            raise _refusal(path, value, " or ".join(allowed), near=_matches(str(value), allowed))

    return check


def _text(path: str, example: str) -> Validator:
    def check(_instance: object, _attribute: object, value: object) -> None:
        if not isinstance(value, str) or not value.strip():
            raise _refusal(path, value, f"text, such as {example}")

    return check


def _section(path: str, kind: type) -> Validator:
    def check(_instance: object, _attribute: object, value: object) -> None:
        if not isinstance(value, kind):
            raise _refusal(path, value, f"a {kind.__name__} (Config.from_mapping takes nested dicts)")

    return check


def _flag(path: str) -> Validator:
    def check(_instance: object, _attribute: object, value: object) -> None:
        if not isinstance(value, bool):
            raise _refusal(path, value, "true or false")

    return check


def _whole_as_float(value: object) -> Any:  # noqa: ANN401 (the field's type is what the validator lets through)
    """Let ``1`` stand for ``1.0``; anything else is left to the validator."""
    if type(value) is not int:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _matches(name: str, known: Sequence[str]) -> list[str]:
    """Return the known name that is most like this one, none where none is."""
    import difflib  # noqa: PLC0415 (only for errors)

    return difflib.get_close_matches(name, known, n=1)


def _refusal(path: str, value: object, allowed: str, near: Sequence[str] = ()) -> ConfigError:
    try:
        given = "null" if value is None else repr(value)
    except ValueError:  # an integer of more than 4,300 digits
        given = "this number"
    hint = f"; did you mean {near[0]}?" if near else ""
    return ConfigError(f"{given[:80]} cannot be used here: give {allowed}{hint}", path=path)


@attrs.frozen(kw_only=True)
class Budget:
    """How many tokens a window may hold.

    Attributes:
        window: Context window of the model, in tokens.
        reserve: Tokens kept free for the reply; ``0 <= reserve < window``.
    """

    window: int = attrs.field(default=32_000, validator=_integer("budget.window", at_least=1))
    reserve: int = attrs.field(default=4_000, validator=_integer("budget.reserve", at_least=0))

    @property
    def tokens(self) -> int:
        """What a rendered window may hold: the window without the reserve."""
        return self.window - self.reserve

    @reserve.validator
    def _leaves_room(self, _attribute: object, value: int) -> None:
        if value >= self.window:
            message = f"{value} leaves no room in a window of {self.window} tokens: give less than budget.window"
            raise ConfigError(message, path="budget.reserve")


@attrs.frozen(kw_only=True)
class Active:
    """When recent pages fold, and how large they grow.

    Attributes:
        min_pages: Pages that marks never fold, counted from the newest.
        max_pages: Pages from which the oldest fold; ``None`` for no such mark.
        high_water: Share of the budget at which a fold begins.
        low_water: Share of the budget down to which it folds, below ``high_water``; ``"auto"`` derives it from prices and sizes.
        page_tokens: Tokens at which a long turn is cut into a continuation page.
        entry_tokens: Tokens above which a single entry is shown as a stub.
    """

    min_pages: int = attrs.field(default=4, validator=_integer("active.min_pages", at_least=1))
    max_pages: int | None = attrs.field(default=None, validator=_integer("active.max_pages", at_least=1, otherwise=None))
    high_water: float = attrs.field(default=1.0, converter=_whole_as_float, validator=_share("active.high_water"))
    low_water: float | Literal["auto"] = attrs.field(
        default="auto", converter=_whole_as_float, validator=_share("active.low_water", otherwise="auto")
    )
    page_tokens: int = attrs.field(default=8_000, validator=_integer("active.page_tokens", at_least=1))
    entry_tokens: int = attrs.field(default=4_000, validator=_integer("active.entry_tokens", at_least=1))

    @max_pages.validator
    def _not_below_the_floor(self, _attribute: object, value: int | None) -> None:
        if value is not None and value < self.min_pages:
            message = f"{value} is below active.min_pages, {self.min_pages}: give at least that, or null"
            raise ConfigError(message, path="active.max_pages")

    @low_water.validator
    def _below_high_water(self, _attribute: object, value: float | Literal["auto"]) -> None:
        if value != "auto" and value >= self.high_water:
            message = f"{value} is not below active.high_water, {self.high_water}: give less than that, or auto"
            raise ConfigError(message, path="active.low_water")


@attrs.frozen(kw_only=True)
class Prices:
    """What the provider's prompt cache costs, relative to plain input; used where ``active.low_water`` is ``"auto"``.

    Attributes:
        write: Price of a token that is written to the cache, above 0.
        read: Price of a token that is read from it, above 0 and not above ``write``.
    """

    write: float = attrs.field(default=1.25, converter=_whole_as_float, validator=_price("prices.write"))
    read: float = attrs.field(default=0.1, converter=_whole_as_float, validator=_price("prices.read"))

    @read.validator
    def _not_dearer_than_writing(self, _attribute: object, value: float) -> None:
        if value > self.write:
            message = f"{value} is above prices.write, {self.write}: a cache that costs more to read than to write is not one"
            raise ConfigError(message, path="prices.read")


@attrs.frozen(kw_only=True)
class Contents:
    """How large the contents page grows.

    Attributes:
        max_tokens: Tokens that the contents page may hold; ``"auto"`` derives it from the budget.
        low_share: Share of ``max_tokens`` down to which entries lose detail or leave, once it is over.
        directories: Whether old neighbours are grouped in directories before they leave.
    """

    max_tokens: int | Literal["auto"] = attrs.field(
        default="auto", validator=_integer("contents.max_tokens", at_least=1, otherwise="auto")
    )
    low_share: float = attrs.field(default=0.8, converter=_whole_as_float, validator=_share("contents.low_share"))
    directories: bool = attrs.field(default=True, validator=_flag("contents.directories"))


@attrs.frozen(kw_only=True)
class Eviction:
    """When an entry leaves the contents page for its age; ``None`` switches a rule off.

    Attributes:
        zero_recall_turns: Turns since archiving after which a page that was never recalled leaves.
        stale_turns: Turns since the last recall (since archiving, if none) after which any page leaves.
    """

    zero_recall_turns: int | None = attrs.field(
        default=200, validator=_integer("eviction.zero_recall_turns", at_least=1, otherwise=None)
    )
    stale_turns: int | None = attrs.field(default=400, validator=_integer("eviction.stale_turns", at_least=1, otherwise=None))


@attrs.frozen(kw_only=True)
class Recall:
    """How pages come back.

    Attributes:
        turns: Turns that a recalled page stays.
        protocol: How the model is told to recall: not at all, by the provider's tool calling, or by ATTP.
    """

    turns: int = attrs.field(default=6, validator=_integer("recall.turns", at_least=1))
    protocol: Literal["none", "native", "attp"] = attrs.field(default="native", validator=_one_of("recall.protocol", PROTOCOLS))


@attrs.frozen(kw_only=True)
class OpenSessions:
    """What an engine keeps of sessions that were closed, for the next time they are opened.

    Attributes:
        max_bytes: Most memory that their states take, as estimated; the one that was closed first leaves first, 0 keeps none.
    """

    max_bytes: int = attrs.field(default=64_000_000, validator=_integer("open_sessions.max_bytes", at_least=0))


@attrs.frozen(kw_only=True)
class Checkpoints:
    """When checkpoints are made without being asked for.

    Attributes:
        every_turns: Complete turns between two of them; ``None`` for none.
        keep: How many of them are listed, the newest; ``None`` for all. Those that were asked for stay.
    """

    every_turns: int | None = attrs.field(default=None, validator=_integer("checkpoints.every_turns", at_least=1, otherwise=None))
    keep: int | None = attrs.field(default=50, validator=_integer("checkpoints.keep", at_least=1, otherwise=None))


@attrs.frozen(kw_only=True)
class Config:
    """Everything that can be set, with the defaults of an empty file.

    Attributes:
        format: Wire format of the messages. A session keeps the one that it began with.
        counter: What counts tokens: an encoding, a model's name, or ``approximate``. ``get_counter`` checks that it exists.
        budget: How many tokens a window may hold.
        active: When recent pages fold.
        prices: What the provider's cache costs.
        contents: How large the contents page grows.
        eviction: When entries leave it.
        recall: How pages come back.
        summarizer: What writes the contents entries.
        store: Where sessions live, as a store URL.
        durability: ``fsync``: an append returns once it is on disk. ``flush``: once the operating system has it.
        snapshot_every: Events between two snapshots.
        open_sessions: What an engine keeps of closed sessions.
        checkpoints: When checkpoints are made without being asked for.
    """

    format: Literal["openai", "responses", "anthropic"] = attrs.field(
        default="openai", validator=_one_of("format", formats.NAMES)
    )
    counter: str = attrs.field(default="o200k_base", validator=_text("counter", "o200k_base, gpt-4o or approximate"))
    budget: Budget = attrs.field(factory=Budget, validator=_section("budget", Budget))
    active: Active = attrs.field(factory=Active, validator=_section("active", Active))
    prices: Prices = attrs.field(factory=Prices, validator=_section("prices", Prices))
    contents: Contents = attrs.field(factory=Contents, validator=_section("contents", Contents))
    eviction: Eviction = attrs.field(factory=Eviction, validator=_section("eviction", Eviction))
    recall: Recall = attrs.field(factory=Recall, validator=_section("recall", Recall))
    summarizer: Literal["extractive"] = attrs.field(default="extractive", validator=_one_of("summarizer", SUMMARIZERS))
    store: str = attrs.field(default="file:./memci", repr=config_file.shown_store, validator=config_file.check_store)
    durability: Literal["fsync", "flush"] = attrs.field(default="fsync", validator=_one_of("durability", DURABILITIES))
    snapshot_every: int = attrs.field(default=500, validator=_integer("snapshot_every", at_least=1))
    open_sessions: OpenSessions = attrs.field(factory=OpenSessions, validator=_section("open_sessions", OpenSessions))
    checkpoints: Checkpoints = attrs.field(factory=Checkpoints, validator=_section("checkpoints", Checkpoints))

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object]) -> Self:
        """Make a config of nested mappings, such as a parsed YAML file; defaults fill what is not there.

        Raises:
            ConfigError: A key is unknown, a value has the wrong type, or a number is impossible.
        """
        _check_keys(cls, mapping, "")
        values = dict(mapping)
        for name, section in _SECTIONS.items():
            given = mapping.get(name, _ABSENT)
            if given is not _ABSENT:
                values[name] = section(**_check_keys(section, given, name))
        return cls(**values)  # type: ignore[arg-type]  # the validators check what mypy cannot see

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a YAML file; an empty one gives the defaults.

        Raises:
            ConfigError: The file cannot be read, is not YAML, holds a key twice, or holds what ``from_mapping`` refuses.
        """
        mapping = config_file.read(path)
        try:
            return cls.from_mapping(mapping)
        except ConfigError as error:
            error.add_note(f"in the file {os.fspath(path)}")
            raise

    def to_mapping(self) -> dict[str, Any]:
        """Return the whole config as new nested dicts of JSON values; ``from_mapping`` gives an equal config."""
        return attrs.asdict(self)

    def policy_mapping(self) -> dict[str, Any]:
        """Return what decides how a window looks: ``to_mapping`` without checkpoints, and where and how sessions are stored."""
        return {key: value for key, value in self.to_mapping().items() if key not in _PLACE_KEYS}


_ABSENT = object()
_SECTIONS: Final[Mapping[str, Any]] = {
    "budget": Budget,
    "active": Active,
    "prices": Prices,
    "contents": Contents,
    "eviction": Eviction,
    "recall": Recall,
    "open_sessions": OpenSessions,
    "checkpoints": Checkpoints,
}


def _check_keys(section: type[attrs.AttrsInstance], given: object, path: str) -> dict[str, Any]:
    """Return *given* as keyword arguments for *section*, if it is a mapping of known keys."""
    known = [attribute.name for attribute in attrs.fields(section)]
    if not isinstance(given, Mapping):
        raise _refusal(path, given, f"keys and values (leave it out for the defaults); the keys are {', '.join(known)}")
    for key in given:
        place = f"{path}.{key}" if path else str(key)
        if not isinstance(key, str):
            message = (
                f"the key {key!r} is not text (YAML reads on, off, yes and no as true or false): the keys are {', '.join(known)}"
            )
            raise ConfigError(message, path=place)
        if key not in known:
            near = _nearest(key, known, path)
            hint = f"; did you mean {near}?" if near else ""
            message = f"there is no such key{hint} (the keys here are {', '.join(known)})"
            raise ConfigError(message, path=place)
    return dict(given)


def _nearest(key: str, known: Sequence[str], path: str) -> str:
    """Return the known path that is most like *key*: one in the same section first, then the same word elsewhere."""
    here = _matches(key, known)
    if here:
        return f"{path}.{here[0]}" if path else here[0]
    elsewhere = {
        attribute.name: f"{name}.{attribute.name}" for name, kind in _SECTIONS.items() for attribute in attrs.fields(kind)
    }
    elsewhere |= {attribute.name: attribute.name for attribute in attrs.fields(Config)}
    close = _matches(key, list(elsewhere))
    return elsewhere[close[0]] if close else ""
