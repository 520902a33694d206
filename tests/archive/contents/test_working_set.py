"""The working set: what is kept of notes, what is shown, and how it reads."""

import attrs

from memci.archive.contents.working_set import (
    HEADING,
    MOST_NAMES,
    MOST_RULES,
    Kind,
    Note,
    WorkingSet,
    as_values,
    from_values,
    render,
)


def count(text: str) -> int:
    return len(text.split())


def name(text: str, at: int, page: str = "usr-1", kind: Kind = Kind.NAME) -> Note:
    return Note(kind, text, page, at)


def shown(working: WorkingSet, limit: int = 100, *without: Kind) -> list[str]:
    return [note.text for note in working.chosen(limit, count, without)]


def test_what_was_touched_lately_and_often_comes_first() -> None:
    """A name counts for each time that it was touched, the less the longer ago; a file whatever the way to it is."""
    working = WorkingSet().noted(3, [name("a_a", 1), name("b_b", 2), name("b_b", 3)])
    assert ["b_b", "a_a"] == shown(working)
    later = working.noted(1000, [name("c_c", 1000)])
    assert ["c_c", "b_b", "a_a"] == shown(later)
    ways = ("/srv/x/f.py", "/srv/y/f.py", "y/f.py", "./f.py", "/srv/y/other_f.py")
    files = WorkingSet().noted(5, [name(way, at, kind=Kind.FILE) for at, way in enumerate(ways, start=1)])
    assert ["/srv/y/f.py", "/srv/y/other_f.py", "/srv/x/f.py"] == shown(files)


def test_files_are_shown_under_their_directories() -> None:
    """What many files share of their ways is said once, and each can be opened; a short directory, and one file alone, is not."""
    services = ["billing/models/invoice.py", "billing/tax.py", "mail.py"]
    ways = [
        "README.md",
        *(f"/srv/app/services/{way}" for way in services),
        "/srv/app/web/index.ts",
        "/etc/hosts",
        "src/a.py",
        "src/b.py",
        "src/c.py",
    ]
    working = WorkingSet().noted(9, [name(way, at, kind=Kind.FILE) for at, way in enumerate(ways, start=1)])
    assert [
        HEADING,
        "files: src/c.py, src/b.py, src/a.py, /etc/hosts, /srv/app/web/index.ts, README.md",
        "files under /srv/app/services/: mail.py, billing/tax.py, billing/models/invoice.py",
    ] == render(attrs.evolve(working, shown=working.chosen(400, count))).split("\n")


def test_kinds_that_are_left_out_make_room_for_others() -> None:
    """The newest names have the room that there is; what a newer command or list in view replaces is left out."""
    working = WorkingSet().noted(2, [name("a_a", 1), name("b_b", 2), Note(Kind.COMMAND, "make", "usr-1", 2)])
    assert ["b_b"] == shown(working, count(HEADING) + 2, Kind.COMMAND)
    assert ["make", "b_b", "a_a"] == shown(working)
    assert ["b_b", "a_a"] == shown(working, 100, Kind.COMMAND)


def test_the_last_command_and_list_replace_those_before() -> None:
    """One command is kept, and the items of one list; a list with nothing open shows none."""
    working = WorkingSet().noted(2, [Note(Kind.COMMAND, "ls", "usr-1", 1), Note(Kind.COMMAND, "make", "usr-1", 2)])
    assert ["make"] == shown(working)
    listed = WorkingSet().noted(1, [Note(Kind.ITEM, "mend (todo)", "usr-1", 1), Note(Kind.ITEM, "test (todo)", "usr-1", 1)])
    assert ["mend (todo)", "test (todo)"] == shown(listed)
    assert [] == shown(listed.noted(2, [Note(Kind.ITEM, "", "usr-2", 2)]))


def test_it_is_bounded() -> None:
    """Names are kept by how much they count, of instructions the newest, each once."""
    notes = [name(f"n_{place}", place) for place in range(2 * MOST_NAMES)]
    rules = [Note(Kind.RULE, f"always {place % 20}", "usr-1", place) for place in range(40)]
    working = WorkingSet().noted(2 * MOST_NAMES, [*notes, *rules])
    assert MOST_NAMES + MOST_RULES == len(working.notes)
    assert f"n_{2 * MOST_NAMES - 1}" in {note.text for note in working.notes}
    assert [f"always {place}" for place in range(12, 20)] == [note.text for note in working.notes if note.kind is Kind.RULE]


def test_pages_that_are_gone_leave_nothing() -> None:
    """What was noted from pages that are gone is neither kept nor shown; its size is no bound of nothing."""
    notes = (name("a_a", 1), name("b_b", 2, "usr-2"))
    left = WorkingSet(2, notes, notes, 20).without(lambda page: page == "usr-2")
    assert WorkingSet(2, notes[:1], notes[:1], 20) == left
    assert WorkingSet(2) == left.without(lambda page: page == "usr-1")


def test_it_reads_as_lines() -> None:
    """Each kind has its lines, none but the first begins with a bracket; nothing is shown of nothing."""
    notes = [
        name("src/a.py", 1, kind=Kind.FILE),
        name("…/lib/b.py", 1, kind=Kind.FILE),
        name("c.py", 1, kind=Kind.FILE),
        name("read_it", 1),
        Note(Kind.COMMAND, "make → ok", "usr-1", 1),
        Note(Kind.ITEM, "mend (todo)", "usr-1", 1),
        Note(Kind.RULE, "always answer in German", "usr-12", 1),
    ]
    assert [
        HEADING,
        "files: src/a.py, c.py",
        "files below …/: lib/b.py",
        "identifiers: read_it",
        "last command: make → ok",
        "open items:",
        "- mend (todo) (usr-1)",
        "the user said, to hold from then on:",
        '- "always answer in German" (usr-12)',
    ] == render(WorkingSet(shown=tuple(notes))).split("\n")
    assert not render(WorkingSet())


def test_notes_are_written_and_read() -> None:
    """Notes that were written as JSON values are equal to those that are read."""
    notes = (name("a_a", 1), Note(Kind.RULE, "always", "usr-2", 3, 0.5))
    assert notes == from_values(as_values(notes))
