"""``memci replay``."""

import json
import tempfile
from pathlib import Path
from typing import Any

import attrs
import pytest

import memci
from memci.cli.exit_code import ExitCode
from memci.engine.settings.config import Config, Prices
from memci.quality.played import Calls
from memci.quality.replay import Measurement, Said, replay, spill
from tests.cli.stored import CONFIG, Run, chat

BUDGET = ("--budget", 700)

SETTINGS = "counter: approximate\n"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "memci.yaml"
    path.write_text(SETTINGS, encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"messages": chat(40)}), encoding="utf-8")
    return path


def measured(messages: list[dict[str, Any]], config: dict[str, Any] | None = None) -> Measurement:
    with memci.Engine("memory:", {**CONFIG, **(config or {})}) as engine:
        return replay(engine, "r", [Said(message, None, "here") for message in messages])


def test_what_happened_is_counted() -> None:
    """Messages, turns and calls are those of the conversation, and the pages at the end are all there."""
    found = measured(chat(40))
    assert (len(chat(40)), 40, 48) == (found.messages, found.turns, found.calls)
    assert 41 == sum(found.pages.values())
    assert found.folds > 0


def test_promises_are_kept() -> None:
    """A conversation that is many times the budget is replayed without a fault."""
    found = measured(chat(40))
    assert found.ok
    assert (0, 0, 0) == (found.over_budget, found.broken_pairs, found.unequal_messages)
    assert found.reopened_equal
    assert ((), ()) == (found.problems, found.budget_errors)


@pytest.mark.parametrize(
    "change", [{"over_budget": 1}, {"broken_pairs": 2}, {"unequal_messages": 1}, {"reopened_equal": False}, {"problems": ("x",)}]
)
def test_each_promise_counts(change: dict[str, Any]) -> None:
    """One broken promise makes the whole replay fail."""
    assert not attrs.evolve(measured(chat(2)), **change).ok


def test_late_results_come_back_in_order() -> None:
    """A result that comes after the next question is where it was said when messages are compared."""
    said = chat(6)
    late = next(number for number, message in enumerate(said) if message["role"] == "tool")
    said.insert(late + 3, said.pop(late))
    assert 0 == measured(said).unequal_messages


def test_calls_that_fit_nothing_are_listed() -> None:
    """A call for which no window fits is told with its number and breakdown, and the session goes on."""
    said = chat(4)
    said[3] = {"role": "system", "content": "Never say more than you were asked. " * 40}
    found = measured(said, {"budget": {"window": 150, "reserve": 0}})
    assert [2] == [failure["call"] for failure in found.budget_errors]
    assert all(sum(failure["breakdown"].values()) == failure["tokens"] > failure["budget"] for failure in found.budget_errors)
    assert 0 == found.unequal_messages
    assert len(found.budget_errors) == found.calls - found.sent.calls


def test_whole_history_is_what_was_said() -> None:
    """Beside the windows stands what sending everything so far would have sent: more tokens, and all of them again."""
    found = measured(chat(40))
    assert found.calls == found.whole.calls
    assert found.whole.tokens > found.sent.tokens
    assert found.whole.prefix_reuse > 0.9


def test_nothing_is_measured_before_the_history_outgrows_the_budget() -> None:
    """A conversation that fits has no figure for verbatim tokens, and sends what the whole history would."""
    found = measured(chat(3), {"counter": "o200k_base"})
    assert found.sent.verbatim_tokens is None
    assert found.sent.verbatim_share is None
    assert (found.whole.tokens_per_call, 0) == (found.sent.tokens_per_call, found.folds)


def test_verbatim_tokens_are_a_share_of_the_budget() -> None:
    """Once the history is larger than the budget, the mean of what is shown word for word is within it."""
    found = measured(chat(40))
    tokens, share = found.sent.verbatim_tokens, found.sent.verbatim_share
    assert tokens is not None
    assert share is not None
    assert pytest.approx(tokens / 700) == share
    assert 0 < share < 1


def test_cost_follows_its_formula() -> None:
    """What is reused costs a cache read, the rest a cache write."""
    calls = Calls(calls=10, tokens=10_000, length=8_000, prefix=6_000)
    assert pytest.approx(1_000 * (0.75 * 0.5 + 0.25 * 2.0)) == calls.cost_per_call(Prices(write=2.0, read=0.5))


def test_spilling_folds_a_page_at_a_time() -> None:
    """Marks that are next to each other fold more often, and break the prefix more often."""
    batches, spilled = measured(chat(40)), measured(chat(40), {"active": attrs.asdict(spill(Config()).active)})
    assert spilled.folds > batches.folds
    assert spilled.sent.prefix_reuse < batches.sent.prefix_reuse


def test_document(run: Run, file: Path, settings: Path) -> None:
    """With --json there is one document: the session, one page a turn, the whole history."""
    ran = run("replay", file, *BUDGET, "--config", settings, "--json")
    found = ran.json()
    assert ExitCode.OK == ran.code
    assert (True, 700, "approximate", "flush", None) == tuple(
        found[key] for key in ("ok", "budget", "counter", "durability", "store")
    )
    assert found["one_page_a_turn"]["folds"] > found["folds"] > 0
    assert {"tokens_sent", "tokens_per_call", "prefix_reuse", "cost_per_call"} == set(found["whole_history"])


def test_table(run: Run, file: Path, settings: Path) -> None:
    """People get a table with three columns, and are told that the session is not kept."""
    ran = run("replay", file, *BUDGET, "--config", settings)
    lines = ran.out.splitlines()
    assert ["window of 700", "one page a turn", "whole history"] == [cell.strip() for cell in lines[0].split("  ") if cell]
    assert ["windows over budget", "0", "0"] == [cell.strip() for cell in lines[7].split("  ") if cell]
    assert "removed with its temporary store" in ran.err


def test_nothing_is_left(run: Run, file: Path, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --store the session is made in a temporary directory, which is gone afterwards, whatever MEMCI_STORE says."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("MEMCI_STORE", f"file:{temporary}/kept")
    assert ExitCode.OK == run("replay", file, "--config", settings, *BUDGET).code
    assert [] == list(temporary.iterdir())


def test_store_keeps_the_session(run: Run, file: Path, settings: Path, tmp_path: Path) -> None:
    """With --store the session is there afterwards, with every message, and only the one that was asked for."""
    store = f"file:{tmp_path / 'store'}"
    ran = run("replay", file, "--config", settings, *BUDGET, "--store", store, "--session", "kept", "--durability", "flush")
    assert f"the session 'kept' (flush) is kept in {store}\n" == ran.err
    assert ["kept"] == run("sessions", "--store", store, "--json").json()
    exported = run("export", "--store", store).out.splitlines()
    assert chat(40) == [json.loads(line) for line in exported]


def test_existing_session_is_refused(run: Run, file: Path, settings: Path, tmp_path: Path) -> None:
    """A session that has messages is not replayed into."""
    arguments = ("replay", file, "--config", settings, *BUDGET, "--store", f"file:{tmp_path / 'store'}", "--policy", "spill")
    assert ExitCode.OK == run(*arguments).code
    again = run(*arguments)
    assert (ExitCode.USAGE, "") == (again.code, again.out)
    assert "session 'replay' has messages already" in again.err


def test_a_wrong_timestamp_leaves_no_session(run: Run, settings: Path, tmp_path: Path) -> None:
    """A file with a timestamp that is no time stores nothing, so that the same session takes the corrected file."""
    path, store = tmp_path / "chat.json", f"file:{tmp_path / 'store'}"
    arguments = ("replay", path, "--config", settings, "--store", store, "--policy", "spill")
    for last, code in (("noon", ExitCode.USAGE), ("11:01 am on 17 December, 2022", ExitCode.OK)):
        times = ["2022-12-17T11:00:00", *[None] * (len(chat(2)) - 2), last]
        path.write_text(json.dumps({"messages": chat(2), "timestamps": times}), encoding="utf-8")
        assert code == run(*arguments).code
    assert "2022-12-17T11:01:00+00:00" == run("export", "--format", "json", "--store", store).json()["timestamps"][-1]


def test_spilling_alone(run: Run, file: Path, settings: Path) -> None:
    """With --policy spill the session itself spills one page a turn, and nothing stands beside it."""
    found = run("replay", file, "--config", settings, *BUDGET, "--policy", "spill", "--json").json()
    assert found["one_page_a_turn"] is None
    assert measured(chat(40), {"active": attrs.asdict(spill(Config()).active)}).folds == found["folds"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--budget", 700, "--reserve", 100), 600),
        (("--reserve", 2_000), 30_000),
        ((), 28_000),
    ],
)
def test_budget_options(run: Run, file: Path, settings: Path, options: tuple[object, ...], said: int) -> None:
    """A window holds --budget without --reserve; what is not given is as configured, but for the reserve of a given budget."""
    assert said == run("replay", file, "--config", settings, *options, "--policy", "spill", "--json").json()["budget"]


@pytest.mark.parametrize(
    ("message", "said"),
    [({"role": "robot", "content": "x"}, "message 2: role: the role is 'robot'"), ({"role": "user"}, "message 2: content: ")],
)
def test_refused_messages_are_named(run: Run, tmp_path: Path, message: dict[str, Any], said: str) -> None:
    """A message that the provider would refuse is named by file and number."""
    path = tmp_path / "bad.json"
    path.write_text(json.dumps([{"role": "user", "content": "x"}, message]), encoding="utf-8")
    ran = run("replay", path)
    assert ExitCode.USAGE == ran.code
    assert f"memci: {path}: {said}" in ran.err


def test_wrong_settings_are_named(run: Run, file: Path, tmp_path: Path) -> None:
    """A settings file that cannot be used is named with the key."""
    path = tmp_path / "wrong.yaml"
    path.write_text("active: {min_page: 3}\n", encoding="utf-8")
    ran = run("replay", file, "--config", path)
    assert ExitCode.USAGE == ran.code
    assert "active.min_page" in ran.err
    assert str(path) in ran.err


@pytest.mark.parametrize("file_format", ["jsonl", "json"])
def test_exports_can_be_replayed(run: Run, store: str, settings: Path, tmp_path: Path, file_format: str) -> None:
    """What export writes is a conversation, in both formats."""
    path = tmp_path / "exported"
    path.write_text(run("export", "--format", file_format, "--store", store).out, encoding="utf-8")
    found = run("replay", path, "--config", settings, "--json").json()
    assert (len(chat(40)), True) == (found["messages"], found["ok"])


@pytest.mark.parametrize("name", ["responses", "anthropic"])
def test_conversations_of_other_formats_are_replayed(name: str, tmp_path: Path, run: Run) -> None:
    """A file that names its format is measured in it, with every promise kept and a call before each answer of the model."""
    messages = memci.convert(chat(40), from_="openai", to=name).messages
    system = [value["content"] for value in messages if value.get("role") == "system"]
    rest = [value for value in messages if value.get("role") != "system"]
    document = {"format": name, "messages": rest, **({"system": system[0]} if name == "anthropic" else {})}
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(document if name == "anthropic" else {**document, "messages": messages}), encoding="utf-8")
    ran = run("replay", path, *BUDGET, "--json")
    found = ran.json()
    assert (ExitCode.OK, True) == (ran.code, found["ok"])
    assert (measured(chat(40)).calls, 0) == (found["calls"], found["broken_pairs"])


def test_summaries_are_priced(run: Run, file: Path, settings: Path) -> None:
    """Both ways of asking a model stand in table and document; where reading a cache costs as much, alone is cheaper."""
    found = run("replay", file, *BUDGET, "--config", settings, "--json").json()
    assert found["summarised_pages"] > 0 < found["window_summaries_cost"]
    settings.write_text(SETTINGS + "prices: {read: 1.0, write: 1.0}\n", encoding="utf-8")
    dear = run("replay", file, *BUDGET, "--config", settings, "--json").json()
    assert dear["window_summaries_cost"] > dear["summaries_cost"]
    assert "summaries, cost a call: each alone" in run("replay", file, *BUDGET, "--config", settings).out
