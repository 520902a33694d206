"""The configuration: what is refused and how, round trips, and the file."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.engine.settings.config import (
    Active,
    Budget,
    Checkpoints,
    Config,
    Contents,
    Eviction,
    Levels,
    Limits,
    Memory,
    OpenSessions,
    Prices,
    Recall,
    Rules,
    Search,
    Summary,
    config_file_text,
)
from memci.engine.settings.encryption import Encryption
from memci.engine.settings.presets import PRESETS, Preset
from memci.errors import ConfigError

SECTIONS = {
    "budget": Budget,
    "active": Active,
    "prices": Prices,
    "contents": Contents,
    "eviction": Eviction,
    "levels": Levels,
    "recall": Recall,
    "rules": Rules,
    "summary": Summary,
    "search": Search,
    "open_sessions": OpenSessions,
    "checkpoints": Checkpoints,
    "limits": Limits,
    "memory": Memory,
    "encryption": Encryption,
}


WEIGHTS = {
    "recency_weight": 0.3,
    "recalls_weight": 0.3,
    "values_weight": 0.15,
    "errors_weight": 0.1,
    "changes_weight": 0.1,
    "questions_weight": 0.05,
}


def refused(mapping: object) -> ConfigError:
    """Return the error with which a mapping is refused."""
    with pytest.raises(ConfigError) as caught:
        Config.from_mapping(mapping)  # type: ignore[arg-type]  # some are not mappings
    return caught.value


def at(path: str, value: object) -> dict[str, Any]:
    """Return the nested mapping that sets one path."""
    section, _, key = path.rpartition(".")
    return {section: {key: value}} if section else {key: value}


def test_the_defaults_are_those_of_the_design() -> None:
    """An empty mapping gives the documented defaults."""
    assert Config.from_mapping({}).to_mapping() == {
        "preset": "chapters",
        "format": "openai",
        "counter": "o200k_base",
        "budget": {"window": 32000, "reserve": 4000, "model": None},
        "active": {
            "min_pages": 2,
            "max_pages": None,
            "max_messages": None,
            "max_calls": None,
            "every_turns": None,
            "least_tokens": None,
            "keep_messages": None,
            "high_water": 1.0,
            "low_water": "auto",
            "page_tokens": 8000,
            "keep_share": 0.25,
            "keep_bookmarks": False,
            "keep_errors": False,
            "keep_first_successes": False,
            "keep_decisions": False,
        },
        "prices": {"write": 1.25, "read": 0.1},
        "contents": {"max_tokens": "auto", "low_share": 0.85, "facts_share": 0.15, "directories": True, "listed": True},
        "eviction": {"zero_recall_turns": None, "stale_turns": None, "order": "age", **WEIGHTS},
        "levels": {"trimmed": None, "lines": None, "directory": None, "gone": None},
        "recall": {
            "turns": 6,
            "max_share": 0.25,
            "passages_tokens": "auto",
            "protocol": "native",
            "search_sessions": False,
        },
        "rules": {"detect": True, "max_share": 0.1},
        "summary": {
            "timeout_s": 120,
            "continuation": False,
            "continuation_tokens": 400,
            "rebuild_every": 4,
            "headlines": False,
        },
        "search": {"vectors": False},
        "cache_breakpoints": False,
        "summarizer": "extractive",
        "planner": "marks",
        "store": "file:./memci",
        "on_conflict": "raise",
        "durability": "fsync",
        "snapshot_every": 500,
        "encryption": {"key": None, "old_keys": []},
        "open_sessions": {"max_bytes": 64_000_000},
        "checkpoints": {"every_turns": None, "keep": 50},
        "limits": {"message_bytes": 33_554_432, "tenant_sessions": None, "tenant_bytes": None},
        "models": {},
        "memory": {"session": "memory", "recalled": None, "kept": False, "bookmarked": False, "max_notes": None, "ttl_s": None},
    }


def test_a_preset_gives_the_defaults_of_what_is_not_set() -> None:
    """What a preset says holds in the place of the defaults, in sections that are given in part too, and made in code."""
    for name, sections in PRESETS.items():
        config = Config.from_mapping({"preset": name, "recall": {"turns": 9}})
        expected = {
            "recall": {"turns": 9, **sections.get("recall", {})},
            **{key: sections[key] for key in sections.keys() - {"recall"}},
        }
        plain = Config().to_mapping()
        for section, keys in expected.items():
            plain[section] |= keys
        assert {**plain, "preset": name} == config.to_mapping()
        assert Config(preset=config.preset, recall=config.recall) == config
    assert list(get_args(Preset)) == list(PRESETS)


def test_keys_beside_a_preset_win() -> None:
    """A key that is given holds, whatever the preset says."""
    given = {"contents": {"listed": True}, "active": {"max_messages": 7, "keep_messages": None}}
    given["recall"] = {"passages_tokens": "auto", "protocol": "native"}
    config = Config.from_mapping({"preset": "sliding", **given})
    assert attrs.evolve(Config.from_mapping(given), preset="sliding") == config


def test_what_a_journal_holds_is_taken_as_it_stands() -> None:
    """Where a stored config lacks a key, that has its default and not what the preset says by now."""
    stored = Config(preset="sliding").policy_mapping()
    del stored["contents"]["listed"]
    assert Config.from_stored(stored).contents.listed
    assert "sliding" == Config.from_stored(stored).preset


def test_a_window_holds_what_the_reserve_leaves() -> None:
    """The budget's tokens are the window without the reserve."""
    assert Budget(window=8_000, reserve=1_000).tokens == 7_000


def test_a_part_is_filled_with_defaults() -> None:
    """What a mapping does not name keeps its default."""
    config = Config.from_mapping({"active": {"max_pages": 9}})
    assert config == Config(active=Active(max_pages=9))


def test_a_config_cannot_be_changed() -> None:
    """A config that was checked stays as it was checked."""
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Config().budget.window = -1  # type: ignore[misc]


IMPOSSIBLE: dict[str, list[object]] = {
    "preset": ["", "Sliding", "window", None, 1, True, ["sliding"], {}],
    "format": ["", "html", "openai ", None, 1, ["openai"]],
    "counter": ["", " ", None, 7, ["o200k_base"]],
    "budget.window": [0, -1, True, 8000.0, "8000", None, math.nan, 10**400, [1]],
    "budget.reserve": [-1, True, 0.5, "auto", None, 32_000, 40_000],
    "active.min_pages": [0, -1, True, 1.5, None, "4"],
    "active.max_pages": [0, -1, False, 1, 4.0, "auto"],
    "active.max_messages": [0, -1, True, 4.0, "auto"],
    "active.max_calls": [0, -1, True, 4.0, "auto"],
    "active.every_turns": [0, -1, True, 1.5, "never"],
    "active.least_tokens": [0, -1, True, 0.5, "8k"],
    "active.keep_messages": [0, -1, True, 1.5, "all"],
    "active.high_water": [0, -0.5, 1.01, math.nan, math.inf, True, "auto", None],
    "active.low_water": [0, -0.5, 1.0, 1, 1.2, math.nan, True, "half", None, 10**400],
    "active.page_tokens": [0, -1, True, None, "8k"],
    "active.keep_share": [0, -1, 1.5, math.nan, True, None, "auto"],
    "active.keep_bookmarks": [0, 1, None, "yes"],
    "active.keep_errors": [0, 1, None, "yes"],
    "active.keep_first_successes": [0, 1, None, "yes"],
    "active.keep_decisions": [0, 1, None, "yes"],
    "prices.write": [0, -1, math.nan, math.inf, True, None, "1.25", 0.05],
    "prices.read": [0, -0.1, math.nan, math.inf, True, None, 2],
    "contents.max_tokens": [0, -1, True, None, 0.5, "all"],
    "contents.low_share": [0, -1, 1.5, math.nan, True, None, "auto"],
    "contents.facts_share": [-1, 1.5, math.nan, True, None, "auto"],
    "contents.directories": [0, 1, None, "yes"],
    "contents.listed": [0, 1, None, "no"],
    "eviction.zero_recall_turns": [0, -1, True, 1.5, "never"],
    "eviction.stale_turns": [0, -1, True, 1.5, "never"],
    "eviction.order": [None, "", "recalls", True, ["age"]],
    "eviction.recency_weight": [-0.1, 1.5, math.nan, True, None, "high"],
    "eviction.recalls_weight": [-0.1, 1.5, math.nan, True, None, "high"],
    "eviction.values_weight": [-0.1, 1.5, math.nan, True, None, "high"],
    "eviction.errors_weight": [-0.1, 1.5, math.nan, True, None, "high"],
    "eviction.changes_weight": [-0.1, 1.5, math.nan, True, None, "high"],
    "eviction.questions_weight": [-0.1, 1.5, math.nan, True, None, "high"],
    "levels.trimmed": [0, -1, True, 1.5, "never"],
    "levels.lines": [0, -1, True, 1.5, "never"],
    "levels.directory": [0, -1, True, 1.5, "never"],
    "levels.gone": [0, -1, True, 1.5, "never"],
    "limits.message_bytes": [0, -1, True, None, 1.5, "1 MB"],
    "budget.model": ["gpt-99", 7, True, "", ["gpt-5"]],
    "memory.session": ["", 7, None],
    "memory.recalled": [0, "often", True],
    "memory.kept": ["yes", 1],
    "memory.bookmarked": ["yes", 1],
    "memory.max_notes": [0, "many", True],
    "memory.ttl_s": [0, "long", True],
    "models": [7, "gpt-5", [], None],
    "limits.tenant_sessions": [0, -1, True, 1.5, "many"],
    "limits.tenant_bytes": [0, -1, True, 1.5, "1 GB"],
    "recall.turns": [0, -1, True, None, 1.5],
    "recall.max_share": [0, -1, 1.5, math.nan, True, None, "auto"],
    "recall.passages_tokens": [-1, True, None, 1.5],
    "recall.protocol": [None, "", "mcp", False, ["none"]],
    "recall.search_sessions": [0, 1, None, "yes"],
    "rules.detect": [None, 0, "yes", 1.5],
    "rules.max_share": [0, -1, 0.6, math.nan, True, None, "auto"],
    "summary.timeout_s": [0, -1, True, None, 1.5, "60 s"],
    "summary.continuation": [0, 1, None, "yes"],
    "summary.continuation_tokens": [0, 63, -1, True, None, 1.5, "auto"],
    "summary.rebuild_every": [0, -1, True, None, 1.5],
    "summary.headlines": [0, 1, None, "yes"],
    "search.vectors": [0, 1, None, "yes"],
    "cache_breakpoints": [0, 1, None, "yes", True],
    "summarizer": [None, "", " ", 1, [], {}, {1: 2}, ["extractive"]],
    "planner": [None, "", 1],
    "store": [None, "", 1],
    "on_conflict": [None, "", "refresh", True],
    "durability": [None, "", "none", True],
    "snapshot_every": [0, -1, True, None, 1.5],
    "encryption.key": ["", "MEMCI_KEY", "env:", "env:a b", "env:1", "c2VjcmV0", b"c2VjcmV0", 7, True, ["env:MEMCI_KEY"]],
    "encryption.old_keys": ["env:MEMCI_KEY", None, [7], ["MEMCI_KEY"], [""], {"env:MEMCI_KEY": 1}],
    "open_sessions.max_bytes": [-1, True, None, 1.5, "64MB", 10**13],
    "checkpoints.every_turns": [0, -1, True, 1.5, "never"],
    "checkpoints.keep": [0, -1, True, 1.5, "all"],
}


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, values in IMPOSSIBLE.items() for value in values])
def test_impossible_values_are_refused_with_their_path(path: str, value: object) -> None:
    """A wrong type or an impossible number is an error that names the place and what is allowed."""
    error = refused(at(path, value))
    expected = {"prices.read"} if (path, value) == ("prices.write", 0.05) else {path}
    assert error.path in expected
    assert str(error).startswith(f"{error.path}: ")


def test_a_number_too_long_to_print_is_refused() -> None:
    """A number of more digits than Python prints is refused as any other."""
    assert refused(at("budget.window", -(10**5_000))).path == "budget.window"


def test_every_key_has_impossible_values_here() -> None:
    """The table above misses no key."""
    keys = {
        f"{field.name}.{inner.name}" if field.name in SECTIONS else field.name
        for field in attrs.fields(Config)
        for inner in (attrs.fields(SECTIONS[field.name]) if field.name in SECTIONS else [field])
    }
    assert keys == set(IMPOSSIBLE)


POSSIBLE = [
    ("budget.window", 4_001),
    ("budget.reserve", 0),
    ("active.min_pages", 1),
    ("active.max_pages", 4),
    ("active.max_messages", 1),
    ("active.keep_messages", 1),
    ("active.high_water", 1),
    ("active.low_water", 0.99),
    ("prices.read", 1.25),
    ("contents.max_tokens", 1),
    ("contents.low_share", 1),
    ("contents.facts_share", 0),
    ("contents.directories", False),
    ("eviction.zero_recall_turns", None),
    ("eviction.stale_turns", None),
    ("eviction.order", "importance"),
    ("eviction.recalls_weight", 0),
    ("levels.trimmed", 1),
    ("levels.gone", 1),
    ("recall.turns", 1),
    ("recall.protocol", "attp"),
    ("on_conflict", "retry"),
    ("durability", "flush"),
    ("snapshot_every", 1),
    ("encryption.key", "env:MEMCI_KEY"),
    ("encryption.old_keys", ["env:MEMCI_KEY", "env:_1"]),
    ("open_sessions.max_bytes", 0),
    ("checkpoints.every_turns", None),
    ("checkpoints.keep", 1),
    ("limits.message_bytes", 1),
]


@pytest.mark.parametrize(("path", "value"), POSSIBLE)
def test_the_edges_of_what_is_possible_are_accepted(path: str, value: object) -> None:
    """The last value before an impossible one can be used."""
    mapping = Config.from_mapping(at(path, value)).to_mapping()
    section, _, key = path.rpartition(".")
    assert value == (mapping[section] if section else mapping)[key]


def test_constructors_check_as_mappings_do() -> None:
    """An object made in code is refused with the same path as one from a file."""
    with pytest.raises(ConfigError) as caught:
        Active(min_pages=4, max_pages=2)
    assert caught.value.path == "active.max_pages"
    with pytest.raises(ConfigError) as caught:
        Active(max_messages=30, keep_messages=30)
    assert caught.value.path == "active.keep_messages"
    with pytest.raises(ConfigError, match="they rise in the order trimmed, lines, directory, gone") as caught:
        Levels(trimmed=3, directory=9, gone=9)
    assert caught.value.path == "levels.gone"
    with pytest.raises(ConfigError, match="from_mapping"):
        Config(budget={"window": 8_000})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mapping", "path", "near"),
    [
        ({"active": {"maxpages": 3}}, "active.maxpages", "active.max_pages"),
        ({"contens": {}}, "contens", "contents"),
        ({"window": 8_000}, "window", "budget.window"),
        ({"active": {"durability": "fsync"}}, "active.durability", "durability"),
        ({"recall": {"protocol": "natve"}}, "recall.protocol", "native"),
        ({"durability": "fsynch"}, "durability", "fsync"),
        ({"format": "open-ai"}, "format", "openai"),
        ({"preset": "slidng"}, "preset", "sliding"),
        ({"model": "gpt-5"}, "model", "budget.model"),
    ],
)
def test_unknown_words_name_the_nearest(mapping: dict[str, object], path: str, near: str) -> None:
    """A misspelt key or word is an error that says what was probably meant."""
    error = refused(mapping)
    assert path == error.path
    assert f"did you mean {near}?" in str(error)


def test_a_strange_key_names_the_known_ones() -> None:
    """A key that is like nothing lists what there is."""
    error = refused({"recall": {"zzz": 1}})
    assert "turns, max_share, passages_tokens, protocol" in str(error)
    assert "did you mean" not in str(error)


@pytest.mark.parametrize("name", ["openai", "responses", "anthropic"])
def test_there_are_three_formats(name: str) -> None:
    """Each of the wire formats can be chosen by its name."""
    assert name == Config.from_mapping({"format": name}).format


@pytest.mark.parametrize("value", [None, [], "x", 3, True])
@pytest.mark.parametrize("path", ["", "active"])
def test_what_is_not_keys_and_values_is_refused(path: str, value: object) -> None:
    """A section without keys and values is refused, null included: it could mean "all off" as well as "all default"."""
    error = refused({path: value} if path else value)
    assert path == error.path


@pytest.mark.parametrize("mapping", [{True: 1}, {"active": {7: 1}}, {None: 1}])
def test_keys_that_are_not_text_are_refused(mapping: dict[object, object]) -> None:
    """YAML's surprises among the keys are named."""
    assert "is not text" in str(refused(mapping))


LEVELS = ("trimmed", "lines", "directory", "gone")
SHARES = st.floats(0.01, 1.0)
COUNTS = st.integers(1, 10**9)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Draw any config that can be used."""
    window, min_pages, high, write = draw(COUNTS), draw(st.integers(1, 50)), draw(st.floats(0.02, 1.0)), draw(st.floats(0.1, 9))
    low: float | Literal["auto"] = "auto" if draw(st.booleans()) else draw(st.floats(0.01, high, exclude_max=True))
    max_tokens: int | Literal["auto"] = "auto" if draw(st.booleans()) else draw(COUNTS)
    return Config(
        preset=draw(st.sampled_from(sorted(PRESETS))),
        counter=draw(st.sampled_from(["o200k_base", "gpt-4o", "approximate"])),
        budget=Budget(window=window, reserve=draw(st.integers(0, window - 1))),
        active=Active(
            min_pages=min_pages,
            max_pages=draw(st.none() | st.integers(min_pages, 99)),
            max_messages=draw(st.none() | st.integers(51, 99)),
            max_calls=draw(st.none() | COUNTS),
            every_turns=draw(st.none() | COUNTS),
            least_tokens=draw(st.none() | COUNTS),
            keep_messages=draw(st.none() | st.integers(1, 50)),
            high_water=high,
            low_water=low,
            page_tokens=draw(COUNTS),
        ),
        prices=Prices(write=write, read=draw(st.floats(0.01, write))),
        contents=Contents(
            max_tokens=max_tokens, low_share=draw(SHARES), directories=draw(st.booleans()), listed=draw(st.booleans())
        ),
        eviction=Eviction(zero_recall_turns=draw(st.none() | COUNTS), stale_turns=draw(st.none() | COUNTS)),
        levels=Levels(**{name: draw(st.none() | st.integers(9 * place + 1, 9 * place + 9)) for place, name in enumerate(LEVELS)}),
        recall=Recall(turns=draw(COUNTS), max_share=draw(SHARES), protocol=draw(st.sampled_from(["none", "native", "attp"]))),
        summary=Summary(continuation=draw(st.booleans()), rebuild_every=draw(COUNTS)),
        search=Search(vectors=draw(st.booleans())),
        store=draw(st.text(min_size=1).filter(str.strip)),
        on_conflict=draw(st.sampled_from(["raise", "retry"])),
        durability=draw(st.sampled_from(["fsync", "flush"])),
        snapshot_every=draw(COUNTS),
        encryption=Encryption(key=draw(st.none() | st.just("env:NEW")), old_keys=draw(st.just(()) | st.just(("env:OLD",)))),
        open_sessions=OpenSessions(max_bytes=draw(COUNTS)),
        checkpoints=Checkpoints(every_turns=draw(st.none() | COUNTS), keep=draw(st.none() | COUNTS)),
        memory=Memory(recalled=draw(st.none() | COUNTS), kept=draw(st.booleans()), max_notes=draw(st.none() | COUNTS)),
        limits=Limits(
            message_bytes=draw(COUNTS), tenant_sessions=draw(st.none() | COUNTS), tenant_bytes=draw(st.none() | COUNTS)
        ),
    )


@given(configs())
def test_a_mapping_gives_the_config_back(config: Config) -> None:
    """Writing a config as JSON and reading it loses nothing."""
    assert config == Config.from_mapping(json.loads(json.dumps(config.to_mapping())))


@given(configs())
def test_the_policy_is_all_but_the_place(config: Config) -> None:
    """The policy says nothing of places, conflicts, search, limits, and of summaries only what is on."""
    policy = config.policy_mapping()
    kept = {"continuation", "continuation_tokens", "rebuild_every"} if config.summary.continuation else set()
    kept |= {"headlines"} if config.summary.headlines else set()
    assert kept == policy.pop("summary", {}).keys()
    places = {"on_conflict", "store", "durability", "snapshot_every", "open_sessions", "checkpoints", "search", "limits"}
    places |= {"summarizer", "summary", "planner", "models", "memory", "encryption"}
    assert places == config.to_mapping().keys() - policy.keys()
    back = attrs.evolve(Config.from_mapping(policy), **{name: getattr(config, name) for name in places})
    assert config == back


def test_a_mapping_is_the_callers_own() -> None:
    """Changing a mapping changes no config."""
    config = Config()
    config.to_mapping()["budget"]["window"] = 1
    assert config == Config()


# The file


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Write a configuration file and return its path."""

    def write(text: str | bytes) -> Path:
        path = tmp_path / "memci.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


Write = Callable[[str | bytes], Path]


def test_the_default_file_gives_the_default_config(file: Write) -> None:
    """The file that is printed for a start says exactly what holds without it."""
    assert Config.from_file(file(config_file_text())) == Config()


def test_the_default_file_comments_on_every_key() -> None:
    """Each key of each section stands in the file in its order, with a comment."""
    lines = [line for line in config_file_text().splitlines() if re.match(r" *\w+:", line)]
    expected = []
    for field in attrs.fields(Config):
        expected.append(field.name)
        if field.name in SECTIONS:
            expected += ["  " + inner.name for inner in attrs.fields(SECTIONS[field.name])]
    assert expected == [line.partition(":")[0] for line in lines]
    assert [line for line in lines if not re.search(r" # \w", line)] == []


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "\ufeff", "{}"])
def test_an_empty_file_gives_the_defaults(file: Write, text: str) -> None:
    """A file that says nothing changes nothing."""
    assert Config.from_file(str(file(text))) == Config()


def test_a_file_changes_what_it_names(file: Write) -> None:
    """Values come out of the file, the rest from the defaults."""
    config = Config.from_file(
        file("budget: {window: 8000, reserve: 1000}\nactive:\n  max_pages: 8\neviction: {stale_turns: null}\n")
    )
    assert config == Config(
        budget=Budget(window=8_000, reserve=1_000), active=Active(max_pages=8), eviction=Eviction(stale_turns=None)
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("budget: {window: 8000", "line 1, column 22"),
        ("counter: approximate\n\tformat: openai", "line 2, column 1"),
        ("a: 1\n---\nb: 2", "line 2, column 1"),
        ("store: *nowhere", "line 1, column 8"),
        ("store: !!python/name:os.system x", "line 1, column 8"),
        ("counter: x\nstore: a\x01b", "line 2, column 9"),
        ("? [a]\n: 1", "line 1, column 3"),
    ],
)
def test_what_is_not_yaml_is_refused_with_its_place(file: Write, text: str, place: str) -> None:
    """A syntax error names file, line and column."""
    path = file(text)
    with pytest.raises(ConfigError, match=place) as caught:
        Config.from_file(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "- counter",
        "counter",
        "[" * 5_000,
        "store: 2001-99-99",
        "store: !!timestamp today",
        "store: !!bool maybe",
        "store: !!int ''",
        "snapshot_every: " + "9" * 5_000,
        b"store: \xff",
        "active: &again {min_pages: *again}",
        "active: &again [*again]",
        "<<: {zzz: 1}",
    ],
)
def test_strange_files_are_refused(file: Write, text: str | bytes) -> None:
    """Whatever a file holds, it is a config or a ConfigError."""
    with pytest.raises(ConfigError):
        Config.from_file(file(text))


@given(st.text() | st.text("a:{}[],&*!?|>-#'\"% \n\t01", max_size=40))
def test_any_text_is_a_config_or_an_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """No text gets past the reader with another exception."""
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        config = Config.from_file(path)
    except ConfigError:
        return
    assert config == Config()


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("counter: approximate\ncounter: o200k_base", "counter", 2),
        ("active:\n  min_pages: 1\n  max_pages: 2\n  min_pages: 3", "active.min_pages", 4),
        ("{store: a, store: a}", "store", 1),
    ],
)
def test_a_key_that_stands_twice_is_refused(file: Write, text: str, path: str, line: int) -> None:
    """Two values for one key are not silently one."""
    with pytest.raises(ConfigError, match=f"line {line}") as caught:
        Config.from_file(file(text))
    assert path == caught.value.path


def test_yes_and_no_as_keys_are_explained(file: Write) -> None:
    """A key that YAML takes for true is refused with the reason."""
    with pytest.raises(ConfigError, match="YAML reads on"):
        Config.from_file(file("on: 1"))


def test_a_wrong_value_in_a_file_names_the_file(file: Write) -> None:
    """An error from a file carries the place in the configuration, and a note with the file's name."""
    path = file("active: {min_pages: 0}")
    with pytest.raises(ConfigError) as caught:
        Config.from_file(path)
    assert caught.value.path == "active.min_pages"
    assert caught.value.__notes__ == [f"in the file {path}"]


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A missing file, a folder and an impossible name are configuration errors, not system errors."""
    for path in (tmp_path / "none.yaml", tmp_path, "a\0b"):
        with pytest.raises(ConfigError, match="cannot be read"):
            Config.from_file(path)


def test_what_a_journal_of_earlier_keys_holds_can_be_read() -> None:
    """Settings that an older version stored load: a key that went is left out, and one that was renamed has its new name."""
    stored = Config().to_mapping()
    stored["active"]["entry_tokens"] = 4_000
    del stored["recall"]["passages_tokens"]
    stored["recall"]["prefetch_tokens"] = 7
    assert Config(recall=Recall(passages_tokens=7)) == Config.from_stored(stored)
    refused(stored)
