"""The page in a browser: each view of the demonstration conversation, by mouse and by keys."""

from pathlib import Path
from typing import Any

import pytest

import memci
from tests.page.browser import busy_after_click
from tests.page.conftest import Look, Seen, once, written
from tests.page.sessions import eventful, replayed

pytestmark = pytest.mark.browser


def write_replayed(path: Path, name: str, budget: int, **more: Any) -> None:  # noqa: ANN401 (as document takes them)
    """Replay a conversation of examples/ into a store next to *path*, and write the page of its session."""
    store = f"file:{path.with_suffix('')}"
    replayed(store, name, budget)
    with memci.Engine(store, read_only=True) as engine, engine.session(name) as session:
        written(session, path, **more)


@pytest.fixture(scope="module")
def support(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the demonstration's support conversation."""
    more = {"asked": ["where is my espresso machine?"], "presets": ["truncate"]}
    return once(tmp_path_factory, "support.html", lambda path: write_replayed(path, "support", 2_000, **more))


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the demonstration's agent, with calls of tools."""
    return once(tmp_path_factory, "agent.html", lambda path: write_replayed(path, "agent", 3_000, presets=[]))


@pytest.fixture(scope="module")
def trip_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a session with folds, a recall and a rewind. It holds eight windows."""
    return once(tmp_path_factory, "trip.html", lambda path: written(eventful(), path, most_windows=8, presets=[]))


def moment(seen: Seen) -> str:
    """Return which call the page shows once everything is drawn."""
    return seen.settled().locator("#moment").inner_text()


def test_the_first_view_tells_what_it_is_of(look: Look, support: Path) -> None:
    """The page names the session, counts its calls, and says what they sent and saved."""
    seen = look(support)
    assert "support · memci" == seen.page.title()
    figures = seen.page.locator("#figures").inner_text()
    assert "91" in figures
    assert "141,279" in figures
    assert "56.7 % less than everything" in figures
    assert "76.4 % less than a sliding window" in figures
    assert "11 folds" in seen.page.locator("#band").get_attribute("aria-label")  # type: ignore[operator]  # there is one


def test_a_window_is_shown_as_it_was_sent(look: Look, support: Path) -> None:
    """The window of a call has its messages in their order, each with its part, and says up to where a cache had it."""
    seen = look(support, "#view=window&call=57")
    parts = seen.texts("#view-window .message .part")
    assert ["system part", "contents page", "working set"] == parts[:3]
    assert {"active pages"} == set(parts[4:-1])
    assert "open page" == parts[-1]
    assert 1 == seen.page.locator("#view-window .edge").count()
    cached = seen.page.locator("#view-window .message.cached").count()
    assert 0 < cached < len(parts)
    names, tokens = (seen.texts(f"#view-window .parts tbody {cell}") for cell in ("th", "td:nth-child(2)"))
    rows = dict(zip(names, tokens, strict=True))
    assert ("492", "1,519") == (rows["contents page"], rows["window"])


def test_the_slider_goes_through_the_calls(look: Look, support: Path) -> None:
    """Keys on the slider go to other calls, whose window is shown and told to those who do not see it."""
    seen = look(support, "#call=57")
    seen.page.locator("#call").press("ArrowLeft")
    told = moment(seen)
    assert told.startswith("call 56 of 91")
    assert told == seen.page.locator("#call").get_attribute("aria-valuetext")
    assert "polite" == seen.page.locator("#moment").get_attribute("aria-live")
    assert seen.page.url.endswith("#view=window&call=56")
    seen.page.locator("#call").press("End")
    assert moment(seen).startswith("now")


def test_marks_are_gone_to(look: Look, support: Path) -> None:
    """The button for marks goes to the next fold, which is told with the cache miss that it made."""
    seen = look(support, "#call=1")
    seen.page.locator("#mark-after").click()
    assert moment(seen).startswith("call 25 of 91")
    told = seen.page.locator("#happened").inner_text()
    assert "cache miss" in told
    assert "fold of usr-1..7, as the window was over its marks" in told


def test_pointing_at_the_band_goes_there(look: Look, support: Path) -> None:
    """A click on the band goes to the call below the pointer."""
    seen = look(support)
    box = seen.page.locator("#band").bounding_box()
    assert box is not None
    seen.page.mouse.click(box["x"] + 92 + (box["width"] - 100) / 2, box["y"] + 60)
    assert moment(seen).startswith(("call 46 of", "call 47 of"))


def test_two_windows_are_compared(look: Look, support: Path) -> None:
    """After a fold it is shown which messages left, which came, and which lines of the contents page changed."""
    seen = look(support, "#view=compare&call=58")
    seen.page.get_by_label("Compare with call").fill("57")
    seen.page.get_by_label("Compare with call").press("Enter")
    seen.turn("Window")
    seen.page.locator("#mark-after").click()
    seen.turn("Compare")
    assert seen.page.locator("#view-compare .lines .came-line").count() > 0
    assert seen.page.locator("#view-compare .message.left").count() > 4
    assert seen.page.locator("#view-compare .message.came").count() > 0
    assert "messages left" in seen.page.locator("#view-compare [role=status]").inner_text()
    assert seen.texts("#view-compare .parts tbody tr.sum td")[2].startswith("-")


def test_a_page_tells_all_that_is_known_of_it(look: Look, support: Path) -> None:
    """One click on a page shows why it is where it is, its line, what happened to it, and its messages."""
    seen = look(support, "#view=pages")
    seen.page.get_by_label("Filter").fill("usr-4")
    seen.page.locator(".row").first.click()
    detail = seen.settled().locator(".detail")
    told = detail.inner_text()
    for words in ("It was never recalled.", "[usr-1..33] 33 pages", "Its numbers", "event 54", "usr-4/1", "usr-4/2"):
        assert words in told
    detail.get_by_role("button", name="event 54").click()
    assert moment(seen).startswith("call 25 of 91")


def test_pages_are_a_tree(look: Look, support: Path) -> None:
    """As a tree, segments hold directories, and these pages; keys open and close them."""
    seen = look(support, "#view=pages")
    seen.page.get_by_role("button", name="As a tree").click()
    tree = seen.settled().get_by_role("tree")
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
    assert "because of: " in hits.first.inner_text()
    seen.page.get_by_label("Why is a page not found?").fill("91")
    seen.page.get_by_role("button", name="Say why").click()
    answer = seen.settled().locator(".answer").inner_text()
    assert "stands in the window" in answer or "holds none" in answer
    hits.first.get_by_role("button").click()
    assert seen.settled().locator(".detail .message").count() > 0
    assert "true" == seen.page.get_by_role("tab", name="Pages").get_attribute("aria-selected")


def test_costs_stand_beside_other_ways(look: Look, support: Path) -> None:
    """What the calls cost stands beside everything and a sliding window, and presets beside each other."""
    seen = look(support, "#view=cost")
    told = seen.page.locator("#view-cost").inner_text()
    for words in ("truncate", "141,279", "326,217", "these windows", "the last messages that fit", "now", "prefix reuse"):
        assert words in told


def test_calls_of_tools_are_shown(look: Look, agent: Path) -> None:
    """A call of a tool is a line with its arguments, and as JSON what was sent; its result follows."""
    seen = look(agent, "#view=window&call=20")
    assert any(text.startswith("→ ") for text in seen.texts("#view-window .message .said"))
    details = seen.page.locator("#view-window .message details").first
    details.locator("summary").click()
    assert '"tool_calls"' in details.locator(".rest").inner_text()
    assert "tool" in seen.texts("#view-window .message .role")


def test_a_window_that_the_file_does_not_hold_is_said(look: Look, trip_page: Path) -> None:
    """Where a window is left out, the page says so, how to see it, and goes to the nearest that it holds."""
    seen = look(trip_page)
    facts = seen.page.evaluate("JSON.parse(document.getElementById('overview').textContent)")
    left_out = min(set(range(40)) - set(facts["kept"]))
    seen.go(f"#view=window&call={left_out + 1}")
    told = seen.page.locator(".notice").inner_text()
    assert "of 48 windows, and not of this one" in told
    assert "memci render --at" in told
    seen.page.locator(".notice button").click()
    assert seen.settled().locator("#view-window .message").count() > 0


def test_recalls_and_going_back_are_told(look: Look, trip_page: Path) -> None:
    """A page that was recalled says so, and the marks name what happened."""
    seen = look(trip_page, "#view=pages")
    seen.page.get_by_label("Filter").fill("usr-3")
    seen.page.locator(".row").first.click()
    assert "recall of usr-3" in seen.settled().locator(".detail").inner_text()
    assert "1 recall," in seen.page.locator("#band").get_attribute("aria-label")  # type: ignore[operator]  # there is one


def test_all_is_reached_by_keys(look: Look, support: Path) -> None:
    """Tabs are gone through by arrows, and what has the focus is seen to have it."""
    seen = look(support)
    seen.page.get_by_role("tab", name="Window").focus()
    for name in ("Compare", "Pages", "Search", "Cost", "Window"):
        seen.page.keyboard.press("ArrowRight")
        seen.settled()
        assert "true" == seen.page.get_by_role("tab", name=name).get_attribute("aria-selected")
        assert name == seen.page.evaluate("document.activeElement.textContent")
        assert "solid" == seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")


@pytest.mark.parametrize(
    ("view", "button", "result"),
    [
        ("cost", "#tab-window", "#view-window .message"),
        ("cost", "#tab-compare", "#view-compare .message"),
        ("cost", "#tab-search", "#view-search .hit"),
        ("window", "#tab-cost", "#view-cost .scroll + .scroll"),
        ("pages", ".row", ".detail .message"),
        ("pages", "[aria-pressed]", ".holder [role=treeitem]"),
    ],
)
def test_what_is_drawn_later_is_busy(look: Look, support: Path, view: str, button: str, result: str) -> None:
    """From the click until the result is drawn, its place alone is marked as busy for assistive technology."""
    seen = look(support, f"#view={view}&call=58")
    busy, drawn = busy_after_click(seen.page, button, result)
    assert [result.partition(" ")[0]] == busy
    assert drawn > 0
    seen.settled()


def test_the_latest_shape_is_shown(look: Look, support: Path) -> None:
    """Pages that are asked for as a tree, and as a timeline before that is loaded, are a timeline."""
    seen = look(support, "#view=pages")
    seen.page.evaluate("() => { for (let press = 0; press < 2; press += 1) document.querySelector('[aria-pressed]').click(); }")
    assert 1 == seen.settled().get_by_role("listbox").count()
    assert 0 == seen.page.get_by_role("tree").count()


@pytest.mark.parametrize("view", ["window", "compare", "pages", "search", "cost"])
def test_every_control_has_a_name(look: Look, support: Path, view: str) -> None:
    """Each control and each landmark of a view has a name for those who do not see it."""
    seen = look(support, f"#view={view}&call=60")
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
