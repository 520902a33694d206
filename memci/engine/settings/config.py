"""What can be set: the budget, the marks at which pages fold, prices, eviction, recall, and where sessions live.

The attribute names are the keys of the YAML file, and the comment of each is the file's. Every value is checked when an object is
made: a ``Config`` that exists can be used. Every refusal is a ``ConfigError`` whose ``path`` is the place in the file, such as
``active.max_pages``.
"""
# ruff: noqa: RUF009 (a section's field, as attrs makes it)

import math
import os
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any, Literal, Self

import attrs

from memci.engine.settings import config_file
from memci.engine.settings.encryption import Encryption
from memci.engine.settings.models import filled, row
from memci.engine.settings.presets import CHAPTERS, Preset, preset_section
from memci.engine.settings.setting import matches, place_of, refusal, section, setting
from memci.errors import ConfigError, shown

_PLACE_KEYS = (
    *(
        "on_conflict",
        "store",
        "durability",
        "snapshot_every",
        "open_sessions",
        "checkpoints",
        "search",
        "limits",
        "models",
        "memory",
        "encryption",
    ),
    *("summarizer", "summary", "planner"),
)

_UNSAID = {  # keys that journals name only where they are not as by default: those of before did not have them
    "active": ("keep_share", "keep_bookmarks", "keep_errors", "keep_first_successes", "keep_decisions"),
    "recall": ("search_sessions",),
    "eviction": ("order", *(f"{mark}_weight" for mark in ("recency", "recalls", "values", "errors", "changes", "questions"))),
}

_ENGINE_KEYS = ("summarizer", "planner", "store", "durability", "encryption", "open_sessions")  # that an engine's sessions share

FEW_TOOLS_TOKENS = 4_000  # of a budget below which a toolbox offers search_pages and read_page only
_CHOSEN_KEYS = ("preset", "budget", "active", "levels", "prices", "contents", "eviction", "recall", "summary")  # by a session

EXTRACTIVE, MARKS = "extractive", "marks"  # the names of memci's own summariser and planner


def _check_summarizer(_instance: object, _field: "attrs.Attribute[Any]", value: object) -> None:
    is_name = isinstance(value, str) and value.strip()
    if not (is_name or (isinstance(value, Mapping) and value and all(isinstance(key, str) for key in value))):
        allowed = "a name such as extractive, keys such as model and base_url, or command with a list"
        raise refusal(path="summarizer", value=value, allowed=allowed)


def _check_models(_instance: object, _field: "attrs.Attribute[Any]", value: object) -> None:
    if not isinstance(value, Mapping):
        raise refusal(path="models", value=value, allowed="rows by the name of a model")
    for name in value:
        row(name, value)


@attrs.frozen(kw_only=True)
class Budget:
    """How many tokens a window may hold."""

    window: int = setting(32_000, "context window of the model, in tokens")
    reserve: int = setting(4_000, "tokens kept free for the reply", at_least=0)
    model: str | None = setting(
        None, "a model whose window, reserve, counter and prices hold where they are not given; null for none", example="gpt-5"
    )

    @property
    def tokens(self) -> int:
        """What a rendered window may hold: the window without the reserve."""
        return self.window - self.reserve

    @reserve.validator
    def _leaves_room(self, _attribute: object, reserve: int) -> None:
        if reserve >= self.window:
            message = f"{reserve} leaves no room in a window of {self.window} tokens: give less than budget.window"
            raise ConfigError(message, path="budget.reserve")


@attrs.frozen(kw_only=True)
class Active:
    """When recent pages fold, and how large they grow."""

    min_pages: int = setting(2, "newest pages that these marks never fold")
    max_pages: int | None = setting(None, "pages from which the oldest fold; null for no such mark")
    max_messages: int | None = setting(None, "messages in view from which the oldest pages fold; null for no such mark")
    max_calls: int | None = setting(None, "tool calls in view from which the oldest pages fold; null for no such mark")
    every_turns: int | None = setting(None, "turns after the last fold at which the oldest pages fold; null for no such period")
    least_tokens: int | None = setting(None, "tokens of a window below which the marks in numbers and turns fold nothing")
    keep_messages: int | None = setting(
        None, "newest messages, rounded up to whole pages, down to which they fold; null: min_pages, or half of the mark"
    )
    high_water: float = setting(1.0, "share of the budget at which a fold begins")
    low_water: float | Literal["auto"] = setting(
        "auto", "share of the budget down to which it folds, below high_water; auto: from prices and sizes"
    )
    page_tokens: int = setting(8_000, "tokens at which a long turn is cut into a continuation page")
    keep_share: float = setting(0.25, "share of the budget for pages that are kept verbatim through folds")
    keep_bookmarks: bool = setting(default=False, comment="true: pages with a bookmark are kept, within that share")
    keep_errors: bool = setting(
        default=False, comment="true: pages in which a tool failed are kept, the newest within that share"
    )
    keep_first_successes: bool = setting(
        default=False, comment="true: so are pages in which a tool succeeds for the first time after it failed"
    )
    keep_decisions: bool = setting(
        default=False, comment="true: so are pages in which a call of a tool changed something, as its name tells"
    )

    @max_pages.validator
    def _is_above_floor(self, _attribute: object, most: int | None) -> None:
        if most is not None and most < self.min_pages:
            message = f"{most} is below active.min_pages, {self.min_pages}: give at least that, or null"
            raise ConfigError(message, path="active.max_pages")

    @keep_messages.validator
    def _is_below_mark(self, _attribute: object, kept: int | None) -> None:
        if kept is not None and self.max_messages is not None and kept >= self.max_messages:
            message = f"{kept} is not below active.max_messages, {self.max_messages}: give less than that, or null"
            raise ConfigError(message, path="active.keep_messages")

    @low_water.validator
    def _is_below_high(self, _attribute: object, low: float | str) -> None:
        if not isinstance(low, str) and low >= self.high_water:
            message = f"{low} is not below active.high_water, {self.high_water}: give less than that, or auto"
            raise ConfigError(message, path="active.low_water")


@attrs.frozen(kw_only=True)
class Prices:
    """What the provider's prompt cache costs."""

    write: float = setting(1.25, "a token written to the provider's prompt cache", at_most=math.inf)
    read: float = setting(0.1, "a token read from it; above 0, not above write", at_most=math.inf)

    @read.validator
    def _saves(self, _attribute: object, read: float) -> None:
        if read > self.write:
            message = f"{read} is above prices.write, {self.write}: a cache that costs more to read than to write is not one"
            raise ConfigError(message, path="prices.read")


@attrs.frozen(kw_only=True)
class Contents:
    """How large the contents page grows."""

    max_tokens: int | Literal["auto"] = setting("auto", "tokens it may hold; auto: from the budget")
    low_share: float = setting(0.85, "share of max_tokens down to which it shrinks once it is over")
    facts_share: float = setting(0.15, "share of its room that the table of facts may take; 0: no facts are read", at_least=0)
    directories: bool = setting(default=True, comment="group old neighbours in directories before they leave")
    listed: bool = setting(default=True, comment="false: it is kept, and no window shows it, nor the working set")


@attrs.frozen(kw_only=True)
class Eviction:
    """When an entry leaves the contents page for its age."""

    zero_recall_turns: int | None = setting(None, "turns since archiving, for a page that was never recalled")
    stale_turns: int | None = setting(None, "turns since the last recall (since archiving, if none), for any page")
    order: Literal["age", "importance"] = setting(
        "age", "which entries lose detail and leave first where there is no room: age, or importance by these weights"
    )
    recency_weight: float = setting(0.3, "weight from 0 to 1: how lately it was archived or recalled", at_least=0)
    recalls_weight: float = setting(0.3, "how often it was recalled", at_least=0)
    values_weight: float = setting(0.15, "how much it holds that cannot be said again", at_least=0)
    errors_weight: float = setting(0.1, "that it tells of an error", at_least=0)
    changes_weight: float = setting(0.1, "that a call in it changed something", at_least=0)
    questions_weight: float = setting(0.05, "that the user asks something in it", at_least=0)


@attrs.frozen(kw_only=True)
class Levels:
    """How much is shown of a page by its distance: in turns since it was opened, or touched again."""

    trimmed: int | None = setting(None, "turns after which its long results are shown in part")
    lines: int | None = setting(None, "turns after which it folds")
    directory: int | None = setting(None, "turns after which its entry goes into a directory, with the next fold")
    gone: int | None = setting(None, "turns after which it leaves the contents page, but for a pinned one")

    @gone.validator
    def _rise(self, _attribute: object, _gone: int | None) -> None:
        given = [(name, turns) for name, turns in attrs.asdict(self).items() if turns is not None]
        for (before, fewer), (name, turns) in pairwise(given):
            if turns <= fewer:
                message = f"{turns} is not above levels.{before}, {fewer}: they rise in the order {', '.join(attrs.asdict(self))}"
                raise ConfigError(message, path=f"levels.{name}")


@attrs.frozen(kw_only=True)
class Recall:
    """How pages come back."""

    turns: int = setting(6, "turns that a recalled page stays")
    max_share: float = setting(0.25, "share of the budget for recalled pages; beyond it the least recently used ones fade")
    passages_tokens: int | Literal["auto"] = setting(
        "auto",
        "tokens of passages of earlier pages quoted next to a message that asks for them; auto: 8% of the budget; 0: none",
        at_least=0,
    )
    protocol: Literal["none", "native", "attp"] = setting(
        "native", "how the model is told to recall: none, native (tool calling) or attp"
    )
    search_sessions: bool = setting(
        default=False, comment="true: the model's tools search and read the tenant's other sessions too"
    )


@attrs.frozen(kw_only=True)
class Rules:
    """What the user asks for, to hold from then on."""

    detect: bool = setting(default=True, comment="list what the user asks for, to hold from then on, where its page has folded")
    max_share: float = setting(0.1, "share of the budget for these rules; beyond it the newest are listed", at_most=0.5)


@attrs.frozen(kw_only=True)
class Summary:
    """How a summariser is asked, whether the window tells of what left it, and whether the model that talks gives titles."""

    timeout_s: int = setting(120, "seconds after which a summariser is not waited for any more")
    continuation: bool = setting(default=False, comment="true: the window says goal, decisions, state and what is open")
    continuation_tokens: int = setting(400, "tokens that it may have, at most a fifth of the budget", at_least=64)
    rebuild_every: int = setting(4, "of those that a summariser writes, each so many-th is made from the pages alone")
    headlines: bool = setting(default=False, comment="true: the model is asked to end each turn with a line that is its title")


@attrs.frozen(kw_only=True)
class Search:
    """How ``session.search`` finds pages."""

    vectors: bool = setting(default=False, comment="true: rank by meaning too; needs the extra memci[vectors]")


@attrs.frozen(kw_only=True)
class OpenSessions:
    """What an engine keeps of sessions that were closed, for the next time they are opened."""

    max_bytes: int = setting(
        64_000_000, "most memory that these states take, about; the one closed first leaves first, 0 keeps none", at_least=0
    )


@attrs.frozen(kw_only=True)
class Checkpoints:
    """When checkpoints are made without being asked for."""

    every_turns: int | None = setting(None, "complete turns between two of them; null for none")
    keep: int | None = setting(50, "the newest are listed, so many of them; null for all")


@attrs.frozen(kw_only=True)
class Limits:
    """What is refused for its size."""

    message_bytes: int = setting(33_554_432, "of one message, as JSON")
    tenant_sessions: int | None = setting(None, "that a tenant may have; null for any number")
    tenant_bytes: int | None = setting(None, "that the store holds of a tenant, measured once a minute; null for any number")


@attrs.frozen(kw_only=True)
class Memory:
    """Long-term memory: notes of a session of the tenant, of pages that were promoted."""

    session: str = setting("memory", "the session that holds it", example="memory")
    recalled: int | None = setting(None, "recalls after which a page is promoted by itself; null for never")
    kept: bool = setting(default=False, comment="whether kept pages are promoted by themselves")
    bookmarked: bool = setting(default=False, comment="whether pages with a bookmark are")
    max_notes: int | None = setting(None, "notes that stay listed, those recalled last; null for all")
    ttl_s: int | None = setting(None, "seconds that a note stays listed; null for ever")


@attrs.frozen(kw_only=True)
class Config:
    """Everything that can be set, with the defaults of an empty file; ``config_file_text`` says what each key does."""

    preset: Preset = setting(CHAPTERS, "a strategy by its name: defaults for what is not set here; docs/presets.md")
    format: Literal["openai", "responses", "anthropic"] = setting(
        "openai", "wire format of the messages: openai, responses or anthropic; a session keeps its own"
    )
    counter: str = setting(
        "o200k_base",
        "what counts tokens: an encoding, a model's name such as gpt-4o, or approximate",
        example="o200k_base, gpt-4o or approximate",
    )
    budget: Budget = section(Budget, "a window holds at most window - reserve tokens")
    active: Active = section(Active, "the recent pages, shown word for word")
    prices: Prices = section(Prices, "relative to plain input; used by low_water: auto")
    contents: Contents = section(Contents, "the contents page, the index of what was folded")
    eviction: Eviction = section(Eviction, "when entries leave the contents page for their age; null switches a rule off")
    levels: Levels = section(Levels, "detail by distance, each in turns; null switches a level off")
    recall: Recall = section(Recall, "pages brought back by their index")
    rules: Rules = section(Rules, "what the user asks for, to hold from then on")
    summary: Summary = section(Summary, "how a summariser is asked, the continuation, and titles by the model that talks")
    search: Search = section(Search, "session.search")
    cache_breakpoints: bool = setting(
        default=False, comment="of Anthropic's prompt cache, at the ends of segments; the other formats have none"
    )
    summarizer: str | Mapping[str, Any] = attrs.field(
        default=EXTRACTIVE,
        metadata={"comment": "what writes the entries: extractive, another's name, {model: …, base_url: …} or {command: […]}"},
        validator=_check_summarizer,
    )
    planner: str = setting(MARKS, "what decides which pages fold, and when: marks, or another's name", example=MARKS)
    on_conflict: Literal["raise", "retry"] = setting(
        "raise", "when somebody else wrote first: raise, or retry on what is there now"
    )
    store: str = setting("file:./memci", "where sessions live", example="file:./memci", secret=config_file.shown_store)
    durability: Literal["fsync", "flush"] = setting(
        "fsync", "fsync: an append returns once it is on disk; flush: once the operating system has it"
    )
    snapshot_every: int = setting(500, "events between two snapshots, which only make loading faster")
    encryption: Encryption = section(Encryption, "what is stored is ciphertext; docs/operations.md")
    open_sessions: OpenSessions = section(
        OpenSessions, "closed sessions whose state stays in memory, for the next time they are opened"
    )
    checkpoints: Checkpoints = section(Checkpoints, "made without being asked for, beside those of session.checkpoint")
    limits: Limits = section(Limits, "what is refused for its size; nothing of it is stored")
    memory: Memory = section(Memory, "long-term memory, of a tenant's sessions together")
    models: Mapping[str, Any] = attrs.field(
        factory=dict,
        metadata={"comment": "rows of your own for budget.model, by name: some of window, reserve, counter and prices"},
        validator=_check_models,
    )

    @cache_breakpoints.validator
    def _has_breakpoints(self, _attribute: object, given: bool) -> None:  # noqa: FBT001 (as attrs calls it)
        if given and self.format != "anthropic":
            problem = f"{self.format} has no breakpoints, its provider caches by itself"
            message = f"{problem}: leave it out, or set format to anthropic"
            raise ConfigError(message, path="cache_breakpoints")

    @property
    def has_few_tools(self) -> bool:
        """Whether native tools that recall are two, as five of them take a large part of a small window."""
        return self.recall.protocol == "native" and self.budget.tokens < FEW_TOOLS_TOKENS

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object]) -> Self:
        """Make a config of nested mappings, such as a parsed YAML file; preset and defaults fill what is not there."""
        values = _check_keys(cls, filled(mapping, {}), "")
        for name, kind in _sections().items():
            if name in values:
                preset = preset_section(values.get("preset"), name)
                try:
                    values[name] = kind(**{**preset, **_check_keys(kind, values[name], name)})
                except ConfigError as error:
                    if preset:
                        error.add_note(f"the preset {values['preset']} has {name}: {dict(preset)}")
                    raise
        return cls(**values)

    @classmethod
    def from_stored(cls, mapping: Mapping[str, Any]) -> Self:
        """Make a config of what a journal holds, which an older memci with other keys may have written."""
        stored: dict[str, Any] = {key: dict(value) if isinstance(value, Mapping) else value for key, value in mapping.items()}
        stored.get("active", {}).pop("entry_tokens", None)
        if "prefetch_tokens" in (recall := stored.get("recall", {})):
            recall["passages_tokens"] = recall.pop("prefetch_tokens")
        preset: Any = stored.pop("preset", CHAPTERS)  # what is not there had its plain default, whatever the preset says by now
        return attrs.evolve(cls.from_mapping(stored), preset=preset)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a YAML file; an empty one gives the defaults.

        Raises ``ConfigError`` if it cannot be read, is not YAML, holds a key twice, or holds what ``from_mapping`` refuses.
        """
        mapping = config_file.read(path)
        try:
            return cls.from_mapping(mapping)
        except ConfigError as error:
            error.add_note(f"in the file {os.fspath(path)}")
            raise

    def for_session(self, given: "Config | Mapping[str, object]") -> "Config":
        """Return the settings of one session of an engine that has these: a whole config, or keys over them.

        What all sessions of an engine share stays as it is here; ``ConfigError`` for a mapping that names it.
        """
        if isinstance(given, Config):
            return attrs.evolve(given, **{key: getattr(self, key) for key in _ENGINE_KEYS})
        keys = _check_keys(Config, filled(given, self.models), "")
        for name in _ENGINE_KEYS:
            if name in keys:
                message = "all sessions of an engine share it: give it to the engine"
                raise ConfigError(message, path=name)
        sections = _sections()
        return self.with_choice(
            {name: _check_keys(sections[name], value, name) if name in sections else value for name, value in keys.items()}
        )

    def with_choice(self, chosen: Mapping[str, Any], known: Self | None = None, checked: Collection[str] = ()) -> Self:
        """Return these settings with what a session chose over them, as ``choice`` gives it.

        A preset that it chose takes the place of the preset here, and of what that one says. Where a section cannot be, as the
        choice does not fit what this config says beside it, it is that of *known*, but for those *checked*; else ``ConfigError``.
        """
        if not chosen:
            return self
        mapping, sections = self.to_mapping(), _sections()
        if "preset" in chosen:
            plain = Config().to_mapping()
            for name in sections:
                said = preset_section(self.preset, name)
                undone = {key: plain[name][key] for key, value in said.items() if mapping[name][key] == value}
                mapping[name] |= {**undone, **preset_section(chosen["preset"], name)}
        for name, given in chosen.items():
            mapping[name] = {**mapping[name], **given} if name in sections else given
        if known is not None:
            for name, kind in sections.items():
                if name in checked:
                    continue
                try:
                    kind(**mapping[name])
                except ConfigError:
                    mapping[name] = attrs.asdict(getattr(known, name))
        return self.from_mapping(mapping)

    def with_policy(self, other: "Config") -> "Config":
        """Return these settings, but with those of *other* that decide how a window looks; see ``policy_mapping``."""
        policy = {field.name: getattr(other, field.name) for field in attrs.fields(Config) if field.name not in _PLACE_KEYS}
        return attrs.evolve(self, **policy, summary=attrs.evolve(other.summary, timeout_s=self.summary.timeout_s))

    def to_mapping(self) -> dict[str, Any]:
        """Return the whole config as new nested dicts of JSON values; ``from_mapping`` gives an equal config."""
        return attrs.asdict(self, value_serializer=lambda _, __, value: [*value] if isinstance(value, tuple) else value)

    def policy_mapping(self) -> dict[str, Any]:
        """Return what decides how a window looks: ``to_mapping`` without search, checkpoints, limits, and where sessions are.

        Of summaries it says only how a continuation is made and that there are headlines, where that is so.
        """
        policy = {key: value for key, value in self.to_mapping().items() if key not in _PLACE_KEYS}
        del policy["budget"]["model"]  # what it stands for is said
        for name, keys in _UNSAID.items():
            plain = attrs.fields_dict(_sections()[name])
            policy[name] = {key: value for key, value in policy[name].items() if key not in keys or value != plain[key].default}
        said = attrs.asdict(self.summary) if self.summary.continuation else {"headlines": self.summary.headlines}
        summary = {key: value for key, value in said.items() if key != "timeout_s" and value is not False}
        return policy | {"summary": summary} if summary else policy


def choice(before: Mapping[str, Any], given: Mapping[str, object], models: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a session chose *before*, with the keys that are *given* over it; a preset begins anew.

    A model is what it stands for by now, by the engine's *models* first, but for its counter, which a session has of its engine.

    ``ConfigError`` for a key that there is not, or that no session chooses; ``Config.with_choice`` checks the values.
    """
    chosen = {} if "preset" in given else dict(before)
    meant = {name: value for name, value in filled(given, models).items() if name in given or name != "counter"}
    if isinstance(budget := meant.get("budget"), Mapping):
        meant["budget"] = {key: value for key, value in budget.items() if key != "model"}
    for name, value in _check_keys(Config, meant, "").items():
        if name not in _CHOSEN_KEYS:
            message = f"a session has that of its engine: give it there; a session chooses {', '.join(_CHOSEN_KEYS)}"
            raise ConfigError(message, path=name)
        if name == "summary" and isinstance(value, Mapping) and "timeout_s" in value:
            message = "summarisers are the engine's: give it there"
            raise ConfigError(message, path="summary.timeout_s")
        kind = _sections().get(name)
        chosen[name] = value if kind is None else {**chosen.get(name, {}), **_check_keys(kind, value, name)}
    return chosen


def config_file_text() -> str:
    """Return a configuration file with all defaults and a comment on every key; reading it gives ``Config()``."""
    return config_file.text(Config())


def _sections() -> dict[str, Any]:
    return {field.name: field.type for field in attrs.fields(Config) if field.type and attrs.has(field.type)}


def _check_keys(kind: type[attrs.AttrsInstance], given: object, path: str) -> dict[str, Any]:
    """Return *given* as keyword arguments for a section, or for the whole, if it is a mapping of known keys."""
    known = list(attrs.fields_dict(kind))
    if not isinstance(given, Mapping):
        raise refusal(path, given, f"keys and values (leave it out for the defaults); the keys are {', '.join(known)}")
    for key in given:
        if not isinstance(key, str):
            problem = "is not text (YAML reads on, off, yes and no as true or false)"
            message = f"the key {shown(key)} {problem}: the keys are {', '.join(known)}"
            raise ConfigError(message, path=path)
        if key not in known:
            near = _nearest(key, kind)
            hint = f"; did you mean {near}?" if near else ""
            message = f"there is no such key{hint} (the keys here are {', '.join(known)})"
            raise ConfigError(message, path=place_of(kind, key))
    return dict(given)


def _nearest(key: str, kind: type[attrs.AttrsInstance]) -> str:
    """Return the known place that is most like *key*: the same word elsewhere, else one in the same section first."""
    if same := [place_of(each, key) for each in _sections().values() if key in attrs.fields_dict(each)]:
        return same[0]
    for kinds in ([kind], [*_sections().values(), Config]):
        places = {name: place_of(each, name) for each in kinds for name in attrs.fields_dict(each)}
        if close := matches(key, list(places)):
            return places[close[0]]
    return ""
