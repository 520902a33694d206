"""The markers by cost: which files are left out, and which tests have to be marked."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.costs import QUICK, file_marks, may_select

ROOT = Path(__file__).parent.parent

SERVER = """
import socket
import subprocess

import pytest

@pytest.fixture(scope="module")
def server():
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        yield opened

def test_first(server): pass
def test_second(server): pass
def test_late(request): request.getfixturevalue("server")
def test_browser(tmp_path):
    with pytest.raises(FileNotFoundError):
        subprocess.Popen([str(tmp_path / "chromium")])
@pytest.mark.server
def test_marked(server): pass
def test_other(): pass
"""


@pytest.mark.parametrize(
    ("source", "marks"),
    [
        ("import pytest\n", set()),
        ("pytestmark = pytest.mark.server\n", {"server"}),
        ("pytestmark = [\n    pytest.mark.slow,\n    pytest.mark.browser,\n]\n", {"slow", "browser"}),
        ("pytestmark = pytest.mark.filterwarnings('ignore')\n", set()),
        ("@pytest.mark.slow\ndef test_one(): pass\n", set()),
    ],
)
def test_the_markers_of_a_file_are_read_from_its_text(source: str, marks: set[str]) -> None:
    """Markers by cost that a file gives to all its tests are known without importing it."""
    assert marks == file_marks(source)


@pytest.mark.parametrize(
    ("expression", "marks", "expected"),
    [
        (QUICK, {"server"}, False),
        ("server", {"server"}, True),
        ("server and slow", {"server"}, True),
        ("slow and not server", {"server"}, False),
        ("not slow", {"server"}, True),
        ("browser", {"server"}, True),
    ],
)
def test_a_file_is_left_out_if_no_test_of_it_can_match(expression: str, marks: set[str], expected: bool) -> None:  # noqa: FBT001 (a parameter of the test)
    """A file is left out only if its tests cannot match, whatever markers single tests add."""
    assert expected == may_select(expression, marks)


def run(folder: Path, source: str, *options: str) -> tuple[int, str]:
    """Run pytest with the plugin on one test file, and return its exit code and output."""
    (folder / "test_one.py").write_text(source, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.costs",
        "--rootdir",
        str(folder),
        "-c",
        str(ROOT / "pyproject.toml"),
    ]
    done = subprocess.run([*command, *options, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 (our own words)
    return done.returncode, done.stdout


@pytest.mark.slow
def test_a_server_or_browser_needs_its_marker(tmp_path: Path) -> None:
    """Each test that starts a server or browser, or uses a shared one, fails without the marker, and says which it needs."""
    code, output = run(tmp_path, SERVER)
    assert 1 == code
    failed = {line.split("::")[1].split()[0] for line in output.splitlines() if line.startswith("FAILED")}
    assert {"test_first", "test_second", "test_late", "test_browser"} == failed
    assert "mark it @pytest.mark.server" in output
    assert "mark it @pytest.mark.browser" in output


@pytest.mark.slow
def test_an_excluded_file_is_not_imported(tmp_path: Path) -> None:
    """A file whose tests are all excluded may import what is not installed."""
    source = "import pytest\nimport not_installed_anywhere\npytestmark = pytest.mark.server\ndef test_one(): pass\n"
    code, output = run(tmp_path, source, "-m", QUICK)
    assert pytest.ExitCode.NO_TESTS_COLLECTED == code
    assert "not_installed_anywhere" not in output
    code, output = run(tmp_path, source)
    assert "not_installed_anywhere" in output
