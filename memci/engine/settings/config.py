"""What can be set: the budget, the marks at which pages fold, prices, eviction, recall, and where sessions live.

The attribute names are the keys of the YAML file. Every value is checked when an object is made: a ``Config`` that exists can be
used. Every refusal is a ``ConfigError`` whose ``path`` is the place in the file, such as ``active.max_pages``.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Self

import attrs

from memci.engine.settings import config_checks as checks
from memci.engine.settings import config_file
from memci.errors import ConfigError, shown
from memci.messages.formats import format as formats

SUMMARIZERS: Final = ("extractive",)
PROTOCOLS: Final = ("none", "native", "attp")
DURABILITIES: Final = ("fsync", "flush")
CONFLICTS: Final = ("raise", "retry")

_PLACE_KEYS = ("on_conflict", "store", "durability", "snapshot_every", "open_sessions", "checkpoints", "search", "limits")


@attrs.frozen(kw_only=True)
class Budget:
    """How many tokens a window may hold.

    Attributes:
        window: Context window of the model, in tokens.
        reserve: Tokens kept free for the reply; ``0 <= reserve < window``.
    """

    window: int = attrs.field(default=32_000, validator=checks.integer("budget.window", at_least=1))
    reserve: int = attrs.field(default=4_000, validator=checks.integer("budget.reserve", at_least=0))

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
    """

    min_pages: int = attrs.field(default=2, validator=checks.integer("active.min_pages", at_least=1))
    max_pages: int | None = attrs.field(default=None, validator=checks.integer("active.max_pages", at_least=1, otherwise=None))
    high_water: float = attrs.field(default=1.0, converter=checks.whole_as_float, validator=checks.share("active.high_water"))
    low_water: float | Literal["auto"] = attrs.field(
        default="auto", converter=checks.whole_as_float, validator=checks.share("active.low_water", otherwise="auto")
    )
    page_tokens: int = attrs.field(default=8_000, validator=checks.integer("active.page_tokens", at_least=1))

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

    write: float = attrs.field(default=1.25, converter=checks.whole_as_float, validator=checks.price("prices.write"))
    read: float = attrs.field(default=0.1, converter=checks.whole_as_float, validator=checks.price("prices.read"))

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
        default="auto", validator=checks.integer("contents.max_tokens", at_least=1, otherwise="auto")
    )
    low_share: float = attrs.field(default=0.65, converter=checks.whole_as_float, validator=checks.share("contents.low_share"))
    directories: bool = attrs.field(default=True, validator=checks.flag("contents.directories"))


@attrs.frozen(kw_only=True)
class Eviction:
    """When an entry leaves the contents page for its age; ``None`` switches a rule off.

    Attributes:
        zero_recall_turns: Turns since archiving after which a page that was never recalled leaves.
        stale_turns: Turns since the last recall (since archiving, if none) after which any page leaves.
    """

    zero_recall_turns: int | None = attrs.field(
        default=200, validator=checks.integer("eviction.zero_recall_turns", at_least=1, otherwise=None)
    )
    stale_turns: int | None = attrs.field(
        default=400, validator=checks.integer("eviction.stale_turns", at_least=1, otherwise=None)
    )


@attrs.frozen(kw_only=True)
class Recall:
    """How pages come back.

    Attributes:
        turns: Turns that a recalled page stays.
        max_share: Share of the budget that recalled pages may take together; beyond it the least recently used ones fade.
        passages_tokens: Tokens of pages that are attached without being asked for, for one turn, since they match the user's new
            message well; 0 for none. They count as recalled.
        protocol: How the model is told to recall: not at all, by the provider's tool calling, or by ATTP.
    """

    turns: int = attrs.field(default=6, validator=checks.integer("recall.turns", at_least=1))
    max_share: float = attrs.field(default=0.25, converter=checks.whole_as_float, validator=checks.share("recall.max_share"))
    passages_tokens: int = attrs.field(default=0, validator=checks.integer("recall.passages_tokens", at_least=0))
    protocol: Literal["none", "native", "attp"] = attrs.field(
        default="native", validator=checks.one_of("recall.protocol", PROTOCOLS)
    )


@attrs.frozen(kw_only=True)
class Search:
    """How ``session.search`` finds pages.

    Attributes:
        vectors: Rank by meaning too, not by words alone; needs the extra ``memci[vectors]``, which an engine checks.
    """

    vectors: bool = attrs.field(default=False, validator=checks.flag("search.vectors"))


@attrs.frozen(kw_only=True)
class OpenSessions:
    """What an engine keeps of sessions that were closed, for the next time they are opened.

    Attributes:
        max_bytes: Most memory that their states take, as estimated; the one that was closed first leaves first, 0 keeps none.
    """

    max_bytes: int = attrs.field(default=64_000_000, validator=checks.integer("open_sessions.max_bytes", at_least=0))


@attrs.frozen(kw_only=True)
class Checkpoints:
    """When checkpoints are made without being asked for.

    Attributes:
        every_turns: Complete turns between two of them; ``None`` for none.
        keep: How many of them are listed, the newest; ``None`` for all. Those that were asked for stay.
    """

    every_turns: int | None = attrs.field(
        default=None, validator=checks.integer("checkpoints.every_turns", at_least=1, otherwise=None)
    )
    keep: int | None = attrs.field(default=50, validator=checks.integer("checkpoints.keep", at_least=1, otherwise=None))


@attrs.frozen(kw_only=True)
class Limits:
    """What is refused for its size.

    Attributes:
        message_bytes: Most bytes of one message, as compact JSON.
    """

    message_bytes: int = attrs.field(default=33_554_432, validator=checks.integer("limits.message_bytes", at_least=1))


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
        search: How they are found.
        cache_breakpoints: Whether windows of Anthropic's format carry breakpoints for the provider's prompt cache: behind the
            system part, the contents page, the complete pages and the last message. Those that messages bring are then left out.
        summarizer: What writes the contents entries.
        on_conflict: What a command does when somebody else wrote first: ``raise`` a ``ConflictError``, or ``retry``, on what is
            there now.
        store: Where sessions live, as a store URL.
        durability: ``fsync``: an append returns once it is on disk. ``flush``: once the operating system has it.
        snapshot_every: Events between two snapshots.
        open_sessions: What an engine keeps of closed sessions.
        checkpoints: When checkpoints are made without being asked for.
        limits: What is refused for its size.
    """

    format: Literal["openai", "responses", "anthropic"] = attrs.field(
        default="openai", validator=checks.one_of("format", formats.NAMES)
    )
    counter: str = attrs.field(default="o200k_base", validator=checks.text("counter", "o200k_base, gpt-4o or approximate"))
    budget: Budget = attrs.field(factory=Budget, validator=checks.section("budget", Budget))
    active: Active = attrs.field(factory=Active, validator=checks.section("active", Active))
    prices: Prices = attrs.field(factory=Prices, validator=checks.section("prices", Prices))
    contents: Contents = attrs.field(factory=Contents, validator=checks.section("contents", Contents))
    eviction: Eviction = attrs.field(factory=Eviction, validator=checks.section("eviction", Eviction))
    recall: Recall = attrs.field(factory=Recall, validator=checks.section("recall", Recall))
    search: Search = attrs.field(factory=Search, validator=checks.section("search", Search))
    cache_breakpoints: bool = attrs.field(default=False, validator=checks.flag("cache_breakpoints"))
    summarizer: Literal["extractive"] = attrs.field(default="extractive", validator=checks.one_of("summarizer", SUMMARIZERS))
    on_conflict: Literal["raise", "retry"] = attrs.field(default="raise", validator=checks.one_of("on_conflict", CONFLICTS))
    store: str = attrs.field(default="file:./memci", repr=config_file.shown_store, validator=config_file.check_store)
    durability: Literal["fsync", "flush"] = attrs.field(default="fsync", validator=checks.one_of("durability", DURABILITIES))
    snapshot_every: int = attrs.field(default=500, validator=checks.integer("snapshot_every", at_least=1))
    open_sessions: OpenSessions = attrs.field(factory=OpenSessions, validator=checks.section("open_sessions", OpenSessions))
    checkpoints: Checkpoints = attrs.field(factory=Checkpoints, validator=checks.section("checkpoints", Checkpoints))
    limits: Limits = attrs.field(factory=Limits, validator=checks.section("limits", Limits))

    @cache_breakpoints.validator
    def _of_anthropic(self, _attribute: object, value: object) -> None:
        if value and self.format != "anthropic":
            message = f"{self.format} has no breakpoints, its provider caches by itself: leave it out, or set format to anthropic"
            raise ConfigError(message, path="cache_breakpoints")

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
    def from_stored(cls, mapping: Mapping[str, Any]) -> Self:
        """Make a config of what a journal holds, which an older memci with other keys may have written."""
        stored = {key: dict(value) if isinstance(value, Mapping) else value for key, value in mapping.items()}
        stored.get("active", {}).pop("entry_tokens", None)
        if "prefetch_tokens" in (recall := stored.get("recall", {})):
            recall["passages_tokens"] = recall.pop("prefetch_tokens")
        return cls.from_mapping(stored)

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
        """Return what decides how a window looks: ``to_mapping`` without search, checkpoints, limits, and where sessions are."""
        return {key: value for key, value in self.to_mapping().items() if key not in _PLACE_KEYS}


_ABSENT = object()
_SECTIONS: Final[Mapping[str, Any]] = {
    "budget": Budget,
    "active": Active,
    "prices": Prices,
    "contents": Contents,
    "eviction": Eviction,
    "recall": Recall,
    "search": Search,
    "open_sessions": OpenSessions,
    "checkpoints": Checkpoints,
    "limits": Limits,
}


def _check_keys(section: type[attrs.AttrsInstance], given: object, path: str) -> dict[str, Any]:
    """Return *given* as keyword arguments for *section*, if it is a mapping of known keys."""
    known = [attribute.name for attribute in attrs.fields(section)]
    if not isinstance(given, Mapping):
        raise checks.refusal(path, given, f"keys and values (leave it out for the defaults); the keys are {', '.join(known)}")
    for key in given:
        if not isinstance(key, str):
            problem = "is not text (YAML reads on, off, yes and no as true or false)"
            message = f"the key {shown(key)} {problem}: the keys are {', '.join(known)}"
            raise ConfigError(message, path=path)
        place = f"{path}.{key}" if path else key
        if key not in known:
            near = _nearest(key, known, path)
            hint = f"; did you mean {near}?" if near else ""
            message = f"there is no such key{hint} (the keys here are {', '.join(known)})"
            raise ConfigError(message, path=place)
    return dict(given)


def _nearest(key: str, known: Sequence[str], path: str) -> str:
    """Return the known path that is most like *key*: one in the same section first, then the same word elsewhere."""
    here = checks.matches(key, known)
    if here:
        return f"{path}.{here[0]}" if path else here[0]
    elsewhere = {
        attribute.name: f"{name}.{attribute.name}" for name, kind in _SECTIONS.items() for attribute in attrs.fields(kind)
    }
    elsewhere |= {attribute.name: attribute.name for attribute in attrs.fields(Config)}
    close = checks.matches(key, list(elsewhere))
    return elsewhere[close[0]] if close else ""
