"""What changes a window over HTTP: folds, recalls, keeping, erasing, compaction and when it comes by itself."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import memci
from memci.client.answer import AutoZone, Level
from memci.engine.core.monitor import Zone
from memci.http.compaction import NO_MARKS, marks, told
from tests.http.serving import CONFIG, problem, say, serving, user, value

CHAT = "/v1/sessions/chat"
TEXTS = [f"part {number} of the boiler" for number in range(8)]

LEFT = {"open": "open", "active": "active", "archived": "archived", "hidden": "archived"}  # as a directory may have them


@pytest.fixture
def said(api: TestClient) -> TestClient:
    say(api, "chat", *TEXTS)
    return api


def states(api: TestClient) -> list[str]:
    return [page["state"] for page in value(api.get(f"{CHAT}/pages"))["pages"]]


def test_pages_fold_and_come_back(said: TestClient) -> None:
    """A fold takes named pages, all, or as many as a size asks for; undoing it brings them back."""
    assert ["usr-2", "usr-3"] == value(said.post(f"{CHAT}/fold", json={"pages": ["usr-2", "usr-3"]}))["pages"]
    assert ["active", "archived", "archived", "active"] == [*map(LEFT.get, states(said)[:4])]
    assert ["usr-2", "usr-3"] == value(said.post(f"{CHAT}/undo"))["pages"]
    assert ["active"] * 7 + ["open"] == states(said)
    light = value(said.post(f"{CHAT}/fold", json={"to": "light"}))
    assert light["tokens_after"] <= 0.8 * light["tokens_before"]
    value(said.post(f"{CHAT}/fold", json={"pages": "all"}))
    assert ["archived"] * 7 + ["open"] == [*map(LEFT.get, states(said))]


def test_there_may_be_nothing_to_undo(said: TestClient) -> None:
    """That is a conflict with what there is."""
    assert "urn:memci:MemciError" == problem(said.post(f"{CHAT}/undo"), 409)["type"]
    problem(said.post(f"{CHAT}/fold", json={"pages": ["usr-1"], "to": "light"}), 422)


def test_a_recalled_page_stands_in_the_window(said: TestClient) -> None:
    """It is returned too, and fades when it is told to."""
    value(said.post(f"{CHAT}/fold", json={"pages": "all"}))
    page = value(said.post(f"{CHAT}/recall", json={"index": "usr-2"}))
    assert TEXTS[1] == page["messages"][0]["content"]
    assert value(said.get(f"{CHAT}/status"))["breakdown"]["recalled"] > 0
    assert 204 == said.post(f"{CHAT}/pages/2/fade").status_code
    assert 0 == value(said.get(f"{CHAT}/status"))["breakdown"]["recalled"]


@pytest.mark.parametrize(
    ("actions", "facts"),
    [
        (["pin"], {"pinned": True}),
        (["pin", "unpin"], {"pinned": False}),
        (["evict"], {"state": "evicted"}),
        (["evict", "restore"], {"state": "archived"}),
        (["keep"], {"kept": True}),
        (["keep", "unkeep"], {"kept": False}),
    ],
)
def test_pages_are_held_and_let_go(said: TestClient, actions: list[str], facts: dict[str, Any]) -> None:
    """Each action does what the session's method of its name does."""
    value(said.post(f"{CHAT}/fold", json={"pages": "all"}))
    for action in actions:
        assert 204 == said.post(f"{CHAT}/pages/usr-2/{action}").status_code
    assert facts.items() <= value(said.get(f"{CHAT}/pages/usr-2"))["facts"].items()


def test_an_action_that_there_is_not_is_refused(said: TestClient) -> None:
    """No other method of a session can be called so."""
    problem(said.post(f"{CHAT}/pages/usr-2/erase"), 422)
    problem(said.post(f"{CHAT}/pages/usr-2/__class__"), 422)


def test_a_recall_of_an_evicted_page_says_how_it_comes_back(said: TestClient) -> None:
    """That is a conflict, which restoring solves."""
    value(said.post(f"{CHAT}/fold", json={"pages": "all"}))
    assert 204 == said.post(f"{CHAT}/pages/usr-2/evict").status_code
    say(said, "chat", "the valve")
    value(said.post(f"{CHAT}/fold", json={"pages": "all"}))  # the contents page that windows show is that of the last fold
    assert "usr-2" == problem(said.post(f"{CHAT}/recall", json={"index": "usr-2"}), 409)["index"]
    assert 204 == said.post(f"{CHAT}/pages/usr-2/restore").status_code
    value(said.post(f"{CHAT}/recall", json={"index": "usr-2"}))


def test_an_erased_page_is_nowhere(tmp_path: Path) -> None:
    """Its words are in no file, in its forks neither where that is asked for; the receipts say so."""
    with serving(f"file:{tmp_path}") as api:
        say(api, "chat", "the password is xylophone", "the boiler")
        with memci.Engine(f"file:{tmp_path}", CONFIG) as engine, engine.fork("chat", "fork"):
            pass
        receipts = value(api.delete(f"{CHAT}/pages/usr-1", params={"forks": True}))
    assert {"chat", "fork"} == {receipt["session"] for receipt in receipts}
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file() and b"xylophone" in path.read_bytes()]


@pytest.mark.parametrize("level", ["light", "medium", "heavy"])
def test_a_compaction_can_be_taken_back(said: TestClient, level: Level) -> None:
    """A checkpoint is made first, and the window is smaller by the share of the level."""
    before = value(said.get(f"{CHAT}/status"))["tokens"]
    made = value(said.post(f"{CHAT}/compact", json={"level": level}))
    after = value(said.get(f"{CHAT}/status"))["tokens"]
    assert after <= {"light": 0.8, "medium": 0.6, "heavy": 0.4}[level] * before
    assert (before, after) == (made["fold"]["tokens_before"], made["fold"]["tokens_after"])
    value(said.post(f"{CHAT}/checkpoints/{made['checkpoint']['id']}/restore"))
    assert before == value(said.get(f"{CHAT}/status"))["tokens"]


def test_a_session_folds_by_itself_from_then_on(tmp_path: Path) -> None:
    """What was put outlives the server, and whoever opens the session elsewhere obeys."""
    store, auto = f"file:{tmp_path}", {"enabled": True, "zone": "yellow", "level": "heavy"}
    with serving(store) as api:
        say(api, "chat", "the boiler")
        assert {"enabled": False, "zone": None, "level": None} == value(api.get(f"{CHAT}/auto"))
        assert auto == value(api.put(f"{CHAT}/auto", json=auto))
    with serving(store) as api:
        assert auto == value(api.get(f"{CHAT}/auto"))
    with memci.Engine(store, CONFIG) as engine, engine.session("chat") as session:
        for text in TEXTS * 3:
            session.extend([user(text), {"role": "assistant", "content": "It is so. " * 20}])
            assert session.status().tokens <= 0.5 * 1_000 + 100  # at the end of a turn
        folds = list(session.events("folded"))
    assert folds


def test_it_stops_when_it_is_told_to(said: TestClient) -> None:
    """Then only windows that would not fit make pages fold."""
    value(said.put(f"{CHAT}/auto", json={"enabled": True}))
    assert {"enabled": True, "zone": "orange", "level": "medium"} == value(said.get(f"{CHAT}/auto"))
    assert {"enabled": False, "zone": None, "level": None} == value(said.put(f"{CHAT}/auto", json={"enabled": False}))


def test_other_marks_have_no_zone() -> None:
    """Settings that nobody put here are told as far as they have these words."""
    config = memci.Config.from_mapping({"active": {"high_water": 0.8}})
    assert (True, None, None) == (told(config).enabled, told(config).zone, told(config).level)


@pytest.mark.parametrize("zone", ["yellow", "orange", "red"])
@pytest.mark.parametrize("level", ["light", "medium", "heavy"])
def test_marks_are_told_as_they_were_put(zone: AutoZone, level: Level) -> None:
    """A fold begins where its zone does, and ends smaller by its level."""
    made = marks(zone, level)
    known = told(memci.Config.from_mapping({"active": made}))
    assert (True, zone, level) == (known.enabled, known.zone, known.level)
    assert {"yellow": 0.5, "orange": 0.75, "red": 0.9}[zone] == made["high_water"]
    assert not told(memci.Config.from_mapping({"active": NO_MARKS})).enabled
    assert Zone(zone) is not Zone.GREEN


def test_a_topic_is_closed(api: TestClient) -> None:
    """What is complete of it folds under its title."""
    say(api, "chat", *TEXTS[:4])
    folded = value(api.post(f"{CHAT}/topic", json={"title": "Parts of the boiler"}))
    assert folded["pages"]
    assert "Parts of the boiler" in str(value(api.post(f"{CHAT}/window"))["messages"])
    problem(api.post(f"{CHAT}/topic", json={"title": ""}), 422)


def test_settings_of_a_session_are_chosen(api: TestClient) -> None:
    """They are in force at once, over those of the server; what no session chooses is refused."""
    say(api, "chat", *TEXTS[:2])
    before = value(api.get(f"{CHAT}/config"))
    chosen = value(api.patch(f"{CHAT}/config", json={"active": {"max_pages": 3, "min_pages": 1}}))
    assert chosen == value(api.get(f"{CHAT}/config"))
    assert chosen == {**before, "active": {**before["active"], "max_pages": 3, "min_pages": 1}}
    for text in TEXTS[2:]:
        say(api, "chat", text)
    left = [each["index"] for each in value(api.get(f"{CHAT}/pages"))["pages"] if each["state"] in ("active", "open")]
    assert ["usr-6", "usr-7", "usr-8"][-len(left) :] == left
    problem(api.patch(f"{CHAT}/config", json={"store": "memory:"}), 422)
    problem(api.patch(f"{CHAT}/config", json={"preset": 7}), 422)
