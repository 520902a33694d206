"""The page that a server gives: a list of sessions, and each one's page, which follows what happens."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from fastapi.testclient import TestClient

import memci
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.names import SessionKey
from memci.http.guard import Rules
from memci.http.tokens import Scope, Tokens, new_token
from memci.http.viewing import Viewer
from memci.page.live import POLICY
from tests.engine.counting_store import CountingStore
from tests.http.serving import CONFIG, assistant, problem, say, serving, user, value
from tests.http.test_notices import SECONDS, post, running
from tests.page.browser import busy_after_click, launched, new_page, settle

if TYPE_CHECKING:
    from playwright.sync_api import Dialog, Page, Route

pytestmark = [pytest.mark.browser, pytest.mark.server]


def test_views_of_a_session_are_resources(api: TestClient) -> None:
    """Each view has its value, as of what was said last; what is asked wrongly is a problem detail."""
    say(api, "chat", "harbours", "lighthouses")
    seen = value(api.get("/v1/sessions/chat/page/overview"))
    say(api, "chat", "tides")
    assert value(api.get("/v1/sessions/chat/page/overview"))["turn"] == seen["turn"] + 1
    asked = "/v1/sessions/chat/page/window"
    assert "lighthouses" in api.get(asked, params={"seq": seen["seq"]}).text
    assert "harbours" in api.get("/v1/sessions/chat/page/page", params={"index": "usr-1"}).text
    for view in ("tree", "presets"):
        value(api.get(f"/v1/sessions/chat/page/{view}"))
    value(api.get("/v1/sessions/chat/page/search", params={"query": "harbours"}))
    problem(api.get(asked), 422)
    problem(api.get(asked, params={"seq": 999}), 422)
    problem(api.get("/v1/sessions/chat/page/page", params={"index": "usr-99"}), 404)
    problem(api.get("/v1/sessions/chat/page/else"), 422)
    problem(api.get("/v1/sessions/none/page/overview"), 404)
    preview = "/v1/sessions/chat/page/preview"
    assert {"changes", "words", "before", "after", "reasons"} == set(
        value(api.get(preview, params={"action": "fold", "of": "all"}))
    )
    problem(api.get(preview, params={"action": "fold", "of": "tiny"}), 422)
    problem(api.get(preview, params={"action": "recall", "of": "usr-99"}), 404)
    problem(api.get(preview), 422)
    assert seen["seq"] + 2 == value(api.get("/v1/sessions/chat"))["seq"]
    assert "none" not in api.get("/v1/sessions").text


def test_a_view_shows_what_others_wrote(tmp_path: Path) -> None:
    """What another process wrote is in the next view, although the session is open for another one."""
    store, chat = f"file:{tmp_path}", SessionKey("default", "chat")
    other, reader = memci.Engine(store, CONFIG), memci.Engine(store, CONFIG, read_only=True)
    with other, reader, other.session("chat") as elsewhere:
        elsewhere.append(user("harbours"))
        kept = reader.session("chat")
        elsewhere.append(assistant("They are deep."))
        assert kept.seq < elsewhere.seq == Viewer(reader).answer(chat, "overview", {})["seq"]


def test_sessions_have_figures(api: TestClient) -> None:
    """Size, what was sent, cost and zone, of those that are asked for and are there, as each session tells them."""
    for name in ("chat", "other"):
        value(api.post(f"/v1/sessions/{name}/messages", json={"messages": [user("harbours")]}), 201)
        value(api.post(f"/v1/sessions/{name}/window"))
        say(api, name, "lighthouses")
    found = value(api.get("/v1/stats", params={"session": ["other", "none", "chat"]}))
    assert ["other", "chat"] == [each["session"] for each in found]
    assert found[1] == value(api.get("/v1/sessions/chat/stats"))
    assert {"turn": 1, "calls": 1, "reports": 0, "cost": None, "zone": "green", "budget": 1_000}.items() <= found[0].items()
    assert 0 < found[0]["sent_tokens"] < found[0]["said_tokens"]
    problem(api.get("/v1/stats"), 422)
    problem(api.get("/v1/stats", params={"session": [f"s{number}" for number in range(101)]}), 422)


def test_figures_cost_no_history() -> None:
    """Of a session that is ten times as long, no more is read: a snapshot, and what came since."""
    store, read, config = CountingStore(MemoryStore()), list[int](), {**CONFIG, "snapshot_every": 40}
    with serving(store, config) as api:
        for turns in (30, 300):
            say(api, f"chat {turns}", *(f"part {number}" for number in range(turns)))
    with serving(store, config) as api:
        for turns in (30, 300):
            store.records = 0
            assert turns == value(api.get("/v1/stats", params={"session": f"chat {turns}"}))[0]["turn"]
            read.append(store.records)
    assert max(read) <= 40 + 2


def test_views_are_for_whom_the_session_is(tmp_path: Path) -> None:
    """A token of another tenant sees nothing of it; the files of the page hold nothing of anybody."""
    path = tmp_path / "tokens.yaml"
    ours, theirs = ({"Authorization": f"Bearer {new_token(path, tenant, Scope.WRITE)}"} for tenant in ("ours", "theirs"))
    with serving(tokens=Tokens(path)) as api:
        value(api.post("/v1/sessions/chat/messages", json={"messages": [user("one"), assistant("two")]}, headers=ours), 201)
        view = "/v1/sessions/chat/page/overview"
        value(api.get(view, headers=ours))
        problem(api.get(view, headers=theirs), 404)
        problem(api.get(view), 401)
        files = [
            api.get(name)
            for name in ("/", "/sessions.js", "/sessions/chat/", "/sessions/chat/served.js", "/sessions/chat/page.css")
        ]
    assert {(200, POLICY)} == {(each.status_code, each.headers["content-security-policy"]) for each in files}


def looked_at(page: "Page", problems: list[str]) -> None:
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))


def read_list(page: "Page", figures: dict[str, Any]) -> None:
    """The row of a session has its figures; that of a session out of sight has none yet."""
    settle(page)
    cells, older = (page.get_by_role("row", name=name).get_by_role("cell") for name in ("chat/1", "older 0"))
    zone = f"green, {100 * figures['tokens'] / figures['budget']:.1f} %"
    assert [str(figures["said_tokens"]), "0", str(figures["cost"]), zone] == cells.all_inner_texts()[-4:]
    assert [""] * 4 == older.all_inner_texts()[-4:]


def change_by_hand(page: "Page") -> None:
    """Fold, keep a page, make a checkpoint, undo, and go back to it: each is shown before, and one is left as it is."""

    def do(name: str, told: str) -> None:
        page.get_by_role("button", name=name, exact=True).click()
        page.get_by_role("dialog").get_by_text(told).first.wait_for()
        page.get_by_role("button", name="Do it").click()
        settle(page)  # the page is loaded again

    page.get_by_role("tab", name="Change").click()
    page.get_by_label("Label").fill("before <b>all</b>")
    do("Make a checkpoint…", "Both windows are the same.")
    page.get_by_role("row", name="before <b>all</b>").wait_for()
    page.get_by_label("How far").select_option("all complete pages")
    assert ([".inside"], 1) == busy_after_click(page, "#fold-size + button", "dialog .parts")
    assert "fold of usr-1..3" in page.get_by_role("dialog").inner_text()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Undo the last fold…").click()
    page.get_by_role("dialog").get_by_text("This cannot be done: there is no fold to undo").wait_for()
    page.get_by_role("button", name="Leave it as it is").click()
    page.get_by_label("How far").select_option("all complete pages")
    do("Fold…", "fold of usr-1..3")
    page.get_by_role("tab", name="Pages").click()
    page.locator(".row").first.click()
    do("Pin it: usr-1", "usr-1 is pinned")
    do("Recall it: usr-1", "recall of usr-1")
    page.get_by_role("button", name="Let it fade: usr-1").wait_for()
    page.get_by_role("tab", name="Change").click()
    do("Go back to it: before <b>all</b>", "checkpoint cp-1 was restored")
    page.get_by_role("row", name="recovery").wait_for()


def miss(page: "Page", url: str, other: memci.Engine) -> None:
    """A session that is deleted meanwhile, and one that never was: both are told in words."""
    other.delete("chat/1")
    page.locator("#news").get_by_text("there is no session 'chat/1'").wait_for()
    page.goto(f"{url}/sessions/none/")
    settle(page)
    assert "there is no session 'none'" in page.locator("#about").inner_text()


@pytest.mark.timeout(300)
def test_a_browser_goes_from_the_list_to_a_session_and_sees_what_happens(tmp_path: Path) -> None:
    """It asks for a token once, opens a session, and shows what is said in it from then on, by itself until that was slow."""
    path = tmp_path / "tokens.yaml"
    token = new_token(path, "default", Scope.WRITE)
    authorization = {"Authorization": f"Bearer {token}"}
    asked, problems = list[str](), list[str]()

    def answer(dialog: "Dialog") -> None:
        asked.append(dialog.message)
        dialog.accept(token)

    def between(route: "Route") -> None:
        """Say something after the page was read, and before it hears of anything."""
        post(url, "chat%2F1/messages", {"messages": [user("clouds"), assistant("They pass.")]}, **authorization)
        route.continue_()

    store = f"file:{tmp_path}/chats"
    with running(Rules(tokens=Tokens(path)), store) as (url, _), launched() as browser, memci.Engine(store, CONFIG) as other:
        for number in range(30):
            post(url, f"older {number}/messages", {"messages": [user("harbours")]}, **authorization)
        for text in ("harbours", "<img src=x onerror=alert(1)>"):
            post(url, "chat%2F1/messages", {"messages": [user(text), assistant("It is so.")]}, **authorization)
        chat = f"{url}/v1/sessions/chat%2F1"
        tokens = httpx2.post(f"{chat}/window", headers=authorization, timeout=SECONDS).json()["tokens"]
        post(url, "chat%2F1/usage", {"prompt_tokens": tokens}, **authorization)
        page = new_page(browser)
        looked_at(page, problems)
        page.on("dialog", answer)
        page.goto(f"{url}/")
        read_list(page, httpx2.get(f"{chat}/stats", headers=authorization, timeout=SECONDS).json())
        page.get_by_role("link", name="chat/1").click()
        page.locator("#view-window .message").first.wait_for()
        page.locator("#about").get_by_text("2 turns").wait_for()
        with other.session("chat/1") as elsewhere:  # as another process does
            elsewhere.extend([user("tides"), assistant("They come.")])
        page.locator("#about").get_by_text("3 turns").wait_for()
        page.get_by_role("tab", name="Pages").click()
        post(url, "chat%2F1/messages", {"messages": [user("winds"), assistant("They blow.")]}, **authorization)
        press = "(button) => { button.click(); return document.querySelector('main').getAttribute('aria-busy'); }"
        assert "true" == page.get_by_role("button", name="Show it").evaluate(press)  # until the page is loaded again
        settle(page)
        assert "4 turns" in page.locator("#about").inner_text()
        change_by_hand(page)
        page.add_init_script("let time = 0; performance.now = () => (time += 4000);")  # everything takes four seconds
        page.route("**/notices*", between, times=1)
        page.goto(f"{url}/")
        page.get_by_role("link", name="chat/1").click()
        page.locator("#about").get_by_text("5 turns").wait_for()
        post(url, "chat%2F1/messages", {"messages": [user("rain"), assistant("It falls.")]}, **authorization)
        page.get_by_role("button", name="Show it").wait_for()
        miss(page, url, other)
    assert ["This server wants a token:"] == asked
    assert [] == [each for each in problems if not re.search("401|404|409|favicon", each)]
