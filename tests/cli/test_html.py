"""``memci html`` writes the page of a session, and nothing else."""

from pathlib import Path

from memci.cli.exit_code import ExitCode
from tests.cli.stored import Run


def test_a_page_is_written(run: Run, store: str, tmp_path: Path) -> None:
    """The file is there, and the answer says where, how large, and as of which event."""
    out = tmp_path / "page.html"
    done = run("html", "--store", store, "--out", out, "--windows", "5", "--search", "gasket", "--preset", "", "--json")
    assert ExitCode.OK == done.code
    told = done.json()
    assert (str(out), out.stat().st_size, "boiler") == (told["file"], told["bytes"], told["session"])
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_file_that_cannot_be_written_is_an_error(run: Run, store: str, tmp_path: Path) -> None:
    """Where the page cannot be written, one line says so, and the exit code is that of output."""
    done = run("html", "--store", store, "--out", tmp_path / "none" / "page.html", "--windows", "2", "--preset", "")
    assert (ExitCode.STORE, "") == (done.code, done.out)
    assert "cannot be written" in done.err


def test_an_unknown_preset_is_an_error(run: Run, store: str, tmp_path: Path) -> None:
    """A preset that there is not is named, and no file is written."""
    done = run("html", "--store", store, "--out", tmp_path / "page.html", "--preset", "none-such")
    assert ExitCode.USAGE == done.code
    assert "none-such" in done.err
    assert not (tmp_path / "page.html").exists()
