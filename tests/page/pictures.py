"""Pictures of the page for the documents: ``python -m tests.page.pictures`` makes them anew."""

import tempfile
from pathlib import Path

import memci
from memci.http.guard import Rules
from memci.page.document import document
from memci.quality.replay import read_conversation
from tests.http.test_notices import running
from tests.page.browser import launched, new_page, settle
from tests.page.sessions import EXAMPLES

DOCS = EXAMPLES.parent / "docs"

PICTURES = {
    "page.png": ("#view=window&call=50", False),
    "page-dark.png": ("#view=compare&call=50", True),
    "page-pages.png": ("#view=pages&call=64", False),
    "page-change.png": ("#view=change", False),
}
"""By file: the view, and whether it is dark. What can be changed is shown by a server, the others by a file."""

WIDE, HIGH = 1280, 860

RECALLED = {"usr-1": 50, "usr-30": 63}
"""Pages that are recalled as these turns begin."""


def picture_session(engine: memci.Engine) -> memci.Session:
    """Return the demonstration's support conversation, of which two pages were recalled and one was pinned."""
    session = engine.session("support")
    session.describe(title="Noordlicht Home, customer C-300915")
    said, _ = read_conversation([EXAMPLES / "support.json"])
    for each in said:
        if each.message["role"] == "assistant":
            session.window()
        session.append(each.message, at=each.at)
        for index, turn in RECALLED.items():
            if each.message["role"] == "user" and session.turn == turn:
                session.recall(index)
        if session.turn == 70 and each.message["role"] == "assistant":
            session.pin("usr-2")
    return session


def main() -> None:
    """Make them."""
    config = {"budget": {"window": 2_000, "reserve": 0}, "durability": "flush"}
    with tempfile.TemporaryDirectory() as name:
        path, store = Path(name) / "page.html", f"file:{name}/chats"
        with memci.Engine(store, config) as engine:
            path.write_text(document(picture_session(engine), presets=[]), encoding="utf-8")
        with running(Rules(), store, config) as (url, _), launched() as browser:
            for picture, (place, dark) in PICTURES.items():
                scheme = "dark" if dark else "light"
                page = new_page(browser, viewport={"width": WIDE, "height": HIGH}, color_scheme=scheme)
                page.goto(f"{url}/sessions/support/{place}" if "change" in place else f"{path.as_uri()}{place}")
                settle(page)
                if "pages" in place:
                    page.locator(".row").nth(2).click()
                if "change" in place:
                    page.get_by_label("How far").select_option("medium")
                    page.get_by_role("button", name="Fold…", exact=True).click()
                settle(page)
                page.screenshot(path=DOCS / picture)
                page.context.close()


if __name__ == "__main__":
    main()
