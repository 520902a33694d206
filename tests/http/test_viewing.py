"""The page that a server gives: a list of sessions, and each one's page, which follows what happens."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fastapi.testclient import TestClient

from memci.http.guard import Rules
from memci.http.tokens import Scope, Tokens, new_token
from memci.page.live import POLICY
from tests.http.serving import assistant, problem, say, serving, user, value
from tests.http.test_notices import post, running
from tests.page.browser import launched

if TYPE_CHECKING:
    from playwright.sync_api import Dialog, Page, Route


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
    assert "none" not in api.get("/v1/sessions").text


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
        post(url, "chat%201/messages", {"messages": [user("clouds"), assistant("They pass.")]}, **authorization)
        route.continue_()

    with running(Rules(tokens=Tokens(path))) as (url, _), launched() as browser:
        for text in ("harbours", "<img src=x onerror=alert(1)>"):
            post(url, "chat%201/messages", {"messages": [user(text), assistant("It is so.")]}, **authorization)
        page = browser.new_page()
        looked_at(page, problems)
        page.on("dialog", answer)
        page.goto(f"{url}/")
        page.get_by_role("link", name="chat 1").click()
        page.locator("#view-window .message").first.wait_for()
        page.locator("#about").get_by_text("2 turns").wait_for()
        post(url, "chat%201/messages", {"messages": [user("tides"), assistant("They come.")]}, **authorization)
        page.locator("#about").get_by_text("3 turns").wait_for()
        page.get_by_role("tab", name="Pages").click()
        post(url, "chat%201/messages", {"messages": [user("winds"), assistant("They blow.")]}, **authorization)
        page.get_by_role("button", name="Show it").click()
        page.locator("#about").get_by_text("4 turns").wait_for()
        page.add_init_script("let time = 0; performance.now = () => (time += 4000);")  # everything takes four seconds
        page.route("**/notices*", between, times=1)
        page.goto(f"{url}/")
        page.get_by_role("link", name="chat 1").click()
        page.locator("#about").get_by_text("5 turns").wait_for()
        post(url, "chat%201/messages", {"messages": [user("rain"), assistant("It falls.")]}, **authorization)
        page.get_by_role("button", name="Show it").wait_for()
    assert ["This server wants a token:"] == asked
    assert [] == [each for each in problems if "401" not in each and "favicon" not in each and "404" not in each]
