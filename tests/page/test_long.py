"""The page of a session of 10,000 pages: what comes first comes at once, and no list is drawn whole."""

from pathlib import Path

import pytest

import memci
from tests.page.conftest import Look, once, written

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGES = 10_000
CONFIG = {"budget": {"window": 1_500, "reserve": 0}, "counter": "approximate", "durability": "flush"}


def write(path: Path) -> None:
    """Write the page of a session of 10,000 turns."""
    with memci.Engine("memory:", CONFIG) as engine, engine.session("long") as session:
        for first in range(1, PAGES + 1, 10):
            several = range(first, first + 10)
            asked = [
                {"role": "user", "content": f"What did part {number} of machine {number % 97} cost in March?"}
                for number in several
            ]
            told = [
                {"role": "assistant", "content": f"Part {number} cost {number * 7} euros, order NL-{number}."}
                for number in several
            ]
            session.extend([message for turn in zip(asked, told, strict=True) for message in turn])
            session.window()
        written(session, path)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That page, which takes half a minute."""
    return once(tmp_path_factory, "long.html", write)


@pytest.mark.timeout(300)
def test_the_first_view_comes_below_a_second(look: Look, long: Path) -> None:
    """The band over 10,000 calls and the window now are there below a second by the browser's clock."""
    times = []
    for _ in range(3):
        seen = look(long)
        times.append(seen.ready())
        assert "10,000" in seen.page.locator("#figures").inner_text()
    assert min(times) < 1_000, times


@pytest.mark.timeout(300)
def test_lists_draw_what_is_in_sight(look: Look, long: Path) -> None:
    """Of 10,000 rows some dozens are drawn, wherever the list is scrolled to, and the last one is reached by a key."""
    seen = look(long, "#view=pages")
    rows = seen.page.locator(".row")
    rows.first.wait_for()
    assert rows.count() < 60
    listed = seen.page.get_by_role("listbox")
    listed.focus()
    listed.press("End")
    last = listed.locator("[aria-selected=true]")
    assert "usr-10000" in last.inner_text()
    assert (str(PAGES), str(PAGES)) == (last.get_attribute("aria-setsize"), last.get_attribute("aria-posinset"))
    assert rows.count() < 60
    seen.page.locator(".detail .message").first.wait_for()
    assert "usr-10000/2" in seen.page.locator(".detail").inner_text()


@pytest.mark.timeout(300)
def test_what_is_left_out_is_said(look: Look, long: Path) -> None:
    """The file holds some of the windows and says so; presets are left out, and how to have them is said."""
    seen = look(long, "#view=cost")
    seen.page.get_by_text("memci html --preset NAME").wait_for()
    facts = seen.page.evaluate("JSON.parse(document.getElementById('overview').textContent)")
    assert 300 < len(facts["kept"]) <= 400
    assert PAGES + 1 == len(facts["calls"]["seq"])
    left_out = next(number for number in range(5_000, 9_999) if number not in set(facts["kept"]))
    seen = look(long, f"#view=window&call={left_out + 1}")
    assert "of 10,001 windows" in seen.page.locator(".notice").inner_text()


@pytest.mark.timeout(300)
def test_a_step_is_quick(look: Look, long: Path) -> None:
    """A step of the slider draws the band from a picture that is kept: it paints no bar again."""
    seen = look(long)
    painted = seen.page.evaluate(
        """() => {
          let bars = 0;
          const kept = OffscreenCanvasRenderingContext2D.prototype.fillRect;
          OffscreenCanvasRenderingContext2D.prototype.fillRect = function (...all) { bars += 1; return kept.apply(this, all); };
          for (let step = 0; step < 20; step += 1) document.getElementById("call-before").click();
          return bars;
        }"""
    )
    assert 0 == painted
