"""``memci bench quality``."""

import json
from pathlib import Path
from typing import Any

import pytest

from memci.cli.exit_code import ExitCode
from tests.chat.model_server import said, serving
from tests.chat.small_model import small_model
from tests.cli.stored import Run, chat

QUESTION = {"question": "What does part 3 cost?", "answer": "3.50 euros", "category": "price", "evidence": [6]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A conversation with a question, some times its budget."""
    path = tmp_path / "boiler.json"
    path.write_text(json.dumps({"messages": chat(40), "questions": [QUESTION]}), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep results in a directory of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "memci" / "quality"


def rows(run: Run, tmp_path: Path, *arguments: object) -> list[dict[str, Any]]:
    """Measure, and return the rows of the JSON file."""
    ran = run("bench", "quality", *arguments, "--jobs", 1, "--json", tmp_path / "found.json")
    assert (ExitCode.OK, "") == (ran.code, ran.err)
    found: list[dict[str, Any]] = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["rows"]
    return found


def test_every_engine_is_measured_at_every_budget(run: Run, file: Path, tmp_path: Path) -> None:
    """Budgets rise, and memci stands first in each."""
    found = rows(run, tmp_path, file, "--budget", 3_000, "--budget", 2_000)
    assert [2_000, 3_000] == sorted({row["budget"] for row in found})
    assert ["memci", "memci"] == [row["engine"] for row in found[:: len(found) // 2]]
    assert all(row["ok"] for row in found if row["engine"] == "memci")


def test_the_table_has_a_line_for_each_row(run: Run, file: Path) -> None:
    """Set, budget and engine begin a line, and the search has its own table."""
    ran = run("bench", "quality", file, "--engine", "memci", "--engine", "whole", "--budget", 2_000, "--jobs", 1)
    lines = ran.out.splitlines()
    assert ["boiler", "2,000", "memci"] == lines[1].split()[:3]
    assert ["boiler", "2,000", "whole"] == lines[2].split()[:3]
    assert ["boiler", "2,000", "memci", "price", "1"] == lines[-2].split()[:5]


def test_an_example_is_measured(run: Run, tmp_path: Path) -> None:
    """A conversation without questions has no evidence and no search, and everything else."""
    example = Path(__file__).parents[2] / "examples" / "support.json"
    (row,) = rows(run, tmp_path, example, "--engine", "memci", "--budget", 3_000)
    assert (None, None, 91) == (row["anchored"], row["recall_1"], row["calls"])
    assert row["verbatim_tokens"] > 0


def test_conversations_without_questions_are_joined(run: Run, tmp_path: Path) -> None:
    """A directory makes one conversation of them all, or of so many as are asked for."""
    directory = tmp_path / "talks"
    directory.mkdir()
    for number in range(3):
        (directory / f"{number}.json").write_text(json.dumps({"messages": chat(5)}), encoding="utf-8")
    (one,) = rows(run, tmp_path, directory, "--engine", "whole", "--budget", 2_000)
    (two,) = rows(run, tmp_path, directory, "--engine", "whole", "--budget", 2_000, "--join", 2)
    assert ("talks", 1, 2) == (one["set"], one["conversations"], two["conversations"])
    assert one["calls"] == two["calls"]


def test_conversations_with_questions_are_joined_when_asked(run: Run, file: Path, tmp_path: Path) -> None:
    """Those of a directory are measured one by one, or joined with their questions."""
    directory = tmp_path / "asked"
    directory.mkdir()
    for name in "ab":
        (directory / f"{name}.json").write_bytes(file.read_bytes())
    (two,) = rows(run, tmp_path, directory, "--engine", "whole", "--budget", 2_000)
    (one,) = rows(run, tmp_path, directory, "--engine", "whole", "--budget", 2_000, "--join", 2)
    assert [(2, 2), (1, 2)] == [(row["conversations"], row["questions"]) for row in (two, one)]


def test_needs_are_measured_one_by_one(run: Run, tmp_path: Path) -> None:
    """Conversations with needs are never joined; their kinds have columns, and what nobody measured has none."""
    directory = tmp_path / "agents"
    directory.mkdir()
    for number in range(2):
        needs = [{"kind": "file", "text": "3.50 euros"}, {"kind": "file", "text": "a.py"}]
        (directory / f"{number}.json").write_text(json.dumps({"messages": chat(9), "needs": needs}), encoding="utf-8")
    chosen = (directory, "--engine", "whole", "--budget", 2_000, "--join", 2)
    (row,) = rows(run, tmp_path, *chosen)
    assert (2, 0.5, None) == (row["conversations"], row["file_needs"], row["hash_needs"])
    heading = run("bench", "quality", *chosen).out.splitlines()[0]
    assert "files %" in heading
    assert "hashes %" not in heading


def test_results_are_kept_for_the_next_run(run: Run, file: Path, tmp_path: Path, cache: Path) -> None:
    """The second run reads what the first one kept; without the cache nothing is kept."""
    chosen = (file, "--engine", "memci", "--budget", 2_000)
    found = rows(run, tmp_path, *chosen, "--no-cache")
    assert not cache.exists()
    assert found == rows(run, tmp_path, *chosen)
    (kept,) = cache.iterdir()
    kept.write_bytes(kept.read_bytes().replace(b'"lost":0', b'"lost":7'))
    ran = run("bench", "quality", *chosen)
    assert (ExitCode.FAILED, "7") == (ran.code, ran.out.splitlines()[1].split()[-1])


def test_faults_of_other_engines_do_not_fail(run: Run, file: Path) -> None:
    """Windows over budget are what the whole history is measured for."""
    assert ExitCode.OK == run("bench", "quality", file, "--engine", "whole", "--budget", 1_500).code


def test_a_picture_is_drawn(run: Run, file: Path, tmp_path: Path) -> None:
    """The picture is an XML document."""
    run("bench", "quality", file, "--engine", "memci", "--budget", 2_000, "--picture", tmp_path / "found.svg")
    assert (tmp_path / "found.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_cache_that_cannot_be_written_is_an_error(run: Run, file: Path, cache: Path) -> None:
    """The error says how to do without."""
    cache.parent.parent.write_text("a file, not a directory", encoding="utf-8")
    ran = run("bench", "quality", file, "--engine", "whole", "--budget", 2_000)
    assert ExitCode.STORE == ran.code
    assert "--no-cache" in ran.err


@pytest.mark.parametrize("option", ["--json", "--picture"])
@pytest.mark.parametrize(("path", "reason"), [("none/found", "there is no directory"), (".", "is a directory")])
def test_a_file_that_cannot_be_written_is_an_error(run: Run, tmp_path: Path, option: str, path: str, reason: str) -> None:
    """The error names the file and the reason, before anything is read or measured."""
    ran = run("bench", "quality", tmp_path / "missing.json", option, tmp_path / path)
    assert ExitCode.STORE == ran.code
    assert f"{tmp_path / path}: cannot be written: " in ran.err
    assert reason in ran.err


def test_a_full_disk_is_an_error(run: Run, file: Path) -> None:
    """A file that turns out to be unwritable is named when it is written."""
    ran = run("bench", "quality", file, "--engine", "whole", "--budget", 2_000, "--json", "/dev/full")
    assert (ExitCode.STORE, "memci: /dev/full: cannot be written: No space left on device\n") == (ran.code, ran.err)


def test_a_file_is_written_once(run: Run, tmp_path: Path) -> None:
    """Figures and picture go to two files, whatever their paths look like, and over nothing that is read."""
    read, config = tmp_path / "talk.json", tmp_path / "memci.yaml"
    same = ("--json", tmp_path / "same.x", "--picture", tmp_path / "new" / ".." / "same.x")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "set.json").touch()
    for told, options in (
        ("--picture", same),
        ("--json", ("--json", read)),
        ("--json", (tmp_path / "new", "--json", tmp_path / "new" / "set.json")),
        ("--picture", ("--config", config, "--picture", config)),
    ):
        ran = run("bench", "quality", read, *options)
        assert (ExitCode.USAGE, 1) == (ran.code, ran.err.count("\n"))
        assert f"memci: {told} " in ran.err
        assert "name another file" in ran.err
    assert ["new", "set.json"] == sorted(path.name for path in tmp_path.rglob("*"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--engine", "none"), "there is no engine 'none'"),
        (("--config", "missing.yaml"), "missing.yaml"),
    ],
)
def test_what_is_unknown_is_refused(run: Run, file: Path, arguments: tuple[str, ...], told: str) -> None:
    """A wrong name is wrong usage, and the error names it."""
    ran = run("bench", "quality", file, *arguments)
    assert ExitCode.USAGE == ran.code
    assert told in ran.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "cannot be read as JSON"),
        ('{"messages": []}', "there is no message in it"),
        ('{"messages": [{"role": "user", "content": "hi"}], "timestamps": [1, 2]}', "2 timestamps for 1 messages"),
        ('{"messages": [{"role": "user", "content": "hi"}], "questions": [{"question": "?"}]}', "evidence"),
        ('{"messages": [{"role": "user", "content": "hi"}], "format": "anthropic"}', "only messages in OpenAI's chat format"),
        ("[]", "it is no conversation"),
    ],
)
def test_what_is_no_conversation_is_refused(run: Run, tmp_path: Path, text: str, told: str) -> None:
    """The error names the file, and what is wrong with it."""
    path = tmp_path / "talk.json"
    path.write_text(text, encoding="utf-8")
    ran = run("bench", "quality", path)
    assert ExitCode.USAGE == ran.code
    assert told in ran.err
    assert "talk.json" in ran.err


def test_an_empty_directory_is_refused(run: Run, tmp_path: Path) -> None:
    """A set has conversations."""
    ran = run("bench", "quality", tmp_path)
    assert ExitCode.USAGE == ran.code
    assert "there is no .json file" in ran.err


@pytest.mark.server
def test_a_reader_answers_from_windows_and_rows(run: Run, file: Path, tmp_path: Path) -> None:
    """Its scores are a table of their own, and in the JSON; asked again, the kept answers are."""
    with serving(lambda _: said("3.50 euros")) as model:
        chosen = (file, "--engine", "memci", "--budget", 3_000, "--jobs", 1, "--reader", model.url, "--reader-model", "tiny")
        ran = run("bench", "quality", *chosen, "--json", tmp_path / "found.json")
        assert (ExitCode.OK, "") == (ran.code, ran.err)
        requests = len(model.requests)
        assert ran.out == run("bench", "quality", *chosen).out
    assert (requests, "tiny", 0) == (len(model.requests), model.requests[0]["model"], model.requests[0]["temperature"])
    assert "answers of tiny, token F1" in ran.out
    answers = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["answers"]
    assert [("window", 1.0), ("row", 1.0)] == [(each["source"], each["f1"]) for each in answers]


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.timeout(400)
def test_a_real_small_model_reads(run: Run, file: Path) -> None:
    """It answers each question once; how well is its own affair."""
    with small_model() as model:
        ran = run("bench", "quality", file, "--engine", "memci", "--budget", 1_000, "--jobs", 1, "--reader", model.url)
        assert (ExitCode.OK, "") == (ran.code, ran.err)
        assert 1 == model.answered
    lines = [line.split() for line in ran.out.splitlines() if line.split()[3:4] in (["window"], ["row"])]
    assert ["1", "0", "0", "0"] == lines[0][-4:]
