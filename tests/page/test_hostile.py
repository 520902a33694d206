"""The page of a conversation that is made to attack it: markup, handlers, directions of writing, words without end."""

import json
from pathlib import Path
from typing import Any

import pytest

import memci
from tests.page.conftest import Look, Seen, once, written
from tests.page.sessions import SMALL

pytestmark = pytest.mark.browser

ATTACKS = (
    "</script><script>window.hacked = 1; alert(1)</script>",
    '<img src="http://attacker.example/x.png" onerror="window.hacked = 1">',
    "<svg onload=alert(1)><style>@import 'http://attacker.example/x.css'</style>",
    '"><iframe src="javascript:alert(1)"></iframe><base href="http://attacker.example/">',
    "<link rel=prefetch href=http://attacker.example/><meta http-equiv=refresh content='0;url=http://attacker.example/'>",
    "![pixel](http://attacker.example/pixel.png) [link](javascript:alert(1)) http://attacker.example/",
    "data:text/html,<script>alert(1)</script>",
    "\u202egnp.exe\u202c \u2066isolated\u2069 \u200f\u05d0\u05d1\u05d2 \u0645\u0631\u062d\u0628\u0627",
    "NUL \x00 BEL \x07 ESC \x1b[31m red \x9b DEL \x7f line \u2028 separator",
    "W" * 20_000,
    "${alert(1)} {{constructor.constructor('alert(1)')()}} <!-- ]]> --> &lt;b&gt; &amp;",
    "Guten Tag, \u00e4\u00f6\u00fc\u00df; \u4f60\u597d\uff0c\u4e16\u754c\u3002\u8bf7\u95ee\u8ba2\u5355\u5728\u54ea\u91cc\uff1f",
)


def write(path: Path) -> None:
    """Write the page of a session in which every name and every text is an attack."""
    with memci.Engine("memory:", {**SMALL, "budget": {"window": 1_500, "reserve": 0}, "rules": {"max_share": 0.3}}) as engine:
        session = engine.session(f"session {ATTACKS[0][:40]}")
        session.append({"role": "system", "content": "\n".join(ATTACKS[:4])})
        session.describe(title=ATTACKS[0])
        picture: dict[str, Any] = {"type": "image_url", "image_url": {"url": "http://attacker.example/p.png"}}
        for number, attack in enumerate(ATTACKS * 3):
            session.append({"role": "user", "content": attack, "name": "user"})
            session.window()
            call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": json.dumps({"q": attack})}}
            session.append({"role": "assistant", "content": None, "tool_calls": [call], "x-note": attack})
            session.append({"role": "tool", "tool_call_id": f"c{number}", "content": attack})
            session.window()
            session.append({"role": "assistant", "content": attack})
        session.append({"role": "user", "content": [{"type": "text", "text": ATTACKS[1]}, picture]})
        session.add_rule(ATTACKS[1])
        session.remove_rule(session.add_rule(ATTACKS[3]).address)
        session.slots["<b>slot</b>"] = ATTACKS[0]
        session.create_detail_page(ATTACKS[2][:60], ATTACKS[5], ATTACKS[0])
        session.recall(session.pages("archived")[0].index if session.pages("archived") else session.pages("hidden")[0].index)
        session.window(extra={"<i>extra</i>": ATTACKS[1]})
        session.append({"role": "assistant", "content": ATTACKS[0]})
        written(session, path, asked=ATTACKS, presets=["truncate"])


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a session in which every name and every text is an attack."""
    return once(tmp_path_factory, "hostile.html", write)


def unharmed(seen: Seen) -> None:
    """Assert that nothing of the conversation became an element, an address, or code that ran, once everything is drawn."""
    harm = seen.settled().evaluate(
        """() => {
          const kinds = "img, iframe, svg, object, embed, base, link, video, audio, a[href^='http'], a[href^='java']";
          const attributes = [...document.querySelectorAll("*")].flatMap((each) => [...each.attributes]);
          const handlers = attributes.map((each) => each.name).filter((name) => /^on/i.test(name));
          return [window.hacked === undefined, document.querySelectorAll(kinds).length, handlers];
        }"""
    )
    assert [True, 0, []] == harm


@pytest.mark.parametrize("view", ["window", "compare", "pages", "search", "cost"])
def test_no_view_runs_what_was_said(look: Look, attacked: Path, view: str) -> None:
    """In each view, at several calls, what was said stays text: no element, no handler, no request."""
    seen = look(attacked, f"#view={view}&call=1")
    unharmed(seen)
    for call in (30, 73):
        seen.go(f"#view={view}&call={call}")
        unharmed(seen)


def test_every_page_is_opened_unharmed(look: Look, attacked: Path) -> None:
    """Each page of the conversation can be opened, whole, and stays text."""
    seen = look(attacked, "#view=pages")
    total = int(seen.page.locator(".row").first.get_attribute("aria-setsize") or 0)
    assert total > len(ATTACKS)
    seen.page.get_by_role("listbox").focus()
    for _ in range(total):
        seen.page.keyboard.press("ArrowDown")
        remaining, width = seen.settled().evaluate(
            """() => {
              const detail = document.querySelector(".detail");
              for (const each of detail.querySelectorAll("details")) each.open = true;
              for (const each of detail.querySelectorAll(".more")) each.click();
              return [detail.querySelectorAll(".more").length, document.documentElement.scrollWidth];
            }"""
        )
        assert (0, 1280) == (remaining, width)
        unharmed(seen)


def test_rules_are_text(look: Look, attacked: Path) -> None:
    """A rule that is markup is shown beside the window as it was written, and so is one that is over."""
    seen = look(attacked)
    seen.page.locator(".session-rules summary").click()
    assert {ATTACKS[1], ATTACKS[3]} <= set(seen.texts(".session-rules .rule"))
    unharmed(seen)


def test_all_of_a_search_is_text(look: Look, attacked: Path) -> None:
    """Searches for attacks, and what they find, stay text; so does a page that is asked after."""
    seen = look(attacked, "#view=search")
    for place in range(len(ATTACKS)):
        seen.page.locator("#query").select_option(index=place)
        unharmed(seen)
    seen.page.get_by_label("Why is a page not found?").fill("<img src=x onerror=alert(1)>")
    seen.page.get_by_role("button", name="Say why").click()
    assert "There is no page <img" in seen.settled().locator(".answer").inner_text()
    unharmed(seen)


def test_what_controls_the_line_is_written_out(look: Look, attacked: Path) -> None:
    """Characters that turn the direction of a line, or are none that can be seen, are written out."""
    seen = look(attacked, "#view=window&call=17")
    text = seen.page.locator("body").inner_text()
    assert not set("\u202e\u202c\u2066\u2069\x00\x07\x1b\x9b\x7f\u2028") & set(text)
    seen = look(attacked, "#view=pages")
    seen.page.get_by_label("Filter").fill("note-1")
    seen.page.locator(".row").first.click()
    unharmed(seen)
    assert "note-1/1" in seen.texts(".detail .part")
    seen.page.get_by_label("Filter").fill("usr-8")
    seen.page.locator(".row").first.click()
    assert "usr-8/1" in seen.texts(".detail .part")
    assert "\\u202egnp.exe" in seen.page.locator(".detail .said").first.inner_text()


def test_each_text_has_its_own_direction(look: Look, attacked: Path) -> None:
    """Where the words of a message are of a script that is written from right to left, so is the message."""
    seen = look(attacked, "#view=window&call=73")
    assert {"auto"} == set(seen.page.locator(".said").evaluate_all("(all) => all.map((each) => each.dir)"))
