"""Indexes in a directory of this machine take about what they may; one that somebody has open stays."""

import os
import subprocess
import sys
from pathlib import Path

from memci.archive.catalogue.index_folder import IndexPlace
from memci.archive.catalogue.page_index import PageIndex


def opened(root: Path, name: str, most_bytes: int | None) -> PageIndex:
    return PageIndex.at(IndexPlace(root, root / f"of {name[0]}", name, most_bytes), read_only=False)


def made(root: Path, name: str, most_bytes: int | None, age_s: int) -> int:
    """Make an index that was opened so long ago, and return how large it is."""
    index = opened(root, name, most_bytes)
    with index.write() as writer:
        writer.set_seq(1, name)
    index.close()
    path = root / f"of {name[0]}" / f"{name}.sqlite"
    if most_bytes is not None:
        os.utime(f"{path}.used", (1_000_000_000 - age_s,) * 2)
    return path.stat().st_size


def names(root: Path) -> list[str]:
    return sorted(path.stem for path in root.rglob("*.sqlite"))


def test_those_opened_longest_ago_give_way(tmp_path: Path) -> None:
    """A new index has the room of others, the oldest first, and leaves nothing of them."""
    size = made(tmp_path, "a1", 10**9, 300)
    made(tmp_path, "b1", 10**9, 100)
    made(tmp_path, "b2", 10**9, 200)
    made(tmp_path, "c1", size, 0)
    assert ["b1", "c1"] == names(tmp_path)
    assert {"b1.sqlite", "b1.sqlite.used", "c1.sqlite", "c1.sqlite.used", "lock"} == {
        path.name for path in tmp_path.rglob("*") if path.is_file()
    }
    opened(tmp_path, "b1", size).close()  # one that is there takes no room of others
    assert ["b1", "c1"] == names(tmp_path)


def test_one_that_is_open_stays(tmp_path: Path) -> None:
    """Whoever has an index open goes on with it, in this process or another one, and it gives way when it is closed."""
    size = made(tmp_path, "a1", 10**9, 300)
    index = opened(tmp_path, "a1", 10**9)
    made(tmp_path, "b1", size, 100)
    assert "a1" == index.mark
    made(tmp_path, "b2", size, 200)
    assert ["a1", "b2"] == names(tmp_path)
    index.close()
    index.close()
    made(tmp_path, "b3", size, 0)
    assert ["a1", "b3"] == names(tmp_path)
    made(tmp_path, "b4", 1, 0)
    assert ["b4"] == names(tmp_path)


def test_a_killed_process_has_nothing_open(tmp_path: Path) -> None:
    """What a process had open that is gone gives way as any other."""
    code = (
        "import os, pathlib, sys; from memci.archive.catalogue.index_folder import IndexPlace; "
        "from memci.archive.catalogue.page_index import PageIndex; root = pathlib.Path(sys.argv[1]); "
        "PageIndex.at(IndexPlace(root, root / 'of a', 'a1', 10**9), read_only=False); os._exit(9)"
    )
    assert 9 == subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode  # noqa: S603 (fixed words)
    made(tmp_path, "b1", 1, 0)
    assert [] == [name for name in names(tmp_path) if name == "a1"]


def test_any_number_without_a_bound(tmp_path: Path) -> None:
    """Where nothing is said, none gives way, and no file tells that one is open."""
    for name in ("a1", "a2"):
        made(tmp_path, name, None, 0)
    assert {"a1.sqlite", "a2.sqlite", "lock"} == {path.name for path in tmp_path.rglob("*") if path.is_file()}
