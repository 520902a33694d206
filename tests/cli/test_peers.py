"""``memci bench peers``: a result of the bench beside other libraries, shown."""

from pathlib import Path

from memci.messages import codec
from tests.cli.stored import Run
from tests.peers.tiny import RESULT


def test_the_command_prints_the_result(run: Run, tmp_path: Path) -> None:
    """``memci bench peers`` shows the tables, then what others are better in, and what was not reached."""
    file, picture = tmp_path / "peers.json", tmp_path / "peers.svg"
    file.write_bytes(codec.encode(RESULT))
    out = run("bench", "peers", file, "--picture", picture).out
    assert out.startswith("chat, 100 turns: turns, in µs\n")
    assert out.index("in what others are better") < out.index("theirs, chat, 1,000 turns: 400 turns after 60 s")
    assert picture.read_text(encoding="utf-8").startswith("<svg")


def test_another_file_is_refused(run: Run, tmp_path: Path) -> None:
    """What is no result is an error that names the file."""
    file = tmp_path / "other.json"
    file.write_text("{}", encoding="utf-8")
    assert "is no result of make bench-peers" in run("bench", "peers", file).err
