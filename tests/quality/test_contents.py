"""What stands in a rendered contents page."""

from memci.engine.settings.config import Budget, Config
from memci.quality.catalogue import memci_spec
from memci.quality.scoring.contents import ShownContents
from tests.quality.small import assistant, conversation, user

SHOWN = """[usr-0] Contents of earlier pages, oldest first.
[usr-1..16] 3 to 9 May 2023 · cats
12 March invoices
15
[usr-17] Export of March invoices · 6 entries · 1.9k tokens
  user: how do I export them?
  assistant: use Settings
usr-18..20: not listed
  and so on
"""


def test_rows_are_read_by_their_forms() -> None:
    """A row of a directory, and an entry with its indented lines, stand for a page; notes and headings for none by itself."""
    lines = {
        "usr-12": "March invoices",
        "usr-15": "",
        "usr-17": "Export of March invoices · 6 entries · 1.9k tokens\nuser: how do I export them?\nassistant: use Settings",
    }
    assert lines == ShownContents([SHOWN]).lines


def test_a_message_without_the_heading_is_no_contents_page() -> None:
    """A recalled page, or what a user wrote, is not read as rows."""
    assert {} == ShownContents(["[recalled usr-17]\n[usr-17] Export", "[usr-12] Contents of my bag\n[usr-12] a pen"]).lines


def test_what_memci_renders_is_read() -> None:
    """Each page that left the window, and that its contents page lists, has a line with words of it."""
    with memci_spec(Config(budget=Budget(window=9, reserve=0))).open(900, conversation()) as engine:
        for number in range(40):
            engine.add(user(f"Please weigh parcel number {number} for the customer in Lisbon, it goes by ship."))
            engine.window()
            engine.add(assistant(f"Parcel {number} weighs {number + 3} kilograms."))
        texts = [value["content"] for value in engine.window()]
        left = {page.page for page in engine.pages() if not page.verbatim}
    lines = ShownContents(texts).lines
    assert lines
    assert lines.keys() <= left
    assert all(lines.values())
