"""The page tree as the command draws it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memci
from memci.archive.catalogue.page_facts import PageFacts
from memci.cli.exit_code import ExitCode
from tests.cli.stored import CONFIG, Run, chat, store_chat


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a store with a session of 40 turns, two directories in each other, a segment, and a recalled page."""
    store = store_chat(tmp_path_factory.mktemp("store"), "boiler", chat(40))
    with memci.Engine(store, CONFIG) as engine, engine.session("boiler") as session:
        outer = session.create_contents_page("Gaskets", "What they cost", children=["usr-3", "usr-4"])
        session.create_contents_page("Thick [bold]ones[/bold]", parent=outer, children=["usr-34"])
        session.create_detail_page("Tax", "It is included", "All prices include taxes.", parent=outer)
        session.add_segment("docs", "manuals", "read_write", 400)
        session.recall("usr-9")
        session.pin("usr-7")
        session.keep("usr-39")
    return store


def drawn(run: Run, store: str, *arguments: object) -> list[str]:
    """Return the lines of the tree, with the sizes of pages left out, which are the counter's."""
    ran = run("tree", *arguments, "--store", store)
    assert (ExitCode.OK, "") == (ran.code, ran.err)
    return [re.sub(r"[0-9,]+ tokens(?! at most)", "N tokens", line) for line in ran.out.splitlines()]


def walked(value: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield all that stands in a document of the tree."""
    for each in value:
        yield each
        yield from walked(each.get("children", []))


def test_the_tree_is_drawn(run: Run, store: str) -> None:
    """Below each segment stands what its root lists, in that order, and below directories and ranges what these list."""
    lines = drawn(run, store, "--limit", 4)
    assert lines[:8] == [
        "sys-0 · segment, read_only for the model",
        "└─ sys-1 · active · N tokens",
        "usr-0 · segment, read_only for the model",
        "├─ usr-41 · archived · directory, 4 entries · Gaskets",
        "│  ├─ usr-3 · hidden · N tokens · boiler cost, with a gasket of 3 mm?",
        "│  ├─ usr-4 · hidden · N tokens · boiler cost, with a gasket of 4 mm?",
        "│  ├─ usr-42 · hidden · directory, 1 entry · Thick [bold]ones[/bold]",
        "│  └─ note-1 · hidden · N tokens · Tax",
    ]
    added = "docs-0 · segment, read_write for the model · manuals · 400 tokens at most"
    assert ["└─ usr-40 · open · N tokens", added] == lines[-2:]
    assert any(line.startswith("├─ usr-1..16 · archived · N tokens · ") for line in lines)
    assert "│  ├─ … 9 more: --limit draws more of them" in lines


def test_depth(run: Run, store: str) -> None:
    """--depth says how many levels are drawn."""
    assert all(line[0] in "├└" for line in drawn(run, store, "--depth", 1) if "segment" not in line)
    deep = "└─ usr-34 · hidden · N tokens · boiler cost, with a gasket of 34 mm?"
    assert not any(line.endswith(deep) for line in drawn(run, store))
    assert any(line.endswith(f"  {deep}") for line in drawn(run, store, "--depth", 3))


def test_limit(run: Run, store: str) -> None:
    """--limit bounds the lines of each directory: the first and the last that it lists, and how many more there are."""
    lines = drawn(run, store, "usr-1..16", "--limit", 3)
    assert ["├─ usr-1", "├─ usr-2", "├─ … 10 more: --limit draws more of them", "└─ usr-16"] == [
        line.partition(" · ")[0] for line in lines[1:]
    ]
    found = run("tree", "usr-1..16", "--limit", 3, "--store", store, "--json").json()
    listed = run("tree", "usr-1..16", "--limit", 99, "--store", store, "--json").json()
    assert len(listed[0]["children"]) == 3 + found[0]["left_out"]


def test_where_it_begins(run: Run, store: str) -> None:
    """A directory, a range, a root or a page is where it begins, by index or by number."""
    for index in ("41", "usr-41"):
        assert "usr-41 · archived · directory, 4 entries · Gaskets" == drawn(run, store, index)[0]
    assert ["usr-40 · open · N tokens"] == drawn(run, store, "40")
    assert 1 == len(drawn(run, store, "docs-0"))
    for index in ("usr-99", "note-9", "none-0"):
        assert ExitCode.NOT_FOUND == run("tree", index, "--store", store).code
    assert ExitCode.USAGE == run("tree", "nonsense", "--store", store).code


def test_recalls_and_pins_are_told(run: Run, store: str) -> None:
    """A page that came back says how often, and one that is never evicted, or that folds pass by, says so."""
    lines = drawn(run, store, "--limit", 99)
    assert any(re.search(r"usr-9 · attached · N tokens · recalled 1× · ", line) for line in lines)
    assert any(line.endswith("usr-39 · active · N tokens · kept") for line in lines)
    assert any(re.search(r"usr-7 · archived · N tokens · pinned · ", line) for line in lines)


def test_document(run: Run, store: str) -> None:
    """The document has the facts of each page where it is listed, once, and the segments' settings."""
    found = run("tree", "--depth", 9, "--limit", 999, "--store", store, "--json").json()
    assert ["sys-0", "usr-0", "docs-0"] == [each["index"] for each in found]
    assert {"name": "docs", "type": "manuals", "permission": "read_write", "capacity_tokens": 400} == found[2]["segment"]
    everything = list(walked(found))
    indexes = [each["index"] for each in everything]
    assert len(indexes) == len(set(indexes))
    with memci.Engine(store, CONFIG, read_only=True) as engine, engine.session("boiler") as session:
        pages = {facts.index: facts for facts in session.pages()}
        assert pages.keys() <= set(indexes)
        for each in everything:
            facts = PageFacts(**{name: each[name] for name in each if name not in ("segment", "children", "left_out")})
            assert facts == session.get_page(each["index"])
            assert [child["index"] for child in each.get("children", [])] == [
                child.index for child in session.get_children(each["index"])
            ]


def test_a_directory_is_shown_as_a_list(run: Run, store: str) -> None:
    """``memci show`` gives the list of what a directory holds, as it does of a range."""
    lines = run("show", "usr-42", "--store", store).out.splitlines()
    assert ["page", "usr-34"] == [line.split()[0] for line in lines]
    assert ["usr-34"] == [page["index"] for page in run("show", "42", "--store", store, "--json").json()["pages"]]


def test_what_is_evicted_stands_nowhere(run: Run, tmp_path: Path) -> None:
    """An evicted page is not in the tree."""
    store = store_chat(tmp_path, "boiler", chat(40))
    run("evict", "usr-5", "--store", store)
    found = run("tree", "--depth", 9, "--limit", 999, "--store", store, "--json").json()
    assert {"usr-4", "usr-6"} == {"usr-4", "usr-5", "usr-6"} & {each["index"] for each in walked(found)}
