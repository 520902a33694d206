"""Tests of the directory that rows show paths below."""

import attrs
import pytest

from memci.archive.contents.base_path import NO_BASE, Base, find_base, without_unused
from memci.archive.contents.contents_page import Directory

APP = "/srv/app/backend/services/"


def directory(*words: tuple[int, str]) -> Directory:
    spans = tuple((number, text, 1.0, " ") for number, text in words)
    return Directory(index="usr-1..9", spans=spans, covers=((1, 9),), pages=9, archived_turn=9, base=find_base(spans))


def test_rows_show_paths_below_a_directory_that_the_heading_says() -> None:
    """Files of one directory are shown without it, and a reader can put the whole path together."""
    shown = directory((1, f"Edit {APP}billing/invoice.py: total → amount"), (2, f"Read {APP}users.py"), (3, "see /etc/hosts"))
    assert (
        f"[usr-1..9] 9 pages · …/ is {APP}\n1 Edit …/billing/invoice.py: total → amount\n2 Read …/users.py\n3 see /etc/hosts"
    ) == shown.render()
    assert shown == Directory.from_mapping(shown.to_mapping())
    assert shown.render() == Directory.from_mapping(shown.to_mapping()).render()


def test_paths_of_windows_keep_their_separator() -> None:
    """A directory of Windows is one, too."""
    shown = directory((1, r"Edit C:\work\shop\src\main.py"), (2, r"Edit C:\work\shop\src\cart.py"))
    assert "[usr-1..9] 9 pages · …\\ is C:\\work\\shop\\src\\\n1 Edit …\\main.py\n2 Edit …\\cart.py" == shown.render()


@pytest.mark.parametrize(
    "words",
    [
        [(1, f"{APP}a.py"), (1, f"{APP}b.py")],  # one page
        [(1, "/a/b.py"), (2, "/a/c.py")],  # saves nothing
        [(1, f"{APP}a.py"), (2, f"{APP}b.py"), (3, "see …/c.py")],  # its mark is there already
        [(1, "https://example.org/srv/app/backend/a"), (2, "https://example.org/srv/app/backend/b")],
        [(1, "1/2/3/4/5/6/7/8/9/10/11/12"), (2, "1/2/3/4/5/6/7/8/9/10/11/13")],
    ],
)
def test_other_rows_stay_as_they_are(words: list[tuple[int, str]]) -> None:
    """Nothing is shortened where that would be ambiguous, longer, or of an address."""
    assert NO_BASE == find_base(words)


def test_only_whole_beginnings_of_paths_are_shortened() -> None:
    """What only looks like the directory, within another path, stays."""
    base = Base("/srv/app/", (1, 2))
    assert "…/a.py /old/srv/app/a.py ../srv/app/a.py" == base.shorten("/srv/app/a.py /old/srv/app/a.py ../srv/app/a.py")


def test_a_directory_without_such_paths_says_no_base() -> None:
    """Once no row has a path below it, the heading says no directory."""
    whole = directory((1, f"Read {APP}a.py"), (2, f"Read {APP}b.py"), (3, "lunch"))
    left = attrs.evolve(whole, spans=whole.spans[2:])
    assert "[usr-1..9] 9 pages\n3 lunch" == left.render()
    lines = [*whole.render().split("\n"), "[usr-10] Lunch · 1 entry"]
    assert lines == without_unused(lines)
    assert ["[usr-1..9] 9 pages", "3 lunch"] == without_unused([lines[0], lines[3]])
