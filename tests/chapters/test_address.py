"""What indexes of pages and ranges say of each other."""

from memci.chapters.address import among, ends, runs


def test_neighbours_become_ranges() -> None:
    """Pages and ranges that follow each other, or overlap, are one range; others stay apart."""
    assert ["usr-1..4", "usr-6"] == runs(["usr-1", "usr-2", "usr-3..4", "usr-6"])
    assert ["usr-1..9"] == runs(["usr-1..9", "usr-3", "usr-4..5"])
    assert [] == runs([])


def test_a_page_is_among_ranges_of_its_segment() -> None:
    """It is one of them, or between the ends of one."""
    assert among("usr-3", ["usr-1..4"])
    assert among("usr-6", ["usr-1..4", "usr-6"])
    assert not among("usr-5", ["usr-1..4", "usr-6"])
    assert not among("slots", ["usr-1..4", "usr-6"])
    assert not among("own-3", ["usr-1..4"])


def test_ends_are_the_last_pages() -> None:
    """Of a page it is that page, of a range its last."""
    assert ["usr-4", "usr-6"] == ends(["usr-1..4", "usr-6"])
