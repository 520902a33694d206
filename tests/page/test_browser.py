"""The page in a browser: each view of the demonstration conversation, by mouse and by keys."""

from pathlib import Path

import pytest

import memci
from memci.engine.session import Session
from tests.page.conftest import Look, Seen, written
from tests.page.sessions import eventful, replayed

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def support(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the demonstration's support conversation."""
    root = tmp_path_factory.mktemp("support")
    replayed(f"file:{root}/store", "support", 2_000)
    with memci.Engine(f"file:{root}/store", read_only=True) as engine, engine.session("support") as session:
        return written(session, root / "support.html", asked=["where is my espresso machine?"], presets=["truncate"])


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the demonstration's agent, with calls of tools."""
    root = tmp_path_factory.mktemp("agent")
    replayed(f"file:{root}/store", "agent", 3_000)
    with memci.Engine(f"file:{root}/store", read_only=True) as engine, engine.session("agent") as session:
        return written(session, root / "agent.html", presets=[])


@pytest.fixture(scope="module")
def trip() -> Session:
    """A session in which much happened."""
    return eventful()


@pytest.fixture(scope="module")
def trip_page(trip: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its page, with few windows."""
    return written(trip, tmp_path_factory.mktemp("trip") / "trip.html", most_windows=8, presets=[])


def texts(seen: Seen, place: str) -> list[str]:
    return seen.page.locator(place).all_inner_texts()


def test_the_first_view_tells_what_it_is_of(look: Look, support: Path) -> None:
    """The page names the session, counts its calls, and says what they sent and saved."""
    seen = look(support)
    assert "support · memci" == seen.page.title()
    figures = seen.page.locator("#figures").inner_text()
    assert "91" in figures
    assert "139,456" in figures
    assert "57.3 % less than everything" in figures
    assert "77.3 % less than a sliding window" in figures
    assert "11 folds" in seen.page.locator("#band").get_attribute("aria-label")  # type: ignore[operator]  # there is one


def test_a_window_is_shown_as_it_was_sent(look: Look, support: Path) -> None:
    """The window of a call has its messages in their order, each with its part, and says up to where a cache had it."""
    seen = look(support, "#view=window&call=57")
    parts = texts(seen, "#view-window .message .part")
    assert ["system part", "system part", "contents page", "working set"] == parts[:4]
    assert {"active pages"} == set(parts[4:-1])
    assert "open page" == parts[-1]
    assert 1 == seen.page.locator("#view-window .edge").count()
    cached = seen.page.locator("#view-window .message.cached").count()
    assert 0 < cached < len(parts)
    rows = dict(
        zip(texts(seen, "#view-window .parts tbody th"), texts(seen, "#view-window .parts tbody td:nth-child(2)"), strict=True)
    )
    assert ("529", "1,904") == (rows["contents page"], rows["window"])


def test_the_slider_goes_through_the_calls(look: Look, support: Path) -> None:
    """Keys on the slider go to other calls, whose window is shown and told to those who do not see it."""
    seen = look(support, "#call=57")
    seen.page.locator("#call").press("ArrowLeft")
    told = seen.page.locator("#moment").inner_text()
    assert told.startswith("call 56 of 91")
    assert told == seen.page.locator("#call").get_attribute("aria-valuetext")
    assert "polite" == seen.page.locator("#moment").get_attribute("aria-live")
    assert seen.page.url.endswith("#view=window&call=56")
    seen.page.locator("#call").press("End")
    assert seen.page.locator("#moment").inner_text().startswith("now")


def test_marks_are_gone_to(look: Look, support: Path) -> None:
    """The button for marks goes to the next fold, which is told with the cache miss that it made."""
    seen = look(support, "#call=1")
    seen.page.locator("#mark-after").click()
    assert seen.page.locator("#moment").inner_text().startswith("call 25 of 91")
    told = seen.page.locator("#happened").inner_text()
    assert "cache miss" in told
    assert "fold of usr-1..7, as the window was over its marks" in told


def test_pointing_at_the_band_goes_there(look: Look, support: Path) -> None:
    """A click on the band goes to the call below the pointer."""
    seen = look(support)
    box = seen.page.locator("#band").bounding_box()
    assert box is not None
    seen.page.mouse.click(box["x"] + 92 + (box["width"] - 100) / 2, box["y"] + 60)
    assert seen.page.locator("#moment").inner_text().startswith(("call 46 of", "call 47 of"))


def test_two_windows_are_compared(look: Look, support: Path) -> None:
    """After a fold it is shown which messages left, which came, and which lines of the contents page changed."""
    seen = look(support, "#view=compare&call=58")
    seen.page.get_by_label("Compare with call").fill("57")
    seen.page.get_by_label("Compare with call").press("Enter")
    seen.turn("Window")
    seen.page.locator("#mark-after").click()
    seen.turn("Compare")
    seen.page.wait_for_selector("#view-compare .lines .came-line")
    assert seen.page.locator("#view-compare .message.left").count() > 4
    assert seen.page.locator("#view-compare .message.came").count() > 0
    assert "messages left" in seen.page.locator("#view-compare [role=status]").inner_text()
    assert texts(seen, "#view-compare .parts tbody tr.sum td")[2].startswith("-")


def test_a_page_tells_all_that_is_known_of_it(look: Look, support: Path) -> None:
    """One click on a page shows why it is where it is, its line, what happened to it, and its messages."""
    seen = look(support, "#view=pages")
    seen.page.get_by_label("Filter").fill("usr-4")
    seen.page.locator(".row").first.click()
    detail = seen.page.locator(".detail")
    detail.locator(".message").first.wait_for()
    told = detail.inner_text()
    for words in ("It was never recalled.", "[usr-1..33] 33 pages", "Its numbers", "event 53", "usr-4/1", "usr-4/2"):
        assert words in told
    detail.get_by_role("button", name="event 53").click()
    assert seen.page.locator("#moment").inner_text().startswith("call 25 of 91")


def test_pages_are_a_tree(look: Look, support: Path) -> None:
    """As a tree, segments hold directories, and these pages; keys open and close them."""
    seen = look(support, "#view=pages")
    seen.page.get_by_role("button", name="As a tree").click()
    tree = seen.page.get_by_role("tree")
    tree.get_by_role("treeitem").first.wait_for()
    assert 2 == tree.get_by_role("treeitem", expanded=True).count()
    before = tree.get_by_role("treeitem").count()
    tree.focus()
    for _ in range(4):
        tree.press("ArrowDown")
    chosen = tree.locator("[aria-selected=true]")
    assert "usr-1..33" in chosen.inner_text()
    if chosen.get_attribute("aria-expanded") == "false":
        tree.press("ArrowRight")
    assert tree.get_by_role("treeitem").count() > before
    assert "3" == tree.get_by_role("treeitem").filter(has_text="usr-2 ").first.get_attribute("aria-level")


def test_a_hit_has_its_reason(look: Look, support: Path) -> None:
    """The hits of a search say because of which words, and why a page is none of them is said when asked."""
    seen = look(support, "#view=search")
    hits = seen.page.locator(".hit")
    hits.first.wait_for()
    assert "because of: " in hits.first.inner_text()
    seen.page.get_by_label("Why is a page not found?").fill("91")
    seen.page.get_by_role("button", name="Say why").click()
    assert (
        "stands in the window" in seen.page.locator(".answer").inner_text()
        or "holds none" in seen.page.locator(".answer").inner_text()
    )
    hits.first.get_by_role("button").click()
    seen.page.locator(".detail .message").first.wait_for()
    assert "true" == seen.page.get_by_role("tab", name="Pages").get_attribute("aria-selected")


def test_costs_stand_beside_other_ways(look: Look, support: Path) -> None:
    """What the calls cost stands beside everything and a sliding window, and presets beside each other."""
    seen = look(support, "#view=cost")
    seen.page.get_by_text("truncate").wait_for()
    told = seen.page.locator("#view-cost").inner_text()
    for words in ("139,456", "326,217", "these windows", "the last messages that fit", "now", "prefix reuse"):
        assert words in told


def test_calls_of_tools_are_shown(look: Look, agent: Path) -> None:
    """A call of a tool is a line with its arguments, and as JSON what was sent; its result follows."""
    seen = look(agent, "#view=window&call=20")
    assert any(text.startswith("→ ") for text in texts(seen, "#view-window .message .said"))
    details = seen.page.locator("#view-window .message details").first
    details.locator("summary").click()
    assert '"tool_calls"' in details.locator(".rest").inner_text()
    assert "tool" in texts(seen, "#view-window .message .role")


def test_a_window_that_the_file_does_not_hold_is_said(look: Look, trip_page: Path) -> None:
    """Where a window is left out, the page says so, how to see it, and goes to the nearest that it holds."""
    seen = look(trip_page)
    facts = seen.page.evaluate("JSON.parse(document.getElementById('overview').textContent)")
    left_out = min(set(range(40)) - set(facts["kept"]))
    seen.page.goto(f"{seen.url}#view=window&call={left_out + 1}")
    told = seen.page.locator(".notice").inner_text()
    assert "of 43 windows, and not of this one" in told
    assert "memci render --at" in told
    seen.page.locator(".notice button").click()
    seen.page.locator("#view-window .message").first.wait_for()


def test_recalls_and_going_back_are_told(look: Look, trip_page: Path) -> None:
    """A page that was recalled says so, and the marks name what happened."""
    seen = look(trip_page, "#view=pages")
    seen.page.get_by_label("Filter").fill("usr-3")
    seen.page.locator(".row").first.click()
    seen.page.get_by_text("recall of usr-3").wait_for()
    assert "1 recall," in seen.page.locator("#band").get_attribute("aria-label")  # type: ignore[operator]  # there is one


def test_all_is_reached_by_keys(look: Look, support: Path) -> None:
    """Tabs are gone through by arrows, and what has the focus is seen to have it."""
    seen = look(support)
    seen.page.get_by_role("tab", name="Window").focus()
    for name in ("Compare", "Pages", "Search", "Cost", "Window"):
        seen.page.keyboard.press("ArrowRight")
        assert "true" == seen.page.get_by_role("tab", name=name).get_attribute("aria-selected")
        assert name == seen.page.evaluate("document.activeElement.textContent")
        assert "solid" == seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")


@pytest.mark.parametrize("view", ["window", "compare", "pages", "search", "cost"])
def test_every_control_has_a_name(look: Look, support: Path, view: str) -> None:
    """Each control and each landmark of a view has a name for those who do not see it."""
    seen = look(support, f"#view={view}&call=60")
    seen.page.wait_for_timeout(200)
    nameless = seen.page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, canvas, [role], [tabindex='0']")]
        .filter((each) => each.checkVisibility() && !["presentation", "status"].includes(each.getAttribute("role")))
        .filter((each) => !(each.getAttribute("aria-label") || each.getAttribute("aria-labelledby") || each.labels?.length
          || each.textContent.trim()))
        .map((each) => each.outerHTML.slice(0, 100))"""
    )
    assert [] == nameless


@pytest.mark.parametrize("view", ["window", "compare", "pages", "search", "cost"])
@pytest.mark.parametrize("wide", [1280, 390])
def test_nothing_is_wider_than_the_screen(look: Look, support: Path, view: str, wide: int) -> None:
    """At 1280 pixels and on a phone no view has to be scrolled sideways."""
    seen = look(support, f"#view={view}&call=60", wide=wide)
    seen.page.wait_for_timeout(200)
    assert wide == seen.page.evaluate("document.documentElement.scrollWidth")


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out(look: Look, support: Path, dark: bool) -> None:  # noqa: FBT001 (a parameter of the test)
    """In light and in dark, text has a contrast of at least 4.5 to what it stands on."""
    seen = look(support, "#view=window&call=60", dark=dark)
    worst = seen.page.evaluate(
        """() => {
          const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
          const light = ([red, green, blue]) => [red, green, blue].map((each) => each / 255)
            .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4))
            .reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
          const ground = (each) => {
            for (; each; each = each.parentElement) {
              const colour = rgb(getComputedStyle(each).backgroundColor);
              if (colour.length < 4 || colour[3] === 1) return colour;
            }
            return [255, 255, 255];
          };
          const said = (each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
          const found = [...document.querySelectorAll("p, dt, dd, th, td, button, h1, h2, span, li")]
            .filter((each) => each.checkVisibility() && said(each))
            .map((each) => [light(rgb(getComputedStyle(each).color)), light(ground(each)), each.textContent.slice(0, 40)])
            .map(([one, other, text]) => [(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), text]);
          return found.sort((one, other) => one[0] - other[0])[0];
        }"""
    )
    assert worst[0] >= 4.5, worst
